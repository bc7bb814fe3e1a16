package cpu

import (
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"

	"hearth/internal/backend"
	"hearth/internal/kernel"
	"hearth/internal/kv"
)

// fixed is the memory of recurrent states: one row of floats per slot and per snapshot, all states of a
// sequence after one another. A recurrent state is [Heads][blocks of kernel.DeltaLanes value columns][KDim][DeltaLanes],
// the last block padded; that of a convolution is [K-1][columns], the oldest row first.
//
// Invariants: a row holds the state after its first at tokens; between the begin of a step and its end it is on the way
// to that.
type fixed struct {
	floats int   // of a row; 0: no state is of this kind
	offset []int // by StateID
	slots  rowsAt
	snaps  rowsAt // by id; 0 is never used
	drafts drafts
}

type rowsAt struct {
	row [][]float32
	at  []int
}

// blocks is how many blocks of columns a recurrent head's state has.
func blocks(vdim int) int { return (vdim + kernel.DeltaLanes - 1) / kernel.DeltaLanes }

// add makes room for a state in every row.
func (f *fixed) add(sp *backend.StateSpec) {
	f.drafts.add(sp)
	f.offset = append(f.offset, f.floats)
	n := 0
	switch sp.Kind {
	case backend.StateRecurrent:
		n = sp.Heads * blocks(sp.VDim) * sp.KDim * kernel.DeltaLanes
	case backend.StateConv:
		n = sp.KDim * sp.VDim
	}
	f.floats += (n + lane - 1) / lane * lane
}

// bytes are those of a slot, of a snapshot as it is exported, and of a tentative span.
func (f *fixed) bytes() (slot, snap, draft int64) {
	if f.floats == 0 {
		return 0, 0, 0
	}
	return 4 * int64(f.floats), 4*int64(f.floats) + 8, f.drafts.bytes(f.floats)
}

// resize reserves rows for ids below n.
func (f *fixed) resize(r *rowsAt, n int, mem *kernel.Memory) {
	more := n - len(r.row)
	if f.floats == 0 || more <= 0 {
		return
	}
	slab := mem.Floats(more * f.floats)
	for i := range more {
		r.row = append(r.row, slab[i*f.floats:][:f.floats:f.floats])
	}
	r.at = append(r.at, make([]int, more)...)
}

// check says whether a row of that id exists; first is the lowest.
func (r *rowsAt) check(what string, id, first int) error {
	if id < first || id >= len(r.row) {
		return fmt.Errorf("%s %d does not exist", what, id)
	}
	return nil
}

// advance checks that every span starts where its slot's state is, and moves that behind it.
func (f *fixed) advance(b *backend.Batch) {
	if f.floats == 0 {
		return
	}
	for i := range b.Spans {
		sp := &b.Spans[i]
		if err := f.slots.check("slot", int(sp.Slot), 0); err != nil {
			panic(fmt.Sprintf("cpu: span %d: %v", i, err))
		}
		at := &f.slots.at[sp.Slot]
		if *at != sp.Start {
			panic(fmt.Sprintf("cpu: span %d starts at %d, the state of slot %d is of %d tokens", i, sp.Start, sp.Slot, *at))
		}
		f.drafts.begin(sp, (i == 0 || b.Spans[i-1].Slot != sp.Slot) && (i+1 == len(b.Spans) || b.Spans[i+1].Slot != sp.Slot))
		if sp.Tentative {
			continue
		}
		if *at += sp.Len; sp.Snapshot != 0 {
			if err := f.snaps.check("snapshot", int(sp.Snapshot), 1); err != nil {
				panic(fmt.Sprintf("cpu: span %d: %v", i, err))
			}
			f.snaps.at[sp.Snapshot] = *at
		}
	}
}

// of is n floats of the state of a span's slot, and the place of a copy as of the span's end: a snapshot, or nil. The end
// of a tentative span goes to the slot's shadow alone.
func (f *fixed) of(id backend.StateID, sp *backend.Span, from, n int) (slot, end []float32) {
	from += f.offset[id]
	if sp.Tentative {
		end = f.drafts.open[sp.Slot].state[from:][:n:n]
	}
	if sp.Snapshot != 0 {
		end = f.snaps.row[sp.Snapshot][from:][:n:n]
	}
	return f.slots.row[sp.Slot][from:][:n:n], end
}

// restore makes slot continue after m.
func (f *fixed) restore(slot kv.SlotID, m *kv.Match) error {
	if f.floats == 0 {
		return nil
	}
	if err := f.slots.check("slot", int(slot), 0); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	f.drafts.end(slot)
	if m.Snap == 0 {
		if m.Tokens != 0 {
			return fmt.Errorf("open slot %d: a match of %d tokens has no snapshot", slot, m.Tokens)
		}
		clear(f.slots.row[slot])
		f.slots.at[slot] = 0
		return nil
	}
	if err := f.snaps.check("snapshot", int(m.Snap), 1); err != nil {
		return fmt.Errorf("open slot %d: %w", slot, err)
	}
	if at := f.snaps.at[m.Snap]; at != m.Tokens {
		return fmt.Errorf("open slot %d: snapshot %d is of %d tokens, the match of %d", slot, m.Snap, at, m.Tokens)
	}
	copy(f.slots.row[slot], f.snaps.row[m.Snap])
	f.slots.at[slot] = m.Tokens
	return nil
}

func (f *fixed) snapshot(slot kv.SlotID, id kv.SnapID) error {
	if f.floats == 0 {
		return nil
	}
	if err := f.slots.check("slot", int(slot), 0); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := f.snaps.check("snapshot", int(id), 1); err != nil {
		return err
	}
	copy(f.snaps.row[id], f.slots.row[slot])
	f.snaps.at[id] = f.slots.at[slot]
	return nil
}

// snap is a snapshot's bytes as they lie in memory.
func (f *fixed) snap(what string, id kv.SnapID) ([]byte, error) {
	if err := f.snaps.check("snapshot", int(id), 1); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	r := f.snaps.row[id]
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(r))), 4*len(r)), nil
}

// export writes after how many tokens a snapshot is, and its bytes.
func (f *fixed) export(w io.Writer, id kv.SnapID) error {
	p, err := f.snap("export", id)
	if err != nil {
		return err
	}
	n := binary.LittleEndian.AppendUint64(nil, uint64(f.snaps.at[id]))
	if _, err = w.Write(n); err == nil {
		_, err = w.Write(p)
	}
	if err != nil {
		return fmt.Errorf("export snapshot %d: %w", id, err)
	}
	return nil
}

func (f *fixed) load(r io.Reader, id kv.SnapID) error {
	p, err := f.snap("import", id)
	if err != nil {
		return err
	}
	var n [8]byte
	if _, err = io.ReadFull(r, n[:]); err == nil {
		_, err = io.ReadFull(r, p)
	}
	if err != nil {
		return fmt.Errorf("import snapshot %d: %w", id, err)
	}
	f.snaps.at[id] = int(binary.LittleEndian.Uint64(n[:]))
	return nil
}
