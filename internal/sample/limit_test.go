package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// set holds ids and has so many words.
func set(words int, ids ...int32) Set {
	s := make(Set, words)
	for _, id := range ids {
		s.Add(id)
	}
	return s
}

func TestSet(t *testing.T) {
	s := set(3, 0, 63, 64, 190)
	for id, want := range map[int32]bool{0: true, 1: false, 63: true, 64: true, 65: false, 126: false, 190: true, 191: false, 192: false,
		-1: false, -64: false, math.MaxInt32: false, math.MinInt32: false} {
		if s.Has(id) != want {
			t.Errorf("has %d: %t", id, !want)
		}
	}
	if Set(nil).Has(0) || (Set{}).Has(0) {
		t.Error("nothing has something")
	}
}

// TestLimit: what is drawn, and what is told of the likeliest, when only some tokens may come.
func TestLimit(t *testing.T) {
	logits := []float32{4, 3, 2, 5, 1, 3}
	for _, tt := range []struct {
		name string
		p    Params
		mask Set
		want int32
		top  []int32 // of 4
	}{
		{"none", Params{}, nil, 3, []int32{3, 0, 1, 5}},
		{"all", Params{}, Set{^uint64(0)}, 3, []int32{3, 0, 1, 5}},
		{"the best of some", Params{}, set(1, 2, 4, 5), 5, []int32{5, 2, 4}},
		{"ties", Params{}, set(1, 1, 5), 1, []int32{1, 5}},
		{"one", Params{}, set(1, 4), 4, []int32{4}},
		{"and ids beyond the vocabulary", Params{}, set(3, 4, 6, 63, 64, 190), 4, []int32{4}},
		{"one, drawn", Params{Temperature: 5, TopP: 0.1, TopK: 1, MinP: 0.9}, set(1, 2), 2, []int32{2}},
		{"bias brings nothing back", Params{LogitBias: map[int32]float32{3: 100}}, set(1, 2, 4), 2, []int32{2, 4}},
		{"nor does a penalty below zero", Params{}.with(RepetitionPenalty, -2).with(PresencePenalty, -50).with(FrequencyPenalty, -50), set(1, 2, 4), 2, []int32{2, 4}},
		{"bias counts inside", Params{LogitBias: map[int32]float32{4: 2}}, set(1, 2, 4), 4, []int32{4, 2}},
	} {
		s := after(tt.p, []int32{3}, []int32{3, 0})
		s.Limit(tt.mask)
		var w Work
		got, top, err := s.Next(logits, &w, 4, []Logprob{{ID: 77, Logprob: float32(math.Inf(-1))}})
		if err != nil || got.ID != tt.want || top[0].ID != 77 {
			t.Errorf("%s: %v, %v, want %d", tt.name, got, err, tt.want)
		}
		var ids []int32
		mass := 0.0
		for _, l := range top[1:] {
			ids = append(ids, l.ID)
			mass += math.Exp(float64(l.Logprob))
		}
		if !slices.Equal(ids, tt.top) || len(ids) < 4 && math.Abs(mass-1) > 1e-6 {
			t.Errorf("%s: most likely %v of mass %v, want %v", tt.name, ids, mass, tt.top)
		}
		if free, _, err := s.Next(logits, &w, -1, nil); err != nil || tt.p.LogitBias == nil && tt.p.Temperature == 0 && tt.p.Numbers[PresencePenalty] == 0 && free.ID != 3 {
			t.Errorf("%s: after it %v, %v", tt.name, free, err)
		}
	}
	if !slices.Equal(logits, []float32{4, 3, 2, 5, 1, 3}) {
		t.Errorf("the logits are %v", logits)
	}
}

// TestLimitOnce: a limit holds for one token, drawn or told; a told one is outside it if it wants, and draws stay those that
// would have come.
func TestLimitOnce(t *testing.T) {
	logits := row(200, 8)
	p := Params{Temperature: 1, Seed: 3}
	free, s := New(p, nil), New(p, nil)
	var w Work
	for i := range 60 {
		want, _, err := free.Next(logits, &w, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		next := func() (Logprob, []Logprob, error) { return s.Next(logits, &w, 1, nil) }
		switch i % 3 {
		case 0:
			s.Limit(set(4, want.ID))
		case 1:
			s.Limit(set(4, want.ID^1))
			next = func() (Logprob, []Logprob, error) { return s.Take(want.ID, logits, &w, 1, nil) }
		}
		got, _, err := next()
		if err != nil || got.ID != want.ID || i%3 != 0 && got != want {
			t.Fatalf("token %d: %v, %v, want %v", i, got, err, want)
		}
	}
}

// TestLimitRows: whatever the set's words look like and wherever it ends, exactly what is in it may come, and comes.
func TestLimitRows(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	var w Work
	for n := range 300 {
		logits := row(1+r.IntN(400), uint64(n))
		mask := make(Set, r.IntN(9))
		for i := range mask {
			mask[i] = []uint64{0, ^uint64(0), r.Uint64(), 1 << r.IntN(64)}[r.IntN(4)]
		}
		var left int
		for id := range logits {
			if mask.Has(int32(id)) {
				left++
			}
		}
		s := New(Params{Temperature: 20, TopP: []float32{0, 0.999}[n%2], TopK: n % 3 * 20, Seed: uint64(n)}, nil)
		for range 20 {
			s.Limit(mask)
			got, top, err := s.Next(logits, &w, 1000, nil)
			if left == 0 {
				if !errors.Is(err, ErrLogits) {
					t.Fatalf("row %d: nothing is allowed: %v, %v", n, got, err)
				}
				break
			}
			if err != nil || !mask.Has(got.ID) || len(top) != left {
				t.Fatalf("row %d: token %v, %d alternatives, %v; %d are allowed", n, got, len(top), err, left)
			}
			for _, l := range top {
				if !mask.Has(l.ID) || math.IsInf(float64(l.Logprob), 0) {
					t.Fatalf("row %d: alternative %v", n, l)
				}
			}
		}
	}
}

// TestLimitEdge: a draw at the very end of the distribution is not of what has no place in it.
func TestLimitEdge(t *testing.T) {
	logits := row(300, 1)
	limit(logits, set(2, 5, 70, 99))
	_, peak := argmax(logits)
	for _, p := range []Params{{}, {TopP: 0.9999999}, {TopK: 200}, {TopK: 299, TopP: 0.99999}} {
		kept := New(p, nil).candidates(logits, peak, &Work{})
		for _, temperature := range []float32{1, 0.01, 1e9, float32(math.Inf(1))} {
			if id := pick(slices.Clone(kept), temperature, math.Nextafter(1, 2)); !set(2, 5, 70, 99).Has(id) {
				t.Errorf("%+v at %v: token %d", p, temperature, id)
			}
		}
	}
}

// TestLimitBroken: logits that are not finite are an error, also where no token may come from, and also when none is left.
func TestLimitBroken(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, logits := range [][]float32{{}, {1, nan, 2}, {nan, 1, 2}, {1, 2, inf}, {inf, 2, 3}, {-inf, 2, 3}} {
		for _, temperature := range []float32{0, 1} {
			for _, top := range []int{-1, 2} {
				s := New(Params{Temperature: temperature, TopP: 0.9}, nil)
				s.Limit(set(1, 0))
				if tok, _, err := s.Next(logits, &Work{}, top, nil); !errors.Is(err, ErrLogits) {
					t.Errorf("%v at %v, top %d: token %v, error %v", logits, temperature, top, tok, err)
				}
			}
		}
	}
}

func BenchmarkLimit(b *testing.B) {
	logits := row(151936, 5)
	few, most := set(2374, 5, 7000, 70000), make(Set, 2374)
	for i := range most {
		if most[i] = ^uint64(0); i%16 == 0 {
			most[i] = 0x0123456789abcdef
		}
	}
	for name, mask := range map[string]Set{"none": nil, "few": few, "most": most, "all": slices.Repeat(Set{^uint64(0)}, 2374)} {
		for _, p := range []Params{{}, {Temperature: 0.7, TopP: 0.95}, {Temperature: 1}} {
			b.Run(fmt.Sprintf("%s/T%g_P%g", name, p.Temperature, p.TopP), func(b *testing.B) {
				s := New(p, nil)
				var w Work
				for b.Loop() {
					s.Limit(mask)
					if _, _, err := s.Next(logits, &w, -1, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
