package grammar

import "slices"

// mostVisits bounds flattening, which could take time in the square of the schema's size. Where it is reached, the alternatives
// allow anything.
const mostVisits = 1 << 16

// settle makes the shapes of a schema ready for the automaton: it flattens alternatives and removes what no finite value follows.
func (r *reader) settle() {
	r.flatten()
	r.ends()
	for _, s := range r.all {
		s.prune()
	}
}

// flatten replaces alternatives that have alternatives of their own by those, each once, so that taking a byte need not search
// for them. One that refers to itself adds nothing.
func (r *reader) flatten() {
	left := mostVisits
	for _, s := range r.all {
		if s.any == nil || !slices.ContainsFunc(s.any, func(a *shape) bool { return a.any != nil }) {
			continue
		}
		flat := []*shape{} // none is not the same as no alternatives
		met := map[*shape]bool{s: true}
		todo := slices.Clone(s.any)
		slices.Reverse(todo) // the last one is next
		for ; len(todo) > 0 && left > 0; left-- {
			a := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if met[a] {
				continue
			}
			met[a] = true
			if a.any == nil {
				flat = append(flat, a)
				continue
			}
			for _, b := range slices.Backward(a.any) {
				todo = append(todo, b)
			}
			left -= len(a.any) / 8
		}
		if len(todo) > 0 {
			*s = *anything
			continue
		}
		s.any = flat
	}
}

// ends finds the shapes that finite values follow: first those that need no others, then those that need only shapes already
// found.
func (r *reader) ends() {
	needs := map[*shape]int{}      // required members that are not known to have values
	users := map[*shape][]*shape{} // by what they need, or have for an alternative
	var todo []*shape
	found := func(s *shape) {
		if !s.finite {
			s.finite = true
			todo = append(todo, s)
		}
	}
	for _, s := range r.all {
		switch {
		case s.any != nil:
			for _, a := range s.any {
				if a.finite { // anything
					found(s)
				}
				users[a] = append(users[a], s)
			}
		case s.spellings != nil || s.kinds != members:
			found(s)
		default:
			for i, p := range s.properties {
				if s.required&bit(int32(i)) != 0 && !p.finite {
					needs[s]++
					users[p] = append(users[p], s)
				}
			}
			if needs[s] == 0 {
				found(s)
			}
		}
	}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, u := range users[s] {
			if needs[u]--; u.any != nil || needs[u] == 0 {
				found(u)
			}
		}
	}
}

// prune removes what no finite value follows.
func (s *shape) prune() {
	if s.any != nil {
		s.any = slices.DeleteFunc(s.any, func(a *shape) bool { return !a.finite })
	}
	for i, p := range s.properties {
		if !p.finite {
			s.properties[i], s.closed = nil, s.closed|bit(int32(i))
			if s.required&bit(int32(i)) != 0 { // of several kinds the others are left
				s.kinds &^= members
			}
		}
	}
	if s.extra != nil && !s.extra.finite {
		s.extra = nil
	}
	if s.items != nil && !s.items.finite {
		s.items = nil
	}
}
