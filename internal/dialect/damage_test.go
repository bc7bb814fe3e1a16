package dialect

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/schema"
)

var everyDamage = flag.Bool("damage", false, "try damage to every byte of structure, not to one of three inside of words")

// damageTools are what damaged calls may call.
var damageTools = []Tool{
	{"edit_file", &schema.Document{Raw: json.RawMessage(`{"type": "object", "required": ["path"], "properties": {
		"path": {"type": "string"}, "content": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"},
		"force": {"type": "boolean"}, "lines": {"type": "array"}, "options": {"type": "object"}}}`)}},
	{"get_weather", &schema.Document{Raw: json.RawMessage(`{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}`)}},
}

// damageScenes are the replies that are damaged.
var damageScenes = []scene{
	{name: "string", parts: []part{one("get_weather", param{"city", "Paris"})}},
	{name: "types", parts: []part{one("edit_file", param{"path", "main.go"}, param{"count", 4217.0}, param{"force", true}, param{"lines", []any{618.0, "abc"}},
		param{"ratio", -0.625}, param{"content", "done"})}},
	{name: "two", parts: []part{{calls: []call{{"get_weather", []param{{"city", "Paris"}}}, {"edit_file", []param{{"path", "main.go"}, {"content", "new"}}}}}}},
	{name: "text", parts: []part{says("I look."), one("get_weather", param{"city", "Paris"})}},
	{name: "nested", parts: []part{one("edit_file", param{"path", "main.go"},
		param{"options", map[string]any{"inner": map[string]any{"keys": []any{"abc", 618.0}}, "mode": "fast"}})}},
	{name: "markup", parts: []part{one("edit_file", param{"path", "a.html"}, param{"content", "<p class=\"x\">{1, [2]}</p>\nit's: \\d"})}},
	{name: "long", parts: []part{one("edit_file", param{"path", "main.go"}, param{"content", strings.Repeat("0123456789 abc\n", 6) + "."})}},
}

// damageKinds are what is done to one character of the structure, or at it; to a whole tag; to all line ends.
var damageKinds = []string{"drop", "double", "swap", "untag", "retag", "crlf", "cut", "end"}

// What becomes of a damaged reply.
const (
	damageSame     = "same"     // what it was
	damageRepaired = "repaired" // the same calls and text, with repairs
	damageStray    = "stray"    // the same calls, and something else shows as text or does not
	damageText     = "text"     // no call
	damageCut      = "cut"      // calls that began and have no end
	damageLess     = "less"     // some of the calls
	damageShort    = "short"    // a call with fewer arguments
	damageValue    = "value"    // a call in which one value or name is another
	damageSwallow  = "swallow"  // a call in which one value has others in it
	damageInvented = "invented" // a call with another name, other arguments, or once too often
)

var damageOutcomes = []string{damageSame, damageRepaired, damageStray, damageText, damageCut, damageLess, damageShort, damageValue, damageSwallow, damageInvented}

// damaged is one damage of one reply.
type damaged struct {
	kind    string
	at      int
	output  string
	touches bool // a character of a name or a value
}

// damages are all that is tried on an output.
func damages(output string, content []bool) []damaged {
	var all []damaged
	words := 0
	for at := 0; at < len(output); {
		r, n := utf8.DecodeRuneInString(output[at:])
		here := at
		at += n
		isWord := r|0x20 >= 'a' && r|0x20 <= 'z' || r >= 0x80
		inside := content[here] && (here == 0 || content[here-1]) // the cuts in front of content count
		if isWord {
			words++
		}
		if isWord && !*everyDamage && words%3 != 0 || inside && words%5 != 0 {
			continue
		}
		all = append(all, damaged{"cut", here, output[:here], false}, damaged{"end", here, output[:here], false})
		if content[here] {
			continue
		}
		all = append(all, damaged{"drop", here, output[:here] + output[at:], false}, damaged{"double", here, output[:at] + output[here:], false})
		if next, m := utf8.DecodeRuneInString(output[at:]); m > 0 && next != r {
			all = append(all, damaged{"swap", here, output[:here] + output[at:at+m] + output[here:at] + output[at+m:], content[at]})
		}
	}
	for _, tag := range tagsIn.FindAllStringIndex(output, -1) {
		if from, to := tag[0], tag[1]; !strings.Contains(output[from:to], "CDATA") && !content[from] && !content[to-1] {
			all = append(all, damaged{"untag", from, output[:from] + output[to:], false}, damaged{"retag", from, output[:to] + output[from:], false})
		}
	}
	if lines := strings.ReplaceAll(output, "\n", "\r\n"); lines != output {
		all = append(all, damaged{"crlf", strings.Index(output, "\n"), lines, true})
	}
	return append(all, damaged{"cut", len(output), output, false})
}

// tagsIn are the tags of an output, whatever the family.
var tagsIn = regexp.MustCompile(`\]<\]minimax\[>\[</?[^<>]*>|<[^<>]*>|\[/?[A-Z_]+\]|>>>|` + "```[a-z_]*")

// contentOf tells which bytes of an output are names and values of the parts, as a family may write them.
func contentOf(output string, parts []part) []bool {
	is := make([]bool, len(output))
	mark := func(s string) {
		for at := 0; s != ""; {
			i := strings.Index(output[at:], s)
			if i < 0 {
				return
			}
			for k := range s {
				is[at+i+k] = true
			}
			at += i + len(s)
		}
	}
	var value func(v any)
	value = func(v any) {
		switch x := v.(type) {
		case string:
			mark(x)
			mark(strings.Trim(asJSON(x), `"`))
			mark(strings.Trim(asPython(x), `'`))
		case []any:
			for _, e := range x {
				value(e)
			}
		case map[string]any:
			for k, e := range x {
				value(k)
				value(e)
			}
		case bool: // "true" and "false" say whether a value is a string
			for i := range output {
				if rest := output[i:]; i > 0 && output[i-1] != '"' && (strings.HasPrefix(rest, asJSON(x)) || strings.HasPrefix(rest, asPython(x))) {
					copy(is[i:], []bool{true, true, true, true})
				}
			}
		default:
			mark(asJSON(x))
		}
	}
	for _, p := range parts {
		mark(p.say)
		mark(p.think)
		for _, c := range p.calls {
			mark(c.name)
			for _, a := range c.params {
				mark(a.name)
				value(a.value)
			}
		}
	}
	return is
}

// heard is what a client has of a reply.
type heard struct {
	text, reasoning string
	calls           []call // that are complete, with arguments as JSON in the first parameter
	open            []string
	repairs         int
}

// hear takes pieces apart. The arguments of a call are a JSON object exactly if it has an end.
func hear(t *testing.T, ps []Piece, context string) heard {
	var h heard
	name, args, open := "", "", false
	leave := func() {
		if open {
			h.open = append(h.open, name)
			if json.Valid([]byte(args)) && mayNot("open", context) {
				t.Errorf("%s: a call without an end has complete arguments %s", context, args)
			}
		}
		open = false
	}
	for _, p := range ps {
		switch p.Kind {
		case Text:
			h.text += p.Text
		case Reasoning:
			h.reasoning += p.Text
		case ToolStart:
			leave()
			name, args, open = p.Text, "", true
		case ToolArgs:
			if args += p.Text; !open {
				t.Errorf("%s: arguments outside of a call", context)
			}
		case ToolEnd:
			var v map[string]any
			if err := json.Unmarshal([]byte(args), &v); err != nil || !open {
				t.Errorf("%s: a complete call has arguments %q: %v", context, args, err)
			}
			h.calls = append(h.calls, call{name, []param{{"", v}}})
			open = false
		}
	}
	leave()
	return h
}

// outcome names what became of a reply that should have become want.
func outcome(want, got heard, repaired, touches bool) string {
	k, worst := 0, damageSame
	for _, c := range got.calls {
		fit := ""
		for k < len(want.calls) && fit == "" {
			fit = likeness(want.calls[k], c, touches)
			k++
		}
		switch {
		case fit == "":
			return damageInvented
		case fit != damageSame:
			worst = fit
		}
	}
	isAll := len(got.calls) == len(want.calls) && len(got.open) == 0
	switch {
	case worst != damageSame:
		return worst
	case len(got.calls) > 0 && !isAll:
		return damageLess
	case len(got.open) > 0:
		return damageCut
	case !isAll:
		return damageText
	case got.text != want.text || got.reasoning != want.reasoning:
		return damageStray
	case repaired:
		return damageRepaired
	}
	return damageSame
}

// likeness tells how like a call of the reply a call is, "" if it must be another. Damage that touches a name may give
// one name that is new.
func likeness(want, got call, touches bool) string {
	w, g := want.params[0].value.(map[string]any), got.params[0].value.(map[string]any)
	lost, changed, swallowed := 0, 0, true
	all := strings.ToLower(asJSON(g)) // Python's True is true
	for k, v := range w {
		switch gv, has := g[k]; {
		case !has:
			lost++
			swallowed = swallowed && (strings.Contains(all, k) || !slices.ContainsFunc(leavesOf(v), func(leaf string) bool { return !strings.Contains(all, leaf) }))
		case asJSON(gv) != asJSON(v):
			changed++
		}
	}
	known, unknown := keysOf(w), 0
	for k := range g {
		if !slices.Contains(known, strings.TrimSpace(k)) {
			unknown++
		}
	}
	for _, leaf := range leavesOf(w) {
		if changed+lost > 0 && !touches && !strings.Contains(all, leaf) && !(changed == 0 && unknown == 0) {
			return "" // what was written is lost
		}
	}
	switch isPart := len(g)+lost == len(w); {
	case want.name != got.name || unknown > 0 && !(touches && unknown == 1 && changed <= 1 && lost == 1):
		return ""
	case changed == 0 && lost == 0 && isPart:
		return damageSame
	case changed == 0 && isPart:
		return damageShort
	case changed+lost == 1 || unknown == 1:
		return damageValue
	case changed == 1 && isPart && swallowed:
		return damageSwallow
	}
	return ""
}

// leavesOf are the texts of a value without what holds them together.
func leavesOf(v any) (leaves []string) {
	switch x := v.(type) {
	case map[string]any:
		for _, e := range x {
			leaves = append(leaves, leavesOf(e)...)
		}
	case []any:
		for _, e := range x {
			leaves = append(leaves, leavesOf(e)...)
		}
	default:
		leaves = append(leaves, strings.ToLower(strings.Trim(asJSON(v), `"`)))
	}
	return leaves
}

// keysOf are the keys of an object and of all within it.
func keysOf(v any) (keys []string) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			keys = append(append(keys, k), keysOf(e)...)
		}
	case []any:
		for _, e := range x {
			keys = append(keys, keysOf(e)...)
		}
	}
	return keys
}

// unmended are families in which damage still gives what it must not: invented calls, short calls, and open ones whose
// arguments are complete. With -family these count too.
var unmended = map[string]string{
	"kimi_k3": "invented",
}

// mayNot tells whether a fault of a family is one that must not be any more.
func mayNot(fault, context string) bool {
	family, _, _ := strings.Cut(context, " ")
	return *fuzzFamily != "" || !strings.Contains(unmended[family], fault)
}

const damageFile = "testdata/damage.txt"

// TestDamage damages replies of every family, one character or tag at a time. What comes of it has no call that the damage
// invented, and is the same for every split. What became of how many, and where a call came out as another, is in a file.
// With -v -family, it prints what became of each.
func TestDamage(t *testing.T) {
	var found strings.Builder
	for wi, w := range writings {
		if *fuzzFamily != "" && *fuzzFamily != w.family {
			continue
		}
		t.Run(fmt.Sprintf("%s %d", w.family, wi), func(t *testing.T) {
			f := familyByName(t, w.family)
			counts, places, mended := map[string]int{}, map[string][]int{}, map[Repair]int{}
			for _, s := range damageScenes {
				if w.alone && s.parts[0].say != "" {
					continue
				}
				output := w.render(s.parts...)
				repairs := 0
				whole := parse(f.New(Options{Tools: damageTools, Repaired: func(Repair) { repairs++ }}), output)
				want := hear(t, whole, w.family+" "+s.name)
				want.repairs = repairs
				for i, d := range damages(output, contentOf(output, s.parts)) {
					if testing.Short() && i%7 != 0 {
						continue
					}
					context := fmt.Sprintf("%s %d %s %s %d", w.family, wi, s.name, d.kind, d.at)
					got, became, repairs := damage(t, f, d, want, context)
					if became == damageRepaired {
						for _, kind := range repairs {
							mended[kind]++
						}
					}
					counts[d.kind+" "+became]++
					if isOther(became) {
						key := s.name + " " + d.kind + " " + became
						places[key] = append(places[key], d.at)
					}
					if *fuzzFamily != "" {
						t.Logf("%-8s %-6s %-6s %s\n%s", became, s.name, d.kind, d.around(output), shown(became, got))
					}
				}
			}
			table := damageTable(counts, places)
			for _, kind := range Repairs {
				if n := mended[kind]; n > 0 {
					table += fmt.Sprintf("  mended %s %d\n", kind, n)
				}
			}
			fmt.Fprintf(&found, "%s %d\n%s", w.family, wi, table)
			if *fuzzFamily != "" {
				t.Log("\n" + table)
			}
		})
	}
	if *fuzzFamily == "" && !testing.Short() && !*everyDamage {
		checkDamage(t, found.String())
	}
}

// checkDamage compares what became of damage with the file.
func checkDamage(t *testing.T, got string) {
	if *update {
		if err := os.WriteFile(damageFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(damageFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("what becomes of damage changed; look at it with -family, then run with -update (-file +now):\n%s", diff)
	}
}

// isOther tells whether a call came out that is not one of the reply's.
func isOther(became string) bool {
	return became == damageShort || became == damageValue || became == damageSwallow || became == damageInvented
}

// damage parses a damaged output and checks what must hold.
func damage(t *testing.T, f *Family, d damaged, want heard, context string) ([]Piece, string, []Repair) {
	var repairs []Repair
	o := caseOpts{cut: d.kind == "cut"}
	o.Tools, o.Repaired = damageTools, func(kind Repair) { repairs = append(repairs, kind) }
	ps := parseWith(f, o, d.output)
	o.Repaired = nil
	at := min(d.at, len(d.output))
	for _, parts := range [][]string{{d.output[:at], d.output[at:]}, {d.output[:at/2], d.output[at/2:]}, eachByte(d.output)} {
		if got := parseWith(f, o, parts...); !slices.Equal(got, ps) {
			t.Errorf("%s: %q in %d parts gives\n%swhole\n%s", context, d.output, len(parts), format(got), format(ps))
		}
	}
	got := hear(t, ps, context)
	became := outcome(want, got, len(repairs) > want.repairs, d.touches)
	switch {
	case d.kind == "cut" && (isOther(became) || became == damageRepaired),
		d.kind == "end" && isOther(became) && became != damageShort,
		became == damageInvented && mayNot("invented", context),
		d.kind != "end" && became == damageShort && mayNot("short", context):
		t.Errorf("%s: %s %s: %q\n%s", context, became, repairs, d.output, format(ps))
	}
	return ps, became, repairs
}

// around shows the place of a damage.
func (d damaged) around(output string) string {
	from, to := max(0, d.at-24), min(len(d.output), d.at+24)
	return fmt.Sprintf("%4d %q", d.at, strings.ToValidUTF8(d.output[from:d.at]+"▸"+d.output[d.at:to], ""))
}

// shown is what became of a damage, where that is worth a look.
func shown(became string, ps []Piece) string {
	if became == damageSame || became == damageRepaired {
		return ""
	}
	return format(ps)
}

// damageTable is a line for each kind, with how many became what, and under it where calls came out as others.
func damageTable(counts map[string]int, places map[string][]int) string {
	var b strings.Builder
	for _, kind := range damageKinds {
		fmt.Fprintf(&b, "  %-6s", kind)
		for _, o := range damageOutcomes {
			if n := counts[kind+" "+o]; n > 0 {
				fmt.Fprintf(&b, " %s %d", o, n)
			}
		}
		b.WriteByte('\n')
		for _, s := range damageScenes {
			for _, o := range damageOutcomes {
				if at := places[s.name+" "+kind+" "+o]; len(at) > 0 {
					fmt.Fprintf(&b, "    %s %s%s\n", s.name, o, ranges(at))
				}
			}
		}
	}
	return b.String()
}

// ranges are numbers in order, with those that follow each other closely as one.
func ranges(at []int) string {
	var b strings.Builder
	for i := 0; i < len(at); {
		k := i
		for k+1 < len(at) && at[k+1]-at[k] <= 4 {
			k++
		}
		if fmt.Fprintf(&b, " %d", at[i]); k > i {
			fmt.Fprintf(&b, "-%d", at[k])
		}
		i = k + 1
	}
	return b.String()
}

// TestCut cuts every case at every byte. The calls that are complete then are among those that the whole output gives; one
// that has begun stays open, with nothing behind it.
func TestCut(t *testing.T) {
	for _, file := range caseFiles(t) {
		f := familyByName(t, strings.TrimSuffix(filepath.Base(file), ".txtar"))
		if *fuzzFamily != "" && *fuzzFamily != f.Name {
			continue
		}
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(ar.Files); i += 2 {
			name, o := caseOptions(ar.Files[i].Name)
			output := caseOutput(ar.Files[i].Data)
			pieces := parseWith(f, o, output)
			whole := finished(pieces)
			isWhole := len(whole) == strings.Count(format(pieces), "start ") && strings.Contains(file, "scenes")
			o.cut = true
			for at := i % stride(); at < len(output); at += stride() {
				ps := parseWith(f, o, output[:at])
				context := fmt.Sprintf("%s %s cut at %d", f.Name, name, at)
				hear(t, ps, context)
				if cut := finished(ps); !among(cut, whole) {
					t.Errorf("%s: %q gives calls %v, all of it %v", context, output[:at], cut, whole)
				}
				begun := false
				for _, p := range ps {
					if begun = p.Kind == ToolStart || begun && p.Kind != ToolEnd; begun && p.Kind == Text && isWhole {
						t.Errorf("%s: %q shows %q of a call", context, output[:at], p.Text)
					}
				}
			}
		}
	}
}
