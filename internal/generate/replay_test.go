package generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/transcript"
)

// forgetful is a conversation as a client tells it that keeps no reasoning.
func forgetful(messages []chat.Message) []chat.Message {
	all := slices.Clone(messages)
	for i := range all {
		all[i].Parts = slices.DeleteFunc(slices.Clone(all[i].Parts), func(p chat.Part) bool { return p.Kind == chat.PartReasoning })
	}
	return all
}

// rendered is the prompt of a request, and its length as counting has it.
func (k *talk) rendered(r *chat.Request) string {
	k.t.Helper()
	out, err := k.g.Render(k.t.Context(), r)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

const thoughtful = "<think>\nLet me see.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"z\": 1.0}}\n</tool_call>"

// TestReplay: a client that sends its turns back without their reasoning has the prompts of one that keeps it, so that each turn
// takes up all that ran in the one before.
func TestReplay(t *testing.T) {
	k := newTalk(t, true)
	for i := range 10 {
		answer := []string{
			thoughtful,
			"<think>\nAgain.\n</think>\n\n<tool_call>\n{\"name\":\"get_weather\",\"arguments\":{\"z\":1.0,\"city\":\"T\\u00f8nsberg\"}}\n</tool_call>\n",
			"<think>\nBoth.\n</think>\n\n<tool_call>{\"name\": \"get_weather\", \"arguments\": {}}</tool_call><tool_call>{\"arguments\": {\"city\": \"Bø\"}, \"name\": \"get_weather\"}</tool_call>",
			"<tool_call>{\"name\": \"get_weather\", \"arguments\": {}}</tool_call>",
		}[i%4]
		common, ran := k.say(answer)
		if common != ran {
			t.Errorf("turn %d: %d of %d tokens had run", i, common, ran)
		}
		k.r.Messages = forgetful(k.r.Messages)
		k.results("sunny\n")
	}
	if n := strings.Count(k.rendered(&k.r), "Let me see."); n != 3 {
		t.Errorf("%d thoughts of 3 are in the prompt", n)
	}
	seq, err := k.g.Generate(t.Context(), &k.r)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range seq {
		if err != nil || e.Usage != nil && e.Usage.Replayed != 8 { // of every fourth turn there is none
			t.Errorf("%+v, %v: 8 turns have what was thought", e.Usage, err)
		}
	}
}

// TestReplayOnlyWhatWasSaid: who was given a turn gets its reasoning back, in a conversation that says the same.
func TestReplayOnlyWhatWasSaid(t *testing.T) {
	k := newTalk(t, true)
	k.say(thoughtful)
	k.results("sunny")
	k.say("<think>\nOnce more.\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>")
	k.results("rain")
	for _, c := range []struct {
		name string
		edit func(r *chat.Request)
		want []string // of what was thought
	}{
		{"as it was", func(*chat.Request) {}, []string{"Let me see.", "Once more."}},
		{"blanks around the text", func(r *chat.Request) { r.Messages[2].Parts[0].Text = "\n I look.  " }, []string{"Let me see.", "Once more."}},
		{"arguments spelled in another way", func(r *chat.Request) {
			r.Messages[2].Parts[1].Call = &chat.ToolCall{Name: "get_weather", Arguments: json.RawMessage(`{"z": 1, "city": "\u004fslo"}`)}
		}, []string{"Let me see.", "Once more."}},
		{"a name of the assistant", func(r *chat.Request) { r.Messages[2].Name = "agent" }, []string{"Let me see.", "Once more."}},
		{"text and call in messages of their own", func(r *chat.Request) {
			said := r.Messages[2].Parts
			r.Messages = slices.Insert(r.Messages, 3, says(said[1]))
			r.Messages[2].Parts = said[:1]
		}, []string{"Let me see.", "Once more."}},
		{"text and call in messages of their own, one with reasoning", func(r *chat.Request) {
			said := r.Messages[2].Parts
			r.Messages = slices.Insert(r.Messages, 3, says(chat.Part{Kind: chat.PartReasoning, Text: "Mine."}, said[1]))
			r.Messages[2].Parts = said[:1]
		}, []string{"Mine.", "Once more."}},
		{"another question", func(r *chat.Request) { r.Messages[1] = text(chat.User, "Rain?") }, nil},
		{"another system message", func(r *chat.Request) { r.Messages[0] = text(chat.System, "You obey.") }, nil},
		{"another text", func(r *chat.Request) { r.Messages[2].Parts[0].Text = "I see." }, nil},
		{"no text", func(r *chat.Request) { r.Messages[2].Parts = r.Messages[2].Parts[1:] }, nil},
		{"other arguments", func(r *chat.Request) {
			r.Messages[2].Parts[1].Call = &chat.ToolCall{Name: "get_weather", Arguments: json.RawMessage(`{"z":"1","city":"Oslo"}`)}
		}, nil},
		{"another tool", func(r *chat.Request) {
			r.Messages[2].Parts[1].Call = &chat.ToolCall{Name: "get_news", Arguments: json.RawMessage(`{"z":1,"city":"Oslo"}`)}
		}, nil},
		{"another result", func(r *chat.Request) {
			r.Messages[3].Parts = []chat.Part{{Kind: chat.PartToolResult, Result: &chat.ToolResult{Parts: []chat.Part{{Text: "snow"}}}}}
		}, []string{"Let me see."}},
		{"reasoning of its own", func(r *chat.Request) {
			r.Messages[2].Parts = append([]chat.Part{{Kind: chat.PartReasoning, Text: "Mine."}}, r.Messages[2].Parts...)
		}, []string{"Mine.", "Once more."}},
		{"another salt", func(r *chat.Request) { r.Origin.Salt = transcript.Salt{1} }, nil},
		{"another caller", func(r *chat.Request) { r.Origin.Caller = [16]byte{1} }, nil},
		{"a plain history", func(r *chat.Request) { r.PlainHistory = true }, nil},
		// As the template has it:
		{"thinking off", func(r *chat.Request) { r.Thinking.Mode = chat.Off }, []string{"Let me see.", "Once more."}},
		{"a user who speaks again", func(r *chat.Request) {
			r.Messages = append(r.Messages, text(chat.Assistant, "It rains."), text(chat.User, "Thanks."))
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := k.r
			r.Messages = forgetful(r.Messages)
			c.edit(&r)
			got := k.rendered(&r)
			for _, thought := range []string{"Let me see.", "Once more.", "Mine."} {
				if strings.Contains(got, thought) != slices.Contains(c.want, thought) {
					t.Errorf("%q in the prompt: want %v\n%s", thought, c.want, got)
				}
			}
			if n, err := k.g.Count(t.Context(), &r); err != nil || n == 0 {
				t.Errorf("%d tokens counted, %v", n, err)
			}
		})
	}
	r := k.r
	r.Messages = forgetful(r.Messages)
	k.g.cfg.NoReplay = true
	if got := k.rendered(&r); strings.Contains(got, "Let me see.") {
		t.Errorf("it is put back though it is not to be: %s", got)
	}
	k.g.cfg.NoReplay = false
	family := *k.g.family
	family.Replay = dialect.ReplayNever
	k.g.family = &family
	if got := k.rendered(&r); strings.Contains(got, "Let me see.") {
		t.Errorf("it is put back though its publisher wants none: %s", got)
	}
	k.g.family = dialect.Choose(dialect.Evidence{Template: "<tool_call>"})
	k.g.ForgetSalt(transcript.Salt{1})
	if got := k.rendered(&r); !strings.Contains(got, "Let me see.") {
		t.Errorf("it went with another caller's: %s", got)
	}
	saved := k.g.Remembered()
	k.g.ForgetSalt(transcript.Salt{})
	if got := k.rendered(&r); strings.Contains(got, "Let me see.") {
		t.Errorf("it is remembered of a caller who had it dropped: %s", got)
	}
	again := newTalk(t, true)
	if err := again.g.Recall(saved); err != nil {
		t.Fatal(err)
	}
	if got := again.rendered(&r); !strings.Contains(got, "Let me see.") || !strings.Contains(got, "Once more.") {
		t.Errorf("it is lost with the process: %s", got)
	}
}

// keepsReasoning is a template that prints what the model thought in every turn.
const keepsReasoning = "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}" +
	"{{ m.content }}{% for c in m.tool_calls %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"

// thinksInParts is a template that knows what the model thought as a part of the content.
const thinksInParts = "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{% if m.role == 'assistant' %}{% if m.content is string %}{{ m.content }}{% else %}" +
	"{% for p in m.content %}{{ '[THINK]' ~ p.thinking ~ '[/THINK]' if p.type == 'thinking' else p.text }}{% endfor %}{% endif %}" +
	"{% for c in m.tool_calls %}[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}<EOS>" +
	"{% elif m.role == 'tool' %}[TOOL_RESULTS]{{ m.content }}[/TOOL_RESULTS]{% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}"

// Reasoning that a template knows as a part of the content alone is printed, with a text or a call behind it or none, and goes on
// where nothing is behind it.
func TestReasoningIsPart(t *testing.T) {
	k := talkOver(t, "", thinksInParts, false)
	thought := chat.Part{Kind: chat.PartReasoning, Text: "Hm."}
	for want, r := range map[string][]chat.Message{
		"[INST]u[/INST][THINK]Hm.[/THINK]Yes.<EOS>[INST]v[/INST]": {text(chat.User, "u"), says(thought, chat.Part{Text: "Yes."}), text(chat.User, "v")},
		"[INST]u[/INST][THINK]Hm.[/THINK][TOOL_CALLS]get_weather[ARGS]{}<EOS>[TOOL_RESULTS]r[/TOOL_RESULTS]": {text(chat.User, "u"),
			says(thought, callPart("a", "get_weather", "{}")), answers(resultPart("a", "r"))},
		"[INST]u[/INST][THINK]Hm.[/THINK]Ye":    {text(chat.User, "u"), says(thought, chat.Part{Text: "Ye"})},
		"[INST]u[/INST][THINK]Hm.":              {text(chat.User, "u"), says(thought)},
		"[INST]u[/INST]Yes.<EOS>[INST]v[/INST]": {text(chat.User, "u"), text(chat.Assistant, "Yes."), text(chat.User, "v")},
	} {
		if got := k.rendered(&chat.Request{Messages: r}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Reasoning that a template prints beside calls alone stands there, not with text that it has in a turn of its own.
func TestReasoningByCalls(t *testing.T) {
	k := talkOver(t, "", "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|turn>{{ m.role }}\n{% if m.tool_calls %}{% if m.reasoning %}<|channel>thought\n{{ m.reasoning }}<channel|>{% endif %}"+
		"{% for c in m.tool_calls %}<|tool_call>call:{{ c.function.name }}{}<tool_call|>{{ c.function.arguments | tojson }}{% endfor %}{% endif %}{{ m.content }}<turn|>\n{% endfor %}", false)
	r := chat.Request{Messages: []chat.Message{text(chat.User, "u"), says(chat.Part{Kind: chat.PartReasoning, Text: "Hm."}, chat.Part{Text: "I look."}, callPart("a", "f", "{}")), answers(resultPart("a", "r"))}}
	const want = "<|turn>user\nu<turn|>\n<|turn>assistant\nI look.<turn|>\n<|turn>assistant\n<|channel>thought\nHm.<channel|><|tool_call>call:f{}<tool_call|>{}<turn|>\n<|turn>tool\nr<turn|>\n"
	if got := k.rendered(&r); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestReplayOfWhatCame: of a reply that was cut off, what the model thought counts for a client that tells all it was given.
func TestReplayOfWhatCame(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		finish       engine.Reason
		fail         bool
		told         string // the text that the client sends back
		want         bool
	}{
		{"cut in the text", "<think>\nHm.\n</think>\n\nIt is sun", engine.Length, false, "It is sun", true},
		{"cut in the text, of which less comes back", "<think>\nHm.\n</think>\n\nIt is sun", engine.Length, false, "It is", false},
		{"cut in the reasoning", "<think>\nHm.", engine.Length, false, "", false},
		{"cut in a call", "<think>\nHm.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"ci", engine.Length, false, "I look.", true},
		{"failed in the text", "<think>\nHm.\n</think>\n\nIt is sun", engine.Stop, true, "It is sun", true},
		{"nothing but reasoning", "<think>\nHm.\n</think>\n\n", engine.Stop, false, "", false},
		{"ended by a stop string", "<think>\nHm.\n</think>\n\nIt is sunny STOP and more", engine.Stop, false, "It is sunny ", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := talkOver(t, "", keepsReasoning, false)
			k.m.finish, k.r.Stop, k.r.Tools = c.finish, []string{"STOP"}, weather()
			k.m.reply = k.g.guard.Plain(c.answer)
			if c.fail {
				k.m.fail = errors.New("broken")
			}
			seq, err := k.g.Generate(t.Context(), &k.r)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for e, err := range seq {
				if err != nil && !c.fail {
					t.Fatal(err)
				}
				if e.Kind == chat.EventText {
					got += e.Text
				}
			}
			if strings.Contains(c.answer, c.told) && !strings.HasPrefix(strings.TrimSpace(got), strings.TrimSpace(c.told)) {
				t.Fatalf("the client was given %q", got)
			}
			k.m.fail = nil
			k.r.Messages = append(k.r.Messages, text(chat.Assistant, c.told), text(chat.User, "Go on."))
			if got := k.rendered(&k.r); strings.Contains(got, "Hm.") != c.want {
				t.Errorf("put back %t, want %t: %s", !c.want, c.want, got)
			}
		})
	}
}

// TestReplayOfChoices: each of several choices has what the model thought before it.
func TestReplayOfChoices(t *testing.T) {
	k := newTalk(t, true)
	k.g.cfg.Engine = &choices{replies: [][]int32{
		k.g.guard.Plain("<think>\nOne.\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>"),
		k.g.guard.Plain("<think>\nTwo.\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"),
		k.g.guard.Plain("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>"),
	}}
	k.r.N = 3
	seq, err := k.g.Generate(t.Context(), &k.r)
	if err != nil {
		t.Fatal(err)
	}
	said := make([]chat.Message, 3)
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == chat.EventToolEnd {
			said[e.Choice] = chat.Message{Role: chat.Assistant, Parts: []chat.Part{{Kind: chat.PartToolCall, Call: e.Call}}}
		}
	}
	before := k.r.Messages
	for i, want := range []string{"<think>\nOne.", "<think>\nTwo.", ""} {
		k.r.Messages = append(slices.Clone(before), said[i])
		k.results("sunny")
		if got := k.rendered(&k.r); strings.Contains(got, "<think>") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("choice %d: want %q in %s", i, want, got)
		}
	}
}

// choices is an engine whose prompts, in their order, have different replies.
type choices struct {
	replies [][]int32
	next    int
}

func (c *choices) Context() int { return 4096 }

func (c *choices) Submit(ctx context.Context, p engine.Prompt) (Stream, error) {
	s := &script{reply: c.replies[c.next], finish: engine.Stop, context: c.Context()}
	c.next++
	return s.Submit(ctx, p)
}

// TestReplayAsKept: with thinking on or off, in a loop of calls and when the user has spoken again, the prompt is that of a
// client which has sent all reasoning back.
func TestReplayAsKept(t *testing.T) {
	for name, c := range map[string]struct{ src, call, answer string }{
		"every turn": {keepsReasoning, thoughtful, "<think>\nSo.\n</think>\n\nIt is sunny."},
		"channels": {dialect.BuiltinText("harmony"), "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Oslo\"}",
			"<|channel|>analysis<|message|>So.<|end|><|start|>assistant<|channel|>final<|message|>It is sunny."},
		"thinking as asked": {dialect.BuiltinText("deepseek_v32"), "Let me see.</think>I look.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
			"So.</think>It is sunny."},
		"a part of the content": {thinksInParts, "[THINK]Let me see.[/THINK]I look.[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Oslo\"}", "[THINK]So.[/THINK]It is sunny."},
	} {
		t.Run(name, func(t *testing.T) {
			k := talkOver(t, "", c.src, false)
			k.g.stops = slices.DeleteFunc(k.g.stops, func(s string) bool { return s == "<|end|>" }) // ends a part of an answer
			k.r.Tools = weather()
			printed := 0
			for i := range 6 {
				if i%3 == 2 {
					k.say(c.answer)
					k.r.Messages = append(k.r.Messages, text(chat.User, "And tomorrow?"))
				} else {
					k.say(c.call)
					k.results("sunny")
				}
				for _, mode := range []chat.Toggle{chat.Default, chat.On, chat.Off} {
					kept := k.r
					kept.Thinking.Mode = mode
					dropped := kept
					dropped.Messages = forgetful(kept.Messages)
					got, want := k.rendered(&dropped), k.rendered(&kept)
					if got != want {
						t.Errorf("turn %d, mode %d: the prompt is\n%s\nwith reasoning sent back\n%s", i, mode, got, want)
					}
					printed += strings.Count(got, "Let me see.")
				}
			}
			if printed == 0 || k.calls != 4 {
				t.Errorf("%d thoughts were printed, of %d calls: the test shows nothing", printed, k.calls)
			}
		})
	}
}

// TestReplayRefused: a conversation that the template refuses with what was put back is rendered without.
func TestReplayRefused(t *testing.T) {
	k := talkOver(t, "", "{% for m in messages if m.reasoning_content %}{{ raise_exception('no reasoning') }}{% endfor %}"+keepsReasoning, false)
	k.r.Tools = weather()
	k.say(thoughtful)
	k.results("sunny")
	if _, err := k.g.Render(t.Context(), &k.r); err == nil {
		t.Fatal("reasoning is not refused: the test shows nothing")
	}
	k.r.Messages = forgetful(k.r.Messages)
	if got := k.rendered(&k.r); strings.Contains(got, "Let me see.") || !strings.Contains(got, "I look.") {
		t.Errorf("it is put back though the template refuses it: %s", got)
	}
}

// TestReplayIsNotShown: where a prompt parts from what is stored is not shown with what was put back.
func TestReplayIsNotShown(t *testing.T) {
	k := newTalk(t, true)
	k.say("<think>\nThe user is a spy, so I say little about all this.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>")
	k.results("sunny")
	k.r.Messages = forgetful(k.r.Messages)
	p, err := k.g.prompt(t.Context(), &k.r)
	if err != nil {
		t.Fatal(err)
	}
	shown, hidden := 0, 0
	for at := range p.tokens {
		var u chat.Usage
		k.g.cached(&u, p, &k.r, engine.Usage{Started: time.Now(), Own: true, Longer: at, Instead: engine.TokensOf(p.tokens[at:min(len(p.tokens), at+40)])})
		for _, text := range append(u.Around[:], u.Instead) {
			for _, words := range []string{"The user", "is a spy", "so I say", "all this"} {
				if strings.Contains(text, words) {
					t.Errorf("at token %d of %d %q is shown, and %q", at, len(p.tokens), u.Around, u.Instead)
				}
			}
		}
		if u.Around == [2]string{} {
			hidden++
		} else {
			shown++
		}
	}
	if shown < 20 || hidden < 20 {
		t.Errorf("around %d places the text is shown, around %d not", shown, hidden)
	}
}

// TestReplayIsLinear: finding what was thought in a conversation takes as long as the conversation is.
func TestReplayIsLinear(t *testing.T) {
	k := newTalk(t, true)
	replay := func(n int) (uint64, time.Duration) {
		turn := says(chat.Part{Text: strings.Repeat("a ", 100)}, callPart("a", "f", `{"l": [`+strings.Repeat("1.0, ", 200)+`{"s": "é"}]}`))
		r := chat.Request{Messages: slices.Repeat([]chat.Message{text(chat.User, "u"), turn, answers(resultPart("a", "r"))}, n)}
		turns, err := turnsOf(r.Messages, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		c := k.g.account(&ask{Request: &r})
		return cost(func() { c.replay(k.g.history, turns) })
	}
	const n, times, tries = 100, 8, 3
	bytes1, cpu1 := replay(n)
	for try := 1; ; try++ {
		bytes2, cpu2 := replay(times * n)
		if bytes2 <= 2*times*bytes1 && cpu2 <= 3*times*max(cpu1, time.Millisecond) { // quadratic: times*times
			return
		}
		if try == tries {
			t.Fatalf("%d turns take %d bytes and %v, %d times as many %d and %v", n, bytes1, cpu1, times, bytes2, cpu2)
		}
	}
}

// TestReplayFits: a request that fits alone is not refused for what was put back into it, and its reply is remembered.
func TestReplayFits(t *testing.T) {
	k := newTalk(t, true)
	long := strings.Repeat("There is more to say about it. ", 100)
	k.say("<think>\n" + long + "\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>")
	k.results("sunny")
	k.r.Messages = forgetful(k.r.Messages)
	whole, err := k.g.Count(t.Context(), &k.r)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		context, most int
		put           bool
	}{{whole + 1, 0, true}, {whole, 0, false}, {whole + 20, 20, true}, {whole + 20, 21, false}} {
		k.m.context, k.r.MaxTokens = c.context, c.most
		if got := strings.Contains(k.rendered(&k.r), long[:40]); got != c.put {
			t.Errorf("%+v: put back %t", c, got)
		}
		seq, err := k.g.Generate(t.Context(), &k.r)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		for _, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	k.m.context, k.r.MaxTokens = whole, 0
	k.say("<think>\nShort.\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>")
	k.results("sunny")
	k.r.Messages, k.m.context = forgetful(k.r.Messages), 1<<20
	if got := k.rendered(&k.r); !strings.Contains(got, "Short.") || !strings.Contains(got, long[:40]) {
		t.Errorf("with more room the prompt is %s", got)
	}
	k.m.context = 40
	if _, err := k.g.Generate(t.Context(), &k.r); err == nil {
		t.Error("what does not fit at all is let through")
	}
}

// TestReplayInEveryFamily: whatever a family makes of reasoning, text and calls, the turn that comes of it is found again without
// its reasoning where the family puts that back, and only there.
func TestReplayInEveryFamily(t *testing.T) {
	files, err := filepath.Glob("../dialect/testdata/scenes/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files of scenes, %v", len(files), err)
	}
	put, left := 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		cfg, err := Load(os.DirFS(demoFolder), "")
		if err != nil {
			t.Fatal(err)
		}
		m := &memory{script: script{finish: engine.Stop, context: 1 << 20}}
		cfg.Engine, cfg.ToolParser = m, strings.TrimSuffix(name, "_v30") // gigachat reads that too
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(ar.Files); i += 2 {
			scene, opts, _ := strings.Cut(ar.Files[i].Name, " ")
			if !strings.HasPrefix(opts, "tools=f,get_weather") || strings.Contains(opts, "reasoning") || !strings.Contains(string(ar.Files[i+1].Data), "reasoning ") {
				continue
			}
			r := chat.Request{Messages: []chat.Message{text(chat.User, scene)}, Tools: append(weather(), chat.Tool{Name: "f"})}
			m.reply = g.guard.Plain(strings.ReplaceAll(strings.ReplaceAll(string(ar.Files[i].Data), "\n", ""), "⏎", "\n"))
			seq, err := g.Generate(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			var said chat.Message
			said.Role = chat.Assistant
			thought, calls := false, []chat.Part(nil)
			for e, err := range seq {
				switch {
				case err != nil:
					t.Fatal(err)
				case e.Kind == chat.EventText:
					said.Parts = append(said.Parts, chat.Part{Text: e.Text})
				case e.Kind == chat.EventReasoning:
					said.Parts = append(said.Parts, chat.Part{Kind: chat.PartReasoning, Text: e.Text})
					thought = true
				case e.Kind == chat.EventToolEnd:
					id := fmt.Sprint("call0000", len(calls))
					said.Parts = append(said.Parts, callPart(id, e.Call.Name, string(compact(t, e.Call.Arguments))))
					calls = append(calls, resultPart(id, "r"))
				}
			}
			if len(calls) == 0 || !thought {
				continue
			}
			r.Messages = append(r.Messages, said, answers(calls...))
			kept, err := g.Render(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			r.Messages = forgetful(r.Messages)
			got, err := g.Render(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			r.Origin.Caller = [16]byte{1}
			dropped, err := g.Render(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			want := dropped
			if left++; g.family.Replay == dialect.ReplayPrinted {
				want = kept
				left--
				put++
			}
			if got != want || kept == dropped {
				t.Errorf("%s, %s: the prompt is\n%s\nwant\n%s", name, scene, got, want)
			}
		}
	}
	if put < 25 || left < 15 {
		t.Errorf("of %d turns reasoning is put back, of %d not", put, left)
	}
}

// FuzzPlainArguments: whoever decodes arguments and encodes them again comes to the same plain spelling, and so does that itself.
func FuzzPlainArguments(f *testing.F) {
	for _, s := range []string{`{"a": 1.0, "b": [1e20, -0.0, "\u00e9\ud800"], "c": {"z": null, "y": true}}`, `{"a": 123456789012345678}`, ``, `[`, `{} {}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		plain := plainArguments(json.RawMessage(s))
		if !json.Valid([]byte(s)) {
			return
		}
		if again := plainArguments(json.RawMessage(plain)); again != plain {
			t.Errorf("%q becomes %q, and then %q", s, plain, again)
		}
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Skip(err) // nested too deeply
		}
		spelled, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if again := plainArguments(spelled); again != plain {
			t.Errorf("%q becomes %q, and as %q it is %q", s, plain, spelled, again)
		}
	})
}
