//go:build darwin || linux

package mlx_test

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/engine"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/sample"
)

// held is what a process has that must not grow: arrays of MLX's, bytes in them, and the most memory there was.
type held struct {
	live          int
	active, peak  int64
	resident      int64 // the most since start: KiB on Linux, bytes on macOS
	steps, flying int64
}

// decodeFor runs requests of 200 tokens, one after the other and every third not greedy, until there have been so many steps.
func decodeFor(t testing.TB, e *engine.Engine, be *mlx.Backend, steps int) held {
	t.Helper()
	for n := 0; n < steps; {
		p := engine.Prompt{Tokens: []int32{1, 2, 3, 4, 5, 6, 7, 8}, MaxTokens: min(200, steps-n), Logprobs: -1}
		if n%3 == 2 {
			p.Sampling = sample.Params{Temperature: 1, TopP: 0.9, TopK: 20, MinP: 0.01, Seed: uint64(n)}
		}
		s, err := e.Submit(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err = s.Next(); err != nil {
				break
			}
			n++
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	for range 2 { // before the second, the loop has had nothing to do
		if _, err := e.DropCache(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	m, st := be.Memory(), e.Stats()
	return held{be.LiveNow(), m.Active, m.Peak, u.Maxrss, st.Steps, st.Ahead}
}

// steady compares what is held after warming up and a fifth of so many steps with what is held after the last fifth.
func steady(t testing.TB, typ string, steps int) {
	be := testshim.Open(t)
	m, err := model.Synthetic{Config: configOf(t, typ), Seed: 3, Type: quant.F32}.Load(be, B.Options{Precision: B.Float32})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, Budget: 1 << 24, MaxContext: 400})
	if err != nil {
		t.Fatal(err)
	}
	const parts = 5
	decodeFor(t, e, be, 250)
	var all []held
	for range parts {
		be.ResetPeak()
		all = append(all, decodeFor(t, e, be, steps/parts))
		t.Logf("%s: %+v", typ, all[len(all)-1])
	}
	first, last, most := all[0], all[parts-1], int64(0)
	for _, h := range all[:parts-1] {
		most = max(most, h.peak)
	}
	// How many arrays there are at once depends on how far MLX's threads are; numbers that are made once are small.
	if last.live != first.live || last.active > first.active+4096 || last.peak > most*5/4 {
		t.Errorf("%s: after %d steps more is held", typ, steps)
	}
	if err := errors.Join(e.Close(), m.Close(), be.Close()); err != nil {
		t.Error(err)
	}
}

// TestSteady: decoding leaves nothing behind.
func TestSteady(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	for _, typ := range []string{"qwen3", "gpt_oss", "qwen3_next", "deepseek_v3"} {
		steady(t, typ, 300)
	}
}

// BenchmarkSteady is TestSteady for as many steps as -benchtime says.
func BenchmarkSteady(b *testing.B) {
	testshim.Library(b, testshim.Newest)
	steady(b, "qwen3", max(b.N, 300))
}
