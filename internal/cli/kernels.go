package cli

import (
	"fmt"
	"log/slog"
	"strings"

	"hearth/internal/console"
	"hearth/internal/kernel"
)

// kernelsEnv forces one set of the native engine's kernels, for every command: to compare them, or to work around one.
const kernelsEnv = "HEARTH_CPU"

// useKernels does what the environment says about them.
func useKernels(environ func(string) (string, bool)) error {
	name, _ := environ(kernelsEnv)
	if err := kernel.Use(name); err != nil {
		return console.Hintf(fmt.Errorf("%s=%s: %w", kernelsEnv, name, err), "%s takes auto, %s here", kernelsEnv, strings.Join(kernel.Implementations(), ", "))
	}
	return nil
}

// warnKernels says once when the engine is much slower than this program can be elsewhere.
func warnKernels(log *slog.Logger, forced bool) {
	if kernel.Current() == "generic" && !forced {
		log.Warn("this processor lacks the instructions that the native engine has kernels for: it runs in plain Go, many times slower",
			"kernel", kernel.Current())
	}
}
