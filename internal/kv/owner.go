package kv

import (
	"encoding/binary"
	"math"
	"slices"
)

// Salt separates the prompts of one party from those of others: keys under different salts never share a prefix, so no hit, miss
// or length of a match depends on what others sent. The zero Salt changes nothing. Pages, budget and eviction stay shared.
//
// A salt is a digest. 124 of its bits are used: 31 in each of the first saltedElems elements of a key, which also get their top
// bit set, as no other element has. Two parties could share a page only if all of these bits agreed.
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

// Owner says whose sequence left something in the tree.
type Owner struct {
	Session uint64 // a conversation or agent; 0: not known
	Party   uint64 // a client, which may be told about it, see Owns; 0: nobody
	Marked  bool   // the client asked for it to be cached
}

// Terms limit how long the tree keeps what memory has room for. A zero field is no limit.
type Terms struct {
	TTL      int64 // what was not used for so long is evicted, in the unit of Expire
	Sessions int   // with more than these, what the least recently used session left is evicted; 0: sessions do not matter
	Idle     int64 // bytes that only the tree holds
}

// lastOwner is what a node knows about who used it.
type lastOwner struct {
	session uint64 // whose sequence ended here last
	party   uint64 // likewise
	reach   int    // positions from the root to where that sequence ended
	bonus   int    // see Credit
	used    int64  // time of the last use
}

// SetTerms changes the terms. They apply from the next Expire, Credit or TrimIdle on.
func (p *Prefix) SetTerms(t Terms) { p.kept.TTL, p.kept.Sessions, p.idle = t.TTL, t.Sessions, t.Idle }

// Sessions counts the sessions of which something may be stored.
func (p *Prefix) Sessions() int { return p.kept.Known() }

// Expire sets the time, which never goes back, and evicts what has expired. Until the next call time stands still.
func (p *Prefix) Expire(now int64) (freed int64) {
	p.now = max(p.now, now)
	if t := p.kept.TTL; t > 0 && p.now-p.expired >= max(t/16, 1) {
		p.expired = p.now
		freed = p.evictWhere(func(n *node) bool { return p.kept.Expired(n.used, p.now) })
		p.evicted.Expired += freed
	}
	return freed
}

// Credit records that a sequence of o ended at key. If o is a session that has come back, or is marked, each counts like one more
// start from there (see use). When there are more than Terms.Sessions, the least recently used one is evicted.
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
		p.evicted.Limit += p.evictWhere(func(n *node) bool { return n.session == gone })
	}
}

// Owns reports whether the prefix that key shares with the tree ends inside both and all of it was left by party. Then the length
// of that prefix may be told to the party, since it says nothing about what others sent. Where two parties left the same prefix
// only the last one is known, so that the other one gets false. instead is what the party left last there where key goes on
// otherwise: at most longestInstead elements, or none if the party's own ends there.
func (p *Prefix) Owns(key []Elem, party uint64) (own bool, instead []Elem) {
	n, at := p.walk(key)
	if party == 0 || at == 0 || kind(n, at, len(key)) != LCP {
		return false, nil
	}
	last := (*node)(nil)
	for _, end := range p.leaves {
		if end.party != party || end.reach < at || last != nil && last.reach > at && (end.used < last.used || end.reach == at) {
			continue
		}
		x := end
		for x.from >= at {
			x = x.parent
		}
		if x == n {
			last = end
		}
	}
	switch {
	case last != nil:
	case n.party == party && n.reach >= at:
		last = n
	default:
		return false, nil
	}
	to := min(last.reach, at+longestInstead)
	for x := last; x != n; x = x.parent {
		if x.from < to {
			instead = append(slices.Clone(x.key[:min(to, x.to())-x.from]), instead...)
		}
	}
	if to = min(to, n.to()); to > at {
		instead = append(slices.Clone(n.key[at-n.from:to-n.from]), instead...)
	}
	return true, instead
}

// longestInstead is what Owns tells of what is stored.
const longestInstead = 40

// Drop evicts everything that no sequence uses.
func (p *Prefix) Drop() int64 { return p.clear(func(*node) bool { return true }) }

// clear is evictWhere for who asks for it.
func (p *Prefix) clear(gone func(*node) bool) int64 {
	freed := p.evictWhere(gone)
	p.evicted.Cleared += freed
	return freed
}

// TrimIdle frees what only the tree holds beyond Terms.Idle.
func (p *Prefix) TrimIdle() int64 {
	if over := p.alloc.Idle() - p.idle; p.idle > 0 && over > 0 {
		freed := p.evict(over)
		p.evicted.Limit += freed
		return freed
	}
	return 0
}

// evictWhere shortens branches from their ends, as long as gone says so of the last node and no sequence uses it.
func (p *Prefix) evictWhere(gone func(*node) bool) (freed int64) {
	for work := slices.Clone(p.leaves); len(work) > 0; {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if !gone(n) {
			continue
		}
		p.removeLeaf(n)
		freed += p.evictEnd(n, math.MaxInt64)
		if len(n.key) > 0 { // in use
			p.addLeaf(n)
			continue
		}
		up := n.parent
		if p.remove(n); up.Listed() {
			work = append(work, up)
		}
	}
	return freed
}
