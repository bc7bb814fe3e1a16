package wire

import (
	"strconv"
	"strings"
	"time"
)

// TimingHeader tells where the time of a reply went, as https://www.w3.org/TR/server-timing/ has it: load is until the model was
// there, prompt until the prompt was made and queued, queue until its first step, prefill until its first token, decode until the
// end, total since the request came; in milliseconds. A stream has it before the reply as far as it is known, and behind it.
const TimingHeader = "Server-Timing"

// timing is the header's value, of what is known; ended says that this is all.
func (i *Info) timing(ended bool) string {
	var b strings.Builder
	add := func(name, about string, d time.Duration) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + ";dur=" + strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', -1, 64))
		if about != "" {
			b.WriteString(`;desc="` + about + `"`)
		}
	}
	add("load", "", i.Load)
	add("prompt", "", i.Prompt)
	if u := i.Usage; u != nil && u.Hit != "" {
		add("queue", u.Waited, u.Queued)
		if ended && u.Output > 0 {
			add("prefill", "", u.Prefill)
			add("decode", "", u.Decode)
		}
	}
	if ended && !i.Began.IsZero() {
		add("total", "", time.Since(i.Began))
	}
	return b.String()
}
