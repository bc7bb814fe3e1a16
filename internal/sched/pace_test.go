package sched

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hearth/internal/kv"
)

// A prompt of 20,000 tokens runs beside three sequences that decode, on a machine whose prompt tokens cost more the deeper
// they are and whose steps vary by a tenth. Steps keep the target from the start, use most of it, and once the decodes
// are through the rest of the prompt runs in whole chunks.
func TestPace(t *testing.T) {
	const target, chunk = 150_000, 2048
	cost := func(r *rand.Rand, decodes, prompt, depth int) int64 {
		us := 20_000*math.Min(float64(decodes), 1) + 1000*float64(decodes) + float64(prompt)*(400+float64(depth)/20)
		return int64(us * (0.95 + 0.1*r.Float64()))
	}
	r := rand.New(rand.NewPCG(1, 1))
	g := kv.Geometry{PageTokens: 64, Groups: []kv.Group{{PageBytes: 64}}}
	a, err := kv.NewAlloc(g, kv.Limits{Bytes: 1 << 20, Slots: 8, Tokens: 30000, Span: chunk})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Chunk: chunk, Target: target}, a)
	add := func(id ID, prompt, most int) *Seq {
		q := &Seq{ID: id, Client: uint64(id), Prompt: prompt, Max: most}
		own(q)
		s.Submit(q)
		return q
	}
	for id := range ID(3) {
		add(id+1, 40, 80)
	}
	var took []int64 // of steps that decode
	var long *Seq
	whole := 0
	for step := 0; ; step++ {
		if step == 5 {
			long = add(9, 20000, 1)
		}
		p := s.Next()
		if len(p.Items) == 0 {
			break
		}
		decodes, prompt, depth := 0, 0, 0
		out := make([]Outcome, len(p.Items))
		for i, it := range p.Items {
			if it.Decode {
				decodes++
			} else {
				prompt, depth = prompt+it.Tokens, max(depth, it.Seq.Table.Len)
			}
			if it.Want == WantLast {
				it.Seq.Key = append(it.Seq.Key, 0)
				out[i] = Outcome{New: 1, End: it.Seq.Known+1 == it.Seq.Prompt+it.Seq.Max}
			}
		}
		us := cost(r, decodes, prompt, depth)
		if decodes > 0 && step > 5 {
			took = append(took, us)
		}
		if decodes == 0 && prompt == chunk {
			whole++
		}
		s.Pace.Observe(decodes, prompt, us)
		s.Done(p, out)
	}
	slices.Sort(took)
	if n := len(took); n < 60 || took[n-1] > target*3/2 || took[n*99/100] > target*6/5 || took[n/2] < target*7/10 {
		t.Errorf("%d steps: median %d, p99 %d, longest %d us", n, took[n/2], took[n*99/100], took[n-1])
	}
	if long.Table.Len != 0 || whole < 2 {
		t.Errorf("the long prompt: %d chunks of %d", whole, chunk)
	}
	var none Pace
	if none.Room(7, true) != 7 || none.Room(7, false) != 7 || (&Pace{Target: 1}).Room(500, true) != coldPrompt {
		t.Error("without a target or a measurement")
	}
}
