package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
)

func newConfigCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config [MODEL]",
		Short: "Print every setting, its value and where it comes from",
		Long: `Takes what serve takes and prints what serve would go by: every setting with its value and the flag, the variable or the
line of the settings file it comes from, and what it means where nothing is set; then what becomes of flags of other
servers. Keys are counted and not shown. Nothing is loaded.`,
		Example: `  hearth config
  hearth config mlx-community/Qwen3-0.6B-4bit --continuous-batching --rate-limit 60
  hearth config --json`,
		Args: console.MaxArgs(1),
	}
	cfg := serverSettings(cmd)
	cmd.ValidArgsFunction = completeModel(cfg, 0, toServe)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l := listing{Flags: []flagListing{}, Warnings: []string{}}
		if err := loadTelling(cmd, cfg, func(line string) { l.Warnings = append(l.Warnings, line) }); err != nil {
			return err
		}
		if len(args) > 0 {
			cfg.SetModel(args[0])
		}
		l.read(cfg)
		return show(cmd.OutOrStdout(), &l, asJSON)
	}
	return cmd
}

// listing is what the command prints.
type listing struct {
	File     string           `json:"file,omitempty"`
	Tables   []string         `json:"tables,omitempty"` // of the file, that say something of the model
	Settings []config.Setting `json:"settings"`
	Flags    []flagListing    `json:"other_flags"`
	Warnings []string         `json:"warnings"`
}

// flagListing is what becomes of a flag of other servers.
type flagListing struct {
	Flag        string `json:"flag"`
	Value       string `json:"value,omitempty"`
	Origin      string `json:"origin"`
	Warning     bool   `json:"warning"`
	Unprotected bool   `json:"unprotected"`
	Text        string `json:"text"`

	line string // of all that, for people
}

// read takes over what cfg has. A model that is not there has no table in the file, and that is a warning here.
func (l *listing) read(cfg *config.Config) {
	if err := cfg.Refused(); err != nil {
		l.Warnings = append(l.Warnings, "serve would not start: "+err.Error())
	}
	own := cfg
	src, err := findModel(cfg)
	if err == nil {
		own = catalog.Settings(src, cfg)
	} else {
		var b strings.Builder
		report(&b, err)
		l.Warnings = append(l.Warnings, "serve would not start: "+strings.TrimPrefix(firstLine(b.String()), "hearth: error: "))
	}
	l.File, l.Tables, l.Settings = own.File(), own.Sections(), own.Settings()
	l.Warnings = append(l.Warnings, own.Overruled()...)
	for _, r := range cfg.Replies() {
		l.Flags = append(l.Flags, flagListing{r.Flag, r.Value, r.Origin, r.Warns(), r.Answer == config.Unprotected, r.Text, r.Kind() + ": " + r.Line()})
	}
}

// Columns of the listing, which fits terminals of 80.
const (
	settingColumn = 27
	valueColumn   = 24
	listingWidth  = 79
)

func (l *listing) print(w io.Writer) error {
	if l.File != "" {
		fmt.Fprintf(w, "settings file: %s\n", l.File)
	}
	for _, t := range l.Tables {
		fmt.Fprintf(w, "table of the model: [%s]\n", t)
	}
	fmt.Fprintln(w, "What stands in parentheses happens because nothing is set.")
	group := config.Group("")
	for i := range l.Settings {
		s := &l.Settings[i]
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(w, "\n%s\n", group)
		}
		l.printSetting(w, s)
	}
	for i := range l.Flags {
		f := &l.Flags[i]
		if i == 0 {
			fmt.Fprint(w, "\nFlags of other servers\n")
		}
		printWrapped(w, "  ", "    ", f.line)
	}
	for i, line := range l.Warnings {
		if i == 0 {
			fmt.Fprint(w, "\nWarnings\n")
		}
		printWrapped(w, "  ", "    ", line)
	}
	return nil
}

// printSetting prints a line, or more where the value or its origin is long.
func (l *listing) printSetting(w io.Writer, s *config.Setting) {
	name := fmt.Sprintf("  %-*s", settingColumn, s.Flag)
	margin := strings.Repeat(" ", len(name))
	if s.Value == nil {
		printWrapped(w, name, margin+" ", "("+s.Unset+")")
		return
	}
	value, from := *s.Value, string(s.Source)
	if value == "" {
		value = `""`
	}
	switch s.Source {
	case config.FromFlag, config.FromEnvironment:
		from = s.Origin
	case config.FromFile, config.FromModel:
		from = "line" + strings.ReplaceAll(strings.TrimPrefix(s.Origin, l.File), ":", " ")
		if s.Source == config.FromModel {
			from += ", the model's table"
		}
	}
	pad := valueColumn
	if len(name)+pad+len(from) > listingWidth {
		pad = len(value) + 2
	}
	if len(value) < pad && len(name)+pad+len(from) <= listingWidth {
		fmt.Fprintf(w, "%s%-*s%s\n", name, pad, value, from)
		return
	}
	fmt.Fprintf(w, "%s%s\n%s%s\n", name, value, margin+"  ", from)
}

// printWrapped breaks text between words; first begins its first line and next the others.
func printWrapped(w io.Writer, first, next, text string) {
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && line != next {
			if len(line)+1+len(word) > listingWidth {
				fmt.Fprintln(w, line)
				line = next
			} else {
				line += " "
			}
		}
		line += word
	}
	fmt.Fprintln(w, line)
}
