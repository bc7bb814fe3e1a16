package dialect

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/schema"
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

// parseWith parses with the options of a case.
func parseWith(f *Family, o caseOpts, parts ...string) []Piece {
	p := f.New(o.Options)
	if o.cut {
		p.Cut()
	}
	return parse(p, parts...)
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
		fmt.Fprintf(&b, "%s %q", names[p.Kind], p.Text)
		if p.ID != "" {
			fmt.Fprintf(&b, " id %q", p.ID)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestCases runs testdata/*.txtar and testdata/scenes/*.txtar. Each file is a family's; its cases are pairs of sections: a
// name with options and under it the output, the name with /pieces and what the output becomes. Options are tools=f,g
// (declared), reasoning and continued (how the prompt ends), cut (the output was cut short), strict (no repairs),
// form (the answer is data). "⏎" is a newline of the output and "␍" a carriage return; line ends are not.
func TestCases(t *testing.T) {
	for _, file := range caseFiles(t) {
		f := familyByName(t, strings.TrimSuffix(filepath.Base(file), ".txtar"))
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(ar.Files); i += 2 {
			name, opts := caseOptions(ar.Files[i].Name)
			output := caseOutput(ar.Files[i].Data)
			t.Run(f.Name+"/"+name, func(t *testing.T) {
				whole := parseWith(f, opts, output)
				if *update {
					ar.Files[i+1].Data = []byte(format(whole))
				}
				if diff := cmp.Diff(string(ar.Files[i+1].Data), format(whole)); diff != "" {
					t.Fatalf("pieces (-want +got):\n%s", diff)
				}
				for at := 1; at < len(output); at += stride() {
					if cut := parseWith(f, opts, output[:at], output[at:]); !slices.Equal(whole, cut) {
						t.Fatalf("cut at byte %d (-whole +cut):\n%s", at, cmp.Diff(whole, cut))
					}
				}
				if diff := cmp.Diff(whole, parseWith(f, opts, eachByte(output)...)); diff != "" {
					t.Fatalf("byte by byte (-whole +cut):\n%s", diff)
				}
				runesStayWhole(t, f.New(opts.Options), output)
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// caseOutput is the output as the model wrote it.
func caseOutput(section []byte) string {
	return strings.NewReplacer("\n", "", "⏎", "\n", "␍", "\r").Replace(string(section))
}

// stride is the distance between the cuts that are tried: every one, unless tests are to be quick.
func stride() int {
	if testing.Short() {
		return 11
	}
	return 1
}

func eachByte(s string) []string {
	parts := make([]string, len(s))
	for i := range len(s) {
		parts[i] = s[i : i+1]
	}
	return parts
}

// runesStayWhole checks that output fed in whole runes comes out in whole runes.
func runesStayWhole(t *testing.T, p Parser, output string) {
	for _, r := range strings.Split(output, "") {
		for _, piece := range p.Feed(nil, r) {
			if !utf8.ValidString(piece.Text) {
				t.Fatalf("%q is no text", piece.Text)
			}
		}
	}
}

// caseOpts is what a case says of the request and how the output ended.
type caseOpts struct {
	Options
	cut bool
}

func caseOptions(s string) (name string, o caseOpts) {
	fields := strings.Fields(s)
	for _, f := range fields[1:] {
		switch {
		case f == "reasoning":
			o.InReasoning = true
		case f == "continued":
			o.Continued = true
		case f == "strict":
			o.NoRepair = true
		case f == "form":
			o.Form = true
		case f == "cut":
			o.cut = true
		case strings.HasPrefix(f, "tools="):
			o.Tools = declared(strings.Split(f[len("tools="):], ",")...)
		}
	}
	return fields[0], o
}

// declared makes tools. They share a schema with a parameter of every type, named by its first letter or by what it is.
func declared(names ...string) []Tool {
	const parameters = `{"type": "object", "$defs": {"ref": {"type": ["array", "null"]}}, "properties": {
		"s": {"type": "string"}, "city": {"type": "string"}, "path": {"type": "string"}, "content": {"type": "string"},
		"i": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"}, "l": {"type": "array"}, "o": {"type": "object"},
		"sn": {"type": ["string", "null"]}, "in": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
		"enum": {"enum": ["1", "a"]}, "ref": {"$ref": "#/$defs/ref"}, "any": {},
		"p": {"oneOf": [{"properties": {"k": {"const": "a"}, "v": {"type": "integer"}}}, {"properties": {"k": {"const": "b"}, "v": {"type": "string"}}}]},
		"q": {"type": "object", "properties": {"limit": {"type": "integer"}, "on": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
			"sizes": {"type": "array", "items": {"type": "number"}}, "next": {"anyOf": [{"$ref": "#/properties/q"}, {"type": "null"}]}}}}}`
	var ts []Tool
	for _, n := range names {
		s := parameters
		if n == "strict_tool" {
			s = strings.Replace(s, "{", `{"required": ["s", "i"], `, 1)
		}
		ts = append(ts, Tool{n, &schema.Document{Raw: json.RawMessage(s)}})
	}
	return ts
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
		{"xml parameters in the same tags", "<tool_call>\n<function=f>\n<parameter=p> </think>", nil, "qwen3_coder"},
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
	got := parse(f.New(Options{Tools: declared("a\"b", "c")}), f.Force(`a"b`), `{"x": 1}}`)
	want := []Piece{{Kind: ToolStart, Text: `a"b`}, {Kind: ToolArgs, Text: `{"x": 1}`}, {Kind: ToolEnd, Text: ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBounds: what never becomes a call or ends must not be held for ever.
func TestBounds(t *testing.T) {
	for name, output := range map[string]string{
		"arguments before a name that never comes": `<tool_call>{"arguments": {"a": "` + strings.Repeat("x", 2*maxHeld),
		"blanks":   "<tool_call>" + strings.Repeat(" ", 2*maxHeld),
		"newlines": "a" + strings.Repeat("\n", 4*maxPending),
		"deep":     `<tool_call>{"arguments": ` + strings.Repeat("[", 2*maxJSONDepth),
	} {
		t.Run(name, func(t *testing.T) {
			p := hermes.New(Options{Tools: declared("f")}).(*tagged)
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

// TestGap: so many blanks may stand behind a parameter; with more, what closed it belongs to its value.
func TestGap(t *testing.T) {
	for n, want := range map[int]string{64: `{"s": "v"}`, 65: `{"s": "v\n</parameter>` + strings.Repeat(" ", 65) + `</function>`} {
		args := ""
		for _, p := range parse(familyByName(t, "qwen3_coder").New(Options{Tools: declared("f"), NoRepair: true}),
			"<tool_call>\n<function=f>\n<parameter=s>\nv\n</parameter>"+strings.Repeat(" ", n)+"</function>\n</tool_call>") {
			if p.Kind == ToolArgs {
				args += p.Text
			}
		}
		if !strings.HasPrefix(args, want) {
			t.Errorf("%d blanks: %s, want %s", n, args, want)
		}
	}
}

// TestBoundsOfAll: a marker that nothing legal follows holds back little of what comes, whatever the family.
func TestBoundsOfAll(t *testing.T) {
	fillers := []string{"x ", " ", "{", "[f(", "<", ">"}
	for k, f := range families {
		for i, marker := range f.Markers {
			if testing.Short() && i > 0 {
				break
			}
			filler := fillers[(i+k)%len(fillers)]
			output := marker + strings.Repeat(filler, (maxHeld+maxHeld/4)/len(filler))
			n := 0
			for _, pc := range f.New(Options{Tools: declared("f")}).Feed(nil, output) {
				n += len(pc.Text)
			}
			if held := len(output) - n; held > maxHeld+maxName {
				t.Errorf("%s: %d bytes held after %q and %q", f.Name, held, marker, filler)
			}
		}
	}
}

var fuzzFamily = flag.String("family", "", "fuzz this family alone")

// TestMemory: a value that never ends is not kept.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("megabytes for every family")
	}
	for wi, w := range writings {
		if w.again {
			continue
		}
		begin, _, _ := strings.Cut(w.calls([]call{{"f", []param{{"l", []any{"FILL"}}}}}), "FILL")
		p := familyByName(t, w.family).New(Options{Tools: declared("f")})
		p.Feed(nil, begin)
		chunk := strings.Repeat("[1, x", maxHeld/5)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 5 {
			p.Feed(nil, chunk)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 4*maxHeld {
			t.Errorf("%s %d: %d bytes kept", w.family, wi, kept)
		}
		runtime.KeepAlive(p)
	}
}

// FuzzFamilies: any output of any family in any cuts gives the same pieces, nothing panics, finished calls are valid
// JSON objects of declared tools, and little is held back.
func FuzzFamilies(f *testing.F) {
	index := map[string]uint8{}
	for i, fam := range families {
		index[fam.Name] = uint8(i)
	}
	for _, file := range caseFiles(f) {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if *fuzzFamily != "" && name != *fuzzFamily {
			continue
		}
		ar, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for k := 0; k < len(ar.Files); k += 2 {
			f.Add(index[name], caseOutput(ar.Files[k].Data), 7, 11, uint8(k/2))
		}
	}
	for _, w := range writings {
		if *fuzzFamily != "" && w.family != *fuzzFamily {
			continue
		}
		for i, s := range damageScenes {
			output := w.render(s.parts...)
			all := damages(output, contentOf(output, s.parts))
			for k := i; k < len(all); k += 61 {
				f.Add(index[w.family], all[k].output, 5, len(output)*2/3, uint8(0))
			}
		}
	}
	f.Fuzz(func(t *testing.T, family uint8, output string, a, b int, mode uint8) {
		fam := families[int(family)%len(families)]
		if *fuzzFamily != "" {
			fam = familyByName(t, *fuzzFamily)
		}
		o := caseOpts{cut: mode&1 != 0}
		o.InReasoning, o.Continued, o.NoRepair = mode&2 != 0, mode&4 != 0, mode&8 != 0
		o.Tools = append(declared("f", "get_weather"), damageTools[0])
		if mode&16 != 0 {
			o.Tools = nil
		}
		a, b = min(max(a, 0), len(output)), min(max(b, 0), len(output))
		if a > b {
			a, b = b, a
		}
		whole := parseWith(fam, o, output)
		if cut := parseWith(fam, o, output[:a], output[a:b], output[b:]); !slices.Equal(whole, cut) {
			t.Fatalf("%s cut at %d and %d (-whole +cut):\n%s", fam.Name, a, b, cmp.Diff(whole, cut))
		}
		checkCalls(t, fam, output, whole)
		o.cut = true
		if cut := finished(parseWith(fam, o, output[:b])); !among(cut, finished(whole)) {
			t.Fatalf("%s: %q gives calls %v, cut at %d %v", fam.Name, output, finished(whole), b, cut)
		}
		if !strings.ContainsAny(output, "<[{`>ftAaF]｜") && !o.InReasoning && output != "" {
			if len(whole) != 1 || whole[0] != (Piece{Kind: Text, Text: output}) {
				t.Fatalf("%s: plain %q came out as %v", fam.Name, output, whole)
			}
		}
	})
}

// finished are the calls that have an end, with their arguments.
func finished(ps []Piece) (calls []string) {
	for i, p := range ps {
		if p.Kind == ToolEnd {
			calls = append(calls, ps[i-2].Text+" "+ps[i-1].Text)
		}
	}
	return calls
}

// among tells whether some stand in this order in all.
func among(some, all []string) bool {
	for _, s := range some {
		i := slices.Index(all, s)
		if i < 0 {
			return false
		}
		all = all[i+1:]
	}
	return true
}

// checkCalls checks what must hold for the pieces of any output.
func checkCalls(t *testing.T, fam *Family, output string, ps []Piece) {
	args, open := "", false
	for _, p := range ps {
		switch p.Kind {
		case ToolStart:
			args, open = "", true
			if p.Text != "f" && p.Text != "get_weather" && p.Text != damageTools[0].Name {
				t.Fatalf("%s: call of undeclared %q", fam.Name, p.Text)
			}
		case ToolArgs:
			if args += p.Text; !open {
				t.Fatalf("%s: arguments outside a call", fam.Name)
			}
		case ToolEnd:
			if !open || !json.Valid([]byte(args)) || args[0] != '{' {
				t.Fatalf("%s: %q gives arguments %q", fam.Name, output, args)
			}
			open = false
		}
	}
}

func caseFiles(t testing.TB) []string {
	var files []string
	for _, dir := range []string{"testdata", "testdata/scenes"} {
		fs, err := filepath.Glob(dir + "/*.txtar")
		if err != nil || len(fs) == 0 {
			t.Fatal("no cases", err)
		}
		files = append(files, fs...)
	}
	return files
}
