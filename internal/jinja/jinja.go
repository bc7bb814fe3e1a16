// Package jinja interprets chat templates: Jinja2 exactly as transformers' apply_chat_template configures it
// (trim_blocks, lstrip_blocks, loop controls, the immutable sandbox, tojson through json.dumps, raise_exception,
// strftime_now, the generation tag). What it prints must equal the reference byte for byte, because the prompt is what
// the model was trained on and what the prefix cache is keyed by; where Python shows through (dict order, int against
// float, repr of values, generators that are always true) it shows through here too.
//
// Package generate calls it, once per request. It is pure: it never logs, never reads files or the environment, and the
// only outside fact it sees is the clock in Template.Now. Templates are untrusted input: work, nesting and output are
// bounded by Limits, and a template cannot reach anything but the variables it is given.
//
// Not supported, because no loader exists for a single template: extends, include, import and self.
package jinja

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Template is a parsed template. Its methods are safe for concurrent use.
type Template struct {
	name string
	src  string
	body []node
	syms map[string]int // of every variable the template mentions
	size atomic.Int64   // of the last result, a guess at the next one's

	// Now is the clock of strftime_now; nil means time.Now. Set it before the first Render.
	Now func() time.Time
}

// Limits bounds one Render. Zero fields mean the defaults.
//
// No clock is among them: what renders on an idle machine renders on a busy one. A step is worth about 50 ns of a processor
// and 32 bytes of memory: a node evaluated, or what an operation does to some bytes or items of what it is given.
type Limits struct {
	Steps  int  // work; default DefaultSteps
	Depth  int  // nested macro calls, recursive loops, lazy sequences over one another; default 200
	Output int  // bytes of the result and of any single string on the way; default 8 MiB
	Spent  *int // if not nil, the steps taken are added to it, and Steps bounds them together with those that were there
}

// DefaultSteps is what a Render may take: thousands of times what a conversation takes, and a second or so of a processor.
const DefaultSteps = 16_000_000

func (l Limits) withDefaults() Limits {
	l.Steps = cmp.Or(max(l.Steps, 0), DefaultSteps)
	l.Depth = cmp.Or(max(l.Depth, 0), 200)
	l.Output = cmp.Or(max(l.Output, 0), 8<<20)
	return l
}

// Kind says whose fault an Error is.
type Kind uint8

const (
	Syntax  Kind = iota // the template does not parse
	Runtime             // the template failed on these variables, as Python would have raised
	Raised              // the template called raise_exception: it rejects the conversation
	Limit               // a limit was reached
)

// Error is the error of Parse and Render. Use errors.As and Kind to tell a template that refuses a conversation
// (Raised, the request's fault) from one that is broken.
type Error struct {
	Kind Kind
	Name string // of the template
	Line int    // 1-based
	Msg  string // for Raised, exactly the template's words
}

func (e *Error) Error() string {
	switch e.Kind {
	case Raised:
		return fmt.Sprintf("template %s refuses the conversation at line %d: %s", e.Name, e.Line, e.Msg)
	case Syntax:
		return fmt.Sprintf("parse template %s: line %d: %s", e.Name, e.Line, e.Msg)
	}
	return fmt.Sprintf("render template %s: line %d: %s", e.Name, e.Line, e.Msg)
}

// Parse compiles a template; name is used in errors. The error is an *Error of kind Syntax.
func Parse(name, src string) (t *Template, err error) {
	defer recoverError(name, nil, &err)
	toks := lex(src)
	p := newParser(toks)
	return &Template{name: name, src: src, body: p.parseTemplate(), syms: p.syms}, nil
}

// Name returns the name given to Parse.
func (t *Template) Name() string { return t.name }

// Source returns the template's text.
func (t *Template) Source() string { return t.src }

// Render runs the template over vars, whose values are those FromJSON makes. The error is an *Error, or that of ctx, which
// ends it.
func (t *Template) Render(ctx context.Context, vars *Dict, limits Limits) (string, error) {
	return t.RenderAt(ctx, vars, limits, t.Now)
}

// RenderAt is Render with another clock; nil means time.Now.
func (t *Template) RenderAt(ctx context.Context, vars *Dict, limits Limits, now func() time.Time) (string, error) {
	return t.render(ctx, vars, limits, now, nil)
}

// Span is the text that one pass of a loop over a tagged dict has written: out[From:To].
type Span struct{ Tag, From, To int }

// RenderSpans is RenderAt that also tells which stretches of the text come from which tagged dicts, in the order in
// which they end. A dict that is looped over several times has a span for each time that wrote something; what a
// template writes into variables first, or without a loop, has none.
func (t *Template) RenderSpans(ctx context.Context, vars *Dict, limits Limits, now func() time.Time) (out string, spans []Span, err error) {
	out, err = t.render(ctx, vars, limits, now, &spans)
	return out, spans, err
}

// guessBytes is the largest result that the next one gets room for from the start.
const guessBytes = 1 << 20

func (t *Template) render(ctx context.Context, vars *Dict, limits Limits, now func() time.Time, spans *[]Span) (out string, err error) {
	r := &renderer{ctx: ctx, limits: limits.withDefaults(), now: now, out: new(strings.Builder), spans: spans, top: make([]variable, len(t.syms))}
	r.main = r.out
	r.steps = r.limits.Steps
	if s := limits.Spent; s != nil {
		r.steps -= *s
		defer func() { *s = r.limits.Steps - r.steps }()
	}
	defer recoverError(t.name, &r.line, &err)
	if r.now == nil {
		r.now = time.Now
	}
	r.check = r.steps
	for i := range vars.entries {
		if k, ok := vars.entries[i].key.(string); ok {
			if sym, ok := t.syms[k]; ok {
				r.top[sym] = variable{vars.entries[i].val, true}
			}
		}
	}
	r.out.Grow(int(min(t.size.Load(), guessBytes)))
	r.exec(t.body, nil)
	t.size.Store(int64(r.out.Len()))
	return r.out.String(), nil
}

// Inside the package errors travel as panics of type *Error, as in text/template: only Parse, Render and FromJSON, the
// three ways in, recover them. Anything else that panics is a bug and goes on up.
// line is used where the error has none. What ends a context travels as gone.
func recoverError(name string, line *int, err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		p.Name = name
		if p.Line == 0 && line != nil {
			p.Line = *line
		}
		*err = p
	case gone:
		*err = p.err
	default:
		panic(p)
	}
}

type gone struct{ err error }

func syntaxError(line int, format string, args ...any) {
	panic(&Error{Kind: Syntax, Line: line, Msg: fmt.Sprintf(format, args...)})
}
