package generate

import (
	"cmp"
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
	"hearth/internal/textform"
)

// madeCalls is what else there is of a form of calls.
type madeCalls struct {
	unheld map[string][]jsonschema.Unheld // by the tool
	any    map[string]error               // why the arguments of a tool are any object
}

// newCalls is the form of the calls that a request demands and the prompt begins, in the family's own notation; or of a reply
// that is free but for its calls, where tools are strict, or a setting has calls kept to their tools that nobody asked for. It is
// nil where calls are free. What follows it is read with nothing mended, unless nobody asked for it.
func (a *answerForms) newCalls(ctx context.Context, m *prompter, r *chat.Request, p *prompt) (*heldForm, error) {
	if p.raw || m.cfg.Unforced || len(p.options.Tools) == 0 || len(p.stopIDs) == 0 || a.family.Notation.Args == 0 {
		return nil, nil
	}
	demanded := p.calls
	strict := map[string]bool{}
	for _, t := range r.Tools {
		strict[t.Name] = t.Strict
	}
	tools := slices.DeleteFunc(slices.Clone(p.options.Tools), func(t dialect.Tool) bool {
		return r.Choice.Kind == chat.ChoiceNamed && demanded && t.Name != r.Choice.Name
	})
	asked := demanded || slices.ContainsFunc(tools, func(t dialect.Tool) bool { return strict[t.Name] })
	if kept := m.cfg.ConstrainTools && a.family.CallOpen != ""; !asked && !kept {
		return nil, nil
	}
	k := &heldForm{answerForms: a, path: "tools", raw: true, begun: a.literal(p.forced), lazy: !demanded, loose: !asked, prompt: p}
	o := callform.Options{Literal: a.literal, Texts: inputTexts(r.Tools)}
	if asked {
		o.One = r.Choice.Single
		for _, id := range a.stopIDs { // what ends a reply in the middle of a call lets no other follow
			o.One = o.One || strings.Contains(a.family.Notation.Call, string(a.tok.Bytes(id)))
		}
	}
	if k.lazy {
		o.Loose = func(tool string) bool { return !strict[tool] }
		o.Begins, o.Within = a.family.Beginnings(), p.options.Continued || p.options.InReasoning
	}
	if k.loose {
		o.Object, o.Begins, o.Within = a.family.Object, a.objects(), false
	}
	var err error
	if k.form, err = a.callsForm(ctx, r, tools, o, k); err != nil && k.loose && ctx.Err() == nil {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := strictTools(r, k.form.calls.unheld); err != nil {
		return nil, err
	}
	k.vocab = a.vocab()
	if k.newAnswer(1) == nil {
		return nil, nil // the template has it otherwise
	}
	p.options.NoRepair = p.options.NoRepair || asked
	return k, nil
}

// callsForm is such a form, which is made once for the same tools.
func (a *answerForms) callsForm(ctx context.Context, r *chat.Request, tools []dialect.Tool, o callform.Options, k *heldForm) (*madeForm, error) {
	var texts []string
	for _, t := range tools {
		texts = append(texts, t.Name, string(t.Schema.Raw), fmt.Sprint(o.Loose != nil && o.Loose(t.Name)))
	}
	for _, t := range r.Tools {
		if t.Input != nil {
			texts = append(texts, t.Name, fmt.Sprint(t.Input.Kind), t.Input.Source)
		}
	}
	return a.forms.get(fmt.Sprint("calls", k.lazy, k.loose, o.One, o.Within), texts, func() (*madeForm, error) {
		f, err := callform.New(ctx, a.family.Notation, tools, o)
		if err != nil {
			return nil, callsError(r, err, !k.lazy)
		}
		return &madeForm{Grammar: f.Grammar, calls: madeCalls{f.Unheld, f.Any}}, nil
	})
}

// objects are the beginnings of calls that nobody asked to be held: a mark that is a token of its own, or else one that begins a
// line, since within a line the model only speaks of it.
func (a *answerForms) objects() *dialect.Beginnings {
	mark := a.family.CallOpen
	if id, ok := a.tok.ID(mark); ok && string(a.tok.Bytes(id)) == mark {
		return &dialect.Beginnings{Anywhere: []string{mark}}
	}
	return &dialect.Beginnings{Answers: []string{mark}, Behind: []string{"\n"}}
}

// callsError is what a request gets whose calls no grammar can be made of.
func callsError(r *chat.Request, err error, demanded bool) error {
	var input *chat.Error // which has its own path
	if errors.As(err, &input) {
		return input
	}
	path := "tools"
	var of *callform.ToolError
	if errors.As(err, &of) {
		path = schemaPath(r, of.Name)
	}
	switch {
	case !errors.Is(err, grammar.ErrNothing):
		return formError(path, err)
	case demanded:
		return chat.Boundf(chat.BoundEndless, path, "tool_choice asks for a call, and none can be written: no arguments follow the schema, or the name of the tool has no place in the form of the model's calls")
	}
	return chat.Boundf(chat.BoundEndless, path, "%v: a strict tool must be one that can be called, and none of its calls can be written", err)
}

// schemaPath is where the schema of a tool stands.
func schemaPath(r *chat.Request, name string) string {
	i := slices.IndexFunc(r.Tools, func(t chat.Tool) bool { return t.Name == name })
	if i < 0 || r.Tools[i].Path == "" {
		return "tools"
	}
	return r.Tools[i].Path
}

// checkSchemas is an error where the schema of a tool that is strict, or whose call is demanded, is wrong, though nothing holds
// calls to it.
func checkSchemas(ctx context.Context, r *chat.Request, p *prompt) error {
	for _, t := range p.options.Tools {
		i := slices.IndexFunc(r.Tools, func(of chat.Tool) bool { return of.Name == t.Name })
		asked := r.Choice.Kind == chat.ChoiceRequired || r.Choice.Kind == chat.ChoiceNamed && t.Name == r.Choice.Name || i >= 0 && r.Tools[i].Strict
		if !asked || t.Schema.Root() == nil {
			continue
		}
		if _, err := jsonschema.Read(ctx, t.Schema.Root()); err != nil {
			return formError(schemaPath(r, t.Name), &callform.ToolError{Name: t.Name, Err: err})
		}
	}
	return nil
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
				e, err := textform.Build(ctx, b, f)
				if err != nil {
					return nil, formError(f.Path, err)
				}
				return e, nil
			}
		}
	}
	return texts
}

// checkInputs is an error where no grammar can be made of the forms of tools' inputs, whether or not calls are held to them. They
// are made together, since what that costs has one bound.
func (k *forms) checkInputs(ctx context.Context, tools []chat.Tool) error {
	var inputs []*chat.Form
	var texts []string
	for _, t := range tools {
		if f := t.Input; f != nil {
			inputs, texts = append(inputs, f), append(texts, fmt.Sprint(f.Kind), f.Source)
		}
	}
	if inputs == nil {
		return nil
	}
	_, err := k.get("inputs", texts, func() (*madeForm, error) {
		b := grammar.NewBuilder()
		var rules []*grammar.Rule
		var all []*grammar.Expr
		for _, f := range inputs {
			e, err := textform.Build(ctx, b, f)
			if err = cmp.Or(err, b.Err(), context.Cause(ctx)); err != nil {
				return nil, formError(f.Path, err)
			}
			r := b.Rule("input")
			b.Define(r, e)
			rules, all = append(rules, r), append(all, b.Ref(r))
		}
		root := b.Rule("inputs")
		b.Define(root, b.Or(all...))
		g, err := b.Compile(root)
		if err != nil && !errors.Is(err, grammar.ErrNothing) {
			return nil, formError("tools", err)
		}
		for i, r := range rules {
			if !b.Ends(r) {
				return nil, formError(inputs[i].Path, grammar.ErrNothing)
			}
		}
		return &madeForm{Grammar: g}, nil
	})
	return err
}
