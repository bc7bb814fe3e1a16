package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/mlx"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/remote"
	"hearth/internal/sysmem"
)

// backends are those of this build; auto takes the first that works, and looks for MLX on Macs only.
func backends() catalog.Backends {
	b := catalog.Backends{
		Open: map[string]catalog.Opener{
			"cpu": func(*config.Config) (backend.Backend, error) { return cpu.New(), nil },
			"mlx": openMLX,
		},
		Auto:   []string{"cpu"},
		Limits: map[string]func() int64{"mlx": mlx.Limit},
	}
	if runtime.GOOS == "darwin" {
		b.Auto = []string{"mlx", "cpu"}
	}
	return b
}

// withWorkers is backends, with worker processes for the models that cfg wants there.
func withWorkers(cfg *config.Config, log *slog.Logger, output io.Writer) catalog.Backends {
	b := backends()
	b.Warn = func(line string) { log.Warn(line) }
	w := &catalog.Workers{
		Build: buildMark(), Command: func() (*exec.Cmd, error) { return workerCommand(cfg) },
		Warn:   b.Warn,
		Output: func(line string) { fmt.Fprintln(output, "hearth: model: "+line) },
	}
	switch {
	case cfg.ModelProcess == "never":
		return b
	case !remote.Possible:
		if cfg.ModelProcess == "always" {
			log.Warn("models run in the server's own process: this system knows no other way")
		}
		return b
	case cfg.ModelProcess == "always":
		w.Backends = slices.Collect(maps.Keys(b.Open))
	default:
		w.Backends = []string{"mlx"}
	}
	b.Workers = w
	return b
}

// workerCommand starts this program as a worker process, with the name that it was started with itself and what MLX reads of its
// environment.
func workerCommand(cfg *config.Config) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	cmd := exec.Command(exe, workerName)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(cmd.Environ(), cfg.MLXEnviron(sysmem.Total())...)
	return cmd, nil
}

const workerName = "model-process"

// newWorkerCmd is a worker process, the process of a model. Only servers start it.
func newWorkerCmd() *cobra.Command {
	return &cobra.Command{
		Use:    workerName,
		Short:  "Run a model for the server that starts this",
		Hidden: true,
		Args:   console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			conn, err := remote.Inherit()
			if err != nil {
				return err
			}
			// Whoever stops all processes of a service at once stops this one too soon: replies may go on, and the server
			// says when it is enough. When the server is gone, this process ends by itself, and nobody reads what it prints.
			signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
			runtime.GOMAXPROCS(cpu.Threads() + 2) // as in serve
			err = catalog.ServeWorker(conn, buildMark(), backends())
			var told *remote.Refused
			if errors.Is(err, remote.ErrGone) || errors.As(err, &told) { // there is nobody to tell, or they know
				return &exitError{code: 1, err: err}
			}
			return err
		},
	}
}

func openMLX(cfg *config.Config) (backend.Backend, error) {
	be, err := mlx.Open(mlx.Config{Path: cfg.MLXLib})
	if err != nil {
		return nil, console.Hintf(err, "--backend cpu runs every model without it")
	}
	return be, nil
}
