package transcript

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"hearth/internal/tokenizer"
)

// History remembers the token ids of prompts and of the answers that were generated after them, so that the next turn
// of a conversation gets the ids that have run, not those that encoding its text again would give, and so that only what
// is new has to be encoded.
//
// It is a tree over the text of conversations, cut before the special tokens at which encoding starts afresh
// (tokenizer.Anchors): each edge is such a piece of text with the ids that stand for it after what is on the way to it.
// The ids always decode to the text. Texts are compared whole, with the guard's marks in them: a special token and
// text that spells one are different. Every salt has a tree of its own.
//
// Invariants: a piece is in its parent's next under its text, a root in roots under its salt; whoever uses a piece uses
// its parent right after, so that the piece used longest ago has none below it; size counts all pieces.
type History struct {
	tok     *tokenizer.Tokenizer
	guard   *Guard
	anchors *tokenizer.Anchors
	starts  [256]bool // bytes at which cut has to look closer
	exact   bool      // answers are remembered as generated

	mu    sync.Mutex
	roots map[Salt]*piece
	used  piece // head of the ring of all pieces: older is the one used last, newer the one used longest ago
	size  int   // bytes
	limit int

	callIDs callIDs

	copies int // bytes of text that an encode may copy, see mostCopied

	terms    Terms
	began    time.Time
	sessions map[uint64]int64 // of which something may be remembered: the number of their last request
	requests int64            // of sessions
}

// Salt keeps apart what callers sent who are not to help each other.
type Salt = [16]byte

// piece is one edge of the tree and its end. Its text and the contents of ids never change; ids itself and the rest
// belong to history.mu.
type piece struct {
	parent       *piece
	salt         Salt   // of a root
	text         string // with the guard's marks
	ids          []int32
	generated    int // how many of ids were generated, not encoded
	said         bool
	head         int    // said: ids[head:] were generated, all of them in one answer
	answer       *reply // that begins in text
	next         map[string]*piece
	answers      []*piece      // those of next that are said, latest last
	newer, older *piece        // in order of use
	last         time.Duration // of its use, since history.began
	session      uint64        // that used it last; 0: none
}

// reply is an answer that was generated. It does not change but for verdict.
type reply struct {
	text      string // from the beginning of the piece in which the prompt ended
	spoken    int    // text[spoken:] is the model's
	reasoning bool   // the prompt ended inside a reasoning block
	verdict   verdict
}

const (
	// historyBytes bounds the memory of one model's history. A token takes about eight bytes.
	historyBytes = 64 << 20
	// pieceBytes is what a piece takes besides its text and ids.
	pieceBytes = 400
	// mostCopied bounds the bytes that are copied to put answers into a prompt's text, which is all of it for each. What is
	// beyond stays as the template renders it.
	mostCopied = 1 << 30
	// promptShare is the part of it that one prompt may fill: what is beyond is encoded again the next time.
	promptShare = 4
	// maxAnswers bounds the different answers remembered for one prompt.
	maxAnswers = 16
)

func New(g *Guard, exact bool, terms Terms) *History {
	h := &History{tok: g.tok, guard: g, exact: exact, roots: map[Salt]*piece{}, limit: historyBytes, copies: mostCopied, terms: terms, began: time.Now()}
	var ids []int32
	for _, text := range g.texts {
		if id, ok := g.tok.ID(text); ok {
			ids = append(ids, id)
		}
	}
	h.anchors = g.tok.Anchors(ids)
	h.starts = *h.anchors.Starts()
	h.starts[markOpen[0]] = true
	h.Forget()
	return h
}

// Forget drops everything.
func (h *History) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.roots)
	clear(h.sessions)
	h.size = 0
	h.used.newer, h.used.older = &h.used, &h.used
	h.callIDs.forget()
}

// ForgetSalt drops everything under a salt.
func (h *History) ForgetSalt(s Salt) {
	h.callIDs.forgetSalt(s)
	h.mu.Lock()
	defer h.mu.Unlock()
	for work := []*piece{h.roots[s]}; len(work) > 0; {
		p := work[len(work)-1]
		if p == nil {
			return // there was nothing
		}
		if len(p.next) == 0 {
			h.drop(p)
			work = work[:len(work)-1]
			continue
		}
		for _, below := range p.next {
			work = append(work, below)
		}
	}
}

// cut appends the places where the pieces of text begin, and its end.
func (h *History) cut(dst []int, text string) []int {
	dst = append(dst, 0)
	for i := 0; i < len(text); {
		if !h.starts[text[i]] {
			i++
			continue
		}
		switch n := h.anchors.At(text[i:]); {
		case n > 0:
			if i > 0 {
				dst = append(dst, i)
			}
			i += n
		case strings.HasPrefix(text[i:], markOpen):
			i += len(markOpen)
			i += h.guard.quoted(text[i:])
		default:
			i++
		}
	}
	if len(text) > 0 {
		dst = append(dst, len(text))
	}
	return dst
}

// Tokens are the ids of a text and where its pieces are.
type Tokens struct {
	IDs     []int32
	Spliced int   // ids that were generated
	cuts    []int // as cut gives them
	at      []int // ids[:at[i]] stand for text[:cuts[i]]
	session uint64
}

// Encode gives the ids of d's text, from memory as far as it goes. Where the text parts from memory at an answer that d
// finds to say the same, the answer takes its place in d's text. Of a plain draft nothing is looked up or remembered. The error is
// that of ctx.
func (h *History) Encode(ctx context.Context, s Salt, d *Draft) (Tokens, error) {
	t := Tokens{cuts: h.cut(nil, d.Text), at: make([]int, 1, 16), session: d.Session}
	t.IDs = make([]int32, 0, len(d.Text)/3+16)
	if d.Plain {
		for i := 1; i < len(t.cuts); i++ {
			ids, err := h.guard.encode(ctx, d.Text[t.cuts[i-1]:t.cuts[i]])
			if err != nil {
				return t, err
			}
			t.add(&piece{ids: ids})
		}
		return t, nil
	}
	h.mu.Lock()
	h.expire()
	h.visit(d.Session)
	p := h.walk(h.root(s), &t, d.Text)
	near, answers := p.near(), p.around()
	h.mu.Unlock()
	copied := 0
	for range d.Messages { // once for each at most
		if len(answers) == 0 || len(t.at) == len(t.cuts) || copied+len(d.Text) > h.copies {
			break
		}
		if err := ctx.Err(); err != nil {
			return t, err
		}
		copied += len(d.Text)
		up := d.standIn(h, &t, answers)
		if up < 0 {
			break
		}
		h.mu.Lock()
		for range up {
			p = p.parent
		}
		p = h.walk(p, &t, d.Text)
		near, answers = p.near(), p.around()
		h.mu.Unlock()
	}
	known := len(t.at)
	if known == len(t.cuts) {
		return t, nil
	}
	var fresh []*piece
	room := h.limit / promptShare
	for i := known; i < len(t.cuts); i++ {
		f := piece{text: d.Text[t.cuts[i-1]:t.cuts[i]]}
		var err error
		if f.ids, err = h.guard.encode(ctx, f.text); err != nil {
			return t, err
		}
		if i == known && len(near) > 0 {
			f.ids, f.generated = h.splice(f.text, f.ids, near)
		}
		t.add(&f)
		if room -= f.bytes(); room >= 0 {
			kept := f
			fresh = append(fresh, &kept)
		}
	}
	h.mu.Lock()
	h.grow(p, fresh, t.session)
	h.mu.Unlock()
	return t, nil
}

func (t *Tokens) add(p *piece) {
	t.IDs = append(t.IDs, p.ids...)
	t.Spliced += p.generated
	t.at = append(t.at, len(t.IDs))
}

// back forgets what was added since place i of cuts, of which spliced ids were generated.
func (t *Tokens) back(i, spliced int) {
	t.at = t.at[:i+1]
	t.IDs = t.IDs[:t.at[i]]
	t.Spliced = spliced
}

// walk follows the text below p as far as it is known. Called with mu held.
func (h *History) walk(p *piece, t *Tokens, text string) *piece {
	for len(t.at) < len(t.cuts) {
		i := len(t.at)
		next := p.next[text[t.cuts[i-1]:t.cuts[i]]]
		if next == nil {
			break
		}
		p = next
		t.add(p)
	}
	if h.alive(p) {
		h.use(p, t.session)
	}
	return p
}

// near copies the pieces below p that were said, the latest first. Called with mu held.
func (p *piece) near() []piece {
	var all []piece
	for _, a := range slices.Backward(p.answers) {
		all = append(all, piece{text: a.text, ids: a.ids, head: a.head})
	}
	return all
}

// candidate is an answer that a text may have parted from.
type candidate struct {
	*reply
	up      int // it begins so many pieces before the place of parting
	spliced int // generated ids in those
}

// around gives the answers that p may be in the middle of, and those that begin below it, the latest first. Called with
// mu held.
func (p *piece) around() []candidate {
	var all []candidate
	for _, a := range slices.Backward(p.answers) {
		if a.answer != nil {
			all = append(all, candidate{reply: a.answer})
		}
	}
	spliced := 0
	for q, up := p, 1; q.said; q, up = q.parent, up+1 {
		spliced += q.generated
		if q.answer != nil {
			all = append(all, candidate{q.answer, up, spliced})
			break
		}
	}
	return all
}

// Remember takes in an answer: the ids generated after the prompt text, of which t is what encode gave. text[spoken:] is
// the part of the prompt that counts as the model's words; reasoning tells whether those begin inside a reasoning block. Of an
// answer that is not whole the ids are taken up as far as the template writes the same, and never beyond.
func (h *History) Remember(s Salt, text string, t *Tokens, spoken int, reasoning, whole bool, generated []int32) {
	if !h.exact || len(generated) == 0 || len(t.cuts) < 2 {
		return
	}
	last := len(t.cuts) - 2 // the piece in which the prompt ends
	if spoken < t.cuts[last] {
		return
	}
	open, head := text[t.cuts[last]:], t.IDs[t.at[last]:]
	said := &reply{text: open + h.spell(generated), spoken: spoken - t.cuts[last], reasoning: reasoning}
	fresh := h.divide(said, append(slices.Clone(head), generated...), len(head))
	if fresh == nil {
		return
	}
	if !whole {
		fresh[0].answer = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.root(s)
	for i := 1; i <= last; i++ {
		if p = p.next[text[t.cuts[i-1]:t.cuts[i]]]; p == nil {
			return // forgotten meanwhile
		}
	}
	h.grow(p, fresh, t.session)
}

// divide makes pieces of an answer, the first of which begins with head ids of the prompt; nil if text and ids do not fall
// into the same pieces.
func (h *History) divide(said *reply, ids []int32, head int) []*piece {
	cuts := h.cut(nil, said.text)
	var fresh []*piece
	for i, from := 1, 0; i < len(cuts); i++ {
		to := max(from+1, head)
		for to < len(ids) && !h.anchor(ids[to]) {
			to++
		}
		if from >= len(ids) || i == len(cuts)-1 && to < len(ids) {
			return nil // an anchor that other tokens spell across their seams
		}
		own := max(head-from, 0)
		fresh = append(fresh, &piece{text: said.text[cuts[i-1]:cuts[i]], ids: ids[from:to], said: true, head: own, generated: to - from - own})
		from = to
	}
	if len(fresh) > 0 {
		fresh[0].answer = said
	}
	return fresh
}

// anchor tells whether a token begins a piece.
func (h *History) anchor(id int32) bool {
	if !h.tok.Special(id) {
		return false
	}
	name, _ := h.tok.Token(id)
	return h.guard.special[name] && h.anchors.At(name) == len(name)
}

// root gives a salt's tree. Called with mu held, like all below.
func (h *History) root(s Salt) *piece {
	p := h.roots[s]
	if p == nil {
		p = &piece{salt: s}
		h.roots[s] = p
		h.push(p)
		h.size += p.bytes()
	}
	return p
}

// alive tells whether a piece is still in a tree: nobody below it would be if it were not.
func (h *History) alive(p *piece) bool {
	if p.parent != nil && p.parent.next[p.text] != p {
		return false
	}
	for p.parent != nil {
		p = p.parent
	}
	return h.roots[p.salt] == p
}

// grow adds pieces, each below the one before, the first below p. What is known already stays, except that an answer
// takes its place: what was generated last is what keys and values are most likely still there for.
func (h *History) grow(p *piece, fresh []*piece, session uint64) {
	if !h.alive(p) {
		return
	}
	for _, f := range fresh {
		known := p.next[f.text]
		switch {
		case known == nil:
			known = f
			h.adopt(p, f)
		case f.said:
			h.size -= known.bytes()
			h.unlist(known)
			known.ids, known.generated, known.said, known.head = slices.Clone(f.ids), f.generated, true, f.head
			if f.answer != nil {
				known.answer = f.answer
			}
			h.list(known)
			h.size += known.bytes()
		}
		p = known
	}
	h.use(p, session)
	for h.size > h.limit && h.used.newer != p {
		h.drop(h.used.newer)
	}
}

// adopt puts f below p.
func (h *History) adopt(p, f *piece) {
	f.parent, f.text, f.ids = p, strings.Clone(f.text), slices.Clone(f.ids)
	if p.next == nil {
		p.next = map[string]*piece{}
	}
	p.next[f.text] = f
	h.push(f)
	h.size += f.bytes()
	if f.said {
		h.list(f)
	}
}

// list makes a piece that was said known at its parent, in the place of the oldest one if there are too many.
func (h *History) list(p *piece) {
	up := p.parent
	if len(up.answers) == maxAnswers {
		up.answers = slices.Delete(up.answers, 0, 1)
	}
	up.answers = append(up.answers, p)
}

func (h *History) unlist(p *piece) {
	if i := slices.Index(p.parent.answers, p); i >= 0 {
		p.parent.answers = slices.Delete(p.parent.answers, i, i+1)
	}
}

// drop forgets a piece that has none below it.
func (h *History) drop(p *piece) {
	h.size -= p.bytes()
	p.newer.older, p.older.newer = p.older, p.newer
	if p.parent == nil {
		delete(h.roots, p.salt)
		return
	}
	h.unlist(p)
	delete(p.parent.next, p.text)
}

func (p *piece) bytes() int {
	n := pieceBytes + len(p.text) + 4*len(p.ids)
	if p.answer != nil {
		n += 2 * len(p.answer.text) // with a rendering of it
	}
	return n
}

// use moves p and all above it to the front, p first of them.
func (h *History) use(p *piece, session uint64) {
	now := time.Since(h.began)
	for ; p != nil; p = p.parent {
		p.last, p.session = now, session
		p.newer.older, p.older.newer = p.older, p.newer
		h.push(p)
	}
}

// push puts p in front of the ring.
func (h *History) push(p *piece) {
	p.newer, p.older = &h.used, h.used.older
	p.newer.older, p.older.newer = p, p
}
