package cli

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"hearth/internal/console"
)

// Stamped by -ldflags -X; empty in a plain go build, where the toolchain's own stamp is used.
var (
	version string
	commit  string
)

// buildVersion returns the version and the commit, "dev" and "unknown" where nobody stamped them.
func buildVersion() (string, string) {
	v, c := version, commit
	info, ok := debug.ReadBuildInfo()
	if ok && v == "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	if ok && c == "" {
		c = vcs(info)
	}
	if v == "" {
		v = "dev"
	}
	if c == "" {
		c = "unknown"
	}
	return v, c
}

// buildMark tells this build of the program from others. Builds that nobody stamped differ by size and time of their file.
func buildMark() string {
	v, c := buildVersion()
	mark := v + " " + c
	if name, err := os.Executable(); err == nil && (v == "dev" || strings.HasSuffix(c, "-dirty")) {
		if st, err := os.Stat(name); err == nil {
			mark += fmt.Sprintf(" %d %d", st.Size(), st.ModTime().UnixNano())
		}
	}
	return mark
}

// vcs is the commit the toolchain recorded, shortened, with a mark if files had been changed.
func vcs(info *debug.BuildInfo) string {
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if rev == "" {
		return ""
	}
	return rev + dirty
}

func newVersionCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version and commit",
		Example: "  hearth version",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, c := buildVersion()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "hearth %s (commit %s, %s, %s/%s)\n", v, c, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
