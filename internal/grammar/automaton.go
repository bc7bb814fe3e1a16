package grammar

import "sync/atomic"

// state is an expression as a state of the automaton that a grammar is: what is left of the rule on top of the stack. What is
// found out about it is kept, for all who use the grammar.
type state struct {
	fate fate
	as   step // the one that leads here and calls nothing
	next atomic.Pointer[[]atomic.Pointer[step]]
}

// step is where a byte leads.
type step struct {
	next *Expr // within the rule, nil for nowhere
}
