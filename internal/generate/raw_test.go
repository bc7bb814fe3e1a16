package generate

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/sample"
	"hearth/internal/tokenizer"
)

// TestRawPrompt: text and tokens reach the engine as they are, and what it says is text, markup and all.
func TestRawPrompt(t *testing.T) {
	const said = "<think>\nHm.\n</think>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>"
	g, s := newTest(t, said)
	encode := func(text string) []int32 {
		return g.cfg.Tokenizer.Encode(text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	}
	const text = "<|im_start|>user\nHello"
	for _, p := range []chat.Prompt{{Text: text}, {Tokens: encode(text)}} {
		s.own = true // what it parted from may be shown, but there are no messages to show
		got := events(t, g, &chat.Request{Prompt: &p, Tools: weather(), MaxTokens: 100, N: 2, Stop: []string{"nothing"}})
		if n := strings.Count(got, strings.ReplaceAll(said, "\n", `\n`)); n != 2 || strings.Contains(got, "args") {
			t.Errorf("%+v: %s", p, got)
		}
		if last := s.prompts[len(s.prompts)-1]; fmt.Sprint(last.Tokens) != fmt.Sprint(encode(text)) || last.Tokens[0] != imEnd-1 || len(last.Marks) > 0 {
			t.Errorf("%+v: tokens %v, marks %v", p, last.Tokens, last.Marks)
		}
		if n, err := g.Count(t.Context(), &chat.Request{Prompt: &p}); err != nil || n != len(encode(text)) {
			t.Errorf("%+v: count %d, %v", p, n, err)
		}
	}
}

func TestRawPromptRefused(t *testing.T) {
	g, s := newTest(t, "x")
	for _, tt := range []struct {
		p           chat.Prompt
		max         int
		param, says string
	}{
		{chat.Prompt{Path: "prompt"}, 1, "prompt", "must not be empty"},
		{chat.Prompt{Path: "prompt[2]", Tokens: []int32{}}, 1, "prompt[2]", "must not be empty"},
		{chat.Prompt{Path: "prompt", Tokens: []int32{1, -1}}, 1, "prompt[1]", "there is no token -1"},
		{chat.Prompt{Path: "prompt", Tokens: []int32{1 << 30}}, 1, "prompt[0]", "the vocabulary has"},
		{chat.Prompt{Path: "prompt", Tokens: make([]int32, 5000)}, 1, "prompt", "too long"},
		{chat.Prompt{Path: "prompt", Text: "x"}, 5000, "max_tokens", "exceed context limit"},
	} {
		_, err := g.Generate(t.Context(), &chat.Request{Prompt: &tt.p, MaxTokens: tt.max})
		if e := chat.AsError(err); err == nil || e.Param != tt.param || !strings.Contains(e.Msg, tt.says) {
			t.Errorf("%+v: %v, want %s: %s", tt.p, err, tt.param, tt.says)
		}
	}
	if len(s.prompts) > 0 {
		t.Errorf("%d prompts reached the engine", len(s.prompts))
	}
}

// scoring is an engine that scores: a position's number, negative.
type scoring struct{ *script }

func (s scoring) Score(_ context.Context, tokens []int32, top int) ([]engine.Score, error) {
	out := make([]engine.Score, len(tokens))
	for i := range out {
		out[i].Logprob = float32(-i)
		out[i].Top = make([]sample.Logprob, max(top, 1))
	}
	return out, nil
}

// TestEcho: the first event has the prompt, and of every token but the first how likely it was behind those before it.
func TestEcho(t *testing.T) {
	g, s := newTest(t, "x")
	p := &chat.Prompt{Text: "Hello, my name", Echo: true, Only: true}
	first := func(r *chat.Request) (chat.Event, int) {
		t.Helper()
		seq, err := g.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var start chat.Event
		finished := 0
		for e, err := range seq {
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Kind == chat.EventStart:
				start = e
			case e.Kind == chat.EventFinish && e.Finish == chat.FinishLength && e.Usage.Output == 0:
				finished++
			default:
				t.Errorf("event %+v", e)
			}
		}
		return start, finished
	}
	if start, n := first(&chat.Request{Prompt: p, N: 3}); start.Text != p.Text || start.Logprobs != nil || n != 3 {
		t.Errorf("%+v, %d choices", start, n)
	}
	if _, err := g.Generate(t.Context(), &chat.Request{Prompt: p, Logprobs: true}); err == nil || !strings.Contains(err.Error(), "from a script") {
		t.Errorf("logprobs without a model: %v", err)
	}
	g.cfg.Engine = scoring{s}
	start, _ := first(&chat.Request{Prompt: p, Logprobs: true, TopLogprobs: 2})
	var text strings.Builder
	for i, l := range start.Logprobs {
		text.WriteString(l.Token)
		switch {
		case i == 0 && (!math.IsNaN(l.Logprob) || l.Top != nil), i > 0 && (l.Logprob != float64(1-i) || len(l.Top) != 2):
			t.Errorf("token %d: %+v", i, l)
		}
	}
	if text.String() != p.Text {
		t.Errorf("tokens make %q, want %q", text.String(), p.Text)
	}
	start, _ = first(&chat.Request{Prompt: p, Logprobs: true})
	if l := start.Logprobs[1]; len(l.Top) > 0 {
		t.Errorf("alternatives that nobody asked for: %+v", l)
	}
	if len(s.prompts) > 0 {
		t.Errorf("%d prompts were generated for", len(s.prompts))
	}
}

// TestXTCParams: what a request says of XTC, its default threshold, and the tokens it spares.
func TestXTCParams(t *testing.T) {
	g, s := newTest(t, "x")
	for _, tt := range []struct {
		s                      chat.Sampling
		probability, threshold float32
	}{
		{chat.Sampling{}, 0, 0.1},
		{chat.Sampling{XTCProbability: new(0.5)}, 0.5, 0.1},
		{chat.Sampling{XTCProbability: new(0.5), XTCThreshold: new(0.25)}, 0.5, 0.25},
	} {
		events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Sampling: tt.s})
		p := s.prompts[len(s.prompts)-1].Sampling
		var spared strings.Builder
		for _, id := range p.XTCSpare {
			spared.WriteString(g.cfg.Tokenizer.Decode([]int32{id}, false))
		}
		want := ""
		if tt.probability > 0 {
			want = "\n<|endoftext|><|im_end|>"
		}
		if p.Numbers[sample.XTCProbability] != tt.probability || p.Numbers[sample.XTCThreshold] != tt.threshold || spared.String() != want {
			t.Errorf("%+v: %+v, spares %q", tt.s, p, spared.String())
		}
	}
}

// TestTokensCap: no request gets more, and one that asks for more than the context has gets the cap, not an error.
func TestTokensCap(t *testing.T) {
	g, s := newTest(t, "x")
	for _, tt := range []struct{ byDefault, most, asked, want int }{
		{0, 0, 0, 0}, {0, 0, 7, 7}, {5, 0, 0, 5}, {5, 0, 7, 7}, {0, 10, 0, 10}, {0, 10, 7, 7}, {0, 10, 1 << 20, 10}, {50, 10, 0, 10}, {5, 10, 0, 5},
	} {
		g.cfg.MaxTokens, g.cfg.TokensCap = tt.byDefault, tt.most
		events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, MaxTokens: tt.asked})
		if got := s.prompts[len(s.prompts)-1].MaxTokens; got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}
