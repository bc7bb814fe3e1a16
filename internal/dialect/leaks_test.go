package dialect

import (
	"slices"
	"strings"
	"testing"
)

// TestLeakBound: what may be a call that leaked is held only as long as it may be one, and not beyond a bound before its name
// is known.
func TestLeakBound(t *testing.T) {
	long := strings.Repeat("f", 2*maxAhead)
	tools := declared("f", long)
	for _, f := range families {
		if f.Force == nil {
			continue
		}
		for _, c := range []struct {
			output string
			held   int
		}{
			{`{"name": "f`, len(`{"name": "f`)},
			{`{"name": "F`, len(`{"name": "f`)},
			{`{"name": "fx`, 0},
			{`{"namex`, 0},
			{`{"name": 1`, 0},
			{`{"name": "functions.f`, len(`{"name": "functions.f`)},
			{`{"name": "functions.x`, 0},
			{`{"name": "f", "x": `, len(", ") + len(`"x": `)}, // a key is compared when it is complete
			{"<tools>" + strings.Repeat(" ", maxAhead), maxAhead},
			{"<tools>\n" + strings.Repeat("\n", 2*maxAhead), maxAhead},
			{"```json" + strings.Repeat(" ", 2*maxAhead) + "{", maxAhead},
			{"<tools>{" + strings.Repeat(" ", 2*maxAhead), maxAhead},
			{`<tools>{"name": "` + long, maxAhead},
			{`<tools>{"name": ` + strings.Repeat(" ", 2*maxAhead), maxAhead},
		} {
			if f.syntax.fences != nil && strings.HasPrefix(c.output, fence) {
				continue // a fence is the opening of the family's own calls
			}
			n := 0
			for _, p := range f.New(Options{Tools: tools}).Feed(nil, c.output) {
				if p.Kind != Text {
					t.Errorf("%s: %s gives %v", f.Name, c.output, p)
				}
				n += len(p.Text)
			}
			if held := len(c.output) - n; held > c.held+maxPending && held > maxAhead+len("<tools>") {
				t.Errorf("%s: of %.40q… are %d bytes held, want %d", f.Name, c.output, held, c.held)
			} else if len(c.output) < maxAhead && held > c.held {
				t.Errorf("%s: of %s are %d bytes held, want %d", f.Name, c.output, held, c.held)
			}
		}
	}
}

// TestLeaksAreText: what leaks where no call is looked for is text, the same as without tools, at every cut.
func TestLeaksAreText(t *testing.T) {
	for _, f := range families {
		if f.Force == nil {
			continue
		}
		for _, output := range []string{leakedF, "```json\n" + leakedF + "\n```", "<tools>\n" + leakedF + "\n</tools>"} {
			plain := parseWith(f, caseOpts{}, output)
			for name, o := range map[string]Options{"strict": {Tools: declared("f"), NoRepair: true}, "form": {Tools: declared("f"), Form: true}} {
				if f.syntax.bare != nil && parseWith(f, caseOpts{Options: o}, leakedF)[0].Kind == ToolStart {
					continue // JSON is a form of the family's own
				}
				if got := parseWith(f, caseOpts{Options: o}, eachByte(output)...); !slices.Equal(got, plain) {
					t.Errorf("%s, %s: %s\ngives %v, want %v", f.Name, name, output, got, plain)
				}
			}
		}
	}
}

// TestLeakedTools: every tag, closed or not, and every word of a fence.
func TestLeakedTools(t *testing.T) {
	want := format(gives(`{"s": "x"}`)(written{}, ""))
	var outputs []string
	for _, tag := range leakTags {
		outputs = append(outputs, tag+leakedF, tag+"\n["+leakedF+"]", "Text.\n"+tag+leakedF)
		for _, end := range leakClosers {
			outputs = append(outputs, tag+"\n"+leakedF+"\n"+end)
		}
	}
	for _, word := range fenceWords {
		outputs = append(outputs, "```"+word+"\n"+leakedF+"\n```", "```"+strings.ToUpper(word)+" "+leakedF+"```\n")
	}
	for _, output := range outputs {
		got := format(parseWith(solar, caseOpts{Options: Options{Tools: declared("f")}}, output))
		if got = strings.TrimPrefix(got, "text \"Text.\"\n"); got != want {
			t.Errorf("%s\ngives %s", output, got)
		}
	}
}

// TestJSONBehindMarks: a mark that opens calls in another form may be followed by JSON; without repairs it is text.
func TestJSONBehindMarks(t *testing.T) {
	want := format(gives(`{"s": "x"}`)(written{}, ""))
	seen := 0
	for _, f := range families {
		for _, o := range f.syntax.openers {
			if !strings.HasSuffix(o.tag, ">") || f == functionary || f == apertus { // where a name follows
				continue
			}
			seen++
			for _, end := range append(slices.Clone(f.syntax.closers), "") {
				output := o.tag + "\n" + leakedF + "\n" + end
				if got := format(parseWith(f, caseOpts{Options: Options{Tools: declared("f")}}, output)); got != want {
					t.Errorf("%s: %s\ngives %s", f.Name, output, got)
				}
			}
			output := o.tag + `{"name": "F", "arguments": {"other": 1}}`
			if got := parseWith(f, caseOpts{Options: Options{Tools: declared("f")}}, output); len(got) != 1 || got[0].Kind != Text {
				t.Errorf("%s: %s\ngives %v", f.Name, output, got)
			}
		}
	}
	if seen < 15 {
		t.Errorf("%d marks", seen)
	}
}
