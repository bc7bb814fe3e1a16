package bench

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"hearth/internal/demo"
	"hearth/internal/engine"
	"hearth/internal/generate"
)

// TestManyConversations: of 10,000 conversations of 2,000 tokens through a cache for 500, nothing is left in memory but
// what the cache holds.
func TestManyConversations(t *testing.T) {
	count := 10000
	if testing.Short() {
		count = 3000
	}
	const length = 2000
	text, err := generate.Load(demo.FS(), "")
	if err != nil {
		t.Fatal(err)
	}
	m := newIdle(text.Tokenizer, 0)
	e, err := engine.New(engine.Config{Model: m, Backend: m, Budget: 500 * length / 64, MaxContext: 2 * length})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := rand.New(rand.NewPCG(1, 2))
	prompt := make([]int32, length)
	heap := func() float64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return float64(s.HeapAlloc)
	}
	var full float64
	for i := range count {
		for k := length / 10; k < length; k++ { // they begin alike
			prompt[k] = r.Int32()
		}
		s, err := e.Submit(context.Background(), engine.Prompt{Tokens: prompt, MaxTokens: 1, Logprobs: -1})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = s.Next()
		}
		if !errors.Is(err, io.EOF) || i > 0 && s.Usage().Cached < length/10 {
			t.Fatalf("conversation %d: %d cached: %v", i, s.Usage().Cached, err)
		}
		if i == count/4 {
			full = heap()
		}
	}
	if now := heap(); now > 1.05*full {
		t.Errorf("%d conversations left %.0f bytes in memory, a quarter of them %.0f", count, now, full)
	}
	if s := e.Stats(); s.Cache.Bytes > s.Budget || s.Cache.Entries < 400 || s.Used != 0 {
		t.Errorf("%+v", s)
	}
}
