//go:build (!amd64 && !arm64) || purego

package kernel

import "unsafe"

func packLanesAsm(_ []byte, _ *[PanelRows]unsafe.Pointer, _, _, _ int) bool { return false }
func packScalesAsm(_ []byte, _ *[PanelRows]unsafe.Pointer, _, _ int) int    { return 0 }
func nibbleLanesAsm(_, _ []byte) bool                                       { return false }
func streamLanesAsm(_, _ []byte, _ int) bool                                { return false }
func e2m1FloatsAsm(_ []float32, _ []byte, _ []float32) bool                 { return false }
func e4m3FloatsAsm(_ []float32, _ []byte, _ []float32) bool                 { return false }
func f16FloatsAsm(_ []float32, _ []byte) int                                { return 0 }
