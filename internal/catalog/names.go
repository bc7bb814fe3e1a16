package catalog

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hearth/internal/chat"
)

// aliases are names that mean the loaded model because clients have them built in. A star stands for any text.
var aliases = []string{
	"default",
	"default_model", // mlx-lm's default
	"local",
	"claude-*", // clients of the Anthropic API
}

// names decides which model a client means.
type names struct {
	any   bool
	exact []string // id first
	path  string   // absolute folder, "" for the embedded model
}

// newNames collects what the model of src answers to. Served names replace its id towards clients; the id still works.
func newNames(src *Source, served []string, any bool) names {
	n := names{any: any, path: src.Path}
	for _, s := range append(slices.Clone(served), src.ID, src.ID[strings.LastIndex(src.ID, "/")+1:], src.Path, filepath.Base(src.Path)) {
		if s != "" && s != "." && !slices.Contains(n.exact, s) {
			n.exact = append(n.exact, s)
		}
	}
	return n
}

// id is what clients are shown.
func (n *names) id() string { return n.exact[0] }

// check is nil if name means the loaded model, else a NotFound error.
func (n *names) check(name string) error {
	if n.any || name == "" || slices.Contains(n.exact, name) || n.path != "" && samePath(name, n.path) {
		return nil
	}
	for _, a := range aliases {
		if match(a, name) {
			return nil
		}
	}
	const most = 200
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return &chat.Error{Kind: chat.NotFound, Param: "model", Code: "model_not_found",
		Msg: fmt.Sprintf("%q is not served here; the model is %q (names that always work: default, local; the server's flag --any-model accepts every name)", name, n.id())}
}

func samePath(name, path string) bool {
	if !strings.ContainsRune(name, filepath.Separator) {
		return false
	}
	abs, err := filepath.Abs(name)
	return err == nil && abs == path
}

// match compares with one pattern; a star matches any text, the empty one included.
func match(pattern, s string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	return len(s) >= len(before)+len(after) && strings.HasPrefix(s, before) && strings.HasSuffix(s, after)
}
