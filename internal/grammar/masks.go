package grammar

import (
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Tokens that fit a state of a rule are found once for a model and remembered, for all grammars that have the rule. What counts
// has as many states as it counts, and nearly all of them are alike for a token, which is short: so tokens are in tiers by
// their length, and for each the state is looked at only as far as its tokens reach.
var tierBytes = [...]int{16, 48, longestToken}

// everyTier is behind the tiers: all tokens.
const everyTier = len(tierBytes)

// masks are what a state remembers of a vocabulary.
type masks struct {
	vocab *Vocab
	tiers [everyTier + 1]atomic.Pointer[cached]
}

// mask is the tokens that fit a state, by themselves or as bits. It may be told by what differs from another mask: after most
// tokens the state is the one that the other's would be.
type mask struct {
	like    *mask   // nil: none
	differs []int32 // tokens that are as ids has them, not as like
	words   []uint64
	ids     []int32
	leaving *trie // what follows in tokens that leave the rule; nil if there are none
	wide    bool  // too many leave it: they are tried where they are needed
	rest    int32 // how much more it took at most for intersections to be matched
	likes   int   // masks in the cache that are like it, see maskCache.put
}

// size is about the memory of a mask, with its place in the cache.
func (e *mask) size() int {
	n := 8*len(e.words) + 4*cap(e.ids) + 4*cap(e.differs) + 240
	if e.leaving != nil {
		n += 16*len(e.leaving.nodes) + 4*len(e.leaving.ids) + 64
	}
	return n
}

// mostMasks bounds the memory of the masks of a model, mostLeaving the tokens that leave a rule.
const (
	mostMasks   = 44 << 20
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

// get is the place of a mask that is there, else nil.
func (c *maskCache) get(key maskKey) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[key]
}

// put keeps a mask and drops others, but none that another one is like: it would hold that memory uncounted.
func (c *maskCache) put(key maskKey, e *mask) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.all[key]; p != nil { // somebody else was first
		return p
	}
	p := &cached{key: key}
	p.mask.Store(e)
	p.used.Store(true)
	if c.all == nil {
		c.all = map[maskKey]*cached{}
	}
	c.all[key] = p
	c.ring = append(c.ring, p)
	if e.like != nil {
		e.like.likes++
	}
	for c.bytes += e.size(); c.bytes > mostMasks && len(c.ring) > 1; {
		c.hand %= len(c.ring)
		old := c.ring[c.hand]
		m := old.mask.Load()
		if old.used.Swap(false) || m.likes > 0 {
			c.hand++
			continue
		}
		old.mask.Store(nil)
		if m.like != nil {
			m.like.likes--
		}
		c.bytes -= m.size()
		delete(c.all, old.key)
		c.ring[c.hand] = c.ring[len(c.ring)-1]
		c.ring = c.ring[:len(c.ring)-1]
	}
	return p
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

// entry is the mask of a state, nil if the budget is spent.
func (v *Vocab) entry(w *walker, e *Expr, tier int) *mask {
	ms := e.state.masks.Load()
	if ms == nil || ms.vocab != v {
		ms = &masks{vocab: v}
		e.state.masks.Store(ms)
	}
	to := &ms.tiers[tier]
	if p := to.Load(); p != nil {
		if m := p.mask.Load(); m != nil {
			if !p.used.Load() {
				p.used.Store(true)
			}
			return m
		}
	}
	if tier == everyTier {
		return v.find(w, e, tier, to)
	}
	bytes := int32(min(tierBytes[tier], v.longest))
	at, least := w.s.g.horizon(e, bytes)
	m := v.find(w, at, tier, to)
	if m != nil && m.rest > least-bytes { // a counter may tell whether there is a text at all
		m = v.find(w, e, tier, to)
	}
	return m
}

// find gives the mask of a state from the cache, or makes it. It is remembered in to.
func (v *Vocab) find(w *walker, e *Expr, tier int, to *atomic.Pointer[cached]) *mask {
	key := maskKey{e.digest, tier}
	if p := v.cache.get(key); p != nil {
		if m := p.mask.Load(); m != nil {
			p.used.Store(true)
			to.Store(p)
			return m
		}
	}
	m := w.mask(v, e, tier)
	if m != nil {
		to.Store(v.cache.put(key, m))
	}
	return m
}

// horizon is a state as what is taken for it over the next so many bytes.
type horizon struct {
	of     *Expr
	bytes  int32
	within bool // an intersection
}

// seen is a state that was looked at so far, and the smallest counter that was replaced in an intersection.
type seen struct {
	at    *Expr
	least int32
}

// horizon replaces counters that tell no difference within so many bytes. Those of intersections tell none if what remains to be
// matched after these bytes is no longer than least less them.
func (g *Grammar) horizon(e *Expr, bytes int32) (at *Expr, least int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.cut(horizon{e, bytes, false})
	return s.at, s.least
}

func (g *Grammar) cut(h horizon) seen {
	e := h.of
	if !e.counts || e.kind == isNot || e.kind == isMembers || e.kind == isMore {
		return seen{e, unlimited}
	}
	if n, ok := g.horizons[h]; ok {
		return n
	}
	n := seen{least: unlimited}
	part := func(e *Expr) *Expr {
		p := g.cut(horizon{e, h.bytes, h.within || h.of.kind == isAnd})
		n.least = min(n.least, p.least)
		return p.at
	}
	switch e.kind {
	case isText, isCat:
		return g.cutAll(h)
	case isOr, isAnd:
		parts := make([]*Expr, len(e.args))
		for i, a := range e.args {
			parts[i] = part(a)
		}
		if e.kind == isOr {
			n.at = g.t.or(parts...)
		} else {
			n.at = g.t.and(parts...)
		}
	case isRepeat:
		least, most := e.min, maxOf(e.max)
		if e.max > h.bytes { // each time takes a byte or more
			most = -1
		}
		if !h.within {
			least = min(least, h.bytes+1)
		} else if most != maxOf(e.max) {
			n.least = e.max
		}
		n.at = g.t.repeat(part(e.a), int(least), most)
	}
	g.horizons[h] = n
	return n
}

// cutAll is cut of a sequence, which is remembered for each of its ends.
func (g *Grammar) cutAll(h horizon) seen {
	var ends []*Expr
	at := h.of
	for ; (at.kind == isText || at.kind == isCat) && at.counts; at = at.b {
		if _, ok := g.horizons[horizon{at, h.bytes, h.within}]; ok {
			break
		}
		ends = append(ends, at)
	}
	n := g.cut(horizon{at, h.bytes, h.within})
	for _, e := range slices.Backward(ends) {
		if e.kind == isText {
			n.at = g.t.text(e.text, n.at)
		} else {
			p := g.cut(horizon{e.a, h.bytes, h.within})
			n = seen{g.t.cat(p.at, n.at), min(n.least, p.least)}
		}
		g.horizons[horizon{e, h.bytes, h.within}] = n
	}
	return n
}

// walker finds the tokens of a trie that fit a state. It is used again and again.
type walker struct {
	s     stack
	t     *trie
	rows  []row
	at    []walked // by depth
	spans spans    // of ids that fit
	alike spans    // of ids that are as they are of another state
	left  []exit   // nodes behind which the rule may have been left
	after []token  // what follows in tokens that left it
	rest  int32    // see mask
	inner bool     // it looks for what another mask is like, which is like no other
	base  int      // depth of the stack's first byte
}

// walked is where the bytes of a walk lead: the state, nil where rules were called and it is the stack that knows, and beside it
// where the other state would be.
type walked struct{ at, beside *Expr }

type exit struct {
	node  *branch
	depth int
}

// mask finds the tokens that fit a state. It is nil if the budget is spent.
func (w *walker) mask(v *Vocab, e *Expr, tier int) *mask {
	beside, like := w.like(v, e, tier)
	m := &mask{like: like}
	w.after, w.rest = w.after[:0], 0
	for _, t := range v.triesOf(tier) {
		w.t, w.spans, w.alike, w.left = t, w.spans[:0], w.alike[:0], w.left[:0]
		w.at = append(w.at[:0], walked{e, beside})
		if w.rows = t.walk(w.rows, w.s.budget, w.visit); w.s.budget.Spent() {
			return nil
		}
		if !w.collect(v, m) {
			return &mask{rest: w.rest, wide: true}
		}
	}
	if w.s.budget.spend(16 * len(w.after)); len(w.after) > 0 {
		m.leaving = newTrie(w.after)
	}
	if m.rest = w.rest; like != nil {
		m.rest = max(m.rest, like.rest)
	} else if len(m.ids) >= 2*v.words() {
		m.words = make([]uint64, v.words())
		for _, id := range m.ids {
			m.words[id/64] |= 1 << (id % 64)
		}
		m.ids = nil
	}
	return m
}

// like finds a state that most tokens lead to with their first byte and that stays as it is with that: from there on both are
// alike. It is nil if there is none.
func (w *walker) like(v *Vocab, e *Expr, tier int) (*Expr, *mask) {
	if w.inner {
		return nil, nil
	}
	tokens := map[*Expr]int32{}
	t := v.triesOf(tier)[0] // which has nearly all of them
	for _, k := range t.nodes[1 : 1+t.nodes[0].children] {
		if k.last-k.from <= int32(len(t.ids)>>8) || !e.first.Has(k.b) {
			continue
		}
		s := w.s.step(e, k.b)
		if s.next == nil || s.next == e || s.into != nil || w.s.step(s.next, k.b) != &s.next.state.as {
			continue
		}
		if tokens[s.next] += k.last - k.from; int(tokens[s.next]) < len(t.ids)/4 {
			continue
		}
		var at atomic.Pointer[cached]
		w.inner = true
		m := v.find(w, s.next, tier, &at)
		if w.inner = false; m != nil && !m.wide && m.like == nil {
			return s.next, m
		}
		return nil, nil
	}
	return nil, nil
}

// visit looks at a node and tells whether to go on below it. As long as no rule is called one state is all there is to know.
func (w *walker) visit(k *branch, depth int) (further bool) {
	at, beside := w.at[depth-1].at, w.at[depth-1].beside
	w.s.budget.spend(1)
	var next *Expr
	var left bool
	if beside != nil {
		step := w.s.step(beside, k.b)
		if beside = step.next; step.into != nil {
			beside = nil
		}
	}
	switch {
	case at == nil:
		w.s.back(depth - w.base + 1)
		if !w.s.push(k.b) {
			return false
		}
		left = w.s.done()
	case !at.first.Has(k.b):
		return false
	case k.kinds&^charKinds(at.state.stays.Load()) == 0:
		w.fit(k.from, k.last)
		return false
	default:
		step := w.s.step(at, k.b)
		if step.into != nil {
			w.s.begin(at)
			w.s.push(k.b)
			w.base = depth
			left = w.s.done()
			break
		}
		switch next = step.next; {
		case next == nil:
			return false
		case next == beside:
			w.alike.add(k.from, k.last)
			return false
		case next == at && k.last-k.from > fewTokens:
			w.s.g.findStays(at, w.s.budget)
		}
		left = next.nullable
		if beside != nil && beside.nullable != left { // it goes on behind the rule, which the other one does not
			beside = nil
		}
		w.need(next)
	}
	if next == nil {
		for _, it := range w.s.top() {
			w.need(it.at)
		}
	}
	w.fit(k.from, w.t.to(k))
	if left && k.children > 0 {
		w.left = append(w.left, exit{k, depth})
	}
	w.at = append(w.at[:depth], walked{next, beside})
	return next != w.s.g.end
}

// fit takes note of tokens that fit.
func (w *walker) fit(from, to int32) {
	w.s.budget.spend(int(to-from) / 4)
	w.spans.add(from, to)
}

// spans are places of ids in a trie, in their order.
type spans []span

type span struct{ from, to int32 }

func (s *spans) add(from, to int32) {
	switch n := len(*s); {
	case from == to:
	case n > 0 && (*s)[n-1].to == from:
		(*s)[n-1].to = to
	default:
		*s = append(*s, span{from, to})
	}
}

func (s spans) has(place int32) bool {
	_, ok := slices.BinarySearchFunc(s, place, func(s span, place int32) int {
		switch {
		case s.to <= place:
			return -1
		case s.from > place:
			return 1
		}
		return 0
	})
	return ok
}

// ids appends those at the places.
func (s spans) ids(dst []int32, t *trie) []int32 {
	n := 0
	for _, p := range s {
		n += int(p.to - p.from)
	}
	dst = slices.Grow(dst, n)
	for _, p := range s {
		dst = append(dst, t.ids[p.from:p.to]...)
	}
	return dst
}

// others are the places of a trie that are not there.
func (s spans) others(t *trie) (o spans) {
	at := int32(0)
	for _, p := range s {
		o.add(at, p.from)
		at = p.to
	}
	o.add(at, int32(len(t.ids)))
	return o
}

// collect adds to a mask what was found in a trie. It reports false if too many tokens leave the rule.
func (w *walker) collect(v *Vocab, m *mask) bool {
	if m.like != nil {
		m.differs = w.alike.others(w.t).ids(m.differs, w.t)
	}
	m.ids = w.spans.ids(m.ids, w.t)
	for _, x := range w.left {
		for place := w.t.to(x.node); place < x.node.last; place++ {
			if w.spans.has(place) || w.alike.has(place) {
				continue
			}
			id := w.t.ids[place]
			if w.after = append(w.after, token{v.text(id)[x.depth:], id}); len(w.after) > mostLeaving {
				return false
			}
		}
	}
	return true
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

// fewTokens are looked at sooner than asking whether they need it.
const fewTokens = 8

// findStays finds the kinds of characters that leave a state as it is, whichever of them comes.
func (g *Grammar) findStays(e *Expr, u *Budget) {
	if e.state.stays.Load() != 0 {
		return
	}
	kinds := ^noChars
	for b := range utf8.RuneSelf {
		if s := g.step(e, byte(b), u); s.next != e || s.into != nil {
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
			if s.next == nil || s.into != nil || u.Spent() {
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
