package cli

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/budget"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/regular"
	"hearth/internal/tier"
)

func newCacheCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Look at the prompt cache on disk, or clear it",
		Long: `The prompt cache on disk has a folder for every model that was served: keys and values of prompts, which the next server of that
model need not compute again. They hold what was said to the model.`,
		Example: `  hearth cache ls
  hearth cache clear`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCacheLsCmd(), newCacheClearCmd())
	return cmd
}

func newCacheLsCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List what the prompt cache on disk has of which model",
		Example: `  hearth cache ls
  hearth cache ls --json`,
		Args: console.NoArgs,
	}
	cfg := settings(cmd, config.Disk)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		l, err := listCache(cfg)
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), l, asJSON)
	}
	return cmd
}

func newCacheClearCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clear [MODEL]",
		Short: "Remove what the prompt cache on disk has, of one model or of all",
		Long: `clear removes the folders of models that no program has open, or of MODEL alone, as cache ls names it. A server clears its own when
it is asked by DELETE /hearth/cache.`,
		Example: `  hearth cache clear
  hearth cache clear demo`,
		Args: console.MaxArgs(1),
	}
	cfg := settings(cmd, config.Disk)
	cmd.ValidArgsFunction = completeCached(cfg)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		l, err := listCache(cfg)
		if err != nil {
			return err
		}
		return l.clear(cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
	}
	return cmd
}

// cacheList is the prompt cache on disk.
type cacheList struct {
	Dir     string        `json:"dir"` // "": nothing is kept
	Bytes   int64         `json:"bytes"`
	Folders []cacheFolder `json:"models"`
}

type cacheFolder struct {
	Model  string    `json:"model"`
	Dir    string    `json:"folder"`
	Runs   int       `json:"entries"` // files of pages
	Bytes  int64     `json:"bytes"`
	Opened time.Time `json:"opened"`
	InUse  bool      `json:"in_use"` // a program has it open
}

func listCache(cfg *config.Config) (*cacheList, error) {
	l := &cacheList{Dir: cfg.PrefixCacheFolder(), Folders: []cacheFolder{}}
	if l.Dir == "" {
		return l, nil
	}
	all, err := tier.List(l.Dir)
	for _, f := range all {
		l.Folders = append(l.Folders, cacheFolder(f))
		l.Bytes += f.Bytes
	}
	return l, err
}

func (l *cacheList) print(w io.Writer) error {
	if len(l.Folders) == 0 {
		fmt.Fprintln(w, "the prompt cache on disk is empty")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tENTRIES\tSIZE\tLAST OPENED\tFOLDER")
	for _, f := range l.Folders {
		opened := f.Opened.Format(time.DateTime)
		if f.InUse {
			opened = "in use"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\n", regular.Clip(f.Model), f.Runs, budget.Size(f.Bytes), opened, f.Dir)
	}
	return t.Flush()
}

// clear removes the folders of the model of args, or all. What a program has open stays, and that is said.
func (l *cacheList) clear(out, notes io.Writer, args []string) error {
	var freed int64
	n, found := 0, false
	var names []string
	for _, f := range l.Folders {
		names = append(names, f.Model)
		if len(args) > 0 && f.Model != args[0] {
			continue
		}
		found = true
		switch err := tier.Remove(f.Dir); {
		case errors.Is(err, regular.ErrBusy):
			fmt.Fprintf(notes, "hearth: %s stays: a program has it open\n", regular.Clip(f.Model))
		case err != nil:
			return err
		default:
			n++
			freed += f.Bytes
		}
	}
	if len(args) > 0 && !found {
		err := fmt.Errorf("the prompt cache on disk has nothing of %s", regular.Quote(args[0]))
		if near := config.Nearest(args[0], names); near != "" {
			return console.Hintf(err, "did you mean %s?", near)
		}
		return err
	}
	fmt.Fprintf(out, "removed %d folders, %s free again\n", n, budget.Size(freed))
	return nil
}
