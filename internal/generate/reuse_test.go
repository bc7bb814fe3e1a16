package generate

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/tokenizer"
	"hearth/internal/transcript"
)

// memory is an engine that answers what it is told to and keeps all token sequences that ran, as the prefix tree does.
type memory struct {
	script
	seen   [][]int32
	prompt []int32
	common int // tokens of the last prompt that had run before
}

func (m *memory) Submit(ctx context.Context, p engine.Prompt) (Stream, error) {
	m.prompt, m.common = p.Tokens, 0
	for _, s := range m.seen {
		n := 0
		for n < min(len(s), len(p.Tokens)) && s[n] == p.Tokens[n] {
			n++
		}
		m.common = max(m.common, n)
	}
	m.seen = append(m.seen, slices.Concat(p.Tokens, m.reply))
	m.cached = m.common
	return m.script.Submit(ctx, p)
}

// talk is a conversation with a generator over a memory.
type talk struct {
	t     testing.TB
	g     *Generator
	m     *memory
	r     chat.Request
	rand  *rand.Rand
	last  int // tokens that ran in the last turn
	calls int
	whole bool // answers are cut into tokens as the tokenizer would
}

// say makes the model answer with a text, cut into tokens at random, and appends what a client makes of the answer to
// the conversation. It gives the tokens of the prompt that were computed before, and how many had run in the turn before.
func (k *talk) say(answer string) (common, ran int) {
	k.t.Helper()
	k.m.reply = uttered(k.rand, k.g.cfg.Tokenizer, 0, answer)
	if k.whole {
		k.m.reply = k.g.guard.Plain(answer)
	}
	seq, err := k.g.Generate(k.t.Context(), &k.r)
	if err != nil {
		k.t.Fatal(err)
	}
	if n, err := k.g.Count(k.t.Context(), &k.r); err != nil || n != len(k.m.prompt) {
		k.t.Fatalf("%d tokens counted of %d, %v", n, len(k.m.prompt), err)
	}
	said := chat.Message{Role: chat.Assistant}
	part := func(kind chat.PartKind) *chat.Part {
		if n := len(said.Parts); n == 0 || said.Parts[n-1].Kind != kind || kind == chat.PartToolCall {
			said.Parts = append(said.Parts, chat.Part{Kind: kind})
		}
		return &said.Parts[len(said.Parts)-1]
	}
	for e, err := range seq {
		if err != nil {
			k.t.Fatal(err)
		}
		switch e.Kind {
		case chat.EventText:
			part(chat.PartText).Text += e.Text
		case chat.EventReasoning:
			part(chat.PartReasoning).Text += e.Text
		case chat.EventToolEnd:
			k.calls++
			part(chat.PartToolCall).Call = &chat.ToolCall{ID: cmp.Or(e.Call.ID, fmt.Sprintf("call%05d", k.calls)), Name: e.Call.Name, Arguments: compact(k.t, e.Call.Arguments)}
		}
	}
	k.r.Messages = append(k.r.Messages, said)
	ran, k.last = k.last, len(k.m.prompt)+len(k.m.reply)
	return k.m.common, ran
}

// compact writes arguments as clients in JavaScript do.
func compact(t testing.TB, args json.RawMessage) json.RawMessage {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// results answers all calls of the last turn.
func (k *talk) results(text string) {
	m := chat.Message{Role: chat.User}
	for _, p := range k.r.Messages[len(k.r.Messages)-1].Parts {
		if p.Kind == chat.PartToolCall {
			m.Parts = append(m.Parts, chat.Part{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: p.Call.ID, Parts: []chat.Part{{Text: text}}}})
		}
	}
	k.r.Messages = append(k.r.Messages, m)
}

// uttered is a text as a model might have generated it, cut into tokens in any way; spell is how many special tokens of a
// hundred are spelled with others.
func uttered(r *rand.Rand, tok *tokenizer.Tokenizer, spell int, text string) []int32 {
	var ids []int32
	for text != "" {
		n := min(len(text), 1+r.IntN(6))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		for i := range n {
			switch special := startsSpecial(tok, text[i:]); {
			case special == 0:
				continue
			case i == 0 && r.IntN(100) >= spell:
				n = special
			case i > 0:
				n = i
			}
			break
		}
		ids = append(ids, tok.Encode(text[:n], tokenizer.EncodeOptions{ParseSpecial: true})...)
		text = text[n:]
	}
	return ids
}

// startsSpecial is the length of the special token at the start of a text.
func startsSpecial(tok *tokenizer.Tokenizer, text string) int {
	if ids := tok.Encode(text[:min(len(text), 40)], tokenizer.EncodeOptions{ParseSpecial: true}); tok.Special(ids[0]) {
		name, _ := tok.Token(ids[0])
		return len(name)
	}
	return 0
}

func newTalk(t testing.TB, history bool) *talk {
	g, _ := newTest(t, "x")
	m := &memory{script: script{finish: engine.Stop, context: 1 << 20}}
	g.cfg.Engine = m
	if !history {
		g.history = transcript.New(g.guard, transcript.Terms{})
	}
	return &talk{t: t, g: g, m: m, rand: rand.New(rand.NewPCG(7, 8)), r: chat.Request{Tools: weather(), Messages: []chat.Message{text(chat.System, "You help."), text(chat.User, "Weather?")}}}
}

// TestAgentReuses: through a loop of thinking, calls in any spelling and results, each turn takes up all that ran in the
// one before, to the last generated token.
func TestAgentReuses(t *testing.T) {
	k := newTalk(t, true)
	for i := range 10 {
		answer := []string{
			"<think>\nLet me see.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
			"<think>\nAgain.\n</think>\n\n<tool_call>\n{\"name\":\"get_weather\",\"arguments\":{\"z\":1.0,\"city\":\"T\\u00f8nsberg\"}}\n</tool_call>\n",
			"<tool_call>{\"name\": \"get_weather\", \"arguments\": {}}</tool_call><tool_call>{\"arguments\": {\"city\": \"Bø\"}, \"name\": \"get_weather\"}</tool_call>",
		}[i%3]
		common, ran := k.say(answer)
		if common != ran {
			t.Errorf("turn %d: %d of %d tokens had run", i, common, ran)
		}
		k.results(strings.Repeat("sunny\n", i+1))
	}
	plain := newTalk(t, false)
	plain.r.Messages = k.r.Messages
	plain.say("x")
	if len(plain.m.prompt) == len(k.m.prompt) {
		t.Error("nothing was respelled: the test shows nothing")
	}
}

// TestChatReuses: answers of plain conversations are taken up too, whatever white space is around them.
func TestChatReuses(t *testing.T) {
	k := newTalk(t, true)
	for i := range 10 {
		common, ran := k.say([]string{"It is sunny.", "Hello there.\n", "one\n\ntwo  three", "日本 é 😀"}[i%4])
		if common != ran {
			t.Errorf("turn %d: %d of %d tokens had run", i, common, ran)
		}
		k.r.Messages = append(k.r.Messages, text(chat.User, "And tomorrow?"))
	}
}

// TestEditedAnswers: what the client changed in an answer is what the model reads.
func TestEditedAnswers(t *testing.T) {
	const call = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\",\"z\":1}}\n</tool_call>"
	for _, c := range []struct {
		name, answer string
		edit         func(m *chat.Message)
		kept         bool
	}{
		{"as it was", call, func(*chat.Message) {}, true},
		{"other spelling", call, func(m *chat.Message) { m.Parts[0].Call.Arguments = json.RawMessage(`{"z": 1.0, "city": "\u004fslo"}`) }, true},
		{"other value", call, func(m *chat.Message) { m.Parts[0].Call.Arguments = json.RawMessage(`{"city": "Rome", "z": 1}`) }, false},
		{"one more", call, func(m *chat.Message) { m.Parts[0].Call.Arguments = json.RawMessage(`{"city": "Oslo", "z": 1, "y": 2}`) }, false},
		{"another type", call, func(m *chat.Message) { m.Parts[0].Call.Arguments = json.RawMessage(`{"city": "Oslo", "z": "1"}`) }, false},
		{"another tool", call, func(m *chat.Message) { m.Parts[0].Call.Name = "get_news" }, false},
		{"text added", call, func(m *chat.Message) { m.Parts = append([]chat.Part{{Text: "Well."}}, m.Parts...) }, false},
		{"call removed", "Yes.\n" + call, func(m *chat.Message) { m.Parts = m.Parts[:1] }, false},
		{"reasoning removed", "<think>\nHm\n</think>\n\n" + call, func(m *chat.Message) { m.Parts = m.Parts[1:] }, true},
		{"reasoning changed", "<think>\nHm\n</think>\n\n" + call, func(m *chat.Message) { m.Parts[0].Text = "Oh" }, false},
		{"trimmed", "Yes. ", func(m *chat.Message) { m.Parts[0].Text = "Yes." }, true},
		{"other text", "Yes. ", func(m *chat.Message) { m.Parts[0].Text = "No." }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk(t, true)
			k.say(c.answer)
			k.edit(c.edit)
			got, err := k.g.Render(t.Context(), &k.r)
			if err != nil {
				t.Fatal(err)
			}
			if kept := strings.Contains(got, c.answer); kept != c.kept {
				t.Errorf("kept %v, want %v:\n%s", kept, c.kept, got)
			}
			want, err := newTalk(t, false).g.Render(t.Context(), &k.r)
			if err != nil {
				t.Fatal(err)
			}
			if c.kept == (got == want) {
				t.Errorf("kept %v, but the text is\n%s\nand without memory\n%s", c.kept, got, want)
			}
			other := k.r
			other.Origin.Salt = transcript.Salt{1}
			if got, err := k.g.Render(t.Context(), &other); err != nil || got != want {
				t.Errorf("another caller's prompt is\n%s\n%v, want\n%s", got, err, want)
			}
		})
	}
}

// edit changes the last answer, which a result then follows.
func (k *talk) edit(f func(*chat.Message)) {
	f(&k.r.Messages[len(k.r.Messages)-1])
	k.results("sunny")
	if n := len(k.r.Messages); len(k.r.Messages[n-1].Parts) == 0 {
		k.r.Messages[n-1] = text(chat.User, "Go on")
	}
}

// TestCallsAreClosed: where a reply ends behind the one call that is wanted, before the model has closed it, the next prompt has
// the call as the template closes it, with the ids that were generated up to there.
func TestCallsAreClosed(t *testing.T) {
	const call = "{\"city\": \"Oslo\"}}"
	for name, c := range map[string]struct {
		choice chat.ToolChoice
		answer string
		kept   bool // the template writes the same up to the braces
	}{
		"a named one":                 {chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "get_weather"}, " " + call, true},
		"a named one, in another way": {chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "get_weather"}, " {\"city\":\"Oslo\"}}", false},
		"one at most":                 {chat.ToolChoice{Single: true}, "<think>\n\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " + call, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, true)
			k.r.Choice = c.choice
			k.say(c.answer + "\n</tool_call>")
			ran := k.last - len(k.g.guard.Plain("\n</tool_call>"))
			k.r.Choice = chat.ToolChoice{}
			k.results("sunny")
			got, err := k.g.prompt(t.Context(), &k.r)
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := newTalk(t, false).g.prompt(t.Context(), &k.r)
			if err != nil {
				t.Fatal(err)
			}
			if got.text != fresh.text {
				t.Errorf("the prompt is\n%s\nand without memory\n%s", got.text, fresh.text)
			}
			if c.kept && got.encoded.Spliced == 0 || !c.kept && got.encoded.Spliced > ran {
				t.Errorf("%d generated ids are kept", got.encoded.Spliced)
			}
		})
	}
}

// BenchmarkPrompt makes the prompt of an agent's next turn: 100 KB of conversation, of which the last kilobyte is new.
// known: all but that was seen before; fresh: none of it.
func BenchmarkPrompt(b *testing.B) {
	for _, history := range []string{"known", "fresh"} {
		b.Run(history, func(b *testing.B) {
			g, _ := newTest(b, "x")
			r := chat.Request{Tools: weather(), Messages: []chat.Message{text(chat.System, strings.Repeat("You are an agent. Use the tools.\n", 200))}}
			for i := range 50 {
				r.Messages = append(r.Messages, text(chat.User, fmt.Sprint(i, strings.Repeat(" func main() { fmt.Println(\"hello\") }\n", 40))), text(chat.Assistant, fmt.Sprint("Done with ", i, "; what is next?")))
			}
			r.Messages = append(r.Messages, text(chat.User, ""))
			p, err := g.prompt(context.Background(), &r)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(p.text)))
			i := 0
			for b.Loop() {
				i++
				r.Messages[len(r.Messages)-1] = text(chat.User, fmt.Sprint(i, strings.Repeat(" and some more of it", 50)))
				r.Origin.Salt = transcript.Salt{}
				if history == "fresh" {
					r.Origin.Salt = transcript.Salt{byte(i), byte(i >> 8), byte(i >> 16)}
				}
				if _, err := g.prompt(context.Background(), &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestBuiltinTemplatesReuse: answers that are made of several special tokens are taken up too, whatever the spelling of
// their calls.
func TestBuiltinTemplatesReuse(t *testing.T) {
	for _, c := range []struct {
		name, src string
		answers   []string
	}{
		{"harmony", dialect.BuiltinText("harmony"), []string{
			"<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\":\"Oslo\"}",
			"<|channel|>analysis<|message|>Again.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather<|message|>{\"city\": \"B\\u00f8\"}",
		}},
		{"deepseek_v32", dialect.BuiltinText("deepseek_v32"), []string{
			"I look.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>\n",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := talkOver(t, c.name, c.src, false)
			for i := range 4 {
				common, ran := k.say(c.answers[i%len(c.answers)])
				if common != ran {
					seen := k.m.seen[len(k.m.seen)-2]
					t.Errorf("turn %d: %d of %d tokens had run:\n%q\n%q", i, common, ran, k.g.cfg.Tokenizer.Decode(seen[common:], false), k.g.cfg.Tokenizer.Decode(k.m.prompt[common:], false))
				}
				if k.calls == i {
					t.Errorf("turn %d: no call in %q", i, c.answers[i%len(c.answers)])
				}
				k.results("sunny")
			}
		})
	}
}

// TestLoopless: a template that goes over messages by number does not say which text is whose, and answers are taken up all
// the same.
func TestLoopless(t *testing.T) {
	k := talkOver(t, "", "{% for i in range(messages|length) %}{% set m = messages[i] %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n", false)
	for i := range 4 {
		if common, ran := k.say(" It is sunny.\n"); common != ran {
			t.Errorf("turn %d: %d of %d tokens had run", i, common, ran)
		}
		k.r.Messages = append(k.r.Messages, text(chat.User, "And tomorrow?"))
	}
}

// TestOwnCallIDs: what the model itself calls its calls stands in the next prompt, and every turn takes up all that ran before,
// be the id a client's too, written behind the arguments, given twice, or of another form than the APIs allow.
func TestOwnCallIDs(t *testing.T) {
	const head = "{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]" +
		"{% elif m.role == 'tool' %}[TOOL_RESULTS]{{ m.tool_call_id }} {{ m.content }}[/TOOL_RESULTS]{% else %}{{ m.content }}{% if m.tool_calls %}"
	const tail = "{% endif %}<EOS>{% endif %}{% endfor %}"
	for _, c := range []struct {
		name, src string
		answers   []string
		shown     []string // ids in the last prompt
		kept      []string // of those, that clients have
	}{
		{"before the arguments", "{% for c in m.tool_calls %}[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}",
			[]string{`[TOOL_CALLS]get_weather[CALL_ID]JAaQP52XE[ARGS]{"city":"Oslo"}`, `[TOOL_CALLS]get_weather[CALL_ID]JAaQP52XE[ARGS]{"city": "Bergen"}[TOOL_CALLS]get_weather[CALL_ID]JAaQP52XF[ARGS]{"city": "Oslo"}`},
			[]string{"JAaQP52XE", "JAaQP52XF"}, []string{"JAaQP52XE", "JAaQP52XF"}},
		{"behind the arguments", `{% for c in m.tool_calls %}{{ '[TOOL_CALLS][' if loop.first }}{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}, "id": "{{ c.id }}"}{{ ']' if loop.last else ', ' }}{% endfor %}`,
			[]string{`[TOOL_CALLS][{"name":"get_weather","arguments":{"city":"Oslo"},"id":"JAaQP52XE"}]`, `[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Bergen"}, "id": "JAaQP52XF"}, {"name": "get_weather", "arguments": {}, "id": "JAaQP52XG"}]`},
			[]string{"JAaQP52XE", "JAaQP52XF", "JAaQP52XG"}, nil},
		{"numbered anew in every turn", "<|tool_calls_section_begin|>{% for c in m.tool_calls %}<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ c.function.arguments | tojson }}<|tool_call_end|>{% endfor %}<|tool_calls_section_end|>",
			[]string{`<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city":"Oslo"}<|tool_call_end|><|tool_calls_section_end|>`},
			[]string{"functions.get_weather:0"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := talkOver(t, "", head+c.src+tail, false)
			seen := map[string]bool{}
			for i := range 4 {
				common, ran := k.say(c.answers[i%len(c.answers)])
				if common != ran {
					seen := k.m.seen[len(k.m.seen)-2]
					t.Errorf("turn %d: %d of %d tokens had run:\n%q\n%q", i, common, ran, k.g.cfg.Tokenizer.Decode(seen[max(0, common-9):], false), k.g.cfg.Tokenizer.Decode(k.m.prompt[max(0, common-9):], false))
				}
				calls := 0
				for _, p := range k.r.Messages[len(k.r.Messages)-1].Parts {
					if p.Kind != chat.PartToolCall {
						continue
					}
					if calls++; seen[p.Call.ID] || strings.Trim(p.Call.ID, "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
						t.Errorf("a client is given %q", p.Call.ID)
					}
					seen[p.Call.ID] = true
				}
				if calls == 0 {
					t.Fatal("no call")
				}
				k.results("sunny")
			}
			render := func() string {
				t.Helper()
				out, err := k.g.Render(t.Context(), &k.r)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			out := render()
			for _, id := range c.shown {
				if strings.Count(out, id) < 2 { // with its result
					t.Errorf("%s is not in the prompt %s", id, out)
				}
			}
			for id := range seen {
				if !slices.Contains(c.kept, id) && strings.Contains(out, id) {
					t.Errorf("a client's id %s is in the prompt %s", id, out)
				}
			}
			k.r.Origin.Salt = transcript.Salt{1}
			other := render()
			if other == out { // it has given no client such an id
				t.Error("ids of one caller are remembered for another")
			}
			k.r.Origin.Salt = transcript.Salt{}
			k.g.ForgetSalt(transcript.Salt{1})
			if render() != out {
				t.Error("what is remembered for one caller went with another's")
			}
			k.g.ForgetSalt(transcript.Salt{})
			if render() == out {
				t.Error("something is remembered of a caller who had it dropped")
			}
			k.g.Forget()
			for _, id := range c.kept {
				if out := render(); !seen[id] || !strings.Contains(out, id) {
					t.Errorf("%s is lost: %s", id, out)
				}
			}
		})
	}
}

// TestPlainHistory: a request that asks for it has the prompt of its text alone, before a conversation was generated here and
// after it, in counting too, and leaves nothing behind.
func TestPlainHistory(t *testing.T) {
	k := newTalk(t, true)
	for i := range 6 {
		k.say([]string{
			"<think>\nLet me see.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
			"<tool_call>{\"name\": \"get_weather\", \"arguments\": {}}</tool_call><tool_call>{\"arguments\": {\"city\": \"Bø\"}, \"name\": \"get_weather\"}</tool_call>",
		}[i%2])
		k.results("sunny\n")
	}
	prompt := func(g *Generator, plain bool) *prompt {
		t.Helper()
		r := k.r
		r.PlainHistory = plain
		p, err := g.prompt(t.Context(), &r)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := g.Count(t.Context(), &r); err != nil || n != len(p.tokens) {
			t.Fatalf("%d tokens counted of %d, %v", n, len(p.tokens), err)
		}
		return p
	}
	text, never := newTalk(t, false), newTalk(t, true)
	want := prompt(text.g, false).tokens // as --history text has it
	if got := prompt(never.g, true); !slices.Equal(got.tokens, want) {
		t.Errorf("before anything was generated: %v, want %v", got.tokens, want)
	}
	if n := pieces(never.g); n != 0 {
		t.Error("something is remembered of it")
	}
	before := pieces(k.g)
	for range 2 {
		p := prompt(k.g, true)
		if !slices.Equal(p.tokens, want) || p.encoded.Spliced != 0 {
			t.Errorf("after the conversation: %d spliced, %v, want %v", p.encoded.Spliced, p.tokens, want)
		}
		p.remember(k.g.history, []int32{1, 2, 3}, true)
	}
	if pieces(k.g) != before {
		t.Error("something is remembered of it")
	}
	if p := prompt(k.g, false); p.encoded.Spliced == 0 || slices.Equal(p.tokens, want) {
		t.Error("nothing is spliced without it: the test shows nothing")
	}
}

// pieces counts what a generator remembers.
func pieces(g *Generator) uint64 {
	b := g.Remembered()[len("hearthH1"):]
	_, n := binary.Uvarint(b) // the time
	count, _ := binary.Uvarint(b[n:])
	return count
}

// What the model called its calls is memory too: a plain prompt has the ids that it makes of the client's.
func TestPlainCallIDs(t *testing.T) {
	k := newTalk(t, true)
	tmpl, err := NewTemplate("ids", "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls %}[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Engine: k.m, Tokenizer: k.g.cfg.Tokenizer, Template: tmpl, StopIDs: k.g.stopIDs})
	if err != nil {
		t.Fatal(err)
	}
	call := chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{ID: "call_0123456789", Name: "get_weather", Arguments: json.RawMessage(`{}`)}}
	r := chat.Request{Messages: []chat.Message{text(chat.User, "Weather?"), {Role: chat.Assistant, Parts: []chat.Part{call}}, text(chat.User, "And?")}}
	prompt := func(plain bool) string {
		t.Helper()
		r.PlainHistory = plain
		p, err := g.prompt(t.Context(), &r)
		if err != nil {
			t.Fatal(err)
		}
		return p.text
	}
	before := prompt(true)
	g.history.RememberCall(transcript.Salt{}, "call_0123456789", "abcDEF123")
	if after := prompt(true); after != before || strings.Contains(after, "abcDEF123") {
		t.Errorf("a plain prompt has %q, before %q", after, before)
	}
	if exact := prompt(false); !strings.Contains(exact, "abcDEF123") {
		t.Errorf("what is remembered is not in %q: the test shows nothing", exact)
	}
}
