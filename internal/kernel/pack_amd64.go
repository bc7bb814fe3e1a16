//go:build amd64 && !purego

package kernel

import "unsafe"

// The routines of pack_amd64.s take whole steps, at least one: quads of lanes, octets of groups, rows of 32 codes (16 bytes
// for nibbleLanes, 8 numbers for f16Floats).

//go:noescape
func packLanesAVX2(dst, rows unsafe.Pointer, groups, quads, back, skip int)

//go:noescape
func packScalesAVX2(dst, rows unsafe.Pointer, octets, stride int)

//go:noescape
func nibbleLanesAVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func streamLanes2AVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func streamLanes3AVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func streamLanes5AVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func streamLanes6AVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func e2m1FloatsAVX2(dst, src, scales unsafe.Pointer, n int)

//go:noescape
func e4m3FloatsAVX2(dst, src, scales unsafe.Pointer, n int)

//go:noescape
func f16FloatsAVX2(dst, src unsafe.Pointer, n int)

// packLanesAsm takes at least four words.
func packLanesAsm(dst []byte, rows *[PanelRows]unsafe.Pointer, groups, words, skip int) bool {
	if useAVX2 {
		_ = dst[groups*(words*4*PanelRows+skip)-skip-1]
		packLanesAVX2(ptr(dst), unsafe.Pointer(rows), groups, words/4, -words&3*4, skip)
	}
	return useAVX2
}

// packScalesAsm tells how many groups it has done.
func packScalesAsm(dst []byte, rows *[PanelRows]unsafe.Pointer, groups, stride int) int {
	octets := groups / 8
	if !useAVX2 || octets == 0 {
		return 0
	}
	_ = dst[(octets*8-1)*stride+2*PanelRows-1]
	packScalesAVX2(ptr(dst), unsafe.Pointer(rows), octets, stride)
	return 8 * octets
}

func nibbleLanesAsm(dst, src []byte) bool {
	if useAVX2 {
		nibbleLanesAVX2(ptr(dst), ptr(src[:len(dst)]), len(dst)/16)
	}
	return useAVX2
}

func streamLanesAsm(dst, src []byte, bits int) bool {
	n := len(dst) / (4 * bits)
	src = src[:len(dst)]
	switch {
	case !useAVX2:
		return false
	case bits == 2:
		streamLanes2AVX2(ptr(dst), ptr(src), n)
	case bits == 3:
		streamLanes3AVX2(ptr(dst), ptr(src), n)
	case bits == 5:
		streamLanes5AVX2(ptr(dst), ptr(src), n)
	case bits == 6:
		streamLanes6AVX2(ptr(dst), ptr(src), n)
	default:
		return false
	}
	return true
}

func e2m1FloatsAsm(dst []float32, src []byte, scales []float32) bool {
	if useAVX2 {
		e2m1FloatsAVX2(ptr(dst), ptr(src[:len(dst)/2]), ptr(scales[:len(dst)/16]), len(dst)/16)
	}
	return useAVX2
}

func e4m3FloatsAsm(dst []float32, src []byte, scales []float32) bool {
	if useAVX2 {
		e4m3FloatsAVX2(ptr(dst), ptr(src[:len(dst)]), ptr(scales[:len(dst)/32]), len(dst)/32)
	}
	return useAVX2
}

// f16FloatsAsm tells how many numbers it has done.
func f16FloatsAsm(dst []float32, src []byte) int {
	n := len(dst) / 8
	if !useAVX2 || n == 0 {
		return 0
	}
	f16FloatsAVX2(ptr(dst), ptr(src[:16*n]), n)
	return 8 * n
}
