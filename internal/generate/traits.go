package generate

import (
	"strings"

	"hearth/internal/jinja"
	"hearth/internal/parser"
)

// Traits is what a chat template and a vocabulary say about a model, for people who want to know why hearth treats it as
// it does.
type Traits struct {
	Source   string `json:"source,omitempty"` // the file, or the name of the built-in renderer; "" without a template
	Tools    bool   `json:"tools"`
	Thinking string `json:"thinking"` // "no", "always" or "switch"
	System   bool   `json:"system"`   // prints a system message
	Content  string `json:"content"`  // "text" or "list": the form of messages it prints
	Parser   string `json:"parser"`
	Evidence string `json:"evidence"` // what the parser was chosen by
}

// Traits examines the text side of a model by trial renderings.
func (c Config) Traits() Traits {
	var t Traits
	if c.Template == nil {
		return t
	}
	src := c.Template.Source()
	family, evidence := chooseFamily(c)
	t.Source, t.Parser, t.Evidence = c.Template.Name(), family.Name, evidence
	t.Tools = c.Template.mentions("tools")
	switch {
	case c.Template.mentions("enable_thinking"):
		t.Thinking = "switch"
	case family.Open != "" && strings.Contains(src, family.Close):
		t.Thinking = "always"
	default:
		t.Thinking = "no"
	}
	t.Content = "text"
	if asList, err := c.Template.wantsList(c.Limits); err == nil && asList {
		t.Content = "list"
	}
	t.System = c.Template.printsSystem(t.Content == "list", c.Limits)
	return t
}

// chooseFamily picks the parser as New does, and says by what.
func chooseFamily(c Config) (*parser.Family, string) {
	hasToken := func(s string) bool { _, ok := c.Tokenizer.ID(s); return ok }
	src := c.Template.Source()
	f := parser.Choose(parser.Evidence{Template: src, HasToken: hasToken})
	switch byTemplate := parser.Choose(parser.Evidence{Template: src}); {
	case len(f.Markers) == 0:
		return f, "no markup known in template or vocabulary"
	case byTemplate == f:
		return f, "the template's text"
	}
	return f, "tokens of the vocabulary"
}

// printsSystem tells by trial whether a system message gets into the prompt.
func (t *Template) printsSystem(asList bool, limits jinja.Limits) bool {
	const probe = "hearth-probe-system"
	content := func(text string) jinja.Value {
		if asList {
			return jinja.NewList(object("type", "text", "text", text))
		}
		return text
	}
	vars := t.tokens.Clone()
	vars.Set("messages", jinja.NewList(object("role", "system", "content", content(probe)), object("role", "user", "content", content("hi"))))
	vars.Set("tools", nil)
	vars.Set("documents", nil)
	vars.Set("add_generation_prompt", true)
	out, err := t.Render(vars, limits)
	return err == nil && strings.Contains(out, probe)
}
