package hearth

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// leftBehind are the words that docs/ARCHITECTURE.md ("Words") has replaced, and the packages that they were of: "" for all.
var leftBehind = map[string]string{
	"":                                "aloft cruise cruises dictate dictates ditch flier flies flown graft grafted grafts steer steered steering steers",
	"engine":                          "course courses settle settled settles",
	"kv sched":                        "cut cuts forget forgets settle settled settles",
	"remote catalog":                  "bury buried child children course courses",
	"wire wire/openai wire/anthropic": "folding folds folded",
}

var wordsOf = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// TestWords: a word that was left behind comes back neither as a part of a name nor in a comment.
func TestWords(t *testing.T) {
	goFiles(t, func(path string, f *ast.File) {
		room := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "internal/")
		gone := map[string]bool{}
		for rooms, words := range leftBehind {
			if rooms == "" || slices.Contains(strings.Fields(rooms), room) {
				for _, w := range strings.Fields(words) {
					gone[w] = true
				}
			}
		}
		check := func(where, text string) {
			for _, w := range wordsOf.FindAllString(text, -1) {
				if gone[strings.ToLower(w)] {
					t.Errorf("%s: %q in %q: docs/ARCHITECTURE.md has the word for it (Words)", path, w, where)
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				check(id.Name, id.Name)
			}
			return true
		})
		for _, c := range f.Comments {
			check(c.Text(), c.Text())
		}
	})
}
