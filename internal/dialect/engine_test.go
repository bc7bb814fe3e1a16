package dialect_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hearth/internal/callform"
	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/engine/enginetest"
	"hearth/internal/generate"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
	"hearth/internal/tokenizer"
)

var (
	engineCalls   = flag.Int("engine-calls", 10, "how many calls of each family a model of random weights writes")
	callTemplates = flag.String("call-templates", "", "a folder of chat templates, for whose models calls are written too")
)

// boundedTools are formTools whose texts and lists have an end that is not far.
func boundedTools(t testing.TB) []formTool {
	return toolsOf(t, strings.NewReplacer(`{"type": "string"}`, `{"type": "string", "maxLength": 30}`, `["string", "null"]}`, `["string", "null"], "maxLength": 12}`,
		`"minLength": 2}`, `"minLength": 2, "maxLength": 12}`, `{"type": "array",`, `{"type": "array", "maxItems": 3,`, `-[0-9]+$`, `-[0-9]{1,9}$`,
		`"any": {}, "z": {"type": "string"}}, "additionalProperties": true`, `"any": {"type": ["string", "array"], "maxLength": 9, "items": {"type": ["integer", "boolean"]}, "maxItems": 3},
			"z": {"type": "string", "maxLength": 30}}, "propertyNames": {"maxLength": 8}, "additionalProperties": {"type": ["boolean", "string"], "maxLength": 9}`).Replace(formTools))
}

// piecesOf is a tokenizer of single bytes, markup, what calls begin with and marks; the latter are special tokens, or text.
func piecesOf(t testing.TB, marks []string, head string, special bool) *tokenizer.Tokenizer {
	t.Helper()
	vocab, next := map[string]int{}, rune(256)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r, next = next, next+1
		}
		vocab[string(r)] = b
	}
	added := []map[string]any{}
	for _, s := range slices.Concat([]string{"<|im_start|>", "<|im_end|>"}, marks, []string{head}, markup) {
		if len(s) > 1 && !slices.ContainsFunc(added, func(a map[string]any) bool { return a["content"] == s }) {
			added = append(added, map[string]any{"id": 256 + len(added), "content": s, "special": len(added) < 2 || special && slices.Contains(marks, s)})
		}
	}
	b, err := json.Marshal(map[string]any{"added_tokens": added, "pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
		"decoder": map[string]any{"type": "ByteLevel"}, "model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}}})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(b, []byte(`{"eos_token": "<|im_end|>"}`))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

const chatML = `{% for m in messages %}<|im_start|>{{ m.role }}{{ "\n" }}{{ m.content }}<|im_end|>{{ "\n" }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant{{ "\n" }}{% endif %}`

// evidence are texts of templates that families are chosen by which no parser's name means.
var evidence = []string{"[TOOL_CALLS]", "<|role_sep|>function call", "]<]minimax[>[", "<|open|><|close|><|sep|>", "<|tool_call>", "tool_code", "<function=", "<｜tool▁sep｜>```json", "<｜DSML｜", "<|python_start|>"}

// modelOf is a model of random weights that speaks a family's form of calls.
func modelOf(t *testing.T, f *dialect.Family, special bool) *spoken {
	t.Helper()
	if at := slices.IndexFunc(evidence, func(s string) bool { return dialect.Choose(dialect.Evidence{Template: s}).Name == f.Name }); at >= 0 {
		return speaks(t, f, generate.Config{}, chatML+"{# "+evidence[at]+" #}", special)
	}
	at := slices.IndexFunc(f.Names, func(name string) bool {
		of, _, err := dialect.Override(dialect.Choose(dialect.Evidence{}), name, "")
		return err == nil && of.Name == f.Name
	})
	if at < 0 {
		t.Fatalf("nothing is known that %s is chosen by", f.Name)
	}
	return speaks(t, f, generate.Config{ToolParser: f.Names[at]}, chatML, special)
}

// spoken is a model whose tokens are kept.
type spoken struct {
	*generate.Generator
	tok   *tokenizer.Tokenizer
	inner generate.Engine
}

// headOf is what a family's calls begin with: a mark, or all that stands before the first name.
func headOf(f *dialect.Family) string {
	head, _, _ := strings.Cut(f.Notation.Open+f.Notation.Call, "$")
	for _, m := range f.Markers {
		if strings.HasPrefix(head, m) {
			return m
		}
	}
	return head
}

func speaks(t *testing.T, f *dialect.Family, cfg generate.Config, template string, special bool) *spoken {
	t.Helper()
	tmpl, err := generate.NewTemplate("test", template)
	if err != nil {
		t.Fatal(err)
	}
	m := &spoken{tok: piecesOf(t, f.Markers, headOf(f), special)}
	m.inner = generate.Over(enginetest.Random(t, m.tok.Size(), 1<<14))
	cfg.Engine, cfg.Tokenizer, cfg.Template, cfg.Info = m, m.tok, tmpl, chat.Model{ID: "m"}
	if m.Generator, err = generate.New(cfg); err != nil {
		t.Fatal(err)
	}
	return m
}

type saidKey struct{}

type saidTokens struct{ prompt, ids []int32 }

// spokenStream notes what a request's only choice said, behind its prompt.
type spokenStream struct {
	generate.Stream
	said *saidTokens
}

func (m *spoken) Context() int { return m.inner.Context() }

func (m *spoken) Submit(ctx context.Context, p engine.Prompt) (generate.Stream, error) {
	s, err := m.inner.Submit(ctx, p)
	if err != nil {
		return nil, err
	}
	said := ctx.Value(saidKey{}).(*saidTokens)
	said.prompt = slices.Clone(p.Tokens)
	return &spokenStream{s, said}, nil
}

func (s *spokenStream) Next() (engine.Token, error) {
	tok, err := s.Stream.Next()
	if err == nil {
		s.said.ids = append(s.said.ids, tok.ID)
	}
	return tok, err
}

// heardCall is a call that a client got.
type heardCall struct{ name, args string }

// call asks for a call and gives what the client got, with all that the model said, from where its prompt begins the call.
func (m *spoken) call(t *testing.T, f *dialect.Family, r *chat.Request) (calls []heardCall, text, raw string, finish chat.Finish, err error) {
	var said saidTokens
	seq, err := m.Generate(context.WithValue(t.Context(), saidKey{}, &said), r)
	if err != nil {
		return nil, "", "", "", err
	}
	for e, err := range seq {
		if err != nil {
			return nil, "", "", "", err
		}
		switch e.Kind {
		case chat.EventText:
			text += e.Text
		case chat.EventToolEnd:
			calls = append(calls, heardCall{e.Call.Name, string(e.Call.Arguments)})
		case chat.EventFinish:
			finish = e.Finish
		}
	}
	prompt := string(m.bytes(said.prompt))
	begun := ""
	for _, name := range append([]string{""}, toolNames(r.Tools)...) {
		if s := f.Force(name); len(s) > len(begun) && strings.HasSuffix(prompt, strings.TrimRight(s, " ")) {
			begun = strings.TrimRight(s, " ")
		}
	}
	return calls, text, begun + string(m.bytes(said.ids)), finish, nil
}

func (m *spoken) bytes(ids []int32) (text []byte) {
	for _, id := range ids {
		text = append(text, m.tok.Bytes(id)...)
	}
	return text
}

func toolNames(tools []chat.Tool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}

// TestCallsOfEngine: demanded calls that a model of random weights writes through the engine are those that the family's grammar
// has, mean what the family's writer writes so, and are valid.
func TestCallsOfEngine(t *testing.T) {
	all := boundedTools(t)
	eachForm(t, func(t *testing.T, f *dialect.Family) {
		p := &callsProof{f: f, all: all, w: writerOf(t, f)}
		for i, special := range []bool{true, false} {
			p.run(t, modelOf(t, f, special), (*engineCalls+i)/2)
		}
		p.told(t)
	})
}

// TestCallsOfTemplates is the same with the chat templates of a folder.
func TestCallsOfTemplates(t *testing.T) {
	if *callTemplates == "" {
		t.Skip("-call-templates has no folder")
	}
	paths, err := filepath.Glob(filepath.Join(*callTemplates, "*.jinja"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no templates", err)
	}
	all := boundedTools(t)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f := dialect.Choose(dialect.Evidence{Template: string(src)})
			at := slices.IndexFunc(dialect.Families, func(x *dialect.Family) bool { return x.Name == f.Name })
			if at < 0 || unwritten[f.Name] != "" {
				t.Skipf("%s has no form of calls", f.Name)
			}
			p := &callsProof{f: f, all: all, w: writerOf(t, f)}
			m := speaks(t, f, generate.Config{}, `{% set bos_token = "" %}{% set eos_token = "<|im_end|>" %}`+string(src), true)
			if _, err := m.Render(t.Context(), p.asking(m, rand.New(rand.NewPCG(1, 1)))); err != nil {
				t.Skip(err)
			}
			p.run(t, m, *engineCalls)
			p.told(t)
		})
	}
}

// callsProof counts calls of a family.
type callsProof struct {
	f   *dialect.Family
	all []formTool
	w   dialect.Writer

	begun                                      atomic.Uint64
	written, ended, strict, calls, same, meant atomic.Int64
}

func (p *callsProof) told(t *testing.T) {
	written, ended := p.written.Load(), p.ended.Load()
	t.Logf("%s: %d replies, %d ended, %d of them free but for calls of strict tools, with %d calls: %d are written like that, but for blanks, %d otherwise", p.f.Name, written, ended, p.strict.Load(), p.calls.Load(), p.same.Load(), p.meant.Load())
	if ended < written*9/10 || written == 0 {
		t.Error("too few ended")
	}
}

func (p *callsProof) run(t *testing.T, m *spoken, n int) {
	var all sync.WaitGroup
	most := p.written.Load() + int64(n)
	for range 8 {
		all.Go(func() {
			for p.written.Add(1) <= most && !t.Failed() {
				p.request(t, m, rand.New(rand.NewPCG(p.begun.Add(1), 4)))
			}
			p.written.Add(-1)
		})
	}
	all.Wait()
}

// asking is a request that demands a call, of a tool or of any, or one with strict tools of which the model likes to call one.
func (p *callsProof) asking(m *spoken, r *rand.Rand) *chat.Request {
	req := &chat.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: fmt.Sprint("Hi ", r.IntN(100))}}}}, MaxTokens: 4000,
		Sampling: chat.Sampling{Temperature: new(float64(r.IntN(3))), Seed: new(r.Uint64())}, Thinking: chat.Thinking{Mode: chat.Off}}
	for _, t := range p.all {
		req.Tools = append(req.Tools, chat.Tool{Name: t.Name, Description: "It is called " + t.Name + ".", Parameters: json.RawMessage(t.Schema.Raw)})
	}
	head := headOf(p.f)
	begins, ok := m.tok.ID(head)
	openers, told := p.f.CallOpeners() // some need more than a mark
	ok = ok && told && slices.ContainsFunc(openers, func(o string) bool { return strings.TrimSpace(o) == strings.TrimSpace(head) })
	switch n := r.IntN(4); {
	case n == 0 && ok:
		req.Choice.Single, req.MaxTokens = true, 1000
		req.Sampling.LogitBias = map[int32]float64{begins: 100}
		for i := range req.Tools {
			req.Tools[i].Strict = true
		}
	case n == 1 && p.f.Force("") != "":
		req.Choice = chat.ToolChoice{Kind: chat.ChoiceRequired, Single: *req.Sampling.Temperature == 0 || r.IntN(2) == 0}
	default:
		req.Choice = chat.ToolChoice{Kind: chat.ChoiceNamed, Name: p.all[r.IntN(len(p.all))].Name, Single: true}
	}
	return req
}

func (p *callsProof) request(t *testing.T, m *spoken, r *rand.Rand) {
	req := p.asking(m, r)
	may := p.all
	if req.Choice.Name != "" {
		may = slices.DeleteFunc(slices.Clone(may), func(t formTool) bool { return t.Name != req.Choice.Name })
	}
	calls, text, raw, finish, err := m.call(t, p.f, req)
	if err != nil {
		t.Errorf("%s: %v", p.f.Name, err)
		return
	}
	strict := req.Choice.Kind == chat.ChoiceAuto
	switch {
	case finish == chat.FinishLength && strict: // where more than a mark begins calls the model finds none
		p.written.Add(-1)
		return
	case finish == chat.FinishLength:
		return
	case strict:
		p.strict.Add(1)
	}
	p.ended.Add(1)
	g := form(t, p.f, plainTools(may), callform.Options{One: req.Choice.Single})
	whole, ok := p.finished(g.Grammar, raw)
	if !ok || whole != raw && !req.Choice.Single && !slices.Contains(p.f.Markers, whole[len(raw):]) { // a token that ends the reply is no text of it
		t.Errorf("%q is not of the grammar, %q is", raw, whole)
		return
	}
	read, rest := readCalls(p.f, plainTools(p.all), whole)
	if !slices.Equal(read, calls) || len(calls) == 0 || len(calls) > 1 && req.Choice.Single || strings.TrimSpace(text+rest) != "" {
		t.Errorf("%q is read as %q and %q, and the client got %q and %q", whole, read, rest, calls, text)
		return
	}
	written := ""
	for _, c := range calls {
		p.calls.Add(1)
		at := slices.IndexFunc(may, func(t formTool) bool { return t.Name == c.name })
		v, err := schema.Parse([]byte(c.args))
		if at < 0 || err != nil || may[at].schema.Checker(true).Check(context.Background(), v) != jsonschema.Valid {
			t.Errorf("%q: %s(%s) is not valid: %v", whole, c.name, c.args, err)
			return
		}
		written += write(p.w, p.f, c.name, v)
	}
	if len(calls) > 1 { // what stands around them the writer has for one
		return
	}
	same := written == whole
	if blanks := strings.NewReplacer(" ", "", "\n", ""); !same && blanks.Replace(written) != blanks.Replace(whole) {
		if !formMatches(g.Grammar, written) {
			return // a number in a spelling of its own, say
		}
		p.meant.Add(1)
	} else {
		p.same.Add(1)
	}
	if again, _ := readCalls(p.f, plainTools(p.all), written); !same && (len(again) != 1 || again[0].name != calls[0].name || !sameJSON(t, again[0].args, calls[0].args)) {
		t.Errorf("%q is read as %q; that is written %q, and read as %q", whole, calls, written, again)
	}
}

// finished is a text of the grammar that begins with a given one, and ends soon.
func (p *callsProof) finished(g *grammar.Grammar, begun string) (text string, ok bool) {
	for _, end := range append([]string{""}, p.f.Markers...) {
		if formMatches(g, begun+end) {
			return begun + end, true
		}
	}
	budget := grammar.NewBudget(1)
	for range begun {
		budget.Token()
	}
	m := grammar.NewVocab(256, func(id int32) []byte { return []byte{byte(id)} }).Matcher(g, budget)
	if !m.AcceptBytes([]byte(begun)) {
		return "", false
	}
	for text = begun; !m.Done() && len(text) < len(begun)+100; {
		mask := m.Allowed()
		at := slices.IndexFunc(mask, func(word uint64) bool { return word != 0 })
		if at < 0 {
			return text, false
		}
		b := byte(at*64 + bits.TrailingZeros64(mask[at]))
		m.AcceptBytes([]byte{b})
		text += string([]byte{b})
	}
	return text, m.Done()
}

// readCalls reads a reply as a server does that held it to its form.
func readCalls(f *dialect.Family, tools []dialect.Tool, reply string) (calls []heardCall, rest string) {
	p := f.New(dialect.Options{Tools: tools, NoRepair: true})
	for _, piece := range p.Finish(p.Feed(nil, reply)) {
		switch piece.Kind {
		case dialect.ToolStart:
			calls = append(calls, heardCall{name: piece.Text})
		case dialect.ToolArgs:
			calls[len(calls)-1].args += piece.Text
		case dialect.Text:
			rest += piece.Text
		}
	}
	return calls, rest
}
