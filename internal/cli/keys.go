package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/access"
	"hearth/internal/config"
	"hearth/internal/console"
)

func newKeysCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Give out and take back API keys",
		Long: `keys changes the file of keys that hearth serve accepts: --api-key-file, or keys beside the settings file. It has the hash of a
key alone: a key is printed when it is made and never again. A running server reads the file when it has changed.`,
		Example: `  hearth keys add ada
  hearth keys add batch --priority background --rate-limit 60 --models 'mlx-community/*'
  hearth keys list
  hearth keys revoke ada`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeysAddCmd(), newKeysListCmd(), newKeysRevokeCmd())
	return cmd
}

// keyFile is the file that a command about keys works on.
func keyFile(cmd *cobra.Command, cfg *config.Config) (string, error) {
	cfg.KeyFileUnread = true
	if err := load(cmd, cfg); err != nil {
		return "", err
	}
	if file := cfg.KeyFile(); file != "" {
		return file, nil
	}
	return "", console.Hintf(errors.New("there is no file of keys"), "name one: --api-key-file FILE")
}

// keySettings are the settings that say which file it is.
func keySettings(cmd *cobra.Command) *config.Config {
	cfg := config.Default()
	cmd.Flags().SortFlags = false
	cfg.RegisterOnly(cmd.Flags(), "api-key-file", "config")
	return cfg
}

func newKeysAddCmd() *cobra.Command {
	var k access.Key
	var priority string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a key, and print it once",
		Args:  oneName("which name is the key to have?"),
	}
	f := cmd.Flags()
	cfg := keySettings(cmd)
	f.BoolVar(&k.Operator, "operator", false, "whoever has the key may see and clear what is of all, and load, fetch and remove models")
	f.StringSliceVar(&k.Models, "models", nil, "`names` of the models that may be used, each with at most one * for any text; without it all")
	f.IntVar(&k.PerMinute, "rate-limit", 0, "requests a minute; 0 is what the server has for all")
	f.IntVar(&k.MaxRequests, "max-requests", 0, "requests at a time; 0 is what the server has for all")
	f.StringVar(&priority, "priority", "interactive", "interactive, or background: all requests let those of others go first")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := keyFile(cmd, cfg)
		if err != nil {
			return err
		}
		plain := access.NewKey()
		made := access.PlainKey(plain)
		k.Name, k.Sum, k.Created, k.Background = args[0], made.Sum, time.Now().UTC().Format(time.DateOnly), priority == "background"
		if priority != "background" && priority != "interactive" {
			return fmt.Errorf("--priority %s: want interactive or background", strconv.Quote(priority))
		}
		if err := access.CheckName(k.Name); err != nil {
			return fmt.Errorf("%s: %w", strconv.Quote(k.Name), err)
		}
		if k.PerMinute < 0 || k.MaxRequests < 0 {
			return errors.New("--rate-limit and --max-requests: want a whole number from 0")
		}
		if _, err := access.Parse(k.Line()); err != nil { // of names of models, nothing else is left to be wrong
			return fmt.Errorf("--models: %w", err)
		}
		if err := access.Add(file, k); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "hearth: the key of %s, which is not shown again; its hash is in %s\n", k.Name, file)
		_, err = fmt.Fprintln(cmd.OutOrStdout(), plain)
		return err
	}
	return cmd
}

func newKeysListCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the keys and what they may", Args: console.NoArgs}
	cfg := keySettings(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		file, err := keyFile(cmd, cfg)
		if err != nil {
			return err
		}
		all, err := access.ReadFile(file)
		if err != nil && !errors.Is(err, access.ErrNoLines) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		list := &listedKeys{Keys: []listedKey{}}
		for i := range all {
			k := &all[i]
			l := listedKey{Name: k.Name, Role: k.Role(), Models: k.Models, PerMinute: k.PerMinute, MaxRequests: k.MaxRequests, Priority: "interactive", Created: k.Created}
			if k.Background {
				l.Priority = "background"
			}
			list.Keys = append(list.Keys, l)
		}
		return show(cmd.OutOrStdout(), list, asJSON)
	}
	return cmd
}

// listedKeys is what list prints.
type listedKeys struct {
	Keys []listedKey `json:"keys"`
}

type listedKey struct {
	Name        string   `json:"name"` // "": it has none
	Role        string   `json:"role"`
	Models      []string `json:"models,omitempty"`
	PerMinute   int      `json:"rate_limit,omitempty"`
	MaxRequests int      `json:"max_requests,omitempty"`
	Priority    string   `json:"priority"`
	Created     string   `json:"created,omitempty"`
}

func (l *listedKeys) print(w io.Writer) error {
	if len(l.Keys) == 0 {
		_, err := fmt.Fprintln(w, "there are no keys: hearth keys add NAME")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tROLE\tRATE LIMIT\tREQUESTS\tPRIORITY\tCREATED\tMODELS")
	number := func(n int) string {
		if n == 0 {
			return "-"
		}
		return strconv.Itoa(n)
	}
	for _, k := range l.Keys {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(k.Name, "-"), k.Role, number(k.PerMinute), number(k.MaxRequests), k.Priority,
			cmp.Or(k.Created, "-"), cmp.Or(strings.Join(k.Models, ","), "all"))
	}
	return t.Flush()
}

func newKeysRevokeCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke NAME", Aliases: []string{"rm"}, Short: "Take a key back", Args: oneName("whose key?")}
	cfg := keySettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := keyFile(cmd, cfg)
		if err != nil {
			return err
		}
		err = access.Revoke(file, args[0])
		if errors.Is(err, access.ErrNoKey) || errors.Is(err, fs.ErrNotExist) {
			return console.Hintf(err, "hearth keys list shows them")
		}
		return err
	}
	return cmd
}

// oneName asks for one argument.
func oneName(question string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return console.Hintf(errors.New(question), "%s NAME", cmd.CommandPath())
		}
		return console.MaxArgs(1)(cmd, args)
	}
}

// keysEvery is how often a server looks whether the file of its keys has changed.
const keysEvery = time.Second

// followKeys has the server accept what is in the file of keys, whenever that changes and whenever it is told to read it again.
// A file that cannot be read leaves the keys as they are, with a line in the log.
func (s *serving) followKeys(ctx context.Context) {
	file := s.cfg.KeyFile()
	if file == "" {
		return
	}
	again := func() error {
		list, err := s.cfg.Reread()
		if err != nil {
			return fmt.Errorf("the keys stay as they are: %w", err)
		}
		s.server.SetKeys(list)
		s.log.Info("the file of keys is read again", "file", file, "keys", len(list))
		return nil
	}
	s.reload = append(s.reload, again)
	seen, err := os.Stat(file)
	if err != nil || !seen.Mode().IsRegular() { // a pipe is read once
		return
	}
	go func() {
		every := time.NewTicker(keysEvery)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			now, err := os.Stat(file)
			if err != nil || os.SameFile(now, seen) && now.ModTime().Equal(seen.ModTime()) && now.Size() == seen.Size() {
				continue // one that is gone may be on its way back
			}
			seen = now
			if err := again(); err != nil {
				s.log.Warn(err.Error())
			}
		}
	}()
}
