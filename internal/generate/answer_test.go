package generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/grammar"
	"hearth/internal/sample"
	"hearth/internal/tokenizer"
	"hearth/internal/transcript"
)

// drawer is an engine that says what it is told to, then draws from what may come, alike likely, until the reply ends or has the
// tokens that were asked for, or anything may come.
type drawer struct {
	*script
	t    *testing.T
	r    *rand.Rand
	size int
	says []int32 // it is checked that these may come

	given int // tokens that were forced
}

func (d *drawer) Submit(_ context.Context, p engine.Prompt) (Stream, error) {
	d.prompts = append(d.prompts, p)
	return &drawn{scriptStream: scriptStream{script: d.script}, d: d, p: p, may: slices.Clone(p.Mask), says: d.says, reason: engine.Stop}, nil
}

type drawn struct {
	scriptStream
	d      *drawer
	p      engine.Prompt
	may    sample.Set
	says   []int32
	forced []int32
	n      int
	reason engine.Reason
}

func (s *drawn) Next() (engine.Token, error) {
	if s.n++; s.n > s.p.MaxTokens {
		s.reason = engine.Length
		return engine.Token{}, io.EOF
	}
	if s.p.Constrain == nil {
		return engine.Token{}, io.EOF
	}
	var id int32
	switch {
	case len(s.forced) > 0:
		if id, s.forced = s.forced[0], s.forced[1:]; len(s.says) > 0 && s.says[0] == id {
			s.says = s.says[1:]
		} else {
			s.says = nil
		}
	case len(s.says) > 0:
		if id, s.says = s.says[0], s.says[1:]; s.may != nil && !s.may.Has(id) {
			s.d.t.Fatalf("token %d may not come", id)
		}
	case s.may == nil:
		return engine.Token{}, io.EOF
	default:
		var all []int32
		for id := range int32(s.d.size) {
			if s.may.Has(id) {
				all = append(all, id)
			}
		}
		id = all[s.d.r.IntN(len(all))]
	}
	if slices.Contains(s.p.StopIDs, id) {
		return engine.Token{}, io.EOF
	}
	c := s.p.Constrain(id)
	if c.Err != nil {
		return engine.Token{}, &engine.ConstraintError{Err: c.Err}
	}
	s.may, s.forced = c.Mask, append(s.forced, c.Forced...)
	s.d.given += len(c.Forced)
	return engine.Token{ID: id, Logprob: -1}, nil
}

func (s *drawn) Finish() engine.Reason { return s.reason }

func newDrawer(t *testing.T, g *Generator, words string) *drawer {
	t.Helper()
	d := &drawer{script: &script{context: 4096}, t: t, r: rand.New(rand.NewPCG(7, 8)), size: g.cfg.Tokenizer.Size()}
	d.says = transcript.NewGuard(g.cfg.Tokenizer, nil, "").Plain(words)
	g.cfg.Engine = d
	return d
}

// outcome is what came of a request: the text of each choice, and of the first what else there is of it.
type outcome struct {
	texts     []string
	reasoning string
	calls     []string
	args      []string // of the calls
	finish    chat.Finish
	finishes  []chat.Finish // of each choice
	form      chat.Outcome
	logprobs  string // bytes of the tokens of its text
}

func outcomeOf(t *testing.T, g *Generator, r *chat.Request) (out outcome, err error) {
	t.Helper()
	if r.Messages == nil && r.Prompt == nil {
		r.Messages = []chat.Message{text(chat.User, "Hi")}
	}
	if r.MaxTokens == 0 {
		r.MaxTokens = 60
	}
	out.texts, out.finishes = make([]string, max(r.N, 1)), make([]chat.Finish, max(r.N, 1))
	seq, err := g.Generate(t.Context(), r)
	if err != nil {
		return out, err
	}
	for e, err := range seq {
		if err != nil {
			return out, err
		}
		switch e.Kind {
		case chat.EventStart:
			out.form = e.Usage.Form
		case chat.EventText:
			out.texts[e.Choice] += e.Text
			for _, l := range e.Logprobs {
				if e.Choice == 0 {
					out.logprobs += string(l.Bytes)
				}
			}
		case chat.EventReasoning:
			out.reasoning += e.Text
		case chat.EventToolEnd:
			out.calls, out.args = append(out.calls, e.Call.Name), append(out.args, string(e.Call.Arguments))
		case chat.EventFinish:
			if out.finishes[e.Choice] = e.Finish; out.finish == "" {
				out.finish = e.Finish
			}
		}
	}
	return out, nil
}

// TestAnswers: whatever is drawn, the text is of the form that was asked for, and it ends where that ends.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		form chat.Form
		want string // a regular expression of Go's
		ends bool   // it always does
	}{
		"choice":  {chat.Form{Kind: chat.FormChoice, Choices: []string{"yes", "no", "no, never", "é"}}, `yes|no|no, never|é`, true},
		"pattern": {chat.Form{Kind: chat.FormRegex, Source: `[a-c]{2,4}-\d+`}, `[a-c]{2,4}-\p{Nd}+`, false},
		"markup":  {chat.Form{Kind: chat.FormRegex, Source: `<(think|tool_call|b)>[^<]{0,9}</b>`}, `<(think|tool_call|b)>[^<]{0,9}</b>`, false},
		"grammar": {chat.Form{Kind: chat.FormGBNF, Source: `root ::= "[" (root ("," root)*)? "]"`}, `[\[\],]+`, false},
		"object":  {chat.Form{}, `\{.*\}`, false},
		"schema": {chat.Form{Kind: chat.FormSchema, Strict: true, Source: `{"type": "object", "properties": {"z": {"enum": [1, "two", null]}, "a": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}}, "required": ["z"], "additionalProperties": false}`},
			`\{"z": (1|"two"|null)(, "a": \[((true|false)(, (true|false)){0,2})?\])?\}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := newTest(t, "")
			newDrawer(t, g, "")
			whole := regexp.MustCompile(`^(?s:` + c.want + `)$`)
			ended := 0
			for range 60 {
				got, err := outcomeOf(t, g, &chat.Request{Form: &c.form, Logprobs: true, N: 2, Thinking: chat.Thinking{Mode: chat.Off}})
				if err != nil {
					t.Fatal(err)
				}
				if got.form != chat.Enforced || got.logprobs != got.texts[0] {
					t.Errorf("%+v", got)
				}
				if got.finish != chat.FinishStop {
					continue
				}
				if c.form.JSON() && !json.Valid([]byte(got.texts[0])) {
					t.Errorf("no JSON: %q", got.texts[0])
				}
				if ended++; !whole.MatchString(got.texts[0]) {
					t.Errorf("%q", got.texts[0])
				}
			}
			if ended < 6 || c.ends && ended < 60 {
				t.Errorf("%d of 60 ended", ended)
			}
		})
	}
}

// TestMasksAreGivenBack: a model's vocabulary and masks are made when a request first has a form, and nothing keeps them once the
// model is gone, neither a grammar that is kept nor a matcher.
func TestMasksAreGivenBack(t *testing.T) {
	g, s := newTest(t, "")
	vocab, made := g.answers.vocab, false
	g.answers.vocab = func() *grammar.Vocab { made = true; return vocab() }
	_ = events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}})
	if p := s.prompts[0]; made || p.Constrain != nil || p.Mask != nil {
		t.Fatal("a request without a form is followed")
	}
	newDrawer(t, g, "")
	for _, f := range []chat.Form{{}, {Kind: chat.FormChoice, Choices: []string{"yes", "no"}}} {
		if _, err := outcomeOf(t, g, &chat.Request{Form: &f, Thinking: chat.Thinking{Mode: chat.Off}}); err != nil {
			t.Fatal(err)
		}
	}
	v := weak.Make(vocab())
	if !made || v.Value() == nil {
		t.Fatal("there is none")
	}
	g, s, vocab = nil, nil, nil
	for range 5 {
		runtime.GC()
	}
	if v.Value() != nil {
		t.Error("it is still there")
	}
}

// spokenBy is a generator of a family by its built-in template, whose tokens are bytes and the family's marks.
func spokenBy(t *testing.T, name string) *Generator {
	t.Helper()
	src := dialect.BuiltinText(name)
	tmpl, err := NewTemplate("test", src)
	if err != nil {
		t.Fatal(err)
	}
	tmpl.tokens.Set("eos_token", "<EOS>")
	g, err := New(Config{Engine: &script{context: 4096}, Tokenizer: demoTokenizer(t, append(looksSpecial.FindAllString(src, -1), "<EOS>", "<|return|>", "<|call|>")...), Template: tmpl})
	if err != nil {
		t.Fatal(err)
	}
	g.cfg.Info.Thinking = true
	return g
}

// TestAnswersBegin: the form holds where the answer begins, behind reasoning or in place of a call, in what the family writes
// around it.
func TestAnswersBegin(t *testing.T) {
	demo := func(t *testing.T) *Generator { g, _ := newTest(t, ""); return g }
	harmony := func(t *testing.T) *Generator { return spokenBy(t, "harmony") }
	form := &chat.Form{Kind: chat.FormRegex, Source: `<?[a-c]{3}`}
	call := `<tool_call>` + "\n" + `{"name": "get_weather", "arguments": {"city": "Oslo"}}` + "\n" + `</tool_call>`
	for name, c := range map[string]struct {
		g         func(*testing.T) *Generator
		says      string
		r         chat.Request
		reasoning string
		call      bool
	}{
		"at once":                     {demo, "", chat.Request{}, "", false},
		"reasons":                     {demo, "<think>\nA <tool_call> or {\n</think>\n\n", chat.Request{Thinking: chat.Thinking{Mode: chat.On}}, "A <tool_call> or {", false},
		"reasons without blanks":      {demo, "<think>\nHm</think>", chat.Request{Thinking: chat.Thinking{Mode: chat.On}}, "Hm", false},
		"reasons within a budget":     {demo, "<think>\nHm and so on and on", chat.Request{Thinking: chat.Thinking{Mode: chat.On, Budget: 5}}, "Hm and", false},
		"could call":                  {demo, "", chat.Request{Tools: weather()}, "", false},
		"calls":                       {demo, call, chat.Request{Tools: weather()}, "", true},
		"reasons and calls":           {demo, "<think>\nHm\n</think>\n\n" + call, chat.Request{Tools: weather(), Thinking: chat.Thinking{Mode: chat.On}}, "Hm", true},
		"calls within reasoning":      {demo, "<think>\nHm\n" + call, chat.Request{Tools: weather(), Thinking: chat.Thinking{Mode: chat.On}}, "Hm", true},
		"channels":                    {harmony, "", chat.Request{Thinking: chat.Thinking{Mode: chat.Off}}, "", false},
		"channels, final":             {harmony, "<|channel|>final<|message|>", chat.Request{}, "", false},
		"channels, reasons":           {harmony, "<|channel|>analysis<|message|>A {<|end|><|start|>assistant<|channel|>final<|message|>", chat.Request{}, "A {", false},
		"channels, reasons twice":     {harmony, "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>analysis<|message|>B<|end|><|start|>assistant<|channel|>final<|message|>", chat.Request{}, "A\n\nB", false},
		"channels, reasons and calls": {harmony, `<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}`, chat.Request{Tools: weather()}, "A", true},
		"goes on":                     {demo, "", chat.Request{Messages: []chat.Message{text(chat.User, "Hi"), text(chat.Assistant, "<a")}}, "", false},
		"a text":                      {demo, "", chat.Request{Prompt: &chat.Prompt{Text: "Hi"}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := c.g(t)
			d := newDrawer(t, g, c.says)
			if c.call { // ends there
				d.says = append(d.says, g.stopIDs[0])
			}
			for range 10 {
				r := c.r
				r.Form, r.Logprobs, r.MaxTokens = form, true, 400
				if c.reasoning == "" {
					r.Thinking.Mode = chat.Off
				}
				got, err := outcomeOf(t, g, &r)
				if err != nil {
					t.Fatal(err)
				}
				if c.says == "" && len(r.Tools) > 0 && (got.texts[0] == "" || got.texts[0] == "<tool_call>") { // it begins a call
					continue
				}
				ok := regexp.MustCompile(`^<?[a-c]{3}$`).MatchString(got.texts[0])
				if name == "goes on" {
					ok = regexp.MustCompile(`^[a-c]{2}$`).MatchString(got.texts[0])
				}
				if got.form != chat.Enforced || got.logprobs != got.texts[0] || strings.TrimSpace(got.reasoning) != c.reasoning || ok == c.call || (len(got.calls) > 0) != c.call ||
					!c.call && got.finish != chat.FinishStop {
					t.Fatalf("%+v", got)
				}
			}
		})
	}
}

// TestForms: forms are made once, and those that nobody asks for are given up.
func TestForms(t *testing.T) {
	var k forms
	of := func(f *chat.Form) *madeForm {
		t.Helper()
		m, err := k.of(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	choice := func(texts ...string) *chat.Form { return &chat.Form{Kind: chat.FormChoice, Choices: texts} }
	first := of(choice("ab", "c"))
	if of(&chat.Form{Kind: chat.FormChoice, Choices: []string{"ab", "c"}, Path: "elsewhere"}) != first || of(choice("a", "bc")) == first || of(choice("abc")) == first {
		t.Error("a form is made again, or another is taken for it")
	}
	for i := range mostForms {
		of(choice(fmt.Sprint(i)))
		of(choice("ab", "c"))
	}
	if of(choice("ab", "c")) != first || len(k.known) != mostForms || k.used.Len() != mostForms {
		t.Errorf("%d forms are known", len(k.known))
	}
	long := func(n int) *chat.Form {
		s := `{"description": "", "type": "null"}`
		return &chat.Form{Kind: chat.FormSchema, Source: strings.Replace(s, `""`, `"`+strings.Repeat("x", n-len(s))+`"`, 1)}
	}
	if of(long(mostFormBytes - 3)); len(k.known) != 2 || k.bytes > mostFormBytes {
		t.Errorf("%d forms of %d bytes are known", len(k.known), k.bytes)
	}
	if of(choice("ab", "c")) != first {
		t.Error("the form that was asked for last was given up")
	}
	if of(long(mostFormBytes + 1)); k.bytes > mostFormBytes {
		t.Errorf("%d bytes are known", k.bytes)
	}
}

// TestAnswersWide: a schema of 200 members is held to.
func TestAnswersWide(t *testing.T) {
	g, _ := newTest(t, "")
	newDrawer(t, g, "")
	var members, names []string
	for i := range 200 {
		members = append(members, fmt.Sprintf(`"f%d": {"type": "boolean"}`, i))
		names = append(names, fmt.Sprintf(`"f%d"`, i))
	}
	form := &chat.Form{Kind: chat.FormSchema, Strict: true, Source: `{"type": "object", "properties": {` + strings.Join(members, ", ") + `}, "required": [` +
		strings.Join(names, ", ") + `], "additionalProperties": false}`}
	got, err := outcomeOf(t, g, &chat.Request{Form: form, Thinking: chat.Thinking{Mode: chat.Off}, MaxTokens: 4000})
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]bool
	if err := json.Unmarshal([]byte(got.texts[0]), &all); err != nil || len(all) != 200 || got.finish != chat.FinishStop {
		t.Errorf("%s: %v, %d members", got.finish, err, len(all))
	}
}

// TestAnswersOfFamilies: what a model writes behind reasoning, in the tags of its family and byte by byte, is of the form, and so
// is what it writes beside tools, or it calls one. Where that cannot be told nothing is held, which is told.
func TestAnswersOfFamilies(t *testing.T) {
	free := map[string]bool{}
	for name, f := range everyFamily(t) {
		if dialect.CheckNames(name, "") != nil {
			continue
		}
		for what, tools := range map[string][]chat.Tool{"": nil, " beside tools": weather()} {
			g, _ := withConfig(t, toolless["chatml"], func(c *Config) { c.ToolParser = name })
			g.cfg.Info.Thinking = true
			end, answer := f.LeaveReasoning()
			if g.family.Open != "" {
				newDrawer(t, g, g.family.Opening()+"\nHm"+end+answer)
			} else {
				newDrawer(t, g, "")
			}
			for range 4 {
				got, err := outcomeOf(t, g, &chat.Request{Form: &chat.Form{Kind: chat.FormSchema, Source: `{"enum": [[1, "<tool_call>"], "<a>"]}`}, Tools: tools, MaxTokens: 400})
				if err != nil {
					t.Fatalf("%s%s: %v", name, what, err)
				}
				if free[name+what] = got.form != chat.Enforced; got.form != chat.Enforced {
					var e *chat.Error
					_, err := outcomeOf(t, g, &chat.Request{Form: &chat.Form{Strict: true, Path: "response_format"}, Tools: tools})
					if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Param != "response_format" {
						t.Errorf("%s%s, strict: %v", name, what, err)
					}
					continue
				}
				if g.family.Open != "" && strings.TrimSpace(got.reasoning) != "Hm" {
					t.Errorf("%s%s: %+v", name, what, got)
				}
				calls := tools != nil && slices.ContainsFunc(first(g.family.CallOpeners()), func(o string) bool {
					return strings.TrimSpace(got.texts[0]) == strings.TrimSpace(o) || got.texts[0] == ""
				})
				if text := got.texts[0]; text != `[1, "<tool_call>"]` && text != `"<a>"` && !calls {
					t.Errorf("%s%s: %q", name, what, text)
				}
			}
		}
	}
	var names []string
	for name, is := range free {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	// the template does not begin an answer of theirs, which stands behind marks; and calls that have no mark
	want := "functionary, functionary beside tools, gemma3 beside tools, harmony, harmony beside tools, kimi_k3, kimi_k3 beside tools, llama3 beside tools, " +
		"muse, muse beside tools, pythonic beside tools, solar, solar beside tools, xlam beside tools"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("not held: %s", got)
	}
}

func first[A, B any](a A, _ B) A { return a }

// TestAnswerSpent: a form that takes more work to follow than there may be ends the reply with an error; so does a token that
// does not fit.
func TestAnswerSpent(t *testing.T) {
	g, _ := newTest(t, "")
	r := &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Form: &chat.Form{Path: "response_format"}, Thinking: chat.Thinking{Mode: chat.Off}}
	p, err := g.prompt(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	k, err := g.answers.newHeldForm(t.Context(), g.prompter, r, p)
	if err != nil {
		t.Fatal(err)
	}
	spent := func(err error) bool {
		var e *chat.Error
		return errors.As(err, &e) && e.Kind == chat.Invalid && e.Bound == chat.BoundForm && e.Param == "response_format"
	}
	if err := constrain(&engine.Prompt{}, nil, k.guide(1<<30)); !spent(err) { // so many replies that nothing is left for one
		t.Errorf("at once: %v", err)
	}
	x := k.guide(1)
	if err := constrain(&engine.Prompt{}, nil, x); err != nil {
		t.Fatal(err)
	}
	open := g.cfg.Tokenizer.Encode("{", tokenizer.EncodeOptions{})[0]
	if err := x.accept(open); err != nil {
		t.Fatal(err)
	}
	if err := x.accept(g.cfg.Tokenizer.Encode("[", tokenizer.EncodeOptions{})[0]); err == nil {
		t.Error("a token that does not fit is taken")
	}
}
