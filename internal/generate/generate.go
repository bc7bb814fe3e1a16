// Package generate is the text side of a local model. It implements chat.Generator over an engine: a request becomes
// template variables, text, token ids; the tokens that come back become text, reasoning and tool calls again.
//
// Package catalog makes one Generator per loaded model and the protocols call it. It never sees JSON of a protocol or
// arrays of a backend, and it starts no goroutines: a reply is pulled by whoever ranges over it.
//
// Its files are stages, each built on those before: what a chat template can render (form), the prompt that a request
// becomes (prompter), the tokens that may follow (answer, guide), a reply that is read (choice), the Generator on top. TestOrder
// has the list, and fails where an earlier stage uses a name of a later one.
package generate

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/sample"
)

// Generator is a chat.Generator for one local model, safe for concurrent use.
type Generator struct {
	*prompter
	answers  *answerForms
	warnings []string
	repairs  repairs
	requests atomic.Uint64
}

var _ chat.Generator = (*Generator)(nil)

// New checks the template by a trial run and makes a Generator.
func New(cfg Config) (*Generator, error) {
	if cfg.Engine == nil || cfg.Tokenizer == nil {
		return nil, errors.New("make generator: engine and tokenizer are needed")
	}
	family, warnings, p, err := cfg.trial()
	if err != nil {
		return nil, err
	}
	if why := cfg.blind(p); why != "" {
		warnings, cfg.Sight = append(slices.Clip(warnings), "the model cannot see images: "+why), nil
	}
	g := &Generator{prompter: newPrompter(cfg, family, p), warnings: warnings}
	g.answers = newAnswerForms(&g.output)
	g.cfg.Info = g.described(p)
	if p != nil {
		g.warnings = append(g.warnings, p.warnings()...)
		g.warnings = append(g.warnings, missingMarks(&cfg, p, g.endTexts)...)
	}
	return g, nil
}

// described is the model's entry with what has been found out.
func (g *Generator) described(p *prober) chat.Model {
	info := g.cfg.Info
	info.Context = g.cfg.Engine.Context()
	info.Output = g.capped(info.Context / 2)
	info.Sampling = chat.Merged(&g.cfg.Generation, &g.cfg.Defaults)
	if p == nil {
		info.Kind = chat.Completes
		info.Description = strings.TrimSuffix("base model without a chat template: it continues text and does not chat; "+info.Description, "; ")
		return info
	}
	info.Parser = g.family.Name
	info.Tools, info.Thinking, info.Sees = p.tools(), g.cfg.thinks(g.family, g.switches), g.cfg.Sight != nil
	return info
}

// Model describes the model.
func (g *Generator) Model() chat.Model { return g.cfg.Info }

// Format names the output format that the template and the vocabulary point to.
func (g *Generator) Format() string { return g.family.Name }

// CheckParsers reports names of parsers that Config does not take. It needs no model, so a mistake shows before one loads.
func CheckParsers(tool, reasoning string) error { return dialect.CheckNames(tool, reasoning) }

// Warnings says where parsers that were asked for contradict the model's template, and that the template fails, a line each.
func (g *Generator) Warnings() []string { return g.warnings }

// Repairs counts, by kind, what was put right in the model's calls so far; docs/dialects.md lists the kinds.
func (g *Generator) Repairs() map[string]int64 { return g.repairs.all() }

// Count returns the length of the prompt in tokens.
func (g *Generator) Count(ctx context.Context, r *chat.Request) (int, error) {
	p, err := g.prompt(ctx, r)
	if err != nil {
		return 0, err
	}
	return len(p.tokens), nil
}

// Traits are what the chat template has a place for, and what else trials with it have shown.
func (g *Generator) Traits() []Trait {
	all := make([]Trait, len(traitTable))
	for i, row := range traitTable {
		all[i] = Trait{row[0], row[1], len(g.forms) > 0 && g.forms[0].has(1<<i)}
	}
	return all
}

// longestWords is the characters of Words.
const longestWords = 80

// Words is the beginning of the text of some ids, for people who look at what is cached: without special tokens, on one line.
func (g *Generator) Words(ids []int32) string {
	text := strings.ToValidUTF8(strings.ReplaceAll(g.tok.Decode(ids, true), "\uFFFD", ""), "")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }), " ")
	n := 0
	for at := range text {
		if n++; n > longestWords {
			return text[:at]
		}
	}
	return text
}

// Forget drops what is remembered of prompts, their images and answers.
func (g *Generator) Forget() {
	g.history.Forget()
	if g.sight != nil {
		g.sight.known.forget(func([16]byte) bool { return true })
	}
}

// ForgetSalt drops what is remembered of prompts, their images and answers under one salt.
func (g *Generator) ForgetSalt(salt [16]byte) {
	g.history.ForgetSalt(salt)
	if g.sight != nil {
		g.sight.known.forget(func(of [16]byte) bool { return of == salt })
	}
}

// Decoded counts the files of images that were decoded so far.
func (g *Generator) Decoded() int64 {
	if g.sight == nil {
		return 0
	}
	return g.sight.decoded.Load()
}

// RememberedImages spells what files of images were prepared to, for RecallImages in another process; nil: the model cannot see.
func (g *Generator) RememberedImages() []byte {
	if g.sight == nil {
		return nil
	}
	return g.sight.known.save()
}

// RecallImages takes in what RememberedImages has spelled, all of it or, with an error, nothing. It comes before the first
// request.
func (g *Generator) RecallImages(b []byte) error {
	if g.sight == nil {
		return nil
	}
	return g.sight.known.load(b)
}

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
	p, images, err := g.seen(ctx, r)
	if err != nil {
		return nil, err
	}
	start, err := g.start(ctx, r, p)
	if err != nil {
		return nil, err
	}
	if r.Prompt != nil && r.Prompt.Only {
		return echoed(start, max(r.N, 1)), nil
	}
	ctx, cancel := context.WithCancel(ctx)
	re, err := g.submit(ctx, r, p, images)
	if err != nil {
		cancel()
		return nil, err
	}
	return func(yield func(chat.Event, error) bool) {
		defer cancel()
		p.short = g.shortAdds(ctx, r, p) // while the first step runs
		start.Usage.Short = p.short
		glance(ctx, re.seqs[0].Started(), r.Patient)
		start.Usage.Form = re.outcome
		g.cached(start.Usage, p, r, re.seqs[0].Usage())
		if r.Explain != chat.ExplainNothing {
			g.explain(start.Usage, r, p)
		}
		if !yield(start, nil) {
			return
		}
		for i := range re.seqs {
			c := newChoice(re, i, yield)
			c.usage.Limit = start.Usage.Limit
			if !c.run() {
				return
			}
		}
	}, nil
}

// seen makes a request's prompt, and decodes and prepares its images for the engine. What fits is known before any of that. An
// image in a result of a tool whose fault shows only then becomes a note, as if its header had told, and the prompt is made
// anew.
func (g *Generator) seen(ctx context.Context, r *chat.Request) (*prompt, []engine.Image, error) {
	p, err := g.prompt(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	if p.seen != nil {
		defer p.seen.release()
	}
	for {
		if err := g.admit(ctx, r, p); err != nil {
			return nil, nil, err
		}
		whole, err := g.prepare(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		if whole {
			return p, p.images(), nil
		}
		if p, err = g.promptWith(ctx, r, p.seen); err != nil {
			return nil, nil, err
		}
	}
}

// admit refuses a prompt that does not fit.
func (g *Generator) admit(ctx context.Context, r *chat.Request, p *prompt) error {
	e := g.fits(len(p.tokens), r)
	if e == nil {
		return nil
	}
	if counted := g.fits(len(p.tokens)-g.shortAdds(ctx, r, p), r); counted != nil { // in the figures that clients know
		e = counted
	}
	if r.Prompt != nil && e.Param == "messages" {
		e.Param = r.Prompt.Path
	}
	return g.advise(e, r)
}

// start is the event that begins the reply.
func (g *Generator) start(ctx context.Context, r *chat.Request, p *prompt) (e chat.Event, err error) {
	e.Kind = chat.EventStart
	if r.Prompt != nil && r.Prompt.Echo {
		if e, err = g.echo(ctx, g.cfg.Engine, r, p); err != nil {
			return e, err
		}
	}
	e.Usage = &chat.Usage{Prompt: len(p.tokens), Spliced: p.encoded.Spliced, Replayed: p.printed, Images: p.seenImages()}
	if limit := g.maxTokens(r, p); limit < r.MaxTokens {
		e.Usage.Limit = limit
	}
	return e, nil
}

// maxTokens is how long the reply to a prompt may be; 0: nobody says.
func (g *Generator) maxTokens(r *chat.Request, p *prompt) int {
	return min(g.capped(cmp.Or(r.MaxTokens, g.cfg.MaxTokens, g.cfg.TokensCap)), g.cfg.Engine.Context()-len(p.tokens))
}

// submit queues a prompt, once for each choice.
func (g *Generator) submit(ctx context.Context, r *chat.Request, p *prompt, images []engine.Image) (*reply, error) {
	if err := g.answers.forms.checkInputs(ctx, r.Tools); err != nil {
		return nil, err
	}
	calls, err := g.answers.newCalls(ctx, g.prompter, r, p)
	if err != nil {
		return nil, err
	}
	if calls == nil {
		if err := checkSchemas(ctx, r, p); err != nil {
			return nil, err
		}
	}
	text, err := g.answers.newHeldForm(ctx, g.prompter, r, p)
	if err != nil {
		return nil, err
	}
	held := calls
	if text != nil {
		text.calls, held = calls, text
	}
	ep := g.enginePrompt(r, p)
	ep.Images = images
	var unpredicted string
	ep.Prediction, unpredicted = predict(r, &g.cfg)
	n := max(r.N, 1)
	re := &reply{m: g.prompter, r: r, p: p, seqs: make([]sequence, n), repaired: g.repairs.count,
		ends: g.cfg.RunawayStop && greedy(ep.Sampling), form: text, bound: calls, outcome: formOutcome(r, p, text, calls), unpredicted: unpredicted}
	advice := g.advice(r, p)
	for i := range n {
		re.seqs[i].guide = held.guide(n)
		if err = constrain(&ep, g.newBudget(p), re.seqs[i].guide); err != nil {
			return nil, err
		}
		if advice != nil {
			ep.Constrain, ep.Mask = g.force(advice)
			ep.Draft = nil
		}
		if re.seqs[i].Stream, err = g.cfg.Engine.Submit(ctx, ep); err != nil {
			return nil, imageRefusal(p, engineError(err))
		}
		ep.Sampling.Seed++
	}
	return re, nil
}

// enginePrompt is a prompt as the engine takes it, without what constrains the reply.
func (g *Generator) enginePrompt(r *chat.Request, p *prompt) engine.Prompt {
	ep := engine.Prompt{Tokens: p.tokens, Made: p.encoded.took, MaxTokens: g.maxTokens(r, p), StopIDs: p.stopIDs, Logprobs: -1, Marks: p.marks(),
		Sampling: params(&g.cfg.Generation, &g.cfg.Defaults, &r.Sampling)}
	if r.Logprobs {
		ep.Logprobs = r.TopLogprobs
	}
	if ep.Sampling.Numbers[sample.XTCProbability] > 0 {
		ep.Sampling.XTCSpare = g.xtcSpare()
	}
	attribute(&ep, &r.Origin)
	if ep.Client == 0 {
		ep.Client = g.requests.Add(1)
	}
	return ep
}

// glance waits for an idle engine to look at a new prompt, so that the first event can tell what is cached. A busy engine is
// not waited for, unless the request is patient.
func glance(ctx context.Context, started <-chan struct{}, patient bool) {
	const most = 5 * time.Millisecond
	var late <-chan time.Time
	if !patient {
		t := time.NewTimer(most)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-started:
	case <-late:
	case <-ctx.Done():
	}
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

// advice is the reply to a prompt with tools that is longer than the model can make sense of; nil: the model answers. It also
// answers where a sentence is no answer: a call or a form is demanded, or the reply has begun.
func (g *Generator) advice(r *chat.Request, p *prompt) []int32 {
	if g.cfg.Advice == nil || len(p.options.Tools) == 0 || len(p.tokens) <= g.cfg.Readable || r.Choice.Demands() || r.Form != nil || p.options.Continued {
		return nil
	}
	return append(g.guard.Plain(g.cfg.Advice(len(p.tokens), g.cfg.Engine.Context())), g.stopIDs[0])
}

// force makes ids a reply, whatever the model would say: the hook that brings all but the first, and what that must be of.
func (g *Generator) force(ids []int32) (hook func(int32) engine.Constraint, first sample.Set) {
	first = make(sample.Set, g.tok.Size()/64+1)
	first.Add(ids[0])
	rest := ids[1:]
	return func(int32) (c engine.Constraint) {
		c.Forced, rest = rest, nil
		return c
	}, first
}
