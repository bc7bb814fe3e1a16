package dialect

import (
	"strings"
	"testing"
)

// tokenBytes is what a token comes to on average.
const tokenBytes = 4

// TestFirstBytes: the first byte of a string argument goes out within a token of the byte that the model wrote it with,
// whatever the family; of other types when the value is complete.
func TestFirstBytes(t *testing.T) {
	for wi, w := range writings {
		f := familyByName(t, w.family)
		output := w.calls([]call{{"f", []param{{"s", "ZYXWVUTSRQPONMLKJIHGFEDCBA and more of it"}, {"b", true}}}})
		at := strings.Index(output, "ZYX")
		p := f.New(Options{Tools: declared("f")})
		first, value := -1, -1 // bytes read when the first arguments, and the value's first byte, came out
		for i := range len(output) {
			for _, piece := range p.Feed(nil, output[i:i+1]) {
				if piece.Kind != ToolArgs {
					continue
				}
				if first < 0 {
					first = i
				}
				if value < 0 && strings.Contains(piece.Text, "Z") {
					value = i
				}
			}
		}
		if value < 0 || value-at > tokenBytes || first > value {
			t.Errorf("%s %d: %q: first arguments after byte %d, the value's first byte %d after %d", w.family, wi, output, first, value, at)
		}
	}
}

// TestFirstBytesOfNullable: a string that may be null waits only while it can be null.
func TestFirstBytesOfNullable(t *testing.T) {
	for wi, w := range writings {
		output := w.calls([]call{{"f", []param{{"sn", "nuZYX"}}}})
		p := familyByName(t, w.family).New(Options{Tools: declared("f")})
		var got strings.Builder
		for _, piece := range p.Feed(nil, output[:strings.Index(output, "ZYX")+1+tokenBytes]) {
			got.WriteString(piece.Text)
		}
		if w.family != "minimax_m3" && !strings.Contains(got.String(), "nuZ") {
			t.Errorf("%s %d: of %q came %q", w.family, wi, output, got.String())
		}
	}
}

// TestAnswersInJSON: an answer that is JSON but no call goes out as it comes.
func TestAnswersInJSON(t *testing.T) {
	for _, f := range families {
		if f.Force == nil {
			continue
		}
		for _, output := range []string{`{"title": `, `{"name": "Ali`, `{"name": "Alice"`, `[{"city": `, `[{"name": "Al`, `[1, `, `["f"`, "```json\n{\"z", "```python\nx"} {
			got := f.New(Options{Tools: declared("f")}).Feed(nil, output)
			if len(got) != 1 || got[0].Kind != Text || len(got[0].Text) < len(output)-2 {
				t.Errorf("%s: of %s came out %v", f.Name, output, got)
			}
		}
	}
}

// BenchmarkFamilies parses replies of reasoning, text and two calls, a token at a time.
func BenchmarkFamilies(b *testing.B) {
	for _, w := range writings {
		if w.again {
			continue
		}
		b.Run(w.family, func(b *testing.B) {
			f := familyByName(b, w.family)
			parts := []part{{say: strings.Repeat("Plain words, some < signs and [brackets].\n", 20)}, {calls: []call{
				{"f", []param{{"content", strings.Repeat("if a[i] < b {\n\treturn \"x\"\n}\n", 30)}, {"i", 7.0}, {"o", map[string]any{"k": []any{1.0, "a"}}}}},
				{"get_weather", []param{{"city", "Rome"}}}}}}
			if w.alone {
				parts = parts[1:]
			}
			if w.think[0] != "" {
				parts = append([]part{{think: strings.Repeat("Let me see what <that> is.\n", 20)}}, parts...)
			}
			output := w.render(parts...)
			o := Options{Tools: declared("f", "get_weather")}
			var dst []Piece
			b.ReportAllocs()
			for b.Loop() {
				p := f.New(o)
				for i := 0; i < len(output); i += tokenBytes {
					dst = p.Feed(dst[:0], output[i:min(i+tokenBytes, len(output))])
				}
				dst = p.Finish(dst[:0])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(float64(len(output))/tokenBytes), "ns/token")
		})
	}
}
