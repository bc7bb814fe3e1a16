package ref

import B "hearth/internal/backend"

// MLA expands every latent to the keys and values of all heads, as the model was trained.
func (s *scope) MLA(q, latent, rot B.Array, m *B.MLA) B.Array {
	s.check.MLA(q, latent, rot, m)
	s.st.write(m.State, s.b.Spans, s.get(latent), s.get(rot))
	h, y := s.make(q.Rows(), m.Heads*m.VDim)
	a := &B.Attn{State: m.State, Heads: m.Heads, KVHeads: m.Heads, KDim: m.Nope + m.Rot, VDim: m.VDim, Scale: m.Scale}
	expanded := map[*B.Span][][2][]float64{}
	in, i := s.get(q), 0
	for r := range q.Rows() {
		row := s.batchRow(q, r)
		for row >= s.b.Spans[i].Row+s.b.Spans[i].Len {
			i++
		}
		sp := &s.b.Spans[i]
		if expanded[sp] == nil {
			for j := range sp.Start + sp.Len {
				k, v := expand(m, s.st, sp, j)
				expanded[sp] = append(expanded[sp], [2][]float64{k, v})
			}
		}
		kv := keys{at: func(j int) (k, v []float64) { return expanded[sp][j][0], expanded[sp][j][1] }}
		s.attend(a, sp, kv, sp.Start+row-sp.Row, in.row(r), y.row(r))
	}
	return h
}

// expand gives what all heads see of index j.
func expand(m *B.MLA, st *Store, sp *B.Span, j int) (k, v []float64) {
	latent, rot := st.at(m.State, sp.Table, j)
	for head := range m.Heads {
		up := m.KUp.(*experts).each[head]
		key := make([]float64, m.Nope)
		for l, x := range latent {
			for n, w := range up.row(l) {
				key[n] += w * x
			}
		}
		k = append(append(k, key...), rot...)
		v = append(v, linear(&array{cols: m.Lora, v: latent}, m.VUp.(*experts).each[head]).v...)
	}
	return k, v
}
