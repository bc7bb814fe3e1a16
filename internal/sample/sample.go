// Package sample turns logits into a token: processors that edit logits, filters that drop tokens, and a draw. The
// engine calls it once per generated token. It is pure: the same parameters, history and logits give the same token
// whatever else runs, because randomness is a function of the seed and the token's index. It takes final numbers:
// defaults are resolved by its callers.
//
// The order is that of mlx-lm: logit bias, repetition, presence and frequency penalty; after them the limit, so that nothing
// brings a token back; then, on the untempered distribution, top_p, min_p, XTC, top_k; then a draw at the temperature.
// The penalties and XTC are processors, each in a file with the numbers it takes: docs/adding-a-sampler.md. What backends
// can draw with too (Draw) are fields of Params.
package sample

import (
	"errors"
	"fmt"
	"math"
)

// Params of one sequence. The zero value is greedy decoding.
type Params struct {
	Temperature float32           // 0 (or less): the most likely token; ties go to the lower id
	TopP        float32           // keep the smallest set with at least this mass; 0 or 1: off
	TopK        int               // keep so many; 0: off
	MinP        float32           // drop what is less likely than MinP times the most likely; 0: off
	Numbers     [16]float32       // what processors take, by Number
	XTCSpare    []int32           // tokens that XTC never drops: ends of lines and of turns; not copied
	Seed        uint64            // always used; callers without one draw it
	LogitBias   map[int32]float32 // added to logits; ids outside the vocabulary have no effect
}

// ErrLogits reports logits from which nothing can be drawn: a NaN or +Inf among them, or all that may be drawn -Inf.
var ErrLogits = errors.New("sample: logits are not finite: the weights or the backend are broken")

// Sampler is the state of one sequence: its parameters, what it has generated, and the index of the next draw.
type Sampler struct {
	p              Params
	edits, filters []*processor            // those that are on
	recent         [RepetitionWindow]int32 // ring of the last tokens
	seen           int                     // tokens ever put into recent
	counts         map[int32]int32         // generated tokens; nil unless a processor needs them
	index          uint64                  // generated tokens so far
	mask           Set                     // what the next token must be of; nil: any
}

// New starts a sequence after its prompt.
func New(p Params, prompt []int32) *Sampler {
	s := &Sampler{p: p}
	for _, pr := range processors {
		switch {
		case !pr.on(&s.p):
			continue
		case pr.edit != nil:
			s.edits = append(s.edits, pr)
		default:
			s.filters = append(s.filters, pr)
		}
		if pr.counts {
			s.counts = make(map[int32]int32)
		}
	}
	for _, id := range prompt[max(0, len(prompt)-RepetitionWindow):] {
		s.remember(id)
	}
	return s
}

func (s *Sampler) remember(id int32) {
	s.recent[s.seen%RepetitionWindow] = id
	s.seen++
}

// Work is scratch that the samplers of one goroutine share, so that a token costs no allocation. The zero value is
// ready.
type Work struct {
	logits []float32 // edited copy
	cands  []cand
	sel    []cand
}

// Next draws the next token from one row of logits, which is left as it is, and remembers it. With top >= 0 it also
// gives the logprob of the token and the top most likely ones, appended to dst. Logprobs are of the distribution
// after the processors and before filters and temperature, as in mlx-lm. Tokens that a limit excludes are not among
// the most likely: there may be fewer than top.
func (s *Sampler) Next(logits []float32, w *Work, top int, dst []Logprob) (Logprob, []Logprob, error) {
	return s.next(logits, w, -1, top, dst)
}

// Take is Next for a token that is forced: nothing is drawn, but it counts as generated, and its place in the sequence of draws
// is used up.
func (s *Sampler) Take(id int32, logits []float32, w *Work, top int, dst []Logprob) (Logprob, []Logprob, error) {
	if id < 0 || int(id) >= len(logits) {
		return Logprob{}, dst, fmt.Errorf("sample: token %d is outside the vocabulary of %d", id, len(logits))
	}
	s.mask = nil
	return s.next(logits, w, id, top, dst)
}

// next draws a token unless id is one.
func (s *Sampler) next(logits []float32, w *Work, id int32, top int, dst []Logprob) (Logprob, []Logprob, error) {
	logits = s.process(logits, w)
	var lse float64
	if top >= 0 {
		before := len(dst)
		dst, lse = Top(logits, top, dst)
		if math.IsNaN(lse) || math.IsInf(lse, 0) {
			return Logprob{}, dst, ErrLogits
		}
		for s.mask != nil && len(dst) > before && math.IsInf(float64(dst[len(dst)-1].Logprob), -1) {
			dst = dst[:len(dst)-1]
		}
	}
	if id < 0 {
		var err error
		if id, err = s.draw(logits, w); err != nil {
			return Logprob{}, dst, err
		}
	}
	s.Accept(id)
	out := Logprob{ID: id}
	if top >= 0 {
		out.Logprob = float32(float64(logits[id]) - lse)
	}
	return out, dst, nil
}

// Accept counts a generated token; Next and Take do so themselves, a token that was drawn elsewhere needs the call.
func (s *Sampler) Accept(id int32) {
	s.remember(id)
	s.index++
	s.mask = nil
	if s.counts != nil {
		s.counts[id]++
	}
}

// process applies the bias, the edits that are on and the limit to a copy; without any it returns logits itself.
func (s *Sampler) process(logits []float32, w *Work) []float32 {
	if len(s.p.LogitBias) == 0 && len(s.edits) == 0 && s.mask == nil {
		return logits
	}
	w.logits = append(w.logits[:0], logits...)
	addBias(w.logits, s.p.LogitBias)
	for _, pr := range s.edits {
		pr.edit(s, w.logits)
	}
	if s.mask != nil {
		limit(w.logits, s.mask)
	}
	return w.logits
}

func (s *Sampler) draw(logits []float32, w *Work) (int32, error) {
	best, peak := argmax(logits)
	if best < 0 {
		return 0, ErrLogits
	}
	if s.p.Temperature <= 0 {
		return best, nil
	}
	return pick(s.candidates(logits, peak, w), s.p.Temperature, uniform(s.p.Seed, s.index)), nil
}

// argmax gives the first largest logit, or -1 if there is none or a logit is NaN or +Inf. Nearly all of a vocabulary is
// passed over four at a time, with one comparison each: a NaN fails it too.
func argmax(logits []float32) (int32, float32) {
	best, peak := int32(-1), float32(math.Inf(-1))
	for i := 0; i < len(logits); i += 4 {
		q := logits[i:min(i+4, len(logits))]
		if len(q) == 4 && q[0] <= peak && q[1] <= peak && q[2] <= peak && q[3] <= peak {
			continue
		}
		for k, v := range q {
			if v != v {
				return -1, v
			}
			if v > peak {
				best, peak = int32(i+k), v
			}
		}
	}
	if peak > math.MaxFloat32 {
		return -1, peak
	}
	return best, peak
}
