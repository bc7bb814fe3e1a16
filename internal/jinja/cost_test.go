//go:build unix

package jinja

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// textWork are operations on the text n.x that look at all of it.
var textWork = []string{
	"n.x|lower", "n.x.upper()", "n.x|title", "n.x.title()", "n.x|capitalize", "n.x.swapcase()", "n.x.casefold()",
	"n.x.strip('<a> Bäßb')", "n.x.strip(n.x)", "'a'.strip(n.x)", "n.x|striptags", "n.x|e", "n.x|urlencode", "n.x|forceescape",
	"n.x.split()", "n.x.split(' ')", "n.x.split('zz')", "n.x.rsplit(' ', 99999999)", "n.x.rsplit(none, 99999999)", "n.x.splitlines()", "n.x.replace(' ', '\\n').splitlines()",
	"n.x|replace('B', 'C')", "n.x|replace('B', 'CD')", "n.x|replace('', 'x')", "n.x.replace('zz', '')", "'zz' in n.x", "n.x in n.x", "(n.x[:2000] ~ 'z') in n.x",
	"n.x.find('zz')", "n.x.rfind('zz')", "n.x.count('a')", "n.x.partition('zz')", "n.x.rpartition('zz')", "n.x[-1]", "n.x[1:]", "n.x[::2]", "n.x[::-1]", "n.x|reverse",
	"n.x|length", "n.x|list", "n.x|first", "n.x|last", "n.x|tojson", "n.x|tojson(ensure_ascii=true)", "{n.x: 1}|tojson", "[n.x]|string", "{n.x: n.x}|string", "n.x ~ 'a'", "n.x + 'a'", "'a' + n.x", "n.x * 1",
	"n.x == 'a' ~ n.x[1:]", "n.x < n.x", "n.x.isupper()", "n.x.istitle()", "('a' ~ n.x).isprintable()", "n.x is lower", "n.x is upper", "n.x is filter", "n.x|wordcount", "n.x|indent(1)", "n.x|truncate(5)", "n.x.expandtabs()",
	"'%s' % n.x", "'%r' % n.x", "'{}'.format(n.x)", "'{a}'.format(a=n.x)", "'{a}'.format_map({'a': n.x})", "n.x.replace('B', '%%') % ()", "n.x.format()", "n.x|format()", "n.x|int", "n.x|float",
	"[n.x, n.x]|join(',')", "n.x|join", "','.join(n.x)", "[1, 2]|join(n.x)", "{n.x: 1}", "{'a': 1}[n.x]", "n.x.startswith(n.x)", "n.x.startswith('a', 1)", "n.x.removeprefix(n.x)", "n.x.endswith(('zz', n.x))",
	"n.x|sort", "n.x|unique|list", "n.x|groupby(0)", "n.x|batch(2)|list", "n.x|slice(10)|list", "n.x|map('upper')|list", "n.x|select('equalto', 'a')|list", "n.x|min", "n.x|map('length')|sum", "[n.x]|sort", "[n.x]|groupby(0)", "[n.x, n.x]|max",
	"(n.x|safe) + n.x", "n.x|safe + ''", "{'a': n.x}|xmlattr", "n.x|attr(n.x)", "{}[n.x]", "[][n.x]", "[]|map(attribute=n.x)|list", "n.x.center(3) ~ ''", "n.x|center(3)", "n.x.zfill(3)", "strftime_now(n.x)", "dict(a=n.x)|tojson", "[1]|tojson(indent=n.x)", "[1, 2]|tojson(separators=(n.x, ''))", "n.x in {'a': 1}",
}

// listWork are operations on the list n.x, or the dict n.d, that look at all of it.
var listWork = []string{
	"n.x|list", "n.x[1:]", "n.x[::-1]", "n.x|reverse|list", "n.x + n.x", "n.x * 2", "n.x.copy()", "n.x|sum", "n.x|max", "n.x|min", "n.x|sort", "n.x|sort(reverse=true)", "n.x|join", "n.x|join(', ')", "n.x|string", "n.x|tojson", "n.x|tojson(indent=2)",
	"n.x|unique|list", "n.x|groupby('a')", "n.x|batch(2)|list", "n.x|slice(7)|list", "n.x|map('string')|list", "n.x|select('odd')|list", "-1 in n.x", "n.x == n.x[:]", "n.x.count(1)", "n.x|map('string')|sort", "dict(n.x|batch(2))", "cycler(*n.x)", "range(n.x|length)|list", "range(n.x|length)[::2]", "range(n.x|length)|sum",
	"n.d|list", "n.d.items()", "n.d.keys()", "n.d.values()", "n.d.copy()", "dict(n.d)", "n.d|dictsort", "n.d|items|list", "n.d|tojson", "n.d|tojson(sort_keys=true)", "n.d|string", "n.d == n.d.copy()", "dict(**n.d)", "namespace(**n.d)", "n.d|xmlattr", "n.d|urlencode", "'{k1}'.format(**n.d)", "'%(k1)s' % n.d.copy()", "{(n.d|list|join): 1}",
}

// stepsOf renders and tells the steps it took.
func stepsOf(t *testing.T, src string, vars *Dict) int {
	t.Helper()
	tmpl, err := Parse("t", src)
	if err != nil {
		t.Fatal(err)
	}
	spent := 0
	_, err = tmpl.Render(context.Background(), vars, Limits{Spent: &spent})
	if e := (*Error)(nil); errors.As(err, &e) && e.Kind == Limit {
		t.Fatalf("%s: %v", src, err)
	}
	return spent
}

// TestCharged: whatever looks at a text or a list takes steps for its length.
func TestCharged(t *testing.T) {
	const n = 1 << 13
	of := func(expr string, size int) int {
		vars := NewDict()
		d, items := NewDict(), make([]Value, size)
		for i := range items {
			items[i] = int64(i)
			d.Set(fmt.Sprint("k", i), int64(i))
		}
		vars.Set("n", object("x", NewList(items...), "d", d))
		return stepsOf(t, "{% set y = "+expr+" %}", vars)
	}
	for _, expr := range listWork {
		if once, twice := of(expr, n), of(expr, 2*n); twice-once < n/4 {
			t.Errorf("%s: %d steps for %d items, %d for %d", expr, once, n, twice, 2*n)
		}
	}
	for _, piece := range []string{"<a> B ab", "<ä> Bß"} {
		of := func(expr string, bytes int) int {
			vars := NewDict()
			vars.Set("n", object("x", strings.Repeat(piece, bytes/8)))
			return stepsOf(t, "{% set y = "+expr+" %}", vars)
		}
		for _, expr := range textWork {
			if once, twice := of(expr, n), of(expr, 2*n); twice-once < n>>7 {
				t.Errorf("%s: %d steps for %d bytes, %d for %d", expr, once, n, twice, 2*n)
			}
		}
	}
}

func object(kv ...any) *Dict {
	d := NewDict()
	for i := 0; i < len(kv); i += 2 {
		d.Set(kv[i].(string), kv[i+1])
	}
	return d
}

// TestChargedElsewhere: work that grows with the template, the depth of scopes or the digits of numbers.
func TestChargedElsewhere(t *testing.T) {
	names := func(n int, each string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, each, i, i)
		}
		return b.String()
	}
	for name, of := range map[string]struct {
		src   func(n int) string
		least int // steps that n costs at least, over those of half of it
	}{
		"variables of a scope": {func(n int) string { return "{% with %}" + names(n, "{%% set v%d = %d %%}") + "{% endwith %}" }, 400 * 400 / 64},
		"scopes": {func(n int) string {
			return strings.Repeat("{% with %}", n/4) + strings.Repeat("{{ x }}", 100) + strings.Repeat("{% endwith %}", n/4)
		}, 200},
		"parameters": {func(n int) string {
			return "{% macro m(" + names(n, "a%d=%d,") + "b=1) %}{% endmacro %}{{ m(" + names(n, "a%d=%d,") + "b=1) }}"
		}, 400 * 400 / 32},
		"arguments of a macro": {func(n int) string {
			return "{% macro m(" + names(n, "a%d=%d,") + "b=1) %}{% endmacro %}" + strings.Repeat("{% set y = m.arguments %}", 100)
		}, 20_000},
		"arguments of format": {func(n int) string {
			return "{% set y = '" + strings.Repeat("{a1}", n) + "'.format(" + names(n, "a%d=%d,") + ") %}"
		}, 400 * 400 / 16},
		"digits printed":    {func(n int) string { return fmt.Sprintf("{%% set y = (7**%d)|string %%}", 5*n) }, 300},
		"digits multiplied": {func(n int) string { return fmt.Sprintf("{%% set y = 7**%d %% 3 %%}", 5*n) }, 300},
		"digits compared": {func(n int) string {
			return fmt.Sprintf("{%% set x = 7**%d %%}", 5*n) + strings.Repeat("{% set y = x == x %}", 10)
		}, 3000},
		"digits as a key":       {func(n int) string { return fmt.Sprintf("{%% set y = {7**%d: 1} %%}", 5*n) }, 800},
		"text written":          {func(n int) string { return fmt.Sprintf("{%% set y %%}{{ 'x' * %d }}{%% endset %%}", 1000*n) }, 12000},
		"a template's own text": {func(n int) string { return "{% set y %}" + strings.Repeat("text", n) + "{% endset %}" }, 50},
		"a precision":           {func(n int) string { return fmt.Sprintf("{%% set y = '%%.%df' %% 1.5 %%}", 40*n) }, 400},
		"a width":               {func(n int) string { return fmt.Sprintf("{%% set y = '%%%dd' %% 1 %%}", 40*n) }, 400},
		"names of a dict's member": {func(n int) string {
			return "{% set d = {'a': 1} %}" + strings.Repeat("{% set y = d."+strings.Repeat("a", 10*n)+" %}", 10)
		}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 800
			if once, twice := stepsOf(t, of.src(n/2), NewDict()), stepsOf(t, of.src(n), NewDict()); twice-once < of.least {
				t.Errorf("%d steps, then %d: %d more are too few", once, twice, twice-once)
			}
		})
	}
}

// bytesPerStep is more memory than a step ever takes.
const bytesPerStep = 128

// TestRunaway: a template without end fails, and takes no more memory than its steps are worth. The log says what they take of
// a processor.
func TestRunaway(t *testing.T) {
	const doubled = "{% set n = namespace(x='<a> B ') %}{% for i in range(14) %}{% set n.x = n.x + n.x %}{% endfor %}"
	const forever = "{% for a in range(99999) %}{% for b in range(99999) %}"
	const ends = "{% endfor %}{% endfor %}"
	cases := map[string]string{
		"macro":              "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
		"macros in turn":     "{% macro f(x) %}{{ g([x, x]) }}{% endmacro %}{% macro g(x) %}{{ f([x, x]) }}{% endmacro %}{{ f(1) }}",
		"macro, many calls":  "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
		"caller":             "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}",
		"range":              "{% for i in range(10**9) %}{% endfor %}",
		"loops":              forever + ends,
		"loops that say":     forever + "x" + ends,
		"recursive loop":     "{% for x in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
		"doubling":           "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
		"doubling a list":    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
		"growing":            "{% set n = namespace(x='') %}" + forever + "{% set n.x = n.x ~ 'text text text' %}" + ends,
		"growing, kept":      "{% set n = namespace(x=" + `'a' * 5000` + ", l=[]) %}" + forever + "{% set n.l = [n.l, n.x ~ 'a'] %}" + ends,
		"kept lists":         "{% set n = namespace(x=[]) %}" + forever + "{% set n.x = [n.x, {}, {}, {}, {}, (), []] %}" + ends,
		"kept functions":     "{% set n = namespace(x=[]) %}" + forever + "{% set n.x = [n.x, ''.split, ''.split, {}.items, joiner()] %}" + ends,
		"captured, nested":   doubled + "{% macro f() %}{{ n.x }}{{ f() }}{% endmacro %}{{ f() }}",
		"sorting":            forever + "{% set y = range(99999)|sort(reverse=true)|unique|list %}" + ends,
		"printing":           "{% set n = namespace(x=[]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}" + forever + "{{ n.x }}" + ends,
		"comparing":          "{% set n = namespace(x=[], y=[]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
		"hashing":            "{% set n = namespace(x=(1,)) %}{% for i in range(11) %}{% set n.x = n.x + n.x %}{% endfor %}" + forever + "{% set y = {n.x: 1}[n.x] %}" + ends,
		"big integers":       forever + "{% set y = (7 ** 2500) * (7 ** 2500) // 3 ** 1000 %}" + ends,
		"big integer's text": forever + "{% set y = ('%d' % (7 ** 5000), (7 ** 5000)|string, {7 ** 5000: 1}) %}" + ends,
		"floats' text":       forever + "{% set y = ('%.300g' % 1e-300, '%.300f' % 1e300, 1.5|round(300)) %}" + ends,
		"nested namespaces":  "{% set n = namespace(x=namespace()) %}" + forever + "{% set n.x = namespace(x=n.x) %}" + ends + "{{ n.x }}",
		"lazy over lazy":     "{% set n = namespace(x=[1]) %}" + "{% for a in range(99999) %}{% set n.x = n.x|map('string') %}{% endfor %}{{ n.x|list }}",
		"formatting":         forever + "{% set y = '%65000d' % 1 %}{% set z = '{:>65000}'.format(1) %}{% set z = '{:060000,d}'.format(1) %}" + ends,
		"keyword arguments":  forever + "{% set y = dict(**{'a': 1}) %}" + ends,
	}
	for _, expr := range textWork {
		cases["text: "+expr] = doubled + forever + "{% set y = " + expr + " %}" + ends
		cases["little text: "+expr] = strings.Replace(doubled, "14", "3", 1) + forever + "{% set y = " + expr + " %}" + ends
		cases["other text: "+expr] = strings.Replace(doubled, "<a> B", "<ä> ß", 1) + forever + "{% set y = " + expr + " %}" + ends
	}
	for _, expr := range listWork {
		cases["list: "+expr] = "{% set n = namespace(x=range(1000)|list, d=dict(range(2000)|map('string')|batch(2))) %}" + forever + "{% set y = " + expr + " %}" + ends
	}
	worst, worstTime := 0.0, 0.0
	for name, src := range cases {
		tmpl, err := Parse("t", src)
		if err != nil {
			t.Fatal(name, err)
		}
		spent := 0
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := cpuTime(t)
		_, err = tmpl.Render(t.Context(), NewDict(), Limits{Steps: runawaySteps, Spent: &spent})
		took := float64((cpuTime(t) - start).Nanoseconds()) / float64(spent)
		runtime.ReadMemStats(&after)
		var e *Error
		switch {
		case errors.As(err, &e) && e.Line != 0 && (e.Kind == Limit || strings.Contains(e.Msg, "range too big")):
		// As the reference does.
		case errors.As(err, &e) && e.Kind == Runtime && (strings.Contains(name, "text: ") || strings.Contains(name, "list: ")):
			continue
		default:
			t.Errorf("%s: got %v, want an error of kind Limit", name, err)
		}
		made := max(0, float64(after.TotalAlloc-before.TotalAlloc)-1<<16) / float64(spent)
		if made > bytesPerStep {
			t.Errorf("%s: %.0f bytes allocated for each of %d steps", name, made, spent)
		}
		if took > 80 && spent > runawaySteps/2 {
			t.Logf("%s: %.0f ns and %.0f bytes a step", name, took, made)
		}
		if worst = max(worst, made); spent > runawaySteps/2 {
			worstTime = max(worstTime, took)
		}
	}
	t.Logf("at worst %.0f ns and %.0f bytes a step", worstTime, worst)
}

// runawaySteps are enough to see what a step takes.
const runawaySteps = 200_000

// ending is a context that ends when it has been looked at so many times.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestContext: a template ends soon after its context.
func TestContext(t *testing.T) {
	for name, src := range map[string]string{
		"loop":  "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
		"lists": "{% for a in range(9999) %}{% set x = range(999)|list|sort %}{% endfor %}",
		"text":  "{% set x = 'ab c' * 10000 %}{% for a in range(9999) %}{% set y = x|upper|title %}{% endfor %}",
	} {
		tmpl, err := Parse("t", src)
		if err != nil {
			t.Fatal(err)
		}
		for _, looks := range []int{0, 3} {
			spent := 0
			_, err := tmpl.Render(&ending{t.Context(), looks}, NewDict(), Limits{Spent: &spent})
			if !errors.Is(err, context.Canceled) || spent > (looks+2)*20_000 {
				t.Errorf("%s: %v after %d steps", name, err, spent)
			}
		}
	}
}

// TestSpent: renderings that share a count share the steps.
func TestSpent(t *testing.T) {
	tmpl, err := Parse("t", "{% for a in range(1000) %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	spent, n := 0, 0
	for err == nil && n < 100 {
		_, err = tmpl.Render(t.Context(), NewDict(), Limits{Steps: 10_000, Spent: &spent})
		n++
	}
	if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != Limit || n > 10 || spent > 20_000 {
		t.Errorf("%v after %d renderings and %d steps", err, n, spent)
	}
}

// TestLongText: what templates do to the letters and words of a conversation they do to 400 KB of it, however busy the machine
// is.
func TestLongText(t *testing.T) {
	vars := NewDict()
	var messages []Value
	for range 100 {
		messages = append(messages, object("role", "user", "content", strings.Repeat("some text ", 400)))
	}
	vars.Set("messages", NewList(messages...))
	for name, src := range map[string]string{
		"letters":     "{% set n = namespace(x=false) %}{% for m in messages %}{% for c in m['content'] %}{% if c['type'] == 'image' %}{% set n.x = true %}{% endif %}{% endfor %}{% endfor %}",
		"growing":     "{% set n = namespace(x='') %}{% for m in messages %}{% for w in m.content.split() %}{% set n.x = n.x ~ w ~ ' ' %}{% endfor %}{% endfor %}{{ n.x }}",
		"growing sum": "{% set n = namespace(x='') %}{% for m in messages %}{% for w in m.content.split() %}{% set n.x = n.x + w + ' ' %}{% endfor %}{% endfor %}{{ n.x }}",
		"every pair":  "{% for m in messages %}{% for o in messages %}{% if m.content.startswith('other') or o.role == 'tool' %}x{% endif %}{% endfor %}{{ m.content|trim }}{% endfor %}",
		"filters":     "{% for m in messages %}{{ m.content|trim|replace('some', 'any')|tojson }}{{ m.content|upper }}{{ m.content.split('text')[-1] }}{% endfor %}",
	} {
		if steps := stepsOf(t, src, vars); steps > DefaultSteps/2 {
			t.Errorf("%s: %d steps", name, steps)
		}
	}
}

// FuzzCost: no template over any variables takes more memory than its steps are worth, or more steps than it may.
func FuzzCost(f *testing.F) {
	for _, c := range goldenCases(f) {
		f.Add(c.Template, []byte(c.Vars))
	}
	for _, expr := range textWork {
		f.Add("{% set n = namespace(x=x) %}{% for i in range(14) %}{% set n.x = n.x + n.x %}{% endfor %}{{ "+expr+" }}", []byte(`"<a> ß "`))
	}
	for _, expr := range listWork {
		f.Add("{% set n = namespace(x=range(999)|list, d=dict(range(999)|batch(3)|map('batch', 2))) %}{% for i in x %}{{ "+expr+" }}{% endfor %}", []byte(`[1, 2, 3]`))
	}
	f.Fuzz(func(t *testing.T, src string, vars []byte) {
		v, err := FromJSON(vars)
		if err != nil {
			return
		}
		d, ok := v.(*Dict)
		if !ok {
			d = object("x", v)
		}
		var before, parsed, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tmpl, err := Parse("t", src)
		runtime.ReadMemStats(&parsed)
		if made := parsed.TotalAlloc - before.TotalAlloc; made > uint64(2048*len(src)+1<<16) {
			t.Errorf("%d bytes allocated to parse %d", made, len(src))
		}
		if err != nil {
			return
		}
		spent := 0
		_, _ = tmpl.Render(t.Context(), d, Limits{Steps: runawaySteps, Output: 1 << 20, Spent: &spent})
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - parsed.TotalAlloc; made > uint64(bytesPerStep*spent+64*(len(src)+len(vars))+1<<17) {
			t.Errorf("%d bytes allocated for %d steps", made, spent)
		}
		if spent > runawaySteps+8<<20 { // what ends it is counted before it is done
			t.Errorf("%d steps", spent)
		}
	})
}
