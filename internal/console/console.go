// Package console is what commands share towards the person who types them: errors with a hint, refused arguments, numbers, a
// progress bar, and what the process takes of memory. Commands of package cli and package bench call it; it knows no command.
package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// hinted is an error with advice.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

// Hint says what to do.
func (e *hinted) Hint() string { return e.hint }

// Hintf gives err a Hint.
func Hintf(err error, format string, args ...any) error {
	return &hinted{err: err, hint: fmt.Sprintf(format, args...)}
}

// NoArgs refuses arguments, and the names of commands that cmd does not have.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		err := fmt.Errorf("unknown command %q", args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return Hintf(err, "did you mean: %s %s", cmd.CommandPath(), near[0])
		}
		return Hintf(err, "%s --help lists the commands", cmd.CommandPath())
	}
	return Hintf(fmt.Errorf("unexpected argument %q", args[0]), "%s --help shows how to call it", cmd.CommandPath())
}

// MaxArgs refuses more than n arguments.
func MaxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n && (args[n] == "true" || args[n] == "false") {
			return Hintf(fmt.Errorf("unexpected argument %q", args[n]), "a switch has its value behind an equals sign, as in --any-model=%s", args[n])
		}
		if len(args) > n {
			return Hintf(fmt.Errorf("unexpected argument %q", args[n]), "%s --help shows how to call it", cmd.CommandPath())
		}
		return nil
	}
}

// IsTerminal reports whether a stream of a command is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Commas groups digits by thousands.
func Commas(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Bar shows how far something is: on a terminal as a line that changes, elsewhere not at all.
type Bar struct {
	out      io.Writer
	terminal bool
	start    time.Time
	shown    int // permille
	drawn    bool
}

const barWidth = 30

// NewBar is a Bar on out, of something that begins now.
func NewBar(out io.Writer) *Bar {
	return &Bar{out: out, terminal: IsTerminal(out), start: time.Now()}
}

// At shows that done of total is done, and how long the rest takes if it goes on as since the beginning.
func (b *Bar) At(done, total int64) {
	n := permille(done, total)
	if !b.terminal || total <= 0 || n == b.shown {
		return
	}
	left := ""
	if spent := time.Since(b.start); n > 0 && spent > time.Second {
		left = fmt.Sprintf("%v left", (spent * time.Duration(1000-n) / time.Duration(n)).Round(time.Second))
	}
	b.draw(n, left)
}

// Note shows that done of total is done, and what else there is to say. The line is kept to the terminal's width.
func (b *Bar) Note(done, total int64, note string) {
	if b.terminal && total > 0 {
		b.draw(permille(done, total), note)
	}
}

func permille(done, total int64) int {
	if total <= 0 {
		return 0
	}
	return int(float64(done) / float64(total) * 1000)
}

func (b *Bar) draw(n int, note string) {
	b.shown = n
	full := n * barWidth / 1000
	if note != "" {
		note = ", " + note
	}
	if f, ok := b.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 { // 0: not known
			note = string([]rune(note)[:min(max(width-barWidth-8, 0), len([]rune(note)))])
		}
	}
	b.drawn = true
	fmt.Fprintf(b.out, "\r[%s%s] %3d %%%s\x1b[K", strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), n/10, note)
}

// End clears the line.
func (b *Bar) End() {
	if b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
