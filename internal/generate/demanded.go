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
	o := callform.Options{One: r.Choice.Single, Literal: a.literal}
	for _, id := range a.stopIDs { // what ends a reply in the middle of a call lets no other follow
		o.One = o.One || strings.Contains(n.Call, string(a.tok.Bytes(id)))
	}
	parts := []string{"calls", fmt.Sprint(o.One)}
	for _, t := range tools {
		if parts = append(parts, t.Name); t.Schema != nil {
			parts = append(parts, string(t.Schema.Raw))
		}
	}
	key, bytes := formKey(&chat.Form{Choices: parts})
	form, err := a.forms.get(key, bytes, func() (*madeForm, error) {
		f, err := callform.New(ctx, n, tools, o)
		if err != nil {
			return nil, demandError(err)
		}
		return &madeForm{Grammar: f.Grammar}, nil
	})
	if err != nil {
		return nil, err
	}
	k := &heldForm{answerForms: a, form: form, path: "tools", raw: true, begun: a.literal(p.forced), stops: p.stopIDs, prompt: p}
	if k.stops == nil {
		k.stops = a.stopIDs
	}
	if k.newAnswer(1) == nil {
		return nil, nil // the template has it otherwise
	}
	p.options.NoRepair = true
	return k, nil
}

// demandError is what a request gets that demands calls which no grammar can be made of.
func demandError(err error) error {
	var limit *grammar.LimitError
	switch {
	case errors.Is(err, grammar.ErrNothing):
		return chat.Boundf(chat.BoundEndless, "tools", "tool_choice asks for a call, and none can be written: no arguments follow the schema, or the name of the tool has no place in the form of the model's calls")
	case errors.As(err, &limit):
		return chat.Boundf(chat.BoundForm, "tools", "%v", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &chat.Error{Kind: chat.Invalid, Param: "tools", Msg: err.Error(), Err: err}
}
