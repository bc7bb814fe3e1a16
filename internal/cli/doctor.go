package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hearth/internal/backend/mlx"
	"hearth/internal/budget"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/hub"
	"hearth/internal/kernel"
	"hearth/internal/regular"
)

func newDoctorCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what models would run on here, and test it",
		Long: `doctor opens the backend that --backend names and says what it found. For mlx it runs every function of the library that
models need on operands with known results. With auto it looks at both; that mlx is missing is then no error. Then it says how much
memory models may have here, and which of those on this disk fit with a context of 32,768 tokens.`,
		Example: `  hearth doctor
  hearth doctor --backend mlx`,
		Args: console.NoArgs,
	}
	cfg := settings(cmd, config.Model, config.Run)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		if cfg.Backend != "mlx" {
			fmt.Fprintf(t, "cpu\tkernels %s\n", kernel.Current())
		}
		if cfg.Backend != "cpu" {
			if err := doctorMLX(t, cfg); err != nil {
				return err
			}
		}
		if err := doctorModels(cmd.Context(), t, cfg); err != nil {
			return err
		}
		return t.Flush()
	}
	return cmd
}

// doctorModels says which models fit.
func doctorModels(ctx context.Context, w io.Writer, cfg *config.Config) error {
	l, err := listModels(ctx, cfg)
	if err != nil {
		return err
	}
	if l.Memory > 0 {
		fmt.Fprintf(w, "memory\t%s for models\n", budget.Size(l.Memory))
	}
	name := "models"
	for i := range l.Models {
		if m := &l.Models[i]; m.State == hub.Whole {
			fmt.Fprintf(w, "%s\t%s: %s\n", name, regular.Clip(m.ID), m.Memory)
			name = ""
		}
	}
	if name != "" {
		fmt.Fprintf(w, "%s\tnone on this disk\n", name)
	}
	return nil
}

// doctorMLX opens MLX, which tests it.
func doctorMLX(w io.Writer, cfg *config.Config) error {
	be, err := mlx.Open(mlx.Config{Path: cfg.MLXLib})
	if err != nil {
		if cfg.Backend == "mlx" {
			return console.Hintf(err, "--backend cpu runs every model without it")
		}
		fmt.Fprintf(w, "mlx\tnot here: %v\n", err)
		return nil
	}
	i := be.Info()
	fmt.Fprintf(w, "mlx\tMLX %s on %s\n\tlibrary %s, called as %s\n\tself-test: %d of %d functions as expected\n",
		i.Version, i.Device, i.Path, i.Layout, i.Checks, i.Checks)
	return be.Close()
}
