package backendtest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/kv"
	"hearth/internal/quant"
)

// loop is a layer of two recurrent ops: a convolution, and a recurrence over what comes out of it.
type loop struct {
	be         B.Backend
	specs      []B.StateSpec
	st         B.Store
	conv       B.Conv
	rule       loopRule
	delta      B.Delta
	ssm        B.SSM
	taps, bias B.Weight
	cols       int // of an input row: what is convolved, then what gates the recurrence
}

type loopShape struct {
	kheads, vheads, kdim, vdim, kernel int // a state space model's groups are kheads
	act                                B.ActKind
	bias                               bool
	rule                               loopRule
}

// loopRule is the recurrence.
type loopRule uint8

const (
	deltaRule loopRule = iota
	keyRule            // a decay per key
	headSteps          // state space model
	columnSteps
	noSteps
)

// gates is how many numbers gate a row.
func (s *loopShape) gates() int {
	switch s.rule {
	case keyRule:
		return s.vheads * (s.kdim + 1)
	case headSteps:
		return s.vheads
	case columnSteps:
		return s.vdim
	case noSteps:
		return 0
	}
	return 2 * s.vheads
}

const loopSlots, loopSnaps, loopDrafts = 8, 6, 4

func newLoop(t testing.TB, be B.Backend, s loopShape, threads int) *loop {
	t.Helper()
	r, o := random(21), B.Options{Threads: threads}
	width := 2*s.kheads*s.kdim + s.vheads*s.vdim
	m := &loop{be: be, cols: width + s.gates(), rule: s.rule,
		conv:  B.Conv{State: 0, Kernel: s.kernel, Act: s.act},
		delta: B.Delta{State: 1, KHeads: s.kheads, VHeads: s.vheads, KDim: s.kdim, VDim: s.vdim, PerKey: s.rule == keyRule},
		ssm:   B.SSM{State: 1, Heads: s.vheads, Groups: s.kheads, KDim: s.kdim, VDim: s.vdim, PerColumn: s.rule == columnSteps}}
	m.taps = load(t, be, o, matrix(B.UseConv, s.kernel, []int{width}, part(r, format{dtype: quant.BF16}, width, s.kernel, false)))
	n, per := s.vheads, m.delta.Decays()
	gates := 0
	switch s.rule {
	case keyRule:
		gates = 2*s.kdim + 1
	case columnSteps:
		n, per, gates = s.kdim*s.vdim, s.vdim, s.vdim
	case noSteps:
		for h := range s.vheads {
			m.ssm.Slopes = append(m.ssm.Slopes, 0.05*float32(h+1))
		}
	}
	decay := normals(r, n)
	for i := range decay {
		decay[i] = decay[i]/4 - 1.5 // states that live for some ten tokens
	}
	alog, bias := load(t, be, o, vector(decay)), load(t, be, o, vector(normals(r, per)))
	m.delta.ALog, m.delta.DtBias = alog, bias
	if s.rule != noSteps {
		m.ssm.ALog, m.ssm.DtBias, m.ssm.Min, m.ssm.Max = alog, bias, 0.1, 3
		m.ssm.D = load(t, be, o, vector(normals(r, m.ssm.Steps())))
	}
	if bias := load(t, be, o, vector(normals(r, width))); s.bias {
		m.bias = bias
	}
	m.specs = []B.StateSpec{
		{Name: "0.conv", Kind: B.StateConv, Heads: 1, KDim: width, VDim: s.kernel - 1},
		{Name: "0.delta", Kind: B.StateRecurrent, Heads: s.vheads, KDim: s.kdim, VDim: s.vdim, Gates: gates},
	}
	st, err := be.NewStore(m.specs, B.KVPolicy{MaxDraft: loopDrafts})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Resize(kv.Capacity{Slots: loopSlots, Snaps: loopSnaps}); err != nil {
		t.Fatal(err)
	}
	m.st = st
	return m
}

// input is n rows.
func (m *loop) input(seed uint64, n int) []float32 { return normals(random(seed), n*m.cols) }

func (m *loop) forward(o B.Scope, x []float32) B.Array {
	h := o.Upload(x, len(x)/m.cols, m.cols)
	d := &m.delta
	kd, vd := d.KHeads*d.KDim, d.VHeads*d.VDim
	y := o.Conv(o.Cols(h, 0, 2*kd+vd), m.taps, m.bias, &m.conv)
	if m.rule > keyRule {
		var dt B.Array
		if m.rule != noSteps {
			dt = o.Cols(h, 2*kd+vd, m.cols)
		}
		return o.SSM(o.Cols(y, 2*kd, 2*kd+vd), o.Cols(y, kd, 2*kd), o.Cols(y, 0, kd), dt, &m.ssm)
	}
	a, beta := o.Cols(h, 2*kd+vd, 2*kd+vd+d.Decays()), o.Cols(h, 2*kd+vd+d.Decays(), m.cols)
	return o.GatedDelta(o.Cols(y, 0, kd), o.Cols(y, kd, 2*kd), o.Cols(y, 2*kd, 2*kd+vd), a, beta, d)
}

// stretch is rows of one sequence in a step. The snapshots are taken after so many of them.
type stretch struct {
	slot  kv.SlotID
	start int
	x     []float32
	snaps map[int]kv.SnapID
	draft bool
}

func (m *loop) batch(all []stretch) (*B.Batch, []float32) {
	b, x := &B.Batch{Pos: [3][]int32{{}}}, []float32{}
	for _, s := range all {
		n, done := len(s.x)/m.cols, 0
		x = append(x, s.x...)
		for to := 1; to <= n; to++ {
			b.Pos[0] = append(b.Pos[0], int32(s.start+to-1))
			if s.snaps[to] != 0 || to == n {
				b.Spans = append(b.Spans, B.Span{Slot: s.slot, Row: len(b.Pos[0]) - (to - done), Len: to - done, Start: s.start + done,
					Table: &kv.Table{Pages: [][]kv.PageID{}}, Snapshot: s.snaps[to], Tentative: s.draft})
				done = to
			}
		}
	}
	return b, x
}

func (m *loop) step(t testing.TB, all ...stretch) []float32 {
	t.Helper()
	b, x := m.batch(all)
	sc := m.be.Begin(m.st, b)
	defer sc.End()
	return floats(t, sc, m.forward(sc, x))
}

var loopShapes = []loopShape{
	{1, 1, 8, 16, 4, B.SiLU, false, deltaRule},
	{2, 6, 32, 24, 4, B.SiLU, true, deltaRule}, // blocks of columns that are not full
	{3, 3, 33, 5, 2, B.ActNone, false, deltaRule},
	{2, 4, 128, 32, 3, B.SiLU, false, deltaRule},
	{2, 4, 33, 24, 4, B.SiLU, false, keyRule},
	{2, 6, 16, 24, 4, B.SiLU, true, headSteps},
	{1, 3, 7, 64, 2, B.SiLU, false, headSteps},
	{1, 1, 16, 70, 4, B.SiLU, true, columnSteps},
	{3, 3, 24, 16, 2, B.ActNone, false, noSteps},
}

// recurrent compares both ops with the oracle, in steps of several sequences that go on.
func (c Config) recurrent(t *testing.T) {
	for _, shape := range loopShapes {
		m, o := newLoop(t, c.open(t), shape, 2), newLoop(t, ref.New(), shape, 1)
		x, z := m.input(1, 90), m.input(2, 40)
		for _, step := range [][]stretch{
			{{slot: 3, x: x[:70*m.cols]}, {slot: 1, x: z[:1*m.cols]}},
			{{slot: 1, start: 1, x: z[m.cols:]}, {slot: 3, start: 70, x: x[70*m.cols : 71*m.cols]}},
			{{slot: 3, start: 71, x: x[71*m.cols:]}},
		} {
			got := m.step(t, step...)
			b, rows := o.batch(step)
			sc := o.be.Begin(o.st, b)
			// Sums of KDim terms, over states of a dozen tokens' terms each.
			abs := c.Eps * float64(64*(shape.kdim+16))
			near(t, fmt.Sprint("recurrence ", shape), got, ref.Float64s(sc, o.forward(sc, rows)), func(int) float64 { return 64 * c.Eps }, abs)
			sc.End()
		}
	}
}

// recurrentEqual: where a sequence is cut, what is beside it and how many threads there are makes no difference.
func (c Config) recurrentEqual(t *testing.T) {
	if !c.compares(c.open(t)) {
		t.Skip("the backend does not promise equal numbers")
	}
	for _, shape := range loopShapes {
		const n = 150
		m := newLoop(t, c.open(t), shape, 1)
		x, other := m.input(3, n), m.input(4, 70)
		whole := m.step(t, stretch{x: x})
		width := len(whole) / n
		beside := m.step(t, stretch{slot: 1, x: other})
		for _, threads := range c.Threads {
			m := newLoop(t, c.open(t), shape, threads)
			c.same(t, "whole", m.step(t, stretch{slot: 5, x: x}), whole)
			from, done := 0, 0
			for _, k := range []int{1, 63, 7, 2, 50, 1, 12, 14} {
				all := []stretch{{slot: 2, start: from, x: x[from*m.cols : (from+k)*m.cols]}}
				if more := min(k, 70-done); more > 0 {
					all = append(all, stretch{slot: 1, start: done, x: other[done*m.cols : (done+more)*m.cols]})
					done += more
				}
				y := m.step(t, all...)
				c.same(t, fmt.Sprintf("chunk of %d at %d", k, from), y[:k*width], whole[from*width:(from+k)*width])
				c.same(t, "beside it", y[k*width:], beside[done*width-len(y)+k*width:done*width])
				from += k
			}
		}
	}
}

// snapshots: taken inside a step or between two, copied to another slot, or carried out and in again, they go on as the
// sequence itself does.
func (c Config) snapshots(t *testing.T) {
	for _, shape := range []loopShape{loopShapes[1], loopShapes[5], loopShapes[7]} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) { c.snapshotsOf(t, shape) })
	}
}

func (c Config) snapshotsOf(t *testing.T, shape loopShape) {
	m := newLoop(t, c.open(t), shape, 2)
	if !c.compares(m.be) {
		t.Skip("the backend does not promise equal numbers")
	}
	g := m.st.Geometry()
	if g.FixedBytes <= 0 || g.SnapBytes <= 0 || g.Sliceable() || len(g.Groups) != 0 {
		t.Fatalf("geometry %+v", g)
	}
	const n, cut = 100, 64
	x := m.input(5, n)
	whole := m.step(t, stretch{x: x})
	width := len(whole) / n
	rest := func(what string, slot kv.SlotID, at int) {
		t.Helper()
		c.same(t, what, m.step(t, stretch{slot: slot, start: at, x: x[at*m.cols:]}), whole[at*width:])
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c.same(t, "with snapshots", m.step(t, stretch{slot: 1, x: x[:90*m.cols], snaps: map[int]kv.SnapID{2: 3, cut: 1, 90: 2}}), whole[:90*width])
	must(m.st.Snapshot(1, 4))
	must(m.st.Open(1, kv.Match{}, nil)) // what was there is gone
	for id, at := range map[kv.SnapID]int{1: cut, 2: 90, 3: 2, 4: 90} {
		must(m.st.Open(3, kv.Match{Tokens: at, Snap: id}, nil))
		rest(fmt.Sprintf("snapshot after %d", at), 3, at)
	}
	c.same(t, "opened anew", m.step(t, stretch{slot: 1, x: x}), whole)

	var buf bytes.Buffer
	must(m.st.Export(&buf, kv.Ref{Snap: 1}))
	if got := int64(buf.Len()); got != g.SnapBytes {
		t.Errorf("exported %d bytes, the geometry says %d", got, g.SnapBytes)
	}
	must(m.st.Import(bytes.NewReader(slices.Clone(buf.Bytes())), kv.Ref{Snap: 5}))
	must(m.st.Open(4, kv.Match{Tokens: cut, Snap: 5}, nil))
	rest("imported", 4, cut)
	if m.st.Import(bytes.NewReader(buf.Bytes()[1:]), kv.Ref{Snap: 5}) == nil {
		t.Error("a short snapshot was imported")
	}
	if m.st.Open(4, kv.Match{Tokens: cut - 1, Snap: 1}, nil) == nil || m.st.Open(4, kv.Match{Tokens: 3}, nil) == nil {
		t.Error("a snapshot served a match of another length")
	}
	panics(t, "a span that does not start where its slot is", func() { m.step(t, stretch{slot: 2, start: 7, x: x[:m.cols]}) })
	b, _ := m.batch([]stretch{{slot: 6, x: x[:m.cols]}})
	sc := m.be.Begin(m.st, b)
	defer sc.End()
	y := sc.Upload(x[:m.cols], 1, m.cols)
	panics(t, "Conv of other columns", func() { sc.Conv(y, m.taps, nil, &m.conv) })
	panics(t, "GatedDelta of other columns", func() { sc.GatedDelta(y, y, y, y, y, &m.delta) })
	panics(t, "SSM of other columns", func() { sc.SSM(y, y, y, y, &m.ssm) })
	panics(t, "Conv of no rows", func() { sc.Conv(sc.Gather(y, nil), m.taps, nil, &m.conv) })
}

// drafts: of a tentative span any number of rows can be kept, and what follows is as if only they had run. A slot pays for its
// state alone, and what spans leave may be committed in any order.
func (c Config) drafts(t *testing.T) {
	for _, shape := range loopShapes {
		m := newLoop(t, c.open(t), shape, 2)
		if !c.compares(m.be) {
			t.Skip("the backend does not promise equal numbers")
		}
		const n = 40
		x, wrong := m.input(6, n), m.input(7, loopDrafts+1)
		whole := m.step(t, stretch{x: x})
		width := len(whole) / n
		for keep := range loopDrafts + 2 {
			slot := kv.SlotID(1 + keep)
			m.step(t, stretch{slot: slot, x: x[:20*m.cols]})
			drafted := slices.Concat(x[20*m.cols:(20+keep)*m.cols], wrong[keep*m.cols:])
			y := m.step(t, stretch{slot: slot, start: 20, x: drafted, draft: true})
			c.same(t, "drafts", y[:keep*width], whole[20*width:(20+keep)*width])
			if keep == 1 {
				panics(t, "a span after one that is not committed", func() { m.step(t, stretch{slot: slot, start: 20, x: x[:m.cols]}) })
			}
			m.st.Commit(slot, keep)
			c.same(t, fmt.Sprintf("%d drafts kept", keep), m.step(t, stretch{slot: slot, start: 20 + keep, x: x[(20+keep)*m.cols:]}), whole[(20+keep)*width:])
		}
		c.draftsBeside(t, m, x, wrong, whole)
		plain, err := m.be.NewStore(m.specs, B.KVPolicy{})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := plain.Geometry(), m.st.Geometry(); a.FixedBytes != b.FixedBytes || a.SnapBytes != b.SnapBytes || a.DraftBytes != 0 || b.DraftBytes <= 0 {
			t.Errorf("%+v without drafts, %+v with them", a, b)
		}
	}
}

// draftsBeside runs tentative spans of all slots in one step, again and again, and commits them in turns: all, some and none of
// each. One slot is opened in between.
func (c Config) draftsBeside(t *testing.T, m *loop, x, wrong, whole []float32) {
	width, r := len(whole)/(len(x)/m.cols), random(8)
	var at [loopSlots]int
	for slot := range at {
		if err := m.st.Open(kv.SlotID(slot), kv.Match{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 5 {
		var all []stretch
		for slot := range at {
			if right := r.IntN(loopDrafts + 2); (slot+round)%4 > 0 {
				rows := slices.Concat(x[at[slot]*m.cols:(at[slot]+right)*m.cols], wrong[right*m.cols:])
				all = append(all, stretch{slot: kv.SlotID(slot), start: at[slot], x: rows, draft: true})
			} else {
				all = append(all, stretch{slot: kv.SlotID(slot), start: at[slot], x: x[at[slot]*m.cols : (at[slot]+1)*m.cols]})
				at[slot]++
			}
		}
		m.step(t, all...)
		if store, ok := m.st.(interface{ Return([]kv.Ref) }); ok { // of the others
			store.Return([]kv.Ref{{Drafts: true}})
		}
		for _, i := range r.Perm(len(all)) {
			if s := &all[i]; s.draft && i == round {
				if err := m.st.Open(s.slot, kv.Match{}, nil); err != nil {
					t.Fatal(err)
				}
				at[i] = 0
			} else if s.draft {
				keep := 0
				for keep <= loopDrafts && slices.Equal(s.x[keep*m.cols:(keep+1)*m.cols], x[(s.start+keep)*m.cols:(s.start+keep+1)*m.cols]) {
					keep++
				}
				m.st.Commit(s.slot, keep)
				at[i] += keep
			}
		}
	}
	for slot, from := range at {
		c.same(t, fmt.Sprintf("slot %d after %d", slot, from), m.step(t, stretch{slot: kv.SlotID(slot), start: from, x: x[from*m.cols : (from+2)*m.cols]}), whole[from*width:(from+2)*width])
	}
}

// DeltaStep prepares a recurrent layer and gives a function that runs one more token through it, without
// allocating anything itself.
func DeltaStep(t testing.TB, be B.Backend, o B.Options) func() {
	return loopStep(t, be, o, loopShapes[3])
}

// SSMStep is DeltaStep of a state space model, with steps per head or per column.
func SSMStep(t testing.TB, be B.Backend, o B.Options, columns bool) func() {
	if columns {
		return loopStep(t, be, o, loopShapes[7])
	}
	return loopStep(t, be, o, loopShapes[5])
}

func loopStep(t testing.TB, be B.Backend, o B.Options, shape loopShape) func() {
	m := newLoop(t, be, shape, o.Threads)
	b, x := m.batch([]stretch{{x: m.input(1, 1)}})
	return func() {
		sc := be.Begin(m.st, b)
		if _, err := sc.Floats(m.forward(sc, x)); err != nil {
			t.Error(err)
		}
		sc.End()
		b.Spans[0].Start++
	}
}
