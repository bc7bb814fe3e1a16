package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"hearth/internal/config"
	"hearth/internal/generate"
	"hearth/internal/model"
	"hearth/internal/regular"
	"hearth/internal/vision"
)

// gates are where images of all models are prepared, by their limits: few at a time, so that those who generate keep the
// processors.
var gates sync.Map

// gateOf is the gate of a server's limits.
func gateOf(cfg *config.Config) *vision.Gate {
	l := vision.DefaultLimits()
	l.Bytes, l.Pixels, l.Images = int(cfg.MaxImageBytes), cfg.MaxImagePixels, cfg.MaxImages
	if g, ok := gates.Load(l); ok {
		return g.(*vision.Gate)
	}
	g, _ := gates.LoadOrStore(l, vision.NewGate(2, l))
	return g.(*vision.Gate)
}

// Sight is how the model of a folder sees, and with which tower: nil if it has none, or with a warning if what prepares its
// images cannot be read or does not fit the tower. A model that cannot see is one that works.
func Sight(fsys fs.FS, c *model.Checkpoint, cfg *config.Config) (s *generate.Sight, tower *model.Tower, warnings []string) {
	tower, err := c.Tower()
	if err != nil || tower == nil { // who loads it tells
		return nil, nil, nil
	}
	p, err := processorOf(fsys)
	if err == nil {
		err = cmp.Or(fitting(p, tower), fitting(p.Low(), tower))
	}
	if err != nil {
		return nil, nil, []string{"the model cannot see images: " + regular.ClipTo(err.Error(), regular.Line)}
	}
	return &generate.Sight{Processor: p, Gate: gateOf(cfg)}, tower, nil
}

// processorOf reads what a folder says of preparing images.
func processorOf(fsys fs.FS) (*vision.Processor, error) {
	var f vision.Files
	for name, to := range map[string]*[]byte{"config.json": &f.Config, "preprocessor_config.json": &f.Preprocessor, "processor_config.json": &f.Processor} {
		b, err := regular.ReadFS(fsys, name, mostProcessor)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		*to = b
	}
	return vision.NewProcessor(f)
}

// mostProcessor bounds the files that are read for a processor, which have some hundred bytes, and config.json, a few thousand.
const mostProcessor = 4 << 20

// fitting tries whether what a processor makes of pictures is what the tower takes, and takes the place of as many tokens.
func fitting(p *vision.Processor, t *model.Tower) error {
	for _, size := range [][2]int{{640, 480}, {31, 97}, {1500, 400}} {
		plan, err := p.Plan(size[0], size[1])
		if err != nil {
			return err
		}
		for _, tile := range plan.Tiles {
			n := tile.Grid[0] * tile.Grid[1] * tile.Grid[2]
			if err := t.Check(tile.Grid, n*p.PatchLen()); err != nil {
				return fmt.Errorf("its image processor and its tower do not fit: %w", err)
			}
			rows := 0 // without tokens between lines, which are not the picture's
			for i := range t.Rows(tile.Grid) {
				if _, ok := model.Feature(t.Line(tile.Grid), i); ok {
					rows++
				}
			}
			if rows != tile.Positions {
				return fmt.Errorf("its image processor and its tower do not fit: an image of %v patches takes %d or %d tokens", tile.Grid, tile.Positions, rows)
			}
		}
	}
	return nil
}
