//go:build arm64 && !purego

package kernel

import "unsafe"

// scanArgs is Scan with strides in bytes.
type scanArgs struct {
	state, k, q, v, y, gate unsafe.Pointer
	n, kdim                 int
	ks, qs, vs, ys, gs      int
}

// keyDeltaArgs is KeyDelta with strides in bytes.
type keyDeltaArgs struct {
	state, k, q, v, y, gate, beta, kg unsafe.Pointer
	n, kdim                           int
	ks, vs, ys, gs, bs                int
}

func scanAsm(s *Scan) bool {
	if !useNEON {
		return false
	}
	a := scanArgs{
		state: ptr(s.State), k: ptr(s.K), q: ptr(s.Q), v: ptr(s.V), y: ptr(s.Y), gate: ptr(s.Gate),
		n: s.N, kdim: s.KDim, ks: 4 * s.KStride, qs: 4 * s.QStride, vs: 4 * s.VStride, ys: 4 * s.YStride, gs: 4 * s.GStride,
	}
	if s.Wide {
		scanWideNEON(&a)
	} else {
		scanNEON(&a)
	}
	return true
}

func timesAsm(dst, a, by []float32) bool {
	if !useNEON {
		return false
	}
	timesNEON(ptr(dst), ptr(a), ptr(by), len(dst))
	return true
}

func keyDeltaAsm(d *KeyDelta) bool {
	if !useNEON {
		return false
	}
	a := keyDeltaArgs{
		state: ptr(d.State), k: ptr(d.K), q: ptr(d.Q), v: ptr(d.V), y: ptr(d.Y), gate: ptr(d.Gate), beta: ptr(d.Beta), kg: ptr(d.KG),
		n: d.N, kdim: d.KDim, ks: 4 * d.KStride, vs: 4 * d.VStride, ys: 4 * d.YStride, gs: 4 * d.GStride, bs: 4 * d.BStride,
	}
	keyDeltaNEON(&a)
	return true
}
