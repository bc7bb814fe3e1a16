package ref

import (
	"math"

	B "hearth/internal/backend"
)

// keys is what one span's queries may look at: row j holds the key and value of index base+j.
type keys struct {
	base int
	at   func(j int) (k, v []float64)
}

func (s *scope) Attention(q, k, v B.Array, a *B.Attn) B.Array {
	s.check.Attention(q, k, v, a)
	spans := s.b.Spans
	if a.Alt {
		spans = s.b.Alt
	}
	if a.State != B.NoState && !k.IsZero() {
		s.st.write(a.State, spans, s.get(k), s.get(v))
	}
	h, y := s.make(q.Rows(), a.Heads*a.VDim)
	in, i := s.get(q), 0
	for r := range q.Rows() {
		row := s.batchRow(q, r)
		for row >= spans[i].Row+spans[i].Len {
			i++
		}
		sp := &spans[i]
		kv := keys{at: func(j int) (k, v []float64) { return s.st.at(a.State, sp.Table, j) }}
		if a.State == B.NoState {
			ks, vs := s.get(k), s.get(v)
			kv = keys{base: sp.Start, at: func(j int) (k, v []float64) {
				return ks.row(sp.Row + j - sp.Start), vs.row(sp.Row + j - sp.Start)
			}}
		}
		s.attend(a, sp, kv, sp.Start+row-sp.Row, in.row(r), y.row(r))
	}
	return h
}

// visible reports whether the query at index i sees the key at index j.
func visible(a *B.Attn, sp *B.Span, i, j int) bool {
	if a.Chunks && i/a.Window != j/a.Window {
		return false
	}
	if a.Window > 0 && (i-j >= a.Window || a.Both && j-i >= a.Window) {
		return false
	}
	if j <= i || a.Both {
		return true
	}
	if a.OneWay {
		return false
	}
	for _, r := range sp.Both {
		if r.From <= i && i < r.To && r.From <= j && j < r.To {
			return true
		}
	}
	return false
}

func (s *scope) attend(a *B.Attn, sp *B.Span, kv keys, i int, q, y []float64) {
	for head := range a.Heads {
		of := head / (a.Heads / a.KVHeads)
		var score, val = []float64{}, [][]float64{}
		top := math.Inf(-1)
		if a.Sinks != nil {
			top = a.Sinks.(*weight).w[head]
		}
		for j := kv.base; j < sp.Start+sp.Len; j++ {
			if !visible(a, sp, i, j) {
				continue
			}
			k, v := kv.at(j)
			dot := 0.0
			for d := range a.KDim {
				dot += q[head*a.KDim+d] * k[of*a.KDim+d]
			}
			dot *= float64(a.Scale)
			if c := float64(a.Cap); c != 0 {
				dot = c * math.Tanh(dot/c)
			}
			score, val = append(score, dot), append(val, v[of*a.VDim:(of+1)*a.VDim])
			top = max(top, dot)
		}
		sum := 0.0
		if a.Sinks != nil {
			sum = math.Exp(a.Sinks.(*weight).w[head] - top)
		}
		for _, v := range score {
			sum += math.Exp(v - top)
		}
		for n, v := range val {
			p := math.Exp(score[n]-top) / sum
			for d := range v {
				y[head*a.VDim+d] += p * v[d]
			}
		}
	}
}
