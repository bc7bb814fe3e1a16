package dialect

import (
	"strings"
	"testing"
)

// TestJSONGaps: so many blanks are held where a comma, a quote or a bracket may need mending, and numbers have so many digits.
func TestJSONGaps(t *testing.T) {
	blanks := func(n int) string { return strings.Repeat(" ", n) }
	for name, output := range map[string]func(n int) string{
		"comma":   func(n int) string { return `{"s": "x",` + blanks(n) + `}}</tool_call>` },
		"quote":   func(n int) string { return `{"s": 'x'` + blanks(n) + `}}</tool_call>` },
		"bracket": func(n int) string { return `{"l": [1}` + blanks(n) + `</tool_call>` },
	} {
		for n, want := range map[int]bool{1: true, maxGap - 20: true, maxGap + 1: false} {
			got := finished(parse(hermes.New(Options{Tools: declared("f")}), `<tool_call>{"name": "f", "arguments": `+output(n)))
			if (len(got) == 1) != want {
				t.Errorf("%s and %d blanks: %v", name, n, got)
			}
		}
	}
	for n, want := range map[int]int{maxLiteral: 1, maxLiteral + 1: 0} {
		got := finished(parse(hermes.New(Options{Tools: declared("f")}), `<tool_call>{"name": "f", "arguments": {"f": `+strings.Repeat("1", n)+`}}</tool_call>`))
		if len(got) != want {
			t.Errorf("%d digits: %v", n, got)
		}
	}
}

// TestMendedBytes: what is mended in JSON does not wait for more than the byte that shows what is meant.
func TestMendedBytes(t *testing.T) {
	const begin = `<tool_call>{"name": "f", "arguments": {`
	for _, c := range []struct{ written, want string }{
		{`'s': 'Z`, `{"s": "Z`},
		{`s: "Z`, `{"s": "Z`},
		{`"i": 7, "s": "Z`, `{"i": 7, "s": "Z`},
		{`"i": 7 "s": "Z`, `{"i": 7 ,"s": "Z`},
		{`/* why */ "s": "Z`, `{ "s": "Z`},
		{`{"s": "Z`, `{"s": "Z`},
		{`"s": "x"}`, `{"s": "x"`},
		{`"s": "x", "o": {"n": 1}},"i": 7`, `{"s": "x", "o": {"n": 1},"i": `},
	} {
		p := hermes.New(Options{Tools: declared("f")})
		got := ""
		for i := range len(begin + c.written) {
			for _, piece := range p.Feed(nil, (begin + c.written)[i:i+1]) {
				if piece.Kind == ToolArgs {
					got += piece.Text
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %s came out, want %s", c.written, got, c.want)
		}
	}
}
