package grammar

import (
	"fmt"
	"strings"
	"testing"
)

// doubling is a schema of n definitions, each of which is one of two references to the next, and the last one is leaf.
func doubling(n int, leaf string) string {
	var b strings.Builder
	b.WriteString(`{"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "required": ["x"], "$defs": {`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}, `, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d": %s}}`, n, leaf)
	return b.String()
}

// itself is a schema whose x is one of n alternatives that are x again, or leaf.
func itself(n int, leaf string) string {
	return `{"type": "object", "properties": {"x": {"anyOf": [` + strings.Repeat(`{"$ref": "#/properties/x"}, `, n) + leaf + `]}}, "required": ["x"]}`
}

// TestUnions: alternatives within alternatives cost what they are, not what they could be multiplied to.
func TestUnions(t *testing.T) {
	v := wideCallVocab()
	cost := func(schema string) int {
		budget := NewBudget(1)
		m := v.Matcher(callOf(schema), budget)
		if !m.Accept([]byte(`{"name": "f", "arguments": {"x": `)) {
			t.Fatal(schema)
		}
		m.Allowed()
		return burst - budget.left
	}
	for name, c := range map[string]struct{ schema, leaf, fits string }{
		"itself 6":    {itself(6, `{"type": "integer"}`), `{"type": "integer"}`, `{"x":1}`},
		"itself 30":   {itself(30, `{"type": "integer"}`), `{"type": "integer"}`, `{"x":1}`},
		"doubling 17": {doubling(17, `{"type": "string"}`), `{"type": "string"}`, `{"x":"a"}`},
		"doubling 30": {doubling(30, `{"type": "boolean"}`), `{"type": "boolean"}`, `{"x":true}`},
	} {
		g := callOf(c.schema)
		if got, plain := cost(c.schema), cost(doubling(0, c.leaf)); got > 2*plain {
			t.Errorf("%s: a token costs %d steps, with the alternatives themselves %d", name, got, plain)
		}
		if !fits(g, `{"name": "f", "arguments": `+c.fits+`}`+end) || fits(g, `{"name": "f", "arguments": {"x":[]}}`+end) {
			t.Errorf("%s: the schema is not held", name)
		}
	}
}

// TestFinite finds schemas that no value follows, and holds others to what is left of them.
func TestFinite(t *testing.T) {
	object := func(props, required string) string {
		return `{"type": "object", "properties": {` + props + `}, "required": [` + required + `]}`
	}
	endless := `"x": {"anyOf": [{"$ref": "#/properties/x"}, {"$ref": "#/properties/x"}]}`
	node := `"x": {"type": "object", "properties": {"next": {"$ref": "#/properties/x"}}, "required": ["next"]}`
	turns := `"x": {"type": "object", "properties": {"y": {"$ref": "#/properties/y"}}, "required": ["y"]}, "y": {"oneOf": [{"$ref": "#/properties/x"}]}`
	for _, c := range []struct {
		schema  string
		finite  bool
		yes, no string
	}{
		{object(endless, `"x"`), false, ``, ``},
		{object(node, `"x"`), false, ``, ``},
		{object(turns, `"x"`), false, ``, ``},
		{object(turns, `"y"`), false, ``, ``},
		{`{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}`, false, ``, ``},
		{`{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}`, false, ``, ``},
		{object(`"a": {"type": "integer"}, `+endless, `"a"`), true, `{"a":1}`, `{"x":1} {"a":1,} {"a":1,"x":1}`},
		{object(endless, ``), true, `{}`, `{"x":1} {"`},
		{object(`"x": {"type": ["object", "null"], "properties": {"next": {"$ref": "#/properties/x"}}, "required": ["next"]}`, `"x"`), true,
			`{"x":null} {"x":{"next":null}}`, `{"x":{}}`},
		{object(`"x": {"type": ["object", "null"], "properties": {"n": {"type": "object", "properties": {"n": {"$ref": "#/properties/x/properties/n"}}, "required": ["n"]}}, "required": ["n"]}`, `"x"`), true,
			`{"x":null}`, `{"x":{`},
		{object(`"x": {"type": "array", "items": {"type": "object", "properties": {"n": {"$ref": "#/properties/x/items"}}, "required": ["n"]}}`, `"x"`), true,
			`{"x":[]}`, `{"x":[{`},
		{object(`"x": {"type": "array", "items": {"$ref": "#/properties/x"}}`, `"x"`), true, `{"x":[]} {"x":[[],[]]}`, `{"x":1}`},
		{object(`"x": {"anyOf": [{"$ref": "#/properties/x"}, {"type": "null"}, {"type": "object", "properties": {"n": {"$ref": "#/properties/x"}}, "required": ["n"]}]}`, `"x"`), true,
			`{"x":null} {"x":{"n":{"n":null}}}`, `{"x":{}}`},
		{`{"anyOf": [{"$ref": "#/$defs/n"}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
			"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["next"]}}}`, true, `{"b":1}`, `{"c":1} {"next"`},
		{`{"type": "object", "properties": {"x": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/n"}]}}, "required": ["x"],
			"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["next"]}}}`, true, `{"x":null}`, `{"x":{`},
		{`{"type": "object", "properties": {"o": {"type": "object", "additionalProperties": {"$ref": "#/$defs/e"}}}, "$defs": {"e": {"anyOf": [{"$ref": "#/$defs/e"}]}}}`, true,
			`{"o":{}} {}`, `{"o":{"a":1}}`},
		{`{"type": "object", "properties": {"a": {"$ref": "#/$defs/p"}}, "$defs": {"p": {"$ref": "#/$defs/q"}, "q": {"$ref": "#/$defs/p"}}}`, true, `{"a":[1]} {}`, `{"b":1}`},
		{`{"type": "object", "properties": {"a": {"$ref": "#/$defs/p"}}, "$defs": {"p": {"$ref": "#/$defs/q"}, "q": {"anyOf": [{"$ref": "#/$defs/p"}, {"type": "integer"}]}}}`, true, `{"a":1}`, `{"a":"x"}`},
	} {
		f := Call([]Tool{{Name: "f", Schema: document(c.schema)}}, end)
		if got := f.Finite("f"); got != c.finite {
			t.Errorf("%s: finite %v", c.schema, got)
		}
		if got := f.Finite(""); got != c.finite {
			t.Errorf("%s: any tool finite %v", c.schema, got)
		}
		if !c.finite {
			if len(f.Loose()) > 0 {
				t.Errorf("%s: loose before a call", c.schema)
			}
			if !fits(&f.CallGrammar, `{"name": "f", "arguments": {"any": 1}}`+end) || len(f.Loose()) != 1 || f.Loose()[0] != "f" {
				t.Errorf("%s: is not free: %v", c.schema, f.Loose())
			}
			continue
		}
		for _, args := range strings.Fields(c.yes) {
			if !fits(&f.CallGrammar, `{"name": "f", "arguments": `+args+"}"+end) {
				t.Errorf("%s: %s does not fit", c.schema, args)
			}
		}
		for _, args := range strings.Fields(c.no) {
			if m := bytesCallVocab().Matcher(&f.CallGrammar, NewBudget(1)); m.Accept([]byte(`{"name": "f", "arguments": ` + args)) {
				t.Errorf("%s: %s fits", c.schema, args)
			}
		}
		if len(f.Loose()) > 0 {
			t.Errorf("%s: loose", c.schema)
		}
	}
	two := Call([]Tool{{Name: "f", Schema: document(object(endless, `"x"`))}, {Name: "g"}}, end)
	if two.Finite("f") || !two.Finite("g") || !two.Finite("") {
		t.Error("of two tools one has an end")
	}
}

// TestBudget: a token costs no more than there is, be the schema what it will, and what is spent stays spent.
func TestBudget(t *testing.T) {
	long := strings.Repeat("a", 10_000) // as long as a name may still become this one, each byte is read from its beginning
	m := wideCallVocab().Matcher(callOf(`{"properties": {"`+long+`": {}}, "additionalProperties": true}`), NewBudget(1))
	if !m.Accept([]byte(`{"name": "f", "arguments": {"`)) {
		t.Fatal("not accepted")
	}
	at := 0
	for ; !m.budget.Spent() && at < len(long); at++ {
		m.Accept([]byte("a"))
	}
	if at == len(long) || m.budget.left < -len(long) {
		t.Fatalf("%d bytes, %d steps left", at, m.budget.left)
	}
	m.budget.Token()
	if !m.budget.Spent() {
		t.Error("what was spent has come back")
	}
	if m.Accept([]byte("a")) {
		t.Error("a spent matcher goes on")
	}
}

// TestWaysShareTheBudget: a set for many ways at once ends when nothing is left, in the middle of the vocabulary.
func TestWaysShareTheBudget(t *testing.T) {
	var alts []string
	for i := range 200 {
		alts = append(alts, fmt.Sprintf(`{"type": "object", "properties": {"k": {}, "z%d": {"const": %d}}, "required": ["k", "z%d"]}`, i, i, i))
	}
	m := wideCallVocab().Matcher(callOf(`{"type": "object", "properties": {"x": {"anyOf": [`+strings.Join(alts, ", ")+`]}}, "required": ["x"]}`), NewBudget(1))
	if !m.Accept([]byte(`{"name": "f", "arguments": {"x": {"k": [`)) || len(m.ways) != mostWays {
		t.Fatal(len(m.ways))
	}
	before := m.budget.left
	m.Allowed()
	whole := before - m.budget.left
	m.of, m.budget.left = nil, whole/2
	m.Allowed()
	if over := -m.budget.left; !m.budget.Spent() || over > mostWays*mostWays {
		t.Errorf("of %d steps half were there, and %d too many were taken", whole, over)
	}
}

// TestBudgetIsEnough: where any value may begin, each token costs less than it brings.
func TestBudgetIsEnough(t *testing.T) {
	v := wideCallVocab()
	budget := NewBudget(1)
	m := v.Matcher(callOf(wide), budget)
	if !m.Accept([]byte(`{"name": "f", "arguments": {"o": {"k": `)) {
		t.Fatal("not accepted")
	}
	for range 200 {
		m.Accept([]byte("["))
		before := budget.left
		m.Allowed()
		if cost := before - budget.left; cost > perToken {
			t.Fatalf("a token costs %d steps", cost)
		}
		budget.Token()
	}
}

// TestSettleIsLinear: reading a schema of eight times the size takes about eight times the memory, up to the most that is read.
func TestSettleIsLinear(t *testing.T) {
	hub := func(n int) string { // each alternative reaches all others
		var all, defs strings.Builder
		for i := range n {
			fmt.Fprintf(&all, `, {"$ref": "#/$defs/d%d"}`, i)
			fmt.Fprintf(&defs, `, "d%d": {"anyOf": [{"type": "array", "items": {"const": %d}}, {"$ref": "#/$defs/hub"}]}`, i, i)
		}
		return `{"properties": {"x": {"$ref": "#/$defs/hub"}}, "$defs": {"hub": {"anyOf": [{"type": "null"}` + all.String() + `]}` + defs.String() + `}}`
	}
	cost := func(n int) int {
		d := document(hub(n))
		return allocated(func() { arguments(d) })
	}
	if a, b := cost(80), cost(640); b > 24*a { // the square would be sixty-four times as much
		t.Errorf("80 definitions: %v bytes, 640: %v", a, b)
	}
}
