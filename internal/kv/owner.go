package kv

import (
	"encoding/binary"
	"math"
	"slices"
)

// Salt separates what is stored for one party from what is stored for others: keys under different salts have no
// beginning in common, so nobody's hits, misses or parting offsets depend on what others sent. The zero Salt changes
// nothing. Pages, budget and eviction stay shared.
//
// It is a digest of which 124 bits are used, 31 on each of the first saltedElems elements, over a bit that no other
// element has set. Two parties would share a page only if all of them agreed, and less than a page is never shared.
type Salt [16]byte

const saltedElems = 4

// Elem is element e at position pos of a key under the salt.
func (s *Salt) Elem(pos int, e Elem) Elem {
	if pos >= saltedElems || *s == (Salt{}) {
		return e
	}
	part := binary.BigEndian.Uint32(s[4*pos:]) | 1<<31
	return e ^ Elem(part)<<32
}

// Owner is who left something in the tree.
type Owner struct {
	Session uint64 // of whom; 0: not known
	Party   uint64 // who may be told about it, see Owns; 0: nobody
	Marked  bool   // they said that it is worth keeping
}

// Terms bound what the tree keeps beyond its share of the budget. Zero fields do not.
type Terms struct {
	TTL      int64 // what was not used for so long is forgotten, in the unit of Tick
	Sessions int   // of more, what the one not heard of longest left is forgotten; zero: sessions are not told apart
	Idle     int64 // bytes that only the tree holds
}

// mark is what a node knows about its users.
type mark struct {
	session uint64 // the last one that ended here
	party   uint64 // whose it was
	reach   int    // how many positions of that, from the root on
	bonus   int    // see Credit
	used    int64  // time of the last use
}

// SetTerms changes the terms. They apply from the next Tick, Credit or TrimIdle on.
func (p *Prefix) SetTerms(t Terms) { p.kept.TTL, p.kept.Sessions, p.idle = t.TTL, t.Sessions, t.Idle }

// Sessions counts the sessions of which something may be stored.
func (p *Prefix) Sessions() int { return p.kept.Known() }

// Tick tells the time, which never goes back, and forgets what has expired. Between two Ticks, time stands still.
func (p *Prefix) Tick(now int64) (freed int64) {
	p.now = max(p.now, now)
	if t := p.kept.TTL; t > 0 && p.now-p.swept >= max(t/16, 1) {
		p.swept = p.now
		freed = p.forget(func(n *node) bool { return p.kept.Expired(n.used, p.now) })
	}
	return freed
}

// Credit notes that o left the branch that ends with key, or ended in the middle of it. What a session that has come
// back left, and what was marked, each count like one more start from there (see use). A session too many makes the tree
// forget the one that was not heard of longest.
func (p *Prefix) Credit(key []Elem, o Owner) {
	n, at := p.walk(key)
	if n.parent == nil {
		return
	}
	n.party, n.reach = o.Party, at
	if o.Session == 0 && !o.Marked {
		return
	}
	n.session, n.bonus = o.Session, 0
	if o.Marked {
		n.bonus++
	}
	visits, gone := p.kept.Visit(o.Session)
	if visits > 1 {
		n.bonus++
	}
	p.use(n)
	if gone != 0 {
		p.forget(func(n *node) bool { return n.session == gone })
	}
}

// Owns reports whether what is stored parts from key inside both, and the party itself left all that key has in common with
// it: then the place says nothing about what others left. It errs towards no: of two parties that left the same, only
// the last is known.
func (p *Prefix) Owns(key []Elem, party uint64) bool {
	n, at := p.walk(key)
	if party == 0 || at == 0 || kind(n, at, len(key)) != LCP {
		return false
	}
	for _, end := range p.leaves {
		if end.party != party || end.reach < at {
			continue
		}
		x := end
		for x.from >= at {
			x = x.parent
		}
		if x == n {
			return true
		}
	}
	return n.party == party && n.reach >= at
}

// Drop forgets everything that no sequence uses.
func (p *Prefix) Drop() int64 { return p.forget(func(*node) bool { return true }) }

// TrimIdle frees what only the tree holds beyond Terms.Idle.
func (p *Prefix) TrimIdle() int64 {
	if over := p.alloc.Idle() - p.idle; p.idle > 0 && over > 0 {
		return p.Evict(over)
	}
	return 0
}

// forget cuts off branches from their ends as long as gone says so of the last node and no sequence uses it.
func (p *Prefix) forget(gone func(*node) bool) (freed int64) {
	for work := slices.Clone(p.leaves); len(work) > 0; {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if !gone(n) {
			continue
		}
		p.pull(n)
		freed += p.cut(n, math.MaxInt64)
		if len(n.key) > 0 { // in use
			p.push(n)
			continue
		}
		up := n.parent
		if p.remove(n); up.Listed() {
			work = append(work, up)
		}
	}
	return freed
}
