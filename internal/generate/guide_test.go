package generate

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/sample"
	"hearth/internal/transcript"
)

// monkey is an engine that opens a call, then types whatever it is allowed to, and stops where everything is.
type monkey struct {
	*script
	r    *rand.Rand
	open []int32
	size int
	ends []int32 // that it types nine times of ten where it may
	most int     // tokens it types
}

// hasten has it come to an end with what it types.
func (m *monkey) hasten(t *testing.T) {
	t.Helper()
	cfg, err := Load(os.DirFS(demoFolder), "")
	if err != nil {
		t.Fatal(err)
	}
	for id := range int32(m.size) {
		if slices.Contains([]string{`"`, `}`, `]`, `:`}, string(cfg.Tokenizer.Bytes(id))) {
			m.ends = append(m.ends, id)
		}
	}
	m.most = 20_000
}

func (m *monkey) Submit(_ context.Context, p engine.Prompt) (Stream, error) {
	m.prompts = append(m.prompts, p)
	return &typing{scriptStream: scriptStream{script: m.script, constrain: p.Constrain}, monkey: m, stops: p.StopIDs, only: p.Mask, open: m.open}, nil
}

type typing struct {
	scriptStream
	monkey *monkey
	stops  []int32
	only   sample.Set
	open   []int32
	forced []int32
	typed  int
}

func (s *typing) Next() (engine.Token, error) {
	var id int32
	switch {
	case len(s.forced) > 0:
		id, s.forced = s.forced[0], s.forced[1:]
		if len(s.open) > 0 && s.open[0] == id {
			s.open = s.open[1:]
		}
	case len(s.open) > 0:
		id, s.open = s.open[0], s.open[1:]
	case s.only == nil || s.typed > s.monkey.most:
		return engine.Token{}, io.EOF
	default:
		s.typed++
		var may []int32
		for i := range int32(s.monkey.size) {
			if s.only.Has(i) {
				may = append(may, i)
			}
		}
		ends := slices.DeleteFunc(slices.Clone(s.monkey.ends), func(id int32) bool { return !s.only.Has(id) })
		if len(ends) > 0 && s.monkey.r.IntN(10) > 0 {
			may = ends
		}
		id = may[s.monkey.r.IntN(len(may))]
	}
	if slices.Contains(s.stops, id) {
		return engine.Token{}, io.EOF
	}
	c := s.constrain(id)
	if c.Err != nil {
		return engine.Token{}, &engine.ConstraintError{Err: c.Err}
	}
	s.only, s.forced = c.Mask, append(s.forced, c.Forced...)
	return engine.Token{ID: id}, nil
}

func (s *typing) Finish() engine.Reason { return engine.Stop }

func newMonkey(t *testing.T, open string) (*Generator, *monkey) {
	t.Helper()
	g, s := newTest(t, open)
	cfg := g.cfg
	m := &monkey{script: s, r: rand.New(rand.NewPCG(7, 8)), open: s.reply, size: cfg.Tokenizer.Size(), most: 400}
	cfg.Engine, cfg.ConstrainTools = m, true
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g, m
}

// TestGuide: whatever is typed, what comes out is a call of a declared tool with all that its schema asks for.
func TestGuide(t *testing.T) {
	tools := []chat.Tool{
		{Name: "paint", Parameters: json.RawMessage(`{"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}, "coats": {"type": "integer"}, "matt": {"type": "boolean"}}, "required": ["colour", "coats"]}`)},
		{Name: "rest", Parameters: json.RawMessage(`{"type": "object", "properties": {}}`)},
	}
	for _, c := range []struct {
		name, open string
		choice     chat.ToolChoice
	}{
		{"opened by the model", "Let me see.\n<tool_call>", chat.ToolChoice{}},
		{"opened within reasoning", "<think>\nHm <tool_call>", chat.ToolChoice{}},
		{"demanded", "", chat.ToolChoice{Kind: chat.ChoiceRequired}},
		{"named", "", chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "paint"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := newMonkey(t, c.open)
			called := map[string]int{}
			for range 40 {
				seq, err := g.Generate(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: tools, Choice: c.choice})
				if err != nil {
					t.Fatal(err)
				}
				for e, err := range seq {
					if err != nil {
						t.Fatal(err)
					}
					if e.Kind == chat.EventText && strings.Contains(e.Text, "<tool_call>") {
						t.Errorf("markup: %q", e.Text)
					}
					if e.Kind != chat.EventToolEnd {
						continue
					}
					called[e.Call.Name]++
					var args struct {
						Colour *string
						Coats  *json.Number
						Matt   *bool
					}
					d := json.NewDecoder(strings.NewReader(string(e.Call.Arguments)))
					d.DisallowUnknownFields()
					if err := d.Decode(&args); err != nil || e.Call.Name == "paint" && (args.Colour == nil || args.Coats == nil || *args.Colour != "red" && *args.Colour != "blue") {
						t.Errorf("%s %s: %v", e.Call.Name, e.Call.Arguments, err)
					}
				}
			}
			if all := called["paint"] + called["rest"]; all < 30 || called["paint"] == 0 || called["rest"] == 0 && c.name != "named" {
				t.Errorf("of 40 replies: %v", called)
			}
		})
	}
}

// TestGuideLeavesAlone: where there is nothing to keep calls to, the engine hears of no hook, which would keep it from working
// ahead; and what a model writes besides calls is free.
func TestGuideLeavesAlone(t *testing.T) {
	request := func() *chat.Request {
		return &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: weather()}
	}
	for name, change := range map[string]func(*Config, *chat.Request){
		"not wanted":            func(c *Config, _ *chat.Request) { c.ConstrainTools = false },
		"no tools":              func(_ *Config, r *chat.Request) { r.Tools = nil },
		"calls forbidden":       func(_ *Config, r *chat.Request) { r.Choice.Kind = chat.ChoiceNone },
		"calls are not JSON":    func(c *Config, _ *chat.Request) { c.ToolParser = "qwen3_coder" },
		"calls are text":        func(c *Config, _ *chat.Request) { c.ToolParser = "none" },
		"a prompt that is text": func(_ *Config, r *chat.Request) { r.Prompt = &chat.Prompt{Text: "<tool_call>"} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := Load(os.DirFS(demoFolder), "")
			if err != nil {
				t.Fatal(err)
			}
			s := &script{context: 4096, finish: engine.Stop}
			cfg.Engine, cfg.ConstrainTools = s, true
			r := request()
			change(&cfg, r)
			g, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			events(t, g, r)
			if p := s.prompts[0]; p.Constrain != nil || p.Mask != nil {
				t.Error("there is a hook")
			}
		})
	}

	g, m := newMonkey(t, "")
	events(t, g, request())
	constrain, inside, coming := m.prompts[0].Constrain, false, []int32(nil)
	for _, id := range transcript.NewGuard(g.cfg.Tokenizer, nil, "").Plain("Use <think>\n\n</think>\n\n{\"name\": \"x\"}<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call> so") {
		text, _ := g.cfg.Tokenizer.Token(id)
		inside = text == "<tool_call>" || inside && text != "</tool_call>"
		c := constrain(id)
		coming = append(coming[min(len(coming), 1):], c.Forced...)
		if only := c.Mask; c.Err != nil || (only != nil || len(coming) > 0) != inside || only.Has(imEnd) {
			t.Errorf("after %q: restricted %v, the turn may end %v, %v", text, only != nil, only.Has(imEnd), c.Err)
		}
	}
}

// endlessTool is a tool whose arguments need another value within each.
var endlessTool = chat.Tool{Name: "dig", Parameters: json.RawMessage(
	`{"type": "object", "properties": {"x": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "required": ["x"]}`)}

// TestEndless: a call that there cannot be is refused where it is demanded; else the call is free, which is told.
func TestEndless(t *testing.T) {
	other := weather()[0]
	for _, c := range []struct {
		name    string
		tools   []chat.Tool
		choice  chat.ToolChoice
		refused bool
	}{
		{"named", []chat.Tool{endlessTool, other}, chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "dig"}, true},
		{"required", []chat.Tool{endlessTool}, chat.ToolChoice{Kind: chat.ChoiceRequired}, true},
		{"another is named", []chat.Tool{endlessTool, other}, chat.ToolChoice{Kind: chat.ChoiceNamed, Name: other.Name}, false},
		{"one of two is required", []chat.Tool{endlessTool, other}, chat.ToolChoice{Kind: chat.ChoiceRequired}, false},
		{"auto", []chat.Tool{endlessTool, other}, chat.ToolChoice{}, false},
	} {
		g, m := newMonkey(t, "")
		_, err := g.Generate(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: c.tools, Choice: c.choice})
		var e *chat.Error
		if refused := errors.As(err, &e); refused != c.refused || refused && (e.Kind != chat.Invalid || e.Bound != chat.BoundEndless || len(m.prompts) > 0) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	g, _ := newMonkey(t, "<tool_call>")
	seq, err := g.Generate(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: []chat.Tool{endlessTool}})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == chat.EventFinish && (!slices.Equal(e.Usage.Loose, []string{"dig"}) || !slices.Equal(e.Usage.Bounds, []chat.Bound{chat.BoundEndless})) {
			t.Errorf("%+v", e.Usage)
		}
	}
}

// TestGuideSpent: whose budget is spent goes on free, and it is told, but where a call was asked for.
func TestGuideSpent(t *testing.T) {
	g, _ := newMonkey(t, "")
	open, _ := g.tok.ID(g.family.CallOpen)
	for name, r := range map[string]*chat.Request{"auto": {Tools: weather()}, "strict": {Tools: heldTools()}} {
		r.Messages = []chat.Message{text(chat.User, "Hi")}
		p, err := g.prompt(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		k, err := g.answers.newCalls(t.Context(), g.prompter, r, p)
		if err != nil {
			t.Fatal(err)
		}
		x := k.guide(1 << 30) // so many replies that nothing is left for one
		var ep engine.Prompt
		err = constrain(&ep, g.newBudget(p), x)
		var e *chat.Error
		if asked := name != "auto"; errors.As(err, &e) != asked || asked && (e.Kind != chat.Invalid || e.Bound != chat.BoundForm) {
			t.Fatalf("%s: %v", name, err)
		} else if asked {
			continue
		}
		if err := x.accept(open); err != nil || ep.Mask != nil || x.within() {
			t.Errorf("limited to %v, %v", ep.Mask, err)
		}
		if only, err := x.only(); only != nil || err != nil {
			t.Errorf("limited to %v, %v", only, err)
		}
		var usage chat.Usage
		x.note(&usage, "dig")
		if !slices.Equal(usage.Bounds, []chat.Bound{chat.BoundForm}) || !slices.Equal(usage.Loose, []string{"dig"}) {
			t.Errorf("%+v", usage)
		}
	}
}

// TestGuideText: where what opens a call is several tokens, calls are kept to their tools all the same: those that are demanded,
// and those that the model opens at the beginning of a line.
func TestGuideText(t *testing.T) {
	tools := []chat.Tool{{Name: "paint", Parameters: json.RawMessage(`{"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}, "coats": {"type": "integer"}}, "required": ["colour", "coats"]}`)},
		{Name: "rest", Parameters: json.RawMessage(`{"type": "object", "properties": {}}`)}}
	for _, c := range []struct {
		name, open string
		choice     chat.ToolChoice
		free       bool
	}{
		{"at the start", "<tool_call>", chat.ToolChoice{}, false},
		{"on a line", "Let me <see>.\n \t<tool_call>\n{", chat.ToolChoice{}, false},
		{"behind a call", "<tool_call>{\"name\": \"rest\", \"arguments\": {}}</tool_call><tool_call>", chat.ToolChoice{}, false},
		{"spoken of", "It writes `<tool_call>", chat.ToolChoice{}, true},
		{"demanded", "", chat.ToolChoice{Kind: chat.ChoiceRequired}, false},
		{"named", "", chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "paint"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &monkey{script: &script{context: 1 << 16}, r: rand.New(rand.NewPCG(7, 8)), most: 400}
			g, _ := withConfig(t, toolless["chatml"], func(cfg *Config) { cfg.Engine, cfg.ConstrainTools = m, true })
			m.open, m.size = transcript.NewGuard(g.cfg.Tokenizer, nil, "").Plain(c.open), g.cfg.Tokenizer.Size()
			for b := range int32(256) {
				if strings.ContainsRune(`"}]:`, rune(b)) {
					m.ends = append(m.ends, b)
				}
			}
			for range 20 {
				seq, err := g.Generate(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: tools, Choice: c.choice})
				if err != nil {
					t.Fatal(err)
				}
				called := false
				for e, err := range seq {
					if err != nil {
						t.Fatal(err)
					}
					if e.Kind == chat.EventText && strings.Contains(e.Text, "<tool_call>") && !c.free {
						t.Errorf("markup: %q", e.Text)
					}
					if e.Kind == chat.EventToolEnd {
						called = true
						var args struct {
							Colour *string
							Coats  *int
						}
						if err := json.Unmarshal(e.Call.Arguments, &args); err != nil || e.Call.Name == "paint" && (args.Colour == nil || args.Coats == nil) {
							t.Errorf("%s %s: %v", e.Call.Name, e.Call.Arguments, err)
						}
					}
				}
				if called == c.free {
					t.Errorf("a call: %v", called)
				}
			}
		})
	}
}
