package kernel

// Over is Memory.NewMatrix with the panels in the first s.Bytes() of data, or for nil data a matrix without panels: it tells its
// sizes and can do nothing else.
func Over(s Spec, data []byte) *Matrix {
	return newMatrix(s, func(n int) []byte {
		if data == nil {
			return nil
		}
		return data[:n:n]
	})
}

// Bytes is how many bytes the buffers of a take.
func (a *Acts) Bytes() int64 {
	l := &a.lists
	return int64(cap(a.q)+cap(a.high)) + 2*int64(cap(a.half)) +
		4*int64(cap(a.x)+cap(a.scale)+cap(a.sum)+cap(a.offset)+cap(a.quads)+cap(l.set)+cap(l.heads)+cap(l.records))
}

// Spec is what the matrix was made of.
func (m *Matrix) Spec() Spec { return m.spec }
