package dialect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/engine/enginetest"
	"hearth/internal/generate"
	"hearth/internal/tier"
	"hearth/internal/tokenizer"
)

var draftReplies = flag.Int("draft-replies", 6, "replies, greedy and sampled each, that TestDraftsOfEngine compares")

// drafting are models whose replies are compared: attention alone, experts, windows, latents, and recurrent layers beside them.
var drafting = []string{"qwen3_next", "qwen3_moe", "gemma3_text", "falcon_h1", "deepseek_v3", "jamba", "gpt_oss", "kimi_linear"}

// paged are those of them without recurrent state: where memory is short they preempt.
var paged = map[string]bool{"qwen3_moe": true, "gemma3_text": true, "deepseek_v3": true, "gpt_oss": true}

// draftingConfig is a model's config with another vocabulary.
func draftingConfig(t *testing.T, name string, vocab int) string {
	var g struct {
		Config map[string]any `json:"config"`
	}
	file, err := os.ReadFile("../model/testdata/" + name + "/4bit.json")
	if err == nil {
		err = json.Unmarshal(file, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.Config["vocab_size"], g.Config["max_position_embeddings"] = vocab, 1<<12
	b, err := json.Marshal(g.Config)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// heardEngine notes what the engine gives for each request: the tokens of its choices.
type heardEngine struct{ generate.Engine }

type heardKey struct{}

type heardStream struct {
	generate.Stream
	tokens *[]engine.Token
}

func (h heardEngine) Submit(ctx context.Context, p engine.Prompt) (generate.Stream, error) {
	s, err := h.Engine.Submit(ctx, p)
	if err != nil {
		return nil, err
	}
	all := ctx.Value(heardKey{}).(*[]*[]engine.Token)
	mine := new([]engine.Token)
	*all = append(*all, mine)
	return heardStream{s, mine}, nil
}

func (s heardStream) Next() (engine.Token, error) {
	tok, err := s.Stream.Next()
	if err == nil {
		said := tok
		said.More = false
		*s.tokens = append(*s.tokens, said)
	}
	return tok, err
}

// draftReply is all that a client and the engine's caller get, but for what tells of the cache and of times.
type draftReply struct {
	Tokens []*[]engine.Token
	Events []chat.Event
	Err    string

	drafted, accepted, cached int
	text                      string // of the first choice
}

// ids are what the first choice said.
func (d *draftReply) ids() (ids []int32) {
	for _, tok := range *d.Tokens[0] {
		ids = append(ids, tok.ID)
	}
	return ids
}

func draftsOf(ctx context.Context, g *generate.Generator, r chat.Request) (d draftReply) {
	seq, err := g.Generate(context.WithValue(ctx, heardKey{}, &d.Tokens), &r)
	if err != nil {
		d.Err = err.Error()
		return d
	}
	for e, err := range seq {
		if err != nil {
			d.Err = err.Error()
		}
		if u := e.Usage; u != nil {
			d.drafted, d.accepted, d.cached = d.drafted+u.Drafted, d.accepted+u.Accepted, d.cached+u.Cached
			e.Usage = &chat.Usage{Prompt: u.Prompt, Output: u.Output, Reasoning: u.Reasoning, Bounds: slices.Clone(u.Bounds),
				Loose: slices.Clone(u.Loose), Mended: slices.Clone(u.Mended), Form: u.Form}
		}
		if e.Call != nil {
			c := *e.Call
			c.ID = "" // random
			e.Call = &c
		}
		if e.Kind == chat.EventText && e.Choice == 0 {
			d.text += e.Text
		}
		if last := len(d.Events) - 1; last >= 0 && e.Fragment() && e.Same(&d.Events[last]) {
			d.Events[last].Join(&e)
		} else {
			d.Events = append(d.Events, e)
		}
	}
	for i := range d.Events {
		d.Events[i].Joined = 0
	}
	return d
}

// draftAsks makes requests of all that users ask for.
type draftAsks struct {
	*rand.Rand
	f     *dialect.Family
	tok   *tokenizer.Tokenizer
	tools []chat.Tool
	said  []string // texts of replies
}

var draftForms = []chat.Form{
	{Kind: chat.FormSchema, Source: `{"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "tags": {"type": "array", "items": {"enum": ["first", "second", "third"]},
		"maxItems": 4}, "count": {"type": "integer", "minimum": 0, "maximum": 300}}, "required": ["name", "tags", "count"], "additionalProperties": false}`},
	{Kind: chat.FormSchema, Source: `{"type": "array", "items": {"type": "object", "properties": {"kind": {"const": "a point"}, "x": {"type": "number", "minimum": 0, "maximum": 1}},
		"required": ["kind", "x"], "additionalProperties": false}, "minItems": 2, "maxItems": 3}`},
	{Kind: chat.FormRegex, Source: `(item [0-9]{1,3}: (yes|no|maybe)\n){3,6}`},
	{Kind: chat.FormChoice, Choices: []string{"the first of them", "the second of them", "none"}},
	{Kind: chat.FormGBNF, Source: "root ::= (word \" \"){4,12} word\nword ::= \"alpha\" | \"beta\" | [a-f]{1,5}"},
}

func (r *draftAsks) ask(sampled bool) chat.Request {
	q := chat.Request{MaxTokens: 1 + r.IntN([]int{20, 120, 20, 120, 450}[r.IntN(5)]), PlainHistory: true, Logprobs: r.IntN(4) > 0, N: 1 + max(r.IntN(4)-1, 0)}
	if q.Logprobs {
		q.TopLogprobs = r.IntN(3)
	}
	for i := range 1 + r.IntN(2) { // prompts begin alike, and repeat what was said
		part := fmt.Sprintf("Tell of the %s and of the second, and of the third as well.", []string{"first", "last", "next"}[r.IntN(3)])
		if len(r.said) > 0 && r.IntN(2) == 0 {
			part = r.said[r.IntN(len(r.said))]
		}
		q.Messages = append(q.Messages, chat.Message{Role: []chat.Role{chat.User, chat.Assistant}[i%2], Parts: []chat.Part{{Text: part}}})
	}
	q.Messages = append(q.Messages, chat.Message{Role: chat.User, Parts: []chat.Part{{Text: "Again."}}})
	s := &q.Sampling
	s.Temperature, s.LogitBias = new(0.0), map[int32]float64{}
	if sampled {
		s.Temperature, s.Seed = new([]float64{0.05, 0.3, 1}[r.IntN(3)]), new(r.Uint64())
		if r.IntN(2) == 0 {
			s.TopP, s.MinP = new(0.9), new(0.05)
		}
	}
	for _, p := range []**float64{&s.RepetitionPenalty, &s.FrequencyPenalty, &s.PresencePenalty} {
		if r.IntN(4) == 0 {
			*p = new(0.5 + r.Float64())
		}
	}
	if r.IntN(3) == 0 {
		s.LogitBias[r.Int32N(int32(r.tok.Size()))] = 2
	}
	if r.IntN(8) > 0 { // most bytes that are no ASCII make no text
		for id := range int32(128) {
			s.LogitBias[128+id] = -100
		}
	}
	tools := r.tools[r.IntN(len(r.tools)-1):][:2]
	switch r.IntN(6) {
	case 0:
		f := draftForms[r.IntN(len(draftForms))]
		q.Form = &f
	case 1:
		q.Tools, q.Choice = tools, chat.ToolChoice{Kind: chat.ChoiceNamed, Name: tools[r.IntN(2)].Name, Single: true}
	case 2:
		q.Tools = slices.Clone(tools)
		for i := range q.Tools {
			q.Tools[i].Strict = true
		}
		if id, ok := r.tok.ID(headOf(r.f)); ok {
			s.LogitBias[id] = 100
		}
		q.Choice.Single = true
	case 3:
		q.Thinking = chat.Thinking{Mode: chat.On, Budget: 1 + r.IntN(30)}
		if id, ok := r.tok.ID(r.f.Open); ok && r.f.Open != "" {
			s.LogitBias[id] = 4
		}
	}
	return q
}

// stopWithin is a stop string that a text has: the reply ends there, perhaps in the middle of a step.
func (r *draftAsks) stopWithin(text string) []string {
	for range 20 {
		if len(text) < 8 {
			break
		}
		from := r.IntN(len(text) - 4)
		if s := text[from : from+2+r.IntN(3)]; utf8.ValidString(s) && s[0] != ' ' {
			return []string{"no such text", s}
		}
	}
	return nil
}

// TestDraftsOfEngine: what clients get is what they get without drafts, in ids, logprobs, text, calls and ends: free, held to
// forms and grammars, with tools of every dialect, stop strings, budgets and several choices, greedy and sampled; beside each
// other, from the cache, from disk after a restart, and after preemption.
func TestDraftsOfEngine(t *testing.T) {
	var families []*dialect.Family
	for _, f := range dialect.Families {
		if unwritten[f.Name] == "" {
			families = append(families, f)
		}
	}
	var tools []chat.Tool
	for _, tool := range boundedTools(t) {
		tools = append(tools, chat.Tool{Name: tool.Name, Description: "It is called " + tool.Name + ".", Parameters: json.RawMessage(tool.Schema.Raw)})
	}
	const group = 6 // replies of a family on a model
	var sum [5]int
	for at := 0; at*group < *draftReplies; at++ {
		f, name := families[at%len(families)], drafting[at%len(drafting)]
		t.Run(fmt.Sprint(at, " ", name, " ", f.Name), func(t *testing.T) {
			n := min(group, *draftReplies-at*group)
			var counts [5]int
			for i, sampled := range []bool{false, true} {
				r := &draftAsks{Rand: rand.New(rand.NewPCG(uint64(at), uint64(i))), f: f, tok: piecesOf(t, f.Markers, headOf(f), true), tools: tools}
				r.compare(t, name, n, sampled, &counts)
			}
			t.Logf("%d replies, %d drafts, %d accepted, %d cached, %d preempted", counts[0], counts[1], counts[2], counts[3], counts[4])
			for i, n := range counts {
				sum[i] += n
			}
		})
	}
	if sum[2] == 0 || sum[2] == sum[1] || sum[3] == 0 || *draftReplies >= 500 && sum[4] == 0 {
		t.Errorf("this shows nothing: %v", sum)
	}
	t.Logf("%d replies, %d drafts, %d accepted, %d cached, %d preempted", sum[0], sum[1], sum[2], sum[3], sum[4])
}

// compare compares n replies of a model.
func (r *draftAsks) compare(t *testing.T, model string, n int, sampled bool, counts *[5]int) {
	config, dir := draftingConfig(t, model, r.tok.Size()), t.TempDir()
	template := chatML
	for _, s := range evidence {
		if dialect.Choose(dialect.Evidence{Template: s}).Name == r.f.Name {
			template += "{# " + s + " #}"
		}
	}
	speak := func(e *engine.Engine) *generate.Generator {
		tmpl, err := generate.NewTemplate("test", template)
		if err != nil {
			t.Fatal(err)
		}
		cfg := generate.Config{Engine: heardEngine{generate.Over(e)}, Tokenizer: r.tok, Template: tmpl, Info: chat.Model{ID: "m"}}
		if template == chatML {
			for _, name := range r.f.Names {
				if of, _, err := dialect.Override(dialect.Choose(dialect.Evidence{}), name, ""); err == nil && of.Name == r.f.Name {
					cfg.ToolParser = name
				}
			}
		}
		g, err := generate.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	alone := enginetest.Start(t, config, func(c *engine.Config) { c.Budget, c.MaxContext, c.NoCache = 1<<26, 2048, true })
	plain := speak(alone)
	for done := 0; done < n; { // each round on an engine that starts where the one before ended
		tight := done > 0 && paged[model]
		e := enginetest.Start(t, config, func(c *engine.Config) {
			c.Budget, c.MaxContext, c.Speculate, c.PrefillChunk = 1<<26, 2048, true, 64
			c.DraftAll()
			c.Disk = &tier.Options{Dir: dir, Name: "m", Fingerprint: "m", Quota: 1 << 30, Warn: func(s string) { t.Error(s) }}
			if tight {
				c.Budget = 14 * alone.Stats().Page * 8 / 7
			}
		})
		on := speak(e)
		var asks []chat.Request
		var want []draftReply
		for range min(3, n-done) {
			q := r.ask(sampled)
			if tight {
				q.MaxTokens, q.N, q.Tools, q.Choice = 400, 3, nil, chat.ToolChoice{}
			}
			w := draftsOf(t.Context(), plain, q)
			if q.Stop = r.stopWithin(w.text); q.Stop != nil && r.IntN(2) == 0 {
				w = draftsOf(t.Context(), plain, q)
			} else {
				q.Stop = nil
			}
			if len(w.Tokens) > 0 && r.IntN(3) > 0 { // with some mistakes
				var b []byte
				for _, id := range w.ids() {
					if b = append(b, r.tok.Bytes(id)...); r.IntN(12) == 0 {
						b = append(b, 'x')
					}
				}
				q.Prediction = new(string(b))
			}
			if len(w.text) > 20 && len(r.said) < 8 {
				r.said = append(r.said, string(bytes.ToValidUTF8([]byte(w.text)[:min(len(w.text), 120)], nil)))
			}
			asks, want = append(asks, q), append(want, w)
			done++
		}
		got := make([]draftReply, len(asks))
		var all sync.WaitGroup
		for i := range asks {
			all.Go(func() { got[i] = draftsOf(t.Context(), on, asks[i]) })
		}
		all.Wait()
		for i := range got {
			if d := cmp.Diff(want[i], got[i], cmp.FilterPath(func(p cmp.Path) bool {
				f, ok := p.Last().(cmp.StructField)
				return ok && slices.Contains([]string{"drafted", "accepted", "cached", "text"}, f.Name())
			}, cmp.Ignore())); d != "" {
				t.Fatalf("%+v: %s", asks[i], d)
			}
			counts[0]++
			counts[1] += got[i].drafted
			counts[2] += got[i].accepted
			counts[3] += got[i].cached
		}
		counts[4] += int(e.Stats().Preempted)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
