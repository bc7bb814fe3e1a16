package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hearth/internal/backend"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/model"
	"hearth/internal/regular"
)

// maxConfigBytes bounds a config.json, as package model does.
const maxConfigBytes = 16 << 20

// isConfig reports a file, not a folder, that is called like a config.
func isConfig(name string) bool {
	st, err := os.Stat(name)
	return err == nil && !st.IsDir() && filepath.Ext(name) == ".json"
}

// surveyConfig is survey of a config.json alone.
func surveyConfig(path string, cfg *config.Config, contexts []int) (*shown, error) {
	b, err := regular.Read(path, maxConfigBytes)
	if err != nil {
		return nil, &model.LoadError{Where: path, Err: err}
	}
	c, err := model.OpenConfig(b, path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	look := &surveyor{}
	if c.Encodes() {
		m, err := c.LoadEncoder(look.visitor(), backend.Options{}, model.Pooling{Kind: model.Embeds})
		if err != nil {
			return nil, err
		}
		defer m.Close()
		s := &shown{ID: path, Architecture: c.Type, Parameters: m.Params, Bytes: m.Bytes, Context: m.Context,
			Precision: vectorPrecision(catalog.Precision(cfg.Precision, model.Embeds, m.Bytes, backend.Caps{}), cfg), Layers: look.layers, Modules: look.modules, Warnings: c.Warnings}
		s.read(m.Reading)
		return s, nil
	}
	unseen, err := c.Load(backend.Visitor(func(backend.WeightSpec) (backend.Weight, error) { return nil, nil }), backend.Options{})
	if err != nil {
		return nil, err
	}
	o := backend.Options{Threads: cfg.Threads, Precision: catalog.Precision(cfg.Precision, model.Generates, unseen.Bytes, backend.Caps{})}
	program := console.ResidentMemory() + serverBytes // there is no tokenizer to add
	f, err := newForecasts(c, o, cfg, look.note)
	if err != nil {
		return nil, err
	}
	f.program = program
	m := f.packed.Model
	s := &shown{ID: path, Architecture: c.Type, Parameters: m.Params, Bytes: m.Bytes, Context: m.Context, State: stateOf(f.packed.State()), Precision: shownPrecision{o.Precision.String(), cfg.Precision, o.Precision.Rounding(backend.Caps{})}, Layers: look.layers, Modules: look.modules}
	s.read(m.Reading)
	s.Warnings = c.Warnings
	if len(contexts) == 0 {
		contexts = []int{usualContexts[len(usualContexts)-1]}
		if m.Context > 0 {
			contexts[0] = min(contexts[0], m.Context)
		}
	}
	if s.Memory, err = f.memory(contexts, look.layers); err != nil {
		return nil, &model.LoadError{Where: path, Err: err}
	}
	return s, nil
}

// read takes over what the architecture made of config.json.
func (s *shown) read(r *model.Reading) {
	s.Ropes, s.Windows, s.Unread, s.Notes = r.Rotations, r.Windows, r.Unread, r.Notes
	if s.Unread == nil {
		s.Unread = []model.Unread{}
	}
}

// printReading says which rotations and windows are in force, and what was not understood.
func (s *shown) printReading(row func(name, format string, args ...any)) {
	for _, r := range s.Ropes {
		name := "rope"
		if r.Kind != "" {
			name += " of " + strings.TrimSuffix(r.Kind, "_attention")
		}
		text := fmt.Sprintf("base %s (%s), %d columns of each head", number(r.Base), r.Whence, r.Columns)
		if r.Type != "default" {
			text += ", " + r.Type
			if r.Factor != 0 {
				text += " by " + number(r.Factor)
			}
			if r.Orig != 0 {
				text += " from " + number(r.Orig) + " tokens"
			}
			if r.Divisors != "" {
				text += ", divided by " + r.Divisors + " at every length"
			}
			text += " (" + r.From + ")"
		}
		row(name, "%s", text)
	}
	if len(s.Windows) == 1 && s.Windows[0].Positions == 0 {
		row("window", "none: every layer that attends sees everything")
	} else {
		for _, w := range s.Windows {
			layers := "1 layer"
			if w.Layers != 1 {
				layers = fmt.Sprintf("%d layers", w.Layers)
			}
			if w.Positions == 0 {
				row("window", "none in %s", layers)
			} else {
				row("window", "%s tokens in %s (%s)", console.Commas(int64(w.Positions)), layers, w.Whence)
			}
		}
	}
	if len(s.Unread) == 0 {
		row("not understood", "nothing: every key of config.json was read or changes no number")
	}
	for _, n := range s.Notes {
		row("note", "%s", n)
	}
	for _, u := range s.Unread {
		if u.Why != "" {
			row("to be checked", "%s %s, %s", regular.Clip(u.Key), regular.Clip(u.Value), u.Why)
			continue
		}
		row("not understood", "%s %s", regular.Clip(u.Key), regular.Clip(u.Value))
	}
}

// number prints a count of positions or a base as a config has it.
func number(x float64) string {
	if x == float64(int64(x)) {
		return console.Commas(int64(x))
	}
	return fmt.Sprintf("%g", x)
}
