package generate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"hearth/internal/chat"
	"hearth/internal/jinja"
)

// rendering is the text of a prompt.
type rendering struct {
	text      string
	continued bool // it ends inside an assistant's message, which the model goes on with
	spans     []jinja.Span
	messages  *jinja.List // as the template has seen them
	blocks    []block     // of images
	account
}

// continueMark stands where an unfinished message is cut off; its last blank shows whether the template trims.
const continueMark = "\uE012hearth-continues-here "

// render runs the template, all within one budget of steps. Reasoning in tags with which an unfinished answer begins stays in the
// text where the template prints none there.
func (m *prompter) render(ctx context.Context, a *ask) (*rendering, error) {
	tools, err := tools(a.Request)
	if err != nil {
		return nil, err
	}
	limits, spent := m.cfg.Limits, 0
	limits.Spent = &spent
	switch f := &m.forms[0]; {
	case tools != nil && f.has(toolsInSystem):
		if a.told, err = f.tell(ctx, tools, limits); err != nil {
			return nil, renderError(err)
		}
		tools = nil
	case tools != nil && !f.has(toolsDeclared):
		m.leaveOut()
	}
	out, err := m.attempt(ctx, a, tools, limits)
	if a.inline == nil || err == nil && a.prints(m.family, out.text) {
		return out, err
	}
	a.asText = true
	if out, err = m.attempt(ctx, a, tools, limits); err == nil {
		m.unblock(a, out)
	}
	return out, err
}

// attempt renders a conversation. One that the template refuses is fitted more strictly and tried again; the error is the first
// refusal.
func (m *prompter) attempt(ctx context.Context, a *ask, tools jinja.Value, limits jinja.Limits) (*rendering, error) {
	talk := m.account(a)
	turns, err := m.turns(a, &talk)
	if err != nil {
		return nil, err
	}
	hasTools := tools != nil
	if !hasTools {
		tools = m.forms[0].noTools()
	}
	now := m.clocks.of(turns, m.cfg.Now)
	var refused error
	for i, f := range m.forms {
		if i > 0 { // the refusal may be one of reasoning that was put back
			if turns, err = m.turns(a, &account{}); err != nil {
				return nil, err
			}
		}
		f.seen = a.seen
		fitted := f.fit(turns)
		order, messages := a.seen.order(fitted), f.messages(ctx, fitted)
		turns = nil // used up, and large in a long conversation
		if err := ctx.Err(); err != nil {
			return nil, chat.AsError(err)
		}
		vars, err := m.variables(a.Request, messages, tools, a.think)
		if err != nil {
			return nil, err
		}
		setLegacy(m.cfg.Template, vars, now)
		out, err := m.renderVars(ctx, vars, hasTools, limits, now)
		if err == nil {
			out.account = talk
			return out, m.place(out, order)
		}
		if refused == nil {
			refused = err
		}
		if e := (*jinja.Error)(nil); !errors.As(err, &e) || e.Kind == jinja.Limit {
			break
		}
	}
	return nil, renderError(refused)
}

// turns are those of a request, not yet fitted to a form, with the text about tools.
func (m *prompter) turns(a *ask, talk *account) ([]turn, error) {
	turns, err := turnsOf(a.Messages, a.seen, m.cfg.RefuseMedia)
	if err != nil {
		return nil, err
	}
	if !a.PlainHistory {
		for i := range turns {
			for _, c := range turns[i].calls {
				c.said = m.history.CallID(a.Origin.Salt, c.id)
			}
		}
	}
	m.readInline(a, turns)
	talk.replay(m.history, turns)
	return m.switches.say(m.forms[0].withTold(turns, a.told), a.think, m.holds()), nil
}

// demandable refuses to demand a call where the prompt cannot have the tools.
func (m *prompter) demandable(r *chat.Request) *chat.Error {
	f := &m.forms[0]
	if f.has(toolsDeclared) || f.has(toolsInSystem) || len(r.Tools) == 0 || !r.Choice.Demands() {
		return nil
	}
	return chat.Invalidf("tool_choice", "the model's chat template has no place for tools, and %s, so no call can be demanded; leave tool_choice at auto, or start the server with %s",
		m.cfg.untold(), m.cfg.remedy())
}

// leaveOut warns, once, that the prompt cannot have a request's tools.
func (m *prompter) leaveOut() {
	if m.cfg.Warn == nil {
		return
	}
	m.leftOut.Do(func() {
		m.cfg.Warn("the chat template of " + m.cfg.Info.ID + " has no place for tools, and " + m.cfg.untold() +
			": requests are answered without their tools; " + m.cfg.remedy() + " puts them into the system text")
	})
}

// variables are all that a template sees. TemplateArgs of the request win over everything, but for thinking that is switched off
// for good. Configured ones win over nothing.
func (m *prompter) variables(r *chat.Request, messages *jinja.List, tools jinja.Value, think chat.Thinking) (*jinja.Dict, error) {
	vars := m.cfg.Template.tokens.Clone()
	if err := setArgs(vars, m.cfg.TemplateArgs); err != nil {
		return nil, err
	}
	vars.Set("messages", messages)
	vars.Set("tools", tools)
	vars.Set("documents", nil)
	vars.Set("add_generation_prompt", true)
	m.switches.set(vars, think)
	args := r.TemplateArgs
	if m.holds() {
		args = maps.Clone(args)
		maps.DeleteFunc(args, func(name string, _ json.RawMessage) bool { return slices.Contains(thinkingArgs, name) })
	}
	if err := setArgs(vars, args); err != nil {
		return nil, err
	}
	return vars, nil
}

// renderVars runs the template once. An assistant message at the end is continued, not answered: the text then ends where
// that message does, without the marks that would close the turn.
func (m *prompter) renderVars(ctx context.Context, vars *jinja.Dict, hasTools bool, limits jinja.Limits, now func() time.Time) (*rendering, error) {
	out := &rendering{}
	markVars(m.guard, vars)
	v, _ := vars.Get("messages")
	out.messages, _ = v.(*jinja.List)
	field := continueField(out.messages)
	if field != "" {
		vars.Set("add_generation_prompt", false)
	}
	text, spans, err := m.cfg.Template.forRequest(hasTools).RenderSpans(ctx, vars, limits, now)
	if err != nil {
		return nil, err
	}
	text, spans = preambles(m.family, text, spans, out.messages)
	out.text, out.spans = text, spans
	if field == "" {
		return out, nil
	}
	at := strings.LastIndex(text, strings.TrimSpace(continueMark))
	if at < 0 {
		return nil, chat.Invalidf("messages", "the last message cannot be continued: the model's chat template leaves out or changes its %s", field)
	}
	out.text, out.continued = text[:at], true
	if !strings.HasPrefix(text[at:], continueMark) { // the template trims, so what it would have trimmed goes too
		out.text = strings.TrimRightFunc(out.text, unicode.IsSpace)
	}
	return out, nil
}

// continueField marks the end of an assistant message that ends the conversation and returns the field it is in, "" if
// there is nothing to continue. An empty message is dropped: to continue nothing is to answer.
func continueField(msgs *jinja.List) string {
	if msgs == nil || len(msgs.Items) == 0 {
		return ""
	}
	last, ok := msgs.Items[len(msgs.Items)-1].(*jinja.Dict)
	if !ok {
		return ""
	}
	if role, _ := last.Get("role"); role != "assistant" {
		return ""
	}
	if _, calls := last.Get("tool_calls"); calls {
		return ""
	}
	content, _ := last.Get("content")
	if list, ok := content.(*jinja.List); ok {
		part := list.Items[len(list.Items)-1].(*jinja.Dict)
		if text, _ := part.Get("text"); text != "" {
			part.Set("text", text.(string)+continueMark)
			return "content"
		}
		part = list.Items[0].(*jinja.Dict)
		if thought, _ := part.Get("thinking"); thought != nil {
			part.Set("thinking", thought.(string)+continueMark)
			return "reasoning"
		}
	} else if text, _ := content.(string); text != "" {
		last.Set("content", text+continueMark)
		return "content"
	}
	if reasoning, _ := last.Get("reasoning_content"); reasoning != nil {
		last.Set("reasoning_content", reasoning.(string)+continueMark)
		last.Set("reasoning", reasoning.(string)+continueMark)
		last.Set("thinking", reasoning.(string)+continueMark)
		return "reasoning_content"
	}
	msgs.Items = msgs.Items[:len(msgs.Items)-1]
	return ""
}

// renderError turns a template's failure into the client's error: a refusal is the conversation's fault, so are
// reached limits; anything else is a template that cannot handle this kind of conversation.
func renderError(err error) error {
	var e *jinja.Error
	if !errors.As(err, &e) {
		return chat.AsError(err)
	}
	switch e.Kind {
	case jinja.Raised:
		return &chat.Error{Kind: chat.Invalid, Param: "messages", Code: "template_refused", Err: err,
			Msg: "the model's chat template refuses this conversation: " + head(e.Msg)}
	case jinja.Limit:
		return &chat.Error{Kind: chat.Invalid, Param: "messages", Code: "template_limit", Bound: chat.BoundTemplate, Err: err,
			Msg: "the model's chat template cannot render this conversation: " + e.Msg}
	}
	return &chat.Error{Kind: chat.Invalid, Param: "messages", Code: "template_failed", Err: err,
		Msg: "the model's chat template fails on this conversation: " + head(e.Error())}
}

// thinking is how the model is to think: as the request says, or as the server is set where the request does not say or may
// not. A reply that is forced to begin with a call has no room to think.
func (m *prompter) thinking(r *chat.Request, forced bool) chat.Thinking {
	t := r.Thinking
	switch {
	case forced, m.holds():
		t.Mode, t.Effort = chat.Off, ""
	case t.Mode == chat.Default:
		t.Mode = m.cfg.Thinking
		if t.Mode == chat.Default && t.Short && m.switches.works && !m.argsThink() {
			t.Mode = chat.Off
		}
	}
	t.Budget = cmp.Or(t.Budget, m.cfg.ThinkingBudget) // also for a template that thinks all the same
	return t
}

// holds reports that no request makes the model think.
func (m *prompter) holds() bool { return m.cfg.NoThinking && m.switches.works }

// thinkingArgs are the variables by which templates know whether and how much to think.
var thinkingArgs = []string{"enable_thinking", "thinking", "reasoning", "thinking_mode", "thinking_budget", "reasoning_effort", "thinking_effort", "reasoning_mode"}

// shortAdds is how many tokens a prompt has more because a short reply switches thinking off. Clients that count tokens do not
// say how long the reply may be, and compare the figures.
func (m *prompter) shortAdds(ctx context.Context, r *chat.Request, p *prompt) int {
	open := *r
	open.Thinking.Short = false
	if p.raw || p.calls || m.thinking(&open, false).Mode == m.thinking(r, false).Mode {
		return 0
	}
	q, err := m.promptWith(ctx, &open, p.seen)
	if err != nil { // the template refuses to think, so no client has counted that
		return 0
	}
	return len(p.tokens) - len(q.tokens)
}

// argsThink tells whether the configured variables of the template say anything of thinking.
func (m *prompter) argsThink() bool {
	return slices.ContainsFunc(thinkingArgs, func(name string) bool { return m.cfg.TemplateArgs[name] != nil })
}
