package mlx

import B "hearth/internal/backend"

// MLA attends to latents as they are stored: queries go through the keys' matrices, and what they gather through the values'.
func (s *scope) MLA(q, latent, rot B.Array, m *B.MLA) B.Array {
	s.check.MLA(q, latent, rot, m)
	s.st.write(s, m.State, s.get(latent), s.get(rot))
	a := &B.Attn{State: m.State, Heads: m.Heads, KVHeads: 1, KDim: m.Lora + m.Rot, VDim: m.Lora, Scale: m.Scale}
	parts, in := s.parts(a, s.b.Spans, q.Rows()), s.get(q)
	return s.op(q.Rows(), m.Heads*m.VDim, func() handle {
		l, all := s.l, []handle{}
		for i := range parts {
			p := &parts[i]
			n := len(p.rows)
			k, r := s.st.read(m.State, p)
			qs := l.reshape(l.heads(l.rows(in.h, p.rows), n, q.Cols(), m.Nope+m.Rot), m.Heads, n, m.Nope+m.Rot)
			// KUp is kept as [heads, Nope, Lora], the transpose of what is stored.
			wide := l.bin(fnMatmul, l.slice(qs, 2, 0, m.Nope), m.KUp.(*weight).blocks[0].w)
			wide = l.reshape(l.concat(2, wide, l.slice(qs, 2, m.Nope, m.Nope+m.Rot)), 1, m.Heads, n, m.Lora+m.Rot)
			y := s.attend(a, p, wide, l.concat(3, k, r), k)
			y = l.bin(fnMatmul, l.reshape(y, m.Heads, n, m.Lora), m.VUp.(*weight).blocks[0].w)
			all = append(all, l.reshape(l.transpose(y, 1, 0, 2), n, m.Heads*m.VDim))
		}
		return l.concat(0, all...)
	})
}
