//go:build unix

package jinja

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

var corpus = flag.String("corpus", "", "cases that tools/golden/templates.py wrote, for BenchmarkCorpus")

// BenchmarkCorpus times every case of a corpus that renders and reports the median and the 95th percentile over the
// cases, in microseconds of process CPU time (the collector included) per render.
func BenchmarkCorpus(b *testing.B) {
	if *corpus == "" {
		b.Skip("no -corpus given")
	}
	f, err := os.Open(*corpus)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var micros []float64
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var c struct {
			Source string
			Vars   json.RawMessage
			Text   *string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			b.Fatal(err)
		}
		if c.Text == nil {
			continue
		}
		t, err := Parse("case", c.Source)
		if err != nil {
			b.Fatal(err)
		}
		micros = append(micros, renderMicros(b, t, parseVars(b, c.Vars)))
	}
	if len(micros) == 0 {
		b.Fatal("the corpus has no case that renders")
	}
	slices.Sort(micros)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(micros)), "cases")
	b.ReportMetric(micros[len(micros)/2], "µs-p50")
	b.ReportMetric(micros[len(micros)*95/100], "µs-p95")
}

// renderMicros renders for a few milliseconds and returns the CPU time of one render.
func renderMicros(b *testing.B, t *Template, vars *Dict) float64 {
	const atLeast = 4 * time.Millisecond
	var took time.Duration
	renders := 0
	for n := 1; took < atLeast; n *= 2 {
		start := cpuTime(b)
		for range n {
			if _, err := t.Render(b.Context(), vars, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
		took, renders = cpuTime(b)-start, n
	}
	return float64(took.Nanoseconds()) / 1000 / float64(renders)
}

func cpuTime(b testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
