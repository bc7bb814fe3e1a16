package generate

import (
	"errors"
	"os"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/tokenizer"
	"hearth/internal/transcript"
)

// newBase is the demo without its template.
func newBase(t *testing.T, reply string) (*Generator, *script) {
	t.Helper()
	cfg, err := Load(os.DirFS(demoFolder), NoTemplate)
	if !errors.Is(err, ErrNoTemplate) || cfg.Template != nil || cfg.Tokenizer == nil {
		t.Fatalf("%v, template %v", err, cfg.Template)
	}
	s := &script{context: 4096}
	s.reply = transcript.NewGuard(cfg.Tokenizer, nil, "").Plain(reply)
	cfg.Engine, cfg.Info = s, chat.Model{ID: "m", Description: "8 bits"}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g, s
}

// TestBaseModel: a model without a template continues text, and refuses conversations in words that help.
func TestBaseModel(t *testing.T) {
	g, s := newBase(t, " upon a time")
	if m := g.Model(); m.Kind != chat.Completes || m.Parser != "" || m.Tools || m.Thinking || !strings.HasPrefix(m.Description, "base model") || !strings.HasSuffix(m.Description, "8 bits") {
		t.Errorf("%+v", m)
	}
	r := &chat.Request{Prompt: &chat.Prompt{Text: "Once", Path: "prompt"}}
	if got := events(t, g, r); !strings.Contains(got, "upon a time") {
		t.Errorf("%s", got)
	}
	want := g.cfg.Tokenizer.Encode("Once", tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	if got := s.prompts[0].Tokens; len(want) == 0 || len(got) != len(want) || got[0] != want[0] {
		t.Errorf("prompt %v, want %v", got, want)
	}
	if len(s.prompts[0].StopIDs) != 1 || s.prompts[0].StopIDs[0] != imEnd {
		t.Errorf("ends at %v, want the tokenizer's own token", s.prompts[0].StopIDs)
	}
	for _, r := range []*chat.Request{
		{Messages: []chat.Message{text(chat.User, "Hi")}},
		{},
		{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: []chat.Tool{{Name: "f"}}, Choice: chat.ToolChoice{Kind: chat.ChoiceRequired}},
	} {
		_, err := g.Generate(t.Context(), r)
		_, counted := g.Count(t.Context(), r)
		_, rendered := g.Render(t.Context(), r)
		for _, err := range []error{err, counted, rendered} {
			var e *chat.Error
			if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Code != "no_chat_template" || !strings.Contains(e.Msg, "/v1/completions") || !strings.Contains(e.Msg, "--chat-template") {
				t.Errorf("%+v: %v", r, err)
			}
		}
	}
}

// TestBaseBegins: a text to continue begins with what the tokenizer puts in front of every text, as its encode(text) does.
func TestBaseBegins(t *testing.T) {
	for begins, want := range map[string]string{"": "Hi", "<s>": "<s>Hi"} {
		tok := byteTokensAfter(t, begins, []string{"<s>", "</s>"}, `{"bos_token": "<s>", "eos_token": "</s>"}`)
		s := &script{context: 64}
		g, err := New(Config{Engine: s, Tokenizer: tok})
		if err != nil {
			t.Fatal(err)
		}
		_ = events(t, g, &chat.Request{Prompt: &chat.Prompt{Text: "Hi"}})
		if got := tok.Decode(s.prompts[0].Tokens, false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
