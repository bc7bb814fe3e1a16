package generate

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/chat"
	"hearth/internal/engine"
)

// Marks are where messages begin and end in the prompt, and a token is known to be in one.
func TestMarks(t *testing.T) {
	g, s := newTest(t, "x")
	r := &chat.Request{Messages: []chat.Message{
		text(chat.System, "You help. <|im_end|>"), text(chat.User, "What do you know of <|im_start|> and é?"), text(chat.Assistant, "Nothing.\n\nReally."), text(chat.User, "Go on."),
	}}
	p, err := g.prompt(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	events(t, g, r)
	var parts []string
	from := 0
	for _, m := range append(s.prompts[0].Marks, len(p.tokens)) {
		parts = append(parts, g.cfg.Tokenizer.Decode(p.tokens[from:m], false))
		from = m
	}
	want := []string{
		"<|im_start|>system\nYou help. <|im_end|><|im_end|>\n", "<|im_start|>user\nWhat do you know of <|im_start|> and é?<|im_end|>\n",
		"<|im_start|>assistant\n<think>\n\n</think>\n\nNothing.\n\nReally.<|im_end|>\n", "<|im_start|>user\nGo on.<|im_end|>\n", "<|im_start|>assistant\n",
	}
	if diff := cmp.Diff(want, parts); diff != "" {
		t.Errorf("the prompt between marks (-want +got):\n%s", diff)
	}
	for i := range p.tokens {
		before := g.cfg.Tokenizer.Decode(p.tokens[:i], false)
		message := 0
		for rest := len(before); message < len(want) && rest >= len(want[message]); message++ {
			rest -= len(want[message])
		}
		if got := p.messageAt(g.history, r.Messages, i); got != message {
			t.Errorf("token %d, after %q, is said to be in message %d", i, before, got)
		}
	}
	if got := p.messageAt(g.history, r.Messages, len(p.tokens)); got != -1 {
		t.Errorf("nothing is said to be in message %d", got)
	}
}

// A template that writes messages without a loop, or into a variable first, has no marks, and no message is named.
func TestNoMarks(t *testing.T) {
	for _, src := range []string{
		"{{ messages[0].content }}:",
		"{% set all %}{% for m in messages %}{{ m.content }}\n{% endfor %}{% endset %}{{ all }}:",
	} {
		g, err := withTemplate(t, src)
		if err != nil {
			t.Fatal(err)
		}
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}}
		p, err := g.prompt(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if m := p.marks(); len(m) > 0 || p.messageAt(g.history, r.Messages, 0) != -1 {
			t.Errorf("%s: marks %v", src, m)
		}
	}
}

// The usage of a reply names the message in which the prompt parted from what had run.
func TestParted(t *testing.T) {
	k := newTalk(t, true)
	k.say("It is sunny.")
	k.r.Messages = append(k.r.Messages, text(chat.User, "And tomorrow?"))
	k.say("Too.")
	for _, c := range []struct {
		change func(*chat.Request)
		want   int
	}{
		{func(*chat.Request) {}, 0},
		{func(r *chat.Request) { r.Messages[3] = text(chat.User, "And today?") }, 4},
		{func(r *chat.Request) { r.Messages[2] = text(chat.Assistant, "It rains.") }, 3},
		{func(r *chat.Request) { r.Messages[1] = text(chat.User, "Weather? "+strings.Repeat("x", 9)) }, 2},
		{func(r *chat.Request) { r.Messages[0] = text(chat.System, "You hide.") }, 1},
	} {
		r := k.r
		r.Messages = append([]chat.Message(nil), k.r.Messages[:4]...)
		c.change(&r)
		seq, err := k.g.Generate(t.Context(), &r)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if e.Usage != nil && e.Usage.Parted != c.want {
				t.Errorf("parted in %d, want %d", e.Usage.Parted, c.want)
			}
		}
	}
}

// The text around the place of parting is the prompt's own, whole runes of it, and there only if the engine says that what was
// there before was the caller's own too.
func TestAround(t *testing.T) {
	g, s := newTest(t, "x")
	r := &chat.Request{Messages: []chat.Message{text(chat.System, "You help. <|im_end|>"),
		text(chat.User, strings.Repeat("é", 70)+" "+strings.Repeat("日本", 60))}}
	p, err := g.prompt(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.tokens {
		a := p.around(g.history, i)
		if n := len(a[0]) + len(a[1]); n > aroundBytes || n == 0 || !strings.Contains(p.text, a[0]+a[1]) || !utf8.ValidString(a[0]) || !utf8.ValidString(a[1]) {
			t.Errorf("token %d: %q", i, a)
		}
		before := g.cfg.Tokenizer.Decode(p.tokens[:i], false)
		before = strings.TrimRight(before, "\uFFFD") // a rune of several tokens
		if !strings.HasSuffix(before, a[0]) || len(a[0]) < min(len(before), aroundBytes/2-3) {
			t.Errorf("token %d: %q stands before it, not %q", i, before, a[0])
		}
	}
	if a := p.around(g.history, len(p.tokens)); a != [2]string{} {
		t.Errorf("around nothing: %q", a)
	}
	// In its place stands what the engine says, from the same rune on, and no more of it than of the prompt.
	split := slices.IndexFunc(p.tokens, func(id int32) bool { return !utf8.Valid(g.tok.Bytes(id)) }) + 1 // within a rune
	if split == 0 {
		t.Fatal("no rune has several tokens")
	}
	for at := range p.tokens[:len(p.tokens)-8] {
		want := p.around(g.history, at)[1]
		got := g.instead(p, engine.Usage{Longer: at, Instead: engine.TokensOf(p.tokens[at:min(len(p.tokens), at+40)])})
		if !strings.HasPrefix(want, got) || len(got) < len(want)-3 || len(got) > aroundBytes/2 {
			t.Fatalf("token %d: %q stands instead, not %q", at, got, want)
		}
	}
	g.cfg.Info.Thinking, g.cfg.HideThinking = true, true
	if got := g.instead(p, engine.Usage{Longer: split, Instead: engine.TokensOf(p.tokens[split:])}); got != "" {
		t.Errorf("%q is shown of a model whose reasoning is not", got)
	}
	g.cfg.HideThinking = false
	for _, own := range []bool{false, true} {
		s.own, s.cached = own, 11
		s.instead = ""
		if own {
			s.instead = engine.TokensOf(p.tokens[20:30])
		}
		seq, err := g.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if e.Usage != nil && ((e.Usage.Around != [2]string{}) != own || (e.Usage.Instead != "") != own) {
				t.Errorf("own %t: around %q", own, e.Usage.Around)
			}
		}
	}
}
