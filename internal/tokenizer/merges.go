package tokenizer

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
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

// blockMerges is how many merges are resolved at a time: enough that handing them over costs nothing.
const blockMerges = 4096

// mergeReader turns pairs of token texts into a mergeTable. One goroutine reads, others look the texts up: in a large
// vocabulary nearly all of that is waiting for memory.
type mergeReader struct {
	vocab  *vocabulary
	prefix int // bytes that the right part loses when it is merged
	blocks []*mergeBlock
}

// mergeBlock is some neighbours of the list.
type mergeBlock struct {
	first int    // number of the first one
	text  []byte // their parts, back to back
	ends  []int  // where each part ends
	list  []merge
	seam  seam
	err   error
}

type merge struct{ left, right, id int32 }

// read reads the merge list in either form, "left right" or ["left","right"]. A
// pair listed twice has the later rank, as in the reference.
func (m *mergeReader) read(r *jsonReader) (mergeTable, seam, error) {
	work := make(chan *mergeBlock, 16)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 4) {
		workers.Go(func() {
			for b := range work {
				b.err = m.resolve(b)
				b.text, b.ends = nil, nil
			}
		})
	}
	err := m.parse(r, work)
	close(work)
	workers.Wait()
	var s seam
	count := 0
	for _, b := range m.blocks {
		if b.err != nil {
			return mergeTable{}, seam{}, b.err
		}
		s.join(&b.seam)
		count += len(b.list)
	}
	if err != nil {
		return mergeTable{}, seam{}, err
	}
	t := newMergeTable(count)
	for _, b := range m.blocks {
		for i, m := range b.list {
			t.set(m.left, m.right, uint32(b.first+i), uint32(m.id))
		}
	}
	return t, s, nil
}

// parse cuts the list into blocks for the workers.
func (m *mergeReader) parse(r *jsonReader, work chan<- *mergeBlock) error {
	var b *mergeBlock
	next := func() {
		if b != nil {
			m.blocks = append(m.blocks, b)
			work <- b
		}
		b = &mergeBlock{first: blockMerges * len(m.blocks)}
	}
	next()
	err := r.array(func() error {
		if len(b.ends) == 2*blockMerges {
			next()
		}
		if r.peek() == '"' {
			return b.spaced(r)
		}
		return b.listed(r)
	})
	b.ends = b.ends[:len(b.ends)&^1] // an error may have left half a merge
	next()
	return err
}

// number is that of the merge being read.
func (b *mergeBlock) number() int { return b.first + len(b.ends)/2 }

// spaced reads "left right".
func (b *mergeBlock) spaced(r *jsonReader) error {
	s, err := r.str()
	if err != nil {
		return err
	}
	cut := bytes.IndexByte(s, ' ')
	if cut < 0 {
		return fmt.Errorf("merge %d, %s, has no space between its parts", b.number(), quoted(string(s)))
	}
	if bytes.IndexByte(s[cut+1:], ' ') >= 0 {
		return fmt.Errorf("merge %d, %s, has more than two parts", b.number(), quoted(string(s)))
	}
	b.part(s[:cut])
	b.part(s[cut+1:])
	return nil
}

// listed reads ["left","right"].
func (b *mergeBlock) listed(r *jsonReader) error {
	parts, number := 0, b.number()
	err := r.array(func() error {
		s, err := r.str()
		if parts++; parts <= 2 {
			b.part(s)
		}
		return err
	})
	if err == nil && parts != 2 {
		err = fmt.Errorf("merge %d has %d parts instead of 2", number, parts)
	}
	return err
}

func (b *mergeBlock) part(s []byte) {
	b.text = append(b.text, s...)
	b.ends = append(b.ends, len(b.text))
}

// resolve looks up the merges of a block.
func (m *mergeReader) resolve(b *mergeBlock) error {
	b.list = make([]merge, 0, len(b.ends)/2)
	var parts [batch][]byte
	var ids [batch]int32
	from := 0
	for at := 0; at < len(b.ends); at += batch {
		n := 0
		for _, end := range b.ends[at:min(at+batch, len(b.ends))] {
			if from == end {
				return fmt.Errorf("merge %d has an empty part", b.first+(at+n)/2)
			}
			parts[n] = b.text[from:end]
			from = end
			n++
		}
		m.vocab.index.findBatch(parts[:n], ids[:])
		for i := 0; i < n; i += 2 {
			left, right := parts[i], parts[i+1]
			// The parts are neighbours in text, so that joining them is a longer slice.
			whole := left[:len(left)+len(right)]
			if m.prefix > 0 {
				whole = append(bytes.Clone(left), right[min(m.prefix, len(right)):]...)
			}
			id, ok := m.result(b, whole)
			if !ok || ids[i] < 0 || ids[i+1] < 0 {
				return fmt.Errorf("merge %d of %s and %s: a part or the result is not in the vocabulary",
					b.first+len(b.list), quoted(string(left)), quoted(string(right)))
			}
			b.seam.merge(left, right)
			b.list = append(b.list, merge{ids[i], ids[i+1], id})
		}
	}
	return nil
}

// result returns the id of what two parts merge to. Most vocabularies have those in
// the order of the merges, which saves looking them up.
func (m *mergeReader) result(b *mergeBlock, whole []byte) (int32, bool) {
	if n := len(b.list); n > 0 {
		if id := b.list[n-1].id + 1; m.vocab.has(id) && m.vocab.text[id] == string(whole) {
			return id, true
		}
	}
	return m.vocab.index.findBytes(whole)
}
