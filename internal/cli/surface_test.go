package cli

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hearth/internal/chat"
	"hearth/internal/config"
)

var writeSurface = flag.Bool("surface", false, "write testdata/surface.txt")

// TestSurface compares what others rely on with testdata/surface.txt, so that a change of it is a line of a diff: flags, the
// help of every command, environment names, the JSON fields of every struct, header names, and messages and keys of the log.
// The last three are read from the source. Where a struct or a call stands does not matter; keys that come from tables are not
// seen, but for the sampling parameters.
func TestSurface(t *testing.T) {
	got := surface{}
	got.commands(newRootCmd())
	for i := range config.Knobs {
		k := &config.Knobs[i]
		got.add("env of --%s: %s; flags %s", k.Flag, strings.Join(k.Envs(), " "), strings.Join(k.Also, " "))
	}
	var recommended []string
	for _, p := range chat.ListedParameters {
		got.add("log key: %s", p.Name)
		if p.Recommended != 0 {
			recommended = append(recommended, p.Name+",omitempty")
		}
	}
	got.add("json: %s", strings.Join(recommended, " ")) // of show
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), "_")) {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err == nil {
			got.source(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(slices.Sorted(maps.Keys(got)), "\n") + "\n"
	golden := filepath.Join("testdata", "surface.txt")
	if *writeSurface {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if want[line] = true; !got[line] {
			t.Errorf("gone: %s", line)
		}
	}
	for line := range got {
		if !want[line] {
			t.Errorf("new (-surface takes it over): %s", line)
		}
	}
}

// surface is a set of lines.
type surface map[string]bool

func (s surface) add(format string, args ...any) {
	s[strings.TrimSpace(fmt.Sprintf(format, args...))] = true
}

// commands adds the help of cmd and of those below it, and the flags that no help shows.
func (s surface) commands(cmd *cobra.Command) {
	var help bytes.Buffer
	cmd.SetOut(&help)
	if err := cmd.Help(); err != nil {
		s.add("help of %s: %v", cmd.CommandPath(), err)
	}
	for line := range strings.Lines(help.String()) {
		s.add("help of %s: %s", cmd.CommandPath(), line)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden { // the others are in the help
			s.add("hidden flag of %s: --%s %s %s", cmd.CommandPath(), f.Name, f.Value.Type(), f.DefValue)
		}
	})
	for _, c := range cmd.Commands() {
		s.commands(c)
	}
}

var (
	headerName = regexp.MustCompile(`^[A-Z][A-Za-z]*(-[A-Z][A-Za-z]*)+$`)
	logger     = regexp.MustCompile(`^(Debug|Info|Warn|Error|LogAttrs)$`)
	attribute  = regexp.MustCompile(`^(String|Int|Int64|Uint64|Float64|Bool|Duration|Any)$`)
)

// source adds what stands in a file: tags of structs, names of headers, and what is logged.
func (s surface) source(file *ast.File) {
	http := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"net/http"` })
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			var names []string
			for _, f := range n.Fields.List {
				if f.Tag == nil {
					continue
				}
				tag, _ := strconv.Unquote(f.Tag.Value)
				if name, ok := reflect.StructTag(tag).Lookup("json"); ok {
					names = append(names, name)
				}
			}
			if names != nil {
				s.add("json: %s", strings.Join(names, " "))
			}
		case *ast.BasicLit:
			if text := literal(n); http && headerName.MatchString(text) {
				s.add("header: %s", text)
			}
		case *ast.CallExpr:
			s.call(n)
		}
		return true
	})
}

// call adds the header that a call asks for or sets, and the message and the keys that it logs.
func (s surface) call(c *ast.CallExpr) {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) == 0 {
		return
	}
	on := ""
	switch x := f.X.(type) {
	case *ast.Ident:
		on = x.Name
	case *ast.SelectorExpr:
		on = x.Sel.Name
	case *ast.CallExpr:
		if x, ok := x.Fun.(*ast.SelectorExpr); ok {
			on = x.Sel.Name
		}
	}
	first := literal(c.Args[0])
	switch method := f.Sel.Name; {
	case (on == "Header" || on == "h") && slices.Contains([]string{"Get", "Set", "Add", "Del", "Values"}, method) && first != "":
		s.add("header: %s", first)
	case on == "slog" && attribute.MatchString(method) && first != "":
		s.add("log key: %s", first)
	case strings.EqualFold(on, "log") && logger.MatchString(method):
		for i, arg := range c.Args {
			if text := literal(arg); text != "" && (i == 0 || method == "LogAttrs" || i%2 == 1) {
				s.add("log: %s", text)
			}
		}
	}
}

// literal is the text of one, "" of anything else.
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		text, _ := strconv.Unquote(l.Value)
		return text
	}
	return ""
}
