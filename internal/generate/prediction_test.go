package generate

import (
	"strings"
	"testing"

	"hearth/internal/chat"
)

// TestPrediction: the engine gets a prediction's tokens. One without text, or longer than the context, is left out, and the usage
// says which and why.
func TestPrediction(t *testing.T) {
	for text, want := range map[string]string{
		"hello":                      "",
		"":                           "no text",
		strings.Repeat("a b ", 9000): "longer than the context",
		strings.Repeat("ab", 1<<20):  "longer than the context",
	} {
		g, s := newTest(t, "hello")
		var last *chat.Usage
		seq, err := g.Generate(t.Context(), &chat.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "Hi"}}}}, Prediction: &text})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == chat.EventFinish {
				last = e.Usage
			}
		}
		if last == nil || last.Prediction == nil || (want == "") != (last.Prediction.Ignored == "") || !strings.Contains(last.Prediction.Ignored, want) {
			t.Fatalf("%.20q: %+v", text, last)
		}
		if got := len(s.prompts[0].Prediction); (got > 0) != (want == "") {
			t.Errorf("%.20q: %d tokens", text, got)
		}
		g.cfg.Undrafted = true
		events(t, g, &chat.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "Hi"}}}}, Prediction: &text})
		if got := len(s.prompts[1].Prediction); got > 0 {
			t.Errorf("%.20q: %d tokens without drafts", text, got)
		}
	}
}
