package dialect_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hearth/internal/callform"
	"hearth/internal/dialect"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
)

var formCalls = flag.Int("form-calls", 40, "how many calls of each family are made from its grammar")

// unwritten are the families that have no notation, each with the reason.
var unwritten = map[string]string{
	"think": "has no form of calls",
	"plain": "has no form of calls",
}

// formTools are tools of all sorts of parameters.
const formTools = `{
"texts": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}, "mode": {"enum": ["r", "w", "a+"]},
  "lines": {"type": "array", "items": {"type": "string"}}}, "required": ["path", "content"], "additionalProperties": false},
"numbers": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 99}, "x": {"type": "number"}, "on": {"type": "boolean"},
  "none": {"type": "null"}}, "required": ["n", "on"], "additionalProperties": false},
"nested": {"type": "object", "properties": {"o": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array",
  "items": {"type": "object", "properties": {"deep": {"type": "boolean"}, "p": {"type": ["string", "null"]}}, "required": ["deep"], "additionalProperties": false}}},
  "required": ["a"], "additionalProperties": false}, "list": {"type": "array", "items": {"enum": ["x", 1, true, null, "日本"]}, "minItems": 1}},
  "required": ["o"], "additionalProperties": false},
"several": {"type": "object", "properties": {"s": {"type": ["string", "null"]}, "i": {"type": ["string", "integer"], "maxLength": 20},
  "l": {"anyOf": [{"type": "string", "minLength": 2}, {"type": "array", "items": {"type": "integer"}}]}, "b": {"type": ["boolean", "null"]}}, "additionalProperties": false},
"held": {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[a-z]{2,4}-[0-9]+$"}, "short": {"type": "string", "minLength": 1, "maxLength": 8},
  "day": {"type": "string", "format": "date"}, "only": {"const": "this \"one\" </parameter>"}}, "required": ["id", "only"], "additionalProperties": false},
"loose": {"type": "object", "properties": {"any": {}, "z": {"type": "string"}}, "additionalProperties": true},
"none": {"type": "object", "properties": {}, "additionalProperties": false}
}`

type formTool struct {
	dialect.Tool
	schema *jsonschema.Schema
}

func tools(t testing.TB) []formTool { return toolsOf(t, formTools) }

func toolsOf(t testing.TB, text string) (all []formTool) {
	t.Helper()
	n, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	for _, m := range n.Written() {
		s, err := jsonschema.Read(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, formTool{dialect.Tool{Name: m.Key, Schema: &schema.Document{Raw: raw[m.Key]}}, s})
	}
	return all
}

func plainTools(all []formTool) (list []dialect.Tool) {
	for _, t := range all {
		list = append(list, t.Tool)
	}
	return list
}

// form is the grammar of a family's calls.
func form(t testing.TB, f *dialect.Family, tools []dialect.Tool, o callform.Options) *callform.Form {
	t.Helper()
	form, err := callform.New(context.Background(), f.Notation, tools, o)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	return form
}

func formMatches(g *grammar.Grammar, text string) bool {
	budget := grammar.NewBudget(1)
	for range text {
		budget.Token()
	}
	return g.Matches(text, budget) && !budget.Spent()
}

// read reads a reply as a server does that held it to its form, and gives its only call.
func read(f *dialect.Family, tools []dialect.Tool, reply string) (name, args string, err error) {
	p := f.New(dialect.Options{Tools: tools, NoRepair: true})
	pieces := p.Finish(p.Feed(nil, reply))
	var kinds []dialect.Kind
	for _, p := range pieces {
		if len(kinds) == 0 || p.Kind != dialect.ToolArgs || kinds[len(kinds)-1] != p.Kind {
			kinds = append(kinds, p.Kind)
		}
		switch p.Kind {
		case dialect.ToolStart:
			name = p.Text
		case dialect.ToolArgs:
			args += p.Text
		}
	}
	if !slices.Equal(kinds, []dialect.Kind{dialect.ToolStart, dialect.ToolArgs, dialect.ToolEnd}) {
		return "", "", fmt.Errorf("is read as %v", pieces)
	}
	return name, args, nil
}

// spell is a value as a notation writes it within a call.
func spell(args dialect.Args, v *schema.Node, quote string) string {
	var parts []string
	comma, colon := ", ", ": "
	if args == dialect.ArgsMarked {
		comma, colon = ",", ":"
	}
	switch k := v.Kind(); k {
	case schema.Array:
		for i := range v.Items {
			parts = append(parts, spell(args, &v.Items[i], quote))
		}
		return "[" + strings.Join(parts, comma) + "]"
	case schema.Object:
		for _, m := range v.Written() {
			key := m.Key
			if args != dialect.ArgsMarked {
				key = quoted(key)
			}
			parts = append(parts, key+colon+spell(args, m, quote))
		}
		return "{" + strings.Join(parts, comma) + "}"
	case schema.String:
		if args == dialect.ArgsMarked {
			return quote + v.Text + quote
		}
		return quoted(v.Text)
	default:
		if word := map[string]string{"true": "True", "false": "False", "null": "None"}[v.Text]; word != "" && args == dialect.ArgsPython {
			return word
		}
		return v.Text
	}
}

// quoted is a string of JSON, with an escape for what needs one and no other.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return strings.NewReplacer("\u2028", "\u2028", `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(b.String(), "\n"))
}

// write writes a call as a family does.
func write(w dialect.Writer, f *dialect.Family, name string, args *schema.Node) string {
	var params []dialect.Param
	for _, m := range args.Written() {
		var v any = json.Number(spell(f.Notation.Args, m, f.Notation.Mark))
		if m.Kind() == schema.String && (f.Notation.Args == dialect.ArgsTags || f.Notation.Args == dialect.ArgsMarked) {
			v = m.Text
			if f.Notation.Trim && !strings.Contains(f.Notation.Param, "$value\n") && strings.Trim(m.Text, "\r\n") != m.Text {
				v = "\n" + m.Text + "\n"
			}
		}
		params = append(params, dialect.Param{Name: m.Key, Value: v})
	}
	return w.Call(name, params)
}

// writerOf is the way of a family that its notation has.
func writerOf(t testing.TB, f *dialect.Family) dialect.Writer {
	t.Helper()
	tool := dialect.Tool{Name: "f"}
	g := form(t, f, []dialect.Tool{tool}, callform.Options{One: true})
	for _, w := range dialect.Writers() {
		if w.Family == f.Name && formMatches(g.Grammar, w.Call("f", nil)) {
			return w
		}
	}
	t.Fatalf("%s: nothing that its writers write follows its notation", f.Name)
	return dialect.Writer{}
}

// eachForm runs a test for every family with a notation.
func eachForm(t *testing.T, test func(t *testing.T, f *dialect.Family)) {
	for _, f := range dialect.Families {
		if unwritten[f.Name] == "" {
			t.Run(f.Name, func(t *testing.T) { test(t, f) })
		}
	}
}

// TestNotations: every family says how it writes calls, or why not, and what a forced call begins with follows that.
func TestNotations(t *testing.T) {
	all := append(plainTools(tools(t)), dialect.Tool{Name: oddName})
	for _, f := range dialect.Families {
		has := f.Notation.Args != 0
		if why := unwritten[f.Name]; has != (why == "") {
			t.Errorf("%s has a notation: %v, but %q", f.Name, has, why)
		}
		if !has {
			continue
		}
		g := form(t, f, all, callform.Options{})
		v := grammar.NewVocab(0, nil)
		names := []string{"", "texts"}
		if strings.Contains(f.Notation.Call, "$quoted") {
			names = append(names, oddName)
		}
		for _, name := range names {
			m := v.Matcher(g.Grammar, grammar.NewBudget(1))
			if begin := f.Force(name); !m.AcceptBytes([]byte(begin)) {
				t.Errorf("%s: a call of %q that is forced to begin with %q does not follow the notation", f.Name, name, begin)
			}
		}
	}
}

// oddName has what encoders escape that need not.
const oddName = "R&D <\"x\">\x7f\u2028é"

// TestWrittenCalls: what a family's writer writes follows the grammar, byte by byte, and is read as what was written.
func TestWrittenCalls(t *testing.T) {
	all := tools(t)
	eachForm(t, func(t *testing.T, f *dialect.Family) {
		w := writerOf(t, f)
		g := form(t, f, plainTools(all), callform.Options{})
		for i := range 200 {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			tool := all[i%len(all)]
			args := randomArgs(r, tool.Name, strings.Count(f.Notation.Param, "$key") < 2)
			n, err := schema.Parse([]byte(args))
			if err != nil {
				t.Fatal(err)
			}
			if v := tool.schema.Checker(true).Check(context.Background(), n); v != jsonschema.Valid {
				t.Fatalf("%s is not valid", args)
			}
			text := write(w, f, tool.Name, n)
			if !formMatches(g.Grammar, text) {
				m := grammar.NewVocab(0, nil).Matcher(g.Grammar, grammar.NewBudget(1))
				at := 0
				for at < len(text) && m.AcceptBytes([]byte{text[at]}) {
					at++
				}
				t.Fatalf("%q does not follow the grammar, from %q on", text, text[at:])
			}
			name, got, err := read(f, plainTools(all), text)
			if err != nil || name != tool.Name || !sameJSON(t, got, args) {
				t.Fatalf("%q: %v, %s(%s), not %s", text, err, name, got, args)
			}
			if i%10 > 0 {
				continue
			}
			if two := text + text; f.Notation.Between == "" && f.Notation.Close == "" && f.Notation.Open == "" && !formMatches(g.Grammar, two) {
				t.Fatalf("%q are two calls", two)
			}
		}
	})
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var texts []string
	for _, s := range []string{a, b} {
		var v any
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(raw))
	}
	return texts[0] == texts[1]
}

// markup are pieces of texts, none of which ends a value where a letter stands between them.
var markup = []string{"</parameter>", "]]>", "<parameter=x>", "</function>", "<tool_call>", "</tool_call>", "<![CDATA[", "\n", "\n\n", "\t", `"`, `\`, "'", "é", "日本", "😀",
	"{", "}", "[", "]", ",", ":", "&lt;", "null", "12", "True", "```", "</arg_value>", "<arg_key>", "<|im_end|>", "<|", "|>", "   ", "<", ">", "\u2028", "</param>", "</invoke>"}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString("w" + markup[r.IntN(len(markup))])
	}
	if b.Len() == 0 {
		return ""
	}
	return b.String() + "w"
}

// randomArgs are arguments of one of formTools, in the schema's order. More is whether there may be some that it does not name.
func randomArgs(r *rand.Rand, tool string, more bool) string {
	var members []string
	add := func(required bool, name string, values ...any) {
		if !required && r.IntN(2) == 0 {
			return
		}
		v := values[r.IntN(len(values))]
		text := ""
		switch x := v.(type) {
		case json.Number:
			text = string(x)
		case string:
			text = quoted(x)
		default:
			raw, err := json.Marshal(x)
			if err != nil {
				panic(err)
			}
			text = string(raw)
		}
		members = append(members, quoted(name)+": "+text)
	}
	raw := func(s string) json.Number { return json.Number(s) }
	s := func() string { return randomText(r) }
	switch tool {
	case "texts":
		add(true, "path", s())
		add(true, "content", s(), "", "true", "123", "null", "[1]", `{"a": 1}`)
		add(false, "mode", "r", "a+")
		add(false, "lines", raw("[]"), raw("["+quoted(s())+", "+quoted(s())+"]"))
	case "numbers":
		add(true, "n", 1+r.IntN(99))
		add(false, "x", raw("-1.5"), raw("0"), raw("12"), raw("1e5"))
		add(true, "on", true, false)
		add(false, "none", nil)
	case "nested":
		add(true, "o", raw(`{"a": `+quoted(s())+`}`), raw(`{"a": `+quoted(s())+`, "b": []}`),
			raw(`{"a": "", "b": [{"deep": true}, {"deep": false, "p": null}, {"deep": false, "p": `+quoted(s())+`}]}`))
		add(false, "list", raw(`["x", 1, true, null, "日本"]`), raw(`[1]`))
	case "several":
		add(false, "s", nil, "wo", "a null", s())
		add(false, "i", 7, "seven 7", "[1]")
		add(false, "l", "word", raw("[1, 2]"), raw("[]"))
		add(false, "b", nil, true)
	case "held":
		add(true, "id", "ab-1", "abcd-123456")
		add(false, "short", "x", "12345678", "日本")
		add(false, "day", "2024-02-29")
		add(true, "only", `this "one" </parameter>`)
	case "loose":
		add(false, "any", raw(`["a", {"b": 1}]`), raw(`{}`), s())
		add(false, "z", s())
		if !more {
			break
		}
		add(false, "other", raw(`{"k": [true, null]}`), "text")
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// walker makes texts of a grammar, token by token, from tokens of one character, some markup, what a notation consists of, and
// others that end something.
type walker struct {
	tokens []string
	shapes map[string]bool // that end what is open
	ends   []string        // that end a value and begin what follows it
	begins []int32         // what text is full of that need not end before
	least  int             // that many tokens
	vocab  *grammar.Vocab
}

func newWalker(n *dialect.Notation, shapes ...string) *walker {
	w := &walker{shapes: map[string]bool{}}
	add := func(token string, shape bool) {
		if token == "" {
			return
		}
		if !slices.Contains(w.tokens, token) {
			w.tokens = append(w.tokens, token)
		}
		w.shapes[token] = w.shapes[token] || shape
	}
	for c := ' '; c <= '~'; c++ {
		add(string(c), strings.ContainsRune(`"}])`, c))
	}
	for _, s := range markup {
		add(s, false)
	}
	for _, s := range shapes {
		add(s, true)
	}
	for _, text := range []string{n.Open, n.Call, n.Close, n.Param, n.Mark, "]]>"} {
		for _, c := range text {
			add(string(c), false)
		}
		for _, s := range strings.Split(text, "$") {
			for _, word := range []string{"name", "quoted", "args", "number", "id", "key", "value", "kind", "[", "]", "|"} {
				s = strings.TrimPrefix(s, word)
			}
			add(s, strings.ContainsAny(s, "/]})|>"))
			add(strings.TrimSpace(s), strings.ContainsAny(s, "/]})|>"))
		}
	}
	if _, behind, ok := strings.Cut(n.Param, "$value"); ok { // tokens across the end of a value
		behind = strings.NewReplacer("$[", "", "$]", "").Replace(behind)
		_, end, _ := strings.Cut(n.Call, "$args")
		param, _, _ := strings.Cut(n.Param, "$")
		w.ends = []string{behind + end, behind + param}
		for _, s := range w.ends {
			add(s, true)
		}
	}
	w.vocab = grammar.NewVocab(len(w.tokens), func(id int32) []byte { return []byte(w.tokens[id]) })
	return w
}

// walk is a text of a grammar; not ok is one that did not end.
func (w *walker) walk(g *grammar.Grammar, r *rand.Rand) (text string, ok bool) {
	budget := grammar.NewBudget(1)
	m := w.vocab.Matcher(g, budget)
	var b strings.Builder
	for n := range 1500 {
		done := m.Done()
		if done && n >= w.least && r.IntN(3) == 0 {
			return b.String(), true
		}
		mask := m.Allowed()
		has := func(id int32) bool { return mask != nil && mask[id/64]>>(id%64)&1 == 1 }
		var some, shapes []int32
		for id := range w.tokens {
			if has(int32(id)) {
				if some = append(some, int32(id)); w.shapes[w.tokens[id]] {
					shapes = append(shapes, int32(id))
				}
			}
		}
		if len(some) == 0 {
			return b.String(), m.Done()
		}
		if len(shapes) > 0 && (n > 500 || r.IntN(8) == 0) {
			some = shapes
		}
		if begins := slices.DeleteFunc(slices.Clone(w.begins), func(id int32) bool { return !has(id) }); done && len(begins) > 0 && r.IntN(3) > 0 {
			some = begins
		}
		id := some[r.IntN(len(some))]
		for _, i := range shapes {
			if n > 500 && slices.Contains(w.ends, w.tokens[i]) {
				id = i
				break
			}
		}
		if !m.Accept(id) {
			panic("a token that may come is not taken")
		}
		budget.Token()
		b.WriteString(w.tokens[id])
	}
	return b.String(), m.Done()
}

// TestCallsOfGrammars: what follows a family's grammar its parser reads as one call, of a declared tool and with arguments
// that are valid; written again it means the same.
func TestCallsOfGrammars(t *testing.T) {
	all := tools(t)
	eachForm(t, func(t *testing.T, f *dialect.Family) { callsOfGrammar(t, f, all) })
}

func callsOfGrammar(t *testing.T, f *dialect.Family, all []formTool) {
	w, walker := writerOf(t, f), newWalker(f.Notation)
	var forms []*callform.Form
	for _, tool := range all {
		forms = append(forms, form(t, f, []dialect.Tool{tool.Tool}, callform.Options{One: true}))
	}
	forms = append(forms, form(t, f, plainTools(all), callform.Options{One: true}))
	ended, rewritten := 0, 0
	for i := range *formCalls {
		r := rand.New(rand.NewPCG(2, uint64(i)))
		g := forms[i%len(forms)]
		text, ok := walker.walk(g.Grammar, r)
		if !ok {
			continue
		}
		ended++
		name, args, err := read(f, plainTools(all), text)
		if err != nil {
			t.Fatalf("%q %v", text, err)
		}
		at := slices.IndexFunc(all, func(t formTool) bool { return t.Name == name })
		n, err := schema.Parse([]byte(args))
		if at < 0 || err != nil {
			t.Fatalf("%q: %v, %s(%s)", text, err, name, args)
		}
		if v := all[at].schema.Checker(true).Check(context.Background(), n); v != jsonschema.Valid {
			t.Fatalf("%q: %s(%s) is %v", text, name, args, v)
		}
		again := write(w, f, name, n)
		if !formMatches(g.Grammar, again) {
			continue // a text that begins or ends with a line end, say, of which the writer knows one spelling
		}
		rewritten++
		if _, got, err := read(f, plainTools(all), again); err != nil || !sameJSON(t, got, args) {
			t.Fatalf("%q: %s, and again %q: %v, %s", text, args, again, err, got)
		}
	}
	if ended < *formCalls*9/10 || rewritten < ended*9/10 {
		t.Errorf("of %d texts %d ended, of which %d could be written again", *formCalls, ended, rewritten)
	}
	if testing.Verbose() {
		t.Logf("%d ended, %d written again", ended, rewritten)
	}
}

// TestRepliesOfGrammars: what the parser reads of a reply that is free but for calls are calls of declared tools with arguments
// that are valid, each to its end, whatever else is in it: marks of the family, calls in other notations, and parts of them.
func TestRepliesOfGrammars(t *testing.T) {
	all := tools(t)[:5]
	eachForm(t, func(t *testing.T, f *dialect.Family) {
		w := newWalker(f.Notation)
		var begins []string
		for _, tool := range []string{"", "texts", "numbers", "nobody"} {
			begins = append(begins, f.Force(tool))
		}
		args, err := schema.Parse([]byte(`{"n": 100, "x": [1]}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range dialect.Writers() { // no reader takes them for what the tools want
			begins = append(begins, write(of, f, "numbers", args))
		}
		for _, m := range slices.Concat(f.Markers, begins, []string{"{", `{"name"`, ` : "`, `"numbers"`, `"arguments"`, "[numbers(", "to=numbers", " to=", "functions.", "assistant", "numbers", "\n"}) {
			for cut := range min(len(m), 3) {
				for _, part := range []string{m[:len(m)-cut], m[cut:], m[:len(m)/2], m[len(m)/2:]} {
					if part == "" || len(part) > 1<<10 {
						continue
					}
					if !slices.Contains(w.tokens, part) {
						w.tokens = append(w.tokens, part)
					}
					w.begins = append(w.begins, int32(slices.Index(w.tokens, part)))
				}
			}
		}
		w.vocab = grammar.NewVocab(len(w.tokens), func(id int32) []byte { return []byte(w.tokens[id]) })
		calls := 0
		for _, o := range []callform.Options{{}, {One: true}, {Within: true}} {
			if o.Begins = f.Beginnings(); o.Within && f.Open == "" {
				continue
			}
			g := form(t, f, plainTools(all), o)
			for i := range *formCalls / 2 {
				w.least = 20 * (i % 3)
				text, ok := w.walk(g.Grammar, rand.New(rand.NewPCG(3, uint64(i))))
				if !ok {
					continue
				}
				n := checkReply(t, f, dialect.Options{Tools: plainTools(all), NoRepair: true, InReasoning: o.Within}, all, text)
				if calls += n; o.One && n > 1 {
					t.Fatalf("%q has %d calls", text, n)
				}
			}
		}
		if testing.Verbose() {
			t.Logf("%d calls", calls)
		}
	})
}

// checkReply reads a reply and counts its calls.
func checkReply(t *testing.T, f *dialect.Family, o dialect.Options, all []formTool, text string) (calls int) {
	t.Helper()
	p := f.New(o)
	name, args := "", ""
	for _, p := range p.Finish(p.Feed(nil, text)) {
		switch p.Kind {
		case dialect.ToolStart:
			if name != "" {
				t.Fatalf("%q: a call of %s has no end", text, name)
			}
			name, args = p.Text, ""
		case dialect.ToolArgs:
			args += p.Text
		case dialect.ToolEnd:
			at := slices.IndexFunc(all, func(t formTool) bool { return t.Name == name })
			n, err := schema.Parse([]byte(args))
			if at < 0 || err != nil || all[at].schema.Checker(true).Check(context.Background(), n) != jsonschema.Valid {
				t.Fatalf("%q: %s(%s), %v", text, name, args, err)
			}
			name = ""
			calls++
		}
	}
	if name != "" {
		t.Fatalf("%q: a call of %s has no end", text, name)
	}
	return calls
}

// TestNearMisses: a wrong name, a parameter too few or of another type, and a call that does not end do not follow the grammar.
func TestNearMisses(t *testing.T) {
	tool := dialect.Tool{Name: "get_weather", Schema: &schema.Document{Raw: []byte(`{"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]},
		"days": {"type": "integer", "maximum": 9}, "fine": {"type": "boolean"}}, "required": ["city", "days"], "additionalProperties": false}`)}}
	eachForm(t, func(t *testing.T, f *dialect.Family) {
		w := writerOf(t, f)
		g := form(t, f, []dialect.Tool{tool}, callform.Options{One: true})
		call := func(name, args string) string {
			n, err := schema.Parse([]byte(args))
			if err != nil {
				t.Fatal(err)
			}
			return write(w, f, name, n)
		}
		good := call("get_weather", `{"city": "Rome", "days": 3}`)
		if !formMatches(g.Grammar, good) {
			t.Fatalf("%q does not follow the grammar", good)
		}
		for _, bad := range []string{
			call("get_weathe", `{"city": "Rome", "days": 3}`), call("get_weather_", `{"city": "Rome", "days": 3}`), call("GET_WEATHER", `{"city": "Rome", "days": 3}`),
			call("get_weather", `{"city": "Rome"}`), call("get_weather", `{"days": 3}`), call("get_weather", `{}`),
			call("get_weather", `{"city": "Oslo", "days": 3}`), call("get_weather", `{"city": "Rome", "days": "many"}`),
			call("get_weather", `{"city": "Rome", "days": 10}`), call("get_weather", `{"city": "Rome", "days": 3, "fine": 1}`),
			call("get_weather", `{"city": "Rome", "days": 3, "other": 1}`), call("get_weather", `{"city": "Rome", "city": "Rome", "days": 3}`),
			call("get_weather", `{"city": "Rome", "days": [3]}`), good + good, good + "x", "x" + good,
		} {
			if bad != good && formMatches(g.Grammar, bad) {
				t.Errorf("%q follows the grammar", bad)
			}
		}
		ends := 0
		for at := range good {
			if formMatches(g.Grammar, good[:at]) {
				ends++
			}
		}
		if ends > 0 && !strings.HasPrefix(f.Notation.Close, "$[") {
			t.Errorf("%d beginnings of %q follow the grammar", ends, good)
		}
	})
}

// TestMarkedTokens: where a part of the notation is a token of its own the grammar asks for it, and no text stands for it.
func TestMarkedTokens(t *testing.T) {
	eachForm(t, func(t *testing.T, f *dialect.Family) {
		marks := map[string]string{}
		var pairs []string
		for i, m := range f.Markers {
			marks[m] = grammar.Mark(int32(i))
			pairs = append(pairs, m, marks[m])
		}
		w, literal := writerOf(t, f), strings.NewReplacer(pairs...).Replace
		tool := dialect.Tool{Name: "f", Schema: &schema.Document{Raw: []byte(`{"type": "object", "properties": {"s": {"type": "string"}}, "additionalProperties": false}`)}}
		g := form(t, f, []dialect.Tool{tool}, callform.Options{Literal: literal})
		for s, ok := range map[string]bool{"a text": true, "a " + grammar.Mark(0) + " text": len(f.Markers) == 0} {
			text := literal(w.Call("f", nil))
			if ok && !formMatches(g.Grammar, text) {
				t.Errorf("%q does not follow the grammar", text)
			}
			n, err := schema.Parse([]byte(`{"s": "X"}`))
			if err != nil {
				t.Fatal(err)
			}
			if text = strings.Replace(literal(write(w, f, "f", n)), "X", s, 1); formMatches(g.Grammar, text) != ok {
				t.Errorf("%q follows the grammar: %v", text, !ok)
			}
		}
		if plain := w.Call("f", nil); literal(plain) != plain && formMatches(g.Grammar, plain) {
			t.Errorf("%q has texts where tokens belong", plain)
		}
	})
}

// FuzzForms: any text in any family's grammar of a few tools is read as a call that is valid, and no schema makes it panic.
func FuzzForms(f *testing.F) {
	f.Add(uint16(0), `{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}`, uint64(1))
	f.Add(uint16(5), `{"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 3}]}, "b": {}}}`, uint64(2))
	f.Add(uint16(14), `{"type": "object", "patternProperties": {"^x": {"type": "array"}}, "additionalProperties": {"type": "boolean"}}`, uint64(3))
	f.Fuzz(func(t *testing.T, family uint16, raw string, seed uint64) {
		of := dialect.Families[int(family)%len(dialect.Families)]
		root, err := schema.Parse([]byte(raw))
		if err != nil || unwritten[of.Name] != "" || len(raw) > 1<<12 {
			return
		}
		tool := dialect.Tool{Name: "f", Schema: &schema.Document{Raw: []byte(raw)}}
		g, err := callform.New(context.Background(), of.Notation, []dialect.Tool{tool}, callform.Options{One: true})
		if err != nil {
			return
		}
		text, ok := newWalker(of.Notation).walk(g.Grammar, rand.New(rand.NewPCG(seed, 0)))
		if !ok {
			return
		}
		if _, args, err := read(of, []dialect.Tool{tool}, text); err != nil {
			t.Fatalf("%s: %q %v", of.Name, text, err)
		} else if n, err := schema.Parse([]byte(args)); err != nil {
			t.Fatalf("%s: %q: %s: %v", of.Name, text, args, err)
		} else if s, err := jsonschema.Read(context.Background(), root); len(g.Unheld) == 0 && err == nil && s.Checker(true).Check(context.Background(), n) == jsonschema.Invalid {
			t.Fatalf("%s: %q: %s is not valid", of.Name, text, args)
		}
	})
}
