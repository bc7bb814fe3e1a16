package engine

import (
	"slices"

	"hearth/internal/kv"
)

// Forced tokens in a row need no step each. The first is taken from the row that reaches it, as a drawn one would be. Those
// behind join the sequence with it, and the next step runs all of them as one span. Where logprobs are wanted they join before
// the stream has them (Seq.Unscored): the row before each is wanted too, and the stream gets the token with what that says.

// LongestSpan is how many forced tokens join a sequence at once. So many Constraints may wait for one.
const LongestSpan = 64

// given is how many tokens, with the prompt, the stream has.
func (q *sequence) given() int { return len(q.tokens) - q.Unscored }

// appendTokens appends what a step generated to its sequence, and the forced tokens behind that.
func (r *result) appendTokens() {
	q := r.seq
	for i := range r.tokens {
		r.reason = q.take(r.tokens[i].ID)
	}
	if q.top >= 0 {
		if r.reason == Running && q.Unscored == 0 {
			q.joinUnscored()
		}
		return
	}
	for r.reason == Running && len(q.forced) > 0 && len(r.tokens) < LongestSpan {
		id := q.forced[0]
		q.forced = q.forced[1:]
		q.sampler.Accept(id)
		r.tokens = append(r.tokens, Token{ID: id})
		r.reason = q.take(id)
	}
}

// joinUnscored appends forced tokens up to one that ends the sequence. The last of them stays: the row before it takes it.
func (q *sequence) joinUnscored() {
	n := min(len(q.forced), LongestSpan, q.Max-len(q.tokens)+q.Prompt)
	if i := slices.IndexFunc(q.forced[:n], func(id int32) bool { return slices.Contains(q.stop, id) }); i >= 0 {
		n = i + 1
	}
	for ; n > 1; n-- {
		q.append(q.forced[0])
		q.forced = q.forced[1:]
		q.Unscored++
	}
}

// take appends a token that the stream is about to get, unless it is there already, and tells whether the sequence ends with it.
func (q *sequence) take(id int32) Reason {
	if q.Unscored > 0 {
		q.Unscored--
	} else {
		q.append(id)
	}
	switch {
	case slices.Contains(q.stop, id):
		return Stop
	case q.given()-q.Prompt == q.Max:
		return Length
	}
	switch {
	case q.ahead > 0:
		q.ahead--
	case q.hook != nil:
		q.hook.Tell(id)
	}
	return Running
}

func (q *sequence) append(id int32) {
	q.tokens, q.Key = append(q.tokens, id), append(q.Key, q.salt.Elem(len(q.Key), kv.Elem(id)))
}
