package mlx

import (
	"encoding/binary"
	"fmt"
	"io"

	B "hearth/internal/backend"
	"hearth/internal/kv"
)

// fixed is the recurrent state of one sequence, after its first n tokens: an array in float32 per state, zero where all
// numbers are. A recurrent state is [heads, KDim, VDim], that of a convolution [K-1, columns], the oldest row first.
type fixed struct {
	n     int
	state []handle
}

// draft is what a tentative span leaves: of every state, what it is after each number of tokens.
type draft struct {
	rows  int
	after []func(n int) handle
}

func (s *Store) newFixed() *fixed { return &fixed{state: make([]handle, len(s.specs))} }

// advanceFixed checks that a span starts where the state is, and moves that behind it.
func (s *Store) advanceFixed(sl *slot, sp *B.Span) {
	if !B.Fixed(s.specs) {
		return
	}
	if sl.draft != nil {
		panic(fmt.Sprintf("mlx: slot %d has a tentative span that was not committed", sp.Slot))
	}
	if sl.fixed.n != sp.Start {
		panic(fmt.Sprintf("mlx: a span starts at %d, the state of slot %d is of %d tokens", sp.Start, sp.Slot, sl.fixed.n))
	}
	if sp.Tentative {
		sl.draft = &draft{sp.Len, make([]func(int) handle, len(s.specs))}
		return
	}
	if sl.fixed.n += sp.Len; sp.Snapshot != 0 {
		s.dropSnap(sp.Snapshot)
		s.snaps[sp.Snapshot] = s.newFixed()
		s.snaps[sp.Snapshot].n = sl.fixed.n
	}
}

// running is the state a span starts with, on the owner's thread.
func (s *Store) running(id B.StateID, sp *B.Span) handle {
	l, d := s.be.o.lib, s.specs[id]
	if h := s.slot(sp.Slot).fixed.state[id]; h != 0 {
		return l.again(h)
	}
	if d.Kind == B.StateConv {
		return l.zeros(f32, d.VDim, d.KDim)
	}
	return l.zeros(f32, d.Heads, d.KDim, d.VDim)
}

// ran stores what a span left: after gives the state after n of its tokens, and keeps what it needs for that alive through held.
func (s *Store) ran(id B.StateID, sp *B.Span, held []handle, after func(n int) handle) {
	l, sl := s.be.o.lib, s.slot(sp.Slot)
	if sp.Tentative {
		for _, h := range held {
			l.retain(h)
		}
		sl.draft.after[id] = func(n int) handle {
			h := handle(0)
			if n > 0 {
				h = l.retain(after(n))
			}
			for _, k := range held {
				if k != h {
					l.free(k)
				}
			}
			return h
		}
		return
	}
	h := l.retain(after(sp.Len))
	l.free(sl.fixed.state[id])
	sl.fixed.state[id] = h
	if snap := s.snaps[sp.Snapshot]; sp.Snapshot != 0 && snap != nil {
		snap.state[id] = l.retain(l.again(h))
	}
}

// Commit keeps the first n rows of a tentative span.
func (s *Store) Commit(id kv.SlotID, n int) {
	sl := s.slots[id]
	if sl == nil || sl.draft == nil {
		return
	}
	d := sl.draft
	if n < 0 || n > d.rows {
		panic(fmt.Sprintf("mlx: %d rows of a tentative span of %d are kept", n, d.rows))
	}
	sl.draft = nil
	sl.fixed.n += n
	s.be.later(func() {
		for state, after := range d.after {
			if after == nil {
				continue
			}
			if h := after(n); h != 0 {
				s.be.o.free(sl.fixed.state[state])
				sl.fixed.state[state] = h
			}
		}
	})
}

// copyFixed makes dst what src is.
func (s *Store) copyFixed(dst, src *fixed) {
	l := s.be.o.lib
	dst.n = src.n
	s.be.later(func() {
		for i, h := range src.state {
			l.free(dst.state[i])
			dst.state[i] = 0
			if h != 0 {
				dst.state[i] = l.retain(l.again(h))
			}
		}
	})
}

func (s *Store) dropFixed(sl *slot) {
	if d := sl.draft; d != nil {
		sl.draft = nil
		s.be.later(func() {
			for _, after := range d.after {
				if after != nil {
					after(0)
				}
			}
		})
	}
	s.freeFixed(sl.fixed)
}

func (s *Store) freeFixed(f *fixed) {
	s.be.later(func() {
		for i, h := range f.state {
			s.be.o.free(h)
			f.state[i] = 0
		}
	})
}

// restore makes a slot continue after a snapshot.
func (s *Store) restore(sl *slot, id kv.SlotID, m *kv.Match) error {
	if !B.Fixed(s.specs) {
		return nil
	}
	if m.Snap == 0 {
		if m.Tokens != 0 {
			return fmt.Errorf("open slot %d: a match of %d tokens has no snapshot", id, m.Tokens)
		}
		return nil
	}
	snap := s.snaps[m.Snap]
	if snap == nil {
		return fmt.Errorf("open slot %d: there is no snapshot %d", id, m.Snap)
	}
	if snap.n != m.Tokens {
		return fmt.Errorf("open slot %d: snapshot %d is of %d tokens, the match of %d", id, m.Snap, snap.n, m.Tokens)
	}
	s.copyFixed(sl.fixed, snap)
	return nil
}

// Snapshot copies nothing: arrays do not change.
func (s *Store) Snapshot(id kv.SlotID, snap kv.SnapID) error {
	s.dropSnap(snap)
	f := s.newFixed()
	s.snaps[snap] = f
	s.copyFixed(f, s.slot(id).fixed)
	return nil
}

func (s *Store) dropSnap(id kv.SnapID) {
	if f := s.snaps[id]; f != nil {
		delete(s.snaps, id)
		s.freeFixed(f)
	}
}

// size is how many numbers a state of fixed size has; 0 for the others.
func size(d *B.StateSpec) int {
	if d.Paged() {
		return 0
	}
	return d.Heads * d.KDim * d.VDim
}

func (s *Store) exportSnap(w io.Writer, id kv.SnapID) error {
	f := s.snaps[id]
	if f == nil {
		return fmt.Errorf("export snapshot %d: never taken", id)
	}
	all := binary.LittleEndian.AppendUint64(nil, uint64(f.n))
	l := s.be.o.lib
	s.be.later(func() {
		for i := range s.specs {
			n := 4 * size(&s.specs[i])
			if f.state[i] == 0 {
				all = append(all, make([]byte, n)...)
			} else if n > 0 {
				all = l.bytes(all, f.state[i], n)
			}
		}
	})
	err := s.be.settle()
	if err == nil {
		_, err = w.Write(all)
	}
	if err != nil {
		return fmt.Errorf("export snapshot %d: %w", id, err)
	}
	return nil
}

func (s *Store) importSnap(r io.Reader, id kv.SnapID) error {
	var n [8]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return fmt.Errorf("import snapshot %d: %w", id, err)
	}
	f, raw := s.newFixed(), make([][]byte, len(s.specs))
	f.n = int(binary.LittleEndian.Uint64(n[:]))
	for i := range s.specs {
		raw[i] = make([]byte, 4*size(&s.specs[i]))
		if _, err := io.ReadFull(r, raw[i]); err != nil {
			return fmt.Errorf("import snapshot %d: %w", id, err)
		}
	}
	s.dropSnap(id)
	s.snaps[id] = f
	l := s.be.o.lib
	s.be.later(func() {
		for i, b := range raw {
			d := s.specs[i]
			switch {
			case d.Paged():
			case d.Kind == B.StateConv:
				f.state[i] = l.retain(upload(l, b, f32, d.VDim, d.KDim))
			default:
				f.state[i] = l.retain(upload(l, b, f32, d.Heads, d.KDim, d.VDim))
			}
		}
	})
	return s.be.settle()
}
