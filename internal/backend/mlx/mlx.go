// Package mlx runs models on Apple's MLX through its C library, libmlxc, which it opens at run time: no cgo, and nothing to
// install where it is not used. It owns the library's one thread, arrays that live on the device, and the state of sequences
// as one buffer each. The engine calls it through package backend; it never reads the environment or logs.
//
// MLX is lazy: ops build a graph on the owner's thread, and Submit or Floats computes it. To cross to that thread once per
// step and not once per op, a scope collects closures and hands them over when a result is asked for.
package mlx

import (
	"fmt"

	B "hearth/internal/backend"
)

// Backend is MLX as a backend. Make one with Open.
type Backend struct {
	o      *owner
	half   bool    // activations are bfloat16 unless a model is loaded to be exact
	act    B.DType // of activations
	gen    uint32
	queue  []task // for the owner, in order
	free   []*node
	pinned map[uint32]*node
	pins   uint32
	freqs  map[*B.Rope]handle // periods for MLX's own rope
	scales map[scalesKey]handle
	owned  []handle // of weights
	stores []*Store
	err    error // the first outside steps; the owner's

	before      int64 // bytes that were in use when this was opened
	tileBytes   int
	wide, table int // columns of the widest layer loaded, rows of the largest table
}

var (
	_ B.Backend = (*Backend)(nil)
	_ B.Device  = (*Backend)(nil)

	_ B.DeviceSampler = (*Backend)(nil)
)

// Open finds MLX, opens it and tests it. Errors say what to install or set.
func Open(c Config) (*Backend, error) {
	o, err := c.open()
	if err != nil {
		return nil, fmt.Errorf("open MLX: %w", err)
	}
	b := &Backend{o: o, half: c.half(o.device), act: B.F32, tileBytes: tileBytes, pinned: map[uint32]*node{}, freqs: map[*B.Rope]handle{}, scales: map[scalesKey]handle{}}
	o.wait(func() {
		o.gauge()
		b.before = o.gauges.active.Load()
	})
	return b, nil
}

// Info is what was opened. Checks is how many known answers the self-test compared.
type Info struct {
	Version, Layout, Path, Device string
	Checks                        int
}

func (b *Backend) Info() Info {
	return Info{b.o.version, b.o.layout.String(), b.o.path, b.o.device, len(b.o.checks())}
}

// Live is how many arrays of MLX's are alive in this process, for tests and metrics.
func (b *Backend) Live() (n int) {
	b.flush()
	b.o.wait(func() { n = b.o.live })
	return n
}

func (b *Backend) Name() string { return "mlx" }

func (b *Backend) Caps() B.Caps {
	few := B.F32
	if b.half {
		few = B.BF16
	}
	return B.Caps{LateTokens: true, World: max(b.o.world, 1), Rank: b.o.rank,
		Acts: []B.DType{B.Fast: few, B.Outliers: few, B.Exact: B.F32, B.Float32: B.F32}}
}

// Close frees weights, state and what is pinned. The library stays open for the process.
func (b *Backend) Close() error {
	for _, s := range b.stores {
		s.release()
	}
	b.later(func() {
		for _, h := range b.owned {
			b.o.free(h)
		}
		for _, h := range b.freqs {
			b.o.free(h)
		}
		for _, n := range b.pinned {
			b.o.free(n.h)
		}
		b.owned, b.freqs, b.scales, b.pinned = nil, nil, nil, nil
		b.o.wire()
	})
	return b.settle()
}

// settle flushes and gives the first error of what ran outside steps.
func (b *Backend) settle() (err error) {
	b.later(func() { err, b.err = b.err, nil })
	b.flush()
	return err
}

func (b *Backend) Unpin(a B.Array) {
	slot, _ := a.Slot()
	if n := b.pinned[slot]; n != nil && isPin(a) {
		delete(b.pinned, slot)
		b.later(func() { b.o.free(n.h) })
	}
}

// task is one thing for the owner to do: run, or make the array of a node.
type task struct {
	s    *scope // whose error it heeds; nil: it is of no step
	run  func()
	make func() handle
	n    *node
}

// later queues a closure for the owner. What fails in it is found by the next step, or by settle.
func (b *Backend) later(f func()) { b.queue = append(b.queue, task{run: f}) }

// flush runs what is queued.
func (b *Backend) flush() {
	q := b.queue
	if b.queue = q[:0]; len(q) == 0 {
		return
	}
	b.o.wait(func() {
		for i := range q {
			b.do(&q[i])
			b.o.release()
		}
	})
	clear(q)
}

// do is on the owner's thread.
func (b *Backend) do(t *task) {
	if t.s != nil {
		t.s.do(t)
		return
	}
	t.run()
	if err := b.o.takeErr(); err != nil && b.err == nil {
		b.err = err
	}
}

func (b *Backend) Begin(s B.Store, batch *B.Batch) B.Scope {
	b.gen = (b.gen + 1) % pinGen
	sc := &scope{be: b, l: b.o.lib, b: batch, gen: max(b.gen, 1), tables: map[tableKey]*tableData{}, masks: map[maskKey]*mask{}}
	b.gen = sc.gen
	sc.check.Batch = batch
	groups := 0
	if s != nil {
		sc.st = s.(*Store)
		sc.check.States = sc.st.specs
		groups = len(sc.st.windows)
	}
	sc.check.Begin(groups, B.PageTokens)
	rows, need := batch.Rows(), b.Scratch(batch.Rows(), len(batch.Out))
	b.later(func() {
		sc.err = sc.l.fits(rows, need)
		sc.l.building = true
	})
	if sc.st != nil {
		sc.wrote = sc.st.advance(batch)
	}
	return sc
}

// half: a GPU is as fast as its memory, MLX's CPU device is for tests and has no fast bfloat16.
func (c *Config) half(device string) bool {
	return c.Activations == B.BF16 || c.Activations == B.None && device == "metal"
}

// dtype of activations as MLX numbers it.
func (b *Backend) dtype() dtype {
	if b.act == B.BF16 {
		return bf16
	}
	return f32
}
