package engine

import (
	"context"
	"io"
	"math"

	"hearth/internal/kv"
	"hearth/internal/sample"
	"hearth/internal/sched"
)

// Score is what the model makes of one position of a prompt: its prediction of the next token.
type Score struct {
	Argmax  int32            // ties go to the lower id
	Top     []sample.Logprob // most likely first
	Logprob float32          // of the token that does come next; 0 at the last position
}

// Score runs a prompt without generating and returns one score for each of its positions, with the top most likely tokens each.
// It queues like any other prompt and runs in chunks beside them. Nothing of it comes from the prefix cache: every row is
// computed. Errors are those of Submit, ctx's, and the step's.
func (e *Engine) Score(ctx context.Context, tokens []int32, top int) ([]Score, error) {
	if err := Check(tokens, e.cfg.Vocab, e.context); err != nil {
		return nil, err
	}
	q := &sequence{
		Seq:    sched.Seq{Prompt: len(tokens), Score: true, Key: key(tokens, 0, &kv.Salt{})},
		tokens: append([]int32(nil), tokens...), top: max(top, 1),
		scores: make([]Score, 0, len(tokens)),
	}
	if err := e.submit(ctx, q); err != nil {
		return nil, err
	}
	defer q.stream.Close()
	if _, err := q.stream.Next(); err != io.EOF {
		return nil, err
	}
	return q.scores, nil
}

// score makes one of a row; next is -1 where nothing follows.
func score(logits []float32, top int, next int32) (Score, error) {
	t, lse := sample.Top(logits, top, make([]sample.Logprob, 0, min(top, len(logits))))
	if math.IsNaN(lse) || math.IsInf(lse, 0) {
		return Score{}, sample.ErrLogits
	}
	s := Score{Argmax: t[0].ID, Top: t}
	if next >= 0 {
		s.Logprob = float32(float64(logits[next]) - lse)
	}
	return s, nil
}
