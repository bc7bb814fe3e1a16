package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/demo"
	"hearth/internal/hub"
	"hearth/internal/model"
)

// aliases are names that mean the main model because clients have them built in. A star stands for any text.
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
		matchAny(hosted, name)
}

// textAliases are names of embedding models that clients have built in.
var textAliases = []string{"default", "default_model", "local", "text-embedding-*"}

// smallAliases come with the small model: clients give side work to models with haiku in their names.
var smallAliases = []string{"*haiku*"}

// names decides which model a client means.
type names struct {
	any     bool
	guess   bool     // names of hosted models and deployments mean the model: there is no other that they could mean
	exact   []string // id first
	aliases []string // patterns of names that clients have built in, whatever their letters' case
	path    string   // absolute folder, "" for the embedded model
	served  string   // what hearth serve is given for it
}

// newNames collects what the model of src answers to. Served names replace its id towards clients; the id still works.
func newNames(src *Source, served []string) names {
	n := names{aliases: aliases, path: src.Path, served: cmp.Or(src.Path, src.ID)}
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

// isAlias reports names that clients have built in and that mean the model.
func (n *names) isAlias(name string) bool {
	return matchAny(n.aliases, name)
}

// find is nil if name means the model, else a NotFound error. It is guessed where that is no name of the model's: what
// OpenAI calls its models, or whatever the owner of an Azure deployment calls that.
func (n *names) find(name string, deployment bool) (guessed bool, _ error) {
	if n.any || name == "" || n.is(name) || n.isAlias(name) {
		return false, nil
	}
	if n.guess && (deployment || isHosted(name)) {
		return true, nil
	}
	how := "the server's flag --any-model accepts every name"
	if served, word := shellWord(n.served), shellWord(name); served != "" && word != "" && !strings.Contains(name, ",") {
		how = fmt.Sprintf("for this one too start it with: hearth serve %s --served-model-name %s; --any-model accepts every name", served, word)
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

// matchAny reports whether one of the patterns matches.
func matchAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchGlob(pattern, s) })
}

// matchGlob compares with a pattern, in which a star matches any text, the empty one included.
func matchGlob(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, first)
	for ok {
		if first, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(s, first)
		}
		_, s, ok = strings.Cut(s, first)
	}
	return false
}

// find is the entry that a request for text means: a model of the command line by a name of its own, one on disk, what clients
// mean by names that they have built in. Where only the main model is left to be meant, its error is what is told.
func (c *Catalog) find(ctx context.Context, name string) (*Entry, error) {
	main := c.Main()
	if name == "" || main.names.is(name) {
		return main, nil
	}
	for _, e := range c.entries[1:] {
		if e.names.is(name) {
			if e.kind != model.Generates {
				return nil, generatesNothing(e.Model())
			}
			return e, nil
		}
	}
	given := c.given(name)
	found, err := c.onDisk(ctx, name, given)
	if found == nil && given {
		return nil, unknown(name, err, nil, alwaysWork)
	}
	if small := c.Small(); found == nil && small != nil && small.names.isAlias(strings.ToLower(name)) {
		return small, nil
	}
	guessed := false
	if found == nil {
		_, deployment := chat.Deployment(ctx)
		if guessed, err = main.names.find(name, deployment); err != nil { // it means no other: the disk may have it since
			var far error
			if found, far = c.onDisk(ctx, name, true); far != nil {
				err = unknown(name, far, err, alwaysWork)
			}
		}
	}
	if found != nil {
		if m := found.Model(); m.Kind == chat.Embeds || m.Kind == chat.Ranks {
			return nil, generatesNothing(m)
		}
		return found, nil
	}
	if guessed {
		c.tell(name, c.ID())
	}
	return main, err
}

// given reports a name that somebody has given a model on disk: it means that one, whatever clients have built in.
func (c *Catalog) given(name string) bool { return c.disk != nil && c.disk.Named(name) }

// alwaysWork is told of names where there are such.
const alwaysWork = "names that always work: default, local"

// unknown is what is told of a name that no model of the command line has, and what far says of on disk. Where the disk has no
// advice it is err, unless that is nil. tail ends it.
func unknown(name string, far, err error, tail string) error {
	var missing *hub.NotFoundError
	switch {
	case far == nil:
		return err
	case !errors.As(far, &missing):
		return far
	}
	advice := Advice(missing)
	if len(advice) == 0 && err != nil {
		return err
	}
	return &chat.Error{Kind: chat.NotFound, Param: "model", Code: "model_not_found",
		Msg: fmt.Sprintf("%s is not served here; %s", shown(name), strings.Join(append(advice, tail), "; "))}
}

// findEncoder is the entry of a kind that a name stands for: its own, or one that clients have built in.
func (c *Catalog) findEncoder(ctx context.Context, name string, kind chat.ModelKind) (*Entry, error) {
	all, err := c.encoders(ctx)
	if err != nil {
		return nil, err
	}
	var first *Entry
	for _, e := range all {
		is := e.Model().Kind
		if is == kind && first == nil {
			first = e
		}
		if !e.names.is(name) {
			continue
		}
		if is != kind {
			return nil, c.refuse(name, kind, is, first)
		}
		return e, nil
	}
	given := c.given(name)
	found, err := c.onDisk(ctx, name, given)
	if found == nil && err == nil && !c.cfg.AnyModel && !c.Main().names.is(name) && !matchAny(textAliases, name) {
		found, err = c.onDisk(ctx, name, true)
	}
	far := err
	switch {
	case wrong(err):
		return nil, err
	case found == nil && given:
		return nil, unknown(name, far, nil, instead(kind, first))
	case found != nil && found.Model().Kind != kind:
		return nil, c.refuse(name, kind, found.Model().Kind, first)
	case found != nil:
		return found, nil
	}
	main := c.Main()
	generates := main.names.is(name)
	_, deployment := chat.Deployment(ctx)
	switch {
	case first == nil && !matchAny(textAliases, name) && !meant(main, name, deployment):
		return nil, unknown(name, far, notServed(name, instead(kind, nil)), instead(kind, nil))
	case first == nil || generates && main.Encoder() == nil:
		return nil, c.refuse(name, kind, chat.Chats, first)
	case c.cfg.AnyModel, name == "", generates, matchAny(textAliases, name):
		return first, nil
	}
	if deployment && !c.cfg.StrictModels {
		c.tell(name, first.ID())
		return first, nil
	}
	tail := instead(kind, first)
	return nil, unknown(name, far, notServed(name, tail+"; the server's flag --any-model accepts every name"), tail)
}

// meant reports whether a request for text by this name would get the main model.
func meant(main *Entry, name string, deployment bool) bool {
	_, err := main.names.find(name, deployment)
	return err == nil
}

// instead says which model of a kind there is, first, or what would bring one.
func instead(kind chat.ModelKind, first *Entry) string {
	w := wanted[kind]
	if first == nil {
		return fmt.Sprintf("%s is needed: name one that is on disk, or start the server with %s", w.noun, w.flag)
	}
	return fmt.Sprintf("%s is %q; %s", w.noun, first.ID(), alwaysWork)
}

func notServed(name, tail string) error {
	return &chat.Error{Kind: chat.NotFound, Param: "model", Code: "model_not_found", Msg: shown(name) + " is not served here; " + tail}
}

// encoders are the entries that embed or rank; whether the main model does is known when it is loaded.
func (c *Catalog) encoders(ctx context.Context) ([]*Entry, error) {
	var beside []*Entry
	for _, e := range c.entries[1:] {
		if e.kind != model.Generates {
			beside = append(beside, e)
		}
	}
	main := c.Main()
	if len(beside) == 0 {
		select {
		case <-main.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if main.Encoder() != nil {
		return append([]*Entry{main}, beside...), nil
	}
	return beside, nil
}

// Reserved reports names that mean the demo or the default model whatever else is called so.
func Reserved(name string) bool {
	return name == demo.Name || slices.Contains(aliases, name)
}
