package jinja

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	update = flag.Bool("update", false, "remake the goldens with the pinned transformers")
	python = flag.String("python", "python3", "interpreter for -update")
)

const demoTemplate = "../demo/model/chat_template.jinja"

// goldenCase is what tools/golden/jinja.py wrote: a template, its variables, and what the reference made of them.
type goldenCase struct {
	Template string
	Vars     json.RawMessage
	Text     *string
	Error    string // syntax, runtime, raised or limit
	Message  string
}

func goldenCases(t testing.TB) []goldenCase {
	t.Helper()
	return readGolden(t).Cases
}

type goldenFile struct {
	Names struct{ Filters, Tests, Globals []string } // all that the reference's environment has
	Cases []goldenCase
}

func readGolden(t testing.TB) goldenFile {
	t.Helper()
	const path = "testdata/features.json"
	if *update {
		if out, err := exec.Command(*python, "../../tools/golden/jinja.py", demoTemplate, path).CombinedOutput(); err != nil {
			t.Fatalf("remake %s: %v\n%s", path, err, out)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var g goldenFile
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	demo, err := os.ReadFile(demoTemplate)
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Cases {
		if g.Cases[i].Template == "demo" {
			g.Cases[i].Template = string(demo)
		}
	}
	return g
}

// TestNames compares the names of filters, tests and globals with the reference's. What is left out has a reason.
func TestNames(t *testing.T) {
	leftOut := map[string]string{
		"filter random":   "what it prints differs each time, and with it the prompt",
		"global lipsum":   "what it prints differs each time, and with it the prompt",
		"filter urlize":   "makes links of a web page",
		"filter wordwrap": "breaks lines for people to read",
	}
	g := readGolden(t)
	compare := func(kind string, want []string, have []string) {
		for _, n := range want {
			if _, ok := leftOut[kind+" "+n]; ok == slices.Contains(have, n) {
				t.Errorf("%s %s: implemented or left out for a reason, not both or neither", kind, n)
			}
		}
		for _, n := range have {
			if !slices.Contains(want, n) {
				t.Errorf("%s %s: the reference has none", kind, n)
			}
		}
	}
	compare("filter", g.Names.Filters, slices.Collect(maps.Keys(filters)))
	compare("test", g.Names.Tests, slices.Collect(maps.Keys(tests)))
	compare("global", g.Names.Globals, slices.Collect(maps.Keys(globals)))
}

func parseVars(t testing.TB, data []byte) *Dict {
	t.Helper()
	v, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Dict)
}

func render(src string, vars *Dict, l Limits) (string, error) {
	t, err := Parse("test", src)
	if err != nil {
		return "", err
	}
	t.Now = func() time.Time { return time.Date(2026, 3, 5, 7, 8, 9, 123456000, time.UTC) }
	return t.Render(context.Background(), vars, l)
}

// TestReference: byte for byte what the reference prints, and an error where it raises one. An error that the reference
// finds while compiling may come later here (an unknown filter), never the other way round.
func TestReference(t *testing.T) {
	for _, c := range goldenCases(t) {
		got, err := render(c.Template, parseVars(t, c.Vars), Limits{})
		var e *Error
		switch {
		case c.Text != nil && err != nil:
			t.Errorf("%s\n%v", c.Template, err)
		case c.Text != nil && got != *c.Text:
			t.Errorf("%s\n got %q\nwant %q", c.Template, got, *c.Text)
		case c.Text != nil:
		case !errors.As(err, &e):
			t.Errorf("%s\n got %q, want an error: %s", c.Template, got, c.Message)
		case (e.Kind == Raised) != (c.Error == "raised") || (e.Kind == Limit) != (c.Error == "limit") || c.Error == "runtime" && e.Kind == Syntax:
			t.Errorf("%s\n%v: kind %d, want %s: %s", c.Template, err, e.Kind, c.Error, c.Message)
		case e.Kind == Raised && e.Msg != c.Message:
			t.Errorf("%s\nmessage %q, want %q", c.Template, e.Msg, c.Message)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"raised", "a\n\n{{ raise_exception('roles must alternate') }}", "template test refuses the conversation at line 3: roles must alternate"},
		{"undefined", "\n{{ x.y }}", "render template test: line 2: 'x' is undefined"},
		{"attribute", "{{ {}.x.y }}", "render template test: line 1: 'dict object' has no attribute 'x'"},
		{"syntax", "\n\n{% if x %}\n{{ y z }}", "parse template test: line 4: expected '}}', got 'z'"},
		{"unclosed", "{% for x in y %}", "parse template test: line 1: unexpected end of template, looking for 'endfor'"},
		{"include", "{% include 'x' %}", "parse template test: line 1: 'include' needs other templates, a chat template stands alone"},
		{"line of a macro's body", "{% macro f() %}\n{{ 1 / 0 }}{% endmacro %}\n{{ f() }}", "render template test: line 2: float division by zero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := render(c.src, NewDict(), Limits{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	small := Limits{Steps: 20000, Depth: 50, Output: 10000}
	for name, src := range map[string]string{
		"steps":            "{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}",
		"recursion":        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"recursive loop":   "{% set l = [1] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}",
		"output":           "{% for i in range(1000) %}0123456789012345{% endfor %}",
		"string":           "{% set x = 'abcdefgh' * 1000000000 %}",
		"doubling":         "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
		"doubling concat":  "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
		"list":             "{% set x = [1] * 1000000000 %}",
		"doubling list":    "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
		"replace":          "{{ ('a' * 9000)|replace('a', 'b' * 9000) }}",
		"join":             "{{ range(9000)|join('x' * 9000) }}",
		"indent":           "{{ ('\n' * 9000)|indent('x' * 9000, false, true) }}",
		"width":            "{{ 'x'|center(100000000) }}",
		"tabs":             "{{ ('\t' * 9000).expandtabs(9000) }}",
		"slices":           "{{ [1]|slice(60000)|list }}",
		"integer":          "{{ 9 ** (9 ** 9) }}",
		"integer by steps": "{% set n = namespace(x=3) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}",
		"nested value":     "{% set n = namespace(x=1) %}{% for i in range(900) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
		"nested compared":  "{% set n = namespace(x=1, y=1) %}{% for i in range(900) %}{% set n.x = [n.x] %}{% set n.y = [n.y] %}{% endfor %}{{ n.x == n.y }}",
		"nested dumped":    "{% set n = namespace(x=1) %}{% for i in range(900) %}{% set n.x = {'a': n.x} %}{% endfor %}{{ n.x|tojson }}",
		"shared dumped":    "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x|tojson }}",
		"shared printed":   "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
		"shared compared":  "{% set n = namespace(x=1, y=1) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := render(src, NewDict(), small)
			var e *Error
			if !errors.As(err, &e) || e.Kind != Limit {
				t.Errorf("got %v, want an error of kind Limit", err)
			}
			if strings.HasPrefix(name, "recursi") && !strings.Contains(err.Error(), "nested deeper than 50 calls") {
				t.Errorf("got %v, want one about depth", err)
			}
		})
	}
	for name, src := range map[string]string{
		"printed list": "{{ ['a' * 3000000, 1] }}",
		"tuple as key": "{{ {('a' * 70000, 1): 2} }}",
	} {
		var e *Error
		if _, err := render(src, NewDict(), Limits{}); !errors.As(err, &e) || e.Kind != Limit {
			t.Errorf("%s: got %v, want an error of kind Limit", name, err)
		}
	}
	deep := strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000)
	if _, err := Parse("deep", "{{ "+deep+" }}"); err == nil {
		t.Error("nested parentheses: no error")
	}
	if _, err := Parse("deep", strings.Repeat("{% if 1 %}", 100000)); err == nil {
		t.Error("nested statements: no error")
	}
	if _, err := FromJSON([]byte(strings.Repeat("[", 100000))); err == nil {
		t.Error("nested JSON: no error")
	}
}

func TestFromJSON(t *testing.T) {
	v, err := FromJSON([]byte(` {"b": 1, "a": [1.0, 12345678901234567890, "é", null], "b": 2} `))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := (&renderer{ctx: context.Background(), limits: Limits{}.withDefaults(), steps: 1000}).repr(v), `{'b': 2, 'a': [1.0, 12345678901234567890, 'é', None]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []string{"", "{", "[1,]", "{} {}", "nul", "\"a", "{1: 2}"} {
		if _, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestDict holds a large dict, which keeps an index, against a small one, which is scanned.
func TestDict(t *testing.T) {
	d := NewDict()
	for i := range 3 * indexFrom {
		d.Set(strings.Repeat("k", i+1), int64(i))
	}
	d.Set("k", "first")
	d.Delete("kk")
	if d.Len() != 3*indexFrom-1 || d.Keys()[1] != "kkk" {
		t.Fatalf("%d keys, second %q", d.Len(), d.Keys()[1])
	}
	for i, k := range d.Keys() {
		if v, ok := d.Get(k); !ok || i > 0 && v != int64(len(k)-1) {
			t.Errorf("%q: %v, %v", k, v, ok)
		}
	}
	c := d.Clone()
	c.Set("new", true)
	if _, ok := d.Get("new"); ok {
		t.Error("a clone shares entries")
	}
}

// TestObjects prints, compares and looks into every kind of value a template can get hold of.
func TestObjects(t *testing.T) {
	for _, v := range []string{"cycler(1)", "joiner()", "namespace(a=1)", "range(2)", "f", "d.items()", "d.items", "[]|map('upper')", "[1]|reverse", "'<'|safe", "x", "raise_exception", "(1,)"} {
		src := "{% macro f() %}{% endmacro %}{% set v = " + v + " %}{{ v }}{{ [v] }}{{ v == v }}{{ v is sameas v }}{{ {'k': v} }}{{ v in [v] }}{{ (v.nosuch is defined) if (v is defined) }}{{ v is callable }}{{ v is iterable }}{{ v ~ v }}"
		if _, err := render(src, parseVars(t, []byte(`{"d": {"a": 1}}`)), Limits{}); err != nil {
			t.Errorf("%s: %v", v, err)
		}
	}
}

// TestConcurrent renders one template from several goroutines; the race detector watches.
func TestConcurrent(t *testing.T) {
	src, err := os.ReadFile(demoTemplate)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := Parse("demo", string(src))
	if err != nil {
		t.Fatal(err)
	}
	vars := parseVars(t, []byte(`{"messages":[{"role":"user","content":"Hi"}],"add_generation_prompt":true,"tools":null}`))
	want, err := tmpl.Render(context.Background(), vars, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if got, err := tmpl.Render(context.Background(), vars, Limits{}); err != nil || got != want {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzRender: no template over any variables panics or outgrows its limits.
func FuzzRender(f *testing.F) {
	for _, c := range goldenCases(f) {
		f.Add(c.Template, []byte(c.Vars))
	}
	f.Fuzz(func(t *testing.T, src string, vars []byte) {
		v, err := FromJSON(vars)
		if err != nil {
			return
		}
		d, ok := v.(*Dict)
		if !ok {
			d = NewDict()
			d.Set("x", v)
		}
		l := Limits{Steps: 20000, Depth: 30, Output: 1 << 16}
		out, err := render(src, d, l)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error of another type: %v", err)
		}
		if len(out) > l.Output {
			t.Fatalf("%d bytes of output", len(out))
		}
	})
}

func BenchmarkRender(b *testing.B) {
	cases := goldenCases(b)
	last := cases[len(cases)-1]
	tmpl, err := Parse("demo", last.Template)
	if err != nil {
		b.Fatal(err)
	}
	vars := parseVars(b, last.Vars)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(context.Background(), vars, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
