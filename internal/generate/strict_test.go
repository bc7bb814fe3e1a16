package generate

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/dialect"
)

// heldTools are tools whose calls end soon, whatever is drawn.
func heldTools() []chat.Tool {
	return []chat.Tool{
		{Name: "f", Strict: true, Parameters: json.RawMessage(`{"type": "object", "properties": {"city": {"enum": ["Paris", "Rome </parameter>"]}, "on": {"type": "boolean"},
			"list": {"type": "array", "items": {"enum": [1, "x"]}, "maxItems": 3}}, "required": ["city", "on"], "additionalProperties": false}`)},
		{Name: "g", Strict: true, Parameters: json.RawMessage(`{"type": "object", "additionalProperties": false}`)},
	}
}

// checkStrict looks at the calls of a reply.
func checkStrict(t *testing.T, got outcome) {
	t.Helper()
	for i, args := range got.args {
		var v struct {
			City *string
			On   *bool
			List []any
		}
		d := json.NewDecoder(strings.NewReader(args))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		fits := v.City != nil && (*v.City == "Paris" || *v.City == "Rome </parameter>") && v.On != nil &&
			!slices.ContainsFunc(v.List, func(x any) bool { return x != 1.0 && x != "x" })
		if got.calls[i] == "f" && !fits || got.calls[i] == "g" && args != "{}" || got.calls[i] != "f" && got.calls[i] != "g" {
			t.Errorf("%s %q", got.calls[i], args)
		}
	}
}

// TestStrict: a model that opens a call of its own is held to the tools from there on, in every family; what is before and
// behind is its own.
func TestStrict(t *testing.T) {
	held := 0
	for name := range everyFamily(t) {
		if dialect.CheckNames(name, "") != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			g, _ := withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = name })
			if g.family.Force == nil {
				return
			}
			_, told := g.family.CallOpeners()
			begin := g.family.Force("")
			words := "Let me see: "
			if !told { // only where the answer begins
				words, begin = "", g.family.Force("f")
			}
			newDrawer(t, g, words+begin)
			if len(g.stopIDs) == 0 { // nothing ends a reply here
				return
			}
			held++
			for i := range 20 {
				r := &chat.Request{Tools: heldTools(), Choice: chat.ToolChoice{Single: i%2 == 0}, MaxTokens: 2000}
				got, err := outcomeOf(t, g, r)
				if err != nil {
					t.Fatal(err)
				}
				if len(got.calls) == 0 || r.Choice.Single && len(got.calls) > 1 || strings.TrimSpace(got.texts[0]) != strings.TrimSpace(words) {
					t.Fatalf("%+v", got)
				}
				checkStrict(t, got)
			}
		})
	}
	if held < 33 {
		t.Errorf("%d families were held", held)
	}
}

// TestStrictBeside: what is written before a call is free and as it was, in reasoning and behind it, and so is what follows.
func TestStrictBeside(t *testing.T) {
	call := "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"
	form := &chat.Form{Kind: chat.FormRegex, Source: `<?[a-c]{3}`}
	on := chat.Thinking{Mode: chat.On}
	for name, c := range map[string]struct {
		says      string
		r         chat.Request
		reasoning string
		text      string
		calls     int
	}{
		"text":                          {"Hi <b>", chat.Request{}, "", "Hi <b>", 0},
		"a call and text":               {call + " so", chat.Request{}, "", "so", 1},
		"two calls":                     {call + "\n" + call, chat.Request{}, "", "", 2},
		"one call":                      {call, chat.Request{Choice: chat.ToolChoice{Single: true}}, "", "", 1},
		"reasoning and a call":          {"<think>\nA { or <</think>\n\n" + call, chat.Request{Thinking: on}, "A { or <", "", 1},
		"a call within reasoning":       {"<think>\nHm\n" + call, chat.Request{Thinking: on}, "Hm", "", 1},
		"a budget":                      {"<think>\nHm and so on and on", chat.Request{Thinking: chat.Thinking{Mode: chat.On, Budget: 5}}, "Hm and", "", 0},
		"a budget that a call uses up":  {"<think>\nHm\n" + call, chat.Request{Thinking: chat.Thinking{Mode: chat.On, Budget: 8}}, "Hm", "", 1},
		"a form":                        {"ab", chat.Request{Form: form}, "", "abX", 0},
		"a form and a call":             {call, chat.Request{Form: form}, "", "", 1},
		"a form, reasoning and a call":  {"<think>\nHm\n</think>\n\n" + call, chat.Request{Form: form, Thinking: on}, "Hm", "", 1},
		"a form and a call in thoughts": {"<think>\nHm\n" + call, chat.Request{Form: form, Thinking: on}, "Hm", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := newTest(t, "")
			d := newDrawer(t, g, c.says)
			if c.r.Choice.Single || c.calls == 2 {
				d.says = append(d.says, g.stopIDs[0])
			}
			r := c.r
			r.Tools, r.MaxTokens, r.N = heldTools(), 400, 2
			if c.reasoning == "" {
				r.Thinking.Mode = chat.Off
			}
			got, err := outcomeOf(t, g, &r)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.TrimSpace(got.texts[0])
			if strings.HasSuffix(c.text, "X") && len(text) == len(c.text) {
				text = text[:len(text)-1] + "X"
			}
			if text != c.text || got.reasoning != strings.Repeat(c.reasoning, 2) || len(got.calls) != 2*c.calls {
				t.Errorf("%+v", got)
			}
			checkStrict(t, got)
		})
	}
}

// TestStrictHolds: within a call, and where one would begin otherwise than it is held to, there is no way on.
func TestStrictHolds(t *testing.T) {
	for _, bad := range []string{"<tool_call>{", "<tool_call>\n{\"name\": \"h", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": \"O", "<function=", "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}<"} {
		g, _ := newTest(t, "")
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: heldTools()}
		p, err := g.prompt(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		k, err := g.answers.newCalls(t.Context(), g.prompter, r, p)
		if err != nil || !p.options.NoRepair {
			t.Fatal(err)
		}
		x := k.guide(1)
		only, err := x.only()
		ids := newDrawer(t, g, bad).says
		for i, id := range ids {
			if may := only == nil || only.Has(id); may == (i == len(ids)-1) {
				t.Errorf("%q: token %d of %d may come: %v", bad, i, len(ids), may)
			} else if may {
				err = x.accept(id)
			}
			if err != nil {
				t.Fatal(err)
			}
			if only, err = x.only(); err != nil {
				t.Fatal(err)
			}
		}
		if within := strings.Contains(bad, "<tool_call>"); x.within() != within {
			t.Errorf("%q is within a call: %v", bad, x.within())
		}
	}
}

// TestStrictBesideOthers: names are those of tools for all; the arguments of tools that are not strict come in any order, and
// are any object where their schema says nothing that can be held, which is told.
func TestStrictBesideOthers(t *testing.T) {
	tools := append(heldTools(),
		chat.Tool{Name: "loose", Parameters: json.RawMessage(`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "null"}, "uniqueItems": true}}, "required": ["a"]}`)},
		chat.Tool{Name: "wrong", Parameters: json.RawMessage(`{"type": "object", "properties": {"a": {"type": "intger"}}}`)}, endlessTool)
	for says, want := range map[string]struct {
		bounds []chat.Bound
		loose  []string
	}{
		`{"name": "loose", "arguments": {"b": [null], "a": 1}}`: {nil, nil},
		`{"name": "wrong", "arguments": {"a": [{}]}}`:           {nil, []string{"wrong"}},
		`{"name": "dig", "arguments": {"b": 1, "a": "x"}}`:      {[]chat.Bound{chat.BoundEndless}, []string{"dig"}},
	} {
		g, _ := newTest(t, "")
		newDrawer(t, g, "<tool_call>\n"+says+"\n</tool_call>")
		seq, err := g.Generate(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: tools, MaxTokens: 100})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		for e, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			switch e.Kind {
			case chat.EventToolEnd:
				calls++
			case chat.EventFinish:
				if !slices.Equal(e.Usage.Loose, want.loose) || !slices.Equal(e.Usage.Bounds, want.bounds) || calls != 1 {
					t.Errorf("%s: %d calls, %+v", says, calls, e.Usage)
				}
			}
		}
	}
}

// TestStrictErrors: a strict tool whose schema is wrong, not held in all it says, or followed by nothing is an error.
func TestStrictErrors(t *testing.T) {
	for _, name := range []string{"hermes", "qwen3_coder", "llama3"} {
		g, _ := withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = name })
		newDrawer(t, g, "")
		for schema, msg := range map[string]string{
			`{"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}}`: `uniqueItems at "/properties/a"`,
			`{"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}`:                  "/properties/a",
			`{"type": "object", "properties": {"a": false}, "required": ["a"]}`:               "none of its calls can be written",
		} {
			tools := []chat.Tool{{Name: "f", Strict: true, Parameters: json.RawMessage(schema)}, weather()[0]}
			_, err := outcomeOf(t, g, &chat.Request{Tools: tools})
			var e *chat.Error
			if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Param != "tools" || !strings.Contains(e.Msg, msg) || !strings.Contains(e.Msg, `"f"`) {
				t.Errorf("%s: %s: %v", name, schema, err)
			}
			tools[0].Strict = false
			if _, err := outcomeOf(t, g, &chat.Request{Tools: tools}); err != nil {
				t.Errorf("%s: %s, not strict: %v", name, schema, err)
			}
		}
	}
}
