package model

import (
	"errors"
	"io/fs"
	"strings"

	"hearth/internal/regular"
)

// Peek says what the model in a folder is for, from its small files alone: no weights are opened. The error is why none like
// it is loaded, a LoadError. Loading may still find more: a type that can embed and generate is told by its tensors where
// nothing else tells it.
func Peek(fsys fs.FS, where string) (Kind, error) {
	_, p, err := peek(fsys, where)
	return p.Kind, err
}

// PeekContext is how many tokens a model may have, by the small files of its folder alone; 0 where they do not say. Errors are
// those of Peek, and of a config.json that no model can be made of.
func PeekContext(fsys fs.FS, where string) (int, error) {
	c, p, err := peek(fsys, where)
	if err != nil {
		return 0, err
	}
	if p.Kind == Generates {
		m, _, err := New(c.Type, c.Config, 1)
		if err != nil {
			return 0, c.blame(err)
		}
		_, context := m.Sizes()
		return context, nil
	}
	m, _, err := newEncoder(c.Type, c.Config, &p, 1)
	if err != nil {
		return 0, c.blame(err)
	}
	_, context, _ := m.Body.Sizes()
	if p.MaxTokens > 0 && (context == 0 || p.MaxTokens < context) {
		context = p.MaxTokens
	}
	return context, nil
}

// PeekConfig is Peek of a config.json without its folder.
func PeekConfig(b []byte, where string) (Kind, error) {
	_, p, err := peekConfig(b, noFolder{}, where)
	return p.Kind, err
}

// noFolder has no files.
type noFolder struct{}

func (noFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// peek reads those files. The checkpoint has no weights.
func peek(fsys fs.FS, where string) (*Checkpoint, Pooling, error) {
	b, err := regular.ReadFS(fsys, configFile, maxConfigBytes)
	if err != nil {
		return nil, Pooling{}, blame(&LoadError{File: configFile, Err: err}, "", where)
	}
	return peekConfig(b, fsys, where)
}

func peekConfig(b []byte, fsys fs.FS, where string) (*Checkpoint, Pooling, error) {
	c := &Checkpoint{Where: where, fsys: fsys, where: map[string]int{}}
	if err := c.parseConfig(b); err != nil {
		return nil, Pooling{}, c.blame(err)
	}
	var ix struct {
		Map map[string]string `json:"weight_map"`
	}
	if _, err := c.readJSON(indexFile, &ix); err == nil {
		for name := range ix.Map {
			c.where[name] = 0
		}
	}
	p, err := c.Pooling()
	if err != nil {
		return nil, Pooling{}, err
	}
	return c, p, nil
}

// Reason is the error of a model that is not loaded, in one sentence about its folder.
func Reason(err error) string {
	var e *LoadError
	if !errors.As(err, &e) {
		return regular.Short(err).Error()
	}
	r := *e
	r.What, r.Where = "", ""
	return strings.TrimPrefix(r.Message(), "load model: ")
}
