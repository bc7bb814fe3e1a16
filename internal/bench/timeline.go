package bench

import (
	"fmt"
	"time"

	"hearth/internal/chart"
	"hearth/internal/engine"
)

// timeline draws the steps around a long prompt: a bar per step as high as it took, coloured by what ran, and below it the spans
// of the long prompt and of every short one.
func timeline(steps []engine.Step, long engine.Usage, shorts []engine.Usage) []byte {
	const around = 2 * time.Second
	from, to := long.Started.Add(-around), long.First.Add(around)
	if n := len(steps); n > 0 && end(&steps[n-1]).Before(to) {
		to = end(&steps[n-1])
	}
	at := func(t time.Time) float64 { return t.Sub(from).Seconds() }
	p := &chart.Timeline{Title: "Steps around a long prompt beside eight streams", X: "seconds", Y: "milliseconds of a step, which is as wide as it is long",
		Kinds: []string{"eight streams decode", "and prompt tokens run beside them"}, End: at(to)}
	for i := range steps {
		s := &steps[i]
		if s.Began.Before(from) || end(s).After(to) {
			continue
		}
		kind := 0
		if s.Prompt > 0 {
			kind = 1
		}
		p.Bars = append(p.Bars, chart.Bar{From: at(s.Began), To: at(end(s)), Height: 1e3 * s.Run.Seconds(), Kind: kind})
	}
	prompt := chart.Row{Name: fmt.Sprintf("the prompt of %s tokens, %.0f s", chart.Number(float64(long.Prompt)), long.First.Sub(long.Started).Seconds()),
		Spans: [][2]float64{{at(long.Started), at(long.First)}}}
	short := chart.Row{Name: "short prompts, from arrival to first token"}
	for _, u := range shorts {
		short.Spans = append(short.Spans, [2]float64{at(u.Submitted), at(u.First)})
	}
	p.Rows = []chart.Row{prompt, short}
	return (&chart.Drawing{Title: "hearth bench engine mixed", Panels: []chart.Panel{p}}).SVG()
}
