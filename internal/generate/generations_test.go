package generate

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/engine/enginetest"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
	"hearth/internal/tokenizer"
)

var (
	generations    = flag.Int("generations", 120, "how many replies a model of random weights writes by random schemas")
	generationsOut = flag.String("generations-out", "", "a file that gets those that ended, each a line of JSON with its schema and its text")
)

// bounded writes random schemas whose values have an end that is not far.
type bounded struct{ *rand.Rand }

func (r bounded) pick(of ...string) string { return of[r.IntN(len(of))] }

// some are so many of what is written, after each other.
func (r bounded) some(n int, of func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = of(i)
	}
	return strings.Join(all, ", ")
}

func (r bounded) text() string {
	return r.pick(`""`, `"a"`, `"é 日本 😀"`, `"</tool_call>"`, `"<think>"`, `"]]>"`, `"a\"b\\c"`, `"\n\t\u0001"`, `"`+strings.Repeat("long ", 10)+`"`)
}

func (r bounded) value(depth int) string {
	switch n := r.IntN(7 + min(depth, 1)*2); n {
	case 7:
		return "[" + r.some(r.IntN(3), func(int) string { return r.value(depth - 1) }) + "]"
	case 8:
		return "{" + r.some(r.IntN(3), func(i int) string { return fmt.Sprintf(`"k%d": %s`, i, r.value(depth-1)) }) + "}"
	case 0, 1, 2:
		return r.text()
	default:
		return r.pick("null", "true", "false", "0", "-1.5", "1e3", "12345678901234567890", "0.1")
	}
}

func (r bounded) leaf() string {
	switch r.IntN(8) {
	case 0:
		least := r.IntN(4)
		return fmt.Sprintf(`{"type": "string", "minLength": %d, "maxLength": %d}`, least, least+r.IntN(10))
	case 1:
		return fmt.Sprintf(`{"type": "string", "maxLength": 12, "pattern": %s}`, r.pick(`"^[a-z]{1,4}-[0-9]+$"`, `"b"`, `"^(?!ab)[a-zß-ÿ]"`, `"^\\S*$"`, `"[^\"]$"`, `"^(a|ab|\"|é)+$"`))
	case 2:
		return fmt.Sprintf(`{"type": "string", "format": %s, "maxLength": 40}`, r.pick(`"date"`, `"time"`, `"date-time"`, `"uuid"`, `"ipv4"`, `"ipv6"`, `"email"`, `"hostname"`, `"duration"`, `"uri"`))
	case 3:
		return fmt.Sprintf(`{"type": "integer", "minimum": %d, "exclusiveMaximum": %d%s}`, r.IntN(20)-10, 12+r.IntN(2000), r.pick("", `, "multipleOf": 2`, `, "not": {"const": 3}`))
	case 4:
		return fmt.Sprintf(`{"type": "number"%s}`, r.pick("", `, "minimum": -1.5, "maximum": 2.25`, `, "multipleOf": 0.25`, `, "exclusiveMinimum": 0, "maximum": 1e3`))
	case 5:
		return `{"enum": [` + r.some(1+r.IntN(5), func(int) string { return r.value(2) }) + `]}`
	case 6:
		return `{"const": ` + r.value(2) + `}`
	}
	return fmt.Sprintf(`{"type": %s, "maxLength": 5, "maximum": 99, "minimum": -99}`, r.pick(`"boolean"`, `"null"`, `["boolean", "null"]`, `["string", "null"]`, `["integer", "string", "boolean"]`))
}

func (r bounded) object(depth int) string {
	var names, required, members []string
	for i := range r.IntN(5) {
		name := r.pick("a", "naïve", "a b", `q\"`, "<x>", "camelCase", "") + fmt.Sprint(i)
		names = append(names, name)
		if r.IntN(2) == 0 {
			required = append(required, `"`+name+`"`)
		}
		members = append(members, fmt.Sprintf(`"%s": %s`, name, r.schema(depth-1)))
	}
	s := fmt.Sprintf(`{"type": "object", "properties": {%s}, "required": [%s]`, strings.Join(members, ", "), strings.Join(required, ", "))
	switch r.IntN(8) {
	case 0:
		s += fmt.Sprintf(`, "additionalProperties": %s, "propertyNames": {"maxLength": 6}, "maxProperties": %d`, r.leaf(), len(names)+r.IntN(3))
	case 1:
		s += fmt.Sprintf(`, "patternProperties": {"^p[0-9]$": %s}, "additionalProperties": false, "maxProperties": %d`, r.leaf(), len(names)+2)
	case 2:
		if len(names) > 1 {
			s += fmt.Sprintf(`, "dependentRequired": {"%s": ["%s"]}`, names[0], names[1])
		}
		s += `, "additionalProperties": false`
	case 3:
		s += fmt.Sprintf(`, "additionalProperties": false, "minProperties": %d`, min(len(names), 1))
	default:
		s += `, "additionalProperties": false`
	}
	return s + "}"
}

func (r bounded) schema(depth int) string {
	if depth <= 0 {
		return r.leaf()
	}
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		return r.object(depth)
	case 4:
		least := r.IntN(3)
		return fmt.Sprintf(`{"type": "array", "items": %s, "minItems": %d, "maxItems": %d}`, r.schema(depth-1), least, least+r.IntN(4))
	case 5:
		return fmt.Sprintf(`{"type": "array", "prefixItems": [%s, %s], "items": %s, "maxItems": %d}`, r.schema(depth-1), r.leaf(), r.pick("false", r.leaf()), 1+r.IntN(3))
	case 6:
		return r.pick(`{"type": "array", "items": {"enum": [1, "two", null]}, "uniqueItems": true}`,
			fmt.Sprintf(`{"type": "array", "contains": {"const": %s}, "items": {"enum": [0, "x", %s]}, "maxItems": 4}`, r.text(), r.text()))
	case 7:
		return `{"anyOf": [` + r.some(1+r.IntN(3), func(int) string { return r.schema(depth - 1) }) + `]}`
	case 8:
		return fmt.Sprintf(`{"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}, "x": %s}, "required": ["kind", "x"], "additionalProperties": false},
			{"type": "object", "properties": {"kind": {"const": "b"}, "y": %s}, "required": ["kind"], "additionalProperties": false}, %s]}`, r.schema(depth-1), r.schema(depth-1), `{"type": "null"}`)
	case 9:
		return fmt.Sprintf(`{"allOf": [{"type": "object", "properties": {"a": %s}, "required": ["a"]}, {"properties": {"b": %s}}], "unevaluatedProperties": false}`, r.schema(depth-1), r.leaf())
	case 10:
		return fmt.Sprintf(`{"type": "object", "properties": {"k": {"enum": ["s", "n"]}, "v": {"type": ["string", "integer"], "maxLength": 4, "minimum": 0, "maximum": 9}}, "required": ["k", "v"], "additionalProperties": false,
			"if": {"properties": {"k": {"const": "s"}}}, "then": {"properties": {"v": {"type": "string"}}}, "else": {"properties": {"v": {"type": "integer"}, "w": %s}}}`, r.leaf())
	}
	return r.leaf()
}

// root is a schema with definitions, one of which may be within itself.
func (r bounded) root() string {
	if r.IntN(6) > 0 {
		return r.schema(3)
	}
	return fmt.Sprintf(`{"$defs": {"t": {"type": "object", "properties": {"v": %s, "next": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}}, "required": ["v"], "additionalProperties": false}, "u": %s},
		"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/u"}]}, "maxItems": 3}`, r.leaf(), r.schema(2))
}

// heldSchema is a schema that is held in all it says.
type heldSchema struct {
	source string
	schema *jsonschema.Schema
	*grammar.Grammar
}

func (r bounded) held(t *testing.T) *heldSchema {
	t.Helper()
	for {
		h := &heldSchema{source: r.root()}
		root, err := schema.Parse([]byte(h.source))
		if err != nil {
			t.Fatalf("%s: %v", h.source, err)
		}
		if h.schema, err = jsonschema.Read(t.Context(), root); err != nil {
			t.Fatalf("%s: %v", h.source, err)
		}
		var unheld []jsonschema.Unheld
		if h.Grammar, unheld, err = h.schema.Grammar(t.Context(), jsonschema.Options{}); err == nil && len(unheld) == 0 {
			return h
		}
	}
}

// valid tells whether a text is a value of the schema.
func (h *heldSchema) valid(text string) bool {
	v, err := schema.Parse([]byte(text))
	return err == nil && json.Valid([]byte(text)) && h.schema.Checker(true).Check(context.Background(), v) == jsonschema.Valid
}

// finished is a text of the schema that begins with a given one; not ok if there is none.
func (h *heldSchema) finished(v *grammar.Vocab, begun string, r *rand.Rand) (text string, ok bool) {
	budget := grammar.NewBudget(1)
	m := v.Matcher(h.Grammar, budget)
	if !m.AcceptBytes([]byte(begun)) {
		return "", false
	}
	out := []byte(begun)
	for !m.Done() && len(out) < len(begun)+5000 {
		budget.Token()
		mask := m.Allowed()
		var may, ends []byte
		for c := range 256 {
			if mask != nil && mask[c/64]>>(c%64)&1 == 1 {
				if may = append(may, byte(c)); strings.IndexByte(`"]}0,`, byte(c)) >= 0 {
					ends = append(ends, byte(c))
				}
			}
		}
		if len(ends) > 0 && r.IntN(4) > 0 {
			may = ends
		}
		if len(may) == 0 {
			return string(out), false
		}
		c := may[r.IntN(len(may))]
		m.Accept(int32(c))
		out = append(out, c)
	}
	return string(out), m.Done() && !budget.Spent()
}

// anySampling is what a request may ask for, also what goes against the form.
func anySampling(r *rand.Rand, tok *tokenizer.Tokenizer, ends []int32) chat.Sampling {
	s := chat.Sampling{Temperature: new(float64(r.IntN(3))), Seed: new(r.Uint64())}
	for _, set := range []func(){
		func() { s.TopK = new(1.0) },
		func() { s.MinP = new(0.9) },
		func() { s.TopP = new(0.1) },
		func() { s.RepetitionPenalty = new(1.8) },
		func() { s.PresencePenalty, s.FrequencyPenalty = new(2.0), new(-2.0) },
		func() { s.XTCProbability, s.XTCThreshold = new(0.5), new(0.0) },
		func() {
			s.LogitBias = map[int32]float64{ends[r.IntN(len(ends))]: float64(r.IntN(3)-1) * 100}
			for _, c := range `"{}[],:0 tx` {
				if r.IntN(3) == 0 {
					s.LogitBias[tok.Encode(string(c), tokenizer.EncodeOptions{})[0]] = float64(r.IntN(3)-1) * 100
				}
			}
			for range 5 {
				s.LogitBias[r.Int32N(int32(tok.Size()))] = 100
			}
		},
	} {
		if r.IntN(7) == 0 {
			set()
		}
	}
	return s
}

// TestGenerations: what a model of random weights writes by random schemas, through the engine and in whatever company, is valid
// if it ended, and else the beginning of what is valid.
func TestGenerations(t *testing.T) {
	g, _ := newTest(t, "")
	g.cfg.Engine = Over(enginetest.Random(t, g.cfg.Tokenizer.Size(), 2048))
	p := &generationsProof{t: t, g: g, bytes: grammar.NewVocab(256, func(id int32) []byte { return []byte{byte(id)} })}
	if *generationsOut != "" {
		f, err := os.Create(*generationsOut)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p.out = json.NewEncoder(f)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for p.written.Load() < int64(*generations) && !t.Failed() {
				p.request(rand.New(rand.NewPCG(p.begun.Add(1), 9)))
			}
		})
	}
	all.Wait()
	written, ended, roomy, cut, again := p.written.Load(), p.ended.Load(), p.roomy.Load(), p.cut.Load(), p.again.Load()
	t.Logf("%d replies: %d had room, of which %d ended; of the others %d ended and %d were cut; %d requests were made again in other company",
		written, roomy, roomy-cut, ended-(roomy-cut), written-ended-cut, again)
	if cut > roomy/10 || written == roomy || again == 0 {
		t.Error("too many were cut, or too few of something")
	}
}

type generationsProof struct {
	t     *testing.T
	g     *Generator
	bytes *grammar.Vocab
	mu    sync.Mutex
	out   *json.Encoder

	begun          atomic.Uint64
	written, ended atomic.Int64
	roomy, cut     atomic.Int64 // those that had room to end, and those of them that did not
	again          atomic.Int64
}

// request asks for something that r decides, and checks what comes.
func (p *generationsProof) request(r *rand.Rand) {
	t := p.t
	req := &chat.Request{Messages: []chat.Message{text(chat.User, fmt.Sprint("Hi ", r.IntN(50)))}, MaxTokens: 700, N: 1 + max(r.IntN(6)-3, 0),
		Sampling: anySampling(r, p.g.cfg.Tokenizer, p.g.stopIDs), Logprobs: r.IntN(2) == 0, Thinking: chat.Thinking{Mode: chat.Off}}
	if r.IntN(8) == 0 {
		req.Thinking = chat.Thinking{Mode: chat.On, Budget: 1 + r.IntN(9)}
	}
	if r.IntN(5) == 0 { // free ones and other forms beside
		req.MaxTokens = 100
		req.Form = []*chat.Form{nil, {}, {Kind: chat.FormChoice, Choices: []string{"yes", "no", "é"}}, {Kind: chat.FormRegex, Source: `<(a|b)>[^<]{0,9}</b>`},
			{Kind: chat.FormGBNF, Source: `root ::= "[" (root ("," root)?)? "]"`}}[r.IntN(5)]
		if _, err := outcomeOf(t, p.g, req); err != nil {
			t.Errorf("%+v: %v", req.Form, err)
		}
		return
	}
	h := bounded{r}.held(t)
	req.Form = &chat.Form{Kind: chat.FormSchema, Strict: true, Source: h.source, Path: "response_format"}
	short := r.IntN(6) == 0
	switch {
	case short && r.IntN(3) == 0:
		req.Stop = []string{`", `}
	case short:
		req.MaxTokens = 1 + r.IntN(40)
	}
	got, err := outcomeOf(t, p.g, req)
	if err != nil {
		t.Errorf("%s: %v", h.source, err)
		return
	}
	if got.form != chat.Enforced || req.Logprobs && !strings.HasPrefix(got.logprobs, got.texts[0]) {
		t.Errorf("%s: %+v", h.source, got)
	}
	for i, text := range got.texts {
		p.written.Add(1)
		ended := got.finishes[i] == chat.FinishStop
		if !short {
			p.roomy.Add(1)
		}
		if ended {
			p.ended.Add(1)
			if !h.valid(text) {
				t.Errorf("%s\nended, and is not valid: %q", h.source, text)
			}
			p.tell(h, text)
			continue
		}
		if !short {
			p.cut.Add(1)
		}
		if whole, ok := h.finished(p.bytes, text, r); !ok || !strings.HasPrefix(whole, text) || !h.valid(whole) {
			t.Errorf("%s\nwas cut (%s), and is not the beginning of what is valid: %q, %q", h.source, got.finishes[i], text, whole)
		}
	}
	if r.IntN(10) == 0 {
		p.again.Add(1)
		if other, err := outcomeOf(t, p.g, req); err != nil || !slices.Equal(other.texts, got.texts) {
			t.Errorf("%s\nonce %q, and again %q: %v", h.source, got.texts, other.texts, err)
		}
	}
}

// tell writes a reply that ended, for other validators.
func (p *generationsProof) tell(h *heldSchema, text string) {
	if p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.out.Encode(map[string]any{"schema": json.RawMessage(h.source), "text": text}); err != nil {
		p.t.Error(err)
	}
}
