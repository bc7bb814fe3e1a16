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

// TestInputs: what follows the grammar of a tool's only text in a family's notation its parser reads as a call whose text is of
// that grammar, and texts that hold no tags may be written. Masks are what each token by itself says.
func TestInputs(t *testing.T) {
	const raw = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`
	for name, in := range inputs {
		tool := dialect.Tool{Name: "f", Schema: &schema.Document{Raw: []byte(raw)}}
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
				g, w, walker := form(t, f, []dialect.Tool{tool}, o), writerOf(t, f), newWalker(f.Notation, `\n`, "\n", "end")
				inputOf := func(text string) string {
					_, args, err := read(f, []dialect.Tool{tool}, text)
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
