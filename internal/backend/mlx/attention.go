package mlx

import (
	"math"

	B "hearth/internal/backend"
)

// part is the queries of one span and what they may look at: keys of indices [from, to).
type part struct {
	span     *B.Span
	rows     []int32 // of q
	index    []int   // of each, in its sequence
	from, to int
	causal   bool  // row i sees all but the last so many keys as follow it
	mask     *mask // else: nil sees all
}

// mask says which key a query sees, [rows, keys], made once per step.
type mask struct{ h handle }

type maskKey struct {
	span         *B.Span
	rows, window int
	chunks, both bool
	ranges       bool // those of the span count
	first, from  int
}

func (s *scope) Attention(q, k, v B.Array, a *B.Attn) B.Array {
	s.check.Attention(q, k, v, a)
	spans := s.b.Spans
	if a.Alt {
		spans = s.b.Alt
	}
	if a.State != B.NoState && !k.IsZero() {
		if k.Rows() == 1 {
			s.pair(s.look(q), s.look(k))
		}
		s.st.write(s, a.State, s.rowsOf(k), s.rowsOf(v))
	}
	parts, n := s.parts(a, spans, q.Rows()), q.Rows()
	if n == 1 && a.State != B.NoState {
		in := s.find(q)
		return s.one(a.Heads*a.VDim, a.VDim, func() handle {
			if f := &s.st.forms[a.State]; codedAlone(a, &f[0], &f[1], &parts[0]) {
				c, _ := s.st.seen(a.State, &parts[0])
				return s.l.attendCoded(a, &f[0], &f[1], c[0], c[1], s.heads(in, a.KDim))
			}
			keys, values := s.st.read(a.State, &parts[0])
			s.typed = a.Cap == 0 && s.st.policy.DType == s.be.act
			return s.attend(a, &parts[0], s.heads(in, a.KDim), keys, values)
		})
	}
	in := s.get(q)
	var ks, vs *node
	if a.State == B.NoState {
		ks, vs = s.get(k), s.get(v)
	}
	return s.op(n, a.Heads*a.VDim, func() handle {
		var all []handle
		for i := range parts {
			p := &parts[i]
			var keys, values handle
			if ks != nil {
				from, to := p.span.Row+p.from-p.span.Start, p.span.Row+p.to-p.span.Start
				keys = s.l.heads(s.l.part(ks.h, 0, from, to, ks.rows, ks.cols), to-from, ks.cols, a.KDim)
				values = s.l.heads(s.l.part(vs.h, 0, from, to, vs.rows, vs.cols), to-from, vs.cols, a.VDim)
			} else {
				keys, values = s.st.read(a.State, p)
			}
			y := s.attend(a, p, s.l.heads(s.l.rows(in.h, p.rows), len(p.rows), q.Cols(), a.KDim), keys, values)
			all = append(all, s.l.rowsOf(y, len(p.rows), a.Heads, a.VDim))
		}
		return s.l.concat(0, all...)
	})
}

// rowsOf resolves what is written to a state: heads of one row need not be put together.
func (s *scope) rowsOf(a B.Array) *node {
	if a.Rows() == 1 {
		return s.find(a)
	}
	return s.get(a)
}

// rowsOf makes [rows, heads·width] of [1, heads, rows, width].
func (l *lib) rowsOf(y handle, rows, heads, width int) handle {
	if rows > 1 {
		y = l.transpose(y, 0, 2, 1, 3)
	}
	return l.reshape(y, rows, heads*width)
}

// heads makes [1, heads, rows, width] of [rows, cols].
func (l *lib) heads(x handle, rows, cols, width int) handle {
	if rows == 1 {
		return l.reshape(x, 1, cols/width, 1, width)
	}
	return l.transpose(l.reshape(x, 1, rows, cols/width, width), 0, 2, 1, 3)
}

// parts cuts n rows of queries by span, with the fewest keys and the cheapest mask that will do.
func (s *scope) parts(a *B.Attn, spans []B.Span, n int) []part {
	var all []part
	r := 0
	for i := range spans {
		sp := &spans[i]
		p := part{span: sp, to: sp.Start + sp.Len}
		for ; r < n && s.batchRow(n, r) < sp.Row+sp.Len; r++ {
			p.rows = append(p.rows, int32(r))
			p.index = append(p.index, sp.Start+s.batchRow(n, r)-sp.Row)
		}
		if a.State == B.NoState {
			p.from = sp.Start
		}
		most := s.tile(a, p.to-p.from)
		for len(p.rows) > 0 {
			n, t := min(most, len(p.rows)), p
			t.rows, t.index = p.rows[:n], p.index[:n]
			s.see(a, &t)
			all = append(all, t)
			p.rows, p.index = p.rows[n:], p.index[n:]
		}
	}
	return all
}

// tile is how many rows attend to so many keys at once: all of them where MLX has a kernel that holds no scores.
func (s *scope) tile(a *B.Attn, keys int) int {
	whole := a.KDim == 64 || a.KDim == 80 || a.KDim == 128
	if whole && a.VDim == a.KDim && a.Cap == 0 && s.l.device == "metal" {
		return math.MaxInt
	}
	return max(s.be.tileBytes/(4*a.Heads*keys), 1)
}

// see narrows the keys to those that any query sees, and decides on the mask.
func (s *scope) see(a *B.Attn, p *part) {
	first, last := p.index[0], p.index[len(p.index)-1]
	ranges := len(p.span.Both) > 0 && !a.OneWay
	if !a.Both && !ranges {
		p.to = last + 1
		switch {
		case a.Chunks:
			p.from = max(p.from, first-first%a.Window)
		case a.Window > 0:
			p.from = max(p.from, first-a.Window+1)
		}
	}
	whole := true // every query sees every key up to its own
	if a.Chunks {
		whole = first/a.Window == last/a.Window
	} else if a.Window > 0 {
		whole = last-p.from < a.Window
	}
	switch {
	case !whole || ranges:
	case a.Both && (a.Window == 0 || p.to-p.from <= a.Window):
		return
	case a.Both:
	case len(p.rows) == 1:
		return
	case last-first == len(p.rows)-1:
		p.causal = true
		return
	}
	key := maskKey{p.span, len(p.rows), a.Window, a.Chunks, a.Both, ranges, first, p.from}
	if m, ok := s.masks[key]; ok {
		p.mask = m
		return
	}
	p.mask = &mask{}
	s.masks[key] = p.mask
	rows, keys, m := len(p.rows), p.to-p.from, p.mask
	seen := make([]bool, rows*keys)
	for r, i := range p.index {
		for j := range keys {
			seen[r*keys+j] = visible(a, p.span, i, p.from+j)
		}
	}
	s.later(func() { m.h = s.l.retain(upload(s.l, seen, 0, rows, keys)) })
}

// visible reports whether the query at index i sees the key at index j.
func visible(a *B.Attn, sp *B.Span, i, j int) bool {
	switch {
	case a.Chunks && i/a.Window != j/a.Window:
		return false
	case a.Window > 0 && (i-j >= a.Window || a.Both && j-i >= a.Window):
		return false
	case j <= i || a.Both:
		return true
	case a.OneWay:
		return false
	}
	for _, r := range sp.Both {
		if r.From <= i && i < r.To && r.From <= j && j < r.To {
			return true
		}
	}
	return false
}

func (s *scope) attend(a *B.Attn, p *part, q, k, v handle) handle {
	l := s.l
	sinks, m := handle(0), handle(0)
	if a.Sinks != nil {
		sinks = s.scale(a.Sinks.(*weight))
	}
	if p.mask != nil {
		m = p.mask.h
	}
	if a.Cap == 0 {
		return l.attend(q, k, v, a.Scale, p.causal, m, sinks)
	}
	if p.causal {
		m = s.causal(p)
	}
	return l.capped(a, q, k, v, m, sinks)
}

// causal is a mask for attention that MLX has no op for.
func (s *scope) causal(p *part) handle {
	rows, keys := len(p.rows), p.to-p.from
	seen := make([]bool, rows*keys)
	for r, i := range p.index {
		for j := range i + 1 - p.from {
			seen[r*keys+j] = true
		}
	}
	return upload(s.l, seen, 0, rows, keys)
}

// capped is attention whose scores go through a tanh, composed in float32.
func (l *lib) capped(a *B.Attn, q, k, v, mask, sinks handle) handle {
	shape := l.shape(q)
	if shape == nil {
		return 0
	}
	rows, group := shape[2], a.Heads/a.KVHeads
	q = l.mul(l.reshape(l.cast(q, f32), 1, a.KVHeads, group*rows, a.KDim), l.num(a.Scale))
	score := l.bin(fnMatmul, q, l.transpose(l.cast(k, f32), 0, 1, 3, 2))
	score = l.mul(l.un(fnTanh, l.bin(fnDivide, score, l.num(a.Cap))), l.num(a.Cap))
	score = l.reshape(score, 1, a.Heads, rows, -1)
	if mask != 0 {
		score = l.where(mask, score, l.num(float32(math.Inf(-1))))
	}
	if sinks != 0 {
		column := l.add(l.reshape(l.cast(sinks, f32), 1, a.Heads, 1, 1), l.zeros(f32, 1, a.Heads, rows, 1))
		score = l.concat(3, column, score)
	}
	score = l.softmax(score, 3)
	if sinks != 0 {
		n := l.shape(score)
		if n == nil {
			return 0
		}
		score = l.slice(score, 3, 1, n[3])
	}
	score = l.reshape(score, 1, a.KVHeads, group*rows, -1)
	return l.reshape(l.bin(fnMatmul, score, l.cast(v, f32)), 1, a.Heads, rows, a.VDim)
}
