//go:build amd64 && !purego

package kernel

// columnScoresAsm is scoreAsm of float32 rows, one after the other in memory or not, whose columns are added up one by one. A
// tile of keys becomes lines of a column of each, so that nothing has to be folded, which at 64 columns takes as long as the
// products.
func (w *AttnSpace) columnScoresAsm(q []float32, k *Rows, at, from, to, n int) bool {
	if !useAVX512 || k.Type != CacheF32 {
		return false
	}
	w.turn(k, at, from/16, (to+15)/16)
	pad := pad16(k.Width)
	x := halfArgs{lines: ptr(w.k), xStride: 4 * pad, sumStride: 4 * AttnTile, pairs: k.Width}
	x.fetch(k.Data[(at+from)*k.Stride:], 0) // lines of the next keys are not next to each other
	for i := 0; i < n; i += x.groups {
		var each int
		each, x.groups = portion(n-i, halfTogether)
		x.x, x.sums = f32ptr(q, i*pad), f32ptr(w.s, i*AttnTile)
		callFloatProducts(each, &x)
		x.groups *= each
	}
	return true
}
