// Package cpu is the native engine: the backend contract on the processor, in Go over package kernel. It owns the
// threads, the packed weights, the paged KV cache and the memory of a step. The engine calls it through package
// backend; cli makes one. It knows no architecture, logs nothing and reads no environment.
//
// Results are invariant: a row's bits depend on its own sequence and the weights, never on other rows, on how a prompt
// was cut, or on the number of threads. A step that has been run before allocates nothing.
package cpu

import (
	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// Backend runs one loaded model (and a drafter beside it). Close stops its threads and frees the weights and stores it
// made, which must not be used afterwards.
type Backend struct {
	opts backend.Options
	mem  kernel.Memory // weights and KV cache
	win  windows       // of weights that are not packed
	pool *pool

	arrays []*array // by slot; slot 0 is never used
	free   []uint32
	gen    uint32
	acts   []*acts // free to be used again

	scopes [2]*scope
	work   Work
	last   *part // of the last product

	rehearsing bool // steps compute nothing

	// Jobs and their per-thread scratch live here so that starting one allocates nothing.
	rows   rowJob
	prep   prepJob
	mul    mulJob
	attn   attnJob
	lent   lentJob
	moe    moeJob
	conv   convJob
	delta  deltaJob
	ssm    ssmJob
	replay replayJob
	heads  headJob

	latent backend.Attn // how the heads of the last MLA attend
}

var (
	_ backend.Backend  = (*Backend)(nil)
	_ backend.Spreader = (*Backend)(nil)
)

// New makes a backend; threads start with the first step.
func New() *Backend { return &Backend{arrays: []*array{nil}} }

func (b *Backend) Name() string { return "cpu" }

func (b *Backend) Caps() backend.Caps {
	return backend.Caps{Eager: true, Invariant: true, World: 1}
}

// NewLoader fixes precision and threads for the weights it loads and for stores and steps from then on.
func (b *Backend) NewLoader(o backend.Options) backend.Loader {
	if o.Threads <= 0 {
		o.Threads = Threads()
	}
	b.opts = o
	return &loader{be: b}
}

// workers starts the threads, or replaces them when another loader asked for another number.
func (b *Backend) workers() *pool {
	if b.rehearsing {
		return idle
	}
	n := max(b.opts.Threads, 1)
	if b.pool != nil && b.pool.size != n {
		b.pool.close()
		b.pool = nil
	}
	if b.pool == nil {
		b.pool = newPool(n)
	}
	return b.pool
}

func (b *Backend) Begin(s backend.Store, batch *backend.Batch) backend.Scope {
	p := b.workers()
	for i, sc := range b.scopes {
		if sc == nil {
			sc = &scope{be: b}
			b.scopes[i] = sc
		}
		if !sc.open {
			sc.pool = p
			sc.begin(s, batch)
			return sc
		}
	}
	panic("cpu: two steps are open already")
}

// Work is what a benchmark holds against the limits of the machine.
type Work struct {
	Read   int64 // bytes of weights that products have gone through, once per product however many rows it had
	Fast   int64 // operations of products with activations rounded to integers, two per weight and row
	Half   int64 // of those of bfloat16 weights with activations rounded to bfloat16
	Floats int64 // of all other products
	Attend int64 // of attention, two per query and number of a key or a value
}

// Work counts what steps have done so far.
func (b *Backend) Work() Work { return b.work }

// count adds a product of so many rows.
func (b *Backend) count(m *kernel.Matrix, prec kernel.Precision, rows int) {
	b.work.Read += int64(m.Bytes())
	ops := 2 * int64(m.Rows()) * int64(m.Cols()) * int64(rows)
	switch {
	case prec == kernel.Half:
		b.work.Half += ops
	case prec == kernel.Floats:
		b.work.Floats += ops
	case prec == kernel.Fine:
		b.work.Fast += 2 * ops
	default:
		b.work.Fast += ops
	}
}

// Workers implements backend.Spreader.
func (b *Backend) Workers() int { return b.workers().size }

// Spread implements backend.Spreader.
func (b *Backend) Spread(n int, f func(worker, i int)) {
	b.lent.f = f
	b.workers().run(&b.lent, n, 1, 1)
	b.lent.f = nil
}

// lentJob is work of somebody else.
type lentJob struct{ f func(worker, i int) }

func (j *lentJob) run(worker, from, to int) {
	for i := from; i < to; i++ {
		j.f(worker, i)
	}
}

func (b *Backend) Unpin(h backend.Array) {
	slot, gen := h.Slot()
	if a := b.array(slot, gen); a != nil && a.pinned {
		b.release(slot)
	}
}

func (b *Backend) Close() error {
	if b.pool != nil {
		b.pool.close()
		b.pool = nil
	}
	for _, s := range b.scopes {
		if s != nil {
			s.free()
		}
	}
	b.mem.Free()
	return nil
}

// array is a matrix in the memory of a step: row r starts at data[r*stride].
type array struct {
	data               []float32
	rows, cols, stride int

	gen    uint32 // 0: free
	owner  uint32 // slot of the array this is a view of; its own slot otherwise
	arena  int8   // which arena of its scope holds it
	kept   bool
	pinned bool
	acts   []*acts // prepared forms, one per precision and group asked for
}

func (a *array) row(r int) []float32 { return a.data[r*a.stride:][:a.cols:a.cols] }

func (b *Backend) array(slot, gen uint32) *array {
	if int(slot) >= len(b.arrays) || slot == 0 || gen == 0 || b.arrays[slot].gen != gen {
		return nil
	}
	return b.arrays[slot]
}

// slot makes a live array without memory.
func (b *Backend) slot(rows, cols int) (uint32, *array) {
	var n uint32
	if len(b.free) > 0 {
		n = b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
	} else {
		n = uint32(len(b.arrays))
		b.arrays = append(b.arrays, &array{})
	}
	if b.gen++; b.gen == 0 {
		b.gen = 1
	}
	a := b.arrays[n]
	*a = array{rows: rows, cols: cols, stride: cols, gen: b.gen, owner: n, acts: a.acts[:0]}
	return n, a
}

func (b *Backend) release(slot uint32) {
	a := b.arrays[slot]
	b.acts = append(b.acts, a.acts...)
	a.gen, a.data, a.acts = 0, nil, a.acts[:0]
	b.free = append(b.free, slot)
}

// acts is an activation matrix in the form a weight multiplies.
type acts struct {
	kernel.Acts
	prec  kernel.Precision
	group int
}
