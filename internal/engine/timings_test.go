package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/sched"
)

func (h *Histogram) count() (n int64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// TestTimings: every step is counted once, under its kind, and every token but a sequence's first.
func TestTimings(t *testing.T) {
	e := start(t, &hooked{}, func(c *Config) { c.Timings, c.PrefillChunk = true, 64 })
	first := submit(t, e, Prompt{Tokens: prompt(100, 1), MaxTokens: 20})
	second := submit(t, e, Prompt{Tokens: prompt(10, 2), MaxTokens: 9})
	n := len(read(t, first)) + len(read(t, second))
	settle(e)
	s := e.Stats()
	var steps, took int64
	for i := range s.Timings.Steps {
		steps += s.Timings.Steps[i].count()
		took += s.Timings.Steps[i].Sum
	}
	if steps != s.Steps || s.Timings.Batch.count() != s.Steps || took <= 0 {
		t.Errorf("%d steps, %d batches of %d, %d ns", steps, s.Timings.Batch.count(), s.Steps, took)
	}
	if s.Timings.Steps[PromptStep].count() == 0 || s.Timings.Steps[DecodeStep].count() == 0 {
		t.Errorf("kinds %v", s.Timings.Steps)
	}
	if got := s.Timings.Token.count(); got != int64(n-2) || s.Timings.Token.Sum <= 0 {
		t.Errorf("%d gaps of %d tokens in two sequences, %d ns", got, n, s.Timings.Token.Sum)
	}
	read(t, submit(t, e, Prompt{Tokens: prompt(10, 3), MaxTokens: 3}))
	if s.Timings.Batch.count() != s.Steps {
		t.Error("what was given out has changed")
	}
	if off := start(t, &hooked{}, nil); off.Stats().Timings != nil {
		t.Error("kept without being asked for")
	}
}

func TestHistogram(t *testing.T) {
	var h, sum Histogram
	for _, v := range []int64{0, 1, 2, 5, 6, 1000} {
		h.add([]int64{1, 2, 5}, v, 2)
	}
	want := Histogram{Sum: 2 * 1014}
	copy(want.Counts[:], []int64{4, 2, 2, 4})
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
	sum.plus(&h)
	sum.plus(&h)
	if sum.Counts[0] != 8 || sum.Sum != 4*1014 {
		t.Error(sum)
	}
	for _, bounds := range [][]int64{TimeBounds[:], BatchBounds[:]} {
		if !slices.IsSorted(bounds) || len(bounds) >= buckets {
			t.Errorf("%d bounds for %d buckets: %v", len(bounds), buckets, bounds)
		}
	}
}

// TestLack: who waits for a slot, or for memory, is told of and counted as such.
func TestLack(t *testing.T) {
	for _, tc := range []struct {
		lack   Lack
		change func(*Config)
	}{
		{LackSlot, func(c *Config) { c.MaxSequences = 1 }},
		{LackMemory, func(c *Config) { c.Budget = 140 << 10 }},
	} {
		t.Run(tc.lack.String(), func(t *testing.T) {
			gate := newSteps()
			e := start(t, &hooked{begin: gate.begin}, tc.change)
			first := submit(t, e, Prompt{Tokens: prompt(200, 1), MaxTokens: 150})
			gate.wait()
			if s := e.Stats(); s.Lack != LackNone {
				t.Errorf("alone: %v", s.Lack)
			}
			second := submit(t, e, Prompt{Tokens: prompt(200, 2), MaxTokens: 150})
			gate.next()
			gate.wait()
			if s := e.Stats(); s.Lack != tc.lack || s.Waiting != 1 {
				t.Errorf("lack %v, want %v; %d wait", s.Lack, tc.lack, s.Waiting)
			}
			gate.release()
			read(t, first)
			read(t, second)
			if a, b := first.Usage().Lack, second.Usage().Lack; a != LackNone || b != tc.lack {
				t.Errorf("waited for %v and %v, want nothing and %v", a, b, tc.lack)
			}
			settle(e)
			if s := e.Stats(); s.Lack != LackNone {
				t.Errorf("at the end: %v", s.Lack)
			}
		})
	}
}

// BenchmarkTimings is what 64 tokens of a step cost.
func BenchmarkTimings(b *testing.B) {
	const n = 64
	var tm Timings
	out, items := make([]result, n), make([]sched.Item, n)
	now := time.Now()
	for i := range out {
		out[i] = result{seq: &sequence{told: now.Add(-time.Duration(i) * time.Millisecond)}, tokens: []Token{{ID: 1}}}
		items[i].Decode = true
	}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(20 * time.Millisecond)
		tm.step(items, 19*time.Millisecond)
		tm.tokens(out, now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/token")
}
