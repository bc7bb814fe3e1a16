package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchSpeculate: recorded answers are said, with drafts and without, embedded ones and those of files, by attention and
// recurrent layers.
func TestBenchSpeculate(t *testing.T) {
	if testing.Short() {
		t.Skip("runs models for seconds")
	}
	file := filepath.Join(t.TempDir(), "again")
	line := "one two three four five six seven eight nine ten. "
	if err := os.WriteFile(file, []byte(strings.Repeat(line, 3)+textCut+strings.Repeat(line, 3)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		shape, text string
	}{{"tiny", file}, {"tiny-hybrid", "prose"}} {
		out, progress := runBench(t, "speculate", tt.text, "--shape", tt.shape, "-b", "1,2", "-n", "16", "--pairs", "1", "--first", "40", "--threads", "1", "--json")
		var r speculateResult
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err, out)
		}
		if len(r.Results) != 3 || !r.Results[2].First || len(r.Rows) != 2*len(rowsOf) || !strings.Contains(progress, "2 together, turn 1 of 1") {
			t.Fatalf("%s: %s: %s", tt.text, out, progress)
		}
		for i, s := range r.Results[:2] {
			if s.Text != filepath.Base(tt.text) || s.Batch != i+1 || s.Tokens != 16 || s.Plain <= 0 || s.Drafts <= 0 || s.Ratio.Median <= 0 || s.Same.Low <= 0 ||
				s.Ceiling < 1 || s.Steps < 1 || s.Accepted > s.Drafted {
				t.Errorf("%s: %+v", tt.text, s)
			}
		}
	}
	odd := filepath.Join(t.TempDir(), "odd")
	if err := os.WriteFile(odd, []byte("no answer"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"poems"}, {odd}, {"-b", "0"}, {"-n", "1"}, {"--pairs", "0"}, {"--first", "-1"}, {"--shape", "giant"}, {"--tokenizer", "no/such/folder"}} {
		cmd := NewCmd("dev", "unknown")
		cmd.SetArgs(append([]string{"speculate"}, args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err == nil {
			t.Errorf("%v ran", args)
		}
	}
}

// TestBetween: the interval of a median has the ranks that tables of the sign test give.
func TestBetween(t *testing.T) {
	for n, rank := range map[int]int{1: 1, 5: 1, 6: 1, 8: 1, 9: 2, 12: 3, 20: 6, 25: 8, 40: 14} {
		var x []float64
		for i := range n {
			x = append(x, float64((i*7)%n+1)) // no factor of 7 among them
		}
		if got, want := between(x), (interval{float64(n+1) / 2, float64(rank), float64(n + 1 - rank)}); got != want {
			t.Errorf("of %d: %v, want %v", n, got, want)
		}
	}
	var out bytes.Buffer
	r := speculateResult{Rows: []rowCost{{1, 2, 10, 1.5}, {1, 4, 12, 2}, {8, 4, 1, 0.1}}, Results: []*speculateTest{{Text: "edits", Drafted: 4, Accepted: 3}, {Text: "prose"}}}
	if err := r.print(&out); err != nil || !strings.Contains(out.String(), "75%") || !strings.Contains(out.String(), "none run") {
		t.Errorf("%v: %s", err, out.String())
	}
	if c := ceiling(r.Rows, 1); c != 2 {
		t.Errorf("a ceiling of %v", c)
	}
}
