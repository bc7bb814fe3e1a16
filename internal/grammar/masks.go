package grammar

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// Tokens that fit a state of a rule are found once for a model and remembered, for all grammars that have the rule. What counts
// has as many states as it counts, and nearly all of them are alike for a token, which is short: so tokens are in tiers by
// their length, and for each the state is looked at only as far as its tokens reach.
const tiers = 3

var tierBytes = [tiers]int{16, 48, longestToken}

// everyTier is the tree of all tokens.
const everyTier = -1

// masks are what a state remembers of a vocabulary.
type masks struct {
	vocab *Vocab
	tiers [tiers + 1]atomic.Pointer[cached] // by tier+1
}

// mask is the tokens that fit a state, by themselves or as bits.
type mask struct {
	words   []uint64
	ids     []int32
	leaving *tree // what follows in tokens that leave the rule; nil if there are none
	wide    bool  // too many leave it: they are tried where they are needed
}

func (e *mask) addTo(dst []uint64) {
	for i, w := range e.words {
		dst[i] |= w
	}
	for _, id := range e.ids {
		dst[id/64] |= 1 << (id % 64)
	}
}

// size is about the memory of a mask.
func (e *mask) size() int {
	n := 8*len(e.words) + 4*len(e.ids) + 200
	if e.leaving != nil {
		n += 16*len(e.leaving.nodes) + 4*len(e.leaving.ids)
	}
	return n
}

// mostMasks bounds the memory of the masks of a model, mostLeaving the tokens that leave a rule.
const (
	mostMasks   = 48 << 20
	mostLeaving = 1 << 17
)

// maskCache has the masks of a vocabulary. Those that were not used for longest are dropped.
type maskCache struct {
	mu    sync.Mutex
	all   map[maskKey]*cached
	ring  []*cached
	hand  int
	bytes int
}

type maskKey struct {
	state digest
	tier  int
}

// cached is a place for a mask, which is nil when it was dropped.
type cached struct {
	key  maskKey
	mask atomic.Pointer[mask]
	used atomic.Bool
}

// place is where a mask is or will be.
func (c *maskCache) place(key maskKey) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.all[key]
	if p == nil {
		if c.all == nil {
			c.all = map[maskKey]*cached{}
		}
		p = &cached{key: key}
		c.all[key] = p
	}
	return p
}

// put keeps a mask and drops others.
func (c *maskCache) put(p *cached, e *mask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.mask.Load() != nil {
		return
	}
	p.mask.Store(e)
	p.used.Store(true)
	c.all[p.key] = p
	c.ring = append(c.ring, p)
	for c.bytes += e.size(); c.bytes > mostMasks && len(c.ring) > 1; {
		if c.hand %= len(c.ring); c.ring[c.hand].used.Swap(false) {
			c.hand++
			continue
		}
		old := c.ring[c.hand]
		c.bytes -= old.mask.Swap(nil).size()
		delete(c.all, old.key)
		c.ring[c.hand] = c.ring[len(c.ring)-1]
		c.ring = c.ring[:len(c.ring)-1]
	}
}

var (
	onlyEvery = []int{everyTier}
	eachTier  = []int{0, 1, 2}
)

// tiersOf are the tiers that a state is looked at in.
func (v *Vocab) tiersOf(e *Expr) []int {
	if e.counts {
		return eachTier
	}
	return onlyEvery
}

func (v *Vocab) tree(tier int) *tree {
	if tier == everyTier {
		return &v.all
	}
	return &v.tiers[tier]
}

// entry is the mask of a state, nil if the budget is spent.
func (v *Vocab) entry(s *stack, e *Expr, tier int) *mask {
	ms := e.state.masks.Load()
	if ms == nil || ms.vocab != v {
		ms = &masks{vocab: v}
		e.state.masks.Store(ms)
	}
	p := ms.tiers[tier+1].Load()
	if p != nil {
		if m := p.mask.Load(); m != nil {
			if !p.used.Load() {
				p.used.Store(true)
			}
			return m
		}
	}
	at := e
	if tier != everyTier {
		at = s.g.horizon(e, int32(min(tierBytes[tier], v.longest)))
	}
	p = v.cache.place(maskKey{at.digest, tier})
	ms.tiers[tier+1].Store(p)
	if m := p.mask.Load(); m != nil {
		p.used.Store(true)
		return m
	}
	m := v.newMask(s, at, tier)
	if m != nil {
		v.cache.put(p, m)
	}
	return m
}

// horizon is a state as what is taken for it over the next so many bytes.
type horizon struct {
	of    *Expr
	bytes int32
}

func (g *Grammar) horizon(e *Expr, bytes int32) *Expr {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.within(e, bytes)
}

// within replaces counters that tell no difference within so many bytes. Those of intersections and complements may tell whether
// there is a text at all, and stay.
func (g *Grammar) within(e *Expr, bytes int32) *Expr {
	if !e.counts || e.kind == isAnd || e.kind == isNot {
		return e
	}
	key := horizon{e, bytes}
	if n := g.horizons[key]; n != nil {
		return n
	}
	var n *Expr
	switch e.kind {
	case isCat:
		var parts []*Expr
		at := e
		for ; at.kind == isCat && at.counts; at = at.b {
			parts = append(parts, at.a)
		}
		n = g.within(at, bytes)
		for _, p := range slices.Backward(parts) {
			n = g.t.cat(g.within(p, bytes), n)
		}
	case isOr:
		parts := make([]*Expr, len(e.args))
		for i, a := range e.args {
			parts[i] = g.within(a, bytes)
		}
		n = g.t.or(parts...)
	case isRepeat:
		most := maxOf(e.max)
		if e.max > bytes { // each time takes a byte or more
			most = -1
		}
		n = g.t.repeat(g.within(e.a, bytes), int(min(e.min, bytes+1)), most)
	}
	g.horizons[key] = n
	return n
}

// newMask finds the tokens that fit a state. It is nil if the budget is spent.
func (v *Vocab) newMask(from *stack, e *Expr, tier int) *mask {
	t := v.tree(tier)
	w := &walker{v: v, t: t, s: stack{g: from.g, budget: from.budget}, words: make([]uint64, (len(v.ends)+62)/64)}
	w.walk(e)
	if from.budget.Spent() {
		return nil
	}
	return w.mask()
}

// walker finds the tokens of a tree that fit a state.
type walker struct {
	v      *Vocab
	t      *tree
	s      stack
	levels []*Expr // the state by depth, nil where rules were called and it is the stack that knows
	words  []uint64
	found  int
	left   []int // nodes behind which the rule may have been left
}

// walk visits the tree. As long as no rule is called one state is all there is to know.
func (w *walker) walk(e *Expr) {
	w.levels = append(w.levels, e)
	base := 0 // depth of the stack's first place
	for i := 0; i < len(w.t.nodes) && !w.s.budget.Spent(); {
		k := &w.t.nodes[i]
		depth := int(k.depth)
		w.s.budget.spend(1)
		at := w.levels[depth-1]
		w.levels = w.levels[:depth]
		var fits, left bool
		if at != nil {
			next := w.s.g.step(at, k.b, w.s.budget)
			if len(next.tops) == 0 {
				if next.next == nil {
					i = int(k.end)
					continue
				}
				fits, left = true, next.next.nullable
				w.levels = append(w.levels, next.next)
			} else {
				w.s.begin(at)
				w.s.push(k.b)
				base = depth
				w.levels = append(w.levels, nil)
			}
		} else {
			w.s.back(depth - base + 1)
			w.s.push(k.b)
			w.levels = append(w.levels, nil)
		}
		if w.levels[depth] == nil {
			top := w.s.top()
			fits, left = len(top) > 0, w.s.done()
		}
		if !fits {
			i = int(k.end)
			continue
		}
		if left && int(k.end) > i+1 {
			w.left = append(w.left, i)
		}
		for _, id := range w.t.ids[k.from:k.to] {
			w.words[id/64] |= 1 << (id % 64)
			w.found++
		}
		i++
	}
}

// mask is what was found.
func (w *walker) mask() *mask {
	m := &mask{}
	var leaving []token
	for _, i := range w.left {
		k := &w.t.nodes[i]
		last := int32(len(w.t.ids))
		if int(k.end) < len(w.t.nodes) {
			last = w.t.nodes[k.end].from
		}
		for _, id := range w.t.ids[k.to:last] {
			if w.words[id/64]>>(id%64)&1 != 0 {
				continue
			}
			if leaving = append(leaving, token{w.v.text(id)[k.depth:], id}); len(leaving) > mostLeaving {
				return &mask{wide: true}
			}
		}
	}
	if w.s.budget.spend(16 * len(leaving)); len(leaving) > 0 {
		t := newTree(leaving)
		m.leaving = &t
	}
	if w.found < 2*len(w.words) {
		for i, word := range w.words {
			for ; word != 0; word &= word - 1 {
				m.ids = append(m.ids, int32(i<<6|bits.TrailingZeros64(word)))
			}
		}
		return m
	}
	m.words = w.words
	return m
}
