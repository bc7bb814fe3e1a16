package bench

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/convert"
)

func newFolderCmd() *cobra.Command {
	var f benchFlags
	shard := int64(5e9)
	cmd := &cobra.Command{
		Use:   "folder DIR",
		Short: "Write a model of random weights",
		Long: `folder writes a folder like those that models are published in, with random weights in the sizes of a shape: to try loading,
memory and speed at a size without a download. It answers, in words without a meaning. Its files are written one weight at a time.
DIR must not exist or be empty.`,
		Example: `  hearth bench folder /tmp/small --shape qwen3-0.6b
  hearth bench folder /tmp/large --shape qwen3.5-27b --layers 50 --shard-size 5GB`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Hintf(fmt.Errorf("folder needs a folder to write"), "hearth bench folder DIR")
			}
			return console.MaxArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return f.writeFolder(ctx, args[0], shard, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.shape, "shape", "qwen3-0.6b", "model sizes: "+strings.Join(shapeNames(), ", "))
	fl.IntVar(&f.layers, "layers", 0, "layers, if fewer than the shape's")
	fl.IntVar(&f.bits, "bits", 4, "bits per weight: 2, 3, 4, 5, 6, 8, or 16 for bfloat16")
	fl.IntVar(&f.group, "group", 64, "weights that share a scale: 32, 64 or 128")
	fl.Var(config.Bytes(&shard), "shard-size", "most `bytes` of weights in one file, or with a unit such as 500MB")
	return cmd
}

func (f *benchFlags) writeFolder(ctx context.Context, dir string, shard int64, out, notes io.Writer) error {
	f.precision, f.kv = "float32", "auto" // not flags of this command
	if err := f.check(); err != nil {
		return err
	}
	bar := console.NewBar(notes)
	r, err := convert.Random(ctx, dir, convert.RandomOptions{Config: f.config(), Seed: 1, Shard: shard, Progress: bar.At})
	bar.End()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s parameters, %.2f bits per weight, %s bytes\n", dir, console.Commas(r.Parameters), r.BitsPerWeight(), console.Commas(r.Bytes))
	return err
}
