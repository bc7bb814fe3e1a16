package generate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNoFamilyByName: what is known of a family by its name or its marks is in package dialect, so that a new one touches nothing
// here.
func TestNoFamilyByName(t *testing.T) {
	told := map[string]bool{}
	for name, f := range everyFamily(t) {
		told[name] = true
		for _, mark := range f.Markers {
			told[mark] = true
		}
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, "_test.go") }) {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && told[s] {
					t.Errorf("%v: %q belongs to a family: ask it by a field of dialect.Family", fset.Position(lit.Pos()), s)
				}
			}
			return true
		})
	}
}
