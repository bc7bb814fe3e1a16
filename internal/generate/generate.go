// Package generate is the text side of a local model. It implements chat.Generator over an engine: a request becomes
// template variables, text, token ids; the tokens that come back become text, reasoning and tool calls again.
//
// Package catalog makes one Generator per loaded model and the protocols call it. It never sees JSON of a protocol or
// arrays of a backend, and it starts no goroutines: a reply is pulled by whoever ranges over it.
package generate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/jinja"
	"hearth/internal/sample"
	"hearth/internal/tokenizer"
	"hearth/internal/transcript"
)

// Engine is what generate needs of an engine; Over makes one of Tokens.
type Engine interface {
	Submit(ctx context.Context, p engine.Prompt) (Stream, error)
	// Context is the most tokens, prompt and answer together, that a request can have.
	Context() int
}

// Stream is the tokens of one sequence, as *engine.Stream gives them.
type Stream interface {
	Next() (engine.Token, error)
	Finish() engine.Reason
	Usage() engine.Usage
	// Started is closed when the sequence's first step begins, or it ends without one.
	Started() <-chan struct{}
	Close()
}

// Tokens is an engine whose streams are those of package engine: *engine.Engine, or one in another process.
type Tokens interface {
	Submit(ctx context.Context, p engine.Prompt) (*engine.Stream, error)
	Context() int
	scorer
}

// Over adapts an engine.
func Over(e Tokens) Engine { return adapter{e} }

type adapter struct{ Tokens }

func (a adapter) Submit(ctx context.Context, p engine.Prompt) (Stream, error) {
	s, err := a.Tokens.Submit(ctx, p)
	if err != nil { // not s: a nil *engine.Stream is no nil Stream
		return nil, err
	}
	return s, nil
}

// Config is what a Generator is made of. Load fills in Tokenizer, Template and Warnings.
type Config struct {
	Info       chat.Model // ID, Path, Created; the rest New fills in
	Engine     Engine
	Tokenizer  *tokenizer.Tokenizer
	Template   *Template     // nil: a base model, which continues text and does not chat
	Warnings   []string      // what is wrong with the folder's files and was read over or mended, the file first
	StopIDs    []int32       // end a turn, as files name them; the tokenizer's own end token always does, and what turnEnds adds
	Generation chat.Sampling // what the model's authors recommend
	Loop       Loop          // ends a reply as if the tokens had run out
	// RunawayStop ends greedy replies that will not end by themselves: see runaway.
	RunawayStop bool
	// Unforced leaves out the openings of calls that requests demand: what generates says all of its turn by itself.
	Unforced bool

	Defaults chat.Sampling // configured; they come before Generation
	Thinking chat.Toggle   // for requests that do not say
	// NoThinking has Off hold whatever requests say, where the template can be told so.
	NoThinking bool
	// ThinkingBudget is the tokens of reasoning of requests that do not say; 0: no limit.
	ThinkingBudget int
	// TemplateArgs are variables of the template for requests that do not set them; the generator's own come before them.
	TemplateArgs map[string]json.RawMessage
	// MaxTokens of the answer for requests that do not say, as far as there is room; 0: all the room.
	MaxTokens int
	// TokensCap bounds the answer of every request, whatever it says; 0: nothing does.
	TokensCap int
	Limits    jinja.Limits     // of the template
	Now       func() time.Time // for dates in prompts; nil means time.Now

	// RefuseMedia has images and other files refused, but for those in results of tools, in place of a note in the prompt.
	RefuseMedia bool
	// Advice is a sentence for clients whose prompt of so many tokens is too long for the model, see advise; nil: there is none.
	Advice func(tokens, context int) string
	// Readable is how many tokens of a prompt with tools the model makes sense of. It answers longer ones with the Advice.
	Readable int

	// PlainHistory encodes earlier answers as the template renders them, instead of keeping the tokens that were generated.
	PlainHistory bool
	// HistoryTTL is how long texts are remembered that nobody uses, HistorySessions of how many sessions; 0: as long and of as
	// many as there is room.
	HistoryTTL      time.Duration
	HistorySessions int

	// ToolParser and ReasoningParser name output formats to use instead of those that the evidence points to, as
	// dialect.Override takes them; "" and "auto" leave the choice.
	ToolParser, ReasoningParser string
	NoToolsInPrompt             bool // tools that the template has no place for are left out, not told of in the system text
	NoToolRepair                bool // calls are taken as the model writes them
	ConstrainTools              bool // calls are kept to the request's tools while they are written, see newCalls

	Warn func(line string) // hears of what requests ask for and does not happen, each thing once; may be nil
}

// Generator is a chat.Generator for one local model, safe for concurrent use.
type Generator struct {
	cfg      Config
	family   *dialect.Family
	guard    *transcript.Guard
	warnings []string
	forms    []form // the first is the template's; the others are stricter, for what it refuses all the same
	switches switches
	history  *transcript.History
	calls    *calls   // nil: they are not guided
	stops    []string // texts of the tokens that end an answer
	endTexts []string // that end one where no token does, see turnEnds
	clocks   clocks
	repairs  repairs
	leftOut  sync.Once // tools, for the first time
	requests atomic.Uint64
	sampling chat.Sampling
}

var _ chat.Generator = (*Generator)(nil)

// New checks the template by a trial run and makes a Generator.
func New(cfg Config) (*Generator, error) {
	if cfg.Engine == nil || cfg.Tokenizer == nil {
		return nil, errors.New("make generator: engine and tokenizer are needed")
	}
	g := &Generator{cfg: cfg}
	var p *prober
	var err error
	if g.family, g.warnings, p, err = cfg.trial(); err != nil {
		return nil, err
	}
	ends, texts := turnEnds(&cfg, g.family, p)
	g.cfg.StopIDs, g.endTexts = nil, texts
	for _, e := range ends {
		g.cfg.StopIDs = append(g.cfg.StopIDs, e.ID)
		if e.Token != "" {
			g.stops = append(g.stops, e.Token)
		}
	}
	g.guard = transcript.NewGuard(cfg.Tokenizer, slices.DeleteFunc(slices.Clone(g.family.Markers),
		func(m string) bool { return slices.Contains(g.family.Control, m) }))
	g.calls = newCalls(g)
	g.history = transcript.New(g.guard, !cfg.PlainHistory, transcript.Terms{TTL: cfg.HistoryTTL, Sessions: cfg.HistorySessions})
	g.sampling = overlay(cfg.Defaults, overlay(cfg.Generation, builtin))
	g.cfg.Info.Context = cfg.Engine.Context()
	g.cfg.Info.Output = cfg.Engine.Context() / 2
	if cfg.TokensCap > 0 {
		g.cfg.Info.Output = min(g.cfg.Info.Output, cfg.TokensCap)
	}
	if p == nil {
		g.cfg.Info.Kind = chat.Completes
		g.cfg.Info.Description = strings.TrimSuffix("base model without a chat template: it continues text and does not chat; "+cfg.Info.Description, "; ")
		return g, nil
	}
	g.cfg.Info.Parser = g.family.Name
	g.forms, g.switches = append([]form{p.form}, p.form.stricter()...), findSwitches(p)
	g.warnings = append(g.warnings, p.warnings()...)
	g.warnings = append(g.warnings, missingMarks(&cfg, p, texts)...)
	g.cfg.Info.Tools = p.form.has(toolsDeclared) || p.form.has(toolsInSystem)
	g.cfg.Info.Thinking = g.switches.works || g.family.Open != "" && cfg.Template.mentions(g.family.Close)
	return g, nil
}

// Check tells what New would refuse. It needs no Engine.
func (c Config) Check() error {
	_, _, _, err := c.trial()
	return err
}

// trial picks the form of the output and finds out what the template can render; the prober is nil without one.
func (c *Config) trial() (f *dialect.Family, warnings []string, p *prober, err error) {
	f = dialect.Choose(dialect.Evidence{})
	if c.Template != nil {
		f, _ = chooseFamily(*c)
	}
	if f, warnings, err = dialect.Override(f, c.ToolParser, c.ReasoningParser); err != nil {
		return nil, nil, nil, err
	}
	if c.Template == nil {
		return f, nil, nil, nil
	}
	if p, err = findForm(c.Template, f, c.Limits, c.tells()); err == nil && c.Template.given && !p.works {
		err = fmt.Errorf("the chat template fails on every trial conversation: %s", firstLine(p.err))
	}
	switch {
	case err == nil:
		return p.family, warnings, p, nil
	case c.Template.given:
		return nil, nil, nil, &GivenError{Problem: err.Error(), Advice: "it gets the variables messages (of role and content), add_generation_prompt, bos_token and eos_token"}
	}
	return nil, nil, nil, fmt.Errorf("make generator: %w", err)
}

// Model describes the model.
func (g *Generator) Model() chat.Model { return g.cfg.Info }

// Format names the output format that the template and the vocabulary point to.
func (g *Generator) Format() string { return g.family.Name }

// CheckParsers reports names of parsers that Config does not take. It needs no model, so a mistake shows before one loads.
func CheckParsers(tool, reasoning string) error { return dialect.CheckNames(tool, reasoning) }

// Warnings says where parsers that were asked for contradict the model's template, and that the template fails, a line each.
func (g *Generator) Warnings() []string { return g.warnings }

// Count returns the length of the prompt in tokens.
func (g *Generator) Count(ctx context.Context, r *chat.Request) (int, error) {
	p, err := g.prompt(ctx, r)
	if err != nil {
		return 0, err
	}
	return len(p.tokens), nil
}

// Forget drops what is remembered of prompts and answers.
func (g *Generator) Forget() { g.history.Forget() }

// ForgetSalt drops what is remembered of prompts and answers under one salt.
func (g *Generator) ForgetSalt(salt [16]byte) { g.history.ForgetSalt(salt) }

// Remembered spells what is remembered of prompts and answers, for Recall in another process. It means something for the same
// model only.
func (g *Generator) Remembered() []byte { return g.history.Save() }

// Recall takes in what Remembered has spelled, all of it or, with an error, nothing. It comes before the first request.
func (g *Generator) Recall(b []byte) error { return g.history.Load(b) }

// Render returns the text of the prompt.
func (g *Generator) Render(ctx context.Context, r *chat.Request) (string, error) {
	p, err := g.prompt(ctx, r)
	if err != nil {
		return "", err
	}
	return p.text, nil
}

// Generate starts the reply. The prompt is rendered, counted against the context and queued before it returns; the
// events then come as the caller asks for them: it must range over them or end ctx. Several choices decode together and
// are told one after the other.
func (g *Generator) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	p, err := g.prompt(ctx, r)
	if err != nil {
		return nil, err
	}
	maxTokens := g.capped(cmp.Or(r.MaxTokens, g.cfg.MaxTokens, g.cfg.TokensCap))
	if e := g.fits(len(p.tokens), r); e != nil {
		if counted := g.fits(len(p.tokens)-g.shortAdds(ctx, r, p), r); counted != nil { // in the figures that clients know
			e = counted
		}
		if r.Prompt != nil && e.Param == "messages" {
			e.Param = r.Prompt.Path
		}
		return nil, g.advise(e, r)
	}
	maxTokens = min(maxTokens, g.cfg.Engine.Context()-len(p.tokens))
	n := max(r.N, 1)
	start := chat.Event{Kind: chat.EventStart}
	if r.Prompt != nil && r.Prompt.Echo {
		if start, err = g.echo(ctx, r, p); err != nil {
			return nil, err
		}
	}
	start.Usage = &chat.Usage{Prompt: len(p.tokens), Spliced: p.encoded.Spliced}
	if maxTokens < r.MaxTokens {
		start.Usage.Limit = maxTokens
	}
	if r.Prompt != nil && r.Prompt.Only {
		return echoed(start, n), nil
	}
	logprobs := -1
	if r.Logprobs {
		logprobs = r.TopLogprobs
	}
	params := params(overlay(r.Sampling, g.sampling))
	if params.XTCProbability > 0 {
		params.XTCSpare = g.xtcSpare()
	}
	if r.Sampling.Seed == nil && g.sampling.Seed == nil {
		params.Seed = rand.Uint64()
	}
	form, err := g.newForm(r, p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	streams, guides := make([]Stream, n), make([]*guide, n)
	ep := engine.Prompt{Tokens: p.tokens, MaxTokens: maxTokens, StopIDs: g.cfg.StopIDs, Sampling: params, Logprobs: logprobs, Marks: p.marks()}
	if p.stopIDs != nil {
		ep.StopIDs = p.stopIDs
	}
	g.attribute(&ep, &r.Origin)
	advice := g.advice(r, p)
	for i := range streams {
		guides[i] = g.newGuide(r, p, form)
		if ep.Constrain, ep.Mask, err = g.steer(p, guides[i]); err != nil {
			cancel()
			return nil, err
		}
		if advice != nil {
			ep.Constrain, ep.Mask = g.dictate(advice)
		}
		s, err := g.cfg.Engine.Submit(ctx, ep)
		if err != nil {
			cancel()
			return nil, g.engineError(err)
		}
		streams[i] = s
		ep.Sampling.Seed++
	}
	return func(yield func(chat.Event, error) bool) {
		defer cancel()
		p.short = g.shortAdds(ctx, r, p) // while the first step runs
		start.Usage.Short = p.short
		glance(ctx, streams[0].Started())
		g.cached(start.Usage, p, r, streams[0].Usage())
		if !yield(start, nil) {
			return
		}
		for i := range streams {
			c := newChoice(g, r, p, i, yield)
			c.guide, c.usage.Limit = guides[i], start.Usage.Limit
			if !c.run(streams) {
				return
			}
		}
	}, nil
}

// glance waits for an idle engine to look at a new prompt, so that the first event can tell what is cached. A busy engine is
// not waited for.
func glance(ctx context.Context, started <-chan struct{}) {
	const most = 5 * time.Millisecond
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-started:
	case <-t.C:
	case <-ctx.Done():
	}
}

// cached says what the prefix cache had for a prompt and how long its steps took, as far as that is known.
func (g *Generator) cached(u *chat.Usage, p *prompt, r *chat.Request, e engine.Usage) {
	if e.Started.IsZero() {
		return
	}
	u.Cached, u.Common, u.Hit, u.Queued = e.Cached, e.Longer, e.Hit.String(), e.Started.Sub(e.Submitted)
	u.Disk, u.Added = e.Disk, e.Added
	u.Parted = p.messageAt(g.history, r.Messages, e.Longer) + 1
	if e.Own && !p.raw {
		u.Around = p.around(g, e.Longer)
	}
	if !e.First.IsZero() {
		u.Prefill = e.First.Sub(e.Started)
		if !e.Ended.IsZero() {
			u.Decode = e.Ended.Sub(e.First)
		}
	}
}

// capped is a limit of tokens, 0 for none, within the cap.
func (g *Generator) capped(tokens int) int {
	if most := g.cfg.TokensCap; most > 0 {
		return min(tokens, most)
	}
	return tokens
}

// fits refuses a prompt that leaves no room, or less than was asked for where that is not to be lowered.
func (g *Generator) fits(tokens int, r *chat.Request) *chat.Error {
	limit, maxTokens := g.cfg.Engine.Context(), g.capped(r.MaxTokens)
	switch {
	case tokens >= limit:
		if r.ClampMaxTokens {
			maxTokens = 0 // it is not what is too much
		}
		return &chat.Error{Kind: chat.ContextLength, Param: "messages", Tokens: tokens, MaxTokens: maxTokens, Limit: limit - 1,
			Msg: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, limit-1)}
	case !r.ClampMaxTokens && maxTokens > limit-tokens:
		return &chat.Error{Kind: chat.ContextLength, Param: "max_tokens", Tokens: tokens, MaxTokens: maxTokens, Limit: limit,
			Msg: fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again",
				tokens, maxTokens, limit)}
	}
	return nil
}

// advise adds the advice there is to a prompt that does not fit. Clients that know such an error by its words hide them, and
// compact the conversation. At an agent's first turn there is nothing to compact, so it gets the advice alone, which it shows.
func (g *Generator) advise(e *chat.Error, r *chat.Request) *chat.Error {
	if g.cfg.Advice == nil || e.Tokens < g.cfg.Engine.Context() {
		return e
	}
	advice := g.cfg.Advice(e.Tokens, g.cfg.Engine.Context())
	answered := slices.ContainsFunc(r.Messages, func(m chat.Message) bool { return m.Role == chat.Assistant })
	if len(r.Tools) > 0 && !answered {
		return &chat.Error{Kind: chat.Invalid, Msg: advice}
	}
	e.Advice = advice
	return e
}

// advice is the reply to a prompt with tools that the model makes no sense of; nil: it answers itself, as it does where a sentence
// is no answer: a call or a form is asked for, or the reply has begun.
func (g *Generator) advice(r *chat.Request, p *prompt) []int32 {
	if g.cfg.Advice == nil || len(p.options.Tools) == 0 || len(p.tokens) <= g.cfg.Readable || r.Choice.Demands() || r.Form || p.options.Continued {
		return nil
	}
	return append(g.guard.Plain(g.cfg.Advice(len(p.tokens), g.cfg.Engine.Context())), g.cfg.StopIDs[0])
}

// dictate makes ids a reply, whatever the model would say: the hook that brings all but the first, and what that must be of.
func (g *Generator) dictate(ids []int32) (hook func(int32) engine.Constraint, first sample.Set) {
	first = make(sample.Set, g.cfg.Tokenizer.Size()/64+1)
	first.Add(ids[0])
	rest := ids[1:]
	return func(int32) (c engine.Constraint) {
		c.Forced, rest = rest, nil
		return c
	}, first
}

// engineError says what an engine's refusal means to the client.
func (g *Generator) engineError(err error) error {
	var long *engine.TooLongError
	var full *engine.QueueFullError
	var many *engine.ClientFullError
	var lost *engine.LostError
	switch {
	case errors.As(err, &long):
		return &chat.Error{Kind: chat.ContextLength, Param: "messages", Tokens: long.Tokens, Limit: long.Max, Msg: long.Error(), Err: err}
	case errors.As(err, &full):
		return &chat.Error{Kind: chat.Overloaded, RetryAfter: time.Second, Err: err,
			Msg: fmt.Sprintf("the server is busy: %d requests run and %d wait, as many as its flags --max-sequences and --max-queue let; try again later", full.Running, full.Waiting)}
	case errors.As(err, &many):
		return &chat.Error{Kind: chat.RateLimited, RetryAfter: time.Second, Err: err,
			Msg: fmt.Sprintf("%d requests of this client run or wait, half of all there may be; try again later", many.Live)}
	case errors.As(err, &lost) && lost.Began:
		return &chat.Error{Kind: chat.Internal, Code: "model_process_ended", Err: err,
			Msg: "the process that ran the model has ended, and this reply with it; it is being started again: try again"}
	case errors.As(err, &lost):
		return &chat.Error{Kind: chat.Overloaded, Code: "model_process_ended", RetryAfter: max(lost.After, time.Second), Err: err,
			Msg: fmt.Sprintf("the process that runs the model has ended %d times in a row and is being started again; try again later", lost.Times)}
	case errors.Is(err, engine.ErrClosed):
		return &chat.Error{Kind: chat.Overloaded, Msg: "the server is shutting down", RetryAfter: 5 * time.Second, Err: err}
	}
	return chat.AsError(err)
}
