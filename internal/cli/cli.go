// Package cli is the command line: one file per subcommand. It wires the parts explicitly (which protocols, which
// backends), turns signals into contexts and errors into sentences, and owns no logic that a server or a model needs.
// cmd/hearth calls Main; nobody imports it.
//
// Manners: stdout carries results only. Errors are "hearth: error: …" on stderr, what to do about them "hearth: hint: …",
// and the exit status is then 1. Faults of a folder that do not stop hearth are "hearth: warning: FOLDER: …" there.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"hearth/internal/bench"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/dialect"
	"hearth/internal/hub"
	"hearth/internal/model"
)

// Main runs the program and exits.
func Main() {
	cmd := newRootCmd()
	if console.IsTerminal(os.Stdout) {
		if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			fitHelp(cmd, width)
		}
	}
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		var of *exitError
		if errors.Is(err, errListed) {
			os.Exit(0)
		}
		if errors.As(err, &of) {
			os.Exit(of.code)
		}
		report(os.Stderr, err)
		os.Exit(1)
	}
}

func newRootCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hearth",
		Short: "Serve open language models over the Anthropic and OpenAI APIs",
		Long: `hearth runs open language models in MLX and Hugging Face format on this machine and serves them over the
Anthropic Messages and the OpenAI Responses and Chat Completions APIs. Without a model of your own it serves a tiny
built-in demo.`,
		Example: `  hearth serve
  hearth serve mlx-community/Qwen3-0.6B-4bit
  hearth run "What is 17 + 25?"`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return useKernels(config.Environ) },
		Args:              console.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		hint := fmt.Sprintf("%s --help lists the flags", c.CommandPath())
		if near := nearestFlag(c, err); near != "" {
			hint = fmt.Sprintf("did you mean --%s? %s", near, hint)
		}
		return console.Hintf(err, "%s", hint)
	})
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.AddCommand(newServeCmd(), newRunCmd(), newLaunchCmd(), newPullCmd(), newConfigCmd(), bench.NewCmd(buildVersion()), newLsCmd(), newPsCmd(), newLoadCmd(), newStopCmd(), newRmCmd(), newAliasCmd(), newKeysCmd(), newCacheCmd(), newShowCmd(), newQuantizeCmd(), newDoctorCmd(), newDebugCmd(), newVersionCmd(), newWorkerCmd())
	return cmd
}

// fitHelp wraps the help of flags, of cmd and the commands below it. Without it a flag is a line, as grep wants it.
func fitHelp(cmd *cobra.Command, width int) {
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width)))
}

// nearestFlag is the flag of c that was meant, if err is that there is no such flag.
func nearestFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	name := unknown.GetSpecifiedName()
	if group := unknown.GetSpecifiedShortnames(); group != "" { // one dash too few
		name, _, _ = strings.Cut(group, "=")
	}
	return config.NearestFlag(c.Flags(), name)
}

// report prints err, and its hint if it has one, a line each.
func report(w io.Writer, err error) {
	msg, hint := err.Error(), ""
	var h interface{ Hint() string }
	var load *model.LoadError
	var missing *hub.NotFoundError
	switch {
	case errors.As(err, &h):
		hint = h.Hint()
	case errors.As(err, &load):
		msg, hint = load.Message(), load.Hint
	case errors.As(err, &missing):
		hint = catalog.Missing(missing)
	}
	var from *namedBy
	if errors.As(err, &from) {
		msg = from.origin + ": " + msg
	}
	fmt.Fprintf(w, "hearth: error: %s\n", oneLine(msg))
	if hint != "" {
		fmt.Fprintf(w, "hearth: hint: %s\n", oneLine(hint))
	}
}

// namedBy adds to an error about a model which variable or line of the settings file names it: the user did not type that name.
type namedBy struct {
	origin string
	err    error
}

func (e *namedBy) Error() string { return e.origin + ": " + e.err.Error() }
func (e *namedBy) Unwrap() error { return e.err }

// findModel finds the model of cfg.
func findModel(cfg *config.Config) (*catalog.Source, error) {
	return findNamed(cfg, "model", cfg.Model)
}

// findNamed finds the model that a flag, or what stands for it, has given a name.
func findNamed(cfg *config.Config, flag, name string) (*catalog.Source, error) {
	src, err := catalog.Find(name, roots(cfg))
	if from := cfg.From(flag); err != nil && (from == config.FromEnvironment || from == config.FromFile) {
		err = &namedBy{cfg.Origin(flag), err}
	}
	return src, err
}

func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ") }

// settings registers the groups' knobs on cmd and returns the Config that load completes.
func settings(cmd *cobra.Command, groups ...config.Group) *config.Config {
	cfg := config.Default()
	cmd.Flags().SortFlags = false
	cfg.Register(cmd.Flags(), groups...)
	completeFlags(cmd, cfg)
	return cfg
}

// load completes cfg. The error is errListed where nothing was asked for but a list, which it has printed.
func load(cmd *cobra.Command, cfg *config.Config) error {
	return loadTelling(cmd, cfg, func(line string) { fmt.Fprintf(cmd.ErrOrStderr(), "hearth: %s\n", line) })
}

// loadTelling is load that gives warn a line for each variable that it ignores.
func loadTelling(cmd *cobra.Command, cfg *config.Config, warn func(line string)) error {
	for _, line := range config.Strays(config.Environment()) {
		warn(line)
	}
	err := cfg.Load(cmd.Flags(), config.Environ, warn)
	if err == nil && cfg.ChatTemplate == "list" {
		err = listTemplates(cmd.OutOrStdout())
	}
	return err
}

// errListed ends the program well: what was asked for is printed.
var errListed = errors.New("the list is printed")

// listTemplates prints the built-in chat templates.
func listTemplates(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range dialect.Builtins {
		fmt.Fprintf(t, "%s\t%s\n", b.Name, b.About)
	}
	return cmp.Or(t.Flush(), errListed)
}

// serverSettings are those of all groups, and the flags of other servers.
func serverSettings(cmd *cobra.Command) *config.Config {
	cfg := settings(cmd, config.Groups...)
	cfg.RegisterForeign(cmd.Flags())
	return cfg
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}
