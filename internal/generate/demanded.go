package generate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hearth/internal/callform"
	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
)

// newDemand is the form of the calls that a request demands, in the family's own notation; nil where it demands none that the
// prompt begins, or the calls are guided anyway. What follows it is read with nothing mended.
func (a *answerForms) newDemand(ctx context.Context, r *chat.Request, p *prompt, guided bool) (*heldForm, error) {
	n := a.family.Notation
	if p.forced == "" || p.raw || n.Args == 0 || guided || len(a.stopIDs) == 0 {
		return nil, nil
	}
	tools := slices.DeleteFunc(slices.Clone(p.options.Tools), func(t dialect.Tool) bool {
		return r.Choice.Kind == chat.ChoiceNamed && t.Name != r.Choice.Name
	})
	o := callform.Options{One: r.Choice.Single, Literal: a.literal, Texts: inputTexts(r.Tools)}
	for _, id := range a.stopIDs { // what ends a reply in the middle of a call lets no other follow
		o.One = o.One || strings.Contains(n.Call, string(a.tok.Bytes(id)))
	}
	var texts []string
	for _, t := range tools {
		texts = append(texts, t.Name, string(t.Schema.Raw))
	}
	for _, t := range r.Tools {
		if t.Input != nil {
			texts = append(texts, t.Name, fmt.Sprint(t.Input.Kind), t.Input.Source)
		}
	}
	form, err := a.forms.get(fmt.Sprint("calls", o.One), texts, func() (*madeForm, error) {
		f, err := callform.New(ctx, n, tools, o)
		if err != nil {
			return nil, demandError(r, err)
		}
		return &madeForm{Grammar: f.Grammar, ofTools: f.Unheld}, nil
	})
	if err != nil {
		return nil, err
	}
	if err := strictTools(r, form.ofTools); err != nil {
		return nil, err
	}
	k := &heldForm{answerForms: a, vocab: a.vocab(), form: form, path: "tools", raw: true, begun: a.literal(p.forced), prompt: p}
	if k.newAnswer(1) == nil {
		return nil, nil // the template has it otherwise
	}
	p.options.NoRepair = true
	return k, nil
}

// demandError is what a request gets that demands calls which no grammar can be made of.
func demandError(r *chat.Request, err error) error {
	if errors.Is(err, grammar.ErrNothing) {
		return chat.Boundf(chat.BoundEndless, "tools", "tool_choice asks for a call, and none can be written: no arguments follow the schema, or the name of the tool has no place in the form of the model's calls")
	}
	var input *chat.Error // which has its own path
	if errors.As(err, &input) {
		return input
	}
	var of *callform.ToolError
	if errors.As(err, &of) {
		return formError(schemaPath(r, of.Name), err)
	}
	return formError("tools", err)
}

// schemaPath is where the schema of a tool stands.
func schemaPath(r *chat.Request, name string) string {
	i := slices.IndexFunc(r.Tools, func(t chat.Tool) bool { return t.Name == name })
	if i < 0 || r.Tools[i].Path == "" {
		return "tools"
	}
	return r.Tools[i].Path
}

// strictTools is an error where calls of a strict tool are not held to all of its schema: unheld has the keywords, by the tool.
func strictTools(r *chat.Request, unheld map[string][]jsonschema.Unheld) error {
	for _, t := range r.Tools {
		if not := unheld[t.Name]; t.Strict && len(not) > 0 {
			return chat.Invalidf(schemaPath(r, t.Name), "calls of the strict tool %q have to be held to all that its schema says, and this is not: %s; leave it out, or send strict: false to have calls checked afterwards", t.Name, not[0])
		}
	}
	return nil
}

// inputTexts are the inputs of tools that have a form, for grammars of calls.
func inputTexts(tools []chat.Tool) map[string]callform.Text {
	texts := map[string]callform.Text{}
	for _, t := range tools {
		if f := t.Input; f != nil {
			texts[t.Name] = func(ctx context.Context, b *grammar.Builder) (*grammar.Expr, error) {
				e, err := textsOf(ctx, b, f)
				if err != nil {
					return nil, formError(f.Path, err)
				}
				return e, nil
			}
		}
	}
	return texts
}

// checkInputs is an error where no grammar can be made of the form of a tool's input, whether or not calls are held to it.
func (k *forms) checkInputs(ctx context.Context, tools []chat.Tool) error {
	for _, t := range tools {
		if t.Input == nil {
			continue
		}
		if _, err := k.of(ctx, t.Input); err != nil {
			return err
		}
	}
	return nil
}
