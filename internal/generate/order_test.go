package generate

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stages are the package's files as they are built on each other. A file may use what its own stage and those before it declare.
var stages = []string{
	"engine",
	"config places pictures template given digests prepared traits form preamble turns media images fit told vars arguments switches ends output",
	"prompt seen render inline replay draft clock raw infill marks sampling prediction",
	"forms stretch answer calls constrain",
	"choice owncalls speech stop tape echo loop",
	"generate explain",
}

// uses are the names that files use of later stages, as "a.go: f uses g of b.go".
func uses(fset *token.FileSet, files []*ast.File, info *types.Info, pkg *types.Package, stage map[string]int) []string {
	found := map[string]bool{}
	for _, f := range files {
		from := fset.Position(f.Pos()).Filename
		for _, d := range f.Decls {
			in := "a declaration"
			if fn, ok := d.(*ast.FuncDecl); ok {
				in = fn.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok || info.Uses[id] == nil || info.Uses[id].Pkg() != pkg {
					return true
				}
				if to := fset.Position(info.Uses[id].Pos()).Filename; stage[to] > stage[from] {
					found[fmt.Sprintf("%s: %s uses %s of %s", from, in, id.Name, to)] = true
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// TestOrder: what comes first knows nothing of what comes after it. What a template can render is found out without a prompt, a
// prompt is made without a reply, and a reply is read without the Generator.
func TestOrder(t *testing.T) {
	stage := map[string]int{}
	for i, s := range stages {
		for _, name := range strings.Fields(s) {
			stage[name+".go"] = i
		}
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, "_test.go") }) {
		if _, ok := stage[name]; !ok {
			t.Errorf("%s is in none of the stages", name)
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	export := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		export[path] = file
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := conf.Check("hearth/internal/generate", fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range uses(fset, files, info, pkg, stage) {
		t.Error(use)
	}
	for name := range stage { // then nearly everything is out of order
		stage[name] *= -1
	}
	if n := len(uses(fset, files, info, pkg, stage)); n < 100 {
		t.Errorf("the other way round there are %d uses out of order: are they all found?", n)
	}
}
