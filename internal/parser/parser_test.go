package parser

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the pieces sections of testdata/*.txtar")

func familyByName(t testing.TB, name string) *Family {
	for _, f := range append(families, plain) {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no family %q", name)
	return nil
}

// parse feeds the parts in order and joins what belongs together.
func parse(p Parser, parts ...string) []Piece {
	var got []Piece
	for _, s := range parts {
		got = p.Feed(got, s)
	}
	got = p.Finish(got)
	var out []Piece
	for _, pc := range got {
		if n := len(out); n > 0 && out[n-1].Kind == pc.Kind && pc.Kind != ToolStart && pc.Kind != ToolEnd {
			out[n-1].Text += pc.Text
			continue
		}
		out = append(out, pc)
	}
	return out
}

func format(ps []Piece) string {
	names := map[Kind]string{Text: "text", Reasoning: "reasoning", ToolStart: "start", ToolArgs: "args", ToolEnd: "end"}
	var b strings.Builder
	for _, p := range ps {
		fmt.Fprintf(&b, "%s %q\n", names[p.Kind], p.Text)
	}
	return b.String()
}

// TestCases runs testdata/*.txtar. Each file is a family's; its cases are triples of sections: NAME with options in
// the section's name ("NAME reasoning tools=a,b"), NAME/output, NAME/pieces. A "⏎" at a line's end in the output is a
// newline of its own; plain line ends are not part of the output.
func TestCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	for _, file := range files {
		f := familyByName(t, strings.TrimSuffix(filepath.Base(file), ".txtar"))
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(ar.Files); i += 2 {
			name, opts := caseOptions(ar.Files[i].Name)
			output := strings.ReplaceAll(strings.ReplaceAll(string(ar.Files[i].Data), "\n", ""), "⏎", "\n")
			t.Run(f.Name+"/"+name, func(t *testing.T) {
				whole := parse(f.New(opts), output)
				if *update {
					ar.Files[i+1].Data = []byte(format(whole))
				}
				if diff := cmp.Diff(string(ar.Files[i+1].Data), format(whole)); diff != "" {
					t.Fatalf("pieces (-want +got):\n%s", diff)
				}
				for at := 1; at < len(output); at++ {
					if diff := cmp.Diff(whole, parse(f.New(opts), output[:at], output[at:])); diff != "" {
						t.Fatalf("cut at byte %d (-whole +cut):\n%s", at, diff)
					}
				}
				if diff := cmp.Diff(whole, parse(f.New(opts), strings.Split(output, "")...)); diff != "" {
					t.Fatalf("rune by rune (-whole +cut):\n%s", diff)
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func caseOptions(s string) (name string, o Options) {
	fields := strings.Fields(s)
	for _, f := range fields[1:] {
		switch {
		case f == "reasoning":
			o.InReasoning = true
		case f == "continued":
			o.Continued = true
		case strings.HasPrefix(f, "tools="):
			o.Tools = strings.Split(f[len("tools="):], ",")
		}
	}
	return fields[0], o
}

func TestChoose(t *testing.T) {
	vocabulary := func(tokens ...string) func(string) bool {
		return func(s string) bool {
			for _, tok := range tokens {
				if tok == s {
					return true
				}
			}
			return false
		}
	}
	for _, c := range []struct {
		name, template string
		tokens         []string
		want           string
	}{
		{"json calls", "… <tool_call>\n{\"name\": … </tool_call> … </think>", nil, "hermes"},
		{"reasoning only", "{{ content.split('</think>') }}", nil, "think"},
		{"nothing", "{{ messages }}", nil, "plain"},
		{"xml parameters in the same tags", "<tool_call>\n<function=f>\n<parameter=p> </think>", nil, "think"},
		{"vocabulary", "{{ messages }}", []string{"<tool_call>", "</tool_call>"}, "hermes"},
		{"template before vocabulary", "{{ '</think>' }}", []string{"<tool_call>", "</tool_call>"}, "think"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Choose(Evidence{c.template, vocabulary(c.tokens...)}); got.Name != c.want {
				t.Errorf("chose %s, want %s", got.Name, c.want)
			}
		})
	}
}

func TestForce(t *testing.T) {
	f := hermes
	got := parse(f.New(Options{Tools: []string{"a\"b", "c"}}), f.Force(`a"b`), `{"x": 1}}`)
	want := []Piece{{ToolStart, `a"b`}, {ToolArgs, `{"x": 1}`}, {ToolEnd, ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBounds: what never becomes a call or ends must not be held for ever.
func TestBounds(t *testing.T) {
	for name, output := range map[string]string{
		"arguments before a name that never comes": `<tool_call>{"arguments": {"a": "` + strings.Repeat("x", 2*maxHeld),
		"blanks":   "<tool_call>" + strings.Repeat(" ", 2*maxHeld),
		"newlines": "a" + strings.Repeat("\n", 4*maxNewlines),
		"deep":     `<tool_call>{"arguments": ` + strings.Repeat("[", 2*maxJSONDepth),
	} {
		t.Run(name, func(t *testing.T) {
			p := hermes.New(Options{Tools: []string{"f"}}).(*tagged)
			n := 0
			for _, pc := range p.Feed(nil, output) {
				n += len(pc.Text)
			}
			if held := len(output) - n; held > maxHeld+len(callOpen) {
				t.Errorf("%d bytes held", held)
			}
		})
	}
}

// FuzzHermes: any output in any two cuts gives the same pieces, nothing panics, finished calls are valid JSON objects of
// declared tools, and output without tags comes through untouched.
func FuzzHermes(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i := 0; i < len(ar.Files); i += 2 {
			f.Add(strings.ReplaceAll(string(ar.Files[i].Data), "⏎", "\n"), 7, 11, i%4 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, output string, a, b int, reasoning bool) {
		o := Options{InReasoning: reasoning, Tools: []string{"f", "get_weather"}}
		a, b = min(max(a, 0), len(output)), min(max(b, 0), len(output))
		if a > b {
			a, b = b, a
		}
		whole := parse(hermes.New(o), output)
		if diff := cmp.Diff(whole, parse(hermes.New(o), output[:a], output[a:b], output[b:])); diff != "" {
			t.Fatalf("cut at %d and %d (-whole +cut):\n%s", a, b, diff)
		}
		args := ""
		for _, p := range whole {
			switch p.Kind {
			case ToolStart:
				args = ""
				if p.Text != "f" && p.Text != "get_weather" {
					t.Fatalf("call of undeclared %q", p.Text)
				}
			case ToolArgs:
				args += p.Text
			case ToolEnd:
				if !json.Valid([]byte(args)) || args[0] != '{' {
					t.Fatalf("arguments %q", args)
				}
			}
		}
		if !strings.Contains(output, "<") && !reasoning {
			if text := parse(hermes.New(o), output); output != "" && (len(text) != 1 || text[0] != Piece{Text, output}) {
				t.Fatalf("plain %q came out as %v", output, text)
			}
		}
	})
}
