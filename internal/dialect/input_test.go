package dialect_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hearth/internal/callform"
	"hearth/internal/dialect"
	"hearth/internal/grammar"
	"hearth/internal/grammar/lark"
	"hearth/internal/grammar/regex"
	"hearth/internal/schema"
)

// inputs are the texts of tools of one parameter, with some that are of them.
var inputs = map[string]struct {
	text  callform.Text
	texts []string
}{
	"pattern": {asRegex(`([a-z]{1,3}|"[^"]*"|\\.|\n|[é日]|</parameter>|<[|]im_end[|]>)*`), []string{"", "ab", "\"w</parameter>w\nw\"", `\"\n\\`, "a\n日b", "\n\n", "<|im_end|>"}},
	"lines": {asLark(`
		start: "begin\n" hunk+ "end"
		hunk: "file " name "\n" line*
		name: /.+/
		line: ("+" | "-") /.*/ "\n"`),
		[]string{"begin\nfile a\n+\"x\"\\\n-\n+\t</parameter> w\nend", "begin\nfile é 日 😀\nfile b\n-'\\n'\nend", "begin\nfile </function>\nend"}},
	"nested": {asLark(`
		start: value
		value: STRING | NUMBER | "[" [value ("," value)*] "]" | "<" NAME ">" value* "</" NAME ">"
		STRING: /"([^"\\]|\\.)*"/
		NAME: /[a-z]+/
		NUMBER: /[0-9]+/`),
		[]string{`["a\n\"b\"",[1,[]],"é <b>"]`, `<b><i>1"two"</i></b>`, `""`, `"\\"`}},
	"anything": {asRegex(`(?s).*`), []string{"", "true", "12", "null", "[1]", "w\n</parameter>\nw", "<![CDATA[w", "\ttext\t"}},
}

func asRegex(pattern string) callform.Text {
	return func(_ context.Context, b *grammar.Builder) (*grammar.Expr, error) {
		return regex.Compile(b, pattern, regex.Options{Python: true})
	}
}

func asLark(text string) callform.Text {
	return func(ctx context.Context, b *grammar.Builder) (*grammar.Expr, error) { return lark.Build(ctx, b, text) }
}

// inputTool is a tool whose only parameter is a text.
var inputTool = dialect.Tool{Name: "f", Schema: &schema.Document{Raw: []byte(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`)}}

// TestInputs: what follows the grammar of a tool's only text in a family's notation its parser reads as a call whose text is of
// that grammar, and texts that hold no tags may be written. Masks are what each token by itself says.
func TestInputs(t *testing.T) {
	for name, in := range inputs {
		b := grammar.NewBuilder()
		root := b.Rule("text")
		e, err := in.text(context.Background(), b)
		if err != nil {
			t.Fatal(err)
		}
		b.Define(root, e)
		alone, err := b.Compile(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range in.texts {
			if !formMatches(alone, text) {
				t.Fatalf("%s: %q does not follow the grammar", name, text)
			}
		}
		o := callform.Options{One: true, Texts: map[string]callform.Text{"f": in.text}}
		t.Run(name, func(t *testing.T) {
			eachForm(t, func(t *testing.T, f *dialect.Family) {
				g, w, walker := form(t, f, []dialect.Tool{inputTool}, o), writerOf(t, f), newWalker(f.Notation, `\n`, "\n", "end")
				inputOf := func(text string) string {
					_, args, err := read(f, []dialect.Tool{inputTool}, text)
					if err != nil {
						t.Fatalf("%q %v", text, err)
					}
					n, err := schema.Parse([]byte(args))
					if err != nil || len(n.Members()) != 1 {
						t.Fatalf("%q: %s: %v", text, args, err)
					}
					input, _ := n.Member("input").Str()
					return input
				}
				for _, text := range in.texts {
					n, err := schema.Parse([]byte(`{"input": ` + quoted(text) + `}`))
					if err != nil {
						t.Fatal(err)
					}
					call := write(w, f, "f", n)
					switch {
					case formMatches(g.Grammar, call):
						if got := inputOf(call); got != text {
							t.Errorf("%q is read as %q", call, got)
						}
					case strings.Contains(text, "<![CDATA["):
					default:
						t.Errorf("%q does not follow the grammar", call)
					}
				}
				ended := 0
				for i := range *formCalls / 4 {
					r := rand.New(rand.NewPCG(7, uint64(i)))
					text, ok := walker.walk(g.Grammar, r)
					if !ok {
						continue
					}
					ended++
					if input := inputOf(text); !formMatches(alone, input) {
						t.Fatalf("%q: %q does not follow the grammar", text, input)
					}
					walker.check(t, g.Grammar, text, r)
				}
				if ended < *formCalls/8 {
					t.Errorf("%d of %d texts ended", ended, *formCalls/4)
				}
			})
		})
	}
}

// TestInputsHoldNoMark: no text holds what ends it, also where that is a token of its own.
func TestInputsHoldNoMark(t *testing.T) {
	for _, of := range []string{"gemma4", "functiongemma", "minimax_m3"} {
		f, _, err := dialect.Override(dialect.Choose(dialect.Evidence{}), of, "")
		if err != nil {
			t.Fatal(err)
		}
		mark := f.Notation.Mark + strings.Join(f.Notation.Never, "")
		for _, text := range []callform.Text{inputs["anything"].text, asLark("start: /(.|\\n)*/ start?")} {
			for _, literal := range []func(string) string{nil, strings.NewReplacer(mark, grammar.Mark(1)).Replace} {
				g := form(t, f, []dialect.Tool{inputTool}, callform.Options{One: true, Literal: literal, Texts: map[string]callform.Text{"f": text}})
				for input, ok := range map[string]bool{"a" + mark + "b": false, "a" + mark[1:] + "b": true} {
					n, err := schema.Parse([]byte(`{"input": "INPUT"}`))
					if err != nil {
						t.Fatal(err)
					}
					call := write(writerOf(t, f), f, "f", n)
					if literal != nil {
						call = literal(call)
					}
					if call = strings.Replace(call, "INPUT", input, 1); formMatches(g.Grammar, call) != ok {
						t.Errorf("%s: %q follows the grammar: %v", of, call, !ok)
					}
				}
			}
		}
	}
}

// FuzzInputs: a text of any grammar in Lark, in any family's notation, is read as a call whose input is of the grammar.
func FuzzInputs(f *testing.F) {
	f.Add(uint16(0), "start: /.*/", uint64(1))
	f.Add(uint16(5), "start: \"<\" NAME \">\" start* \"</\" NAME \">\"\nNAME: /[a-z]+/", uint64(2))
	f.Add(uint16(18), "start: \"begin\\n\" (\"+\" /.*/ \"\\n\")+ \"end\" start?", uint64(3))
	f.Add(uint16(23), "%import common.ESCAPED_STRING\n%ignore /[ \\n]/\nstart: ESCAPED_STRING | \"[\" start (\",\" start)* \"]\"", uint64(4))
	f.Fuzz(func(t *testing.T, family uint16, grammarText string, seed uint64) {
		of := dialect.Families[int(family)%len(dialect.Families)]
		if unwritten[of.Name] != "" || len(grammarText) > 1<<10 {
			return
		}
		alone, err := lark.Compile(context.Background(), grammarText)
		if err != nil {
			return
		}
		g, err := callform.New(context.Background(), of.Notation, []dialect.Tool{inputTool}, callform.Options{One: true, Texts: map[string]callform.Text{"f": asLark(grammarText)}})
		if err != nil { // too large, or nothing is left that may stand between tags
			return
		}
		text, ok := newWalker(of.Notation, `\n`, "\n").walk(g.Grammar, rand.New(rand.NewPCG(seed, 0)))
		if !ok {
			return
		}
		_, args, err := read(of, []dialect.Tool{inputTool}, text)
		if err != nil {
			t.Fatalf("%s: %q %v", of.Name, text, err)
		}
		n, err := schema.Parse([]byte(args))
		if err != nil {
			t.Fatalf("%s: %q: %s: %v", of.Name, text, args, err)
		}
		if input, _ := n.Member("input").Str(); !formMatches(alone, input) {
			t.Fatalf("%s: %q: %q does not follow %q", of.Name, text, input, grammarText)
		}
	})
}

// check compares masks at some places of a text with what each token by itself says.
func (w *walker) check(t *testing.T, g *grammar.Grammar, text string, r *rand.Rand) {
	t.Helper()
	budget := grammar.NewBudget(1)
	m := w.vocab.Matcher(g, budget)
	at := r.IntN(len(text))
	for i := range at {
		budget.Token()
		if !m.AcceptBytes([]byte{text[i]}) {
			t.Fatalf("%q does not follow the grammar, from %q on", text, text[i:])
		}
	}
	mask := slices.Clone(m.Allowed())
	for id, token := range w.tokens {
		fits := m.AcceptBytes([]byte(token))
		if fits {
			m.Rollback(1)
		}
		if allowed := mask != nil && mask[id/64]>>(id%64)&1 == 1; allowed != (fits && token != "") {
			t.Fatalf("%q: behind %q the token %q fits: %v", text, text[:at], token, fits)
		}
	}
}
