//go:build amd64 && !purego

package kernel

import "unsafe"

// scanArgs is Scan with strides in bytes.
type scanArgs struct {
	state, k, q, v, y, gate unsafe.Pointer
	n, kdim                 int
	ks, qs, vs, ys, gs      int
}

//go:noescape
func scanAVX2(a *scanArgs)

//go:noescape
func scanWideAVX2(a *scanArgs)

// timesAVX2 writes n floats, a multiple of DeltaLanes.
//
//go:noescape
func timesAVX2(dst, a, by unsafe.Pointer, n int)

// keyDeltaArgs is KeyDelta with strides in bytes.
type keyDeltaArgs struct {
	state, k, q, v, y, gate, beta, kg unsafe.Pointer
	n, kdim                           int
	ks, vs, ys, gs, bs                int
}

//go:noescape
func keyDeltaAVX2(a *keyDeltaArgs)

func scanAsm(s *Scan) bool {
	if !useAVX2 {
		return false
	}
	a := scanArgs{
		state: ptr(s.State), k: ptr(s.K), q: ptr(s.Q), v: ptr(s.V), y: ptr(s.Y), gate: ptr(s.Gate),
		n: s.N, kdim: s.KDim, ks: 4 * s.KStride, qs: 4 * s.QStride, vs: 4 * s.VStride, ys: 4 * s.YStride, gs: 4 * s.GStride,
	}
	if s.Wide {
		scanWideAVX2(&a)
	} else {
		scanAVX2(&a)
	}
	return true
}

func timesAsm(dst, a, by []float32) bool {
	if !useAVX2 {
		return false
	}
	timesAVX2(ptr(dst), ptr(a), ptr(by), len(dst))
	return true
}

func keyDeltaAsm(d *KeyDelta) bool {
	if !useAVX2 {
		return false
	}
	a := keyDeltaArgs{
		state: ptr(d.State), k: ptr(d.K), q: ptr(d.Q), v: ptr(d.V), y: ptr(d.Y), gate: ptr(d.Gate), beta: ptr(d.Beta), kg: ptr(d.KG),
		n: d.N, kdim: d.KDim, ks: 4 * d.KStride, vs: 4 * d.VStride, ys: 4 * d.YStride, gs: 4 * d.GStride, bs: 4 * d.BStride,
	}
	keyDeltaAVX2(&a)
	return true
}
