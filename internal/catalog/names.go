package catalog

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hearth/internal/chat"
)

// aliases are names that mean the loaded model because clients have them built in. A star stands for any text.
var aliases = []string{
	"default",
	"default_model", // mlx-lm's default
	"local",
	"claude-*", // clients of the Anthropic API
}

// hosted are names of models that only OpenAI serves, as its clients have them built in; o and a digit are others.
var hosted = []string{"gpt-*", "chatgpt-*", "codex-*", "text-davinci-*"}

// isHosted reports such names, also with the vendor in front, as gateways write them. gpt-oss can be served here, so its names
// mean itself.
func isHosted(name string) bool {
	name = strings.TrimPrefix(strings.ToLower(name), "openai/")
	if strings.HasPrefix(name, "gpt-oss") {
		return false
	}
	return len(name) > 1 && name[0] == 'o' && '0' <= name[1] && name[1] <= '9' ||
		slices.ContainsFunc(hosted, func(pattern string) bool { return matchGlob(pattern, name) })
}

// names decides which model a client means.
type names struct {
	any    bool
	guess  bool     // names of hosted models and deployments mean the model: there is no other that they could mean
	exact  []string // id first
	path   string   // absolute folder, "" for the embedded model
	served string   // what hearth serve is given for it
}

// newNames collects what the model of src answers to. Served names replace its id towards clients; the id still works.
func newNames(src *Source, served []string, any bool) names {
	n := names{any: any, path: src.Path, served: cmp.Or(src.Path, src.ID)}
	for _, s := range append(slices.Clone(served), src.ID, src.ID[strings.LastIndex(src.ID, "/")+1:], src.Path, filepath.Base(src.Path)) {
		if s != "" && s != "." && !slices.Contains(n.exact, s) {
			n.exact = append(n.exact, s)
		}
	}
	if s := chat.ClaudeName(n.id()); !slices.Contains(n.exact, s) { // before any rule about names with claude or haiku in them
		n.exact = append(n.exact, s)
	}
	return n
}

// id is what clients are shown.
func (n *names) id() string { return n.exact[0] }

// is reports whether a name is the model's own.
func (n *names) is(name string) bool {
	return slices.Contains(n.exact, name) || n.path != "" && samePath(name, n.path)
}

// find is nil if name means the loaded model, else a NotFound error. It is guessed where that is no name of the model's: what
// OpenAI calls its models, or whatever the owner of an Azure deployment calls that.
func (n *names) find(name string, deployment bool) (guessed bool, _ error) {
	if n.any || name == "" || n.is(name) {
		return false, nil
	}
	for _, a := range aliases {
		if matchGlob(a, name) {
			return false, nil
		}
	}
	if n.guess && (deployment || isHosted(name)) {
		return true, nil
	}
	how := "the server's flag --any-model accepts every name"
	if model, word := shellWord(n.served), shellWord(name); model != "" && word != "" && !strings.Contains(name, ",") {
		how = fmt.Sprintf("for this one too start it with: hearth serve %s --served-model-name %s; --any-model accepts every name", model, word)
	}
	return false, &chat.Error{Kind: chat.NotFound, Param: "model", Code: "model_not_found",
		Msg: fmt.Sprintf("%s is not served here; the model is %q (names that always work: default, local; %s)", shown(name), n.id(), how)}
}

// shown quotes a client's name for an error text, shortened.
func shown(name string) string {
	const most = 200
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

// shellWord is s as a shell reads it back, "" for what nobody should paste.
func shellWord(s string) string {
	const most = 100
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '\'' || r == utf8.RuneError }
	switch {
	case s == "" || len(s) > most || s[0] == '-' || strings.ContainsFunc(s, odd):
		return ""
	case strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:/@+") != "":
		return "'" + s + "'"
	}
	return s
}

func samePath(name, path string) bool {
	if !strings.ContainsRune(name, filepath.Separator) {
		return false
	}
	abs, err := filepath.Abs(name)
	return err == nil && abs == path
}

// matchGlob compares with one pattern; a star matches any text, the empty one included.
func matchGlob(pattern, s string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	return len(s) >= len(before)+len(after) && strings.HasPrefix(s, before) && strings.HasSuffix(s, after)
}
