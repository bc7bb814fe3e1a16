package generate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/engine"
)

// numbered is an engine whose tokens have their numbers as logprobs.
type numbered struct {
	script
}

func (n *numbered) Submit(_ context.Context, p engine.Prompt) (Stream, error) {
	n.prompts = append(n.prompts, p)
	return &numberedStream{scriptStream{script: &n.script}}, nil
}

type numberedStream struct{ scriptStream }

func (s *numberedStream) Next() (engine.Token, error) {
	t, err := s.scriptStream.Next()
	t.Logprob = -float32(s.at)
	return t, err
}

// splitter cuts texts into tokens at random places, also within characters.
type splitter struct {
	g     *Generator
	bytes [256]int32
}

func newSplitter(g *Generator) *splitter {
	s := &splitter{g: g}
	for id := range int32(g.cfg.Tokenizer.Size()) {
		if b := g.cfg.Tokenizer.Bytes(id); len(b) == 1 && !g.cfg.Tokenizer.Special(id) {
			s.bytes[b[0]] = id
		}
	}
	return s
}

// tokens of a text: what is special stays whole.
func (s *splitter) tokens(r *rand.Rand, text string) []int32 {
	var ids []int32
	for _, id := range s.g.guard.Plain(text) {
		b := s.g.cfg.Tokenizer.Bytes(id)
		switch {
		case s.g.cfg.Tokenizer.Special(id) || r.IntN(3) > 0:
			ids = append(ids, id)
		case utf8.Valid(b) && r.IntN(2) > 0:
			at := 0
			for i := range string(b) {
				if i > 0 && r.IntN(2) > 0 {
					ids = append(ids, s.g.guard.Plain(string(b[at:i]))...)
					at = i
				}
			}
			ids = append(ids, s.g.guard.Plain(string(b[at:]))...)
		default:
			for _, c := range b {
				ids = append(ids, s.bytes[c])
			}
		}
	}
	return ids
}

// tapeTexts are replies of the demo's form with all that is read in them, dropped from them and held back.
var tapeTexts = []string{
	"Hello, world!", "<think>\n\n</think>\n\nYes, it is.", "<think>\nHm, t, think.\n</think>\n\nthink th <t> </thin a < b << c <<< d", "a\n\n\nb\n\n",
	"grüße €uro 日本語 🙂🙃 naïve", "<think>ü€🙂</think>\n\n🙂 €", "x < y\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\"}}\n</tool_call>",
	"Let me see.<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"€\"}}\n</tool_call>\n\nDone, done.",
	"<tool_call>\nno call\n</tool_call> stays text <tool_call>{\"name\": \"nobody\"}</tool_call> t", "<think>\nopen and never closed, t",
	"<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"z\": 1}}</tool_call> and <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"z\": 2}}</tool_call> end",
	"</think>\n\nt</t", "STO STOP not", "one two three STOP four", "a STaSTO€STOP", "", "\n\n \n t", "<tool_call>{\"na", "the end <thin", "<|im_start|>assistant\nHi",
}

// TestTapeBounds: bytes that the decoder makes nothing of are let go, and a piece is looked for at so many places, before no more
// than a parser holds back.
func TestTapeBounds(t *testing.T) {
	tp := &tape{markers: []string{"<a>"}}
	for n := 1; n <= 1025; n++ {
		if tp.add(chat.Logprob{}, []byte{0x80}, ""); len(tp.raw) != n%1025 {
			t.Fatalf("%d of %d bytes wait", len(tp.raw), n)
		}
	}
	for n, want := range map[int]int{255: 0, 256: 2 + 3*255 + 1} {
		tp := &tape{markers: []string{"<a>"}}
		tp.text = []byte("a " + strings.Repeat("<a>", n))
		if got := tp.locate("a", false); got != want {
			t.Errorf("behind %d places it is found at %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int]bool{256: true, 257: false} {
		tp := &tape{markers: []string{"<a>"}}
		if tp.text = []byte(strings.Repeat("\n", n)); tp.holdable(0) != want {
			t.Errorf("%d bytes may be held back: %t", n, !want)
		}
	}
}

// TestGlance: an idle engine is given five milliseconds to look at a prompt, and one that is patient waits until it has begun.
func TestGlance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		began := time.Now()
		if glance(t.Context(), started, false); time.Since(began) != 5*time.Millisecond {
			t.Errorf("it waits %v", time.Since(began))
		}
		time.AfterFunc(time.Minute, func() { close(started) })
		if glance(t.Context(), started, true); time.Since(began) != time.Minute+5*time.Millisecond {
			t.Errorf("a patient one waits %v", time.Since(began))
		}
	})
}

// TestLogprobsAreTheText: whatever is read, held back, dropped or cut, the bytes of a text's tokens are the text, each token is
// told once and in order, and none that only marks something is told.
func TestLogprobsAreTheText(t *testing.T) {
	base, _ := newTest(t, "")
	split := newSplitter(base)
	markup := map[int32]bool{}
	for _, m := range base.family.Markers {
		if id, ok := base.cfg.Tokenizer.ID(m); ok {
			markup[id] = true
		}
	}
	cfg, err := Load(os.DirFS(demoFolder), "")
	if err != nil {
		t.Fatal(err)
	}
	n := &numbered{script{context: 1 << 16}}
	cfg.Engine = n
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	seen := 0
	for round := range 40 {
		for i, text := range tapeTexts {
			n.reply, n.finish = split.tokens(r, text), engine.Stop
			cut := round%2 == 1 && len(n.reply) > 0
			if cut {
				n.reply, n.finish = n.reply[:r.IntN(len(n.reply))], engine.Length
			}
			q := &chat.Request{Messages: []chat.Message{textOf("Hi")}, Logprobs: true, Stop: []string{"STOP", "wor"}, Tools: weather()}
			if round%4 >= 2 {
				q.Tools = nil
			}
			if i%2 == round%3 {
				q.Messages, q.Prompt, q.Tools = nil, &chat.Prompt{Text: "Hi"}, nil
			}
			plain := *q
			plain.Logprobs = false
			whole := collect(t, g, &plain, nil)
			last := 0.
			got := collect(t, g, q, func(e *chat.Event) {
				joined, runes := "", 0
				for _, lp := range e.Logprobs {
					joined += string(lp.Bytes)
					runes += lp.Runes
					seen++
					if lp.Logprob >= last {
						t.Errorf("%q: token %v comes after %v", text, -lp.Logprob, -last)
					}
					last = lp.Logprob
					if markup[lp.ID] && lp.Token != string(g.cfg.Tokenizer.Bytes(lp.ID)) {
						t.Errorf("%q: a piece %q of markup is told as a token of %q", text, lp.Token, e.Text)
					}
				}
				if e.Kind != chat.EventText && len(e.Logprobs) > 0 {
					t.Errorf("%q: %d logprobs of no text", text, len(e.Logprobs))
				}
				if e.Kind == chat.EventText && (joined != e.Text || runes != utf8.RuneCountInString(e.Text)) {
					t.Errorf("%q: the text %q is told as %q, of %d characters", text, e.Text, joined, runes)
				}
			})
			if got != whole {
				t.Errorf("%q: with logprobs\n%s, without\n%s", text, got, whole)
			}
			if strings.Contains(got, "\uFFFD") {
				t.Errorf("%q of %d tokens: %q", text, len(n.reply), got)
			}
		}
	}
	if seen < 1000 {
		t.Errorf("only %d tokens were told", seen)
	}
}

func textOf(s string) chat.Message { return text(chat.User, s) }

// collect runs a request, shows every event to look, and gives all in one text without how text is cut into events.
func collect(t *testing.T, g *Generator, r *chat.Request, look func(e *chat.Event)) string {
	t.Helper()
	seq, err := g.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	kind := chat.EventStart
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if look != nil {
			look(&e)
		}
		said := e.Text
		switch e.Kind {
		case chat.EventToolStart:
			said = e.Call.Name
		case chat.EventToolEnd:
			said = string(e.Call.Arguments)
		case chat.EventFinish:
			said = fmt.Sprint(e.Finish, e.Stop, e.Usage.Output)
		}
		if e.Kind != kind {
			fmt.Fprint(&all, "|", e.Kind, " ")
		}
		all.WriteString(said)
		kind = e.Kind
	}
	return all.String()
}

// TestCutInCharacter: a reply whose tokens run out inside a character ends before it, wherever it stands; the tokens count all
// the same. What a model ends in by itself, or writes in the middle, is its own.
func TestCutInCharacter(t *testing.T) {
	g, s := newTest(t, "")
	split := newSplitter(g)
	b := func(text string) (ids []int32) {
		for _, c := range []byte(text) {
			ids = append(ids, split.bytes[c])
		}
		return ids
	}
	call := "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \""
	for _, tt := range []struct {
		name  string
		reply []int32
		raw   bool
		stop  string // what it says when the model ends there, "" the same
		want  string
	}{
		{"text", append(g.guard.Plain("ab "), b("€")[:2]...), false, "ab \uFFFD", "ab "},
		{"completion", append(g.guard.Plain("ab "), b("🙂")[:3]...), true, "ab \uFFFD", "ab "},
		{"reasoning", append(g.guard.Plain("<think>\nhm"), b("€")[:1]...), false, "hm\uFFFD", "hm"},
		{"arguments", append(g.guard.Plain(call+"Z"), b("ü")[:1]...), false, "", "{\"city\": \"Z"},
		{"in the middle", append(b("€"[:2]), g.guard.Plain("x")...), false, "", "\uFFFDx"},
		{"in the middle and at the end", append(append(b("€"[:2]), g.guard.Plain("x")...), b("€"[:2])...), true, "\uFFFDx\uFFFD", "\uFFFDx"},
	} {
		for _, logprobs := range []bool{false, true} {
			for _, finish := range []engine.Reason{engine.Length, engine.Stop} {
				s.reply, s.finish = tt.reply, finish
				r := &chat.Request{Messages: []chat.Message{textOf("Hi")}, Tools: weather(), Logprobs: logprobs}
				if tt.raw {
					r = &chat.Request{Prompt: &chat.Prompt{Text: "Hi"}, Logprobs: logprobs}
				}
				said, output, bytes := "", 0, ""
				collect(t, g, r, func(e *chat.Event) {
					if e.Kind == chat.EventText || e.Kind == chat.EventReasoning || e.Kind == chat.EventToolArgs {
						said += e.Text
					}
					if e.Kind == chat.EventFinish {
						output = e.Usage.Output
					}
					for _, lp := range e.Logprobs {
						bytes += string(lp.Bytes)
					}
				})
				want, tokens := tt.want, len(tt.reply)
				if finish == engine.Stop {
					tokens++
					if tt.stop != "" {
						want = tt.stop
					}
					if tt.name == "arguments" {
						continue // what a call that lacks its end is read as is the parser's matter
					}
				}
				if said != want || output != tokens {
					t.Errorf("%s, %v: %q in %d tokens, want %q in %d", tt.name, finish, said, output, want, tokens)
				}
				if logprobs && (tt.raw || tt.name == "text") && strings.ToValidUTF8(bytes, "\uFFFD") != want {
					t.Errorf("%s, %v: told as %q", tt.name, finish, bytes)
				}
			}
		}
	}
	// A prompt of tokens that ends inside a character is shown up to it, and what follows ends it.
	n := &scoring{s}
	g.cfg.Engine = n
	ids := append(g.guard.Plain("ab "), b("€")[:2]...)
	s.reply, s.finish = append(b("€")[2:], g.guard.Plain("!")...), engine.Stop
	said, joined := "", ""
	collect(t, g, &chat.Request{Prompt: &chat.Prompt{Tokens: ids, Echo: true}, Logprobs: true}, func(e *chat.Event) {
		said += e.Text
		for _, lp := range e.Logprobs {
			joined += string(lp.Bytes)
		}
	})
	if said != "ab €!" || joined != said {
		t.Errorf("echo and reply are %q, told as %q", said, joined)
	}
	if said = ""; true {
		collect(t, g, &chat.Request{Prompt: &chat.Prompt{Tokens: ids, Echo: true, Only: true}}, func(e *chat.Event) { said += e.Text })
	}
	if said != "ab " {
		t.Errorf("the echo is %q", said)
	}
}

// FuzzTape: no output of a model makes its logprobs tell anything but its text.
func FuzzTape(f *testing.F) {
	for _, text := range tapeTexts {
		f.Add(text, uint64(1))
	}
	f.Add("\xe2\x82<\xff\xf0\x9f", uint64(2))
	g, s := newTest(f, "")
	split := newSplitter(g)
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		var ids []int32
		r := rand.New(rand.NewPCG(seed, 0))
		for _, part := range strings.SplitAfter(text, "<") {
			if utf8.ValidString(part) {
				ids = append(ids, split.tokens(r, part)...)
				continue
			}
			for _, c := range []byte(part) {
				ids = append(ids, split.bytes[c])
			}
		}
		s.reply = slices.DeleteFunc(ids, func(id int32) bool { return id == endOfText || id == imEnd })
		collect(t, g, &chat.Request{Messages: []chat.Message{textOf("Hi")}, Logprobs: true, Stop: []string{"ab"}, Tools: weather()}, func(e *chat.Event) {
			var joined []byte
			for _, lp := range e.Logprobs {
				joined = append(joined, lp.Bytes...)
			}
			if e.Kind == chat.EventText && utf8.Valid(joined) && string(joined) != e.Text {
				t.Errorf("%q: %q is told as %q", text, e.Text, joined)
			}
		})
	})
}

// TestTapeIsLinear: what is held back, given back and dropped costs a reply with logprobs no more than its length.
func TestTapeIsLinear(t *testing.T) {
	g, s := newTest(t, "")
	s.context = 1 << 24
	split := newSplitter(g)
	for _, unit := range []string{"<", "a<", "\n", "<tool_call>", "</think>", "<tool_call>{\"", "<tool_call>{\"name\": \"", "ab "} {
		run := func(n int) uint64 {
			s.reply = split.tokens(rand.New(rand.NewPCG(1, 1)), strings.Repeat(unit, n/len(unit)))
			r := &chat.Request{Messages: []chat.Message{textOf("Hi")}, Logprobs: true, Stop: []string{"abc"}, Tools: weather()}
			bytes, _ := cost(func() { collect(t, g, r, nil) })
			return bytes
		}
		run(1000)
		if one, four := run(10_000), run(40_000); four > 8*one {
			t.Errorf("%q: four times as much takes %d bytes, not %d", unit, four, one)
		}
	}
}
