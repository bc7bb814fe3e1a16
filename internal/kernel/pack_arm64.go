//go:build arm64 && !purego

package kernel

import "unsafe"

// The routines of vec_arm64.s take whole steps, at least one: quads of lanes, octets of groups, 16 bytes of codes, 8 numbers.
// Codes in planes and small floats are packed by the generic twins.

// packLanesAsm takes at least four words.
func packLanesAsm(dst []byte, rows *[PanelRows]unsafe.Pointer, groups, words, skip int) bool {
	if useNEON {
		_ = dst[groups*(words*4*PanelRows+skip)-skip-1]
		packLanesNEON(ptr(dst), unsafe.Pointer(rows), groups, words/4, -words&3*4, skip)
	}
	return useNEON
}

// packScalesAsm tells how many groups it has done.
func packScalesAsm(dst []byte, rows *[PanelRows]unsafe.Pointer, groups, stride int) int {
	octets := groups / 8
	if !useNEON || octets == 0 {
		return 0
	}
	_ = dst[(octets*8-1)*stride+2*PanelRows-1]
	packScalesNEON(ptr(dst), unsafe.Pointer(rows), octets, stride)
	return 8 * octets
}

func nibbleLanesAsm(dst, src []byte) bool {
	if useNEON {
		nibbleLanesNEON(ptr(dst), ptr(src[:len(dst)]), len(dst)/16)
	}
	return useNEON
}

// f16FloatsAsm tells how many numbers it has done.
func f16FloatsAsm(dst []float32, src []byte) int {
	n := len(dst) / 8
	if !useNEON || n == 0 {
		return 0
	}
	f16FloatsNEON(ptr(dst), ptr(src[:16*n]), n)
	return 8 * n
}

func streamLanesAsm(_, _ []byte, _ int) bool                { return false }
func e2m1FloatsAsm(_ []float32, _ []byte, _ []float32) bool { return false }
func e4m3FloatsAsm(_ []float32, _ []byte, _ []float32) bool { return false }
