package dialect

import (
	"slices"
	"strings"
	"testing"
)

// TestMeant: a name that is not declared means a tool if exactly one is alike, and mayMean lets no prefix of such a name go.
func TestMeant(t *testing.T) {
	s := newToolset(Options{Tools: declared("edit", "read_file", "Run", "run", "get.it", "mcp__x__list", "functions.odd", "__")})
	for written, want := range map[string]string{
		"edit": "edit", "Edit": "edit", "EDIT": "edit", "functions.edit": "edit", "functions.Edit": "edit", "Functions.edit": "edit",
		"function.edit": "edit", "tools.edit": "edit", "tool:edit": "edit", "functions:edit": "edit", "default_api.edit": "edit",
		"mcp__disk__edit": "edit", "mcp__my__disk__edit": "", "mcp__a__mcp__b__edit": "edit", "functions.functions.edit": "edit",
		"readFile": "read_file", "ReadFile": "read_file", "read-file": "read_file", "read file": "read_file", "READ.FILE": "read_file",
		"default_api.readFile": "read_file", "run": "run", "Run": "Run", "RUN": "", "functions.run": "run", "functions.Run": "Run", "functions.RUN": "",
		"get_it": "get.it", "list": "", "mcp__x__list": "mcp__x__list", "mcp__y__list": "", "functions.odd": "functions.odd", "odd": "",
		"os.edit": "", "edits": "", "edi": "", "": "", "_": "", "-": "", "functions.": "", "mcp__": "", "mcp____edit": "", "x.functions.edit": "",
		"multi_tool_use.edit": "", "édit": "", "\xff": "",
	} {
		got, ok := s.meant(written)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q means %q %t, want %q", written, got, ok, want)
		}
		for i := range len(written) + 1 {
			if ok && !s.mayMean(written[:i]) {
				t.Errorf("%q may not become %q", written[:i], written)
			}
		}
	}
	for _, prefix := range []string{"x", "edits", "functionsX", "functions.x", "default_api.reads", "readings", "mcq"} {
		if s.mayMean(prefix) {
			t.Errorf("%q may mean a tool", prefix)
		}
	}
	s.strict = true
	if name, ok := s.meant("Edit"); ok || s.mayMean("Ed") {
		t.Errorf("Edit means %s where nothing is repaired", name)
	}
}

// TestNotes: every call that was mended is told of once, with the names, and nothing of what is no call.
func TestNotes(t *testing.T) {
	long := "functions.default_api." + strings.Repeat("mcp__é__", 10) + "f"
	for output, want := range map[string][]string{
		`<tool_call>{"name": "F", "arguments": {}}</tool_call>`:                                 {"F as f"},
		`<tool_call>{"name": "f", "arguments": {"i": "5"}}</tool_call>`:                         nil,
		`<tool_call>{"name": "F", "arguments": {"x": 1}}</tool_call>`:                           nil,
		`<tools>{"name": "f", "arguments": {}}{"name": "F", "arguments": {}}</tools>`:           {"f, leaked", "F as f, leaked"},
		`<tools>{"name": "f", "arguments": {}}</tools> that is`:                                 nil,
		`<tool_call>{"name": "` + long + `", "arguments": {}}</tool_call>`:                      {long[:maxNoted-1] + " as f"},
		`<tool_call>{"name": "F", "arguments": {}}, {"name": "F", "arguments": {}}</tool_call>`: {"F as f"},
	} {
		for _, parts := range [][]string{{output}, eachByte(output)} {
			var got []string
			parse(hermes.New(Options{Tools: declared("f"), Mended: func(call string) { got = append(got, call) }}), parts...)
			if !slices.Equal(got, want) {
				t.Errorf("%s\ntells of %q, want %q", output, got, want)
			}
		}
	}
}

// TestUnfitThenCall: a call that is none for its arguments leaves the next one alone, as one of a tool that does not exist does.
func TestUnfitThenCall(t *testing.T) {
	for wi, w := range writings {
		ends := func(first call) (n int) {
			output := w.render(part{calls: []call{first, {"get_weather", []param{{"city", "Rome"}}}}})
			whole := parseWith(familyByName(t, w.family), caseOpts{Options: Options{Tools: declared("f", "get_weather")}}, eachByte(output)...)
			for _, p := range whole {
				if p.Kind == ToolEnd {
					n++
				}
			}
			return n
		}
		if got, want := ends(call{"F", []param{{"other", "x"}}}), ends(call{"h", []param{{"other", "x"}}}); got != want {
			t.Errorf("%s %d: %d calls, want %d", w.family, wi, got, want)
		}
	}
}
