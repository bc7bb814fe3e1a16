package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// drawn runs a command that draws and gives the drawing, which is XML, and the page.
func drawn(t *testing.T, args ...string) (svg, page string) {
	t.Helper()
	dir := t.TempDir()
	names := []string{filepath.Join(dir, "bench.svg"), filepath.Join(dir, "bench.html")}
	runBench(t, append(args, "--svg", names[0], "--html", names[1])...)
	var out []string
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(data))
	}
	for d := xml.NewDecoder(strings.NewReader(out[0])); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, out[0])
		}
	}
	return out[0], out[1]
}

// TestDraw: what a run varied is drawn beside the limits, and nothing else.
func TestDraw(t *testing.T) {
	quick := []string{"--shape", "tiny", "--reps", "1", "--probe-size", "2MiB", "-n", "2"}
	svg, page := drawn(t, append(quick, "-p", "5,70", "-d", "0,66", "-b", "1,3")...)
	all := []string{"Decoding: throughput by sequences", "Decoding: throughput by depth", "Time to the first token", ">fresh<", ">cached but for 5 tokens<",
		"Prefill: throughput by length", "Time between tokens", "Share of the machine&#39;s limit", ">" + dashedName + "<", "GB/s"}
	for _, s := range []string{svg, page} {
		for _, want := range all {
			if !strings.Contains(s, want) {
				t.Errorf("no %q in %s", want, s)
			}
		}
	}
	for _, want := range []string{"<code>bench --shape tiny --reps 1 --probe-size 2097152 --tokens 2 --prompt 5,70 --depth 0,66 --batch 1,3</code>", "<td>pp70</td><td>66</td>", "dev (unknown)"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
	svg, _ = drawn(t, append(quick, "-p", "5")...)
	for i, title := range all {
		if got, want := strings.Contains(svg, title), i > 5; got != want && i != 8 {
			t.Errorf("one test each: %q is drawn: %v", title, got)
		}
	}
}

// TestDrawRefuses: files that cannot be written are told before anything is measured.
func TestDrawRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"--svg", dir}, {"--html", filepath.Join(dir, "none", "a.html")}} {
		cmd := NewCmd("dev", "unknown")
		cmd.SetArgs(append(args, "--shape", "no such shape"))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.Execute()
		var h interface{ Hint() string }
		if err == nil || !strings.HasPrefix(err.Error(), args[0]+": ") || !errors.As(err, &h) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{"a/b-c_1.x": "a/b-c_1.x", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'"} {
		if got := shellWord(s); got != want {
			t.Errorf("%q is %s, want %s", s, got, want)
		}
	}
}
