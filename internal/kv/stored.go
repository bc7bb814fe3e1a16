package kv

import "encoding/binary"

// Tag tells what is stored under one salt from what is stored under others: the 31 bits of a salt that a key's first element
// carries. It is 0 of the zero Salt. Of a hundred salts, two have the same one once in 400,000 times; then what is counted and
// dropped by it is of both.
type Tag uint32

// Tag is the tag of keys under the salt.
func (s *Salt) Tag() Tag {
	if *s == (Salt{}) {
		return 0
	}
	return Tag(binary.BigEndian.Uint32(s[:]) | 1<<31)
}

// TagOf is the tag of a key, by its first element.
func TagOf(first Elem) Tag {
	if first>>63 == 0 {
		return 0
	}
	return Tag(first >> 32)
}

// Stored is how much there is under one tag.
type Stored struct {
	Entries int
	Bytes   int64
}

// Stored lists what there is under every tag that has something. It is given the same map every time, and leaves that alone
// while nothing changes.
func (p *Prefix) Stored(to map[Tag]Stored) {
	if !p.moved {
		return
	}
	p.moved = false
	clear(to)
	for tag, s := range p.stored {
		to[tag] = *s
	}
}

// count adds to what is stored under a tag.
func (p *Prefix) count(tag Tag, entries int, bytes int64) {
	p.moved = true
	s := p.stored[tag]
	if s == nil {
		s = &Stored{}
		if p.stored == nil {
			p.stored = map[Tag]*Stored{}
		}
		p.stored[tag] = s
	}
	s.Entries += entries
	s.Bytes += bytes
	if *s == (Stored{}) {
		delete(p.stored, tag)
	}
	p.bytes += bytes
}

// push and pull list a node as evictable, and no more.
func (p *Prefix) push(n *node) {
	p.leaves.Push(n)
	p.count(n.tag, 1, 0)
}

func (p *Prefix) pull(n *node) {
	if n.Listed() {
		p.leaves.Remove(n)
		p.count(n.tag, -1, 0)
	}
}

// DropTag forgets everything under a tag that no sequence uses.
func (p *Prefix) DropTag(tag Tag) int64 { return p.forget(func(n *node) bool { return n.tag == tag }) }
