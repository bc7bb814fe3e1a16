package grammar

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
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
	rest    int32 // how much more it took at most for intersections to be matched
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
	if tier == everyTier {
		return v.find(s, e, tier, &ms.tiers[0])
	}
	bytes := int32(min(tierBytes[tier], v.longest))
	at, least := s.g.horizon(e, bytes)
	m := v.find(s, at, tier, &ms.tiers[tier+1])
	if m != nil && m.rest > least-bytes { // a counter may tell whether there is a text at all
		m = v.find(s, e, tier, &ms.tiers[tier+1])
	}
	return m
}

// find gives the mask of a state from the cache, or makes it.
func (v *Vocab) find(s *stack, e *Expr, tier int, to *atomic.Pointer[cached]) *mask {
	p := v.cache.place(maskKey{e.digest, tier})
	to.Store(p)
	if m := p.mask.Load(); m != nil {
		p.used.Store(true)
		return m
	}
	m := v.newMask(s, e, tier)
	if m != nil {
		v.cache.put(p, m)
	}
	return m
}

// horizon is a state as what is taken for it over the next so many bytes.
type horizon struct {
	of     *Expr
	bytes  int32
	within bool // an intersection
}

// horizon replaces counters that tell no difference within so many bytes. Those of intersections tell none if what remains to be
// matched after these bytes is no longer than least less them.
func (g *Grammar) horizon(e *Expr, bytes int32) (at *Expr, least int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	least = unlimited
	if e.boolean {
		e.parts(map[*Expr]bool{}, func(e *Expr) bool {
			if e.kind == isRepeat && e.max > bytes {
				least = min(least, e.max)
			}
			return true
		})
	}
	return g.cut(horizon{e, bytes, false}), least
}

func (g *Grammar) cut(h horizon) *Expr {
	e := h.of
	if !e.counts || e.kind == isNot || e.kind == isMembers || e.kind == isMore {
		return e
	}
	if n := g.horizons[h]; n != nil {
		return n
	}
	part := func(e *Expr) *Expr { return g.cut(horizon{e, h.bytes, h.within || h.of.kind == isAnd}) }
	var n *Expr
	switch e.kind {
	case isCat:
		var parts []*Expr
		at := e
		for ; at.kind == isCat && at.counts; at = at.b {
			parts = append(parts, at.a)
		}
		n = part(at)
		for _, p := range slices.Backward(parts) {
			n = g.t.cat(part(p), n)
		}
	case isOr, isAnd:
		parts := make([]*Expr, len(e.args))
		for i, a := range e.args {
			parts[i] = part(a)
		}
		if n = g.t.or(parts...); e.kind == isAnd {
			n = g.t.and(parts...)
		}
	case isRepeat:
		least, most := e.min, maxOf(e.max)
		if e.max > h.bytes { // each time takes a byte or more
			most = -1
		}
		if !h.within {
			least = min(least, h.bytes+1)
		}
		n = g.t.repeat(part(e.a), int(least), most)
	}
	g.horizons[h] = n
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
	rest   int32 // see mask
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
	t, base := w.t, 0 // depth of the stack's first place
	for i := 0; i < len(t.nodes) && !w.s.budget.Spent(); {
		k := &t.nodes[i]
		depth := int(k.depth)
		w.s.budget.spend(1)
		at := w.levels[depth-1]
		w.levels = w.levels[:depth]
		var fits, left bool
		if at != nil {
			if stays := charKinds(at.state.stays.Load()); k.kinds&^stays == 0 {
				w.fit(t.ids[k.from:t.last(k)])
				i = int(k.end)
				continue
			}
			next := w.s.g.step(at, k.b, w.s.budget)
			if len(next.tops) == 0 {
				if next.next == nil {
					i = int(k.end)
					continue
				}
				if next.next == at && int(k.end) > i+fewNodes {
					w.s.g.findStays(at, w.s.budget)
				}
				w.need(next.next)
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
			for _, it := range top {
				w.need(it.at)
			}
			fits, left = len(top) > 0, w.s.done()
		}
		if !fits {
			i = int(k.end)
			continue
		}
		if left && int(k.end) > i+1 {
			w.left = append(w.left, i)
		}
		w.fit(t.ids[k.from:k.to])
		i++
	}
}

// need takes note of how much more it takes for the intersections that a state begins with.
func (w *walker) need(e *Expr) {
	if !e.boolean {
		return
	}
	switch e.kind {
	case isAnd, isNot:
		w.rest = max(w.rest, e.state.rest)
	case isCat:
		w.need(e.a)
	case isOr:
		for _, a := range e.args {
			w.need(a)
		}
	}
}

func (w *walker) fit(ids []int32) {
	for _, id := range ids {
		w.words[id/64] |= 1 << (id % 64)
	}
	w.found += len(ids)
	w.s.budget.spend(len(ids) / 4)
}

// mask is what was found.
func (w *walker) mask() *mask {
	m := &mask{rest: w.rest}
	var leaving []token
	for _, i := range w.left {
		k := &w.t.nodes[i]
		for _, id := range w.t.ids[k.to:w.t.last(k)] {
			if w.words[id/64]>>(id%64)&1 != 0 {
				continue
			}
			if leaving = append(leaving, token{w.v.text(id)[k.depth:], id}); len(leaving) > mostLeaving {
				return &mask{rest: w.rest, wide: true}
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

// fewNodes are looked at sooner than asking whether they need it.
const fewNodes = 8

// findStays finds the kinds of characters that leave a state as it is, whichever of them comes.
func (g *Grammar) findStays(e *Expr, u *Budget) {
	if e.state.stays.Load() != 0 {
		return
	}
	kinds := ^noChars
	for b := range utf8.RuneSelf {
		if s := g.step(e, byte(b), u); s.next != e || len(s.tops) > 0 {
			kinds &^= kindOf(byte(b))
		}
	}
	if !g.staysBeyond(e, u) {
		kinds &^= beyond
	}
	if !u.Spent() {
		e.state.stays.Store(uint32(kinds) | 1<<8) // which is known
	}
}

// staysBeyond tells whether all characters that ASCII has not leave a state as it is.
func (g *Grammar) staysBeyond(e *Expr, u *Budget) bool {
	type pair struct{ at, rest *Expr }
	list := []pair{{e, g.beyond}}
	for i := 0; i < len(list); i++ {
		p := list[i]
		for b := utf8.RuneSelf; b < 256; b++ {
			if !p.rest.first.Has(byte(b)) {
				continue
			}
			s := g.step(p.at, byte(b), u)
			if s.next == nil || len(s.tops) > 0 || u.Spent() {
				return false
			}
			g.mu.Lock()
			next := pair{s.next, g.t.derive(p.rest, byte(b), u)}
			g.mu.Unlock()
			switch {
			case next.rest == g.end && next.at != e:
				return false
			case next.rest != g.end && !slices.Contains(list, next):
				list = append(list, next)
			}
		}
	}
	return true
}
