package dialect

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nasty are outputs of about n bytes that a parser may be slow with: markers that never end, calls without end, nesting.
func nasty(f *Family, n int) map[string]string {
	out := map[string]string{"text": "a b\n", "blanks": " ", "newlines": "\n", "angles": "<", "brackets": "[", "braces": "{", "quotes": `"`,
		"escapes": `\\\"`, "opened": `{"a":`, "pairs": `{"a":1},`, "backticks": "`", "bars": "<|"}
	const leaked = "<tools>" + `{"name": "f", "arguments": {"s": "x"}}` + "</tools>\n"
	out["leaks"], out["leaks and text"], out["leak tags"], out["leak heads"] = leaked, leaked+"x\n", "<tools>\n", `<tools>{"name": "`+"\n"
	out["bare leaks"], out["fences"] = `{"name": "f", "arguments": {}}`+"\n", "```json\n{}\n```\n"
	for k, s := range out {
		out[k] = strings.Repeat(s, n/len(s)+1)
	}
	for _, m := range f.Markers {
		out["marker "+m] = strings.Repeat(m, n/len(m)+1)
		if len(m) > 1 {
			out["most of "+m] = strings.Repeat(m[:len(m)-1], n/len(m)+1)
		}
	}
	if f.Force != nil {
		open := f.Force("f")
		for k, s := range map[string]string{"a string": `{"a": "` + strings.Repeat("x", n), "a list": `{"a": [` + strings.Repeat("1,", n/2),
			"an object": "{" + strings.Repeat(`"a": "b", `, n/10), "nested": strings.Repeat(`{"a":`, n/5), "text": strings.Repeat("a", n), "tags": strings.Repeat("<a>", n/3)} {
			out["call of "+k] = open + s
		}
		out["calls"] = strings.Repeat(open+"{}"+f.CallClose, n/(len(open)+2+len(f.CallClose))+1)
	}
	for i, w := range writings {
		if w.family != f.Name {
			continue
		}
		head, tail, _ := strings.Cut(w.calls([]call{{"f", []param{{"s", "FILL"}, {"content", "x"}}}}), "FILL")
		for k, s := range map[string]string{"ends": tail, "most of ends": tail[:len(tail)-1], "ends without their beginning": tail[1:], "heads": head,
			"values": "x" + tail[:len(tail)/2], "commas": ",", "comments": "/*", "closed comments": "/* a */", "single quotes": "'", "line ends": "\r\n"} {
			out[fmt.Sprint(k, " ", i)] = head + strings.Repeat(s, n/len(s)+1)
		}
	}
	return out
}

// cpuTime is what the process has used: other processes do not count.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestCostIsLinear: eight times the output takes about eight times as long, whatever it is; the square would be sixty-four.
func TestCostIsLinear(t *testing.T) {
	cost := func(f *Family, s string) time.Duration {
		start := cpuTime(t)
		o := caseOpts{}
		o.Tools = declared("f", "get_weather")
		p := f.New(o.Options)
		var ps []Piece
		for i := 0; i < len(s); i += 3 {
			ps = p.Feed(ps[:0], s[i:min(i+3, len(s))])
		}
		p.Finish(ps)
		return max(cpuTime(t)-start, 50*time.Microsecond)
	}
	const most = 30
	for _, f := range families {
		short, long := nasty(f, 1<<12), nasty(f, 1<<15)
		for k := range short {
			ratio := 0.0
			for range 20 { // the collector may have run meanwhile
				if ratio = float64(cost(f, long[k])) / float64(cost(f, short[k])); ratio <= most {
					break
				}
			}
			if ratio > most {
				t.Errorf("%s, %s: eight times the output takes %.0f times as long", f.Name, k, ratio)
			}
		}
	}
}
