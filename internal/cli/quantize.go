package cli

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/convert"
	"hearth/internal/quant"
)

func newQuantizeCmd() *cobra.Command {
	var bits, group int
	var mode, recipe string
	cmd := &cobra.Command{
		Use:   "quantize SRC DST",
		Short: "Write a quantised copy of a model",
		Long: `quantize reads the model SRC, a folder or an id in the Hugging Face cache, and writes the folder DST with its weights in fewer bits,
as mlx-lm's converter would: the same bits, the same keys in config.json. Routers of experts and a few other modules keep 8 bits.
DST must not exist or be empty; until all of it is written there is nothing under that name.`,
		Example: `  hearth quantize ~/models/Qwen3-0.6B-bf16 ~/models/Qwen3-0.6B-4bit
  hearth quantize SRC DST --bits 8 --group-size 32
  hearth quantize SRC DST --mode mxfp4
  hearth quantize SRC DST --recipe mixed_4_6`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return console.Hintf(fmt.Errorf("quantize needs a model and a folder to write"), "hearth quantize SRC DST")
			}
			return console.MaxArgs(2)(cmd, args)
		},
	}
	cfg := settings(cmd, config.Model)
	cmd.ValidArgsFunction = completeModel(cfg, 0, toServe)
	f := cmd.Flags()
	f.IntVar(&bits, "bits", 0, "bits per weight: 2, 3, 4, 5, 6 or 8 (default that of the mode, affine: 4)")
	f.IntVar(&group, "group-size", 0, "weights that share a scale (default that of the mode, affine: 64)")
	f.StringVar(&mode, "mode", string(quant.Affine), "affine, mxfp4, mxfp8 or nvfp4")
	f.StringVar(&recipe, "recipe", "", "give some modules more bits: "+strings.Join(convert.Recipes(), ", "))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		if cfg.AdapterPath != "" {
			return console.Hintf(fmt.Errorf("quantize does not put adapters into models"), "leave --adapter-path away")
		}
		s, err := schemeOf(mode, bits, group)
		if err != nil {
			return err
		}
		src, err := catalog.Find(args[0], roots(cfg))
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return quantize(ctx, src, args[1], convert.Options{Scheme: s, Recipe: recipe}, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// schemeOf fills in the mode's own numbers for those that are 0.
func schemeOf(mode string, bits, group int) (quant.Scheme, error) {
	s, ok := quant.Mode(mode).Default()
	if !ok {
		return s, console.Hintf(fmt.Errorf("unknown mode %q", mode), "want one of %v", quant.Modes())
	}
	if bits != 0 {
		s.Bits = bits
	}
	if group != 0 {
		s.Group = group
	}
	if err := s.Check(max(s.Group, 1)); err != nil {
		return s, console.Hintf(err, "affine takes 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128; the other modes have one width and group each")
	}
	return s, nil
}

func quantize(ctx context.Context, src *catalog.Source, dst string, o convert.Options, out, notes io.Writer) error {
	bar := console.NewBar(notes)
	o.Progress = bar.At
	r, err := convert.Quantize(ctx, src.FS, src.Where, dst, o)
	bar.End()
	if err != nil {
		return err
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(notes, "hearth: warning: %s: %s\n", src.Where, w)
	}
	_, err = fmt.Fprintf(out, "%s: %d of %d modules quantised, %.2f bits per weight, %s bytes\n", dst, r.Quantised, r.Modules, r.BitsPerWeight(), console.Commas(r.Bytes))
	return err
}
