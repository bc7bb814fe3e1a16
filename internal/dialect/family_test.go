package dialect

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lacking are the values of what a family lacks: they alone may have empty fields. What a syntax or a notation leaves out, its
// format has not.
var lacking = []any{noThink, noCalls, noObject, noBuiltin, noSyntax, noNotation, beforeAnswer}

// emptyFields names the fields of a struct, and of those that it points to, that nobody has filled in.
func emptyFields(v reflect.Value, path string) (empty []string) {
	for i := range v.NumField() {
		f, name := v.Field(i), path+v.Type().Field(i).Name
		isLack := func(l any) bool { return reflect.ValueOf(l).Pointer() == f.Pointer() }
		switch {
		case f.IsZero():
			empty = append(empty, name)
		case f.Kind() == reflect.Pointer && f.Type() != reflect.TypeFor[*syntax]() && f.Type() != reflect.TypeFor[*Notation]() && !slices.ContainsFunc(lacking, isLack):
			empty = append(empty, emptyFields(f.Elem(), name+".")...)
		}
	}
	return empty
}

// TestFields: every field of every family is written, none of them left out.
func TestFields(t *testing.T) {
	for _, f := range append(slices.Clone(families), plain) {
		for _, name := range emptyFields(reflect.ValueOf(f).Elem(), "") {
			t.Errorf("%s: %s is empty; write none, or the value of the kind whose name begins with no", f.Name, name)
		}
	}
	for i := range reflect.TypeFor[Calls]().NumField() {
		c := *hermes.Calls
		f := Family{Name: "left out", Calls: &c}
		v := reflect.ValueOf(&c).Elem().Field(i)
		v.SetZero()
		if name := "Calls." + reflect.TypeFor[Calls]().Field(i).Name; !slices.Contains(emptyFields(reflect.ValueOf(&f).Elem(), ""), name) {
			t.Errorf("%s is left out, and nobody sees it", name)
		}
	}
}

// TestNames: a name means one family; where others share it, that one exists. Templates that come with the program have a text.
func TestNames(t *testing.T) {
	meant := map[string]string{}
	for _, f := range families {
		for _, name := range f.Names {
			if meant[name] != "" || name != normal(name) {
				t.Errorf("%s is a name of %s and of %s", name, meant[name], f.Name)
			}
			meant[name] = f.Name
		}
	}
	for _, f := range families {
		for _, name := range f.Shared {
			if meant[name] == "" || meant[name] == f.Name {
				t.Errorf("%s shares %s, which means %q", f.Name, name, meant[name])
			}
		}
	}
	for _, b := range Builtins {
		if BuiltinText(b.Name) == "" || b.About == "" {
			t.Errorf("the template %s has no text, or nobody says whose it is", b.Name)
		}
	}
}

// TestFiles: a family is in a file of its name, alone.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if id, ok := lit.Type.(*ast.Ident); !ok || id.Name != "Family" {
				return true
			}
			for _, e := range lit.Elts {
				if kv := e.(*ast.KeyValueExpr); kv.Key.(*ast.Ident).Name == "Name" {
					name, err := strconv.Unquote(kv.Value.(*ast.BasicLit).Value)
					if found[name] = true; err != nil || file != name+".go" {
						t.Errorf("%s is declared in %s", name, file)
					}
				}
			}
			return true
		})
	}
	for _, f := range append(slices.Clone(families), plain) {
		if !found[f.Name] {
			t.Errorf("no file declares %s", f.Name)
		}
	}
}

// TestPreamble: what is said beside a call stands behind the reasoning and before the first call, whatever words spell its start.
func TestPreamble(t *testing.T) {
	const thought, call = "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|>", "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>"
	const want = "<|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
	for turn, at := range map[string]int{call: 0, thought + call: len(thought), thought + call + call: len(thought), thought: -1, "": -1} {
		if got, written := harmony.Preamble(turn, "I look."); got != at || at >= 0 && written != want {
			t.Errorf("%q: %q at %d, want it at %d", turn, written, got, at)
		}
	}
	if at, _ := hermes.Preamble(call, "I look."); at != -1 {
		t.Errorf("hermes has a form of its own at %d", at)
	}
}
