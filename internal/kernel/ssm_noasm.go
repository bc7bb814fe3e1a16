//go:build (!amd64 && !arm64) || purego

package kernel

func scanAsm(*Scan) bool              { return false }
func timesAsm(_, _, _ []float32) bool { return false }
func keyDeltaAsm(*KeyDelta) bool      { return false }
