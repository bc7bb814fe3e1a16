package bench

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hearth/internal/chart"
	"hearth/internal/console"
	"hearth/internal/regular"
)

// drawFlags are the files that a result is drawn into; "": none.
type drawFlags struct{ svg, html string }

func (d *drawFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&d.svg, "svg", "", "draw the result into this file")
	fl.StringVar(&d.html, "html", "", "write a page with drawings and all figures into this file")
}

// check refuses files that cannot be written, before anything is measured for them.
func (d *drawFlags) check() error {
	for _, f := range []struct{ flag, path string }{{"--svg", d.svg}, {"--html", d.html}} {
		if f.path == "" {
			continue
		}
		if st, err := os.Stat(f.path); err == nil && st.IsDir() {
			return console.Hintf(fmt.Errorf("%s: %s is a folder", f.flag, regular.Clip(f.path)), "name a file: %s", filepath.Join(f.path, "bench"+strings.Replace(f.flag, "--", ".", 1)))
		}
		dir := filepath.Dir(f.path)
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return console.Hintf(fmt.Errorf("%s: there is no folder %s to write into", f.flag, regular.Clip(dir)), "make it: mkdir -p %s", shellWord(dir))
		}
	}
	return nil
}

// write draws the page into the files.
func (d *drawFlags) write(p *chart.Page) error {
	if d.svg != "" {
		if err := writeFile(d.svg, p.SVG()); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	if d.html != "" {
		if err := writeFile(d.html, p.HTML()); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	return nil
}

func writeFile(path string, data []byte) error {
	return regular.Replace(path, 0o644, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// commandLine is what was typed, but for the flags that say where the result goes, and for keys.
func commandLine(cmd *cobra.Command, args []string) string {
	words := []string{cmd.CommandPath()}
	for _, a := range args {
		words = append(words, shellWord(a))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if s, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(s.GetSlice(), ",")
		}
		switch {
		case slices.Contains([]string{"svg", "html", "json"}, f.Name):
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name+map[bool]string{false: "=" + value}[value == "true"])
		case f.Name == "api-key":
			words = append(words, "--api-key …")
		default:
			words = append(words, "--"+f.Name, shellWord(value))
		}
	})
	return strings.Join(words, " ")
}

var bareWord = regexp.MustCompile(`^[A-Za-z0-9_./:,@%+=-]+$`)

// shellWord is s as a shell takes it for one word.
func shellWord(s string) string {
	if bareWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// dashedName is what dashed lines are called.
const dashedName = "what the machine could do at most"

// page is the result as it is drawn.
func (r *speedResult) page(command string) *chart.Page {
	p := &chart.Page{}
	p.Title = "hearth bench: " + r.Model.Shape
	rates := fmt.Sprintf("reads %s GB/s, %s GOPS of 8-bit integers, %s GFLOPS of floats", chart.Number(r.Machine.Read), chart.Number(r.Machine.Int8), chart.Number(r.Machine.Float))
	build := r.Version + " (" + r.Commit + ")"
	p.About = [][2]string{{"model", fmt.Sprintf("%s, %.0f MB", r.about, float64(r.Model.Bytes)/1e6)}, {"machine", r.CPU + ", kernel " + r.Kernel},
		{"its limits", rates + "; attention counts at multiplications of " + r.Model.Attention}, {"hearth", build}, {"command", command}}
	p.Facts = []string{r.about, r.CPU + ", kernel " + r.Kernel + ": " + rates, "hearth " + build + ": " + command}
	for _, plot := range []*chart.Plot{r.byBatch(), r.byDepth(), r.firstToken(), r.prefill()} {
		if plot.HasShape() {
			p.Panels = append(p.Panels, plot)
		}
	}
	p.Panels = append(p.Panels, r.latency()...)
	p.Panels = append(p.Panels, r.shares()...)
	p.Tables = []chart.Table{r.table()}
	return p
}

// series gathers results into lines: those of one name, in the order in which names appear, each with the limits below it.
type series struct {
	lines  []chart.Line
	limits []chart.Line
}

// add puts a point on the line of a name, and one on its limit if that is known.
func (s *series) add(name string, at chart.Point, limit float64) {
	i := slices.IndexFunc(s.lines, func(l chart.Line) bool { return l.Name == name })
	if i < 0 {
		i = len(s.lines)
		s.lines = append(s.lines, chart.Line{Name: name})
		s.limits = append(s.limits, chart.Line{Limit: true})
	}
	s.lines[i].Points = append(s.lines[i].Points, at)
	if limit > 0 {
		s.limits[i].Points = append(s.limits[i].Points, chart.Point{X: at.X, Y: limit})
	}
}

// onto gives a plot the lines that are some, from left to right.
func (s *series) onto(p *chart.Plot) *chart.Plot {
	for i, l := range s.lines {
		for _, of := range []chart.Line{l, s.limits[i]} {
			slices.SortFunc(of.Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
			if len(of.Points) > 0 {
				p.Lines = append(p.Lines, of)
			}
			if of.Limit && len(of.Points) > 1 {
				p.Limit = dashedName
			}
		}
	}
	return p
}

// varied says in words what of a test others of its kind have different, but for what is left out.
func (r *speedResult) varied(t *speedTest, but string) string {
	var words []string
	for _, of := range []struct {
		name string
		get  func(*speedTest) string
	}{
		{"batch", func(t *speedTest) string { return count(t.Batch, "sequence") }},
		{"depth", func(t *speedTest) string { return fmt.Sprintf("depth %s", chart.Number(float64(t.Depth))) }},
		{"tokens", func(t *speedTest) string { return count(t.tokens, "token") }},
		{"threads", func(t *speedTest) string { return count(t.Threads, "thread") }},
	} {
		differs := slices.ContainsFunc(r.Results, func(o *speedTest) bool { return o.decode == t.decode && of.get(o) != of.get(t) })
		if differs && of.name != but {
			words = append(words, of.get(t))
		}
	}
	return strings.Join(words, ", ")
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return chart.Number(float64(n)) + " " + what
}

func (r *speedResult) byBatch() *chart.Plot {
	return r.decoding("batch", func(t *speedTest) int { return t.Batch }, &chart.Plot{Title: "Decoding: throughput by sequences", X: "sequences that decode together"})
}

func (r *speedResult) byDepth() *chart.Plot {
	return r.decoding("depth", func(t *speedTest) int { return t.Depth }, &chart.Plot{Title: "Decoding: throughput by depth", X: "tokens that are there before"})
}

// decoding puts the throughput of decoding onto a plot, by x, which is what varied calls so.
func (r *speedResult) decoding(name string, x func(*speedTest) int, onto *chart.Plot) *chart.Plot {
	var s series
	for _, t := range r.Results {
		if t.decode {
			s.add(cmp.Or(r.varied(t, name), "decoding"), t.point(float64(x(t))), t.Limit)
		}
	}
	onto.Y = "tokens per second, of all together"
	return s.onto(onto)
}

// point is a test's throughput, with the least and most of the repetitions.
func (t *speedTest) point(x float64) chart.Point {
	return chart.Point{X: x, Y: t.TPS, Low: t.Min, High: t.Max}
}

// firstToken is how long prompts take, by their whole length: computed from the beginning, or but for what was there before.
func (r *speedResult) firstToken() *chart.Plot {
	var fresh, cached series
	for _, t := range r.Results {
		if t.decode || t.TPS <= 0 {
			continue
		}
		took := func(tps float64) float64 {
			if tps <= 0 {
				return 0
			}
			return 1e3 * float64(t.tokens) / tps
		}
		at := chart.Point{X: float64(t.Depth + t.tokens), Y: took(t.TPS), Low: took(t.Max), High: took(t.Min)}
		threads := ""
		if slices.ContainsFunc(r.Results, func(o *speedTest) bool { return o.Threads != t.Threads }) {
			threads = ", " + count(t.Threads, "thread")
		}
		if t.Depth == 0 {
			fresh.add("fresh"+threads, at, took(t.Limit))
		} else {
			cached.add("cached but for "+count(t.tokens, "token")+threads, at, took(t.Limit))
		}
	}
	fresh.lines, fresh.limits = append(fresh.lines, cached.lines...), append(fresh.limits, cached.limits...)
	return fresh.onto(&chart.Plot{Title: "Time to the first token", X: "tokens of the prompt", Y: "milliseconds"})
}

func (r *speedResult) prefill() *chart.Plot {
	var s series
	for _, t := range r.Results {
		if !t.decode {
			s.add(cmp.Or(r.varied(t, "tokens"), "prefill"), t.point(float64(t.tokens)), t.Limit)
		}
	}
	return s.onto(&chart.Plot{Title: "Prefill: throughput by length", X: "tokens that are computed", Y: "tokens per second"})
}

// latency is the percentiles of the time between tokens.
func (r *speedResult) latency() []chart.Panel {
	p := &chart.Ranges{Title: "Time between tokens", X: "milliseconds of a decode step", Marks: []string{"median", "90th", "99th percentile"}}
	for _, t := range r.Results {
		if t.Steps == nil {
			continue
		}
		row := chart.Range{Name: cmp.Or(r.varied(t, ""), t.Test), Values: []float64{t.Steps.P50, t.Steps.P90, t.Steps.P99}}
		if t.Limit > 0 {
			row.Limit = 1e3 * float64(t.Batch) / t.Limit
			p.Limit = "the machine's limit"
		}
		p.Rows = append(p.Rows, row)
	}
	if len(p.Rows) == 0 {
		return nil
	}
	return []chart.Panel{p}
}

// shares is how near each test comes to what the machine could do.
func (r *speedResult) shares() []chart.Panel {
	p := &chart.Shares{Title: "Share of the machine's limit", X: "of " + dashedName}
	for _, t := range r.Results {
		if t.Share > 0 {
			name := t.Test
			if v := r.varied(t, "tokens"); v != "" {
				name += ", " + v
			}
			p.Rows = append(p.Rows, chart.Share{Name: name, Percent: t.Share, Text: fmt.Sprintf("%s %%, %s tokens/s", chart.Number(t.Share), chart.Number(t.TPS))})
		}
	}
	if len(p.Rows) == 0 {
		return nil
	}
	return []chart.Panel{p}
}

func (r *speedResult) table() chart.Table {
	t := chart.Table{Title: "Figures", Head: []string{"test", "depth", "sequences", "threads", "tokens/s", "least", "most", "limit", "of it", "step p50", "p90", "p99 ms"}}
	for _, of := range r.Results {
		row := []string{of.Test}
		for _, n := range []int{of.Depth, of.Batch, of.Threads} {
			row = append(row, chart.Number(float64(n)))
		}
		for _, x := range []float64{of.TPS, of.Min, of.Max} {
			row = append(row, chart.Number(x))
		}
		row = append(row, known(of.Limit, ""), known(of.Share, " %"))
		for _, get := range []func(*percentiles) float64{func(p *percentiles) float64 { return p.P50 }, func(p *percentiles) float64 { return p.P90 }, func(p *percentiles) float64 { return p.P99 }} {
			cell := ""
			if of.Steps != nil {
				cell = chart.Number(get(of.Steps))
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// known is a figure with its unit, or nothing where it is not known.
func known(x float64, unit string) string {
	if x == 0 {
		return ""
	}
	return chart.Number(x) + unit
}
