package bench

import (
	"bytes"
	"fmt"

	"hearth/internal/engine"
)

// timeline draws the steps around a long prompt: a bar per step as high as it took, coloured by what ran, the long
// prompt's span below it and a mark for every short prompt.
func timeline(steps []engine.Step, long engine.Usage, shorts []engine.Usage) []byte {
	const width, height, left, base = 1200, 300, 60, 220
	from, to := long.Started.Add(-2e9), long.First.Add(2e9)
	x := func(d float64) float64 { return left + d/to.Sub(from).Seconds()*(width-left-10) }
	most := 0.0
	for i := range steps {
		if steps[i].Began.After(from) && steps[i].Began.Before(to) {
			most = max(most, steps[i].Run.Seconds())
		}
	}
	y := func(s float64) float64 { return base - s/most*(base-40) }

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="18">one bar is one step: its width is its time, its height too; blue: eight streams decode, orange: and prompt tokens run beside them</text>`+"\n", left)
	for ms := 0.0; ms < most*1000; ms += 50 {
		fmt.Fprintf(&b, `<text x="4" y="%.0f">%.0f ms</text><line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", y(ms/1e3)+4, ms, left, width-10, y(ms/1e3), y(ms/1e3))
	}
	for i := range steps {
		s := &steps[i]
		if s.Began.Before(from) || s.Began.After(to) {
			continue
		}
		colour := "#4878cf"
		if s.Prompt > 0 {
			colour = "#e8853b"
		}
		x0, x1 := x(s.Began.Sub(from).Seconds()), x(end(s).Sub(from).Seconds())
		fmt.Fprintf(&b, `<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" fill="%s"/>`+"\n", x0, y(s.Run.Seconds()), max(x1-x0-0.1, 0.2), base-y(s.Run.Seconds()), colour)
	}
	x0, x1 := x(long.Started.Sub(from).Seconds()), x(long.First.Sub(from).Seconds())
	fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="14" fill="#7a5195"/><text x="%.1f" y="%d">prompt of %d tokens, %.0f s</text>`+"\n",
		x0, base+8, x1-x0, x0, base+36, long.Prompt, long.First.Sub(long.Started).Seconds())
	for _, u := range shorts {
		at := x(u.Submitted.Sub(from).Seconds())
		fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="14" fill="#2a9d5c"/>`+"\n", at, base+44, max(x(u.First.Sub(from).Seconds())-at, 1.5))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">short prompts, from arrival to first token</text>`+"\n</svg>\n", left, base+74)
	return b.Bytes()
}
