package generate

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/jinja"
	"hearth/internal/transcript"
)

// everyFamily gives the families with calls by the first name of each.
func everyFamily(t testing.TB) map[string]*dialect.Family {
	t.Helper()
	all := map[string]*dialect.Family{}
	for _, name := range dialect.ToolParsers() {
		f, _, err := dialect.Override(dialect.Choose(dialect.Evidence{}), name, "")
		if err != nil {
			t.Fatal(err)
		}
		if f.Force != nil {
			all[f.Name] = f
		}
	}
	for _, src := range []string{"[TOOL_CALLS]", "<|role_sep|>function call", "]<]minimax[>[", "<|open|><|close|><|sep|>", "<|tool_call>", "tool_code", "<function=",
		"<｜tool▁sep｜>", "<｜DSML｜", "<|python_start|>"} {
		if f := dialect.Choose(dialect.Evidence{Template: src}); f.Force != nil {
			all[f.Name] = f
		}
	}
	return all
}

// TestToldWriters: what a family's calls are written like in words is what its parser reads, several at once and one behind
// the other.
func TestToldWriters(t *testing.T) {
	families := everyFamily(t)
	if len(families) < 34 {
		t.Errorf("%d families: %v", len(families), slices.Sorted(maps.Keys(families)))
	}
	for name, f := range families {
		write := writer(f.Written)
		for _, c := range called {
			var calls []*call
			var want, apart []string
			for i, k := range c.calls {
				one := &call{name: k[0], args: []byte(k[1]), number: i}
				calls = append(calls, one)
				want = append(want, k[0]+canonicalJSON(k[1]))
				apart = append(apart, write([]*call{one}))
			}
			for _, said := range []string{write(calls), strings.Join(apart, "\n")} {
				if got := readBack(f, said, false); !slices.Equal(got, want) {
					t.Errorf("%s, %s: got %q, want %q from %q", name, c.name, got, want, said)
				}
			}
		}
	}
}

// toolless are templates that know no tools, in the manner of published ones.
var toolless = map[string]string{
	"bare": `{% for m in messages %}{{ m.content }}{% endfor %}`,
	"chatml": `{% for m in messages %}<|im_start|>{{ m.role }}{{ "\n" }}{{ m.content }}<|im_end|>{{ "\n" }}{% endfor %}` +
		`{% if add_generation_prompt %}<|im_start|>assistant{{ "\n" }}{% endif %}`,
	"chatml with a system message of its own": `{% if messages[0].role != "system" %}<|im_start|>system{{ "\n" }}You are helpful.<|im_end|>{{ "\n" }}{% endif %}` +
		`{% for m in messages %}<|im_start|>{{ m.role }}{{ "\n" }}{{ m.content }}<|im_end|>{{ "\n" }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant{{ "\n" }}{% endif %}`,
	"chatml that thinks": `{% for m in messages %}<|im_start|>{{ m.role }}{{ "\n" }}{{ m.content.split("</think>")[-1] if m.role == "assistant" else m.content }}<|im_end|>{{ "\n" }}{% endfor %}` +
		`{% if add_generation_prompt %}<|im_start|>assistant{{ "\n" }}<think>{{ "\n" }}{% endif %}`,
	"bracketed turns": `{% if messages[0].role == "system" %}{% set lead = "<<SYS>>\n" ~ messages[0].content ~ "\n<</SYS>>\n\n" %}{% set messages = messages[1:] %}{% else %}{% set lead = "" %}{% endif %}` +
		`{% for m in messages %}{% if (m.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("roles must alternate") }}{% endif %}` +
		`{% if m.role == "user" %}[INST] {{ (lead if loop.first else "") ~ m.content }} [/INST]{% else %} {{ m.content ~ eos_token }}{% endif %}{% endfor %}`,
	"no system role": `{% if messages[0].role == "system" %}{{ raise_exception("System role not supported") }}{% endif %}` +
		`{% for m in messages %}{% if (m.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("roles must alternate") }}{% endif %}` +
		`<start_of_turn>{{ "model" if m.role == "assistant" else m.role }}{{ "\n" ~ m.content | trim }}<end_of_turn>{{ "\n" }}{% endfor %}{% if add_generation_prompt %}<start_of_turn>model{{ "\n" }}{% endif %}`,
	"instructions": `{% for m in messages %}{% if m.role == "user" %}### Instruction:{{ "\n" ~ m.content ~ "\n\n" }}{% elif m.role == "assistant" %}### Response:{{ "\n" ~ m.content ~ "\n\n" }}` +
		`{% else %}{{ m.content ~ "\n\n" }}{% endif %}{% endfor %}{% if add_generation_prompt %}### Response:{{ "\n" }}{% endif %}`,
	"names and colons": `{% for m in messages %}{% if m.role == "system" %}{{ m.content ~ " " }}{% elif m.role == "user" %}USER: {{ m.content ~ " " }}{% elif m.role == "assistant" %}ASSISTANT: {{ m.content ~ eos_token }}{% endif %}{% endfor %}` +
		`{% if add_generation_prompt %}ASSISTANT:{% endif %}`,
	"lists as content": `{% for m in messages %}<|{{ m.role }}|>{% for p in m.content %}{{ p.text }}{% endfor %}<|end|>{% endfor %}<|assistant|>`,
	"refuses tools":    `{% if tools %}{{ raise_exception("no tools here") }}{% endif %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>`,
	"plain":            printPlain,
	"system text at the end": `{% for m in messages %}{% if m.role == "user" %}[INST]{% if loop.last and messages[0].role == "system" %}{{ messages[0].content ~ "\n\n" }}{% endif %}{{ m.content }}[/INST]` +
		`{% elif m.role == "assistant" %}{{ m.content ~ eos_token }}{% endif %}{% endfor %}`,
	"calls but no tools": `{% for m in messages %}{% if m.tool_calls %}<｜Assistant｜>{{ m.content or "" }}<｜tool▁calls▁begin｜>{% for c in m.tool_calls %}<｜tool▁call▁begin｜>{{ c.function.name }}<｜tool▁sep｜>{{ c.function.arguments | tojson }}<｜tool▁call▁end｜>{% endfor %}` +
		`<｜tool▁calls▁end｜><｜end▁of▁sentence｜>{% elif m.role == "tool" %}<｜tool▁output▁begin｜>{{ m.content }}<｜tool▁output▁end｜>{% else %}{{ {"user": "<｜User｜>", "assistant": "<｜Assistant｜>"}.get(m.role, "") ~ m.content }}{% endif %}{% endfor %}<｜Assistant｜>`,
}

// builtIn gives the templates that come with the program by their files.
func builtIn(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range dialect.BuiltinNames() {
		all["builtin/"+name+".jinja"] = dialect.BuiltinText(name)
	}
	if len(all) == 0 {
		t.Fatal("no built-in templates")
	}
	return all
}

// everyToolless is toolless, and what is built in and published without knowing tools.
func everyToolless(t *testing.T) map[string]*Generator {
	t.Helper()
	sources := maps.Clone(toolless)
	maps.Copy(sources, builtIn(t))
	if *templatesDir != "" {
		maps.Copy(sources, published(t))
	}
	all := map[string]*Generator{}
	for name, src := range sources {
		g, err := withTemplate(t, src)
		if err != nil {
			t.Fatal(err)
		}
		if !g.forms[0].has(toolsDeclared) {
			all[name] = g
		} else if toolless[name] != "" {
			t.Errorf("%s is taken for a template that knows tools", name)
		}
	}
	return all
}

// TestToldEveryTemplate: under a template that knows no tools they stand in front of what the user says, once, with the form of
// a call; nothing else is lost, and calls of earlier turns are in that form.
func TestToldEveryTemplate(t *testing.T) {
	const schema = `{"name": "f", "description": "Does f.", "parameters": {"type": "object", "properties": {"k": {"type": "string", "description": "A key"}}, "required": ["k"]}}` + "\n" +
		`{"name": "g", "description": "", "parameters": {"type": "object", "properties": {}}}` + "\n"
	templates := everyToolless(t)
	t.Logf("%d templates", len(templates))
	for name, g := range templates {
		t.Run(name, func(t *testing.T) {
			if m := g.Model(); !m.Tools {
				t.Error("the model is said to know no tools")
			}
			example := g.forms[0].write([]*call{{name: "TOOL", args: []byte(`{"ARGUMENT": "VALUE"}`)}})
			for shape, messages := range shapes {
				out, err := g.Render(t.Context(), &chat.Request{Messages: messages, Tools: shapeTools})
				if err != nil {
					t.Errorf("%s: %v", shape, err)
					continue
				}
				at := strings.Index(out, schema)
				if at < 0 || strings.Count(out, "# Tools") != 1 || !strings.Contains(out[at:], "\n\n"+example+"\n\n") {
					t.Fatalf("%s: %q", shape, out)
				}
				if user := strings.Index(out, "UA"); user >= 0 && user < at {
					t.Errorf("%s: behind what the user says: %q", shape, out)
				}
				for _, word := range words(messages) {
					if !strings.Contains(out, word) && (word != "AA" || g.forms[0].has(callsWithText)) {
						t.Errorf("%s: %s is lost in %q", shape, word, out)
					}
				}
				silent, err := g.Render(t.Context(), &chat.Request{Messages: messages, Tools: shapeTools, Choice: chat.ToolChoice{Kind: chat.ChoiceNone}})
				if err != nil || strings.Contains(silent, "# Tools") {
					t.Errorf("%s: with tool_choice none: %q, %v", shape, silent, err)
				}
			}
			for _, c := range called {
				for _, around := range []string{"", "text"} {
					if around == "text" && !g.forms[0].has(callsWithText) || lossy[name] != "" {
						continue // which the template's own calls do to it
					}
					if problem := survives(t, g, c.calls, around); problem != "" {
						t.Errorf("%s %s: %s", c.name, around, problem)
					}
				}
			}
		})
	}
}

// withConfig is a generator over bytes, with a script for an engine.
func withConfig(t testing.TB, src string, change func(*Config)) (*Generator, *script) {
	t.Helper()
	tmpl, err := NewTemplate("test", src)
	if err != nil {
		t.Fatal(err)
	}
	tmpl.tokens.Set("eos_token", "<EOS>")
	s := &script{context: 1 << 16, finish: engine.Stop}
	cfg := Config{Engine: s, Tokenizer: byteTokenizer(t, "<EOS>", "<|im_start|>", "<|im_end|>"), Template: tmpl, Info: chat.Model{ID: "m"}}
	change(&cfg)
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g, s
}

func (s *script) says(g *Generator, reply string) {
	s.reply = transcript.NewGuard(g.cfg.Tokenizer, nil, "").Plain(reply)
}

// TestToldReply: what a model writes in the form that it was told is a call, in every family that --tool-call-parser can name and
// byte by byte.
func TestToldReply(t *testing.T) {
	for name, f := range everyFamily(t) {
		if dialect.CheckNames(name, "") != nil {
			continue // a variant that only a template can ask for
		}
		g, s := withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = name })
		s.says(g, writer(f.Written)([]*call{{name: "get_weather", args: []byte(`{"city": "Oslo"}`)}}))
		out, err := g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather()})
		if err != nil || !strings.Contains(out, writer(f.Written)([]*call{{name: "TOOL", args: []byte(`{"ARGUMENT": "VALUE"}`)}})) {
			t.Errorf("%s: no form of a call in %q, %v", name, out, err)
		}
		want := "start\ncall 0: get_weather\nargs: {\"city\": \"Oslo\"}\nend 0: {\"city\": \"Oslo\"}\nfinish tool_calls"
		got := events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather()})
		if got != want && name != "gemma3" {
			t.Errorf("%s: got %s", name, got)
		}
		got = events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather(), Choice: chat.ToolChoice{Kind: chat.ChoiceNone}})
		if strings.Contains(got, "call 0") {
			t.Errorf("%s: a call that is forbidden: %s", name, got)
		}
	}
}

// TestForcedNeverText: whatever becomes of a call that was begun for the model, what it was begun with is no text of the
// reply, and no token of it has a logprob.
func TestForcedNeverText(t *testing.T) {
	replies := []string{"", " ", "\n", "x", "Let me check the weather.", " {", ` {"city": "Par`, ` {"city": "Paris"}`, " 5}", `"`, "nope", `nope", "arguments": {}}`,
		"\n\nWell, no.\n", "get_weather", "</think>x", strings.Repeat("y", 300), `{"name": "nope", "arguments": {}}`, "<tool_call>"}
	for name := range everyFamily(t) {
		if dialect.CheckNames(name, "") != nil {
			continue
		}
		for _, src := range []string{toolless["chatml that thinks"], printAll} {
			for _, several := range []bool{false, true} {
				for _, choice := range []chat.ToolChoice{{Kind: chat.ChoiceNamed, Name: "get_weather"}, {Kind: chat.ChoiceRequired}} {
					g, s := withConfig(t, src, func(c *Config) { c.ToolParser = name })
					r := &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather(), Choice: choice, N: 2, Logprobs: true}
					if several {
						r.Tools = append(r.Tools, chat.Tool{Name: "now"})
					}
					p, err := g.prompt(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					if p.forced == "" && name != "functionary" {
						t.Errorf("%s: nothing is begun", name)
					}
					for _, reply := range replies {
						for _, finish := range []engine.Reason{engine.Stop, engine.Length} {
							for _, stop := range []string{"", "<"} {
								s.says(g, reply)
								s.finish = finish
								r.Stop = nil
								if stop != "" && !strings.Contains(reply, stop) {
									r.Stop = []string{stop}
								}
								checkSaid(t, g, r, name, reply)
							}
						}
					}
				}
			}
		}
	}
}

// checkSaid holds what a reply has of text and logprobs against what the model wrote.
func checkSaid(t *testing.T, g *Generator, r *chat.Request, name, reply string) {
	t.Helper()
	seq, err := g.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	said, answered, spoken := map[int]string{}, map[int]string{}, map[int]string{}
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == chat.EventText || e.Kind == chat.EventReasoning {
			said[e.Choice] += e.Text
		}
		if e.Kind == chat.EventText {
			answered[e.Choice] += e.Text
		}
		for _, lp := range e.Logprobs {
			spoken[e.Choice] += lp.Token
		}
		if e.Kind == chat.EventFinish && e.Finish == chat.FinishStopText {
			t.Errorf("%s, %q: the opening has the stop string %q", name, reply, r.Stop)
		}
	}
	for c, text := range said {
		if !strings.Contains(reply, strings.TrimSpace(text)) {
			t.Errorf("%s, %+v, %q, stop %q: text %q", name, r.Choice, reply, r.Stop, text)
		}
		if spoken[c] != answered[c] {
			t.Errorf("%s, %+v, %q: logprobs of %q, the text is %q", name, r.Choice, reply, spoken[c], answered[c])
		}
	}
}

// TestUntold: where tools are left out of the prompt, a demand for a call is refused and other requests go on without them, with
// one warning.
func TestUntold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		why    string
	}{
		"never":    {func(c *Config) { c.NoToolsInPrompt = true }, "--tools-in-prompt never leaves them out of the prompt"},
		"as text":  {func(c *Config) { c.ToolParser = "none" }, "--tool-call-parser none leaves calls as text"},
		"as text,": {func(c *Config) { c.ToolParser, c.NoToolsInPrompt = "None", true }, "--tools-in-prompt never leaves them out of the prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, template := range []string{"chatml", "calls but no tools"} {
				var warned []string
				g, s := withConfig(t, toolless[template], func(cfg *Config) {
					c.change(cfg)
					cfg.Warn = func(line string) { warned = append(warned, line) }
				})
				s.says(g, "Hello.")
				if g.Model().Tools {
					t.Error("the model is said to know tools")
				}
				ask := func(k chat.ChoiceKind) *chat.Request {
					return &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather(), Choice: chat.ToolChoice{Kind: k, Name: "get_weather"}}
				}
				for _, k := range []chat.ChoiceKind{chat.ChoiceRequired, chat.ChoiceNamed} {
					_, err := g.Generate(t.Context(), ask(k))
					_, err2 := g.Count(t.Context(), ask(k))
					if e := chat.AsError(err); e.Kind != chat.Invalid || e.Param != "tool_choice" || !strings.Contains(e.Msg, c.why) || err2 == nil {
						t.Errorf("%v, %v", err, err2)
					}
				}
				for range 2 {
					if got := events(t, g, ask(chat.ChoiceNone)); got != "start\ntext: Hello.\nfinish stop" || len(warned) != 0 {
						t.Errorf("got %s, warned %q", got, warned)
					}
				}
				for range 2 {
					if got := events(t, g, ask(chat.ChoiceAuto)); got != "start\ntext: Hello.\nfinish stop" {
						t.Errorf("got %s", got)
					}
				}
				if len(warned) != 1 || !strings.HasPrefix(warned[0], "the chat template of m has no place for tools, and "+c.why) {
					t.Errorf("warned %q", warned)
				}
				out, err := g.Render(t.Context(), ask(chat.ChoiceAuto))
				if err != nil || strings.Contains(out, "get_weather") {
					t.Errorf("got %q, %v", out, err)
				}
			}
		})
	}
}

// TestToldOrNot: where the template knows tools the setting changes no byte of any prompt.
func TestToldOrNot(t *testing.T) {
	sources := builtIn(t)
	for name, src := range map[string]string{"all": printAll, "mistral": printMistral, "odd": printOdd,
		"with a system message only": `{% for m in messages %}{% if m.role == "system" %}({{ m.content }}{% for t in tools or [] %}{{ t.function.name }}{% endfor %}){% else %}[{{ m.content }}]{% endif %}{% endfor %}`,
		"that needs a variable":      `{{ who.name }}{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}`} {
		sources[name] = src
	}
	demo, err := os.ReadFile(demoFolder + "/chat_template.jinja")
	if err != nil {
		t.Fatal(err)
	}
	sources["demo"] = string(demo)
	if *templatesDir != "" {
		maps.Copy(sources, published(t))
	}
	for name, src := range sources {
		told, _ := withConfig(t, src, func(c *Config) { c.Now = noon })
		untold, _ := withConfig(t, src, func(c *Config) { c.Now, c.NoToolsInPrompt = noon, true })
		if told.forms[0].has(toolsInSystem) {
			if strings.Contains(src, "function") && *templatesDir == "" {
				t.Errorf("%s: tools are told of", name)
			}
			continue
		}
		for shape, messages := range shapes {
			for _, r := range requests(messages) {
				a, errA := told.Render(t.Context(), r)
				b, errB := untold.Render(t.Context(), r)
				if a != b || (errA == nil) != (errB == nil) {
					t.Errorf("%s, %s: %q, %v\n%q, %v", name, shape, a, errA, b, errB)
				}
			}
		}
	}
}

func noon() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }

// TestToldStays: a turn with calls that goes on begins with the prompt that there was, and what was not shown once stays away.
func TestToldStays(t *testing.T) {
	for name, g := range everyToolless(t) {
		hidden := append(weather(), chat.Tool{Name: "later", Deferred: true})
		first := &chat.Request{Messages: []chat.Message{text(chat.System, "S"), text(chat.User, "q")}, Tools: hidden}
		next := &chat.Request{Tools: hidden, Messages: append(slices.Clip(first.Messages), says(callPart("call_1", "get_weather", `{"city": "Oslo"}`)), answers(resultPart("call_1", "sunny")))}
		a, errA := g.Render(t.Context(), first)
		b, errB := g.Render(t.Context(), next)
		if errA != nil || errB != nil {
			t.Fatalf("%s: %v, %v", name, errA, errB)
		}
		n := commonBytes(a, b)
		if !g.forms[0].has(systemStays) && g.forms[0].has(systemFirst) { // the system message itself moves, the tools must not
			a, b = strings.Replace(a, "S\n\n", "", 1), strings.Replace(b, "S\n\n", "", 1)
			if c := commonBytes(a, b); !strings.Contains(a[:c], "# Tools") || !strings.Contains(a[:c], "answer in words") {
				t.Errorf("%s: %q\nbecomes %q", name, a, b)
			}
			continue
		}
		if !strings.Contains(a[:n], `"get_weather"`) || !strings.Contains(a[:n], "S") || name == "chatml" && n != len(a) {
			t.Errorf("%s: %q\nbecomes %q", name, a, b)
		}
		if strings.Contains(a, "later") {
			t.Errorf("%s: a deferred tool is shown: %q", name, a)
		}
	}
}

var update = flag.Bool("update", false, "write the text about tools into docs/templates.md")

// TestToldDocs: docs/templates.md shows what a model is told.
func TestToldDocs(t *testing.T) {
	const file, open, end = "../../docs/templates.md", "<!-- told: go test ./internal/generate -run TestToldDocs -update -->\n", "<!-- /told -->"
	g, _ := withConfig(t, toolless["bare"], func(*Config) {})
	tool := chat.Tool{Name: "get_weather", Description: "Get the weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}
	out, err := g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "")}, Tools: []chat.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	got, write := docPart(t, file, open, end)
	want := "```\n" + out + "\n```\n"
	if got != want && !*update {
		t.Errorf("%s is not current, run go test ./internal/generate -run TestToldDocs -update", file)
	}
	if *update {
		write(want)
	}
}

// docPart gives what stands on a page between two lines, and what writes something else there.
func docPart(t *testing.T, file, open, end string) (part string, write func(string)) {
	t.Helper()
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), open)
	part, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %s", file, open)
	}
	return part, func(text string) {
		if err := os.WriteFile(file, []byte(before+open+text+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForcedCut: a demanded call that is kept to its form and cut before anybody knows its tool is no text.
func TestForcedCut(t *testing.T) {
	const call = `{"name": "get_weather", "arguments": {"city": "Oslo"}}`
	for n := range len(call) {
		g, s := withConfig(t, toolless["chatml"], func(c *Config) { c.ConstrainTools = true })
		s.says(g, call[:n])
		s.finish = engine.Length
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: append(weather(), chat.Tool{Name: "now"}), Choice: chat.ToolChoice{Kind: chat.ChoiceRequired}}
		if got := events(t, g, r); strings.Contains(got, "text:") || !strings.HasSuffix(got, "finish length") {
			t.Errorf("%q: got %s", call[:n], got)
		}
	}
}

// TestToldEnds: a model that goes on behind its calls is stopped there.
func TestToldEnds(t *testing.T) {
	g, s := withConfig(t, toolless["chatml"], func(*Config) {})
	const one = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>"
	s.says(g, "I look.\n"+one+"\n"+one+"\n\n<tool_response>\nsunny")
	s.finish = engine.Length
	want := "start\ntext: I look.\ncall 0: get_weather\nargs: {}\nend 0: {}\ncall 1: get_weather\nargs: {}\nend 1: {}\nfinish tool_calls"
	for range 2 {
		if got := events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather()}); got != want {
			t.Errorf("got %s", got)
		}
		s.says(g, "I look.\n"+one+"\n"+one+strings.Repeat("\n</tool_call>", 100))
	}
	s.says(g, one+strings.Repeat("\n", 20)+one)
	want = "start\ncall 0: get_weather\nargs: {}\nend 0: {}\ncall 1: get_weather\nargs: {}\nend 1: {}\nfinish length"
	if got := events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather()}); got != want {
		t.Errorf("got %s", got)
	}
}

// TestToldSilence: a model that writes nothing but blanks behind its calls is stopped after so many tokens.
func TestToldSilence(t *testing.T) {
	g, s := withConfig(t, toolless["chatml"], func(*Config) {})
	for n, want := range map[int]string{mostIdle: "finish length", mostIdle + 1: "finish tool_calls"} {
		s.says(g, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}")
		after := append(g.guard.Plain("\n</tool_call>"), slices.Repeat(g.guard.Plain("\n"), n)...)
		n += len(g.guard.Plain("\n<")) // show that the call has ended
		s.reply, s.finish = append(s.reply, after[:n]...), engine.Length
		if got := events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather()}); !strings.HasSuffix(got, want) {
			t.Errorf("%d tokens: %s", n, got)
		}
	}
	g, s = withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = "gemma3" })
	s.says(g, ")"+strings.Repeat("\n", mostIdle+9)+"get_weather()\n```")
	demand := &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather(), Choice: chat.ToolChoice{Kind: chat.ChoiceRequired}}
	if got := events(t, g, demand); !strings.Contains(got, "end 1: {}") {
		t.Errorf("demanded: %s", got)
	}
}

// TestToldIsLinear: the work of telling of tools grows as they do.
func TestToldIsLinear(t *testing.T) {
	g, _ := withConfig(t, toolless["chatml"], func(*Config) {})
	work := func(n int) int {
		list, err := tools(&chat.Request{Tools: slices.Repeat(weather(), n)})
		if err != nil {
			t.Fatal(err)
		}
		steps := 0
		if _, err := g.forms[0].tell(t.Context(), list, jinja.Limits{Spent: &steps}); err != nil {
			t.Fatal(err)
		}
		return steps
	}
	if few, many := work(100), work(800); few == 0 || many > 9*few {
		t.Errorf("%d steps for 100 tools, %d for 800", few, many)
	}
}

// TestForcedUnderNone: where calls are left as text none is begun, but in a format whose calls cannot be told from its channels.
func TestForcedUnderNone(t *testing.T) {
	for src, want := range map[string]bool{printAll + "{# <tool_call> #}": false, printAll + "{# <|channel|> <|message|> #}": true} {
		g, s := withConfig(t, src, func(c *Config) { c.ToolParser = "none" })
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: weather(), Choice: chat.ToolChoice{Kind: chat.ChoiceRequired}}
		p, err := g.prompt(t.Context(), r)
		if err != nil || (p.forced != "") != want {
			t.Errorf("begun with %q, %v", p.forced, err)
		}
		s.says(g, `{"city": "Oslo"}`)
		if got := events(t, g, r); strings.Contains(got, "end 0") != want || strings.Contains(got, "get_weather") && strings.Contains(got, "text:") {
			t.Errorf("got %s", got)
		}
	}
}

// FuzzForced: whatever follows the opening of a demanded call, in whatever family, no part of it that tells is text.
func FuzzForced(f *testing.F) {
	for _, reply := range []string{" {}", "Let me see.", ` {"city": 1}}</tool_call>`, "\n<|x|>", "[/TOOL_CALLS]", `get_weather(city="x")]`, "</function>", "<|message|>{}"} {
		for name := range byte(3) {
			f.Add(name, reply, name == 1, name == 2)
		}
	}
	families := everyFamily(f)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(families)), func(n string) bool { return dialect.CheckNames(n, "") != nil })
	generators := map[string]*Generator{}
	scripts := map[string]*script{}
	for _, n := range names {
		generators[n], scripts[n] = withConfig(f, toolless["chatml"], func(c *Config) { c.ToolParser = n })
	}
	f.Fuzz(func(t *testing.T, family byte, reply string, named, cut bool) {
		name := names[int(family)%len(names)]
		g, s := generators[name], scripts[name]
		s.says(g, reply)
		if s.finish = engine.Stop; cut {
			s.finish = engine.Length
		}
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: append(weather(), chat.Tool{Name: "now"}), Choice: chat.ToolChoice{Kind: chat.ChoiceRequired}}
		if named {
			r.Choice = chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "get_weather"}
		}
		p, err := g.prompt(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		seq, err := g.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for e, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == chat.EventText || e.Kind == chat.EventReasoning {
				said += e.Text
			}
		}
		for i := 0; i+4 <= len(p.forced); i++ {
			if part := p.forced[i : i+4]; strings.Contains(said, part) && !strings.Contains(reply, part) {
				t.Errorf("%s, begun with %q, then %q: %q", name, p.forced, reply, said)
				break
			}
		}
	})
}

func commonBytes(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// TestToldCut: a reply that is cut where another call begins was cut, and what there is of that call is nothing.
func TestToldCut(t *testing.T) {
	g, s := withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = "gemma3" })
	s.says(g, "```tool_code\nget_weather(city=\"Oslo\")\nget_wea")
	s.finish = engine.Length
	got := events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: weather()})
	if want := "start\ncall 0: get_weather\nargs: {\"city\": \"Oslo\"}\nend 0: {\"city\": \"Oslo\"}\nfinish length"; got != want {
		t.Errorf("%s", got)
	}
}
