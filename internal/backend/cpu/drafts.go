package cpu

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"hearth/internal/backend"
	"hearth/internal/kernel"
	"hearth/internal/kv"
)

// drafts is what tentative spans need of recurrent states. Such a span leaves its slot's row alone: its end state goes to a
// shadow that the slot has until the span is committed, and what each of its tokens put into a state to the log beside it. Commit
// of all tokens makes the shadow the row; of fewer, it runs the logged ones again, which is one pass over the state and no
// products. There is address space for a shadow per slot; memory is touched by as many as are in use at once.
//
// Of a token, the log has for a convolution its input, and for a recurrent state [k of all heads][v] and then, for the rule
//
//	gated delta                       [decays][rates], the keys normalised
//	gated delta, decays per key       [decays][rates][k times them]
//	state space model                 [decays]; v is x times its step
//	the same with steps per column    [steps]
type drafts struct {
	most   int   // rows of a tentative span at most; 0: there are none
	floats int   // of a token's log
	offset []int // by StateID
	rule   []rule
	free   []*shadow // the one that was used last is the next
	open   []*shadow // by slot: that of its tentative span which is not committed; nil: there is none
}

// shadow is what a tentative span leaves.
type shadow struct {
	rows  int       // of the span
	state []float32 // after all of them
	log   []float32
}

// rule is how a recurrent state goes on; the op that runs it says so.
type rule struct {
	perKey bool
	ssm    *backend.SSM // nil: gated delta
	rates  []float32    // of ssm, with steps per column
}

// add makes room for a state in the log.
func (d *drafts) add(sp *backend.StateSpec) {
	d.offset, d.rule = append(d.offset, d.floats), append(d.rule, rule{})
	n := 0
	switch sp.Kind {
	case backend.StateRecurrent:
		n = sp.Heads*(sp.KDim+sp.VDim+cmp.Or(sp.Gates, 2)) + kernel.DeltaLanes // a block of values may reach beyond them
	case backend.StateConv:
		n = sp.KDim
	}
	d.floats += n
}

// bytes is what a shadow takes; row is the floats of a slot's state.
func (d *drafts) bytes(row int) int64 {
	if d.most == 0 {
		return 0
	}
	return 4 * int64(row+d.most*d.floats)
}

func (d *drafts) resize(slots, row int, mem *kernel.Memory) {
	more := slots - len(d.open)
	if row == 0 || more <= 0 {
		return
	}
	d.open = append(d.open, make([]*shadow, more)...)
	if d.most == 0 {
		return
	}
	slab := mem.Floats(more * (row + d.most*d.floats))
	for range more {
		d.free = append(d.free, &shadow{state: slab[:row:row], log: slab[row:][: d.most*d.floats : d.most*d.floats]})
		slab = slab[row+d.most*d.floats:]
	}
	slices.Reverse(d.free[len(d.free)-more:]) // the first first
}

// begin notes a span. alone says that no other span of the batch is of its slot.
func (d *drafts) begin(sp *backend.Span, alone bool) {
	switch {
	case d.open[sp.Slot] != nil:
		panic(fmt.Sprintf("cpu: slot %d has a tentative span that was not committed", sp.Slot))
	case !sp.Tentative:
	case sp.Len > d.most || sp.Snapshot != 0 || !alone:
		panic(fmt.Sprintf("cpu: a tentative span of %d rows: at most %d may be, alone and without a snapshot", sp.Len, d.most))
	default:
		n := len(d.free) - 1
		d.open[sp.Slot], d.free = d.free[n], d.free[:n]
		d.open[sp.Slot].rows = sp.Len
	}
}

// end takes a slot's shadow back, if it has one.
func (d *drafts) end(slot kv.SlotID) {
	if sh := d.open[slot]; sh != nil {
		d.open[slot], d.free = nil, append(d.free, sh)
	}
}

// discard gives the memory of the shadows that no slot has back to the system.
func (d *drafts) discard() {
	for _, sh := range d.free {
		for _, f := range [...][]float32{sh.state, sh.log} {
			kernel.Discard(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f)))
		}
	}
}

// logged is what token t of a slot's tentative span put into a state.
func (d *drafts) logged(slot kv.SlotID, id backend.StateID, t int) []float32 {
	return d.open[slot].log[t*d.floats+d.offset[id] : (t+1)*d.floats]
}

// logDelta copies what row r of a tentative span puts into a recurrent state.
func (j *deltaJob) logDelta(sp *backend.Span, r int) {
	d := j.spec
	to := j.s.st.fixed.drafts.logged(sp.Slot, d.State, r-sp.Row)
	for h := range d.VHeads {
		to = to[copy(to, j.unit.row(r)[h/(d.VHeads/d.KHeads)*d.KDim:][:d.KDim]):]
	}
	to = to[copy(to, j.v.row(r)):]
	copy(to, j.gates.row(r))
}

// logged is the state of an item's head, and what the first logged token put into that of all heads: keys, values and gates.
// Those of the next tokens follow at drafts.floats.
func (j *replayJob) logged(it *replayItem) (state, keys, values, gates []float32) {
	sp, d := it.spec, &j.f.drafts
	keys = d.open[j.slot].log[d.offset[it.id]:]
	values = keys[sp.Heads*sp.KDim:]
	gates = values[sp.Heads*sp.VDim:]
	return j.f.slots.row[j.slot][j.f.offset[it.id]+it.head*blocks(sp.VDim)*sp.KDim*kernel.DeltaLanes:], keys, values, gates
}

// keyDelta is delta with a decay per key.
func (j *replayJob) keyDelta(it *replayItem) {
	sp, d := it.spec, &j.f.drafts
	heads, n := sp.Heads, sp.KDim*kernel.DeltaLanes
	state, log, values, gates := j.logged(it)
	rates := gates[heads*sp.KDim:]
	var y [kernel.DeltaLanes]float32
	for b := range blocks(sp.VDim) {
		k := kernel.KeyDelta{
			State: state[b*n:][:n], K: log[it.head*sp.KDim:], Q: log[it.head*sp.KDim:], KStride: d.floats,
			V: values[it.head*sp.VDim+b*kernel.DeltaLanes:], VStride: d.floats, Y: y[:], // nobody reads it
			Gate: gates[it.head*sp.KDim:], KG: rates[heads+it.head*sp.KDim:], GStride: d.floats,
			Beta: rates[it.head:], BStride: d.floats, N: j.n, KDim: sp.KDim,
		}
		k.Run()
	}
}

// commit keeps the first n rows of a slot's tentative span.
func (b *Backend) commit(f *fixed, specs []backend.StateSpec, slot kv.SlotID, n int) {
	if f.floats == 0 || f.drafts.open[slot] == nil {
		return
	}
	sh := f.drafts.open[slot]
	if n < 0 || n > sh.rows {
		panic(fmt.Sprintf("cpu: %d rows of a tentative span of %d are kept", n, sh.rows))
	}
	defer f.drafts.end(slot)
	f.slots.at[slot] += n
	if n == sh.rows {
		f.slots.row[slot], sh.state = sh.state, f.slots.row[slot]
		return
	}
	j := &b.replay
	j.f, j.slot, j.n, j.items = f, slot, n, j.items[:0]
	for id := range specs {
		switch sp := &specs[id]; sp.Kind {
		case backend.StateConv:
			j.items = append(j.items, replayItem{backend.StateID(id), sp, 0})
		case backend.StateRecurrent:
			for h := range sp.Heads {
				j.items = append(j.items, replayItem{backend.StateID(id), sp, h})
			}
		}
	}
	if n > 0 {
		for p := b.workers(); len(j.factors) < p.size; {
			j.factors = append(j.factors, nil)
		}
		b.workers().run(j, len(j.items), 1, 1)
	}
}

// replayJob runs logged tokens again: every item is a convolution's tail, or one head of a recurrent state.
type replayJob struct {
	f     *fixed
	slot  kv.SlotID
	n     int
	items []replayItem

	factors [][]float32 // per worker: of one token, with steps per column
}

type replayItem struct {
	id   backend.StateID
	spec *backend.StateSpec
	head int
}

func (j *replayJob) run(worker, from, to int) {
	for _, it := range j.items[from:to] {
		switch r := &j.f.drafts.rule[it.id]; {
		case it.spec.Kind == backend.StateConv:
			j.tail(&it)
		case r.ssm != nil:
			j.scan(worker, &it)
		case r.perKey:
			j.keyDelta(&it)
		default:
			j.delta(&it)
		}
	}
}

func (j *replayJob) tail(it *replayItem) {
	cols, keep := it.spec.KDim, it.spec.VDim
	tail := j.f.slots.row[j.slot][j.f.offset[it.id]:][:keep*cols]
	stay := max(keep-j.n, 0)
	copy(tail, tail[(keep-stay)*cols:])
	for k := stay; k < keep; k++ {
		copy(tail[k*cols:][:cols], j.f.drafts.logged(j.slot, it.id, j.n-keep+k))
	}
}

func (j *replayJob) delta(it *replayItem) {
	sp, d := it.spec, &j.f.drafts
	heads, n := sp.Heads, sp.KDim*kernel.DeltaLanes
	state, log, values, gates := j.logged(it)
	var y [kernel.DeltaLanes]float32
	for b := range blocks(sp.VDim) {
		k := kernel.Delta{
			State: state[b*n:][:n], K: log[it.head*sp.KDim:], Q: log[it.head*sp.KDim:], KStride: d.floats,
			V: values[it.head*sp.VDim+b*kernel.DeltaLanes:], VStride: d.floats, Y: y[:], // nobody reads it
			Gate: gates[it.head:], Beta: gates[heads+it.head:], GStride: d.floats, N: j.n, KDim: sp.KDim,
		}
		k.Run()
	}
}
