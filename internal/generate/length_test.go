package generate

import (
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/engine"
)

// TestLength: a reply that is cut short is so by its limit, or by the end of the context before that.
func TestLength(t *testing.T) {
	g, s := newTest(t, "one two three")
	s.finish = engine.Length
	r := &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, ClampMaxTokens: true}
	prompt, err := g.Count(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	said := len(s.reply)
	for _, tt := range []struct {
		context, limit, most int
		want                 chat.Finish
	}{
		{4096, said, 0, chat.FinishLength}, {4096, 0, 0, chat.FinishLength}, {4096, 1000, said, chat.FinishLength},
		{prompt + said, 0, 0, chat.FinishContext}, {prompt + said, 1000, 0, chat.FinishContext}, {prompt + said, said, 0, chat.FinishLength},
	} {
		s.context, r.MaxTokens, g.cfg.TokensCap = tt.context, tt.limit, tt.most
		if got := events(t, g, r); !strings.Contains(got, "finish "+string(tt.want)) {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
