package timeline

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const start = 1_000_000_000

func at(s int64) time.Time { return time.Unix(start+s, 0) }

func TestHour(t *testing.T) {
	h := &Hour{}
	if got, first := h.Since(at(5), 0, nil); got != nil || first != start+6 {
		t.Errorf("before anything: %v from %d", got, first)
	}
	a, b := h.Meter(), h.Meter()
	a.Note(at(0), &Counts{Requests: 1}, Levels{Waiting: 1})
	a.Note(at(0), &Counts{Hits: [Kinds]int64{2: 1}, Prompt: 10, Cached: 5, Steps: 1, Sequences: 1}, Levels{Running: 1, State: 100})
	b.Note(at(0), &Counts{Requests: 1}, Levels{Running: 2, State: 7, Cache: 3})
	a.Note(at(3), &Counts{Output: 4, Steps: 2, Sequences: 3}, Levels{Cache: 50})
	b.Note(at(2), &Counts{Output: 1}, Levels{Running: 2, State: 7, Cache: 3}) // which waited for the lock
	both := Levels{Running: 3, State: 107, Cache: 3}
	want := []Second{
		{Counts{Requests: 2, Hits: [Kinds]int64{2: 1}, Prompt: 10, Cached: 5, Steps: 1, Sequences: 1}, Levels{Running: 3, Waiting: 1, State: 107, Cache: 3}},
		{Most: both}, {Most: both},
		{Counts{Output: 5, Steps: 2, Sequences: 3}, Levels{Running: 3, State: 107, Cache: 53}},
		{Most: Levels{Running: 2, State: 7, Cache: 53}},
	}
	for since := range int64(len(want)) {
		got, first := h.Since(at(4), start+since-1, nil)
		if diff := cmp.Diff(want[since:], got); diff != "" || first != start+since {
			t.Errorf("after %d, from %d:\n%s", since-1, first-start, diff)
		}
	}
	if got, first := h.Since(at(4), start+4, nil); len(got) != 0 || first != start+5 {
		t.Errorf("after now: %v from %d", got, first)
	}
	if got, first := h.Since(at(4), start+1<<40, nil); len(got) != 0 || first != start+5 {
		t.Errorf("in the future: %v from %d", got, first)
	}
	// Hours later only the last one is there, and what there was stays.
	got, first := h.Since(at(3*Seconds), 0, nil)
	if len(got) != Seconds || first != start+2*Seconds+1 || got[0] != want[4] || got[Seconds-1] != want[4] {
		t.Errorf("hours later: %d from %d: %v", len(got), first-start, got[0])
	}
	a.Note(at(3*Seconds), &Counts{Output: 1}, Levels{})
	if got, _ = h.Since(at(3*Seconds), 0, nil); len(got) != Seconds || got[Seconds-1].Output != 1 || got[Seconds-2].Most != want[4].Most || got[3] != want[4] {
		t.Errorf("after a long silence: %d, %v", len(got), got[Seconds-1])
	}
	// A clock that was set back begins anew.
	a.Note(at(100), &Counts{Output: 2}, Levels{})
	if got, first = h.Since(at(101), 0, nil); len(got) != 2 || first != start+100 || got[0].Output != 2 || got[1].Most.Running != 2 {
		t.Errorf("set back: from %d %v", first-start, got)
	}
	var none *Hour
	none.Meter().Note(at(0), &Counts{}, Levels{})
}

// TestNaive: the ring says what a list of all seconds does, whatever comes when.
func TestNaive(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := &Hour{}
		m := h.Meter()
		all := map[int64]*Second{}
		ends := map[int64]Levels{}
		now, level := int64(0), Levels{}
		for range 100 {
			now += int64(rng.ExpFloat64() * []float64{0.3, 30, 900}[rng.IntN(3)])
			c := Counts{Output: rng.Int64N(9), Prompt: rng.Int64N(3)}
			next := Levels{Running: rng.Int64N(5), Cache: rng.Int64N(100)}
			m.Note(at(now), &c, next)
			s := all[now]
			if s == nil {
				s = &Second{Most: level}
				all[now] = s
			}
			s.add(&c)
			s.Most.raise(&next)
			level = next
			ends[now] = level
			if rng.IntN(5) > 0 {
				continue
			}
			to := now + rng.Int64N(20)
			since := to - rng.Int64N(2*Seconds)
			got, first := h.Since(at(to), start+since, nil)
			before := func(sec int64) (l Levels) {
				latest := int64(-1)
				for s := range ends {
					if s <= sec && s > latest {
						latest, l = s, ends[s]
					}
				}
				return l
			}
			for i := range got {
				sec := first - start + int64(i)
				want := Second{}
				if s := all[sec]; s != nil {
					want = *s
				} else {
					want.Most = before(sec)
				}
				if got[i] != want {
					t.Fatalf("seed %d, second %d of %d: %+v, want %+v", seed, sec, now, got[i], want)
				}
			}
			if len(got) > 0 && first+int64(len(got)) != start+to+1 {
				t.Fatalf("seed %d: %d from %d, now %d", seed, len(got), first-start, to)
			}
		}
	}
}

func TestTogether(t *testing.T) {
	h := &Hour{}
	var wg sync.WaitGroup
	const each = 1000
	for range 4 {
		m := h.Meter()
		wg.Go(func() {
			for i := range int64(each) {
				m.Note(at(i/100), &Counts{Output: 1}, Levels{Running: i % 2})
				h.Since(at(i/100), start+i/100-2, nil)
			}
			m.Note(at(each/100), &Counts{}, Levels{})
		})
	}
	wg.Wait()
	got, _ := h.Since(at(each/100), 0, nil)
	sum := int64(0)
	for i := range got {
		sum += got[i].Output
	}
	if last := got[len(got)-1]; sum != 4*each || h.now != (Levels{}) || last.Most.Running > 4 {
		t.Errorf("%d tokens, at the end %+v", sum, h.now)
	}
}

func BenchmarkNote(b *testing.B) {
	m := (&Hour{}).Meter()
	c := Counts{Output: 4, Steps: 1, Sequences: 4}
	for i := range b.N {
		m.Note(at(int64(i/200)), &c, Levels{Running: 4, State: int64(i)})
	}
}

// BenchmarkSince reads what a watcher asks for each second, and the whole hour.
func BenchmarkSince(b *testing.B) {
	h := &Hour{}
	m := h.Meter()
	for i := range int64(Seconds) {
		m.Note(at(i), &Counts{Output: 1}, Levels{})
	}
	for name, n := range map[string]int64{"two": 2, "hour": Seconds} {
		b.Run(name, func(b *testing.B) {
			var buf []Second
			for b.Loop() {
				if buf, _ = h.Since(at(Seconds-1), start+Seconds-1-n, buf[:0]); len(buf) != int(n) {
					b.Fatal(len(buf))
				}
			}
		})
	}
}
