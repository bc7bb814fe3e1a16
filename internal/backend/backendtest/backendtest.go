// Package backendtest is the suite every backend passes: each op over each weight format against the float64 oracle in
// backend/ref with bounds that follow from the arithmetic, the equalities that determinism promises, array lifetimes,
// and wrong shapes. Only tests import it.
package backendtest

import (
	"math"
	"testing"

	B "hearth/internal/backend"
)

// Config describes the backend under test.
type Config struct {
	Open func() B.Backend
	// Eps is the relative rounding of one operation on activations: 2^-24 where they are float32.
	Eps float64
	// Int8 says that quantised weights meet activations rounded to 8 bits per group unless Options.Exact is set.
	Int8 bool
	// Int8Small says so of nvfp4.
	Int8Small bool
	// Half says that bfloat16 weights meet activations rounded to bfloat16, and keys and values queries and weights, unless
	// Options.Exact is set.
	Half bool
	// Codes says that 8-bit keys and values in groups of 64 meet queries and weights of 15 bits, unless Options.Exact is set.
	Codes bool
	// I16 says that keys and values of heads of 64 are kept as whole numbers of 16 bits where nothing else is asked for.
	I16 bool
	// Threads are the counts that must agree with each other.
	Threads []int
	// Share is by how much of the largest number results may differ that other backends have with equal bits; 0: not at all.
	Share float64
	// Small is an absolute error allowed of activations near zero, for a library whose erf or tanh loses digits there.
	Small float64
}

// compares reports whether results that may be the same are the same on this backend, in bits or nearly.
func (c Config) compares(be B.Backend) bool { return be.Caps().Invariant || c.Share > 0 }

// same compares bits, or what is near enough.
func (c Config) same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if c.Share == 0 {
		same(t, what, got, want)
		return
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d and %d numbers", what, len(got), len(want))
	}
	top := 0.0
	for _, v := range want {
		top = max(top, math.Abs(float64(v)))
	}
	for i, v := range got {
		if !(math.Abs(float64(v)-float64(want[i])) <= c.Share*top) {
			t.Fatalf("%s: number %d is %g and %g", what, i, v, want[i])
		}
	}
}

// Run runs the suite. Equalities are checked only where the backend claims Caps.Invariant.
func Run(t *testing.T, c Config) {
	t.Run("Linear", c.linear)
	t.Run("LinearGLU", c.linearGLU)
	t.Run("Table", c.table)
	t.Run("Fused", c.fused)
	t.Run("Route", c.route)
	t.Run("MoE", c.moe)
	t.Run("Adapters", c.adapters)
	t.Run("Rows", c.rowOps)
	t.Run("Norms", c.norms)
	t.Run("RoPE", c.rope)
	t.Run("Move", c.moves)
	t.Run("Attention", c.attention)
	t.Run("Stateless", c.stateless)
	t.Run("LongContext", c.longContext)
	t.Run("MLA", c.mla)
	t.Run("Equal", c.equalities)
	t.Run("KVTypes", c.kvTypes)
	t.Run("Store", c.store)
	t.Run("Convolutions", c.convolutions)
	t.Run("Recurrent", c.recurrent)
	t.Run("RecurrentEqual", c.recurrentEqual)
	t.Run("Snapshots", c.snapshots)
	t.Run("Drafts", c.drafts)
	t.Run("Lifetimes", c.lifetimes)
	t.Run("Shapes", c.shapes)
}

// open makes a backend that is closed with the test.
func (c Config) open(t testing.TB) B.Backend {
	b := c.Open()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// load loads s or fails the test.
func load(t testing.TB, be B.Backend, o B.Options, s B.WeightSpec) B.Weight {
	t.Helper()
	ld := be.NewLoader(o)
	w, err := ld.Load(s)
	if err != nil {
		t.Fatalf("load %s: %v", s.Name, err)
	}
	if err := ld.Close(); err != nil {
		t.Fatal(err)
	}
	return w
}

// rows is a stateless batch of n rows in one span at positions 0 to n-1, all of them wanted.
func rows(n int) *B.Batch {
	b := &B.Batch{}
	if n > 0 {
		b.Spans = []B.Span{{Slot: -1, Len: n}}
	}
	b.Pos[0] = []int32{}
	for i := range n {
		b.Pos[0] = append(b.Pos[0], int32(i))
		b.Out = append(b.Out, int32(i))
	}
	return b
}

// floats reads an array that must not fail.
func floats(t testing.TB, s B.Scope, a B.Array) []float32 {
	t.Helper()
	f, err := s.Floats(a)
	if err != nil {
		t.Fatal(err)
	}
	if len(f) != a.Rows()*a.Cols() {
		t.Fatalf("Floats gave %d numbers for %d×%d", len(f), a.Rows(), a.Cols())
	}
	return append([]float32(nil), f...)
}

// panics runs f and gives what it panicked with, or fails.
func panics(t testing.TB, what string, f func()) (msg string) {
	t.Helper()
	defer func() {
		r := recover()
		if r == nil {
			t.Errorf("%s did not panic", what)
			return
		}
		msg, _ = r.(string)
		if msg == "" {
			t.Errorf("%s panicked with %v, want a text", what, r)
		}
	}()
	f()
	return ""
}
