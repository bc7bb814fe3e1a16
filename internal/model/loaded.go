package model

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/quant"
)

// Loaded is a model ready to run, with the facts that its users need.
type Loaded struct {
	Generator
	Type        string // model_type as config.json spells it
	Vocab       int    // rows of the logits
	Context     int    // positions the config allows; 0 if it does not say
	Generation  Generation
	Params      int64    // weights, a tied head counted once
	Bytes       int64    // as stored
	Description string   // for example "qwen3, 4.6M parameters, 8 bits"
	Width       string   // the last of these
	Reading     *Reading // what the architecture made of config.json
	Warnings    []string // what is wrong with the folder, or not understood, a line each
	Adapter     string   // where the adapter is that was added; empty: none

	loader B.Loader
}

// Close frees the weights. The checkpoint stays open; close it after.
func (l *Loaded) Close() error { return l.loader.Close() }

// Load builds the model of the checkpoint on be. Errors are LoadErrors.
func (c *Checkpoint) Load(be B.Backend, opts B.Options) (*Loaded, error) {
	l, err := load(c.Type, c.Config, be, opts, c.source, c.Adapter, c.Stop)
	if err != nil {
		return nil, c.blame(err)
	}
	l.Generation = c.Generation
	l.Warnings = append(slices.Clip(c.Warnings), l.Warnings...)
	return l, nil
}

func load(typ string, cfg []byte, be B.Backend, opts B.Options, open func(stateful) (Source, error), a *Adapter, stop func() error) (*Loaded, error) {
	world := max(be.Caps().World, 1)
	m, reading, err := New(typ, cfg, world)
	if err != nil {
		return nil, err
	}
	src, err := open(m)
	if err != nil {
		return nil, err
	}
	if a != nil {
		if world > 1 {
			return nil, &LoadError{Problem: "adapters are not supported across ranks", Hint: "fuse " + a.Where + " into the model first"}
		}
		src = a.over(src, m)
	}
	count := &counter{Loader: be.NewLoader(opts), bits: map[int]int64{}, stop: stop}
	if err := Load(m, src, count, world); err != nil {
		return nil, errors.Join(err, count.Close())
	}
	l := &Loaded{Generator: m, Type: typ, Params: count.params, Bytes: count.bytes, Reading: reading, Warnings: reading.Warnings(), loader: count}
	l.Vocab, l.Context = m.Sizes()
	l.Width = count.width()
	l.Description = fmt.Sprintf("%s, %s parameters, %s", typ, scaled(l.Params), l.Width)
	if a != nil {
		l.Adapter = a.Where
		l.Description += ", adapter " + path.Base(filepath.ToSlash(a.Where))
	}
	return l, nil
}

// counter counts what passes through a loader.
type counter struct {
	B.Loader
	params, bytes int64
	bits          map[int]int64 // bits per weight -> weights
	stop          func() error  // Checkpoint.Stop
}

func (c *counter) Load(s B.WeightSpec) (B.Weight, error) {
	if c.stop != nil {
		if err := c.stop(); err != nil {
			return nil, err
		}
	}
	for _, p := range s.Parts {
		n := int64(s.In)
		if p.Weight != nil && len(p.Weight.Shape) > 0 {
			n *= int64(product(p.Weight.Shape[:max(len(p.Weight.Shape)-1, 1)]))
		}
		bits := p.Scheme.Bits
		if p.Scheme.None() {
			bits = 8 * quant.DType(p.Weight.DType).Size()
		}
		c.bits[bits] += n
		for _, t := range []*B.Tensor{p.Weight, p.Scales, p.Biases, p.Global, p.Bias} {
			if t != nil {
				c.bytes += int64(len(t.Bytes))
			}
		}
		if p.Bias != nil {
			n += int64(product(p.Bias.Shape))
		}
		c.params += n
	}
	return c.Loader.Load(s)
}

func product(shape []int) int {
	n := 1
	for _, k := range shape {
		n *= k
	}
	return n
}

// width is the storage of most weights.
func (c *counter) width() string {
	best := 0
	for b, n := range c.bits {
		if n > c.bits[best] || n == c.bits[best] && b > best {
			best = b
		}
	}
	return fmt.Sprintf("%d bits", best)
}

// scaled prints a count as people say it: 600M, 1.7B.
func scaled(n int64) string {
	for _, u := range []struct {
		at   float64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if x := float64(n) / u.at; x >= 0.9995 {
			if x >= 100 {
				return fmt.Sprintf("%.0f%s", x, u.name)
			}
			return fmt.Sprintf("%.3g%s", x, u.name)
		}
	}
	return fmt.Sprint(n)
}
