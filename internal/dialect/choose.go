package dialect

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Evidence is what a family is chosen by. Names of models are not evidence: they go stale and misroute fine-tunes.
type Evidence struct {
	Template string                  // the chat template's text
	HasToken func(token string) bool // whether the vocabulary has a token of its own for this text; may be nil
}

func (e Evidence) mentions(all ...string) bool {
	for _, s := range all {
		if !strings.Contains(e.Template, s) {
			return false
		}
	}
	return true
}

func (e Evidence) token(all ...string) bool {
	for _, s := range all {
		if e.HasToken == nil || !e.HasToken(s) {
			return false
		}
	}
	return true
}

// families in the order they are tried: the more special markup first, because templates quote each other's.
var families = []*Family{harmony, muse, kimiK3, minimaxM3, minimax, hunyuan, longcat, solar, apertus, gigachat, gigachat30,
	miniCPM5, gemma4, functionGemma, dsml, deepseekV3, deepseekV31, kimi, seedOSS, commandA, lfm2, mistral, mistralV3, granite,
	nemotron, glm, jamba, qwen3Coder, hermes, functionaryV31, functionary, pythonic, llama3, xlam, gemma3, thinkOnly}

// Choose returns the family that the evidence points to, first by the template, then by the vocabulary. Without
// evidence the output is plain text.
func Choose(e Evidence) *Family {
	byTemplate := first(Evidence{Template: e.Template})
	if byTemplate == plain || byTemplate == thinkOnly && e.mentions("tools") { // some templates show tools but no call
		if f := first(Evidence{HasToken: e.HasToken}); f != plain {
			return reasoningOf(f, e)
		}
	}
	return reasoningOf(byTemplate, e)
}

func first(e Evidence) *Family {
	for _, f := range families {
		if f.matches(e) {
			return f
		}
	}
	return plain
}

// forms are the forms of reasoning that more than their own family may have, in the order their evidence is looked for: <think>,
// which many have, comes last.
var forms = func() (all []*Think) {
	for _, f := range families {
		if f.syntax != noSyntax && len(f.ReasoningNames) > 0 {
			all = append(slices.DeleteFunc(all, func(t *Think) bool { return t == f.Think }), f.Think)
		}
	}
	return all
}()

// reasoningOf adjusts a family to the form of reasoning that the template shows.
func reasoningOf(f *Family, e Evidence) *Family {
	if f.syntax == noSyntax || f.Close != "" && e.mentions(f.Close) {
		return f
	}
	for _, t := range forms {
		if e.mentions(t.Close) {
			return withReasoning(f, t)
		}
	}
	return f
}

// derived holds families with another form of reasoning or without calls, so that each exists once.
var derived sync.Map // of variant to *Family

// variant is what tells families of one name apart.
type variant struct {
	name  string
	think *Think
	calls bool
}

func withReasoning(f *Family, t *Think) *Family {
	if f.syntax == noSyntax || f.Open == t.Open {
		return f
	}
	return derive(f, t, f.Calls, f.syntax)
}

func derive(f *Family, t *Think, c *Calls, s *syntax) *Family {
	d := *f
	d.Think, d.Calls, d.Markers = t, c, without(f.Markers, f.Open, f.Close)
	got, _ := derived.LoadOrStore(variant{f.Name, t, c.Force != nil}, tagFamily(&d, s))
	return got.(*Family)
}

// normal is a name as the tables spell it.
func normal(name string) string {
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// ToolParsers lists the names that Override knows for forms of calls.
func ToolParsers() []string {
	names := []string{"auto", "none", "generic"} // the last is auto elsewhere
	for _, f := range families {
		names = append(names, f.Names...)
	}
	slices.Sort(names[2:])
	return names
}

// ReasoningParsers lists the names that Override knows for forms of reasoning.
func ReasoningParsers() []string {
	names := []string{"auto", "none"}
	for _, f := range families {
		names = append(names, f.ReasoningNames...)
	}
	slices.Sort(names[2:])
	return slices.Compact(names)
}

// CheckNames reports names that Override does not know.
func CheckNames(tool, reasoning string) error {
	if !slices.Contains(append(ToolParsers(), ""), normal(tool)) {
		return fmt.Errorf("no tool-call parser is named %q; there are %s", tool, strings.Join(ToolParsers(), ", "))
	}
	if !slices.Contains(append(ReasoningParsers(), ""), normal(reasoning)) {
		return fmt.Errorf("no reasoning parser is named %q; there are %s", reasoning, strings.Join(ReasoningParsers(), ", "))
	}
	return nil
}

// Override replaces what Choose made of the evidence by what a user asks for: names as ToolParsers and ReasoningParsers
// list them, "" and "auto" for the choice itself. Warnings say where that contradicts the template. Unknown names are an
// error that lists the known ones.
func Override(chosen *Family, tool, reasoning string) (f *Family, warnings []string, err error) {
	if err := CheckNames(tool, reasoning); err != nil {
		return nil, nil, err
	}
	f = chosen
	switch name := normal(tool); name {
	case "", "auto", "generic":
	case "none":
		f = withoutCalls(f)
	default:
		if slices.Contains(chosen.Names, name) || slices.Contains(chosen.Shared, name) {
			break
		}
		f = families[slices.IndexFunc(families, func(f *Family) bool { return slices.Contains(f.Names, name) })]
		if chosen.Force != nil {
			warnings = append(warnings, fmt.Sprintf("tool-call parser %s is asked for, but the model's template or vocabulary shows calls of %s", tool, chosen.Name))
		}
		if chosen.syntax != noSyntax && chosen.Open != "" {
			f = withReasoning(f, chosen.Think)
		}
	}
	g, warning := overrideReasoning(f, normal(reasoning))
	if warning != "" {
		warnings = append(warnings, warning)
	}
	return g, warnings, nil
}

func overrideReasoning(f *Family, name string) (*Family, string) {
	isOwn := func(o *Family) bool { return o.syntax == noSyntax && slices.Contains(o.ReasoningNames, name) }
	channels := slices.ContainsFunc(families, isOwn)
	switch {
	case name == "" || name == "auto" || f.syntax == noSyntax && channels:
		return f, ""
	case f.syntax == noSyntax || channels:
		return f, fmt.Sprintf("reasoning parser %s is asked for, but reasoning is not apart from calls in the output of %s", name, f.Name)
	case name == "none":
		return withReasoning(f, noThink), ""
	}
	t := forms[slices.IndexFunc(forms, func(t *Think) bool { return slices.Contains(t.ReasoningNames, name) })]
	if f.Open != "" && f.Open != t.Open && f.Name != thinkOnly.Name {
		return withReasoning(f, t), fmt.Sprintf("reasoning parser %s is asked for, but output of %s has its reasoning in %s", name, f.Name, f.Open)
	}
	return withReasoning(f, t), ""
}

// Taught is the family of a model that its prompt tells how to write calls: f itself where it has calls of its own, else
// hermes with f's form of reasoning.
func Taught(f *Family) *Family {
	if f.Force != nil || f.syntax == noSyntax {
		return f
	}
	return withReasoning(hermes, f.Think)
}

// CallsAreText tells whether a name, as Override takes it, asks for calls to be left alone.
func CallsAreText(tool string) bool { return normal(tool) == "none" }

// withoutCalls is a family whose calls are plain text.
func withoutCalls(f *Family) *Family {
	if f.syntax == noSyntax { // its channels cannot be told from its calls
		return f
	}
	c := *f.Calls
	c.Force, c.Object = nil, noObject
	return derive(f, f.Think, &c, &syntax{drop: f.syntax.drop})
}
