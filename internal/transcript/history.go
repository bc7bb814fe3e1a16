// Package transcript remembers what was said to a model and what it answered: as text, and as the ids that ran. The next
// turn of a conversation gets those ids again, so that the prefix cache finds them and only what is new is encoded.
//
// It knows text and ids alone. How a template writes a message and how a model writes a call, it is told with each Draft.
package transcript

import (
	"context"
	"slices"
	"sync"
	"time"
)

// History is the memory of one model's conversations, safe for concurrent use.
//
// The ids that it gives always decode to the text. Texts are compared whole, with the guard's marks in them: a special
// token and text that spells one are different.
type History struct {
	segmenter
	exact  bool // answers are remembered as generated
	copies int  // bytes of text that one Encode may copy, see mostCopied

	mu sync.Mutex // of what is below
	tree
	calls      callIDs
	reasonings reasonings
}

// Terms say what is remembered. Zero fields set no limit.
type Terms struct {
	Exact    bool          // answers are remembered as they were generated, not encoded again
	TTL      time.Duration // what was not used for so long is forgotten
	Sessions int           // beyond these, the least recently used one loses the ends of conversations it used last
}

// Salt keeps apart what callers sent who are not to help each other.
type Salt = [16]byte

// mostCopied bounds the bytes that are copied to put answers into a prompt's text, each of which copies all of it. Answers
// beyond that stay as the template renders them.
const mostCopied = 1 << 30

// New makes a History over a model's tokenizer, which the guard has.
func New(g *Guard, terms Terms) *History {
	h := &History{segmenter: newSegmenter(g), exact: terms.Exact, copies: mostCopied, tree: newTree(terms)}
	h.clear()
	return h
}

// Forget drops everything.
func (h *History) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clear()
	h.calls, h.reasonings = callIDs{}, reasonings{}
}

// ForgetSalt drops everything under a salt.
func (h *History) ForgetSalt(s Salt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clearSalt(s)
	h.calls.forgetSalt(s)
	h.reasonings.dropAll(func(r *reasoning) bool { return r.salt == s })
}

// Tokens are the ids of a draft's text and where in it they stand.
type Tokens struct {
	IDs     []int32
	Spliced int // how many of IDs were generated

	text    string // of the draft, at the end
	cuts    []int  // where its pieces begin, and its end
	at      []int  // IDs[:at[i]] stand for text[:cuts[i]]
	salt    Salt
	session uint64
}

// Encode gives the ids of d's text, from memory as far as that goes. Where the text parts from memory at an answer that
// says the same, the answer takes the place of its rendering in d. A plain draft is neither looked up nor remembered. The
// error is that of ctx, or a *tokenizer.WholeError.
func (h *History) Encode(ctx context.Context, s Salt, d *Draft) (Tokens, error) {
	t := Tokens{cuts: h.segment(d.Text), at: make([]int, 1, 16), salt: s, session: d.Session}
	t.IDs = make([]int32, 0, len(d.Text)/3+16)
	var below *piece
	var near []edge
	var fresh []*piece
	if !d.Plain {
		var err error
		if below, near, err = h.find(ctx, &t, d); err != nil {
			return t, err
		}
		fresh = make([]*piece, 0, len(t.cuts)-len(t.at))
	}
	t.text = d.Text
	room := h.limit / promptShare
	for i, known := len(t.at), len(t.at); i < len(t.cuts); i++ {
		e := edge{text: t.text[t.cuts[i-1]:t.cuts[i]]}
		var err error
		if e.ids, err = h.guard.encode(ctx, e.text); err != nil {
			return t, err
		}
		if i == known && len(near) > 0 {
			e.ids, e.generated = h.splice(e.text, e.ids, near)
		}
		t.add(&e)
		if room -= e.bytes(); room >= 0 && below != nil {
			fresh = append(fresh, &piece{edge: e})
		}
	}
	if len(fresh) > 0 {
		h.mu.Lock()
		h.grow(below, fresh, t.session)
		h.mu.Unlock()
	}
	return t, nil
}

// find gives t the ids that are remembered of d's text, and puts answers into that text that say the same as it does. It
// gives the piece that the text has come to, and those below it that were said, the latest first.
func (h *History) find(ctx context.Context, t *Tokens, d *Draft) (p *piece, near []edge, err error) {
	h.mu.Lock()
	h.expire()
	h.reasonings.expire(&h.tree)
	if gone := h.visit(d.Session); gone != 0 {
		h.reasonings.dropAll(func(r *reasoning) bool { return r.session == gone })
	}
	p = h.root(t.salt)
	copied := 0
	for stoodIn := 0; ; stoodIn++ { // once for each message at most
		p = h.walk(p, t, d.Text)
		near, answers := p.near(), p.around()
		h.mu.Unlock()
		if stoodIn == d.Messages || len(answers) == 0 || len(t.at) == len(t.cuts) || copied+len(d.Text) > h.copies {
			return p, near, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		copied += len(d.Text)
		up := d.standIn(h, t, answers)
		if up < 0 {
			return p, near, nil
		}
		h.mu.Lock()
		for range up {
			p = p.parent
		}
	}
}

func (t *Tokens) add(e *edge) {
	t.IDs = append(t.IDs, e.ids...)
	t.Spliced += e.generated
	t.at = append(t.at, len(t.IDs))
}

// back forgets what was added since place i of cuts, of which spliced ids were generated.
func (t *Tokens) back(i, spliced int) {
	t.at = t.at[:i+1]
	t.IDs = t.IDs[:t.at[i]]
	t.Spliced -= spliced
}

// Before is how many ids stand for the pieces that end at or before a place in the text.
func (t *Tokens) Before(at int) int {
	i, found := slices.BinarySearch(t.cuts, at)
	if !found {
		i--
	}
	return t.at[max(i, 0)]
}

// TextAt is the place in the text of t's draft at which an id begins.
func (h *History) TextAt(t *Tokens, id int) int {
	i, found := slices.BinarySearch(t.at, id)
	if found {
		return t.cuts[i]
	}
	i--
	text := t.text[t.cuts[i]:t.cuts[i+1]]
	clean := 0
	for _, end := range h.ends(Unmark(text), t.IDs[t.at[i]:id]) {
		clean = max(clean, end)
	}
	return t.cuts[i] + marked(text, clean)
}

// Answer is what a model generated after a prompt.
type Answer struct {
	IDs []int32
	// Spoken is where in the prompt's text the model's words begin: at its end, or before what was put into the model's mouth.
	Spoken      int
	InReasoning bool // they begin inside a reasoning block
	// Whole is false if the model was cut off before it had closed what it began. The ids are then taken up as far as the
	// template writes the same, and never beyond.
	Whole bool
}

// Remember takes in the answer to the prompt that Encode gave t for.
func (h *History) Remember(t *Tokens, a Answer) {
	if !h.exact || len(a.IDs) == 0 || len(t.cuts) < 2 {
		return
	}
	last := len(t.cuts) - 2 // the piece in which the prompt ends
	if a.Spoken < t.cuts[last] {
		return
	}
	open, head := t.text[t.cuts[last]:], t.IDs[t.at[last]:]
	said := &reply{text: open + h.spell(a.IDs), spoken: a.Spoken - t.cuts[last], reasoning: a.InReasoning}
	fresh := h.divide(said.text, slices.Concat(head, a.IDs), len(head))
	if fresh == nil {
		return
	}
	if a.Whole {
		fresh[0].answer = said
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.root(t.salt)
	for i := 1; i <= last; i++ {
		if p = p.next[t.text[t.cuts[i-1]:t.cuts[i]]]; p == nil {
			return // forgotten meanwhile
		}
	}
	h.grow(p, fresh, t.session)
}

// RememberCall notes what the model itself called a call that a client knows by another id.
func (h *History) RememberCall(s Salt, client, model string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.exact {
		h.calls.remember(s, client, model)
	}
}

// CallID is what the model called a call; "" if that is not known.
func (h *History) CallID(s Salt, client string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls.said[callKey{s, client}]
}
