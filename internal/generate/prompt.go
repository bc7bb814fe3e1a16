package generate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/schema"
	"hearth/internal/tokenizer"
	"hearth/internal/transcript"
)

// prompter makes prompts of requests: text by the chat template, and ids by what is remembered of earlier turns.
type prompter struct {
	output
	cfg      Config
	forms    []form // the first is the template's; the others are stricter, for what it refuses all the same
	switches switches
	clocks   clocks
	guard    *transcript.Guard
	history  *transcript.History
	sight    *sighted  // nil: the model cannot see
	leftOut  sync.Once // tools, for the first time
}

// newPrompter makes one for a model of a family and, if it has a chat template, what trials have shown of that.
func newPrompter(cfg Config, family *dialect.Family, p *prober) *prompter {
	m := &prompter{cfg: cfg, output: newOutput(&cfg, family, p)}
	image := ""
	if s := cfg.places(); s != nil {
		image = s.Mark
	}
	m.guard = transcript.NewGuard(cfg.Tokenizer, slices.DeleteFunc(slices.Clone(family.Markers),
		func(s string) bool { return slices.Contains(family.Control, s) }), image)
	m.history = transcript.New(m.guard, transcript.Terms{Exact: !cfg.PlainHistory, TTL: cfg.HistoryTTL, Sessions: cfg.HistorySessions})
	if cfg.Sight != nil {
		m.sight = &sighted{Sight: cfg.Sight, known: newDigests(cfg.HistoryTTL)}
	}
	if p != nil {
		m.forms, m.switches = append([]form{p.form}, p.form.stricter()...), findSwitches(p)
	}
	return m
}

// prompt is a request made ready for the engine.
type prompt struct {
	text    string  // as rendered, with a forced opening
	tokens  []int32 // of text
	forced  string  // the opening of a call that text ends with; the parser hears it as if the model had said it
	options dialect.Options
	stopIDs []int32 // that end the reply
	raw     bool    // see prompter.raw: of what follows only the account's salt is set
	short   int     // see chat.Usage

	account
	terms
	draft   transcript.Draft // whose text is text with the guard's marks
	encoded encoded          // tokens are its ids, with images in the places of their marks
	spoken  int              // draft.Text[spoken:] is what the model is taken to have said: the forced opening
}

// encoded is a draft's text as ids, and the images whose marks are among them.
type encoded struct {
	transcript.Tokens
	blocks []block
	took   time.Duration // making the text and its ids
}

// terms are what a reply begins with.
type terms struct {
	budget int  // of reasoning, in tokens; 0: no limit
	thinks bool // the model may begin with reasoning
	calls  bool // it begins with a call
}

// prompt renders and encodes a request. What was put back into one that then does not fit stays out.
func (m *prompter) prompt(ctx context.Context, r *chat.Request) (*prompt, error) {
	var seen *pictures
	if m.cfg.Sight != nil {
		var err error
		if seen, err = m.cfg.Sight.picturesOf(r.Messages); err != nil {
			return nil, err
		}
	}
	return m.promptWith(ctx, r, seen)
}

// promptWith is prompt with the request's images, whose bytes may be gone.
func (m *prompter) promptWith(ctx context.Context, r *chat.Request, seen *pictures) (*prompt, error) {
	began := time.Now()
	p, err := m.promptOf(ctx, r, seen, false)
	if err == nil && p.printed > 0 && m.fits(len(p.tokens), r) != nil {
		p, err = m.promptOf(ctx, r, seen, true)
	}
	if err == nil {
		p.encoded.took = time.Since(began)
	}
	return p, err
}

// promptOf makes a prompt; bare ones have the reasoning alone that the client has sent.
func (m *prompter) promptOf(ctx context.Context, r *chat.Request, seen *pictures, bare bool) (*prompt, error) {
	if e := checkBias(r.Sampling.LogitBias, m.tok.Size()); e != nil {
		return nil, e
	}
	if r.Prompt != nil {
		return m.raw(ctx, r)
	}
	if m.cfg.Template == nil {
		return nil, m.chatless()
	}
	if len(r.Messages) == 0 {
		return nil, chat.Invalidf("messages", "at least one message is needed")
	}
	if r.Choice.Kind == chat.ChoiceNamed && !slices.ContainsFunc(r.Tools, func(t chat.Tool) bool { return t.Name == r.Choice.Name }) {
		return nil, chat.Invalidf("tool_choice", "there is no tool named %q", r.Choice.Name)
	}
	if e := m.demandable(r); e != nil {
		return nil, e
	}
	force, begins := m.forcedOpening(r)
	think := m.thinking(r, begins)
	out, err := m.render(ctx, &ask{Request: r, think: think, seen: seen, bare: bare})
	if err != nil {
		return nil, err
	}
	p := &prompt{account: out.account, stopIDs: m.stopIDs, terms: terms{think.Budget, think.Mode != chat.Off && m.cfg.Info.Thinking, begins}}
	p.options.Continued, p.options.Form, p.options.NoRepair = out.continued, r.Form != nil, m.cfg.NoToolRepair
	if r.Choice.Kind != chat.ChoiceNone {
		schemas := make([]schema.Document, len(r.Tools)) // for the parser and the form of calls, each read once
		for i, t := range r.Tools {
			schemas[i].Raw = t.Parameters
			p.options.Tools = append(p.options.Tools, dialect.Tool{Name: t.Name, Schema: &schemas[i]})
		}
	}
	p.draft, p.encoded.blocks = out.draft(r.Messages), out.blocks
	p.draft.Plain = r.PlainHistory
	p.draft.Stops, p.draft.Says, p.draft.Tools = m.stops, m.says(p.options.Tools), len(p.options.Tools)
	p.draft.Session = p.session
	if err := p.encode(ctx, m, ""); err != nil {
		return nil, err
	}
	p.options.InReasoning = m.insideReasoning(p.tokens)
	if begins {
		if p.options.InReasoning {
			end, _ := m.family.LeaveReasoning()
			p.draft.Text += end
			p.options.InReasoning = false
		}
		p.forced = force
		if err := p.encode(ctx, m, force); err != nil {
			return nil, err
		}
	}
	p.count(p.text)
	return p, nil
}

// capped is a limit of tokens, 0 for none, within the cap.
func (m *prompter) capped(tokens int) int {
	if most := m.cfg.TokensCap; most > 0 {
		return min(tokens, most)
	}
	return tokens
}

// fits refuses a prompt that leaves no room, or less than was asked for where that is not to be lowered.
func (m *prompter) fits(tokens int, r *chat.Request) *chat.Error {
	limit, maxTokens := m.cfg.Engine.Context(), m.capped(r.MaxTokens)
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

// chatless refuses a conversation with a base model.
func (m *prompter) chatless() *chat.Error {
	return &chat.Error{Kind: chat.Invalid, Param: "model", Code: "no_chat_template",
		Msg: fmt.Sprintf("%q is a base model: it has no chat template, so it continues text and cannot chat. Send text to /v1/completions, "+
			"or start the server with --chat-template NAME or FILE (hearth serve --chat-template list shows the names)", m.cfg.Info.ID)}
}

// encode looks up the ids of the draft, continued by what the model is taken to have said.
func (p *prompt) encode(ctx context.Context, m *prompter, forced string) error {
	p.draft.Text += forced
	var err error
	if p.encoded.Tokens, err = m.history.Encode(ctx, p.salt, &p.draft); err != nil {
		return encodeError(err)
	}
	p.spoken = len(p.draft.Text) - len(forced)
	p.text = transcript.Unmark(p.draft.Text)
	return p.grow(m.guard)
}

// encodeError is that of a prompt that could not be encoded.
func encodeError(err error) error {
	var whole *tokenizer.WholeError
	if errors.As(err, &whole) {
		return chat.Boundf(chat.BoundWhole, "", "the prompt cannot be encoded: %v", whole)
	}
	return chat.AsError(err)
}

// remember takes in what was generated after the prompt; it is whole if the model has said all of it.
func (p *prompt) remember(h *transcript.History, ids []int32, whole bool) {
	if p.raw || p.draft.Plain {
		return
	}
	h.Remember(&p.encoded.Tokens, transcript.Answer{IDs: ids, Spoken: p.spoken, InReasoning: p.options.InReasoning, Whole: whole})
}

// forcedOpening is the start of a call to continue the prompt with, when the request demands a call. What follows it,
// the arguments and for "required" the name too, stays the model's, within what newCalls keeps it to. Formats
// without such an opening, and requests that continue a message, get none. Where calls begin with their names it may be
// empty, and the reply begins with a call all the same.
func (m *prompter) forcedOpening(r *chat.Request) (opening string, begins bool) {
	if m.cfg.Unforced || m.family.Force == nil || len(r.Tools) == 0 || r.Messages[len(r.Messages)-1].Role == chat.Assistant {
		return "", false
	}
	name := r.Choice.Name
	switch {
	case !r.Choice.Demands():
		return "", false
	case r.Choice.Kind == chat.ChoiceRequired && len(r.Tools) == 1:
		name = r.Tools[0].Name
	}
	force := strings.TrimRight(m.family.Force(name), " ")    // a blank belongs to the token after it
	if m.forms[0].ids == dialect.IDsNumbered && name != "" { // the number counts the calls of the conversation
		force = strings.Replace(force, ":0", fmt.Sprintf(":%d", len(callsOf(r.Messages))), 1)
	}
	return force, true
}

// callsOf are the calls of a conversation.
func callsOf(messages []chat.Message) (calls []*chat.ToolCall) {
	for i := range messages {
		for _, p := range messages[i].Parts {
			if p.Kind == chat.PartToolCall {
				calls = append(calls, p.Call)
			}
		}
	}
	return calls
}

// attribute tells the engine whose prompt p is. Prompts of one session, or of one caller among several, are one client; of
// others every request is to be one, with all its choices.
func attribute(p *engine.Prompt, o *chat.Origin) {
	p.Request, p.Background, p.Marked = o.ID, o.Background, o.Marked
	p.Salt, p.Party = o.Salt, party(o)
	p.Client = o.Party()
	if o.Session != "" {
		p.Session = p.Client
	}
}

// party names who may be told where prompts part: one session of one caller. All requests that name no session and have no
// key of their own are one. Unlike chat.Origin.Party it cannot be guessed for another caller.
func party(o *chat.Origin) uint64 {
	h := sha256.New()
	_, _ = h.Write(o.Caller[:]) // a hash takes everything
	_, _ = h.Write(o.Salt[:])
	_, _ = io.WriteString(h, o.Session)
	return binary.BigEndian.Uint64(h.Sum(nil)) | 1
}
