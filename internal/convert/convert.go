// Package convert writes model folders that this program and mlx-lm load alike: quantised copies, and models of random weights.
// The quantize and bench folder commands call it. It reads weights through package model, which knows what the tensors of an
// architecture are, holds one of them at a time, and never runs a model.
package convert

import (
	"context"
	"fmt"
	"io/fs"

	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/regular"
)

// Options are what a conversion may be told.
type Options struct {
	Scheme quant.Scheme // of every module that nothing else is said about
	Recipe string       // one of Recipes, or "": Scheme and what the architecture asks for
	// Progress is told how many bytes of the source are done, of how many; nil: nobody is.
	Progress func(done, total int64)
}

// Report is what a conversion made.
type Report struct {
	Modules, Quantised int
	Parameters         int64
	Bytes              int64    // of tensors
	Warnings           []string // what is wrong with the folder and was read over, the file first
}

// BitsPerWeight is the size of an average parameter.
func (r *Report) BitsPerWeight() float64 { return 8 * float64(r.Bytes) / float64(max(r.Parameters, 1)) }

// Quantize writes the folder dst, which must not exist or be empty, from the model in src; where is how errors call that.
// Nothing is seen under the name dst until everything is written. When ctx ends, or on an error, nothing stays behind.
func Quantize(ctx context.Context, src fs.FS, where, dst string, o Options) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("quantize: %w", err)
	}
	to, err := create(dst)
	if err != nil {
		return nil, fmt.Errorf("quantize: %w", err)
	}
	defer to.abandon()
	c, err := model.OpenCheckpoint(src, where)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	p, err := newConversion(c, o)
	if err != nil {
		return nil, err
	}
	if err := p.write(ctx, to, src, o.Progress); err != nil {
		return nil, fmt.Errorf("quantize %s: %w", where, err)
	}
	if err := to.commit(); err != nil {
		return nil, fmt.Errorf("quantize %s: %w", where, err)
	}
	return &p.report, nil
}

func (o *Options) check() error {
	if o.Scheme.None() {
		return fmt.Errorf("no scheme given")
	}
	if err := o.Scheme.Check(o.Scheme.Group); err != nil {
		return err
	}
	if o.Recipe != "" {
		if _, ok := recipes[o.Recipe]; !ok {
			return fmt.Errorf("unknown recipe %s, want one of %v", regular.Quote(o.Recipe), Recipes())
		}
		if o.Scheme.Mode != quant.Affine {
			return fmt.Errorf("recipe %s is for mode affine, not %s", o.Recipe, o.Scheme.Mode)
		}
	}
	return nil
}
