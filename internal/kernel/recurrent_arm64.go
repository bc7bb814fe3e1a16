//go:build arm64 && !purego

package kernel

import "unsafe"

// deltaArgs is Delta with strides in bytes.
type deltaArgs struct {
	state, k, q, v, y, gate, beta unsafe.Pointer
	n, kdim                       int
	ks, vs, ys, gs                int
}

func mulAddAsm(y, a, b []float32) bool {
	if !useNEON {
		return false
	}
	n, left := rest(len(y), 8)
	if n > 0 {
		mulAddNEON(ptr(y), ptr(a), ptr(b), n)
	}
	if left > 0 {
		var p [3][8]float32
		for i, s := range [3][]float32{y, a, b} {
			copy(p[i][:], s[n:])
		}
		mulAddNEON(ptr(p[0][:]), ptr(p[1][:]), ptr(p[2][:]), 8)
		copy(y[n:], p[0][:])
	}
	return true
}

func deltaAsm(d *Delta) bool {
	if !useNEON {
		return false
	}
	a := deltaArgs{
		state: ptr(d.State), k: ptr(d.K), q: ptr(d.Q), v: ptr(d.V), y: ptr(d.Y), gate: ptr(d.Gate), beta: ptr(d.Beta),
		n: d.N, kdim: d.KDim, ks: 4 * d.KStride, vs: 4 * d.VStride, ys: 4 * d.YStride, gs: 4 * d.GStride,
	}
	deltaNEON(&a)
	return true
}
