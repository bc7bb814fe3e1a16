package generate

import (
	"strings"

	"hearth/internal/dialect"
)

// Summary is what a chat template and a vocabulary say about a model, for people who want to know why hearth treats it as
// it does.
type Summary struct {
	Source string `json:"source,omitempty"` // the file, or the name of the built-in renderer; "" without a template
	Tools  bool   `json:"tools"`
	// ToolsInPrompt tells that the template has no place for tools, so that they stand in the system text.
	ToolsInPrompt bool `json:"tools_in_prompt,omitempty"`

	Thinking string `json:"thinking"` // "no", "always" or "switch"
	System   bool   `json:"system"`   // prints a system message
	Content  string `json:"content"`  // "text" or "list": the form of messages it prints
	Parser   string `json:"parser"`
	Evidence string `json:"evidence"` // what the parser was chosen by
	// Override is the parser that is used in place of Parser because a setting says so, "" where none does.
	Override string `json:"override,omitempty"`
	// Reasoning is the tag that begins reasoning, "" for output without.
	Reasoning string   `json:"reasoning,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`  // where settings contradict the evidence
	Ends      []End    `json:"ends"`                // what ends a reply
	EndTexts  []string `json:"end_texts,omitempty"` // that end one where no token does
}

// Summary examines the text side of a model by trial renderings.
func (c Config) Summary() Summary {
	var t Summary
	if c.Template == nil {
		t.Ends, _ = turnEnds(&c, nil, nil)
		return t
	}
	src := c.Template.Source()
	family, evidence := chooseFamily(c)
	t.Source, t.Parser, t.Evidence = c.Template.Name(), family.Name, evidence
	used, warnings, err := dialect.Override(family, c.ToolParser, c.ReasoningParser)
	if err != nil {
		used, warnings = family, []string{err.Error()}
	}
	if t.Reasoning, t.Warnings = strings.TrimSpace(used.Open), warnings; used.Name != family.Name {
		t.Override = used.Name
	}
	family = used
	t.Thinking, t.Content = "no", "text"
	if family.Open != "" && strings.Contains(src, family.Close) {
		t.Thinking = "always"
	}
	p, err := findForm(c.Template, family, c.Limits, c.tells())
	if err != nil {
		t.Ends, _ = turnEnds(&c, family, nil)
		return t
	}
	if p.family != family {
		family, t.Parser, t.Evidence, t.Override = p.family, p.family.Name, "what the system text tells it to write", ""
	}
	t.Ends, t.EndTexts = turnEnds(&c, family, p)
	t.Warnings = append(t.Warnings, missingMarks(&c, p, t.EndTexts)...)
	if findSwitches(p).works {
		t.Thinking = "switch"
	}
	t.Tools, t.ToolsInPrompt = p.form.has(toolsDeclared) || p.form.has(toolsInSystem), p.form.has(toolsInSystem)
	if p.form.has(contentIsList) {
		t.Content = "list"
	}
	t.System = p.form.has(systemFirst)
	return t
}

// chooseFamily picks the parser as New does, and says by what.
func chooseFamily(c Config) (*dialect.Family, string) {
	hasToken := func(s string) bool { _, ok := c.Tokenizer.ID(s); return ok }
	src := c.Template.Source()
	f := dialect.Choose(dialect.Evidence{Template: src, HasToken: hasToken})
	switch byTemplate := dialect.Choose(dialect.Evidence{Template: src}); {
	case len(f.Markers) == 0:
		return f, "no markup known in template or vocabulary"
	case byTemplate == f:
		return f, "the template's text"
	}
	return f, "tokens of the vocabulary"
}
