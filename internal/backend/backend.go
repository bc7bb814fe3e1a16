package backend

import (
	"slices"

	"hearth/internal/sample"
)

// Caps are facts the engine plans with. No architecture reads them.
type Caps struct {
	Eager      bool // ops have run when they return; else Submit/Floats run them
	LateTokens bool // Batch.Late is understood: the engine may keep one step in flight
	Invariant  bool // a row's result is bit-identical whatever else is in the batch and however the prompt was cut
	World      int  // tensor-parallel ranks, 1 if none
	Rank       int
	Acts       []DType // types of activations by Precision, where that is all it chooses (mlx); nil: it means what it says
}

// Precision is how far the cpu backend rounds activations for products, in ascending order. For others see Caps.Acts.
type Precision uint8

const (
	// Fast: to 8 bits per group where weights are quantised, to bfloat16 where they are bfloat16 and the CPU multiplies that.
	Fast     Precision = iota
	Outliers           // as Fast, but that where a row's group stands out its largest numbers have 15 bits
	Exact              // to 16 bits per group where weights are quantised, else not at all
	Float32            // not at all
)

// PrecisionNames are those of the precisions, in their order.
var PrecisionNames = []string{"fast", "outliers", "exact", "float32"}

func (p Precision) String() string { return PrecisionNames[p] }

// ParsePrecision is the precision of that name.
func ParsePrecision(name string) (p Precision, ok bool) {
	i := slices.Index(PrecisionNames, name)
	return Precision(max(i, 0)), i >= 0
}

// Options are fixed for the life of a loaded model.
type Options struct {
	Precision Precision
	Mapped    bool // cpu: weights stay where their files are mapped, and every step packs them anew
	Threads   int
}

// Backend opens models. One value per process and device; not safe for concurrent use: one engine goroutine
// (mlx: locked to its thread) calls it.
type Backend interface {
	Name() string
	Caps() Caps
	NewLoader(Options) Loader
	NewStore([]StateSpec, KVPolicy) (Store, error)
	// Begin opens a step. The backend derives everything that depends on the batch once here: masks, groups of
	// equal spans, page lists, rotation tables. s is nil for stateless batches (vision, embeddings).
	Begin(s Store, b *Batch) Scope
	Unpin(Array)
	Close() error
}

// Scope is one step: the ops, and the life of every array they make.
type Scope interface {
	Ops
	// Upload copies host numbers in (image patches). rows*cols == len(data).
	Upload(data []float32, rows, cols int) Array
	// Submit starts computing what the arrays need without waiting (async_eval). A no-op when eager.
	Submit(a ...Array)
	// Floats and Ints wait for a and give its rows as host memory, valid as long as a is.
	Floats(a Array) ([]float32, error)
	Ints(a Array) ([]int32, error)
	// Pin gives a handle that outlives the scope (image features, late tokens); Backend.Unpin ends it.
	Pin(Array) Array
	// Err is the first failure of any op; ops after a failure return arrays of the right shape and do nothing.
	Err() error
	// End frees every array of the step that is not pinned. State written by a failed step is undefined from
	// each span's Start on; the engine drops those sequences.
	End()
}

// DeviceSampler is optional: the next token without a host round trip. It must agree with package sample exactly at
// temperature 0, and but for roundings of the running sum otherwise.
type DeviceSampler interface {
	// Sample draws from every row of logits: I32 [rows, 1], -1 where they are not finite.
	Sample(o Scope, logits Array, p []sample.Draw) Array
}

// Spreader is optional: it lends the backend's threads for work on the host between ops, such as sampling. Spread calls
// f for every i in [0, n), some at the same time, and returns when all are done; a panic of f is raised in the caller.
// Concurrent calls have different workers, all below Workers.
type Spreader interface {
	Workers() int
	Spread(n int, f func(worker, i int))
}
