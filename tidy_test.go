package hearth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// source is a Go file of the program or of its tests.
type source struct {
	path string
	file *ast.File
}

// sources are all of them, read once.
var sources = sync.OnceValues(func() (all []source, err error) {
	fset := token.NewFileSet()
	for _, root := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") {
				return nil
			}
			file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			all = append(all, source{path, file})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
})

// goFiles calls f for every non-test Go file of the program, testFiles for every test file.
func goFiles(t *testing.T, f func(path string, file *ast.File))   { eachSource(t, false, f) }
func testFiles(t *testing.T, f func(path string, file *ast.File)) { eachSource(t, true, f) }

func eachSource(t *testing.T, tests bool, f func(path string, file *ast.File)) {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if strings.HasSuffix(s.path, "_test.go") == tests {
			f(s.path, s.file)
		}
	}
}

// TestPackageDocs: every package says what it owns.
func TestPackageDocs(t *testing.T) {
	documented := map[string]bool{}
	goFiles(t, func(path string, f *ast.File) {
		dir := filepath.Dir(path)
		documented[dir] = documented[dir] || f.Doc != nil && len(f.Doc.Text()) > 60
	})
	for dir, ok := range documented {
		if !ok && !strings.HasPrefix(dir, "cmd") {
			t.Errorf("%s has no package documentation of substance", dir)
		}
	}
}

// TestEnvironmentIsReadInConfigOnly: a knob that config does not know cannot be documented, listed or overridden.
func TestEnvironmentIsReadInConfigOnly(t *testing.T) {
	goFiles(t, func(path string, f *ast.File) {
		if filepath.ToSlash(filepath.Dir(path)) == "internal/config" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" {
				switch s.Sel.Name {
				case "Getenv", "LookupEnv", "Environ":
					t.Errorf("%s uses os.%s: read the environment in internal/config", path, s.Sel.Name)
				}
			}
			return true
		})
	})
}

// TestNoLargeFiles: the demo model is the only large thing in the tree, and it has a budget.
func TestNoLargeFiles(t *testing.T) {
	const limit, demoLimit = 400 << 10, 16 << 20
	var demo int64
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == ".git" || path == "bin" || path == ".venv" || path == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() {
			return nil
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(filepath.ToSlash(path), "internal/demo/model/") {
			demo += info.Size()
		} else if info.Size() > limit {
			t.Errorf("%s has %d bytes, over %d: what is it doing here?", path, info.Size(), limit)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if demo > demoLimit {
		t.Errorf("the demo model has %d bytes, its budget is %d", demo, demoLimit)
	}
}

// TestSmallStructs: what has many fields has many jobs, on the way of a request between text and tokens.
func TestSmallStructs(t *testing.T) {
	const most = 12
	tables := map[string]string{
		"generate.Config":  "settings, each of which one place reads",
		"generate.Summary": "printed as JSON, field by field",
	}
	goFiles(t, func(path string, f *ast.File) {
		if dir := filepath.Base(filepath.Dir(path)); dir != "generate" && dir != "transcript" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			fields := 0
			for _, field := range s.Fields.List {
				fields += max(len(field.Names), 1)
			}
			name := f.Name.Name + "." + spec.Name.Name
			if _, ok := tables[name]; !ok && fields > most {
				t.Errorf("%s in %s has %d fields, more than %d: give what belongs together a type of its own", name, path, fields, most)
			} else if fields > most {
				delete(tables, name)
			}
			return true
		})
	})
	for name, why := range tables {
		t.Errorf("%s (%s) needs no exception: it has %d fields or fewer", name, why, most)
	}
}

// TestCommentWidth: no line of a comment is wider than a screen.
func TestCommentWidth(t *testing.T) {
	const most = 130 // columns; a tab is four
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".venv", "bin", "dist", "testdata"}, d.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			w := utf8.RuneCountInString(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))
			if w > most && strings.HasPrefix(strings.TrimSpace(line), "// ") { // not examples, which have a tab there
				t.Errorf("%s:%d: a comment of %d columns, more than %d", path, n, w, most)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
