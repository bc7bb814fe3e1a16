package kv

import (
	"fmt"
	"slices"
)

// ids is a set of dense ids [first, first+n) with reference counts. Ids that were never used are handed out last, so
// that the memory behind them stays untouched as long as possible.
type ids struct {
	first, n int32
	next     int32   // ids from here on were never handed out
	free     []int32 // handed out and returned
	refs     []int32 // by id-first, up to next; 0: free
	inTree   []bool  // likewise: one of the references is the prefix tree's
	idle     int     // ids whose only reference is the prefix tree's
	used     []bool  // likewise by id-first: handed out since unused gave it
}

func newIDs(first, n int) ids { return ids{first: int32(first), n: int32(n), next: int32(first)} }

func (s *ids) inUse() int { return int(s.next-s.first) - len(s.free) }
func (s *ids) left() int  { return int(s.n) - s.inUse() }

// take hands out an id with one reference.
func (s *ids) take() (int32, bool) {
	if k := len(s.free); k > 0 {
		id := s.free[k-1]
		s.free = s.free[:k-1]
		s.refs[id-s.first], s.used[id-s.first] = 1, true
		return id, true
	}
	if s.next == s.first+s.n {
		return 0, false
	}
	s.next++
	s.refs, s.inTree, s.used = append(s.refs, 1), append(s.inTree, false), append(s.used, true)
	return s.next - 1, true
}

// unused gives the free ids, ascending, that have been handed out since it gave them last, if there are at least so many.
func (s *ids) unused(least int) []int32 {
	n := 0
	for _, id := range s.free {
		if s.used[id-s.first] {
			n++
		}
	}
	if n == 0 || n < least {
		return nil
	}
	slices.Sort(s.free)
	slices.Reverse(s.free) // the lowest are handed out first, so that others stay free in long rows
	list := make([]int32, 0, n)
	for _, id := range slices.Backward(s.free) {
		if s.used[id-s.first] {
			s.used[id-s.first] = false
			list = append(list, id)
		}
	}
	return list
}

// at is the index of an id in use. Any other is a programmer error.
func (s *ids) at(id int32) int32 {
	if id < s.first || id >= s.next || s.refs[id-s.first] == 0 {
		panic(fmt.Sprintf("kv: id %d is not in use", id))
	}
	return id - s.first
}

func (s *ids) shared(id int32) bool { return s.refs[s.at(id)] > 1 }

// holders is how many references an id has beside the tree's.
func (s *ids) holders(id int32) int {
	i := s.at(id)
	if s.inTree[i] {
		return int(s.refs[i]) - 1
	}
	return int(s.refs[i])
}

// share adds a reference.
func (s *ids) share(id int32) {
	i := s.at(id)
	if s.inTree[i] && s.refs[i] == 1 {
		s.idle--
	}
	s.refs[i]++
}

// put drops a reference and reports whether it was the last: the id is free again.
func (s *ids) put(id int32) bool {
	i := s.at(id)
	s.refs[i]--
	switch {
	case s.refs[i] == 0:
		s.free = append(s.free, id)
		return true
	case s.refs[i] == 1 && s.inTree[i]:
		s.idle++
	}
	return false
}

// treeRef adds the tree's reference, of which there is one at most.
func (s *ids) treeRef(id int32) {
	i := s.at(id)
	s.inTree[i] = true
	s.refs[i]++
}

// treeUnref drops the tree's reference and reports whether the id is free again.
func (s *ids) treeUnref(id int32) bool {
	i := s.at(id)
	s.inTree[i] = false
	if s.refs[i] == 1 {
		s.idle--
	}
	return s.put(id)
}

// check compares the counts with the references there are: held lists one id per reference of a table, inTree the tree's.
func (s *ids) check(held []int32) error {
	if s.next > s.first+s.n || len(s.refs) != int(s.next-s.first) || len(s.inTree) != len(s.refs) {
		return fmt.Errorf("ids up to %d handed out of %d", s.next, s.n)
	}
	count, idle := make([]int32, len(s.refs)), 0
	for i, kept := range s.inTree {
		if kept {
			count[i]++
		}
		if kept && s.refs[i] == 1 {
			idle++
		}
	}
	for _, id := range held {
		if id < s.first || id >= s.next || s.refs[id-s.first] == 0 {
			return fmt.Errorf("id %d is held but free", id)
		}
		count[id-s.first]++
	}
	for i, n := range count {
		switch id := int32(i) + s.first; {
		case n < s.refs[i]:
			return fmt.Errorf("id %d has leaked: %d references counted, %d held", id, s.refs[i], n)
		case n > s.refs[i]:
			return fmt.Errorf("id %d is held %d times, %d references counted", id, n, s.refs[i])
		}
	}
	free := make([]bool, len(s.refs))
	for _, id := range s.free {
		if i := id - s.first; s.refs[i] != 0 || free[i] {
			return fmt.Errorf("id %d is free and in use, or free twice", id)
		}
		free[id-s.first] = true
	}
	for i := range free {
		if s.refs[i] == 0 && !free[i] {
			return fmt.Errorf("id %d is neither free nor in use", int32(i)+s.first)
		}
	}
	if idle != s.idle {
		return fmt.Errorf("%d ids counted as idle, %d are", s.idle, idle)
	}
	return nil
}
