package grammar

import "slices"

// Matcher follows one output through a Grammar, token by token, and can go back. It belongs to one goroutine.
type Matcher struct {
	vocab *Vocab
	s     stack // a place before the first token and one after each
	mask  []uint64
	way   []uint64 // of one way, where there are several
	any   bool     // a token is in mask
	of    []item   // the ways that mask was made for
	since int      // places when it was; 0: it does not count
	w     walker   // of states that were not met before
}

// Matcher begins a text. Its work is counted on a budget, which several matchers may share.
func (v *Vocab) Matcher(g *Grammar, budget *Budget) *Matcher {
	m := &Matcher{vocab: v, s: stack{g: g, budget: budget}, w: walker{s: stack{g: g}}, mask: make([]uint64, v.words())}
	m.s.begin(g.start.body)
	return m
}

// Matches tells whether a whole text follows the grammar. Its work is counted on a budget; once that is spent it means nothing.
func (g *Grammar) Matches(text string, budget *Budget) bool {
	s := stack{g: g, budget: budget}
	s.begin(g.start.body)
	for i := range len(text) {
		if !s.push(text[i]) || budget.Spent() {
			return false
		}
		if i%64 == 63 { // what is not gone back to
			p := s.places[0]
			s.items = append(s.items[:0], s.top()...)
			s.places = append(s.places[:0], place{0, p.entered, p.links})
		}
	}
	return s.done()
}

// Clone is a matcher at the same place, which goes on by itself on a budget of its own.
func (m *Matcher) Clone(budget *Budget) *Matcher {
	c := &Matcher{vocab: m.vocab, s: m.s, w: walker{s: stack{g: m.s.g}}, mask: make([]uint64, len(m.mask))}
	c.s.budget = budget
	c.s.entered, c.s.links, c.s.at, c.s.before = slices.Clone(m.s.entered), slices.Clone(m.s.links), nil, slices.Clone(m.s.before)
	c.s.items, c.s.places = slices.Clone(m.s.items), slices.Clone(m.s.places)
	return c
}

// Accept takes a token. It reports whether that fits the grammar; if not, the matcher stays where it was.
func (m *Matcher) Accept(id int32) bool {
	text := m.vocab.text(id)
	return len(text) > 0 && m.AcceptBytes(text)
}

// AcceptBytes takes what was written otherwise than by a token, and is one for Rollback.
func (m *Matcher) AcceptBytes(text []byte) bool {
	s, n := &m.s, len(m.s.places)
	for _, c := range text {
		if !s.push(c) || s.budget.Spent() {
			s.back(n)
			return false
		}
	}
	if len(text) == 0 {
		s.open()
		s.items = append(s.items, s.items[s.places[n-1].items:s.places[n].items]...)
		return true
	}
	if first := s.places[n]; len(text) > 1 { // the places within the token are not gone back to
		kept := copy(s.items[first.items:], s.top())
		s.items, s.places = s.items[:int(first.items)+kept], s.places[:n+1]
	}
	return true
}

// Rollback takes back the last n tokens, all if they are fewer.
func (m *Matcher) Rollback(n int) {
	if m.s.back(max(len(m.s.places)-n, 1)); len(m.s.places) < m.since {
		m.since = 0 // other rules may be entered where those that the mask was made for were
	}
}

// Tokens is how many tokens were taken and not taken back.
func (m *Matcher) Tokens() int { return len(m.s.places) - 1 }

// Prefix is how many of the tokens of a draft fit, one after the other. The matcher stays where it is.
func (m *Matcher) Prefix(draft []int32) int {
	n := 0
	for n < len(draft) && m.Accept(draft[n]) {
		n++
	}
	m.Rollback(n)
	return n
}

// On runs f with the matcher's work counted on another budget.
func (m *Matcher) On(b *Budget, f func()) {
	own := m.s.budget
	m.s.budget = b
	defer func() { m.s.budget = own }()
	f()
}

// Done tells whether the text may end here. It may go on if Allowed is not nil.
func (m *Matcher) Done() bool { return m.s.done() }

// Forced appends the bytes that must follow, as far as nothing else may and the text may not end before them, at most so many.
func (m *Matcher) Forced(dst []byte, most int) []byte {
	s, n := &m.s, len(m.s.places)
	for ; most > 0 && !s.done(); most-- {
		c, ok := s.only()
		if !ok || !s.push(c) || s.budget.Spent() {
			break
		}
		dst = append(dst, c)
	}
	s.back(n)
	return dst
}

// only is the one byte that may come, if there is one.
func (s *stack) only() (only byte, ok bool) {
	var first Set
	for _, it := range s.top() {
		first = first.Or(it.at.first)
	}
	more := false
	first.each(func(c byte) {
		if !more && s.may(c) {
			only, more, ok = c, ok, true
		}
	})
	return only, ok && !more
}

// may tells whether a byte may come.
func (s *stack) may(c byte) bool {
	for _, it := range s.top() {
		s.budget.spend(1)
		if next := s.step(it.at, c); next.next != nil || next.into != nil {
			return true
		}
	}
	return false
}

// Allowed is the mask of the tokens that may come next, bit id%64 of word id/64, nil if there are none. It is good until the
// next call and must not be written to. Once the budget is spent some may be missing.
func (m *Matcher) Allowed() []uint64 {
	if top := m.s.top(); m.since == 0 || !slices.Equal(m.of, top) { // within a string it stays the same from token to token
		m.of, m.since = append(m.of[:0], top...), len(m.s.places)
		m.allow()
		m.any = slices.ContainsFunc(m.mask, func(w uint64) bool { return w != 0 })
		if m.s.budget.Spent() {
			m.since = 0
		}
	}
	if !m.any {
		return nil
	}
	return m.mask
}

// allow fills the mask: of each way the tokens that stay within its rule or leave it at their end, which are remembered with the
// state, and of those that leave it before their end the ones that fit what follows.
func (m *Matcher) allow() {
	clear(m.mask)
	m.w.s.budget = m.s.budget
	for i, it := range m.of {
		if it.in < 0 {
			continue
		}
		to := m.mask
		if i > 0 { // what is like another but for some tokens must not change those of other ways
			to = m.fresh()
		}
		for _, tier := range m.vocab.tiersOf(it.at) {
			e := m.vocab.entry(&m.w, it.at, tier)
			if e == nil { // the budget is spent
				return
			}
			if m.add(to, e, it.in); e.wide {
				for _, t := range m.vocab.triesOf(tier) {
					m.s.open()
					m.s.add(it)
					m.walk(to, t)
				}
			}
		}
		if i > 0 {
			for k, w := range to {
				m.mask[k] |= w
			}
		}
	}
}

// fresh is a mask of one way, without tokens.
func (m *Matcher) fresh() []uint64 {
	if m.way == nil {
		m.way = make([]uint64, len(m.mask))
	}
	clear(m.way)
	return m.way
}

// add adds the tokens of a mask of a state of an activation.
func (m *Matcher) add(to []uint64, e *mask, in int32) {
	if e.like != nil {
		m.add(to, e.like, in)
		for _, id := range e.differs {
			to[id/64] &^= 1 << (id % 64)
		}
	}
	m.s.budget.spend(1 + (len(e.ids)+len(e.differs))/4 + len(e.words)/16)
	for i, w := range e.words {
		to[i] |= w
	}
	for _, id := range e.ids {
		to[id/64] |= 1 << (id % 64)
	}
	if e.leaving != nil {
		m.s.open()
		m.s.follow(in)
		m.s.leave()
		m.walk(to, e.leaving)
	}
}

// walk adds the tokens of a trie whose texts fit at the last place, and drops that.
func (m *Matcher) walk(to []uint64, t *trie) {
	n := len(m.s.places)
	m.w.rows = t.walk(m.w.rows, m.s.budget, func(k *branch, depth int) bool {
		m.s.back(n + depth - 1)
		if !m.s.push(k.b) {
			return false
		}
		for _, id := range t.ids[k.from:t.to(k)] {
			to[id/64] |= 1 << (id % 64)
		}
		return true
	})
	m.s.back(n - 1)
}
