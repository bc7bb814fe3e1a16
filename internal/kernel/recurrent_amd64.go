//go:build amd64 && !purego

package kernel

import "unsafe"

//go:noescape
func mulAddAVX2(y, a, b unsafe.Pointer, n int)

// deltaArgs is Delta with strides in bytes.
type deltaArgs struct {
	state, k, q, v, y, gate, beta unsafe.Pointer
	n, kdim                       int
	ks, vs, ys, gs                int
}

//go:noescape
func deltaAVX2(a *deltaArgs)

//go:noescape
func deltaAVX512(a *deltaArgs)

func mulAddAsm(y, a, b []float32) bool {
	if !useAVX2 {
		return false
	}
	n, left := rest(len(y), 8)
	if n > 0 {
		mulAddAVX2(ptr(y), ptr(a), ptr(b), n)
	}
	if left > 0 {
		var p [3][8]float32
		for i, s := range [3][]float32{y, a, b} {
			copy(p[i][:], s[n:])
		}
		mulAddAVX2(ptr(p[0][:]), ptr(p[1][:]), ptr(p[2][:]), 8)
		copy(y[n:], p[0][:])
	}
	return true
}

func deltaAsm(d *Delta) bool {
	if !useAVX2 {
		return false
	}
	a := deltaArgs{
		state: ptr(d.State), k: ptr(d.K), q: ptr(d.Q), v: ptr(d.V), y: ptr(d.Y), gate: ptr(d.Gate), beta: ptr(d.Beta),
		n: d.N, kdim: d.KDim, ks: 4 * d.KStride, vs: 4 * d.VStride, ys: 4 * d.YStride, gs: 4 * d.GStride,
	}
	if useAVX512 {
		deltaAVX512(&a)
	} else {
		deltaAVX2(&a)
	}
	return true
}
