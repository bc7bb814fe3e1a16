package kv

import "encoding/binary"

// Tag stands for a salt where what is stored is counted and dropped: it is the 31 bits of the salt in a key's first element, 0
// for the zero Salt. Among a hundred salts, two have the same tag once in 400,000 times; then both are counted and dropped
// together.
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

// Stored fills a map with what there is under every tag. The caller passes the same map every time; it is left alone while
// nothing changes.
func (p *Prefix) Stored(to map[Tag]Stored) {
	if !p.changed {
		return
	}
	p.changed = false
	clear(to)
	for tag, s := range p.stored {
		to[tag] = *s
	}
}

// count adds to what is stored under a tag.
func (p *Prefix) count(tag Tag, entries int, bytes int64) {
	p.changed = true
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

// addLeaf and removeLeaf list a node as evictable, and no more.
func (p *Prefix) addLeaf(n *node) {
	p.leaves.Push(n)
	p.count(n.tag, 1, 0)
}

func (p *Prefix) removeLeaf(n *node) {
	if n.Listed() {
		p.leaves.Remove(n)
		p.count(n.tag, -1, 0)
	}
}

// DropTag evicts everything under a tag that no sequence uses.
func (p *Prefix) DropTag(tag Tag) int64 {
	return p.clear(func(n *node) bool { return n.tag == tag })
}
