package catalog

import "slices"

// Warning is something wrong with a model's folder that was read over or mended.
type Warning struct {
	Folder string // as errors call it
	Text   string // the file first
}

// warnings are those of a folder, each once.
func (s *Source) warnings(lists ...[]string) []Warning {
	var all []Warning
	for _, text := range slices.Concat(lists...) {
		if w := (Warning{s.Where, text}); !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// Warnings are those of the model's folder, none until Ready.
func (c *Catalog) Warnings() []Warning {
	switch {
	case !c.Ready():
		return nil
	case c.enc != nil:
		return c.enc.Warnings()
	}
	return c.warnings
}

// Warnings are those of both folders.
func (s *Small) Warnings() []Warning { return slices.Concat(s.main.Warnings(), s.small.Warnings()) }

// Warnings are those of the model's folder, none until it is loaded.
func (e *Encoder) Warnings() []Warning {
	if !e.Ready() {
		return nil
	}
	return e.warnings
}
