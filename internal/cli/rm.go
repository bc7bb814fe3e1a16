package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"hearth/internal/budget"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/hub"
	"hearth/internal/regular"
)

func newRmCmd() *cobra.Command {
	var yes, force bool
	cmd := &cobra.Command{
		Use:   "rm MODEL",
		Short: "Remove a model from this disk",
		Long: `rm removes what a name means: in the Hugging Face cache one revision (MODEL@REVISION, or the one that MODEL means), with
those of its files that no other revision and no other model links. The repository goes with its last revision. It asks before it
removes anything. A model that a program has loaded or downloads stays, and what a link leads to is never removed.
Folders that are in no cache were put there by somebody: they want --force and their whole path.`,
		Example: `  hearth rm mlx-community/Qwen3-0.6B-4bit
  hearth rm ~/llm/models/my-model --force`,
		Args: oneModel,
	}
	cfg := settings(cmd, config.Model)
	cmd.ValidArgsFunction = completeModel(cfg, 0, toRemove)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&force, "force", false, "remove a folder that is in no cache, named by its whole path")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		return removeModel(cmd, roots(cfg), args[0], yes, force)
	}
	return cmd
}

// oneModel wants the argument MODEL.
func oneModel(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return console.Hintf(errors.New("which model?"), "%s --help shows how to call it, hearth ls what there is", cmd.CommandPath())
	}
	return console.MaxArgs(1)(cmd, args)
}

func removeModel(cmd *cobra.Command, on *hub.Roots, name string, yes, force bool) error {
	e, err := on.Find(name)
	if err != nil {
		return err
	}
	if !e.Cached() {
		if !force || name != e.Dir {
			return console.Hintf(fmt.Errorf("%s is in no cache: hearth has not put it there", regular.Clip(e.Dir)), "to remove the folder: hearth rm --force %s", regular.Clip(e.Dir))
		}
	}
	m, err := on.PlanRemoval(e)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), removalText(&m))
	if !yes {
		if ok, err := confirm(cmd, "remove it?"); err != nil || !ok {
			return err
		}
	}
	if err := on.Remove(m); err != nil {
		if errors.Is(err, hub.ErrInUse) {
			return console.Hintf(err, "hearth ps shows what runs; hearth stop %s unloads it", name)
		}
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "removed %s, %s free again\n", regular.Clip(e.ID), budget.Size(m.Bytes))
	return nil
}

// removalText says what would go.
func removalText(m *hub.Removal) string {
	what := m.Entry.ID
	if m.Entry.Revision != "" {
		what += ", revision " + m.Entry.Revision
	}
	text := fmt.Sprintf("%s: %d files, %s, in %s", regular.Clip(what), m.Files, budget.Size(m.Bytes), m.Entry.Dir)
	if m.Kept > 0 {
		text += fmt.Sprintf("; %d files stay that others link", m.Kept)
	}
	if len(m.Left) > 0 {
		text += "; other revisions stay: " + regular.Clip(strings.Join(m.Left, ", "))
	}
	return text
}

// confirm asks on the terminal. Without one the answer is an error.
func confirm(cmd *cobra.Command, question string) (bool, error) {
	if !console.IsTerminal(cmd.InOrStdin()) {
		return false, console.Hintf(errors.New("nobody is there to be asked"), "--yes does not ask")
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	return readYes(cmd.Context(), cmd.InOrStdin())
}

// readYes reads a line that says yes or anything else.
func readYes(ctx context.Context, in io.Reader) (bool, error) {
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n') // none is no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		return a == "y" || a == "yes", nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
