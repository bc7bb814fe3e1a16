package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"hearth/internal/regular"
)

// builtin are short names of models that many people run, in the quantisation that fits most machines.
var builtin = map[string]string{
	"qwen3":           "mlx-community/Qwen3-8B-4bit",
	"qwen3:0.6b":      "mlx-community/Qwen3-0.6B-4bit",
	"qwen3:1.7b":      "mlx-community/Qwen3-1.7B-4bit",
	"qwen3:4b":        "mlx-community/Qwen3-4B-4bit",
	"qwen3:8b":        "mlx-community/Qwen3-8B-4bit",
	"qwen3:14b":       "mlx-community/Qwen3-14B-4bit",
	"qwen3:30b":       "mlx-community/Qwen3-30B-A3B-4bit",
	"qwen3-coder":     "mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit",
	"qwen3-embedding": "mlx-community/Qwen3-Embedding-0.6B-4bit-DWQ",
	"llama3.2":        "mlx-community/Llama-3.2-3B-Instruct-4bit",
	"llama3.2:1b":     "mlx-community/Llama-3.2-1B-Instruct-4bit",
	"gemma3:1b":       "mlx-community/gemma-3-1b-it-4bit",
	"gemma3":          "mlx-community/gemma-3-4b-it-4bit",
	"gemma3:12b":      "mlx-community/gemma-3-12b-it-4bit",
	"gpt-oss":         "mlx-community/gpt-oss-20b-MXFP4-Q8",
	"mistral":         "mlx-community/Mistral-7B-Instruct-v0.3-4bit",
}

// Alias is a further name of a model.
type Alias struct {
	Name    string
	Model   string // id with or without @revision, or an absolute folder
	Builtin bool
}

// Aliases are the built-in names and those of a file, which come first. The file is JSON, an object of names and models; it
// is read again when it has changed, so that programs may share it. A nil *Aliases has no names. Methods may be called from
// any goroutine.
type Aliases struct {
	File string // "": there are the built-in ones only

	mu   sync.Mutex
	time time.Time // of what own is
	own  map[string]string
}

// aliasName is what an alias may be called: no slash, so that it is never an id of an organisation, nor a path.
var aliasName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._:-]{0,95}$`)

// maxAliases bounds the file, in bytes.
const maxAliases = 1 << 20

// Lookup gives the model that name stands for.
func (a *Aliases) Lookup(name string) (model string, ok bool) {
	if a == nil || !aliasName.MatchString(name) {
		return "", false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.read() // what cannot be read has no names; List says why
	if model, ok = a.own[name]; !ok {
		model, ok = builtin[name]
	}
	return model, ok
}

// List gives all aliases by name. With an error of the file there are the built-in ones.
func (a *Aliases) List() ([]Alias, error) {
	if a == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.read()
	var out []Alias
	for name, model := range a.own {
		out = append(out, Alias{Name: name, Model: model})
	}
	for name, model := range builtin {
		if _, ok := a.own[name]; !ok {
			out = append(out, Alias{name, model, true})
		}
	}
	slices.SortFunc(out, func(a, b Alias) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

// Set makes name stand for model.
func (a *Aliases) Set(name, model string) error {
	if !aliasName.MatchString(name) {
		return fmt.Errorf("%s cannot be an alias: letters, digits, dots, colons, dashes and underscores can, up to 96", regular.Quote(name))
	}
	if _, _, ok := ParseID(model); !ok && !filepath.IsAbs(model) {
		return fmt.Errorf("%s is neither an id such as org/name nor a whole path", regular.Quote(model))
	}
	return a.edit(func(own map[string]string) error {
		own[name] = model
		return nil
	})
}

// ErrNoAlias says that there is no such alias to remove.
var ErrNoAlias = errors.New("there is no such alias")

// Remove takes name out of the file.
func (a *Aliases) Remove(name string) error {
	return a.edit(func(own map[string]string) error {
		if _, ok := own[name]; ok {
			delete(own, name)
			return nil
		}
		if _, ok := builtin[name]; ok {
			return fmt.Errorf("%s is built in and cannot be removed; it can be given another model", regular.Quote(name))
		}
		return fmt.Errorf("alias %s: %w", regular.Quote(name), ErrNoAlias)
	})
}

// aliasWait is how long a change waits for another program's.
const aliasWait = 10 * time.Second

// edit changes the file, alone among all programs.
func (a *Aliases) edit(change func(own map[string]string) error) error {
	if a == nil || a.File == "" {
		return errors.New("there is no folder of settings to keep aliases in")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(a.File), 0o777); err != nil {
		return fmt.Errorf("write aliases: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), aliasWait)
	defer cancel()
	unlock, err := lockFile(ctx, a.File+".lock", 0o600, func() {})
	if err != nil {
		return fmt.Errorf("write aliases: another program holds %s.lock: %w", a.File, err)
	}
	defer unlock()
	a.time = time.Time{} // what another has just written may have the same time
	if err := a.read(); err != nil {
		return err
	}
	own := maps.Clone(a.own)
	if own == nil {
		own = map[string]string{}
	}
	if err := change(own); err != nil {
		return err
	}
	text, err := json.MarshalIndent(own, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(a.File, string(text)+"\n", 0o600); err != nil {
		return fmt.Errorf("write aliases: %w", err)
	}
	a.own, a.time = own, time.Time{}
	return nil
}

// read takes in the file if it has changed. It is called under mu.
func (a *Aliases) read() error {
	if a.File == "" {
		return nil
	}
	st, err := os.Stat(a.File)
	if errors.Is(err, fs.ErrNotExist) {
		a.own, a.time = nil, time.Time{}
		return nil
	}
	if err == nil && st.ModTime().Equal(a.time) {
		return nil
	}
	a.own, a.time = nil, time.Time{}
	var text []byte
	if err == nil {
		text, err = regular.Read(a.File, maxAliases)
	}
	own := map[string]string{}
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	if err != nil {
		return fmt.Errorf("read aliases: %s%s: %w", regular.Clip(a.File), lineOf(text, err), regular.Short(err))
	}
	a.own = own
	if time.Since(st.ModTime()) > settled {
		a.time = st.ModTime()
	}
	return nil
}

// lineOf is the place in text that an error of encoding/json is about, as it follows a file's name; "" for other errors.
func lineOf(text []byte, err error) string {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	at := int64(-1)
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &wrong):
		at = wrong.Offset
	}
	if at < 0 || at > int64(len(text)) {
		return ""
	}
	return fmt.Sprintf(":%d", 1+bytes.Count(text[:max(at-1, 0)], []byte("\n")))
}

// Own is Lookup of the names of the file alone.
func (a *Aliases) Own(name string) bool {
	if a == nil || !aliasName.MatchString(name) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.read() // as Lookup
	_, ok := a.own[name]
	return ok
}

// fault is what is wrong with the file, nil if nothing is.
func (a *Aliases) fault() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.read()
}
