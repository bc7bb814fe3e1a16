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
	b, err := regular.ReadFS(fsys, configFile, maxConfigBytes)
	if err != nil {
		return Generates, blame(&LoadError{File: configFile, Err: err}, "", where)
	}
	c := &Checkpoint{Where: where, fsys: fsys, where: map[string]int{}}
	if err := c.parseConfig(b); err != nil {
		return Generates, c.blame(err)
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
		return Generates, err
	}
	return p.Kind, nil
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
