package generate

import (
	"errors"
	"fmt"
	"testing"

	"hearth/internal/chat"
)

// TestSamplingOrder: what the request says comes first, then what was configured, then what the model's authors recommend,
// then 0.7 and 0.95; each field by itself, and for prompts with a chat template and without alike.
func TestSamplingOrder(t *testing.T) {
	set := func(temperature, topP float64) (s chat.Sampling) {
		if temperature >= 0 {
			s.Temperature = &temperature
		}
		if topP >= 0 {
			s.TopP = &topP
		}
		return s
	}
	none := set(-1, -1)
	for _, tt := range []struct {
		request, configured, recommended chat.Sampling
		temperature, topP                float32
	}{
		{none, none, none, 0.7, 0.95},
		{none, none, set(0.25, 0.5), 0.25, 0.5},
		{none, none, set(0.25, -1), 0.25, 0.95},
		{none, set(0.125, -1), set(0.25, 0.5), 0.125, 0.5},
		{none, set(0, 1), set(0.25, 0.5), 0, 1},
		{set(-1, 0.75), set(0.125, 0.375), set(0.25, 0.5), 0.125, 0.75},
		{set(0, 1), set(0.125, 0.375), set(0.25, 0.5), 0, 1},
		{set(2, -1), none, none, 2, 0.95},
	} {
		g, s := newTest(t, "x")
		g.cfg.Defaults, g.cfg.Generation = tt.configured, tt.recommended
		g, err := New(g.cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*chat.Request{{Messages: []chat.Message{text(chat.User, "q")}}, {Prompt: &chat.Prompt{Text: "q"}}} {
			r.Sampling = tt.request
			events(t, g, r)
			if p := s.prompts[len(s.prompts)-1].Sampling; p.Temperature != tt.temperature || p.TopP != tt.topP {
				t.Errorf("%+v: temperature %g, top_p %g", tt, p.Temperature, p.TopP)
			}
		}
	}
}

// TestLogitBias: biases are for tokens that there are, whether a template renders the prompt or not.
func TestLogitBias(t *testing.T) {
	g, _ := newTest(t, "x")
	size := int32(g.cfg.Tokenizer.Size())
	for _, r := range []*chat.Request{{Messages: []chat.Message{text(chat.User, "Hi")}}, {Prompt: &chat.Prompt{Text: "Hi", Path: "prompt"}}} {
		r.Sampling.LogitBias = map[int32]float64{0: 1, size - 1: -100}
		if _, err := g.Generate(t.Context(), r); err != nil {
			t.Errorf("the last token: %v", err)
		}
		r.Sampling.LogitBias = map[int32]float64{0: 1, size + 7: 1, size: 1}
		_, err := g.Generate(t.Context(), r)
		var e *chat.Error
		want := fmt.Sprintf("logit_bias.%d: there is no token %d: the vocabulary has %d", size, size, size)
		if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Bound != chat.BoundLogitBias || e.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
