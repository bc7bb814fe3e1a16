package callform

import (
	"context"
	"errors"
	"testing"

	"hearth/internal/dialect"
	"hearth/internal/grammar"
	"hearth/internal/schema"
)

// FuzzTools: tools of any names and schemas have a form in families of every kind of notation, or an error that says of which
// tool it is, or that there is no call or too much of it; where they are loose the schemas of tools are never the error.
func FuzzTools(f *testing.F) {
	f.Add(uint8(0), "f", `{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}`, "g", `{}`)
	f.Add(uint8(3), "a.b", `{"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"x": {"$ref": "#/$defs/x"}}}}}`, "a.b", `false`)
	f.Add(uint8(9), "<", `{"properties": {"a": {"type": "strin"}}}`, "", `{"properties": {"a": false}, "required": ["a"]}`)
	f.Add(uint8(21), "x\n", `{"anyOf": [{"properties": {"</x": {"const": "\"\\"}}}, true]}`, "é", `{"patternProperties": {"^(a+)+$": {}}}`)
	var families []*dialect.Family
	for _, name := range []string{"hermes", "qwen3_coder", "mistral", "lfm2", "gemma4"} {
		of, _, err := dialect.Override(dialect.Choose(dialect.Evidence{}), name, "")
		if err != nil {
			f.Fatal(err)
		}
		families = append(families, of)
	}
	f.Fuzz(func(t *testing.T, family uint8, name1, schema1, name2, schema2 string) {
		if len(schema1)+len(schema2) > 1<<12 {
			return
		}
		of := families[int(family)%len(families)]
		tools := []dialect.Tool{{Name: name1, Schema: &schema.Document{Raw: []byte(schema1)}}, {Name: name2, Schema: &schema.Document{Raw: []byte(schema2)}}}
		for _, loose := range []func(string) bool{nil, func(string) bool { return true }} {
			form, err := New(context.Background(), of.Notation, tools, Options{Loose: loose})
			var tool *ToolError
			var limit *grammar.LimitError
			switch {
			case err == nil && form.Grammar == nil:
				t.Error("neither a form nor an error")
			case err == nil, errors.Is(err, grammar.ErrNothing), errors.As(err, &limit):
			case loose != nil, !errors.As(err, &tool), tool.Name != name1 && tool.Name != name2:
				t.Errorf("%v: loose %v: %T %v", int(family)%len(families), loose != nil, err, err)
			}
		}
	})
}
