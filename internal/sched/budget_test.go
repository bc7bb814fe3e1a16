package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hearth/internal/kv"
)

// A prompt of 20,000 tokens runs beside sequences that decode, some from the start, some later, and a short one comes now and
// then, on machines whose prompt tokens cost more the deeper they are and whose steps vary by a tenth. Steps keep the target, or
// what a decode step with 16 tokens of the long prompt takes, from the start; they use most of it; short prompts have their first
// token in three steps; and once the decodes are through the rest of the prompt runs in whole chunks.
func TestChunkBudget(t *testing.T) {
	for _, box := range []machine{
		{decode: 23_000, token: 400, key: 0.05},
		{decode: 23_000, token: 300, key: 0.5},
		{decode: 13_000, each: 4000, held: 3.5, token: 300, key: 0.1},
		{decode: 70_000, token: 100, key: 0.002},
		{decode: 30_000, token: 1000, key: 7},
	} {
		t.Run(fmt.Sprintf("%+v", box), func(t *testing.T) { pace(t, &box) })
	}
}

func pace(t *testing.T, box *machine) {
	const target, chunk, deep = 150_000, 2048, 20_000
	r := rand.New(rand.NewPCG(1, 1))
	g := kv.Geometry{PageTokens: 64, Groups: []kv.Group{{PageBytes: 64}}}
	a, err := kv.NewAlloc(g, kv.Limits{Bytes: 1 << 20, Slots: 16, Tokens: 30000, Span: chunk})
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
		add(id+1, 40, 9000)
	}
	var share []float64 // of what a step may take, those that decode beside the long prompt
	var long *Seq
	shorts := map[*Seq]int{} // that run, and the step that was their first
	most, whole, left := 0, 0, 0
	for step := 0; long == nil || long.Slot >= 0 || step == 5; step++ {
		switch {
		case step == 5:
			long = add(9, deep, 1)
		case step == 12:
			for id := range ID(4) {
				add(id+5, 50, 9000)
			}
		case step > 5 && step%10 == 0:
			shorts[add(ID(step+10), 50, 1)] = 0
		}
		if long != nil && left == 0 && long.Table.Len > deep*3/4 {
			left = deep - long.Table.Len
			for _, q := range slices.Clone(s.running) {
				if q != long {
					s.Cancel(q)
				}
			}
		}
		p := s.Next()
		decodes, prompt, last, least := 0, 0, 0.0, 0.0
		out := make([]Outcome, len(p.Items))
		for i := range p.Items {
			it := &p.Items[i]
			if it.Decode {
				decodes++
				least = box.took(p.Items[:i+1])
			}
			if _, short := shorts[it.Seq]; short && it.First {
				shorts[it.Seq] = step
			}
			if it.Seq == long {
				prompt = it.Tokens
				last = leastPrompt * (box.token + box.key*float64(long.Table.Len))
			}
			if it.Rows > 0 {
				it.Seq.Key = append(it.Seq.Key, 0)
				out[i] = Outcome{New: 1, End: it.Seq.Known+1 == it.Seq.Prompt+it.Seq.Max}
			}
			if from, short := shorts[it.Seq]; short && out[i].End {
				most = max(most, step-from+1)
			}
		}
		us := box.took(p.Items) * (0.95 + 0.1*r.Float64())
		if decodes > 0 && step > 5 {
			share = append(share, us/max(target, least+last))
		}
		if decodes == 0 && prompt == chunk {
			whole++
		}
		s.ChunkBudget.Observe(p.Items, int64(us))
		s.Done(p, out)
	}
	slices.Sort(share)
	if n := len(share); n < 20 || share[n-1] > 1.5 || share[n*99/100] > 1.2 || share[n/2] < 0.7 {
		t.Errorf("%d steps: median %.2f, p99 %.2f, longest %.2f of the limit", n, share[n/2], share[n*99/100], share[n-1])
	}
	if len(shorts) == 0 || most > 3 {
		t.Errorf("%d short prompts, first tokens after %d steps", len(shorts), most)
	}
	if whole < left/chunk-1 {
		t.Errorf("of the last %d tokens of the long prompt, %d times %d ran in one step", left, whole, chunk)
	}
	t.Logf("%d steps, median %.2f, p99 %.2f, longest %.2f; short prompts %d, most steps %d", len(share),
		share[len(share)/2], share[len(share)*99/100], share[len(share)-1], len(shorts), most)
}
