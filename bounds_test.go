package hearth

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var writeBounds = flag.Bool("bounds", false, "write docs/bounds.md: new constants get empty columns, which somebody has to fill")

// boundName is the rule for what is a bound: a constant that says so in its name.
var boundName = regexp.MustCompile(`^([mM]ax|[mM]ost|[lL]ongest|[lL]imit)([A-Z]\w*)?$|[a-z](Limit|Max|Most)$`)

// notBounds have such a name and bound nothing.
var notBounds = map[string]string{
	"backend/mlx.fnCacheLimit":  "a number of MLX's function of that name",
	"backend/mlx.fnMax":         "likewise",
	"backend/mlx.fnMemoryLimit": "likewise",
	"backend/mlx.fnWiredLimit":  "likewise",
	"jinja.Limit":               "a kind of error",
	"tier.defaultMax":           "the default of a knob",
	"embed.defaultLimit":        "what is assumed where nobody says",
	"tokenizer.maxByteRune":     "a table's last rune",
}

// alsoBounds bound what others can meet, under names of their own.
var alsoBounds = strings.Fields(`cli.printQueue engine.answerWaits engine.busyBytes generate.probeSteps generate.runawayRun generate.runawayTokens
	grammar.burst grammar.perToken grammar/jsonschema.checkDepth grammar/jsonschema.checkSteps jinja.DefaultSteps server.idleTimeout server.readHeaderTimeout tier.queueRuns transcript.historyBytes
	transcript.promptShare watchdog.leastTicks wire.WriteTimeout wire.bodyTimeout wire.drainTimeout`)

// bound is a row of docs/bounds.md; the last two columns are written by hand.
type bound struct{ name, value, meets, test string }

// bounds are the constants under internal whose name is a bound's, a function's own behind the function's name.
func bounds(t *testing.T) map[string]bound {
	all := map[string]bound{}
	goFiles(t, func(file string, f *ast.File) {
		dir, internal := strings.CutPrefix(filepath.ToSlash(filepath.Dir(file)), "internal/")
		if !internal {
			return
		}
		add := func(n ast.Node, in string) {
			ast.Inspect(n, func(n ast.Node) bool {
				d, ok := n.(*ast.GenDecl)
				if !ok || d.Tok != token.CONST {
					return true
				}
				for _, spec := range d.Specs {
					s := spec.(*ast.ValueSpec)
					for i, id := range s.Names {
						name := dir + "." + in + id.Name
						if !slices.Contains(alsoBounds, name) && (!boundName.MatchString(id.Name) || notBounds[name] != "") {
							continue
						}
						if _, twice := all[name]; twice {
							t.Errorf("%s: there are two of %s", file, name)
						}
						var value bytes.Buffer
						if i < len(s.Values) {
							if err := printer.Fprint(&value, token.NewFileSet(), s.Values[i]); err != nil {
								t.Error(err)
							}
						}
						all[name] = bound{name: name, value: value.String()}
					}
				}
				return false
			})
		}
		for _, d := range f.Decls {
			in := ""
			if f, ok := d.(*ast.FuncDecl); ok {
				in = f.Name.Name + "."
			}
			add(d, in)
		}
	})
	return all
}

// TestBounds holds docs/bounds.md to the source: every bound has a row with its value, what meets it, and the test that reaches
// it.
func TestBounds(t *testing.T) {
	const doc = "docs/bounds.md"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	head, table, _ := strings.Cut(string(text), "|---|---|---|---|\n")
	rows := map[string]bound{}
	for line := range strings.Lines(table) {
		c := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(c) != 4 {
			t.Fatalf("%s: a row has no four columns: %s", doc, line)
		}
		name := strings.Trim(strings.TrimSpace(c[0]), "`")
		rows[name] = bound{name, strings.TrimSpace(c[1]), strings.TrimSpace(c[2]), strings.TrimSpace(c[3])}
	}
	all := bounds(t)
	for _, name := range alsoBounds {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no constant %s", name)
		}
	}
	for name := range notBounds {
		if _, ok := rows[name]; ok {
			t.Errorf("%s is a row and an exception", name)
		}
	}
	if *writeBounds {
		var b strings.Builder
		b.WriteString(head + "|---|---|---|---|\n")
		for _, name := range slices.Sorted(maps.Keys(all)) {
			row := rows[name]
			for old, was := range rows { // one that moved keeps its columns
				if _, stays := all[old]; !stays && row.name == "" && path.Ext(old) == path.Ext(name) && was.value == all[name].value {
					row = was
				}
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, all[name].value, row.meets, row.test)
		}
		if err := os.WriteFile(doc, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	tests := map[string]bool{} // by package.Name
	testFiles(t, func(file string, f *ast.File) {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil {
				tests[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "internal/")+"."+d.Name.Name] = true
			}
		}
	})
	for name, row := range rows {
		is, ok := all[name]
		switch {
		case !ok:
			t.Errorf("%s: there is no constant %s (go test . -bounds prints the table anew)", doc, name)
		case is.value != row.value:
			t.Errorf("%s: %s is %s in the source, %s there", doc, name, is.value, row.value)
		case row.meets == "" || row.test == "":
			t.Errorf("%s: %s needs what meets it and its test, or none", doc, name)
		}
		if row.test == "none" {
			continue
		}
		dir, _, _ := strings.Cut(name, ".")
		for test := range strings.SplitSeq(row.test, ", ") {
			if !strings.Contains(test, ".") {
				test = dir + "." + test
			}
			if !tests[test] {
				t.Errorf("%s: %s: there is no test %s", doc, name, test)
			}
		}
	}
	for name := range all {
		if _, ok := rows[name]; !ok {
			t.Errorf("%s has no row for %s (go test . -bounds adds it)", doc, name)
		}
	}
}
