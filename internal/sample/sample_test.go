package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// row makes logits like a language model's: normal noise and a few that stand out.
func row(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	logits := make([]float32, n)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	for range 20 {
		logits[r.IntN(n)] += float32(r.Float64() * 12)
	}
	return logits
}

// sorted is keep the plain way: sort everything, apply each filter by its definition.
func sorted(p Params, logits []float32) []int32 {
	ids := make([]int32, len(logits))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortStableFunc(ids, func(a, b int32) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	top := float64(logits[ids[0]])
	var total float64
	for _, v := range logits {
		total += math.Exp(float64(v) - top)
	}
	var kept []int32
	var above, group float64 // mass strictly above the current logit, mass of its equals so far
	for i, id := range ids {
		if i > 0 && logits[id] != logits[ids[i-1]] {
			above, group = above+group, 0
		}
		if p.TopP > 0 && p.TopP < 1 && above >= float64(p.TopP)*total {
			break
		}
		if p.MinP > 0 && top-float64(logits[id]) > -math.Log(float64(p.MinP)) {
			break
		}
		if p.TopK > 0 && i >= p.TopK {
			break
		}
		group += math.Exp(float64(logits[id]) - top)
		kept = append(kept, id)
	}
	slices.Sort(kept)
	return kept
}

// TestFilters compares partial selection with a full sort, on flat, peaked and quantised (many ties) logits.
func TestFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var w Work
	for n := range 400 {
		logits := row(1+r.IntN(3000), uint64(n))
		scale := []float32{1, 0.01, 4, 0}[r.IntN(4)]
		for i := range logits {
			logits[i] *= scale
			if n%3 == 0 {
				logits[i] = float32(math.Round(float64(logits[i])))
			}
		}
		p := Params{Temperature: 1}
		if r.IntN(2) == 0 {
			p.TopP = float32(r.Float64())
		}
		if r.IntN(2) == 0 {
			p.TopK = 1 + r.IntN(200)
		}
		if r.IntN(3) == 0 {
			p.MinP = float32(r.Float64() * 0.1)
		}
		_, peak := argmax(logits)
		var got []int32
		for _, c := range New(p, nil).candidates(logits, peak, &w) {
			got = append(got, c.id)
		}
		if want := sorted(p, logits); !slices.Equal(got, want) {
			t.Fatalf("row %d, %+v: kept %d tokens, want %d", n, p, len(got), len(want))
		}
	}
}

// A crowd of unlikely tokens that together weigh enough is not cut off with the gap filters start from.
func TestFilterCrowd(t *testing.T) {
	logits := make([]float32, 100_000)
	logits[70_000] = near + 1
	logits[80_000] = -1
	for p, n := range map[float32]int{0.5: 1, 0.95: 99_999, 0.9999999: 100_000} {
		if got := len(New(Params{TopP: p}, nil).candidates(logits, near+1, &Work{})); got != n {
			t.Errorf("top_p %v keeps %d tokens, want %d", p, got, n)
		}
	}
	if got := New(Params{TopK: 3}, nil).candidates(logits, near+1, &Work{}); len(got) != 3 || got[0].id != 0 || got[1].id != 1 {
		t.Errorf("top_k 3 keeps %v", got)
	}
}

// TestDraw: over 200,000 draws the frequencies fit the distribution (chi-square, fixed seed, p = 0.001).
func TestDraw(t *testing.T) {
	logits := []float32{2, 1, 0, 3, 2.5, -1, 0.5, 1.5}
	p := Params{Temperature: 0.8, TopP: 0.97, Seed: 11}
	s := New(p, nil)
	var w Work
	const draws = 200_000
	counts := make([]float64, len(logits))
	for range draws {
		tok, _, err := s.Next(logits, &w, -1, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts[tok.ID]++
	}
	_, peak := argmax(logits)
	probs := distribution(s.candidates(logits, peak, &w), p.Temperature, len(logits))
	var chi float64
	freedom := -1
	for id, pr := range probs {
		if pr == 0 {
			if counts[id] != 0 {
				t.Errorf("token %d was dropped and drawn %v times", id, counts[id])
			}
			continue
		}
		freedom++
		d := counts[id] - pr*draws
		chi += d * d / (pr * draws)
	}
	if freedom != 5 || chi > 20.5 { // 99.9 % point for 5 degrees of freedom
		t.Errorf("chi-square %.1f at %d degrees of freedom: %v for %v", chi, freedom, counts, probs)
	}
}

// Neighbours in uniform's sequence and sequences of neighbouring seeds are independent enough: pairs fill a grid.
func TestUniform(t *testing.T) {
	for name, f := range map[string]func(i uint64) (float64, float64){
		"index": func(i uint64) (float64, float64) { return uniform(1, i), uniform(1, i+1) },
		"seed":  func(i uint64) (float64, float64) { return uniform(i, 5), uniform(i+1, 5) },
	} {
		var grid [16][16]float64
		const n = 256 * 400
		for i := range uint64(n) {
			x, y := f(i)
			grid[int(x*16)][int(y*16)]++
		}
		var chi float64
		for _, line := range grid {
			for _, c := range line {
				chi += (c - 400) * (c - 400) / 400
			}
		}
		if chi > 331 { // 99.9 % point for 255 degrees of freedom
			t.Errorf("%s: chi-square %.0f", name, chi)
		}
	}
}

// The same seed gives the same tokens, another one does not; scratch shared with another sequence changes nothing.
func TestSeed(t *testing.T) {
	logits, other := row(500, 1), row(500, 2)
	draw := func(seed uint64, neighbour bool) (ids []int32) {
		var w Work
		s, n := New(Params{Temperature: 1, TopP: 0.9, Seed: seed}, nil), New(Params{Temperature: 2, Seed: 9}, nil)
		for range 50 {
			if neighbour {
				if _, _, err := n.Next(other, &w, 3, nil); err != nil {
					t.Fatal(err)
				}
			}
			tok, _, err := s.Next(logits, &w, -1, nil)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, tok.ID)
		}
		return ids
	}
	a := draw(5, false)
	if b := draw(5, true); !slices.Equal(a, b) {
		t.Errorf("a neighbour changed the draws: %v, %v", a, b)
	}
	if b := draw(6, false); slices.Equal(a, b) {
		t.Error("two seeds gave the same 50 tokens")
	}
}

func TestGreedyTies(t *testing.T) {
	var w Work
	logits := []float32{1, 7, 7, 3, float32(math.Inf(-1))}
	s := New(Params{}, nil)
	tok, top, err := s.Next(logits, &w, 3, nil)
	if err != nil || tok.ID != 1 {
		t.Fatalf("token %d, %v", tok.ID, err)
	}
	if len(top) != 3 || top[0].ID != 1 || top[1].ID != 2 || top[2].ID != 3 || top[0].Logprob != tok.Logprob {
		t.Errorf("top %v of token %v", top, tok)
	}
	if want := -math.Log(2 + math.Exp(-6) + math.Exp(-4)); math.Abs(float64(tok.Logprob)-want) > 1e-6 {
		t.Errorf("logprob %v, want %v", tok.Logprob, want)
	}
	if top, _ = Top(logits, 99, nil); len(top) != len(logits) || top[4].ID != 4 {
		t.Errorf("more than there are: %v", top)
	}
}

func TestBrokenLogits(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, logits := range [][]float32{{}, {1, nan, 2}, {nan}, {0, inf}, {-inf, -inf}} {
		for _, temperature := range []float32{0, 1} {
			for _, top := range []int{-1, 2} {
				s := New(Params{Temperature: temperature, TopP: 0.9}, nil)
				if tok, _, err := s.Next(logits, &Work{}, top, nil); !errors.Is(err, ErrLogits) {
					t.Errorf("%v at %v, top %d: token %v, error %v", logits, temperature, top, tok, err)
				}
			}
		}
	}
}

// Extreme parameters still give a token that the filters allow.
func TestExtremes(t *testing.T) {
	logits := row(2000, 3)
	best, _ := argmax(logits)
	for _, p := range []Params{
		{Temperature: 1e-30}, {Temperature: 1, TopP: 1e-30}, {Temperature: 1, MinP: 1}, {Temperature: 1, MinP: 7},
		{Temperature: 1, TopK: 1}, {Temperature: float32(math.Inf(1)), TopK: 1},
	} {
		if tok, _, err := New(p, nil).Next(logits, &Work{}, -1, nil); err != nil || tok.ID != best {
			t.Errorf("%+v: token %d, %v, want %d", p, tok.ID, err, best)
		}
	}
	bias := map[int32]float32{-1: 9, 5: 1000, 1 << 30: 9}
	s := New(Params{LogitBias: bias}.with(PresencePenalty, 1), []int32{1 << 30})
	if tok, _, err := s.Next(logits, &Work{}, -1, nil); err != nil || tok.ID != 5 {
		t.Errorf("bias: token %d, %v", tok.ID, err)
	}
}

func TestDecay(t *testing.T) {
	worst := 0.0
	for gap := float32(0); gap < 690; gap += 0.00737 {
		want := math.Exp(-float64(gap))
		worst = max(worst, math.Abs(decay(gap)-want)/want)
	}
	end, nan := decay(float32(math.Inf(1))), decay(float32(math.NaN()))
	if worst > 1e-8 || decay(0) != 1 || end > 1e-300 || !math.IsNaN(nan) {
		t.Errorf("relative error %.2g, decay(0) %v, decay(inf) %v, decay(NaN) %v", worst, decay(0), end, nan)
	}
}

// After the first token nothing is allocated, with a limit or without.
func TestAllocs(t *testing.T) {
	logits := row(20000, 4)
	var w Work
	top := make([]Logprob, 0, 20)
	for _, mask := range []Set{nil, set(300, 5, 700, 19000)} {
		s := New(Params{Temperature: 0.7, TopP: 0.95, TopK: 50, MinP: 0.01}.with(RepetitionPenalty, 1.1), []int32{1, 2, 3})
		n := testing.AllocsPerRun(20, func() {
			s.Limit(mask)
			if _, _, err := s.Next(logits, &w, 20, top); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%v allocations per token, limited %v", n, mask != nil)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	logits := row(151936, 5)
	for _, p := range []Params{{}, {Temperature: 0.7, TopP: 0.95}, {Temperature: 1}, {Temperature: 0.7, TopK: 50},
		Params{Temperature: 0.7, TopP: 0.8}.with(RepetitionPenalty, 1.1)} {
		b.Run(fmt.Sprintf("T%g_P%g_K%d_R%g", p.Temperature, p.TopP, p.TopK, p.Numbers[RepetitionPenalty]), func(b *testing.B) {
			s := New(p, nil)
			var w Work
			for b.Loop() {
				if _, _, err := s.Next(logits, &w, -1, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestTake: a forced token counts like a drawn one, and the draws after it are those that would have come.
func TestTake(t *testing.T) {
	logits := []float32{1, 2, 3, 2.5, 0}
	p := Params{Temperature: 1, Seed: 9}.with(PresencePenalty, 1.5)
	var w Work
	drawn, taken := New(p, nil), New(p, nil)
	for i := range 8 {
		want, _, err := drawn.Next(logits, &w, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		next := func() (Logprob, []Logprob, error) { return taken.Next(logits, &w, 1, nil) }
		if i%3 == 1 {
			next = func() (Logprob, []Logprob, error) { return taken.Take(want.ID, logits, &w, 1, nil) }
		}
		if got, top, err := next(); err != nil || got != want || len(top) != 1 {
			t.Fatalf("token %d: %v, %v, want %v", i, got, err, want)
		}
	}
	if _, _, err := taken.Take(5, logits, &w, -1, nil); err == nil {
		t.Error("a token outside the vocabulary: no error")
	}
}
