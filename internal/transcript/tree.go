package transcript

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"hearth/internal/retention"
)

// tree holds the text of conversations: each edge is a piece of it with the ids that stand for it after what is on the way
// there. Every salt has a root of its own.
//
// Invariants: a piece is in its parent's next under its text, a root in roots under its salt; whoever uses a piece uses
// its parent right after, so that the piece used longest ago has none below it; size counts all pieces.
type tree struct {
	roots map[Salt]*piece
	used  piece // head of the ring of all pieces: older is the one used last, newer the one used longest ago
	size  int   // bytes
	limit int
	began time.Time
	kept  retention.Rule // in nanoseconds since began
}

// edge is a piece of text and its ids, which never change.
type edge struct {
	text      string // with the guard's marks
	ids       []int32
	generated int // how many of ids were generated, not encoded
	said      bool
	head      int    // said: ids[head:] were generated, all of them in one answer
	answer    *reply // that begins in text
}

// piece is an edge in its place in the tree.
type piece struct {
	edge
	parent       *piece
	salt         Salt // of a root
	next         map[string]*piece
	answers      []*piece      // those of next that are said, latest last
	newer, older *piece        // in order of use
	last         time.Duration // of its use, since tree.began
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
	// promptShare is the part of it that one prompt may fill: what is beyond is encoded again the next time.
	promptShare = 4
	// maxAnswers bounds the different answers remembered for one prompt.
	maxAnswers = 16
)

func newTree(terms Terms) tree {
	return tree{roots: map[Salt]*piece{}, limit: historyBytes, began: time.Now(),
		kept: retention.Rule{TTL: int64(terms.TTL), Sessions: terms.Sessions}}
}

// clear drops everything. A tree is empty and ready for use after the first clear.
func (t *tree) clear() {
	clear(t.roots)
	t.kept.Clear()
	t.size = 0
	t.used.newer, t.used.older = &t.used, &t.used
}

// clearSalt drops everything under a salt.
func (t *tree) clearSalt(s Salt) {
	for work := []*piece{t.roots[s]}; len(work) > 0; {
		p := work[len(work)-1]
		if p == nil {
			return // there was nothing
		}
		if len(p.next) == 0 {
			t.drop(p)
			work = work[:len(work)-1]
			continue
		}
		for _, below := range p.next {
			work = append(work, below)
		}
	}
}

// expire forgets what has not been used for long. It is called when somebody asks: nothing expired is ever found.
func (t *tree) expire() {
	now := time.Since(t.began)
	for p := t.used.newer; p != &t.used && t.kept.Expired(int64(p.last), int64(now)); p = t.used.newer {
		t.drop(p)
	}
}

// visit notes a request of a session. Of a session too many, it drops the ends of conversations that the session was the
// last to use. Whoever uses a piece uses those above it, so they come later in the ring.
func (t *tree) visit(session uint64) (gone uint64) {
	if _, gone = t.kept.Visit(session); gone == 0 {
		return 0
	}
	for p := t.used.newer; p != &t.used; {
		after := p.newer
		if p.session == gone && len(p.next) == 0 {
			t.drop(p)
		}
		p = after
	}
	return gone
}

// walk follows the text below p as far as it is known, and adds what is known of it to out.
func (t *tree) walk(p *piece, out *Tokens, text string) *piece {
	for len(out.at) < len(out.cuts) {
		i := len(out.at)
		next := p.next[text[out.cuts[i-1]:out.cuts[i]]]
		if next == nil {
			break
		}
		p = next
		out.add(&p.edge)
	}
	if t.alive(p) {
		t.use(p, out.session)
	}
	return p
}

// near copies the edges below p that were said, the latest first.
func (p *piece) near() []edge {
	var all []edge
	for _, a := range slices.Backward(p.answers) {
		all = append(all, a.edge)
	}
	return all
}

// candidate is an answer that a text may have parted from.
type candidate struct {
	*reply
	up      int // it begins so many pieces before the place of parting
	spliced int // generated ids in those
}

// around gives the answers that p may be in the middle of, and those that begin below it, the latest first.
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

// root gives a salt's tree.
func (t *tree) root(s Salt) *piece {
	p := t.roots[s]
	if p == nil {
		p = &piece{salt: s}
		t.roots[s] = p
		t.push(p)
		t.size += p.bytes()
	}
	return p
}

// alive tells whether p is still in the tree. A piece is dropped only when none is below it, so all between p and its root are
// there if p is; clear drops roots alone.
func (t *tree) alive(p *piece) bool {
	if p.parent != nil && p.parent.next[p.text] != p {
		return false
	}
	for p.parent != nil {
		p = p.parent
	}
	return t.roots[p.salt] == p
}

// grow adds pieces, each below the one before, the first below p. What is known already stays, except that an answer
// takes its place: what was generated last is what keys and values are most likely still there for.
func (t *tree) grow(p *piece, fresh []*piece, session uint64) {
	if !t.alive(p) {
		return
	}
	for _, f := range fresh {
		known := p.next[f.text]
		switch {
		case known == nil:
			t.adopt(p, f)
			known = f
		case f.said:
			t.size -= known.bytes()
			t.unlist(known)
			f.text, f.ids, f.answer = known.text, slices.Clone(f.ids), cmp.Or(f.answer, known.answer)
			known.edge = f.edge
			t.list(known)
			t.size += known.bytes()
		}
		p = known
	}
	t.use(p, session)
	for t.size > t.limit && t.used.newer != p {
		t.drop(t.used.newer)
	}
}

// adopt puts f below p, with copies of its text and ids.
func (t *tree) adopt(p, f *piece) {
	f.text, f.ids = strings.Clone(f.text), slices.Clone(f.ids)
	f.putBelow(p)
	t.push(f)
	t.size += f.bytes()
	if f.said {
		t.list(f)
	}
}

// putBelow makes p known at up by its text, which nothing there has.
func (p *piece) putBelow(up *piece) {
	p.parent = up
	if up.next == nil {
		up.next = map[string]*piece{}
	}
	up.next[p.text] = p
}

// list makes a piece that was said known at its parent, in the place of the oldest one if there are too many.
func (t *tree) list(p *piece) {
	up := p.parent
	if len(up.answers) == maxAnswers {
		up.answers = slices.Delete(up.answers, 0, 1)
	}
	up.answers = append(up.answers, p)
}

func (t *tree) unlist(p *piece) {
	if i := slices.Index(p.parent.answers, p); i >= 0 {
		p.parent.answers = slices.Delete(p.parent.answers, i, i+1)
	}
}

// drop forgets a piece that has none below it.
func (t *tree) drop(p *piece) {
	t.size -= p.bytes()
	p.newer.older, p.older.newer = p.older, p.newer
	if p.parent == nil {
		delete(t.roots, p.salt)
		return
	}
	t.unlist(p)
	delete(p.parent.next, p.text)
}

func (e *edge) bytes() int {
	n := pieceBytes + len(e.text) + 4*len(e.ids)
	if e.answer != nil {
		n += 2 * len(e.answer.text) // with a rendering of it
	}
	return n
}

// use moves p and all above it to the front, p first of them.
func (t *tree) use(p *piece, session uint64) {
	now := time.Since(t.began)
	for ; p != nil; p = p.parent {
		p.last, p.session = now, session
		p.newer.older, p.older.newer = p.older, p.newer
		t.push(p)
	}
}

// push puts p in front of the ring.
func (t *tree) push(p *piece) {
	p.newer, p.older = &t.used, t.used.older
	p.newer.older, p.older.newer = p, p
}
