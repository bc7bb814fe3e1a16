package tokenizer

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// noMerge is the rank of a pair that is not merged.
const noMerge = ^uint32(0)

// mergeTable maps a pair of ids to its rank and the merged id: open addressing
// with linear probing, at most half full. It is the hot look-up of encoding and
// several times faster than a map.
type mergeTable struct {
	slots []mergeSlot // power of two; nil: no merges
	shift uint
	seed  uint64
}

type mergeSlot struct {
	pair     uint64 // left<<32 | right
	rank, id uint32 // rank noMerge: slot is free
}

func newMergeTable(count int) mergeTable {
	logSize := bits.Len(uint(max(2*count, 2) - 1))
	t := mergeTable{
		slots: make([]mergeSlot, 1<<logSize),
		shift: uint(64 - logSize),
		// A random odd factor, so that a crafted file cannot aim at one slot.
		seed: rand.Uint64() | 1,
	}
	for i := range t.slots {
		t.slots[i].rank = noMerge
	}
	return t
}

func (t *mergeTable) home(pair uint64) uint64 {
	hi, lo := bits.Mul64(pair^0x9E3779B97F4A7C15, t.seed)
	return (hi ^ lo) * 0x9E3779B97F4A7C15 >> t.shift
}

// set adds a pair; a pair that is there already gets the new rank.
func (t *mergeTable) set(left, right int32, rank, id uint32) {
	pair := uint64(left)<<32 | uint64(right)
	mask := uint64(len(t.slots) - 1)
	i := t.home(pair)
	for t.slots[i].rank != noMerge && t.slots[i].pair != pair {
		i = (i + 1) & mask
	}
	t.slots[i] = mergeSlot{pair, rank, id}
}

// find returns the rank of a pair and the id it merges to, or noMerge.
func (t *mergeTable) find(left, right int32) (rank, id uint32) {
	pair := uint64(left)<<32 | uint64(right)
	mask := uint64(len(t.slots) - 1)
	for i := t.home(pair); ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.rank == noMerge || s.pair == pair {
			return s.rank, s.id
		}
	}
}

// mergeReader turns pairs of token texts into a mergeTable.
type mergeReader struct {
	vocab  *vocabulary
	prefix int // bytes that the right part loses when it is merged
	seam   seam
	list   []merge
	text   []byte // the parts of the merges that wait for a look-up, back to back
	ends   []int  // where each part ends
	parts  [][]byte
}

type merge struct{ left, right, id int32 }

// read reads the merge list in either form, "left right" or ["left","right"]. A
// pair listed twice has the later rank, as in the reference.
func (m *mergeReader) read(r *jsonReader) (mergeTable, error) {
	// A byte-level vocabulary has about one merge per token.
	m.list = make([]merge, 0, min(m.vocab.count, len(r.data)/8))
	err := r.array(func() (err error) {
		if r.peek() == '"' {
			err = m.spaced(r)
		} else {
			err = m.listed(r)
		}
		if err == nil && len(m.ends) == batch {
			err = m.resolve()
		}
		return err
	})
	if err == nil {
		err = m.resolve()
	}
	if err != nil {
		return mergeTable{}, err
	}
	t := newMergeTable(len(m.list))
	for rank, m := range m.list {
		t.set(m.left, m.right, uint32(rank), uint32(m.id))
	}
	return t, nil
}

// number is that of the merge being read.
func (m *mergeReader) number() int { return len(m.list) + len(m.ends)/2 }

// spaced reads "left right".
func (m *mergeReader) spaced(r *jsonReader) error {
	s, err := r.str()
	if err != nil {
		return err
	}
	cut := bytes.IndexByte(s, ' ')
	if cut < 0 {
		return fmt.Errorf("merge %d, %s, has no space between its parts", m.number(), quoted(string(s)))
	}
	if bytes.IndexByte(s[cut+1:], ' ') >= 0 {
		return fmt.Errorf("merge %d, %s, has more than two parts", m.number(), quoted(string(s)))
	}
	m.part(s[:cut])
	m.part(s[cut+1:])
	return nil
}

// listed reads ["left","right"].
func (m *mergeReader) listed(r *jsonReader) error {
	parts, number := 0, m.number()
	err := r.array(func() error {
		s, err := r.str()
		if parts++; parts <= 2 {
			m.part(s)
		}
		return err
	})
	if err == nil && parts != 2 {
		err = fmt.Errorf("merge %d has %d parts instead of 2", number, parts)
	}
	return err
}

func (m *mergeReader) part(s []byte) {
	m.text = append(m.text, s...)
	m.ends = append(m.ends, len(m.text))
}

// resolve looks up the merges that wait.
func (m *mergeReader) resolve() error {
	m.parts = m.parts[:0]
	from := 0
	for i, end := range m.ends {
		if from == end {
			return fmt.Errorf("merge %d has an empty part", len(m.list)+i/2)
		}
		m.parts = append(m.parts, m.text[from:end])
		from = end
	}
	var ids [batch]int32
	m.vocab.index.findBatch(m.parts, ids[:])
	for i := 0; i < len(m.parts); i += 2 {
		left, right := m.parts[i], m.parts[i+1]
		// The parts are neighbours in text, so that joining them is a longer slice.
		whole := left[:len(left)+len(right)]
		if m.prefix > 0 {
			whole = append(bytes.Clone(left), right[min(m.prefix, len(right)):]...)
		}
		id, ok := m.result(whole)
		if !ok || ids[i] < 0 || ids[i+1] < 0 {
			return fmt.Errorf("merge %d of %s and %s: a part or the result is not in the vocabulary",
				len(m.list), quoted(string(left)), quoted(string(right)))
		}
		m.seam.merge(left, right)
		m.list = append(m.list, merge{ids[i], ids[i+1], id})
	}
	m.text, m.ends = m.text[:0], m.ends[:0]
	return nil
}

// result returns the id of what two parts merge to. Most vocabularies have those in
// the order of the merges, which saves looking them up.
func (m *mergeReader) result(whole []byte) (int32, bool) {
	if n := len(m.list); n > 0 {
		if id := m.list[n-1].id + 1; m.vocab.has(id) && m.vocab.text[id] == string(whole) {
			return id, true
		}
	}
	return m.vocab.index.findBytes(whole)
}
