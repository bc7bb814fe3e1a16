package model

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"hearth/internal/regular"
)

// LoadError is why a model could not be loaded, for the person who asked for it. Its text is one sentence that ends in
// the hint; the parts are there for callers that show the hint apart.
type LoadError struct {
	What    string // what could not be loaded; empty: a model
	Where   string // folder, as OpenCheckpoint was told
	File    string // file inside it; empty: the folder as a whole
	Tensor  string // the (first) tensor at fault, if any
	Problem string // what is wrong; empty: Err says it
	Hint    string // what to do
	Err     error  // cause, if any
}

// Error is Message and the hint.
func (e *LoadError) Error() string {
	if e.Hint == "" {
		return e.Message()
	}
	return e.Message() + "; " + e.Hint
}

// Message is the error without the hint.
func (e *LoadError) Message() string {
	var s strings.Builder
	s.WriteString("load " + cmp.Or(e.What, "model"))
	for _, p := range []string{e.Where, e.File} {
		if p != "" {
			s.WriteString(": " + regular.Clip(p))
		}
	}
	if e.Problem != "" {
		s.WriteString(": " + regular.ClipTo(e.Problem, 5*regular.Line))
	}
	if e.Err != nil {
		s.WriteString(": " + regular.Short(e.Err).Error())
	}
	return s.String()
}

func (e *LoadError) Unwrap() error { return e.Err }

// blame makes any error a LoadError that names the folder, and what it holds if that is no model.
func blame(err error, what, where string) error {
	var e *LoadError
	if !errors.As(err, &e) {
		e = &LoadError{Err: err}
	}
	r := *e
	r.Where, r.What = where, cmp.Or(what, r.What)
	return &r
}

// inConfig makes err a LoadError of config.json, unless it is one already.
func inConfig(err error) error {
	var e *LoadError
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &LoadError{File: configFile, Err: err, Hint: configHint}
}

// configHint is for what a constructor refuses: a key and its value are in the error.
const configHint = "correct it in " + configFile + " or use another conversion of the model; hearth show FOLDER/" + configFile + " tries the file alone"

// list joins at most n names and says how many were left out.
func list(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
