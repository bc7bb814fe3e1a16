package bench

import (
	"slices"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/kv"
	"hearth/internal/model"
)

// recorded runs a model at its full cost and says given answers in its place: the logits of each row are those of the model, but
// for the token that comes next in the answer, which is likelier than all. So what a step takes is the machine's, and which
// drafts are right is the text's. One engine at a time may run over it.
type recorded struct {
	*cpu.Backend
	vocab   int
	answers [][]int32 // by sequence: where they begin and what they are
	begins  []int
	whole   bool // prompts are computed; else only the last row of each, which leaves keys of earlier times or none: they cost the same to read

	slots map[kv.SlotID]int // sequences, by the last token of their prompts
}

// mark is the last token of a sequence's prompt, which says whose it is. No text has it.
func (r *recorded) mark(sequence int) int32 { return int32(r.vocab - 1 - sequence) }

// marks are that many.
const marks = 256

func (r *recorded) Begin(st backend.Store, b *backend.Batch) backend.Scope {
	if len(r.answers) == 0 { // an engine that starts sees what steps take
		return r.Backend.Begin(st, b)
	}
	run := b
	if !r.whole {
		run = shorten(b)
	}
	s := &recordedScope{Scope: r.Backend.Begin(st, run), r: r, batch: run}
	for _, sp := range run.Spans {
		for _, id := range run.Tokens[sp.Row:][:sp.Len] {
			if k := r.vocab - 1 - int(id); k < marks {
				r.slots[sp.Slot] = k
			}
		}
		for range sp.Len {
			s.of = append(s.of, r.slots[sp.Slot])
		}
	}
	return s
}

// shorten leaves the last row of each span of a prompt.
func shorten(b *backend.Batch) *backend.Batch {
	if !slices.ContainsFunc(b.Spans, func(sp backend.Span) bool { return sp.Len > 1 && !sp.Tentative }) {
		return b
	}
	c := &backend.Batch{}
	for _, sp := range b.Spans {
		from := 0
		if !sp.Tentative {
			from = sp.Len - 1
		}
		row := len(c.Tokens)
		c.Tokens = append(c.Tokens, b.Tokens[sp.Row+from:sp.Row+sp.Len]...)
		c.Pos[0] = append(c.Pos[0], b.Pos[0][sp.Row+from:sp.Row+sp.Len]...)
		for _, out := range b.Out {
			if int(out) >= sp.Row+from && int(out) < sp.Row+sp.Len {
				c.Out = append(c.Out, int32(row+int(out)-sp.Row-from))
			}
		}
		sp.Row, sp.Start, sp.Len = row, sp.Start+from, sp.Len-from
		c.Spans = append(c.Spans, sp)
	}
	return c
}

// recordedScope is a step whose logits are read in the order of the batch.
type recordedScope struct {
	backend.Scope
	r     *recorded
	batch *backend.Batch
	of    []int // sequences of the rows
	read  int   // rows of logits
}

func (s *recordedScope) Floats(a backend.Array) ([]float32, error) {
	f, err := s.Scope.Floats(a)
	if err != nil {
		return f, err
	}
	for i := range a.Rows() {
		row := s.batch.Out[s.read]
		s.read++
		k, at := s.of[row], int(s.batch.Pos[0][row])+1-s.r.begins[s.of[row]]
		if at >= 0 && at < len(s.r.answers[k]) {
			f[i*a.Cols()+int(s.r.answers[k][at])] = sure
		}
	}
	return f, nil
}

// sure is a logit above all that a model has.
const sure = 1e6

// recordedModel gives the model the scope that it knows.
type recordedModel struct{ model.Generator }

func (m recordedModel) Forward(o backend.Ops, b *backend.Batch) backend.Array {
	if s, ok := o.(*recordedScope); ok {
		return m.Generator.Forward(s.Scope, s.batch)
	}
	return m.Generator.Forward(o, b)
}

func (m recordedModel) Logits(o backend.Ops, h backend.Array) backend.Array {
	if s, ok := o.(*recordedScope); ok {
		o = s.Scope
	}
	return m.Generator.Logits(o, h)
}
