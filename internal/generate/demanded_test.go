package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/transcript"
)

// TestDemanded: a call that a request demands is of the tool and has arguments that follow its schema, in every family, drawn
// from what may come and from nothing else.
func TestDemanded(t *testing.T) {
	const schema = `{"type": "object", "properties": {"city": {"enum": ["Paris", "Rome </parameter>"]}, "on": {"type": "boolean"},
		"list": {"type": "array", "items": {"enum": [1, "x"]}, "maxItems": 3}}, "required": ["city", "on"], "additionalProperties": false}`
	tools := []chat.Tool{{Name: "f", Parameters: json.RawMessage(schema)}, {Name: "g", Parameters: json.RawMessage(`{"type": "object", "additionalProperties": false}`)}}
	held := 0
	for name := range everyFamily(t) {
		if dialect.CheckNames(name, "") != nil {
			continue
		}
		g, _ := withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = name })
		if g.family.Force == nil {
			continue
		}
		newDrawer(t, g, "")
		if len(g.stopIDs) == 0 { // nothing ends a reply here
			continue
		}
		held++
		for i := range 12 {
			choice := chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "f", Single: true}
			if i%3 == 0 {
				choice = chat.ToolChoice{Kind: chat.ChoiceRequired, Single: true}
			}
			got, err := outcomeOf(t, g, &chat.Request{Tools: tools, Choice: choice, MaxTokens: 2000})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(got.calls) != 1 || strings.TrimSpace(got.texts[0]) != "" || got.form != chat.Enforced {
				t.Fatalf("%s: %+v", name, got)
			}
			tool, args := got.calls[0], got.args[0]
			var v struct {
				City *string
				On   *bool
				List []any
			}
			d := json.NewDecoder(strings.NewReader(args))
			d.DisallowUnknownFields()
			if err := d.Decode(&v); err != nil {
				t.Fatalf("%s: %q: %v", name, args, err)
			}
			fits := v.City != nil && (*v.City == "Paris" || *v.City == "Rome </parameter>") && v.On != nil &&
				!slices.ContainsFunc(v.List, func(x any) bool { return x != 1.0 && x != "x" })
			if choice.Kind == chat.ChoiceNamed && tool != "f" || tool == "f" && !fits || tool == "g" && args != "{}" {
				t.Errorf("%s: %s %q", name, tool, args)
			}
		}
	}
	if held < 33 {
		t.Errorf("%d families were held", held)
	}
}

// TestDemandedErrors: a call that cannot be written is an error of the request.
func TestDemandedErrors(t *testing.T) {
	for _, name := range []string{"qwen3_coder", "mistral", "lfm2"} {
		g, _ := withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = name })
		newDrawer(t, g, "")
		for schema, msg := range map[string]string{
			`{"type": "object", "properties": {"a": false}, "required": ["a"]}`: "none can be written",
			`{"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}`:    "/properties/a",
		} {
			_, err := outcomeOf(t, g, &chat.Request{Tools: []chat.Tool{{Name: "f", Parameters: json.RawMessage(schema)}}, Choice: chat.ToolChoice{Kind: chat.ChoiceRequired}})
			var e *chat.Error
			if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Param != "tools" || !strings.Contains(e.Msg, msg) {
				t.Errorf("%s: %s: %v", name, schema, err)
			}
		}
	}
}

// TestDemandedStrict: a keyword that calls are not held to is refused of strict tools, with its place, and told of others.
func TestDemandedStrict(t *testing.T) {
	const schema = `{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true, "maxItems": 2}}, "additionalProperties": false}`
	for _, name := range []string{"qwen3_coder", "mistral", "lfm2", "gemma4"} {
		g, _ := withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = name })
		newDrawer(t, g, "")
		tools := []chat.Tool{{Name: "g", Strict: true, Path: "tools[0].parameters"}, {Name: "f", Parameters: json.RawMessage(schema), Path: "tools[1].parameters"}}
		r := &chat.Request{Tools: tools, Choice: chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "f", Single: true}, MaxTokens: 500}
		if got, err := outcomeOf(t, g, r); err != nil || got.form != chat.Unchecked {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		tools[1].Strict = true
		_, err := outcomeOf(t, g, r)
		var e *chat.Error
		if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Param != "tools[1].parameters" || !strings.Contains(e.Msg, `"f"`) || !strings.Contains(e.Msg, `uniqueItems at "/properties/a"`) {
			t.Errorf("%s: %v", name, err)
		}
		r.Choice.Name = "g" // the other is not asked for
		if got, err := outcomeOf(t, g, r); err != nil || got.form != chat.Enforced {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// customParameters is the schema of tools whose input is a text.
const customParameters = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`

// patches is a grammar of lines that begin as those of a patch do.
const patches = `start: "*** Begin\n" hunk+ "*** End"
	hunk: "*** File: " /[a-z]+/ "\n" line*
	line: ("+" | "-" | " ") /["\\<\/a-c>\t é]{0,9}/ "\n"`

// TestInputs: the input of a call that a request demands, or that the model begins, is of the tool's grammar, in every family.
func TestInputs(t *testing.T) {
	whole := regexp.MustCompile(`^\*\*\* Begin\n(\*\*\* File: [a-z]+\n([-+ ]["\\</a-c>\t é]{0,9}\n)*)+\*\*\* End$`)
	held := 0
	for name := range everyFamily(t) {
		if dialect.CheckNames(name, "") != nil {
			continue
		}
		g, _ := withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = name })
		if g.family.Force == nil {
			continue
		}
		d := newDrawer(t, g, "")
		if len(g.stopIDs) == 0 {
			continue
		}
		tools := []chat.Tool{{Name: "f", Strict: true, Parameters: json.RawMessage(customParameters), Input: &chat.Form{Kind: chat.FormLark, Source: patches}},
			{Name: "g", Strict: true, Parameters: json.RawMessage(customParameters), Input: &chat.Form{Kind: chat.FormRegex, Source: `"\w{2}\n"`}}}
		for i := range 6 {
			choice := chat.ToolChoice{Kind: chat.ChoiceNamed, Name: []string{"f", "g"}[i%2], Single: true}
			r := &chat.Request{Tools: tools, Choice: choice, MaxTokens: 3000}
			if d.says = nil; i < 2 {
				d.says, r.Choice = transcript.NewGuard(g.cfg.Tokenizer, nil, "").Plain(g.family.Force(choice.Name)), chat.ToolChoice{Single: true}
			}
			got, err := outcomeOf(t, g, r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got.finish == chat.FinishLength {
				continue
			}
			var v struct{ Input string }
			if len(got.calls) != 1 || got.calls[0] != choice.Name || json.Unmarshal([]byte(got.args[0]), &v) != nil {
				t.Fatalf("%s: %+v", name, got)
			}
			if held++; choice.Name == "f" && !whole.MatchString(v.Input) || choice.Name == "g" && utf8.RuneCountInString(v.Input) != 5 {
				t.Errorf("%s: %s %q", name, choice.Name, v.Input)
			}
		}
	}
	if held < 33*4 {
		t.Errorf("%d calls were held", held)
	}
}

// TestInputErrors: a grammar that is none is an error at its path, whether or not a call is demanded.
func TestInputErrors(t *testing.T) {
	for _, choice := range []chat.ChoiceKind{chat.ChoiceAuto, chat.ChoiceNone, chat.ChoiceRequired} {
		for source, msg := range map[string]string{"start: x": "line 1, column 8: the rule x is not defined", "start: start": "no text of finite length"} {
			g, _ := newTest(t, "")
			_, err := outcomeOf(t, g, &chat.Request{Choice: chat.ToolChoice{Kind: choice}, Tools: []chat.Tool{{Name: "g", Parameters: json.RawMessage(customParameters), Input: &chat.Form{Kind: chat.FormRegex, Source: "a"}}, {Name: "f", Parameters: json.RawMessage(customParameters),
				Input: &chat.Form{Kind: chat.FormLark, Source: source, Path: "tools[0].format.definition"}}}})
			var e *chat.Error
			if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Param != "tools[0].format.definition" || !strings.Contains(e.Msg, msg) {
				t.Errorf("%s: %v", source, err)
			}
		}
	}
}

// TestInputsBound: what the grammars of many inputs cost has one bound together.
func TestInputsBound(t *testing.T) {
	g, _ := newTest(t, "")
	var tools []chat.Tool
	for i := range 12 {
		var pattern strings.Builder
		for j := range 300 {
			fmt.Fprintf(&pattern, `[\p{L}%c]`, 0x2500+300*i+j)
		}
		tools = append(tools, chat.Tool{Name: fmt.Sprint("t", i), Parameters: json.RawMessage(customParameters),
			Input: &chat.Form{Kind: chat.FormRegex, Source: pattern.String(), Path: fmt.Sprintf("tools[%d].format.definition", i)}})
	}
	if _, err := outcomeOf(t, g, &chat.Request{Tools: tools[11:]}); err != nil {
		t.Error(err)
	}
	_, err := outcomeOf(t, g, &chat.Request{Tools: tools})
	var e *chat.Error
	if !errors.As(err, &e) || e.Bound != chat.BoundForm || !strings.HasPrefix(e.Param, "tools[") || !strings.Contains(e.Msg, "steps of work") {
		t.Error(err)
	}
}
