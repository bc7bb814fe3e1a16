// Package notationtest has what tests of several notations share.
package notationtest

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/demo"
	"hearth/internal/grammar"
	"hearth/internal/grammar/notation"
	"hearth/internal/tokenizer"
)

// Compile makes a grammar out of a text.
type Compile func(text string) (*grammar.Grammar, error)

// Forms runs a file of grammars. Each is a section NAME, with NAME/yes and NAME/no: a text a line, where \n, \t, \r and \\ are
// escapes and "" is the empty text. Those that follow the grammar are also taken token by token of the demo's vocabulary.
func Forms(t *testing.T, file string, compile Compile) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var g *grammar.Grammar
	var name string
	for _, f := range ar.Files {
		_, kind, _ := strings.Cut(f.Name, "/")
		if kind == "" {
			name = f.Name
			if g, err = compile(string(f.Data)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if g == nil || kind != "yes" && kind != "no" {
			t.Errorf("%s is not of a grammar", f.Name)
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			line = strings.TrimSuffix(line, "\n")
			text := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\\`, `\`).Replace(line)
			if line == `""` {
				text = ""
			}
			if g.Matches(text, grammar.NewBudget(1)) != (kind == "yes") {
				t.Errorf("%s: %s", f.Name, line)
			} else if kind == "yes" {
				Masks(t, f.Name, g, text)
			}
		}
	}
}

var demoTokenizer = sync.OnceValues(func() (*tokenizer.Tokenizer, error) { return tokenizer.Load(demo.FS()) })

var vocab = sync.OnceValue(func() *grammar.Vocab {
	tok, err := demoTokenizer()
	if err != nil {
		panic(err)
	}
	return grammar.NewVocab(tok.Size(), func(id int32) []byte {
		if tok.Special(id) {
			return nil
		}
		return tok.Bytes(id)
	})
})

// Masks follows a text token by token: each is among those that may come, the text may end after the last one and at no token
// before it that the grammar does not let it end at.
func Masks(t *testing.T, name string, g *grammar.Grammar, text string) {
	tok, err := demoTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	budget := grammar.NewBudget(1)
	m := vocab().Matcher(g, budget)
	so := ""
	for _, id := range tok.Encode(text, tokenizer.EncodeOptions{}) {
		if done := g.Matches(so, grammar.NewBudget(1)); done != m.Done() {
			t.Errorf("%s: after %q the text may end: %v, but that follows the grammar: %v", name, so, m.Done(), done)
		}
		if allowed := m.Allowed(); allowed == nil || allowed[id/64]>>(id%64)&1 == 0 || !m.Accept(id) {
			t.Errorf("%s: after %q the token %q is not allowed in %q", name, so, tok.Bytes(id), text)
			return
		}
		budget.Token()
		so += string(tok.Bytes(id))
	}
	if so == text && !m.Done() {
		t.Errorf("%s: after all of %q it may not end", name, text)
	}
}

// Errors runs a file of lines: a quoted grammar => its error.
func Errors(t *testing.T, file string, compile Compile) {
	table, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		text, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if !ok || line[0] == '#' {
			continue
		}
		text, err := strconv.Unquote(text)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, err := compile(text); err == nil || err.Error() != want {
			t.Errorf("%s\ngives %v", line, err)
		}
	}
}

// Bounds makes large grammars, each with the limit that its error names, "" for none.
func Bounds(t *testing.T, compile Compile, cases map[string]string) {
	for text, want := range cases {
		_, err := compile(text)
		var large *grammar.LimitError
		got := ""
		if errors.As(err, &large) {
			got = large.What
		} else if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

// Fuzz makes grammars of any texts: each is one, or an error of a known kind that names a place of the text.
func Fuzz(f *testing.F, compile Compile, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		g, err := compile(text)
		var place *notation.Error
		var large *grammar.LimitError
		switch {
		case err == nil:
			g.Matches("ab", grammar.NewBudget(1))
		case errors.As(err, &place):
			if place.Line < 1 || place.Column < 1 || place.Line > 1+strings.Count(text, "\n") {
				t.Errorf("%q: %v", text, err)
			}
		case !errors.As(err, &large) && !errors.Is(err, grammar.ErrNothing):
			t.Errorf("%q: %v", text, err)
		}
	})
}
