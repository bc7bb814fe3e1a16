package cli

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/hub"
	"hearth/internal/server"
)

// offer is what completion offers where a model's name is wanted.
type offer struct {
	cached bool           // only models in caches, whatever is wrong with them; else all that can be loaded, or half of which is there
	demo   bool           // the demo as well
	absent bool           // aliases of models that are not on disk as well
	files  bool           // whatever the shell completes as well
	judged bool           // only models of kind, which takes a look at each one's config.json
	kind   chat.ModelKind // of judged
}

// What arguments and flags want.
var (
	toServe  = offer{demo: true, files: true}
	toFetch  = offer{cached: true, absent: true}
	toRemove = offer{cached: true, files: true}
	toName   = offer{files: true}
)

// modelFlags are the flags that name models.
var modelFlags = map[string]offer{
	"model":           toServe,
	"small-model":     {files: true, judged: true},
	"embedding-model": {files: true, judged: true, kind: chat.Embeds},
	"rerank-model":    {files: true, judged: true, kind: chat.Ranks},
}

// completeFlags completes those flags of cmd that name models.
func completeFlags(cmd *cobra.Command, cfg *config.Config) {
	for flag, o := range modelFlags {
		if cmd.Flags().Lookup(flag) == nil {
			continue
		}
		err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return o.complete(cmd, cfg, typed)
		})
		if err != nil {
			panic("cli: " + err.Error())
		}
	}
}

// completeModel completes the argument of cmd at place, from 0, with what o offers.
func completeModel(cfg *config.Config, place int, o offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != place {
			return nil, o.otherwise()
		}
		return o.complete(cmd, cfg, typed)
	}
}

// otherwise says what the shell does of itself.
func (o *offer) otherwise() cobra.ShellCompDirective {
	if o.files {
		return cobra.ShellCompDirectiveDefault
	}
	return cobra.ShellCompDirectiveNoFileComp
}

// complete gives the names that go on as typed. One with a path's look is the shell's.
func (o *offer) complete(cmd *cobra.Command, cfg *config.Config, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if o.files && (strings.HasPrefix(typed, ".") || strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, "~")) ||
		cfg.Load(cmd.Flags(), config.Environ, func(string) {}) != nil {
		return nil, o.otherwise()
	}
	on := roots(cfg)
	if !o.judged {
		on.Judge = nil
	}
	list, _ := on.List(cmd.Context()) // an error is the context's
	var names []cobra.Completion
	if o.demo {
		names = append(names, demo.Name)
	}
	for i := range list {
		e := &list[i]
		if o.cached && !e.Cached() || !o.cached && e.State == hub.Unusable || o.judged && chat.ModelKind(e.Kind) != o.kind {
			continue
		}
		names = append(names, e.ID)
	}
	aliases, _ := on.Aliases.List() // a file that cannot be read has none
	for _, a := range aliases {
		if o.absent || !a.Builtin && !o.judged || slices.Contains(names, a.Model) {
			names = append(names, a.Name)
		}
	}
	return beginning(names, typed), o.otherwise()
}

func beginning(names []cobra.Completion, typed string) []cobra.Completion {
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, typed) })
	slices.Sort(names)
	return slices.Compact(names)
}

// completeLatest bounds the question to the server whose models are offered.
const completeLatest = 2 * time.Second

// completeServed completes the argument MODEL with models of the server that was started last: those that want reports.
func completeServed(want func(*server.Managed) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const nothing = cobra.ShellCompDirectiveNoFileComp
		ctx, cancel := context.WithTimeout(cmd.Context(), completeLatest)
		defer cancel()
		all, err := running(ctx)
		if len(args) > 0 || err != nil || len(all) == 0 {
			return nil, nothing
		}
		var got struct{ Models []server.Managed }
		if all[0].call(ctx, http.MethodGet, "models", nil, &got) != nil {
			return nil, nothing
		}
		var names []cobra.Completion
		for i := range got.Models {
			if want(&got.Models[i]) {
				names = append(names, got.Models[i].ID)
			}
		}
		return beginning(names, typed), nothing
	}
}

// completeAlias completes a name that the user has given.
func completeAlias(cfg *config.Config) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		if cfg.Load(cmd.Flags(), config.Environ, func(string) {}) == nil {
			aliases, _ := roots(cfg).Aliases.List() // as above
			for _, a := range aliases {
				if !a.Builtin {
					names = append(names, a.Name)
				}
			}
		}
		return beginning(names, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeCached completes the argument MODEL with what the prompt cache on disk has something of.
func completeCached(cfg *config.Config) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) == 0 && cfg.Load(cmd.Flags(), config.Environ, func(string) {}) == nil {
			if l, err := listCache(cfg); err == nil {
				for _, f := range l.Folders {
					names = append(names, f.Model)
				}
			}
		}
		return beginning(names, typed), cobra.ShellCompDirectiveNoFileComp
	}
}
