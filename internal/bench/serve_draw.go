package bench

import (
	"slices"

	"hearth/internal/chart"
	"hearth/internal/regular"
)

// page is the result as it is drawn, beside those that it is compared with.
func (r *serveResult) page(command string) *chart.Page {
	p := &chart.Page{}
	p.Title = "hearth bench serve: " + regular.Clip(r.Name)
	build := r.Version + " (" + r.Commit + ")"
	p.About = [][2]string{{"server", r.about()}, {"traffic", r.traffic()}, {"in all", r.total()}, {"asked from", r.CPU}, {"by hearth", build}, {"command", command}}
	p.Facts = []string{r.about(), r.traffic(), r.total(), "hearth " + build + " on " + r.CPU + ": " + command}
	all := append([]*serveResult{r}, r.beside...)
	for _, o := range r.beside {
		p.Title += "; " + regular.Clip(o.Name)
		p.About = slices.Insert(p.About, 1, [2]string{"beside", regular.Clip(o.Name) + " at " + o.about() + "; " + o.total()})
	}
	first := func(f *turnFigures) *percentiles { return f.First }
	between := func(f *turnFigures) *percentiles { return f.Between }
	for _, plot := range []*chart.Plot{
		byTurn(all, "Time to the first token", "milliseconds", first),
		byTurn(all, "Time between tokens", "milliseconds from one event with tokens to the next", between),
		ratesByTurn(all), tokensByTurn(all),
	} {
		if plot.HasShape() {
			p.Panels = append(p.Panels, plot)
		}
	}
	p.Panels = append(p.Panels, rangesOf(all, "Time to the first token, all turns", first)...)
	p.Panels = append(p.Panels, rangesOf(all, "Time between tokens, all turns", between)...)
	p.Tables = r.tables()
	return p
}

// byTurn draws percentiles of one server as lines, and those of several as a line each with whiskers.
func byTurn(all []*serveResult, title, unit string, of func(*turnFigures) *percentiles) *chart.Plot {
	var s series
	p := &chart.Plot{Title: title, X: "turn", Y: unit}
	if len(all) > 1 {
		p.Note = "Lines are medians; whiskers reach to the 99th percentile."
	}
	for _, r := range all {
		for i := range r.PerTurn {
			f := &r.PerTurn[i]
			x, q := float64(f.Turn), of(f)
			switch {
			case q == nil:
			case len(all) > 1:
				s.add(regular.Clip(r.Name), chart.Point{X: x, Y: q.P50, Low: q.P50, High: q.P99}, 0)
			default:
				s.add("median", chart.Point{X: x, Y: q.P50}, 0)
				s.add("90th percentile", chart.Point{X: x, Y: q.P90}, 0)
				s.add("99th percentile", chart.Point{X: x, Y: q.P99}, 0)
			}
		}
	}
	return s.onto(p)
}

func ratesByTurn(all []*serveResult) *chart.Plot {
	var s series
	for _, r := range all {
		name := "median"
		if len(all) > 1 {
			name = regular.Clip(r.Name)
		}
		for i := range r.PerTurn {
			if f := &r.PerTurn[i]; f.TPS != nil {
				s.add(name, chart.Point{X: float64(f.Turn), Y: f.TPS.P50}, 0)
			}
		}
	}
	return s.onto(&chart.Plot{Title: "Decoding: throughput of a stream", X: "turn", Y: "tokens per second, from the first to the last"})
}

// tokensByTurn draws how long prompts were and what of them was cached; of several servers the share alone.
func tokensByTurn(all []*serveResult) *chart.Plot {
	var s series
	p := &chart.Plot{Title: "Prompts", X: "turn", Y: "tokens of a request"}
	if len(all) > 1 {
		p.Title, p.Y = "Prompt tokens that were cached", "percent, as the server tells"
	}
	for _, r := range all {
		for i := range r.PerTurn {
			f := &r.PerTurn[i]
			x, n := float64(f.Turn), float64(f.Requests)
			switch {
			case n <= 0:
			case len(all) > 1 && f.share() >= 0:
				s.add(regular.Clip(r.Name), chart.Point{X: x, Y: f.share()}, 0)
			case len(all) == 1 && f.Prompt > 0:
				s.add("sent", chart.Point{X: x, Y: float64(f.Prompt) / n}, 0)
				if f.Cached != nil {
					s.add("of them cached", chart.Point{X: x, Y: float64(*f.Cached) / n}, 0)
				}
			}
		}
	}
	return s.onto(p)
}

// rangesOf is percentiles of all turns, a row for each server. Turns of a single server say more, if it has several.
func rangesOf(all []*serveResult, title string, of func(*turnFigures) *percentiles) []chart.Panel {
	if len(all) == 1 && len(all[0].PerTurn) > 1 {
		return nil
	}
	p := &chart.Ranges{Title: title, X: "milliseconds", Marks: []string{"median", "90th", "99th percentile"}}
	for _, r := range all {
		if q := of(&r.All); q != nil {
			p.Rows = append(p.Rows, chart.Range{Name: regular.Clip(r.Name), Values: []float64{q.P50, q.P90, q.P99}})
		}
	}
	if len(p.Rows) == 0 {
		return nil
	}
	return []chart.Panel{p}
}
