//go:build unix

package jsonschema

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hearth/internal/grammar"
	"hearth/internal/schema"
	"hearth/internal/tokenizer"
)

var suiteTokens = flag.String("tokenizer", "", "a model's folder, with whose tokens the masks of -suite are timed")

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// percentiles are of times, which it puts in order.
func percentiles(t *testing.T, what string, times []time.Duration) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	var all time.Duration
	for _, d := range times {
		all += d
	}
	at := func(p float64) time.Duration { return times[int(float64(len(times)-1)*p/100)] }
	t.Logf("%-8s %7d times: mean %v, p50 %v, p95 %v, p99 %v, p99.9 %v, at most %v", what, len(times),
		(all / time.Duration(len(times))).Round(100*time.Nanosecond), at(50), at(95), at(99), at(99.9), times[len(times)-1])
}

// TestSuiteMasks prints what masks cost along the valid instances of a suite, in processor time: each is written with the tokens
// of the model in -tokenizer, all of them on one vocabulary, as requests to a server would be.
func TestSuiteMasks(t *testing.T) {
	if *suite == "" || *suiteTokens == "" {
		t.Skip("-suite or -tokenizer has no folder")
	}
	tok, err := tokenizer.Load(os.DirFS(*suiteTokens))
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	v := grammar.NewVocab(tok.Size(), func(id int32) []byte {
		if tok.Special(id) {
			return nil
		}
		return tok.Bytes(id)
	})
	made := threadTime()
	Warm(v)
	t.Logf("vocabulary of %d made in %v, its first masks in %v", tok.Size(), made-start, threadTime()-made)
	files, err := filepath.Glob(filepath.Join(*suite, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var compiles, masks, accepts []time.Duration
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var c suiteCase
		if json.Unmarshal(raw, &c) != nil || len(c.Schema) == 0 {
			continue
		}
		start := threadTime()
		root, err := schema.Parse(c.Schema)
		if err != nil {
			continue
		}
		s, err := Read(context.Background(), root)
		if err != nil {
			continue
		}
		g, _, err := s.Grammar(context.Background(), Options{})
		compiles = append(compiles, threadTime()-start)
		if err != nil {
			if !errors.Is(err, grammar.ErrNothing) {
				t.Logf("%s: %v", filepath.Base(path), err)
			}
			continue
		}
		for _, test := range c.Tests {
			value, err := schema.Parse(test.Data)
			if err != nil || !test.Valid {
				continue
			}
			text, err := s.spelledOut(value, Options{})
			if err != nil {
				continue
			}
			budget := grammar.NewBudget(1)
			m := v.Matcher(g, budget)
			for i, id := range append(tok.Encode(text, tokenizer.EncodeOptions{}), -1) {
				start := threadTime()
				mask := m.Allowed()
				took := threadTime() - start
				masks = append(masks, took)
				if took > 2*time.Millisecond {
					t.Logf("%s: mask %d of %.60q took %v", filepath.Base(path), i, text, took)
				}
				if id < 0 {
					break
				}
				if mask == nil || mask[id/64]>>(id%64)&1 == 0 {
					t.Logf("%s: %q does not fit at token %d, %q", filepath.Base(path), text, i, tok.Bytes(id))
					break
				}
				budget.Token()
				start = threadTime()
				m.Accept(id)
				accepts = append(accepts, threadTime()-start)
			}
		}
	}
	percentiles(t, "compile", compiles)
	percentiles(t, "mask", masks)
	percentiles(t, "accept", accepts)
}
