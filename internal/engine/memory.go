package engine

import (
	"fmt"
	"slices"
	"sync/atomic"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/kv"
	"hearth/internal/model"
)

// memory is what an engine may have of the machine's memory: for state under the allocator's limit, and for the arrays of a step.
// Without a share that is Config.Budget and as much as the largest step takes; with one, both grow as it is asked.
type memory struct {
	share   budget.Holding
	scratch *budget.Scratch // nil: the backend does not tell
	alloc   *kv.Alloc
	store   backend.Store
	be      backend.Backend
	step    int64         // of the share, for a step's arrays
	least   int64         // of step: of all slots' decodes and a few prompt tokens
	shrink  atomic.Int64  // bytes that the share was asked for
	last    budget.Answer // to the last wish
	lack    budget.Use    // that wish
	stuck   int64         // what only the prompt cache holds and eviction could not free
	tower   towerUse
}

// towerUse is what of the share is for the tower. It is promised when the engine starts, as far as there is memory, and asked for
// at the first image where there was none: who sends texts alone is not refused for it.
type towerUse struct {
	patches int   // of the largest image that there is memory for; 0: of none, or the backend does not tell
	open    int64 // what those patches may take together: as much as those of the largest image that a context has places for
	told    bool  // the backend tells
	weights int64 // what they take
	loaded  int64 // of the share's weights, for the tower's
	kept    int64 // of the share's weights, for what it makes of images and for patches that it is to read next
}

// rehearser is a backend that runs steps without computing anything, and tells what their arrays take.
type rehearser interface {
	Rehearse(steps func() error) (int64, error)
}

// scratcher is a backend that reckons it.
type scratcher interface{ Scratch(rows, outs int) int64 }

// trimmer is a backend that can free what steps have left behind for the next ones.
type trimmer interface{ Trim() }

// returner is a store that gives the memory behind free pages and snapshots back to the system. What they held is gone.
type returner interface{ Return(refs []kv.Ref) }

const (
	slab       = 64 << 20 // state grows by so many bytes where they are free
	fewPrompts = 16       // prompt tokens of the least step
	// worthReturn is how many bytes of free pages are worth a call to the system.
	worthReturn = 16 << 20
)

// newMemory measures the steps, and divides a share.
func newMemory(cfg *Config, store backend.Store, alloc *kv.Alloc) (*memory, error) {
	m := &memory{share: cfg.Share, alloc: alloc, store: store, be: cfg.Backend}
	lim := alloc.Limits()
	if cfg.Tower != nil {
		if grid, ok := cfg.Tower.Largest(lim.Tokens); ok {
			m.tower.open = 4 * int64(grid[0]*grid[1]*grid[2]) * int64(cfg.Tower.Patch)
		}
	}
	var err error
	if m.scratch, err = stepScratch(cfg, store, lim.Tokens); err != nil || m.share == nil {
		return m, err
	}
	m.least = m.of(lim.Slots+fewPrompts, lim.Tokens, lim.Slots)
	has := m.share.Use()
	lack := budget.Use{Scratch: max(m.least-has.Scratch, 0)}
	lack.State = max(alloc.Geometry().Need(min(lim.Tokens, max(cfg.MinContext, backend.PageTokens)), lim.Span)-has.State, 0)
	if _, a := m.share.Grow(lack, lack); a != budget.Yes {
		return nil, m.share.Short(lack)
	}
	has = m.share.Use()
	m.step = has.Scratch
	alloc.OnShort(has.State, m.state)
	return m, m.promiseTower(cfg, lim.Tokens)
}

// promiseTower asks for the tower's weights, for what is kept of images, for patches, and for a step with the largest one that a
// context has places for, or a smaller one where there is no memory for that.
func (m *memory) promiseTower(cfg *Config, context int) error {
	if cfg.Tower == nil {
		return nil
	}
	grid, ok := cfg.Tower.Largest(context)
	if !ok {
		return nil
	}
	s := &m.tower
	weights, step, err := m.weigh(cfg.Tower, cfg.Seeing, grid)
	if err != nil || step == 0 {
		return err
	}
	s.told, s.weights = true, weights
	s.loaded, s.kept = m.ask(weights), m.ask(cfg.Sights+cfg.Tower.FeatureBytes(grid)+s.open)
	if lack := (budget.Use{Scratch: max(step-m.step, 0)}); m.grant(lack) {
		m.step += lack.Scratch
		m.least, s.patches = max(m.least, step), grid[1]*grid[2]
	}
	return nil
}

// weigh is what the tower's weights and a step of it take: a step 0 where that is not known.
func (m *memory) weigh(t *model.Tower, opts backend.Options, grid [3]int) (weights, step int64, err error) {
	weights, step, err = t.Weigh(m.be, opts, grid)
	if s, ok := m.be.(scratcher); ok && err == nil && step == 0 {
		step = s.Scratch(grid[0]*grid[1]*grid[2], 0)
	}
	return weights, step, err
}

// grant asks for memory and takes no other answer.
func (m *memory) grant(lack budget.Use) bool {
	_, a := m.share.Grow(lack, lack)
	return a == budget.Yes
}

// ask asks for memory that is never given back while the engine lives; 0: there is none.
func (m *memory) ask(bytes int64) int64 {
	lack := budget.Use{Weights: bytes}
	got, _ := m.share.Grow(lack, lack)
	return got.Weights
}

// see asks for what the tower lacks to make rows of an image, with which so many bytes are kept, patches among them. Its error is
// of who wants the image.
func (m *memory) see(t *model.Tower, opts backend.Options, grid [3]int, kept int64) error {
	s := &m.tower
	if m.share == nil || !s.told {
		return nil
	}
	step := m.step
	if grid[0]*grid[1]*grid[2] > s.patches {
		var err error
		if _, step, err = m.weigh(t, opts, grid); err != nil {
			return err
		}
	}
	lack := budget.Use{Weights: max(s.weights-s.loaded, 0) + max(kept-s.kept, 0), Scratch: max(step-m.step, 0)}
	if lack == (budget.Use{}) {
		return nil
	}
	if !m.grant(lack) {
		return &NoMemoryError{m.share.Short(lack)}
	}
	s.loaded, s.kept, m.step = max(s.loaded, s.weights), max(s.kept, kept), m.step+lack.Scratch
	return nil
}

// stepScratch is what steps of a loaded model take, nil where its backend does not tell.
func stepScratch(cfg *Config, store backend.Store, context int) (*budget.Scratch, error) {
	most := budget.Step{Rows: cfg.PrefillChunk + cfg.MaxSequences, Outs: cfg.PrefillChunk + cfg.MaxSequences}
	if store.Geometry().Sliceable() { // else no state is that deep
		most.Depth = context
	}
	if cfg.Backend.Caps().World > 1 {
		return nil, nil // a step waits for those of the other ranks
	}
	switch be := cfg.Backend.(type) {
	case rehearser:
		return budget.Fit(most, func(st budget.Step) (int64, error) {
			return be.Rehearse(func() error { return rehearse(cfg, store, st) })
		})
	case scratcher:
		return budget.Fit(most, func(st budget.Step) (int64, error) { return be.Scratch(st.Rows, min(st.Outs, logitRows)), nil })
	}
	return nil, nil
}

// rehearse runs a step of one sequence as runner.forward does. No page is written.
func rehearse(cfg *Config, store backend.Store, st budget.Step) error {
	t := kv.Table{Len: st.Depth}
	for range store.Geometry().Groups {
		t.Pages = append(t.Pages, slices.Repeat([]kv.PageID{1}, (st.Depth+st.Rows)/backend.PageTokens+1))
	}
	if err := store.Open(0, kv.Match{}, nil); err != nil {
		return err
	}
	b := backend.Batch{Tokens: make([]int32, st.Rows), Spans: []backend.Span{{Start: st.Depth, Len: st.Rows, Table: &t}}}
	for i := range st.Rows {
		b.Pos[0] = append(b.Pos[0], int32(st.Depth+i))
		if i >= st.Rows-st.Outs {
			b.Out = append(b.Out, int32(i))
		}
	}
	o := cfg.Backend.Begin(store, &b)
	defer o.End()
	h := o.Keep(cfg.Model.Forward(o, &b))
	for from := 0; from < len(b.Out); from += logitRows {
		to := min(from+logitRows, len(b.Out))
		part := h
		if to-from < h.Rows() {
			rows := make([]int32, to-from)
			for i := range rows {
				rows[i] = int32(from + i)
			}
			part = o.Gather(h, rows)
		}
		if _, err := o.Floats(cfg.Model.Logits(o, part)); err != nil {
			return err
		}
		o.Sweep(h)
		if from > 0 {
			break // later parts take no more
		}
	}
	return o.Err()
}

// of is what a step takes, 0 where that is not known.
func (m *memory) of(rows, depth, outs int) int64 {
	if m.scratch == nil {
		return 0
	}
	return m.scratch.Of(budget.Step{Rows: rows, Depth: depth, Outs: outs})
}

// grow asks the share for memory.
func (m *memory) grow(least, most budget.Use) budget.Use {
	got, a := m.share.Grow(least, most)
	if m.last = a; a != budget.Yes {
		m.lack = least
	}
	return got
}

// state is asked for bytes of state.
func (m *memory) state(least, most int64) int64 {
	return m.grow(budget.Use{State: least}, budget.Use{State: min(max(least, slab), most)}).State
}

// room is asked whether a step has memory for its arrays.
func (m *memory) room(rows, depth, outs int) bool {
	need := m.of(rows, depth, outs)
	if need > m.step {
		lack := budget.Use{Scratch: need - m.step}
		m.step += m.grow(lack, lack).Scratch
	}
	return need <= m.step
}

// asked notes that the share was asked for bytes. Any goroutine may call it.
func (m *memory) asked(bytes int64) { m.shrink.Add(bytes) }

// giveBack gives what others need of what only the prompt cache holds, and of what steps have left behind. False: nobody asked.
func (m *memory) giveBack(p *kv.Prefix) bool {
	n := m.shrink.Swap(0)
	if n == 0 {
		return false
	}
	var given budget.Use
	if t, ok := m.be.(trimmer); ok {
		t.Trim()
		given.Scratch = max(m.step-m.least, 0)
		m.step -= given.Scratch
	}
	given.State = m.alloc.Lower(n)
	if p != nil && given.State < n {
		p.Evict(n - given.State)
		if given.State += m.alloc.Lower(n - given.State); given.State < n {
			m.stuck = m.alloc.Idle()
		}
	}
	m.returnFree(1)
	m.share.Give(given)
	m.tell()
	return true
}

// tell tells the share what it could ask for.
func (m *memory) tell() {
	if m.share != nil {
		m.stuck = min(m.stuck, m.alloc.Idle())
		m.share.SetSpare(m.alloc.Limits().Bytes - m.alloc.InUse() + m.alloc.Idle() - m.stuck)
	}
}

// rest is called when there is nothing to run: the memory of free pages goes back, if that is worth it.
func (m *memory) rest() {
	m.returnFree(worthReturn)
	if m.share == nil {
		return
	}
	if slack := m.alloc.Limits().Bytes - m.alloc.InUse(); slack > 2*slab {
		m.share.Give(budget.Use{State: m.alloc.Lower(slack - slab)})
	}
	m.tell()
}

// returnFree returns the memory of pages and snapshots that were used and are free, if it is at least so much.
func (m *memory) returnFree(least int64) {
	if r, ok := m.store.(returner); ok {
		if refs := m.alloc.Unused(least); len(refs) > 0 {
			r.Return(refs)
		}
	}
}

// NoMemoryError ends a sequence that can never have the memory it needs, because other models of this machine have it.
type NoMemoryError struct{ Err *budget.ShortError }

func (e *NoMemoryError) Error() string {
	return fmt.Sprintf("not enough memory to go on: %v; %s", e.Err, e.Err.Hint())
}

func (e *NoMemoryError) Unwrap() error { return e.Err }
