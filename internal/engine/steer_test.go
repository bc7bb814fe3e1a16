package engine

import (
	"slices"
	"testing"

	"hearth/internal/sample"
)

// TestSteer: ids that the hook settles come next and count as generated, the hook hears of every token in order, and the
// model goes on from there.
func TestSteer(t *testing.T) {
	e := start(t, &hooked{}, nil)
	prompt := []int32{5, 6, 7}
	run := func(steer func(int32) []int32) ([]int32, *Stream) {
		s := submit(t, e, Prompt{Tokens: prompt, MaxTokens: 12, StopIDs: []int32{91}, Steer: steer, Sampling: sample.Params{Temperature: 0.8, Seed: 4}})
		var ids []int32
		for _, tok := range read(t, s) {
			if tok.Logprob >= 0 {
				t.Errorf("token %d has logprob %v", tok.ID, tok.Logprob)
			}
			ids = append(ids, tok.ID)
		}
		return ids, s
	}
	free, _ := run(nil)
	var heard []int32
	steered, s := run(func(id int32) []int32 {
		if heard = append(heard, id); len(heard) == 4 {
			return []int32{90, 89}
		}
		return nil
	})
	if !slices.Equal(steered[:4], free[:4]) || !slices.Equal(steered[4:6], []int32{90, 89}) || len(steered) != 12 {
		t.Errorf("free %v, steered %v", free, steered)
	}
	if !slices.Equal(heard, steered) || s.Usage().Generated != 12 {
		t.Errorf("heard %v of %v, %+v", heard, steered, s.Usage())
	}
	if ids, s := run(func(int32) []int32 { return []int32{91} }); len(ids) != 1 || s.Finish() != Stop || s.StopID() != 91 {
		t.Errorf("a settled stop id: %v, %v", ids, s.Finish())
	}

	once := []int32{90, 89}
	greedy := read(t, submit(t, e, Prompt{Tokens: prompt, MaxTokens: 4, Logprobs: -1, Steer: func(int32) []int32 {
		ids := once
		once = nil
		return ids
	}}))
	told := read(t, submit(t, e, Prompt{Tokens: append(slices.Clone(prompt), greedy[0].ID, 90, 89), MaxTokens: 1, Logprobs: -1}))
	if greedy[3].ID != told[0].ID {
		t.Errorf("after settled tokens the model says %d, after the same prompt %d", greedy[3].ID, told[0].ID)
	}
}
