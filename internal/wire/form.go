package wire

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
	"hearth/internal/textform"
)

// formCheck finds out what became of the form that a request asks for where the reply is not held to it: texts are compared with
// Request.Form, calls with the parameters of their tools and the forms of their inputs. All choices of a reply share what is done
// for that.
type formCheck struct {
	ctx     context.Context
	req     *chat.Request
	outcome chat.Outcome // as the generator has it
	choices []*looseChoice
	known   map[string]*knownSchema // by their text
	last    *jsonschema.Checker     // that compared something
	seen    [3]bool                 // verdicts

	grammars map[*chat.Form]*grammar.Grammar // that are no schemas
	budget   *grammar.Budget                 // of comparing with them
}

// looseChoice is what is known of a choice so far.
type looseChoice struct {
	text  strings.Builder
	calls int
}

// knownSchema is a schema that something was compared with.
type knownSchema struct {
	checker *jsonschema.Checker
	unread  jsonschema.Verdict // of every value, where there is no checker
}

// begin takes an EventStart, by which a part of a reply begins: what is known of parts before it stays. It is nil as long as
// nothing was asked for.
func (c *formCheck) begin(ctx context.Context, req *chat.Request, u *chat.Usage) *formCheck {
	asked := u != nil && u.Form != ""
	if c == nil && asked {
		c = &formCheck{ctx: ctx, req: req}
	}
	if c != nil {
		c.outcome, c.choices = "", nil
		if asked {
			c.outcome = u.Form
		}
	}
	return c
}

// event takes an event of the reply, and says in its usage what the outcome is so far.
func (c *formCheck) event(e *chat.Event) {
	if c == nil || c.outcome == "" {
		return
	}
	if c.outcome == chat.Unchecked {
		c.look(e)
	}
	if (e.Kind == chat.EventStart || e.Kind == chat.EventFinish) && e.Usage != nil {
		u := *e.Usage
		u.Form = c.result()
		e.Usage = &u
	}
}

// look compares what an event completes.
func (c *formCheck) look(e *chat.Event) {
	for len(c.choices) <= e.Choice {
		c.choices = append(c.choices, &looseChoice{})
	}
	of := c.choices[e.Choice]
	demands := c.req.Choice.Demands()
	switch e.Kind {
	case chat.EventText:
		if !demands && c.req.Form != nil {
			of.text.WriteString(e.Text)
		}
	case chat.EventToolEnd:
		of.calls++
		if e.Call != nil {
			c.call(e.Call)
		}
	case chat.EventFinish:
		switch {
		case demands && (of.calls == 0 || e.Finish != chat.FinishToolCalls): // there is none, or one was cut off
			c.seen[jsonschema.Invalid] = true
		case demands, c.req.Form == nil, e.Finish == chat.FinishToolCalls: // a turn that ends in calls is not the answer yet
		default:
			c.seen[c.compareText(of.text.String())] = true
		}
		c.choices[e.Choice] = &looseChoice{}
	}
}

// call compares a call that was demanded, or that is of a strict tool.
func (c *formCheck) call(call *chat.ToolCall) {
	choice := c.req.Choice
	i := slices.IndexFunc(c.req.Tools, func(t chat.Tool) bool { return t.Name == call.Name })
	switch {
	case i < 0 || choice.Kind == chat.ChoiceNamed && call.Name != choice.Name:
		if choice.Demands() {
			c.seen[jsonschema.Invalid] = true
		}
	case choice.Demands() || c.req.Tools[i].Strict:
		t := &c.req.Tools[i]
		v := c.compare(cmp.Or(string(t.Parameters), "{}"), call.Arguments, true)
		if v == jsonschema.Valid && t.Input != nil {
			v = c.compareInput(t.Input, call.Arguments)
		}
		c.seen[v] = true
	}
}

// compareInput compares the one argument of a call, which is a text.
func (c *formCheck) compareInput(f *chat.Form, arguments []byte) jsonschema.Verdict {
	v, err := schema.Parse(arguments)
	if err != nil || len(v.Members()) != 1 {
		return jsonschema.Invalid
	}
	text, _ := v.Members()[0].Str()
	return c.follow(f, text)
}

// follow compares a text with a form that is no schema.
func (c *formCheck) follow(f *chat.Form, text string) jsonschema.Verdict {
	g, known := c.grammars[f]
	if !known {
		g, _, _ = textform.Grammar(c.ctx, f) // none if the client has left
		if c.grammars == nil {
			c.grammars = map[*chat.Form]*grammar.Grammar{}
		}
		c.grammars[f] = g
		if c.budget == nil {
			c.budget = grammar.NewBudget(1)
		}
	}
	switch {
	case g == nil:
		return jsonschema.Unchecked
	case g.Matches(text, c.budget) && !c.budget.Spent():
		return jsonschema.Valid
	case c.budget.Spent():
		return c.bounded(jsonschema.Unchecked)
	}
	return jsonschema.Invalid
}

func (c *formCheck) compareText(text string) jsonschema.Verdict {
	switch f := c.req.Form; f.Kind {
	case chat.FormObject:
		return c.compare("{}", []byte(text), true)
	case chat.FormSchema:
		return c.compare(f.Source, []byte(text), false)
	}
	return c.follow(c.req.Form, text)
}

// compare compares a text in JSON with a schema; object: it has to be an object besides.
func (c *formCheck) compare(source string, text []byte, object bool) jsonschema.Verdict {
	v, err := schema.Parse(text)
	if err != nil || object && v.Kind() != schema.Object {
		return jsonschema.Invalid
	}
	k := c.known[source]
	if k == nil {
		if c.known == nil {
			c.known = map[string]*knownSchema{}
		}
		k = &knownSchema{}
		k.checker, k.unread = readSchema(c.ctx, source)
		c.known[source] = k
	}
	if k.checker == nil {
		return k.unread
	}
	if c.last != nil && c.last != k.checker {
		k.checker.Continue(c.last)
	}
	c.last = k.checker
	return c.bounded(k.checker.Check(c.ctx, v))
}

// bounded notes that a bound was met.
func (c *formCheck) bounded(v jsonschema.Verdict) jsonschema.Verdict {
	if u := InfoFrom(c.ctx).Usage; v == jsonschema.Unchecked && u != nil && !slices.Contains(u.Bounds, chat.BoundSchema) {
		u.Bounds = append(u.Bounds, chat.BoundSchema)
	}
	return v
}

// readSchema makes the checker of a schema, or tells what any value is where there is none: none is what a wrong schema asks for.
func readSchema(ctx context.Context, source string) (*jsonschema.Checker, jsonschema.Verdict) {
	root, err := schema.Parse([]byte(source))
	if err != nil {
		return nil, jsonschema.Invalid
	}
	s, err := jsonschema.Read(ctx, root)
	if wrong := (*jsonschema.Error)(nil); errors.As(err, &wrong) {
		return nil, jsonschema.Invalid
	} else if err != nil {
		return nil, jsonschema.Unchecked
	}
	return s.Checker(false), jsonschema.Valid
}

// result is the outcome so far; "" where there was nothing to compare yet.
func (c *formCheck) result() chat.Outcome {
	switch {
	case c.outcome != chat.Unchecked:
		return c.outcome
	case c.seen[jsonschema.Invalid]:
		return chat.Unmet
	case c.seen[jsonschema.Unchecked]:
		return chat.Unchecked
	case c.seen[jsonschema.Valid]:
		return chat.Checked
	}
	return ""
}
