package grammar

// stack is where a text may be in a grammar after each of its bytes: all ways to read it at once, in a stack that branches where
// they differ. A rule that is called at a place is entered there once, whoever calls it, so ways that go the same way again are
// one. Its memory is reused: what comes after a place is dropped when the place is gone back to.
type stack struct {
	g       *Grammar
	budget  *Budget
	entered []activation
	links   []chained
	items   []item  // of all places
	before  []int32 // by item: the one before it that is in the same activation, at its place
	places  []place
	at      []int32 // reused by enter
}

// activation is a rule that was entered at a place.
type activation struct {
	rule *Rule
	back int32 // the first of links
	item int32 // the last one of items in this activation, at the place that it is of
	link int32 // the last one of links that leads to it, likewise
}

// chained is a link of an activation.
type chained struct {
	link
	of     int32
	next   int32 // of that activation, -1 for none
	before int32 // the one before it that leads to the same activation and was made at the same place
}

// item is one way: the state of the rule that it is in. The state of the end, in no rule, is that of a whole text.
type item struct {
	at *Expr
	in int32 // of entered
}

// place is what was there when a byte was taken.
type place struct{ items, entered, links int32 }

// begin puts a stack before the first byte, in a state of a rule behind which the text ends.
func (s *stack) begin(at *Expr) {
	s.entered = append(s.entered[:0], activation{nil, 0, -1, -1})
	s.links = append(s.links[:0], chained{link{s.g.end, -1}, 0, -1, -1})
	s.items, s.places = s.items[:0], s.places[:0]
	s.open()
	s.add(item{at, 0})
	s.leave()
}

// open begins a place.
func (s *stack) open() {
	s.places = append(s.places, place{int32(len(s.items)), int32(len(s.entered)), int32(len(s.links))})
}

// top are the ways at the last place.
func (s *stack) top() []item { return s.items[s.places[len(s.places)-1].items:] }

// back goes back to where there were n places.
func (s *stack) back(n int) {
	if n < len(s.places) {
		p := s.places[n]
		s.items, s.entered, s.links, s.places = s.items[:p.items], s.entered[:p.entered], s.links[:p.links], s.places[:n]
	}
}

// mostHeld bounds the memory of a stack, in ways and links. A text that needs more has spent its budget.
const mostHeld = 1 << 20

// add adds a way to the last place, once.
func (s *stack) add(it item) {
	if s.budget.Spent() {
		return
	}
	before := int32(-1)
	s.budget.spend(1)
	if it.in >= 0 {
		in := &s.entered[it.in]
		if k := in.item; k >= s.places[len(s.places)-1].items && int(k) < len(s.items) && s.items[k].in == it.in { // else it was elsewhere
			before = k
		}
		for k := before; k >= 0; k = s.before[k] {
			if s.budget.spend(1); s.items[k].at == it.at {
				return
			}
		}
		in.item = int32(len(s.items))
	} else if s.done() {
		return
	}
	for len(s.before) <= len(s.items) {
		s.before = append(s.before, -1)
	}
	s.before[len(s.items)] = before
	s.items = append(s.items, it)
}

// step is where a byte leads from a state.
func (s *stack) step(e *Expr, c byte) *step { return s.g.step(e, c, s.budget) }

// push takes a byte. If no way goes on it reports false, and the place is there without any.
func (s *stack) push(c byte) bool {
	from := int(s.places[len(s.places)-1].items)
	to, fresh := len(s.items), len(s.entered)
	s.open()
	if len(s.items)+len(s.links) > mostHeld {
		s.budget.left = 0
	}
	for i := from; i < to && !s.budget.Spent(); i++ {
		it := s.items[i]
		next := s.step(it.at, c)
		if next.next != nil {
			s.add(item{next.next, it.in})
		}
		if next.into != nil {
			s.enter(next, it.in, fresh)
		}
	}
	s.leave()
	return len(s.items) > to
}

// enter enters the rules that a step calls. Those from fresh on were entered at this place.
func (s *stack) enter(next *step, in int32, fresh int) {
	at := s.at[:0]
	for i := range next.into.called {
		if s.budget.Spent() {
			return
		}
		rule, k := next.into.called[i].rule, fresh
		for k < len(s.entered) && s.entered[k].rule != rule {
			k++
		}
		if s.budget.spend(1 + (k-fresh)/4); k == len(s.entered) {
			s.entered = append(s.entered, activation{rule, -1, -1, -1})
		}
		at = append(at, int32(k))
	}
	s.at = at
	for i := range next.into.called {
		if s.budget.Spent() {
			return
		}
		for _, l := range next.into.called[i].back {
			switch {
			case l.in >= 0:
				s.link(at[i], link{l.then, at[l.in]})
			case l.then != s.g.end:
				s.link(at[i], link{l.then, in})
			default: // nothing is left of the rule that calls
				for k := s.entered[in].back; k >= 0; k = s.links[k].next {
					s.link(at[i], s.links[k].link)
				}
			}
		}
	}
	for _, t := range next.into.tops {
		s.add(item{t.at, at[t.in]})
	}
}

// link adds a link to an activation, once.
func (s *stack) link(of int32, l link) {
	if s.budget.Spent() {
		return
	}
	before := int32(-1)
	s.budget.spend(1)
	if l.in >= 0 {
		in := &s.entered[l.in]
		if k := in.link; k >= s.places[len(s.places)-1].links && int(k) < len(s.links) && s.links[k].in == l.in {
			before = k
		}
		for k := before; k >= 0; k = s.links[k].before {
			if s.budget.spend(1); s.links[k].of == of && s.links[k].then == l.then {
				return
			}
		}
		in.link = int32(len(s.links))
	} else {
		for k := s.entered[of].back; k >= 0; k = s.links[k].next {
			if s.budget.spend(1); s.links[k].link == l {
				return
			}
		}
	}
	s.links = append(s.links, chained{l, of, s.entered[of].back, before})
	s.entered[of].back = int32(len(s.links) - 1)
}

// leave leaves rules that may end at the last place. Ways on which nothing else is left of a rule are dropped.
func (s *stack) leave() {
	from := int(s.places[len(s.places)-1].items)
	rest := from
	for i := from; i < len(s.items) && !s.budget.Spent(); i++ {
		if it := s.items[i]; it.at.nullable && it.in >= 0 {
			s.follow(it.in)
		}
	}
	for _, it := range s.items[from:] {
		if it.at != s.g.end || it.in < 0 {
			s.items[rest] = it
			rest++
		}
	}
	s.items = s.items[:rest]
}

// follow adds the ways on which an activation returns.
func (s *stack) follow(in int32) {
	for k := s.entered[in].back; k >= 0; k = s.links[k].next {
		s.add(item{s.links[k].then, s.links[k].in})
	}
}

// done tells whether the text may end at the last place.
func (s *stack) done() bool {
	for _, it := range s.top() {
		if it.in < 0 {
			return true
		}
	}
	return false
}
