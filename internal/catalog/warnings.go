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
