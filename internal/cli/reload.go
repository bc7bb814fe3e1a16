package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hearth/internal/config"
)

// onTerminal reports whether the process belongs to a terminal, which sends SIGHUP when it goes away. Services belong to none.
func onTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	tty.Close()
	return true
}

// rereads returns what reads all settings of a command once more, as it did when the program started with args.
func rereads(cmd *cobra.Command, args []string) func(warn func(line string)) (*config.Config, error) {
	return func(warn func(line string)) (*config.Config, error) {
		_, rest, err := cmd.Root().Find(args)
		if err != nil {
			return nil, err
		}
		again := &cobra.Command{}
		cfg := serverSettings(again)
		if err := again.ParseFlags(rest); err != nil {
			return nil, err
		}
		if err := loadTelling(again, cfg, warn); err != nil {
			return nil, err
		}
		if named := again.Flags().Args(); len(named) > 0 {
			cfg.SetModel(named[0])
		}
		return cfg, nil
	}
}

// readAgain takes over what can change while the server runs, and says what has changed and cannot. What cannot be read stays as
// it was.
func (s *serving) readAgain() {
	whole := true
	next, err := s.reread(func(line string) { s.log.Warn(line) })
	if err != nil {
		whole = false
		s.log.Warn("the settings stay as they are", "error", err)
	} else if later := next.Differs(s.cfg); len(later) > 0 {
		s.log.Warn("these settings have changed and count when the server is started again", "settings", strings.Join(later, ", "))
	}
	for _, again := range s.reload {
		if err := again(); err != nil {
			whole = false
			s.log.Warn(err.Error())
		}
	}
	if whole {
		s.log.Info("what can change is read again")
	}
}

// readAliases says whether aliases can be read: they are whenever one is asked for and their file has changed.
func (s *serving) readAliases() error {
	_, err := s.roots.Aliases.List()
	return err
}
