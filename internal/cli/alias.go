package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/hub"
	"hearth/internal/regular"
	"hearth/internal/server"
)

func newAliasCmd() *cobra.Command {
	var asJSON bool
	var remove string
	cmd := &cobra.Command{
		Use:   "alias [NAME MODEL]",
		Short: "Give models further names",
		Long: `alias makes NAME mean MODEL, an id with or without @revision or a folder, wherever a model is named: on the command line and in
requests. Without arguments it lists what there is, the built-in ones too. They are kept in aliases.json beside the settings
file, which a running server reads again when it has changed.`,
		Example: `  hearth alias
  hearth alias coder mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit
  hearth alias --rm coder`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return console.Hintf(fmt.Errorf("which model is %q to mean?", args[0]), "%s NAME MODEL", cmd.CommandPath())
			}
			return console.MaxArgs(2)(cmd, args)
		},
	}
	cfg := settings(cmd, config.Model)
	cmd.ValidArgsFunction = completeModel(cfg, 1, toName)
	cmd.Flags().StringVar(&remove, "rm", "", "take the alias `NAME` back")
	if err := cmd.RegisterFlagCompletionFunc("rm", completeAlias(cfg)); err != nil {
		panic("cli: " + err.Error())
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		on := roots(cfg)
		switch {
		case remove != "" && len(args) > 0:
			return console.Hintf(errors.New("--rm takes no model"), "%s --rm NAME", cmd.CommandPath())
		case remove != "":
			return on.Aliases.Remove(remove)
		case len(args) == 2:
			return setAlias(cmd.ErrOrStderr(), on, args[0], args[1])
		}
		all, err := on.Aliases.List()
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), &aliasList{aliasesOf(all)}, asJSON)
	}
	return cmd
}

// setAlias makes name mean model. A model that is not there may come later.
func setAlias(notes io.Writer, on *hub.Roots, name, model string) error {
	if catalog.Reserved(name) {
		return fmt.Errorf("%s cannot be an alias: it has a meaning of its own", regular.Quote(name))
	}
	if strings.HasPrefix(model, ".") || strings.HasPrefix(model, "~") {
		abs, err := filepath.Abs(model)
		if err != nil {
			return err
		}
		model = abs
	}
	if err := on.Aliases.Set(name, model); err != nil {
		return err
	}
	switch _, err := on.Find(name); {
	case err == nil:
	case filepath.IsAbs(model):
		fmt.Fprintf(notes, "hearth: %s has no model yet\n", regular.Clip(model))
	case strings.Contains(model, "/"):
		fmt.Fprintf(notes, "hearth: %s is not on this disk yet: hearth pull %s\n", regular.Clip(model), name)
	default:
		note := regular.Clip(model) + " is not on this disk"
		var missing *hub.NotFoundError
		if errors.As(err, &missing) {
			note += "; " + catalog.Missing(missing)
		}
		fmt.Fprintf(notes, "hearth: %s\n", note)
	}
	return nil
}

// aliasList is what alias prints.
type aliasList struct {
	Aliases []server.Alias `json:"aliases"`
}

// aliasesOf are aliases as the command and the server's route tell them.
func aliasesOf(all []hub.Alias) []server.Alias {
	out := []server.Alias{}
	for _, a := range all {
		out = append(out, server.Alias(a))
	}
	return out
}

func (l *aliasList) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, a := range l.Aliases {
		whose := ""
		if a.Builtin {
			whose = "\tbuilt in"
		}
		fmt.Fprintf(t, "%s\t%s%s\n", a.Name, regular.Clip(a.Model), whose)
	}
	return t.Flush()
}
