package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/console"
)

// agent is a coding agent that can be launched: what differs between one and another.
type agent struct {
	name    string // as people call it
	program string // what runs it, and the name of its command
	install string // the command that installs it
	told    string // for the help: how its settings reach it
	example string
	// Tokens of context, measured with the version that the interop tests pin. prompt is what it sends before a word of the
	// user's, to which others' tools and files of instructions come. With enough, any session goes on for ever, with least one
	// of short files and messages does; few says when one may not.
	prompt, least, enough int
	few                   string
	small                 bool                                             // it has a use for a small model
	check                 func(ctx context.Context, program string) error  // refuses an installation that will not do, nil if all will
	settings              func(t *target) (args []string, env [][2]string) // what points it at a server
}

const (
	shortestReply = 2_048 // the shortest limit of a reply that is worth asking for
	someModel     = "mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit"
)

func newLaunchCmd() *cobra.Command {
	agents := []*agent{claude(), codex()}
	cmd := &cobra.Command{
		Use:   "launch",
		Short: "Run a coding agent on a local model",
		Long:  `Runs a coding agent with its settings pointed at hearth. docs/agents.md says how others are told of a server.`,
		Example: `  hearth launch claude
  hearth launch codex --model ` + someModel,
		SuggestionsMinimumDistance: 2,
		Args: func(cmd *cobra.Command, args []string) error {
			err := console.NoArgs(cmd, args)
			if err != nil && len(cmd.SuggestionsFor(args[0])) == 0 {
				return console.Hintf(fmt.Errorf("%s does not know the agent %q", cmd.CommandPath(), args[0]), "it knows %s; docs/agents.md says how others are told of a server", known(agents))
			}
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, a := range agents {
		cmd.AddCommand(newLaunchAgentCmd(a))
	}
	return cmd
}

// launchOptions are the flags that launching has of its own.
type launchOptions struct {
	demo, force, print bool
}

func newLaunchAgentCmd(a *agent) *cobra.Command {
	var o launchOptions
	cmd := &cobra.Command{
		Use:        a.program + " [-- ARGS]",
		SuggestFor: []string{strings.ReplaceAll(strings.ToLower(a.name), " ", "-"), a.program + "-cli"},
		Short:      "Run " + a.name + " on a local model",
		Long: fmt.Sprintf(`Runs %[1]s, which must be installed, on the model of a hearth server of this user: the latest, or the one that
serves the model that is named. A server that still loads is waited for. Without one it serves a model itself for as
long as %[1]s runs. It says which server it is. ARGS go to %[1]s. %[2]s

%[1]s's prompt has some %[3]d tokens. A context of %[4]d tokens is enough for sessions of any length, %[5]d are the
least that is accepted without --force.`, a.name, a.told, a.prompt, a.enough, a.least),
		Example: a.example,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() > 0 || len(args) > 0 && cmd.ArgsLenAtDash() < 0 {
				return console.Hintf(fmt.Errorf("unexpected argument %q", args[0]), "arguments of %s go after --: %s -- %s", a.name, cmd.CommandPath(), strings.Join(args, " "))
			}
			return nil
		},
	}
	cfg := settings(cmd, config.Listen, config.Access, config.Model, config.Hub, config.Run, config.Sampling, config.API)
	cmd.Flags().BoolVar(&o.demo, "demo", false, "allow the demo model, which cannot do an agent's work")
	cmd.Flags().BoolVar(&o.force, "force", false, "go on where the context is too small for long sessions")
	cmd.Flags().BoolVar(&o.print, "print", false, "print what a shell would run in its place, and run nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("port") {
			cfg.Port = 0 // a server of one's own is in nobody's way
		}
		if err := load(cmd, cfg); err != nil {
			return err
		}
		if !cmd.Flags().Changed("listen") {
			cfg.Listen = nil // nor are sockets of the file of settings its own
		}
		program, err := a.find(cmd.Context(), o)
		if err != nil {
			return err
		}
		t, err := findTarget(cmd, a, cfg, o)
		if err != nil {
			return err
		}
		defer t.close()
		note, err := a.can(t, o, cmd.CommandPath())
		if err != nil {
			return err
		}
		fmt.Fprint(cmd.ErrOrStderr(), t.about(a), note)
		own, env := a.settings(t)
		args = append(own, args...)
		if o.print {
			printCommands(cmd.OutOrStdout(), a.program, args, env)
			return nil
		}
		return runAgent(cmd, program, args, env)
	}
	return cmd
}

// find is the agent's program. Where nothing is run, it need not be here.
func (a *agent) find(ctx context.Context, o launchOptions) (program string, err error) {
	program, err = exec.LookPath(a.program)
	switch {
	case err != nil && o.print:
		return "", nil
	case err != nil:
		return "", console.Hintf(fmt.Errorf("there is no %s on the path: %s is not installed", a.program, a.name), "%s", a.install)
	case a.check == nil:
		return program, nil
	}
	if err := a.check(ctx, program); err != nil {
		return "", console.Hintf(err, "%s", a.install)
	}
	return program, nil
}

// can refuses a server with which the agent cannot work, or only until its context is full, and has a line to print about one
// where that may happen.
func (a *agent) can(t *target, o launchOptions, command string) (note string, err error) {
	which := fmt.Sprintf("the server at %s (process %d) has %s: ", t.URL, t.PID, t.Model)
	more := fmt.Sprintf("where the model can, start that server with --context-length %d", a.enough)
	if t.own {
		which, more = "", fmt.Sprintf("where the model can, ask for more: %s --context-length %d", command, a.enough)
	}
	other := fmt.Sprintf("name a model: %s --model %s", command, someModel)
	refuse := func(hint, format string, args ...any) (string, error) {
		return "", console.Hintf(fmt.Errorf("%s%w", which, fmt.Errorf(format, args...)), "%s", hint)
	}
	fits := t.context >= a.prompt+shortestReply
	switch {
	case t.kind == chat.Completes:
		return refuse("use its instruct or chat version; for what it is worth, "+makeChat, "%s is %s, so %s cannot use it", t.Model, baseModel, a.name)
	case t.kind != chat.Chats:
		return refuse(other, "%s is a model for %s and does not chat, so %s cannot use it", t.Model, t.kind, a.name)
	case t.Demo && !fits:
		return refuse(other, "the demo model cannot do an agent's work, and %s's prompt of some %d tokens does not fit into its context of %d", a.name, a.prompt, t.context)
	case t.Demo && !o.demo:
		return refuse(other+"; --demo insists", "the demo model cannot do an agent's work")
	case !fits:
		return refuse(more+"; or "+other, "%s's prompt of some %d tokens does not fit into a context of %d", a.name, a.prompt, t.context)
	case t.context < a.least && !o.force:
		return refuse(more+"; --force goes on all the same",
			"a context of %d tokens is too small for %s: its prompt takes some %d, and a session that fills the rest does not go on; %d are enough",
			t.context, a.name, a.prompt, a.enough)
	case t.context < a.least:
		note = "a session that fills them may not go on"
	case t.context < a.enough:
		note = "a session that fills them is compacted, but may not go on " + a.few
	default:
		return "", nil
	}
	return fmt.Sprintf("hearth: %d tokens of context are few for %s: %s; %d are enough (--context-length)\n", t.context, a.name, note, a.enough), nil
}

// known lists the agents by the names of their commands.
func known(agents []*agent) string {
	var names []string
	for _, a := range agents {
		names = append(names, a.program)
	}
	return strings.Join(names, " and ")
}

// runAgent runs a program on the terminal until it ends, and passes its exit status on. Ctrl-C reaches it by itself; it
// decides what that means.
func runAgent(cmd *cobra.Command, program string, args []string, env [][2]string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
	defer stop()
	c := exec.CommandContext(ctx, program, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.Env = config.ChildEnv(env)
	c.Stdin, c.Stdout, c.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &exitError{code: max(exit.ExitCode(), 1), err: err}
	}
	return err
}

// exitError ends the program with the status of another, which has said why.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// printCommands prints for a shell what is run otherwise: variables, and the program if it has arguments.
func printCommands(w io.Writer, program string, args []string, env [][2]string) {
	for _, kv := range env {
		fmt.Fprintf(w, "export %s=%s\n", kv[0], shellQuoted(kv[1]))
	}
	if len(args) == 0 {
		return
	}
	fmt.Fprint(w, program)
	for _, arg := range args {
		fmt.Fprint(w, " ", word(arg))
	}
	fmt.Fprintln(w)
}

// plainWord is a word that every shell takes as it stands.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// word is a word as a shell reads it.
func word(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return shellQuoted(s)
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
