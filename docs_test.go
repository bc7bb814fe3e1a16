package hearth

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declare adds the names that a file declares: functions, methods, types, fields, constants and variables.
func declare(names map[string]bool, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names[n.Name.Name] = true
		case *ast.TypeSpec:
			names[n.Name.Name] = true
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.Field:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		}
		return true
	})
}

// TestArchitecture: documents that lead people through the code name what is there. A name is written as package.Name, or as
// Type.Name in the documents' drawings; a file as package/file.go.
func TestArchitecture(t *testing.T) {
	in := map[string]map[string]bool{} // by package, and by type: what is declared beside it
	add := func(word string, names map[string]bool) {
		if in[word] == nil {
			in[word] = map[string]bool{}
		}
		maps.Copy(in[word], names)
	}
	dirs := map[string]map[string]bool{} // by folder, tests included
	note := func(path string, f *ast.File) {
		dir := filepath.Dir(path)
		if dirs[dir] == nil {
			dirs[dir] = map[string]bool{}
		}
		declare(dirs[dir], f)
	}
	goFiles(t, note)
	testFiles(t, note)
	goFiles(t, func(path string, f *ast.File) {
		names := dirs[filepath.Dir(path)]
		add(f.Name.Name, names)
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					add(s.(*ast.TypeSpec).Name.Name, names)
				}
			}
		}
	})
	files := []string{"go", "md", "json", "py", "txtar"}
	word := regexp.MustCompile(`\b([A-Za-z]\w*)((?:\.[A-Za-z]\w*)+)\b`)
	file := regexp.MustCompile("`((?:\\w+/)+\\w+\\.go)`")
	const architecture = "docs/ARCHITECTURE.md"
	docs, _ := filepath.Glob("docs/adding-*.md")
	checked := 0
	for _, doc := range append(docs, architecture) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range word.FindAllStringSubmatch(string(text), -1) {
			names := strings.Split(m[2], ".")[1:]
			if in[m[1]] == nil || slices.Contains(files, names[0]) {
				continue
			}
			for _, name := range names {
				checked++
				if !in[m[1]][name] {
					t.Errorf("%s names %s, and there is no %s beside %s", doc, m[0], name, m[1])
				}
			}
		}
		if doc != architecture { // the others name files that are to be written
			continue
		}
		for _, m := range file.FindAllStringSubmatch(string(text), -1) {
			checked++
			_, inside := os.Stat(filepath.Join("internal", m[1]))
			if _, err := os.Stat(m[1]); err != nil && inside != nil {
				t.Errorf("%s names the file %s, which is not there", doc, m[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d names were found: the documents are written in another way", checked)
	}
}

// TestGuides: the files that guides have whole are of today's packages: with them in the tree it compiles.
func TestGuides(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	block := regexp.MustCompile("(?s)```go\n((?:// Package [^\n]*\n)?package .*?)```")
	for guide, in := range map[string]string{"protocol": "internal/wire/say", "model": "internal/model"} {
		text, err := os.ReadFile("docs/adding-a-" + guide + ".md")
		if err != nil {
			t.Fatal(err)
		}
		first := block.FindSubmatch(text) // the test of a protocol comes behind it
		if first == nil {
			t.Fatalf("the guide to a %s has no file", guide)
		}
		file := filepath.Join(dir, guide+".go")
		if err := os.WriteFile(file, first[1], 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, in, guide+"_of_the_guide.go")] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-overlay", file, "./internal/wire/say", "./internal/model").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
