package kv

import "fmt"

// ids is a set of dense ids [first, first+n). Ids that were never used are handed out last, so that the memory behind
// them stays untouched as long as possible.
type ids struct {
	first, n int32
	next     int32   // ids from here on were never handed out
	free     []int32 // handed out and returned
	used     []bool  // by id-first, up to next
}

func newIDs(first, n int) ids { return ids{first: int32(first), n: int32(n), next: int32(first)} }

func (s *ids) inUse() int { return int(s.next-s.first) - len(s.free) }
func (s *ids) left() int  { return int(s.n) - s.inUse() }

func (s *ids) take() (int32, bool) {
	if k := len(s.free); k > 0 {
		id := s.free[k-1]
		s.free = s.free[:k-1]
		s.used[id-s.first] = true
		return id, true
	}
	if s.next == s.first+s.n {
		return 0, false
	}
	s.next++
	s.used = append(s.used, true)
	return s.next - 1, true
}

// put returns an id. Returning one that is not in use is a programmer error.
func (s *ids) put(id int32) {
	if id < s.first || id >= s.next || !s.used[id-s.first] {
		panic(fmt.Sprintf("kv: id %d is freed but not in use", id))
	}
	s.used[id-s.first] = false
	s.free = append(s.free, id)
}

// check compares the set with the owned ids, which must be exactly the used ones, each once.
func (s *ids) check(owned []int32) error {
	if s.next > s.first+s.n || len(s.used) != int(s.next-s.first) {
		return fmt.Errorf("ids up to %d handed out of %d", s.next, s.n)
	}
	seen := make([]bool, len(s.used))
	for _, id := range owned {
		switch {
		case id < s.first || id >= s.next || !s.used[id-s.first]:
			return fmt.Errorf("id %d is owned but free", id)
		case seen[id-s.first]:
			return fmt.Errorf("id %d is owned twice", id)
		}
		seen[id-s.first] = true
	}
	for _, id := range s.free {
		if s.used[id-s.first] || seen[id-s.first] {
			return fmt.Errorf("id %d is free and in use", id)
		}
		seen[id-s.first] = true
	}
	for i, ok := range seen {
		if !ok {
			return fmt.Errorf("id %d has leaked", int32(i)+s.first)
		}
	}
	return nil
}
