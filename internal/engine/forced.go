package engine

import (
	"slices"

	"hearth/internal/kv"
)

// Forced tokens in a row need no step each: they join the sequence together, and the next step runs all of them as one span. They
// join behind the token that they follow if they are known when that is drawn (hear). Else the first is taken from the row that
// reaches it, as a drawn one would be, and those behind join with it. Where logprobs are wanted they join before the stream has
// them (Seq.Unscored): the row before each is wanted too, and the stream gets the token with what that says.

// LongestSpan is how many forced tokens join a sequence at once. So many Constraints may wait for one.
const LongestSpan = 64

// given is how many tokens, with the prompt, the stream has.
func (q *sequence) given() int { return len(q.tokens) - q.Unscored }

// appendDrawn appends what a step generated to its sequence.
func (r *result) appendDrawn() {
	for i := range r.tokens {
		r.reason = r.seq.take(r.tokens[i].ID)
	}
}

// appendForced appends the forced tokens behind that.
func (r *result) appendForced() {
	q := r.seq
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
	q.tell(nil, 0)
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
		q.untold = append(q.untold, id)
	}
	return Running
}

// tell tells the hook of what was taken. Behind the last token a draft of most tokens is wanted.
func (q *sequence) tell(looked []int32, most int) {
	for i, id := range q.untold {
		if i < len(q.untold)-1 {
			q.hook.Tell(id, nil, 0)
		} else {
			q.hook.Tell(id, looked, most)
		}
	}
	q.untold = q.untold[:0]
}

func (q *sequence) append(id int32) {
	q.tokens, q.Key = append(q.tokens, id), append(q.Key, q.salt.Elem(len(q.Key), kv.Elem(id)))
}
