package cpu_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/backendtest"
	"hearth/internal/backend/cpu"
	"hearth/internal/kernel"
)

func TestBackend(t *testing.T) {
	for _, name := range kernel.Implementations() {
		t.Run(name, func(t *testing.T) {
			if err := kernel.Use(name); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = kernel.Use("") })
			backendtest.Run(t, backendtest.Config{
				Open:      func() backend.Backend { return cpu.New() },
				Eps:       1.0 / (1 << 24),
				Int8:      true,
				Int8Small: kernel.FormatForSmall(4) == kernel.FloatE2M1,
				Half:      kernel.DenseBF16.Form(kernel.Fast) == kernel.Half,
				Codes:     name == "avx512vnni" || name == "avx512bf16",
				I16:       name == "avx512vnni" || name == "avx2" || name == "avxvnni",
				Threads:   []int{1, 2, 3},
			})
		})
	}
}

// TestDecodeAllocates: a step that has run before takes no memory, so the collector has nothing to do between tokens.
func TestDecodeAllocates(t *testing.T) {
	for _, o := range []backend.Options{{Threads: 1}, {Threads: 2}, {Threads: 2, Precision: backend.Exact}, {Threads: 2, Precision: backend.Float32}} {
		be := cpu.New()
		for name, step := range map[string]func(){"decode": backendtest.DecodeStep(t, be, o), "mixture of experts": backendtest.MoEStep(t, be, o),
			"latent attention": backendtest.MLAStep(t, be, o), "gated delta rule": backendtest.DeltaStep(t, be, o),
			"state space model": backendtest.SSMStep(t, be, o, false), "steps per column": backendtest.SSMStep(t, be, o, true)} {
			for range 5 {
				step()
			}
			if n := testing.AllocsPerRun(50, step); n != 0 {
				t.Errorf("%+v: a step (%s) allocates %v times", o, name, n)
			}
		}
		if err := be.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		be := cpu.New()
		be.NewLoader(backend.Options{Threads: threads})
		var mu sync.Mutex
		busy, done := make([]bool, be.Workers()), make([]int, 50)
		be.Spread(len(done), func(worker, i int) {
			mu.Lock()
			if busy[worker] {
				t.Errorf("%d threads: worker %d runs twice at once", threads, worker)
			}
			busy[worker] = true
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
			busy[worker] = false
			done[i]++
			mu.Unlock()
		})
		for i, n := range done {
			if n != 1 {
				t.Errorf("%d threads: item %d was done %d times", threads, i, n)
			}
		}
		if err := be.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStoreRefuses(t *testing.T) {
	be := cpu.New()
	defer be.Close()
	kv := backend.StateSpec{Name: "0.kv", Heads: 1, KDim: 8, VDim: 8}
	for name, tc := range map[string]struct {
		spec   backend.StateSpec
		policy backend.KVPolicy
	}{
		"float64":    {kv, backend.KVPolicy{DType: backend.F64}},
		"three bits": {kv, backend.KVPolicy{Bits: 3}},
	} {
		if _, err := be.NewStore([]backend.StateSpec{tc.spec}, tc.policy); err == nil {
			t.Errorf("%s: opened", name)
		} else {
			t.Log(err)
		}
	}
}

// TestFingerprint: stores whose pages mean different things must not read each other's.
func TestFingerprint(t *testing.T) {
	spec := backend.StateSpec{Name: "0.kv", Heads: 1, KDim: 8, VDim: 8}
	seen := map[string]string{}
	for name, tc := range map[string]struct {
		o backend.Options
		p backend.KVPolicy
		s backend.StateSpec
	}{
		"plain":    {s: spec},
		"outliers": {s: spec, o: backend.Options{Precision: backend.Outliers}},
		"exact":    {s: spec, o: backend.Options{Precision: backend.Exact}},
		"float32":  {s: spec, o: backend.Options{Precision: backend.Float32}},
		"f32":      {s: spec, p: backend.KVPolicy{DType: backend.F32}},
		"f16":      {s: spec, p: backend.KVPolicy{DType: backend.F16}},
		"q8":       {s: spec, p: backend.KVPolicy{Bits: 8}},
		"q4":       {s: spec, p: backend.KVPolicy{Bits: 4}},
		"groups":   {s: spec, p: backend.KVPolicy{Bits: 4, Group: 32}},
		"window":   {s: backend.StateSpec{Name: "0.kv", Heads: 1, KDim: 8, VDim: 8, Window: 9}},
	} {
		be := cpu.New()
		be.NewLoader(tc.o)
		st, err := be.NewStore([]backend.StateSpec{tc.s}, tc.p)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[st.Fingerprint()]; ok {
			t.Errorf("%s and %s share a fingerprint", name, other)
		}
		seen[st.Fingerprint()] = name
		if !strings.Contains(st.Fingerprint(), kernel.Revisions()) {
			t.Errorf("%s does not say with which products: %s", name, st.Fingerprint())
		}
	}
}

func BenchmarkDecodeStep(b *testing.B) {
	be := cpu.New()
	defer be.Close()
	step := backendtest.DecodeStep(b, be, backend.Options{})
	for b.Loop() {
		step()
	}
}
