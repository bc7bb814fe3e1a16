package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"hearth/internal/backend"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/model"
	"hearth/internal/tokenizer"
)

// shownEncoder is what hearth show says about a model that embeds or ranks.
type shownEncoder struct {
	ID           string         `json:"id"`
	Path         string         `json:"path,omitempty"`
	Architecture string         `json:"architecture"`
	Use          string         `json:"use"`
	Parameters   int64          `json:"parameters"`
	Bytes        int64          `json:"bytes"`
	Context      int            `json:"context,omitempty"` // tokens of a text
	Width        int            `json:"dimensions,omitempty"`
	Precision    shownPrecision `json:"precision"`
	Pooling      string         `json:"pooling"`
	Normalised   bool           `json:"normalised"`
	Layers       []shownLayers  `json:"layers"`
	Modules      []shownModules `json:"modules"`
	Tokenizer    shownTokenizer `json:"tokenizer"`
	Warnings     []string       `json:"warnings,omitempty"`
}

var poolings = map[backend.PoolKind]string{backend.PoolMean: "mean of all tokens", backend.PoolFirst: "first token", backend.PoolLast: "last token"}

// surveyEncoder is survey for a model that does not generate; nil for one that does.
func surveyEncoder(src *catalog.Source, cfg *config.Config) (*shownEncoder, error) {
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	p, err := c.Pooling()
	if err != nil || p.Kind == model.Generates {
		return nil, err
	}
	look := &surveyor{}
	m, err := c.LoadEncoder(look.visitor(), backend.Options{}, p)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	kind, err := tokenizerType(src.FS)
	if err != nil {
		return nil, &model.LoadError{Where: src.Where, Err: err}
	}
	s := &shownEncoder{ID: src.ID, Path: src.Path, Architecture: c.Type, Use: p.Kind.String(), Parameters: m.Params, Bytes: m.Bytes,
		Context: m.Context, Precision: vectorPrecision(catalog.Options(src, cfg, p.Kind, backend.Caps{}).Precision, cfg), Pooling: poolings[m.Pooling.Rows], Layers: look.layers, Modules: look.modules,
		Tokenizer: shownTokenizer{Type: kind, Vocabulary: m.Vocab}}
	if p.Kind == model.Embeds {
		s.Width, s.Normalised = m.Width, p.Normalize
	}
	if p.MaxTokens > 0 {
		s.Context = min(p.MaxTokens, m.Context)
	}
	s.Warnings = distinct(c.Warnings, m.Warnings)
	if tok, err := tokenizer.Load(src.FS); err == nil { // an error is told by who serves it
		s.Warnings = distinct(s.Warnings, tok.Warnings())
	}
	return s, nil
}

func vectorPrecision(p backend.Precision, cfg *config.Config) shownPrecision {
	return shownPrecision{p.String(), cfg.Precision, p.VectorRounding(backend.Caps{})}
}

func (s *shownEncoder) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("model", "%s", s.ID)
	row("folder", "%s", s.Path)
	row("architecture", "%s", s.Architecture)
	row("use", "%s", s.Use)
	row("parameters", "%s", console.Commas(s.Parameters))
	row("bytes", "%s", console.Commas(s.Bytes))
	row("context", "%s tokens", console.Commas(int64(s.Context)))
	row("precision", "%s", s.Precision)
	row("pooling", "%s", s.Pooling)
	if s.Width > 0 {
		row("vectors", "%s numbers, length 1: %s", console.Commas(int64(s.Width)), yes(s.Normalised))
	}
	printLayers(row, s.Layers, s.Modules)
	row("tokenizer", "%s, %s tokens", s.Tokenizer.Type, console.Commas(int64(s.Tokenizer.Vocabulary)))
	printShownWarnings(row, s.Warnings)
	return t.Flush()
}
