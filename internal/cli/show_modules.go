package cli

import (
	"fmt"
	"slices"
	"strings"

	"hearth/internal/backend"
	"hearth/internal/console"
	"hearth/internal/quant"
)

// shownModules are the modules of one name in all layers, with every way in which they are stored.
type shownModules struct {
	Name   string       `json:"name"` // without the layer's number, for example mlp.down_proj
	Stored []shownCount `json:"stored"`

	kind string
}

// shownCount is how many are stored in one way.
type shownCount struct {
	Stored string `json:"stored"`
	Count  int    `json:"count"`

	short string
}

// module takes note of one. A tensor that is taken apart comes more than once, and counts once.
func (s *surveyor) module(kind, stored string, p backend.Part) {
	if kind == "norms" || s.seen[p.Weight.Name] {
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[p.Weight.Name] = true
	name := moduleName(p.Weight.Name)
	i := slices.IndexFunc(s.modules, func(m shownModules) bool { return m.Name == name && m.kind == kind })
	if i < 0 {
		i = len(s.modules)
		s.modules = append(s.modules, shownModules{Name: name, kind: kind})
	}
	m := &s.modules[i]
	k := slices.IndexFunc(m.Stored, func(c shownCount) bool { return c.Stored == stored })
	if k < 0 {
		k = len(m.Stored)
		m.Stored = append(m.Stored, shownCount{Stored: stored, short: short(p)})
	}
	m.Stored[k].Count++
}

// moduleName is what follows the number of the layer, further numbers as stars; without one it is what follows "model.".
func moduleName(tensor string) string {
	parts := strings.Split(strings.TrimSuffix(tensor, ".weight"), ".")
	number := func(p string) bool { return p != "" && strings.Trim(p, "0123456789") == "" }
	if i := slices.IndexFunc(parts, number); i >= 0 && i+1 < len(parts) {
		parts = parts[i+1:]
	} else if i := slices.Index(parts, "model"); i >= 0 && i+1 < len(parts) {
		parts = parts[i+1:]
	}
	for i, p := range parts {
		if number(p) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}

// short is how a part is stored in a few letters: "6 bits g64", "mxfp4", "BF16".
func short(p backend.Part) string {
	switch {
	case p.Scheme.None():
		return p.Weight.DType
	case p.Scheme.Mode == quant.Affine:
		return fmt.Sprintf("%d bits g%d", p.Scheme.Bits, p.Scheme.Group)
	}
	return string(p.Scheme.Mode)
}

// printLayers prints the kinds of layers, and of those that are stored in several ways which modules are how.
func printLayers(row func(name, format string, args ...any), layers []shownLayers, modules []shownModules) {
	for i, l := range layers {
		row("  "+l.Kind, "%s, %s parameters, %s bytes", l.Stored, console.Commas(l.Parameters), console.Commas(l.Bytes))
		if i == 0 || layers[i-1].Kind != l.Kind || i+1 < len(layers) && layers[i+1].Kind == l.Kind {
			continue // stored in one way, or more rows of this kind follow
		}
		for _, m := range modules {
			if m.kind != l.Kind {
				continue
			}
			var ways []string
			for _, c := range m.Stored {
				ways = append(ways, fmt.Sprintf("%s ×%d", c.short, c.Count))
			}
			row("    "+m.Name, "%s", strings.Join(ways, ", "))
		}
	}
}
