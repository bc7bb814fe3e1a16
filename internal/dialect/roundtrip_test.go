package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// conversations are what every family must be able to say.
var conversations = []struct {
	name  string
	void  bool // there are empty lists or objects inside of others
	calls []call
}{
	{"no arguments", false, []call{{"f", nil}}},
	{"string", false, []call{{"get_weather", []param{{"city", "Paris"}}}}},
	{"empty string", false, []call{{"f", []param{{"s", ""}}}}},
	{"every type", true, []call{{"f", []param{{"s", "x"}, {"i", 7.0}, {"f", -1.5}, {"b", true}, {"l", []any{1.0, "a", nil}}, {"o", map[string]any{"k": map[string]any{}}}, {"sn", nil}}}}},
	{"strings that look like other types", false, []call{{"f", []param{{"s", "123"}}}, {"f", []param{{"s", "null"}}}, {"f", []param{{"s", "True"}}}, {"f", []param{{"s", "[1]"}}}}},
	{"unicode", false, []call{{"f", []param{{"s", "日本語 é 😀"}, {"o", map[string]any{"日": "本"}}}}}},
	{"quotes and backslashes", false, []call{{"f", []param{{"s", `say "hi", it's C:\new\x and \d+`}}}}},
	{"lines", false, []call{{"f", []param{{"content", "func main() {\n\tif a < b && c > d {\n\t}\n}"}}}}},
	{"brackets in strings", false, []call{{"f", []param{{"s", "a)] } , {("}, {"l", []any{"]", "}", ")"}}}}}},
	{"markup in strings", false, []call{{"f", []param{{"content", "<b>x</b> <tool_use> &amp; <!-- </p> -->"}}}}},
	{"nested", true, []call{{"f", []param{{"o", map[string]any{"a": []any{map[string]any{"b": []any{[]any{}, false}}}}}}}}},
	{"two", false, []call{{"f", []param{{"i", 1.0}}}, {"get_weather", []param{{"city", "Rome"}}}}},
	{"three of one", false, []call{{"f", []param{{"i", 1.0}}}, {"f", nil}, {"f", []param{{"i", 3.0}}}}},
	{"large", false, []call{{"f", []param{{"content", strings.Repeat("0123456789 abc\n", 50) + "."}}}}},
}

// TestRoundTrip writes calls as each family does and reads them back, alone and with reasoning and text around them.
func TestRoundTrip(t *testing.T) {
	for wi, w := range writings {
		f := familyByName(t, w.family)
		for _, c := range conversations {
			for _, around := range arounds(w, c.void) {
				t.Run(fmt.Sprintf("%s %d/%s %s", w.family, wi, c.name, around), func(t *testing.T) {
					roundTrip(t, f, w, c.calls, around)
				})
			}
		}
	}
}

// arounds is what may stand around calls: nothing, text, reasoning.
func arounds(w written, void bool) []string {
	if w.noVoid && void {
		return nil
	}
	all := []string{""}
	if !w.alone {
		all = append(all, "text")
	}
	if w.think[0] != "" {
		all = append(all, "reasoning")
	}
	return all
}

func roundTrip(t *testing.T, f *Family, w written, calls []call, around string) {
	var want []Piece
	parts := []part{{calls: calls}}
	switch around {
	case "text":
		parts, want = []part{{say: "I look."}, {calls: calls}}, append(want, Piece{Kind: Text, Text: "I look."})
	case "reasoning":
		parts, want = []part{{think: "Let me see."}, {calls: calls}}, append(want, Piece{Kind: Reasoning, Text: "Let me see."})
	}
	output := w.render(parts...)
	for _, c := range calls {
		want = append(want, Piece{Kind: ToolStart, Text: c.name}, Piece{Kind: ToolArgs, Text: c.json()}, Piece{Kind: ToolEnd, Text: ""})
	}
	o := Options{Tools: declared("f", "get_weather")}
	got := parse(f.New(o), output)
	for _, ps := range [][]Piece{got, want} {
		for i := range ps {
			ps[i].ID = "" // TestCases has those
			if ps[i].Kind == ToolArgs {
				ps[i].Text = canonical(t, ps[i].Text)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s\n(-want +got):\n%s", output, diff)
	}
	whole := parse(f.New(o), output)
	step := stride()
	if around != "" {
		step *= 11
	}
	for at := 1; at < min(len(output), 300); at += step {
		if cut := parse(f.New(o), output[:at], output[at:]); !slices.Equal(whole, cut) {
			t.Fatalf("cut at byte %d (-whole +cut):\n%s", at, cmp.Diff(whole, cut))
		}
	}
}

// canonical is JSON with sorted keys.
func canonical(t *testing.T, s string) string {
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return asJSON(v)
}

// TestUndeclared: without tools, or for other tools, calls are text and none is invented.
func TestUndeclared(t *testing.T) {
	for wi, w := range writings {
		f := familyByName(t, w.family)
		output := w.calls([]call{{"f", []param{{"s", "x"}}}})
		for name, tools := range map[string][]Tool{"none": nil, "others": declared("g")} {
			t.Run(fmt.Sprintf("%s %d/%s", w.family, wi, name), func(t *testing.T) {
				text := ""
				for _, p := range parse(f.New(Options{Tools: tools}), output) {
					if p.Kind != Text {
						t.Fatalf("%v", p)
					}
					text += p.Text
				}
				if !w.header && text != output {
					t.Errorf("%q came out as %q", output, text)
				}
				if !strings.Contains(text, "x") {
					t.Errorf("what the model said is lost: %q", text)
				}
			})
		}
	}
}

// TestTruncated: a call that is cut short never ends, and what came before its start is text.
func TestTruncated(t *testing.T) {
	for wi, w := range writings {
		f := familyByName(t, w.family)
		output := w.calls([]call{{"f", []param{{"s", "xyz"}}}})
		cut := strings.Index(output, "xyz") + 2
		t.Run(fmt.Sprintf("%s %d", w.family, wi), func(t *testing.T) {
			for at := range cut {
				for _, p := range parse(f.New(Options{Tools: declared("f")}), output[:at]) {
					if p.Kind == ToolEnd {
						t.Fatalf("%q ended a call", output[:at])
					}
				}
			}
		})
	}
}

// TestForcedOpenings: what a model adds to a forced opening is read as a call.
func TestForcedOpenings(t *testing.T) {
	for wi, w := range writings {
		f := familyByName(t, w.family)
		c := call{"f", []param{{"s", "xyz"}}}
		output := w.calls([]call{c})
		for _, tool := range []string{"", "f"} {
			opening := f.Force(tool)
			rest, ok := cutOpening(output, opening)
			if !ok { // one of the other ways in which the family writes
				continue
			}
			t.Run(fmt.Sprintf("%s %d/%q", w.family, wi, tool), func(t *testing.T) {
				got := parse(f.New(Options{Tools: declared("f")}), opening, rest)
				if len(got) < 3 || got[0].Kind != ToolStart || got[0].Text != "f" || canonical(t, got[1].Text) != canonical(t, c.json()) || got[2].Kind != ToolEnd {
					t.Errorf("%q and %q: %v", opening, rest, got)
				}
			})
		}
	}
}

// cutOpening returns what follows opening in s. Blanks may differ.
func cutOpening(s, opening string) (rest string, ok bool) {
	opening = strings.ReplaceAll(opening, " ", "")
	at := 0
	for at < len(s) && opening != "" {
		switch c := s[at]; {
		case c == ' ':
		case c != opening[0]:
			return "", false
		default:
			opening = opening[1:]
		}
		at++
	}
	return s[at:], opening == ""
}
