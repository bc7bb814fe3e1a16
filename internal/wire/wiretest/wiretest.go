// Package wiretest is what the tests of the protocols share: a scripted chat.Generator and the runner of txtar cases.
// Only tests import it.
package wiretest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"hearth/internal/chat"
)

// Created is the time of every model and reply in tests.
var Created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Step is one scripted event, or the error that ends the reply. Before, if set, runs first; it may block.
type Step struct {
	Event  chat.Event
	Err    error
	Before func(ctx context.Context)
}

// Generator replies with a script. It is also the chat.Models that knows only itself.
type Generator struct {
	Desc  chat.Model
	Names []string // names besides Desc.ID that Open knows; "*" for all
	// Script returns the steps of a reply, or the error of Generate.
	Script func(r *chat.Request) ([]Step, error)
	// Got, if set, sees every request.
	Got func(r *chat.Request)
}

// New returns a generator called test-model that plays steps.
func New(steps ...Step) *Generator {
	return &Generator{
		Desc:   chat.Model{ID: "test-model", Created: Created, Context: 4096, Thinking: true, Tools: true},
		Script: func(*chat.Request) ([]Step, error) { return steps, nil },
	}
}

// Model implements chat.Generator.
func (g *Generator) Model() chat.Model { return g.Desc }

// List implements chat.Models.
func (g *Generator) List(context.Context) []chat.Model { return []chat.Model{g.Desc} }

// Open implements chat.Models.
func (g *Generator) Open(_ context.Context, name string) (chat.Generator, error) {
	if name == "" || name == g.Desc.ID {
		return g, nil
	}
	for _, n := range g.Names {
		if n == name || n == "*" {
			return g, nil
		}
	}
	return nil, &chat.Error{Kind: chat.NotFound, Param: "model", Code: "model_not_found",
		Msg: fmt.Sprintf("there is no model %q here", name)}
}

// Count implements chat.Generator: a token per word.
func (g *Generator) Count(_ context.Context, r *chat.Request) (int, error) {
	if g.Got != nil {
		g.Got(r)
	}
	n := 0
	for i := range r.Messages {
		n += len(strings.Fields(r.Messages[i].Text()))
	}
	return n, nil
}

// Generate implements chat.Generator.
func (g *Generator) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	if g.Got != nil {
		g.Got(r)
	}
	steps, err := g.Script(r)
	if err != nil {
		return nil, err
	}
	return func(yield func(chat.Event, error) bool) {
		for _, s := range steps {
			if s.Before != nil {
				s.Before(ctx)
			}
			if err := ctx.Err(); err != nil {
				yield(chat.Event{}, err)
				return
			}
			if !yield(s.Event, s.Err) || s.Err != nil {
				return
			}
		}
	}, nil
}

var (
	eventKinds = map[string]chat.EventKind{
		"start": chat.EventStart, "text": chat.EventText, "reasoning": chat.EventReasoning,
		"tool_start": chat.EventToolStart, "tool_args": chat.EventToolArgs, "tool_end": chat.EventToolEnd,
		"finish": chat.EventFinish, "tool_result": chat.EventToolResult,
	}
	errorKinds = map[string]chat.ErrorKind{
		"internal": chat.Internal, "invalid": chat.Invalid, "not_found": chat.NotFound, "context_length": chat.ContextLength,
		"overloaded": chat.Overloaded, "rate_limited": chat.RateLimited,
	}
)

// ParseScript reads one JSON object a line: the fields of chat.Event with Kind by name, or Kind "error" or "refuse"
// with the fields of chat.Error under Error and its kind by name under ErrorKind. "error" breaks the reply off,
// "refuse" is what Generate itself returns.
func ParseScript(text []byte) (steps []Step, refuse, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var l struct {
			chat.Event
			Kind      string
			ErrorKind string
			Error     chat.Error
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, nil, fmt.Errorf("script line %q: %w", lines.Text(), err)
		}
		l.Error.Kind = errorKinds[l.ErrorKind]
		switch kind, ok := eventKinds[l.Kind]; {
		case ok:
			l.Event.Kind = kind
			steps = append(steps, Step{Event: l.Event})
		case l.Kind == "error":
			steps = append(steps, Step{Err: &l.Error})
		case l.Kind == "refuse":
			refuse = &l.Error
		default:
			return nil, nil, fmt.Errorf("script line %q: unknown kind", lines.Text())
		}
	}
	return steps, refuse, lines.Err()
}
