package sample

import "testing"

// TestDrawElsewhere: what decides a draw elsewhere is what decides it here, and penalties stay here.
func TestDrawElsewhere(t *testing.T) {
	s := New(Params{Temperature: 0.7, TopP: 0.9, TopK: 5, MinP: 0.1, Seed: 11}, nil)
	for skip := range 3 {
		d, ok := s.Draw(skip)
		if want := (Draw{0.7, 0.9, 0.1, 5, uniform(11, uint64(skip))}); !ok || d != want {
			t.Errorf("draw %d: %+v %t, want %+v", skip, d, ok, want)
		}
	}
	s.Accept(3)
	if d, _ := s.Draw(0); d.Uniform != uniform(11, 1) {
		t.Error("an accepted token does not use up a draw")
	}
	var none Params
	for _, p := range []Params{none.with(RepetitionPenalty, 1.1), none.with(PresencePenalty, 1), none.with(FrequencyPenalty, 1),
		{LogitBias: map[int32]float32{1: 1}}, Params{Temperature: 1}.with(XTCProbability, 0.5)} {
		if _, ok := New(p, nil).Draw(0); ok {
			t.Errorf("%+v: a draw elsewhere", p)
		}
	}
	s.Limit(Set{1})
	if _, ok := s.Draw(0); ok {
		t.Error("a limit: a draw elsewhere")
	}
	s.Accept(0)
	if _, ok := s.Draw(0); !ok {
		t.Error("a limit for more than one token")
	}
	if _, ok := New(Params{}.with(XTCProbability, 0.5).with(RepetitionPenalty, 1), nil).Draw(0); !ok {
		t.Error("greedy decoding needs no more than logits")
	}
}
