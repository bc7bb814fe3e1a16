package dialect

import (
	"fmt"
	"strings"
	"testing"

	"hearth/internal/schema"
)

// toolsetOf is the tools of a request that has one, f.
func toolsetOf(parameters string) *toolset {
	s := newToolset(Options{Tools: []Tool{{Name: "f", Schema: &schema.Document{Raw: []byte(parameters)}}}})
	return &s
}

// TestSchemaWork: every part of a schema is read once, however many ways lead to it.
func TestSchemaWork(t *testing.T) {
	const levels, ways = 40, 10
	var b strings.Builder
	b.WriteString(`{"properties": {"x": {"$ref": "#/$defs/d0"}, "y": {"anyOf": [{"$ref": "#/$defs/d0"}, {"$ref": "#/properties/y"}, {"enum": [1]}]}}, "$defs": {`)
	for i := range levels {
		fmt.Fprintf(&b, `"d%d": {"anyOf": [%s]}, `, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"$ref": "#/$defs/d%d"},`, i+1), ways), ","))
	}
	fmt.Fprintf(&b, `"d%d": {"type": ["string", "null"]}}}`, levels)
	s := toolsetOf(b.String())
	if got := s.of("f").property("x").types(); got != typeString|typeNull {
		t.Errorf("x may be %b", got)
	}
	if got := s.of("f").property("y").types(); got != typeString|typeNull|typeInteger {
		t.Errorf("y may be %b", got)
	}
	if used := maxSchemaWork - s.reading.left; used > 20*levels*ways {
		t.Errorf("%d parts read of a schema with %d", used, 2*levels*ways)
	}
}

// TestSchemaBound: of schemas that take more work than a reply's, types are not known.
func TestSchemaBound(t *testing.T) {
	for name, schema := range map[string]string{
		"wrappers": `{"$defs": {"d": {"anyOf": [` + strings.TrimSuffix(strings.Repeat(`{"type": "string"},`, 10_000), ",") + `]}}, "properties": {` +
			properties(300, `{"anyOf": [{"$ref": "#/$defs/d"}]}`) + `}}`,
		"long references": `{"properties": {` + properties(300, `{"$ref": "#/`+strings.Repeat("/", 50_000)+`"}`) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := toolsetOf(schema)
			for i := range 300 {
				s.of("f").property(fmt.Sprint("p", i)).types()
			}
			if got := s.of("f").property("p299").types(); got != 0 || s.reading.left > 0 || s.reading.left < -2*maxSchemaWork {
				t.Errorf("types %b, %d parts left", got, s.reading.left)
			}
		})
	}
}

// TestSchemaValues: the values of an enum are read once, however many parameters refer to it.
func TestSchemaValues(t *testing.T) {
	s := toolsetOf(`{"$defs": {"d": {"enum": [` + strings.TrimSuffix(strings.Repeat(`"a",`, 10_000), ",") + `]}}, "properties": {` + properties(300, `{"anyOf": [{"$ref": "#/$defs/d"}]}`) + `}}`)
	for i := range 300 {
		if got := s.of("f").property(fmt.Sprint("p", i)).types(); got != typeString {
			t.Errorf("p%d may be %b", i, got)
		}
	}
	if used := maxSchemaWork - s.reading.left; used > 20_000 {
		t.Errorf("%d parts read", used)
	}
}

// TestReferences: types are known behind as many references in a row as are followed, and no further.
func TestReferences(t *testing.T) {
	for n, want := range map[int]types{16: typeInteger, 17: 0} {
		var b strings.Builder
		b.WriteString(`{"$ref": "#/$defs/d1", "$defs": {`)
		for i := range n {
			fmt.Fprintf(&b, `"d%d": {"$ref": "#/$defs/d%d"}, `, i, i+1)
		}
		fmt.Fprintf(&b, `"d%d": {"properties": {"x": {"type": "integer"}}}}}`, n)
		if got := toolsetOf(b.String()).of("f").property("x").types(); got != want {
			t.Errorf("behind %d references x may be %b, want %b", n, got, want)
		}
	}
}

// properties are n members of an object, p0 and so on.
func properties(n int, schema string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"p%d": %s`, i, schema)
	}
	return b.String()
}
