package callform

import (
	"context"
	"errors"
	"strings"
	"testing"

	"hearth/internal/dialect"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
)

// What families write is tested beside their parsers: internal/dialect/form_test.go.

func choose(t *testing.T, tool string) *dialect.Family {
	t.Helper()
	f, _, err := dialect.Override(dialect.Choose(dialect.Evidence{}), tool, "")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func tool(name, schemaText string) dialect.Tool {
	return dialect.Tool{Name: name, Schema: &schema.Document{Raw: []byte(schemaText)}}
}

// TestNames: a tool whose name cannot stand bare is not called where names do, and is where they are strings of JSON.
func TestNames(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", mostName+1), "f<", "a b", `"`, "x\n", ""} {
		for family, bare := range map[string]bool{"qwen3_coder": true, "mistral": true, "lfm2": true, "gemma4": true, "hermes": false} {
			_, err := New(context.Background(), choose(t, family).Notation, []dialect.Tool{{Name: name}}, Options{})
			if bare != errors.Is(err, grammar.ErrNothing) || !bare && err != nil {
				t.Errorf("%s: %.20q: %v", family, name, err)
			}
		}
	}
}

// TestErrors: a schema that is wrong is an error with the name of the tool, and one that nothing follows ErrNothing.
func TestErrors(t *testing.T) {
	for _, family := range []string{"qwen3_coder", "lfm2", "gemma4", "hermes"} {
		n := choose(t, family).Notation
		_, err := New(context.Background(), n, []dialect.Tool{{Name: "g"}, tool("f", `{"type": "object", "properties": {"a": {"type": "strin"}}}`)}, Options{})
		var of *ToolError
		var wrong *jsonschema.Error
		if !errors.As(err, &of) || of.Name != "f" || !errors.As(err, &wrong) || wrong.Pointer != "/properties/a/type" && wrong.Pointer != "/properties/a" {
			t.Errorf("%s: %v", family, err)
		}
		never := tool("f", `{"type": "object", "properties": {"a": false}, "required": ["a"]}`)
		if _, err := New(context.Background(), n, []dialect.Tool{never}, Options{}); !errors.Is(err, grammar.ErrNothing) {
			t.Errorf("%s: no arguments follow the schema: %v", family, err)
		}
		form, err := New(context.Background(), n, []dialect.Tool{never, {Name: "g"}, tool("g", `false`)}, Options{})
		if err != nil || len(form.Unheld) > 0 {
			t.Errorf("%s: another tool can be called: %v", family, err)
		}
		form, err = New(context.Background(), n, []dialect.Tool{tool("f", `{"properties": {"a": {"type": "array", "uniqueItems": true}}}`)}, Options{})
		if err != nil || len(form.Unheld["f"]) != 1 || form.Unheld["f"][0].Keyword != "uniqueItems" {
			t.Errorf("%s: %v, %v", family, form.Unheld, err)
		}
	}
}
