//go:build darwin || linux

package mlx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	B "hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/engine"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// rigged is MLX with other answers to some calls, so that it looks like a Mac's.
type rigged struct {
	mlx.Library
	lacks   string
	swap    map[string]string // functions for others
	version string            // "": MLX's own
	metal   bool
	sizes   map[string]uint64 // of the device
	active  uint64            // bytes in use; 0: those that are
	limits  map[string]uint64 // set
	names   map[uintptr]string
	calls   map[string]int // not nil: counted, by name
}

// pointer makes a pointer of an argument.
func pointer[T any](arg *uintptr) *T { return *(**T)(unsafe.Pointer(arg)) }

func (r *rigged) Symbol(name string) (uintptr, bool) {
	if name == r.lacks {
		return 0, false
	}
	if other := r.swap[name]; other != "" {
		name = other
	}
	p, ok := r.Library.Symbol(name)
	if r.names == nil {
		r.names = map[uintptr]string{}
	}
	r.names[p] = name
	return p, ok
}

// count counts a call.
func (r *rigged) count(fn uintptr) {
	if r.calls != nil {
		r.calls[r.names[fn]]++
	}
}

func (r *rigged) CallFloat(fn uintptr, f float32, args ...uintptr) uintptr {
	r.count(fn)
	return r.Library.CallFloat(fn, f, args...)
}

func (r *rigged) Call(fn uintptr, args ...uintptr) uintptr {
	r.count(fn)
	switch name := r.names[fn]; name {
	case "mlx_metal_is_available":
		*pointer[bool](&args[0]) = r.metal
		return 0
	case "mlx_default_gpu_stream_new":
		fn, _ = r.Library.Symbol("mlx_default_cpu_stream_new")
	case "mlx_device_info_get":
		return 0
	case "mlx_device_info_get_size":
		key := pointer[[64]byte](&args[2])
		v, ok := r.sizes[string(key[:strings.IndexByte(string(key[:]), 0)])]
		if !ok {
			return 2
		}
		*pointer[uint64](&args[0]) = v
		return 0
	case "mlx_set_memory_limit", "mlx_set_cache_limit", "mlx_set_wired_limit":
		if r.limits == nil {
			r.limits = map[string]uint64{}
		}
		r.limits[name] = uint64(args[1])
	case "mlx_get_active_memory":
		if r.active != 0 {
			*pointer[uint64](&args[0]) = r.active
			return 0
		}
	}
	return r.Library.Call(fn, args...)
}

func (r *rigged) Bind(f any, fn uintptr) {
	if r.names[fn] == "mlx_string_data" && r.version != "" {
		text := append([]byte(r.version), 0)
		v := reflect.ValueOf(f).Elem()
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.ValueOf(&text[0])} }))
		return
	}
	r.Library.Bind(f, fn)
}

// open opens a copy of the library, because libraries stay open with their error handlers.
func (r *rigged) open(t *testing.T, c mlx.Config) (*mlx.Backend, error) {
	t.Helper()
	code, err := os.ReadFile(testshim.Library(t, testshim.Newest))
	if err != nil {
		t.Fatal(err)
	}
	c.Path = filepath.Join(t.TempDir(), "libmlxc.so")
	if err := os.WriteFile(c.Path, code, 0o700); err != nil {
		t.Fatal(err)
	}
	c.Activations = B.F32
	c.Link = func(path string) (mlx.Library, error) {
		r.Library, err = testshim.Link(path)
		return r, err
	}
	return mlx.Open(c)
}

const gib = 1 << 30

// TestLimits: MLX is told what it may use, keeps what is loaded resident, and says what room there is and what to set.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		limit, total uint64
		weights      int64
		want         string // of the error; "": there is room
	}{
		{limit: 12 * gib, total: 16 * gib, weights: 6 * gib},
		{limit: 12 * gib, total: 16 * gib, weights: 12 * gib, want: "the GPU: the weights and a step of 2048 tokens need 13.4 GiB of 12.0; choose a smaller model, or --backend cpu"},
		{limit: 27 * gib, total: 36 * gib, weights: 28 * gib, want: "need 29.4 GiB of 27.0; let the GPU have more with `sudo sysctl iogpu.wired_limit_mb=31744`, choose a smaller model, or --backend cpu"},
		{limit: 96 * gib, total: 128 * gib, weights: 100 * gib, want: "sudo sysctl iogpu.wired_limit_mb=105472"},
		{limit: 96 * gib, total: 128 * gib, weights: 120 * gib, want: "of 96.0; choose a smaller model, or --backend cpu"},
		{weights: 500 * gib}, // not known
	} {
		t.Run(fmt.Sprintf("%d of %d", c.weights/gib, c.limit/gib), func(t *testing.T) {
			r := &rigged{metal: true, sizes: map[string]uint64{"max_recommended_working_set_size": c.limit, "memory_size": c.total}}
			if c.limit == 0 {
				r.lacks, r.sizes = "mlx_device_info_get_size", nil
			}
			be, err := r.open(t, mlx.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer be.Close()
			if d := be.Info().Device; d != "metal" {
				t.Errorf("device %q", d)
			}
			if be.Memory().Limit != int64(c.limit) || r.limits["mlx_set_memory_limit"] != c.limit {
				t.Errorf("memory %+v, limits %v", be.Memory(), r.limits)
			}
			cache := uint64(2 * gib)
			if c.limit > 0 {
				cache = min(cache, c.limit/16)
			}
			if r.limits["mlx_set_cache_limit"] != cache {
				t.Errorf("limits %v, want a cache of %d", r.limits, cache)
			}
			room, err := be.Room(c.weights, 2048)
			var short *B.MemoryError
			switch {
			case c.want != "":
				if !errors.As(err, &short) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %q, want %q", err, c.want)
				}
			case err != nil:
				t.Error(err)
			case c.limit == 0 && room != math.MaxInt64, c.limit > 0 && abs(room-int64(c.limit)+c.weights+be.Scratch(2048, 64)) > 1<<20:
				t.Errorf("room for %d bytes", room)
			}

			r.active = 5 * gib
			if _, err := be.NewStore(nil, B.KVPolicy{}); err != nil {
				t.Fatal(err)
			}
			be.Live()
			if want := min(r.active, c.limit); r.limits["mlx_set_wired_limit"] != want {
				t.Errorf("limits %v, want %d wired", r.limits, want)
			}
			r.active = 0
		})
	}
}

func abs(n int64) int64 { return max(n, -n) }

// TestShortStep: a step that would not fit is refused before MLX sees it. It ends its sequence, and the next one runs.
func TestShortStep(t *testing.T) {
	r := &rigged{sizes: map[string]uint64{}}
	be, err := r.open(t, mlx.Config{Device: "cpu", Limit: 2 * gib})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Synthetic{Config: configOf(t, "qwen3"), Seed: 3, Type: quant.F32}.Load(be, B.Options{Precision: B.Float32})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, Budget: 1 << 24, MaxContext: 400})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() (n int, err error) {
		s, err := e.Submit(context.Background(), engine.Prompt{Tokens: []int32{1, 2, 3}, MaxTokens: 20, Logprobs: -1})
		if err != nil {
			t.Fatal(err)
		}
		for ; err == nil; n++ {
			_, err = s.Next()
		}
		return n - 1, err
	}
	for range 2 {
		if n, err := ask(); n != 20 || !errors.Is(err, io.EOF) {
			t.Fatalf("%d tokens, %v", n, err)
		}
		_ = e.Stats() // the loop is idle
		r.active = 2*gib - 100
		var short *B.MemoryError
		if n, err := ask(); n != 0 || !errors.As(err, &short) || !strings.Contains(err.Error(), "the arrays of a step of 3 tokens need") {
			t.Errorf("%d tokens, %v", n, err)
		}
		r.active = 0
	}
	if err := errors.Join(e.Close(), m.Close(), be.Close()); err != nil {
		t.Error(err)
	}
}

// TestScratch: what a step has at once, besides weights and state, is below the estimate.
func TestScratch(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	for _, typ := range []string{"qwen3", "gemma3", "gpt_oss", "deepseek_v3", "qwen3_next"} {
		be := testshim.Open(t)
		m, err := model.Synthetic{Config: configOf(t, typ), Seed: 3, Type: quant.F32}.Load(be, B.Options{Precision: B.Float32})
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{1, 16, 128, 500} {
			s, tokens := golden.NewSequence(t, be, m, rows+1), make([]int32, rows)
			s.Step(tokens[:1], 0)
			peak := be.PeakOf(func() { s.Step(tokens, int32(rows-1)) })
			estimate := be.Scratch(rows, 1)
			t.Logf("%s, %d rows: %d KiB of %d", typ, rows, peak>>10, estimate>>10)
			if peak > estimate {
				t.Errorf("%s: a step of %d rows takes %d bytes, the estimate is %d", typ, rows, peak, estimate)
			}
		}
		if err := errors.Join(m.Close(), be.Close()); err != nil {
			t.Error(err)
		}
	}
}
