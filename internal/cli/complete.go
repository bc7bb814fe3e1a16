package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/hub"
)

// completeModel completes the argument MODEL of cmd: models on disk that can be loaded, aliases and the demo. A name with a
// path's look is the shell's.
func completeModel(cfg *config.Config) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 || strings.HasPrefix(typed, ".") || strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, "~") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if cfg.Load(cmd.Flags(), config.Environ, func(string) {}) != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		on := roots(cfg)
		on.Judge = nil // that is read from their configs, which takes a while
		names := []cobra.Completion{demo.Name}
		list, err := on.List(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		for i := range list {
			if list[i].State != hub.Unusable {
				names = append(names, list[i].ID)
			}
		}
		aliases, _ := on.Aliases.List() // a file that cannot be read has none
		for _, a := range aliases {
			if !a.Builtin || slices.Contains(names, a.Model) {
				names = append(names, a.Name)
			}
		}
		return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, typed) }), cobra.ShellCompDirectiveDefault
	}
}
