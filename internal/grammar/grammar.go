// Package grammar makes allowed-token masks: after every token it tells which tokens may come next, so that what a model writes
// keeps to a form. Package generate asks it and hands the mask to the engine. It knows no tokenizer, no template and no markup
// but what it is told.
//
// # Making a grammar
//
// A Builder makes expressions over bytes, and rules, which are named expressions that may refer to each other and to themselves:
//
//	b := grammar.NewBuilder()
//	list := b.Rule("list") // defined below: it is in itself
//	more := b.Repeat(b.Seq(b.Literal(", "), b.Ref(list)), 0, 9)
//	b.Define(list, b.Seq(b.Literal("["), b.Optional(b.Seq(b.Ref(list), more)), b.Literal("]")))
//	g, err := b.Compile(list)
//
// Expressions without references are regular. Only these may be intersected and complemented (And, Not, Except), and only these
// tell at once what they match (Matches, IsNever). Equal expressions are one, so parts may be made again wherever they are
// needed; a part of many others is better a rule of its own. Where a text is matched in several ways all are followed at once.
//
// When to make a rule rather than an expression: for what contains itself, and for what ends by itself, such as a string, an
// array or an object of JSON. What a token may be within a rule is remembered for the rule, wherever it is referred to and in
// whichever grammar: give the same rule the same name. What may go on where it may end, such as a number or a word, is better put
// into the expression around it; Compile does that for small rules that are regular.
//
// Compile leaves out what can never end, so an expression that turns out to match nothing needs no care: an optional member whose
// value is Never is not there. What is wrong or too large is an error of Compile.
//
// # Following it
//
// A Matcher follows one output (Accept), tells which tokens may come next (Allowed) and which bytes must (Forced), and goes back
// (Rollback). All ways to read what was written are followed at once. A mask is put together from what is remembered of a Vocab:
// for each state of a rule the tokens that stay within it, and those that leave it, whose rest is tried with what follows there.
// So a mask costs microseconds where its state was met before, in any grammar and by anybody; met for the first time, it costs a
// walk through the vocabulary as far as tokens fit. All work is counted on a Budget.
//
// # The calls of tools
//
// The form of a tool call in JSON whose arguments follow the tool's JSON Schema has a machine of its own (Call). It is a pushdown
// automaton over bytes, because JSON nests. Alternatives in a schema may begin alike, so it can be in several states at once,
// here called ways. The vocabulary is a trie of the bytes of its tokens; the tokens that may come next are those whose bytes the
// automaton accepts.
package grammar

import "slices"

// CallGrammar is the form of calls. It does not change and may be used by many at once.
type CallGrammar struct {
	start *frame
}

// CallMatcher follows one output through a CallGrammar. It belongs to one goroutine.
type CallMatcher struct {
	vocab  *CallVocab
	budget *Budget
	ways   []way
	next   []way   // reused
	levels []level // reused by walk, like at
	at     []int

	allowed []uint64
	of      []way // the ways that allowed was made for; none: it was not made yet
}

// Matcher begins a form. Its work is counted on a budget, which several matchers may share.
func (v *CallVocab) Matcher(g *CallGrammar, budget *Budget) *CallMatcher {
	return &CallMatcher{vocab: v, budget: budget, ways: []way{{top: g.start}}, allowed: make([]uint64, len(v.plain))}
}

// Accept takes what was written next. It reports whether that fits the form; if not, or once the budget is spent, the matcher
// is of no more use.
func (m *CallMatcher) Accept(written []byte) bool {
	for _, b := range written {
		if m.budget.Spent() {
			return false
		}
		m.next = m.budget.advance(m.next, m.ways, b)
		m.ways, m.next = m.next, m.ways
	}
	return len(m.ways) > 0
}

// Done reports whether the form is complete: what follows is free.
func (m *CallMatcher) Done() bool {
	for _, w := range m.ways {
		if w.top == nil {
			return true
		}
	}
	return false
}

// Allowed is the mask of the tokens that may come next, bit id%64 of word id/64, nil if there are none. It is good until the
// next call and must not be written to. Once the budget is spent some may be missing.
func (m *CallMatcher) Allowed() []uint64 {
	if m.of == nil || !slices.Equal(m.of, m.ways) { // within a string it stays the same from token to token
		m.of = append(m.of[:0], m.ways...)
		m.allow()
	}
	for _, w := range m.allowed {
		if w != 0 {
			return m.allowed
		}
	}
	return nil
}

// allow fills the mask. Within a string nearly every token may come: those that neither end nor break a string were found when
// the vocabulary was made, so only the others are tried.
func (m *CallMatcher) allow() {
	v := m.vocab
	clear(m.allowed)
	var inside, others []way
	for _, w := range m.ways {
		if w.top != nil && w.top.op == inString {
			inside = append(inside, w)
		} else {
			others = append(others, w)
		}
	}
	if len(inside) > 0 {
		for i, w := range v.plain {
			m.allowed[i] |= w
		}
		m.walk(&v.rest, inside)
	}
	if len(others) > 0 {
		m.walk(&v.all, others)
	}
}

// walk adds the tokens of a tree that at least one of the ways accepts.
func (m *CallMatcher) walk(t *tree, ways []way) {
	at := append(m.at[:0], m.level(0, ways)) // by depth
	for i := 0; i < len(t.nodes) && !m.budget.Spent(); {
		n := &t.nodes[i]
		level := at[n.depth-1]
		if before := &m.levels[level]; !before.inside || breaks(n.b) { // otherwise the byte changes nothing
			m.next = m.budget.advance(m.next, before.ways, n.b)
			level = m.level(int(n.depth), m.next)
		}
		at = append(at[:n.depth], level)
		m.budget.spend(1)
		if len(m.levels[level].ways) == 0 {
			i = int(n.end)
			continue
		}
		for _, id := range t.ids[n.from:n.to] {
			m.allowed[id/64] |= 1 << (id % 64)
		}
		i++
	}
	m.at = at
}

// level is the state of a walk at one depth of the tree.
type level struct {
	ways   []way
	inside bool // all of them are within a string
}

// level copies ways to level n and gives n.
func (m *CallMatcher) level(n int, ways []way) int {
	for len(m.levels) <= n {
		m.levels = append(m.levels, level{})
	}
	l := &m.levels[n]
	l.ways, l.inside = append(l.ways[:0], ways...), true
	for _, w := range ways {
		l.inside = l.inside && w.top != nil && w.top.op == inString
	}
	return n
}
