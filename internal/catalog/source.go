package catalog

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hearth/internal/chat"
	"hearth/internal/demo"
	"hearth/internal/hub"
	"hearth/internal/model"
	"hearth/internal/regular"
)

// Source is where a model's files are. It says nothing about whether they are any good.
type Source struct {
	ID      string // what clients see: demo, org/name, or the folder's name
	Path    string // absolute folder, "" for the embedded model
	Where   string // as errors call it
	FS      fs.FS
	Created time.Time
}

// Demo reports the embedded model.
func (s *Source) Demo() bool { return s.Path == "" }

// Finder finds models on disk by name; see hub.Roots.
type Finder interface {
	Find(name string) (hub.Entry, error)
}

// Judge is hub.Roots.Judge.
func Judge(dir string) (kind, problem string) {
	k, err := model.Peek(regular.Dir(dir), dir)
	if err != nil {
		return "", model.Reason(err)
	}
	switch k {
	case model.Embeds:
		return string(chat.Embeds), ""
	case model.Ranks:
		return string(chat.Ranks), ""
	}
	return string(chat.Chats), ""
}

// Find resolves what a person typed: "" or demo is the embedded model, anything that exists is a folder, the rest is a
// name that on knows. Errors: *model.LoadError for paths, *hub.NotFoundError for names.
func Find(name string, on Finder) (*Source, error) {
	if name == "" || name == demo.Name {
		return &Source{ID: demo.Name, Where: "the embedded demo", FS: demo.FS(), Created: time.Unix(demo.Created, 0)}, nil
	}
	st, err := os.Stat(name)
	switch {
	case err == nil:
		return folder(name, st)
	case looksLikePath(name):
		return nil, &model.LoadError{Where: name, Problem: "there is no such folder", Hint: "give a folder with config.json, tokenizer.json and *.safetensors files, or an id such as org/name"}
	}
	e, err := on.Find(name)
	if err != nil {
		return nil, err
	}
	return FromDisk(&e)
}

// FromDisk is the model of an entry. The error says what is missing of one that is not whole. One that cannot be loaded for other
// reasons is none: loading says that.
func FromDisk(e *hub.Entry) (*Source, error) {
	if e.State == hub.Half {
		return nil, &HalfError{*e}
	}
	return &Source{ID: e.ID, Path: e.Dir, Where: e.ID, FS: regular.Dir(e.Dir), Created: e.Time}, nil
}

// HalfError is about a model of which files are missing.
type HalfError struct {
	Entry hub.Entry
}

func (e *HalfError) Error() string {
	return fmt.Sprintf("model %s is only half-downloaded in %s: %s", regular.Quote(e.Entry.ID), e.Entry.Dir, e.Entry.Reason)
}

// Hint says how the rest comes.
func (e *HalfError) Hint() string {
	if !e.Entry.Cached() {
		return "fetch the missing files into that folder, or the whole model by its id"
	}
	name := e.Entry.ID
	return "hearth pull " + name + " goes on where the download ended"
}

// WeightBytes is the size of a folder's weight files.
func WeightBytes(fsys fs.FS) int64 {
	var sum int64
	files, _ := fs.Glob(fsys, "*.safetensors")
	for _, f := range files {
		if st, err := fs.Stat(fsys, f); err == nil {
			sum += st.Size()
		}
	}
	return sum
}

func folder(name string, st fs.FileInfo) (*Source, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("find model: %w", err)
	}
	if !st.IsDir() {
		if err := aFile(name); err != nil {
			return nil, err
		}
	}
	id := filepath.Base(path)
	if cached, ok := hub.SnapshotID(path); ok {
		id = cached
		cache := hub.Cache{Dir: filepath.Dir(filepath.Dir(filepath.Dir(path)))}
		if e, err := cache.Find(path); err == nil && e.State == hub.Half {
			e.ID += "@" + e.Revision
			return nil, &HalfError{e}
		}
	}
	return &Source{ID: id, Path: path, Where: name, FS: regular.Dir(path), Created: st.ModTime()}, nil
}

// aFile says of a file in the place of a folder what to give instead, nil of what loading has words for.
func aFile(name string) error {
	dir := filepath.Dir(name)
	switch hub.FormatOf(filepath.Base(name)) {
	case hub.Safetensors:
		return &model.LoadError{Where: name, Problem: "is one file of a model", Hint: "give the folder it is in: " + dir}
	case hub.Adapter:
		return &model.LoadError{Where: name, Problem: "is an adapter without the model it belongs to", Hint: "give the folder of the base model, and --adapter-path " + dir}
	case hub.PyTorch:
		return &model.LoadError{Where: name, Problem: "PyTorch weights are not supported", Hint: "use a conversion of the model to MLX or safetensors"}
	}
	return nil
}

// looksLikePath tells a mistyped path from an id: ids have at most one slash, forward, inside.
func looksLikePath(s string) bool {
	return filepath.IsAbs(s) || strings.ContainsAny(s[:1], ".~") || strings.ContainsRune(s, '\\') ||
		strings.HasSuffix(s, "/") || strings.Count(s, "/") > 1 || strings.HasSuffix(strings.ToLower(s), ".gguf")
}
