package sched

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hearth/internal/kv"
)

// TestSimulation runs random traffic over random geometries to the end: prompts that begin alike, answers, scores,
// clients that leave, steps that fail. Pages have contents here: a position holds a hash of all tokens up to it, made
// from what the position before it holds, so a page that was lost, mixed up or written by two shows in the answer. After
// every plan and every step it checks the invariants (nothing leaked, nothing written while shared, the budget kept),
// (and, where there is recurrent state, that the slot's is that of the tokens run, restored from snapshots or
// not), that everybody who decodes is served, and that all a sequence can see is what it would have computed alone; at
// the end that each got the answer it would get alone, and that eviction leaves nothing.
func TestSimulation(t *testing.T) {
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 80
	}
	var all tally
	for seed := range seeds {
		m := newSim(rand.New(rand.NewPCG(seed, 6)))
		if err := m.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all.add(m.tally)
	}
	t.Logf("%d schedules: %+v", seeds, all)
	if all.Snaps == 0 || all.Restored == 0 {
		t.Errorf("no snapshot was taken, or none restored: %+v", all)
	}
	if all.Kept == 0 || all.Kept == all.Drafted {
		t.Errorf("no draft was kept, or all were: %+v", all)
	}
	if all.Joined == 0 || all.Cut == 0 {
		t.Errorf("no span was run, or none in parts: %+v", all)
	}
	if all.Hits == 0 || all.Loaded == 0 || all.Asked == 0 || all.Copies == 0 || all.Preempted == 0 || all.Failed == 0 || all.Cancelled == 0 || all.Scored == 0 {
		t.Errorf("something never happened: %+v", all)
	}
}

type tally struct {
	Steps, Sequences, Hits, Copies, Cached, Ran, Preempted, Failed, Cancelled, Scored int
	Asked, Loaded                                                                     int // of the disk; pages from it
	Snaps, Restored                                                                   int
	Joined, Cut                                                                       int // tokens behind generated ones, steps without all of them
	Drafted, Kept                                                                     int
}

func (t *tally) add(o tally) {
	t.Steps += o.Steps
	t.Sequences += o.Sequences
	t.Hits += o.Hits
	t.Copies += o.Copies
	t.Cached += o.Cached
	t.Ran += o.Ran
	t.Preempted += o.Preempted
	t.Failed += o.Failed
	t.Cancelled += o.Cancelled
	t.Scored += o.Scored
	t.Asked += o.Asked
	t.Loaded += o.Loaded
	t.Snaps += o.Snaps
	t.Restored += o.Restored
	t.Joined += o.Joined
	t.Drafted += o.Drafted
	t.Kept += o.Kept
	t.Cut += o.Cut
}

type sim struct {
	tally
	r      *rand.Rand
	s      *Scheduler
	a      *kv.Alloc
	geo    kv.Geometry
	chunk  int
	want   int // sequences to submit
	live   map[ID]*Seq
	ends   map[ID]int               // tokens after which it stops by itself
	scored map[ID]int               // rows of a scored prompt seen
	keys   [][]kv.Elem              // prompts and answers so far, to begin like
	pages  []map[kv.PageID][]uint64 // per group: what a position holds
	idle   int                      // empty plans in a row
	disk   *fakeDisk                // nil: memory is all there is
	state  map[kv.SlotID]state      // recurrent
	snaps  map[kv.SnapID]state
}

// state is that of a slot after n tokens: their hash.
type state struct {
	n int
	h uint64
}

func newSim(r *rand.Rand) *sim {
	g := kv.Geometry{PageTokens: 2 << r.IntN(4), Groups: []kv.Group{{PageBytes: 10}}}
	switch r.IntN(4) {
	case 0:
		g.Groups = append(g.Groups, kv.Group{Window: 1 + r.IntN(60), PageBytes: 7})
	case 1:
		g.Groups = []kv.Group{{Window: 1 + r.IntN(40), PageBytes: 3}, {Window: 40 + r.IntN(40), PageBytes: 5}}
	}
	if r.IntN(3) == 0 {
		g.FixedBytes, g.SnapBytes, g.DraftBytes = 20, int64(1+r.IntN(30)), int64(r.IntN(60))
	}
	m := &sim{r: r, geo: g, state: map[kv.SlotID]state{}, snaps: map[kv.SnapID]state{}, chunk: 1 + r.IntN(60), want: 30, live: map[ID]*Seq{}, ends: map[ID]int{}, scored: map[ID]int{}}
	for range g.Groups {
		m.pages = append(m.pages, map[kv.PageID][]uint64{})
	}
	var err error
	m.a, err = kv.NewAlloc(g, kv.Limits{Bytes: g.Need(60+r.IntN(400), m.chunk), Slots: 1 + r.IntN(6), Tokens: 150, Span: m.chunk})
	if err != nil {
		panic(err)
	}
	cfg := Config{Chunk: m.chunk, Target: int64(r.IntN(2) * 1000), NoCache: r.IntN(10) == 0, SnapEvery: r.IntN(2) * r.IntN(80)}
	if r.IntN(2) == 0 && g.Sliceable() {
		m.disk = &fakeDisk{m: m, pages: map[string][][]uint64{}}
		cfg.Ask = m.disk.ask
	}
	if r.IntN(2) == 0 {
		cfg.Draft = func(items []Item, _ bool) {
			for i := range items {
				items[i].Drafts = r.IntN(min(items[i].Drafts, 8) + 1)
			}
		}
	}
	m.s = New(cfg, m.a)
	if p := m.s.Prefix(); p != nil && m.disk != nil {
		p.OnEvict(m.disk.keep)
	}
	return m
}

func (m *sim) run() error {
	for m.Sequences < m.want || len(m.live) > 0 {
		m.arrive()
		if m.disk != nil {
			if err := m.disk.move(); err != nil {
				return err
			}
		}
		if err := m.step(); err != nil {
			return err
		}
		if err := m.s.Check(); err != nil {
			return err
		}
	}
	if m.a.InUse() != m.a.Idle() {
		return fmt.Errorf("at the end %d bytes are in use, %d of them idle", m.a.InUse(), m.a.Idle())
	}
	if p := m.s.Prefix(); p != nil {
		if p.Evict(math.MaxInt64); p.Entries() != 0 || p.Bytes() != 0 || m.a.InUse() != 0 {
			return fmt.Errorf("after evicting all: %d entries of %d bytes, %d in use", p.Entries(), p.Bytes(), m.a.InUse())
		}
		return p.Check()
	}
	return nil
}

// mix is the state after one more token; answer is the token that follows a state.
func mix(h uint64, e kv.Elem) uint64 {
	h = (h ^ uint64(e)) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}
func answer(h uint64) kv.Elem { return kv.Elem(h >> 7 % 3) }

func (m *sim) arrive() {
	for m.Sequences < m.want && m.r.IntN(4) == 0 {
		m.Sequences++
		q := &Seq{ID: ID(m.Sequences), Client: uint64(m.r.IntN(3)), Score: m.r.IntN(8) == 0,
			Background: m.r.IntN(3) == 0, Owner: kv.Owner{Session: uint64(m.r.IntN(5)), Marked: m.r.IntN(2) == 0}}
		most := m.a.Limits().Tokens
		if len(m.keys) > 0 && m.r.IntN(4) > 0 {
			k := m.keys[m.r.IntN(len(m.keys))]
			k = k[:min(len(k), most-1)]
			if m.r.IntN(3) > 0 {
				k = k[:m.r.IntN(len(k)+1)]
			}
			q.Key = append(q.Key, k...)
		}
		for n := m.r.IntN(max(most-len(q.Key), 1)); n > 0 && m.r.IntN(40) > 0 || len(q.Key) == 0; n-- {
			q.Key = append(q.Key, kv.Elem(m.r.IntN(3)))
		}
		q.Prompt = len(q.Key)
		for range m.r.IntN(3) {
			q.Marks = append(q.Marks, m.r.IntN(q.Prompt+1))
		}
		slices.Sort(q.Marks)
		if !q.Score {
			q.Max = 1 + m.r.IntN(min(60, most-q.Prompt))
		}
		m.live[q.ID], m.ends[q.ID] = q, m.r.IntN(100)
		m.keys = append(m.keys, q.Key)
		m.s.Submit(q)
	}
	if m.Sequences > 0 && m.r.IntN(20) == 0 {
		if q := m.live[ID(1+m.r.IntN(m.Sequences))]; q != nil {
			m.Cancelled++
			slot := q.Slot
			m.s.Cancel(q)
			m.take(q, slot)
			delete(m.live, q.ID)
		}
	}
}

func (m *sim) step() error {
	m.Steps++
	due := map[*Seq]bool{}
	for _, q := range m.s.running {
		if decoding(q) {
			due[q] = true
		}
	}
	m.s.Expire(int64(m.Steps))
	p := m.s.Next()
	if err := m.s.Check(); err != nil {
		return fmt.Errorf("planning: %w", err)
	}
	if m.idle++; len(p.Items) > 0 || len(m.live) == m.s.Loading() {
		m.idle = 0
	}
	if m.idle > 2 {
		return fmt.Errorf("nothing planned for %d sequences", len(m.live))
	}
	for _, l := range p.Preempted {
		m.Preempted++
		m.take(l.Seq, l.Slot)
		delete(due, l.Seq)
	}
	for i := range p.Items {
		if err := m.open(&p.Items[i]); err != nil {
			return err
		}
	}
	failed := m.r.IntN(60) == 0
	out := make([]Outcome, len(p.Items))
	prompt := 0
	for i := range p.Items {
		it := &p.Items[i]
		delete(due, it.Seq)
		prompt += it.Tokens
		if it.Decode {
			prompt += it.Drafts - 1
			if it.Seq.Table.Len+it.Tokens < it.Seq.Known {
				m.Cut++
			}
		}
		m.Ran += it.Tokens
		if err := m.forward(it, failed); err != nil {
			return err
		}
		if out[i] = m.outcome(it, failed); out[i].End {
			delete(m.live, it.Seq.ID)
			m.keys = append(m.keys, it.Seq.Key)
		}
	}
	if len(due) != 0 || prompt > m.chunk {
		return fmt.Errorf("%d decodes left out, %d prompt tokens in a step of %d", len(due), prompt, m.chunk)
	}
	m.s.ChunkBudget.Observe(p.Items, int64(prompt*m.r.IntN(100)+50))
	items := slices.Clone(p.Items)
	slots := make([]kv.SlotID, len(items))
	for i := range items {
		slots[i] = items[i].Seq.Slot
	}
	m.s.Done(p, out)
	for i := range items {
		if out[i].End {
			m.take(items[i].Seq, slots[i])
		}
	}
	return nil
}

// take does what a store does before a slot is closed.
func (m *sim) take(q *Seq, slot kv.SlotID) {
	if q.EndSnap != 0 {
		m.Snaps++
		m.snaps[q.EndSnap] = m.state[slot]
	}
}

// open does what a store does: it copies the partly shared pages.
func (m *sim) open(it *Item) error {
	if !it.First {
		return nil
	}
	match, tail := &it.Seq.Match, it.Tail()
	if it.Seq.Score && match.Tokens > it.Seq.ran || match.Tokens >= it.Seq.Known || match.Tokens != it.Seq.Table.Len {
		return fmt.Errorf("sequence %d starts at %d of %d", it.Seq.ID, match.Tokens, it.Seq.Known)
	}
	m.state[it.Seq.Slot] = state{}
	if match.Snap != 0 {
		m.Restored++
		m.state[it.Seq.Slot] = m.snaps[match.Snap]
	}
	if match.Tokens > 0 {
		m.Hits++
		m.Cached += match.Tokens
	}
	for g, dst := range tail {
		m.Copies++
		m.pages[g][dst] = slices.Clone(m.pages[g][match.Tail[g]])
	}
	return nil
}

// at is what a position holds.
func (m *sim) at(g int, q *Seq, pos int) (*uint64, error) {
	pt := m.geo.PageTokens
	if i := pos / pt; i < len(q.Table.Pages[g]) && q.Table.Pages[g][i] != 0 {
		page := q.Table.Pages[g][i]
		if m.pages[g][page] == nil {
			m.pages[g][page] = make([]uint64, pt)
		}
		return &m.pages[g][page][pos%pt], nil
	}
	return nil, fmt.Errorf("sequence %d: position %d of group %d has no page", q.ID, pos, g)
}

// forward writes the item's positions and checks all that its first token sees.
func (m *sim) forward(it *Item, failed bool) error {
	q, from := it.Seq, it.Seq.Table.Len
	if err := m.recur(it); err != nil {
		return err
	}
	for g, grp := range m.geo.Groups {
		h, least := uint64(0), 0
		if grp.Window > 0 {
			least = max(0, from-grp.Window+1)
		}
		for pos, e := range q.Key[:from+it.Tokens] {
			h = mix(h, e)
			if pos < least {
				continue
			}
			got, err := m.at(g, q, pos)
			if err != nil {
				return err
			}
			switch {
			case pos < from && *got != h:
				return fmt.Errorf("sequence %d: position %d of group %d is not its own", q.ID, pos, g)
			case pos >= from && failed:
				*got = m.r.Uint64()
			case pos >= from:
				*got = h
			}
		}
	}
	return nil
}

// recur runs the item's tokens through the slot's state, and takes the snapshots on the way.
func (m *sim) recur(it *Item) error {
	q, from := it.Seq, it.Seq.Table.Len
	if m.geo.Sliceable() {
		return nil
	}
	var want state
	for _, e := range q.Key[:from] {
		want = state{want.n + 1, mix(want.h, e)}
	}
	now := m.state[q.Slot]
	if now != want {
		return fmt.Errorf("sequence %d: its state is of %d tokens, want that of the %d run", q.ID, now.n, want.n)
	}
	for _, e := range q.Key[from : from+it.Tokens] {
		now = state{now.n + 1, mix(now.h, e)}
		for _, n := range it.Snaps {
			if n.To == now.n {
				m.Snaps++
				m.snaps[n.ID] = now
			}
		}
	}
	m.state[q.Slot] = now
	return nil
}

// drafts keeps some of an item's drafts: they are what follows what it has generated. Behind them the pages hold anything.
func (m *sim) drafts(it *Item, out *Outcome) {
	q, from := it.Seq, it.Seq.Table.Len+it.Tokens
	m.Drafted += it.Drafts
	for kept := true; from < it.Seq.Table.Len+it.Tokens+it.Drafts; from++ {
		kept = kept && m.r.IntN(3) > 0 && len(q.Key)-q.Prompt <= m.ends[q.ID]
		h := m.r.Uint64()
		if kept {
			before, _ := m.at(len(m.geo.Groups)-1, q, from-1)
			h = mix(*before, q.Key[from])
			m.state[q.Slot] = state{from + 1, h}
			q.Key = append(q.Key, answer(h))
			out.New, out.Kept, m.Kept = out.New+1, out.Kept+1, m.Kept+1
		}
		for g := range m.geo.Groups {
			at, err := m.at(g, q, from)
			if err != nil {
				panic(err)
			}
			*at = h
		}
	}
}

func (m *sim) outcome(it *Item, failed bool) (out Outcome) {
	q, end := it.Seq, it.Seq.Table.Len+it.Tokens
	switch {
	case failed:
		m.Failed++
		return Outcome{End: true, Failed: true}
	case q.Score:
		if it.Rows != it.Tokens || q.Table.Len > m.scored[q.ID] {
			panic("rows of a scored prompt were skipped")
		}
		m.scored[q.ID] = max(m.scored[q.ID], end) // what it has run before may run again
		m.Scored++
		return Outcome{End: end == q.Prompt}
	case it.Rows > 0 && end-it.Rows != q.Known-q.Unscored-1:
		panic("rows before tokens without logprobs were skipped")
	case it.Rows <= q.Unscored:
		q.Unscored -= it.Rows
		return Outcome{}
	}
	last, _ := m.at(len(m.geo.Groups)-1, q, end-1)
	q.Key, q.Unscored = append(q.Key, answer(*last)), 0
	m.drafts(it, &out)
	made := len(q.Key) - q.Prompt
	if out.New++; made == q.Max || made > m.ends[q.ID] {
		out.End = true
		return out
	}
	if m.r.IntN(6) == 0 {
		for n := m.r.IntN(30); n > 0 && len(q.Key) < q.Prompt+q.Max-1; n-- {
			q.Key = append(q.Key, kv.Elem(m.r.IntN(3)))
			out.New++
			m.Joined++
		}
		if m.r.IntN(2) == 0 {
			q.Unscored = out.New - out.Kept - 1
		}
	}
	return out
}
