package engine

import (
	"time"

	"hearth/internal/sched"
)

// Timings are histograms of what steps did. They are kept under Config.Timings, and cost a step some tens of nanoseconds and a
// token some single ones.
type Timings struct {
	// Steps are their times by kind: of those in which sequences decode, in which prompts run, and in which both do.
	Steps [StepKinds]Histogram
	Batch Histogram // sequences of a step
	Token Histogram // time between two tokens of a sequence; those that come together share it
}

// Kinds of steps.
const (
	DecodeStep = iota
	PromptStep
	MixedStep
	StepKinds
)

// Histogram counts what is at most each of its bounds and more than the one before; what is more than all of them stands
// behind. Fewer bounds leave the end unused.
type Histogram struct {
	Counts [buckets]int64
	Sum    int64 // nanoseconds, of times
}

const buckets = 22

// TimeBounds are the bounds of times, in nanoseconds.
var TimeBounds = [...]int64{5e5, 1e6, 2e6, 5e6, 10e6, 15e6, 20e6, 30e6, 40e6, 50e6, 75e6, 100e6, 150e6, 200e6, 300e6, 500e6, 1e9, 2e9, 5e9, 10e9, 30e9}

// BatchBounds are those of numbers of sequences.
var BatchBounds = [...]int64{1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256}

// add counts v n times.
func (h *Histogram) add(bounds []int64, v, n int64) {
	i := 0
	for i < len(bounds) && v > bounds[i] {
		i++
	}
	h.Counts[i] += n
	h.Sum += v * n
}

func (h *Histogram) plus(o *Histogram) {
	for i := range h.Counts {
		h.Counts[i] += o.Counts[i]
	}
	h.Sum += o.Sum
}

// plus is the sum of two that may be nil, and none of them.
func (t *Timings) plus(o *Timings) *Timings {
	if t == nil && o == nil {
		return nil
	}
	sum := Timings{}
	for _, x := range [...]*Timings{t, o} {
		if x == nil {
			continue
		}
		for i := range sum.Steps {
			sum.Steps[i].plus(&x.Steps[i])
		}
		sum.Batch.plus(&x.Batch)
		sum.Token.plus(&x.Token)
	}
	return &sum
}

// step counts a step.
func (t *Timings) step(items []sched.Item, took time.Duration) {
	decodes := 0
	for i := range items {
		if items[i].Decode {
			decodes++
		}
	}
	kind := MixedStep
	switch decodes {
	case len(items):
		kind = DecodeStep
	case 0:
		kind = PromptStep
	}
	t.Steps[kind].add(TimeBounds[:], int64(took), 1)
	t.Batch.add(BatchBounds[:], int64(len(items)), 1)
}

// tokens counts those that a step brought at now.
func (t *Timings) tokens(out []result, now time.Time) {
	for i := range out {
		q, n := out[i].seq, int64(len(out[i].tokens))
		if n == 0 {
			continue
		}
		if !q.told.IsZero() { // the first one follows none
			t.Token.add(TimeBounds[:], int64(now.Sub(q.told))/n, n)
		}
		q.told = now
	}
}

// Lack is what a sequence waits for.
type Lack uint8

const (
	LackNone Lack = iota
	LackSlot      // as many run as may
	LackMemory
	lacks
)

func (l Lack) String() string { return [...]string{"", "slot", "memory"}[l] }
