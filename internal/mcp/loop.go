package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"hearth/internal/chat"
	"hearth/internal/regular"
	"hearth/internal/wire"
)

// Models are models that may call the tools of a Host's servers, in replies to requests that ask for that.
type Models struct {
	chat.Models
	Host *Host
}

// Open implements chat.Models.
func (m Models) Open(ctx context.Context, name string) (chat.Generator, error) {
	g, err := m.Models.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return generator{g, m.Host}, nil
}

// generator runs calls of such tools itself.
type generator struct {
	chat.Generator
	host *Host
}

// Count implements chat.Generator.
func (g generator) Count(ctx context.Context, r *chat.Request) (int, error) {
	if r.MCP != nil {
		with, _, err := g.host.equip(ctx, r)
		if err != nil {
			return 0, err
		}
		r = with
	}
	return g.Generator.Count(ctx, r)
}

// Generate implements chat.Generator. The reply of a request that asks for tools of servers is that of several rounds: what the
// model said, its calls, their results, and what it said to those.
func (g generator) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	if r.MCP == nil {
		return g.Generator.Generate(ctx, r)
	}
	with, tools, err := g.host.equip(ctx, r)
	if err != nil {
		return nil, err
	}
	events, err := g.Generator.Generate(ctx, with)
	if err != nil {
		return nil, err
	}
	cfg, _ := g.host.now()
	l := &loop{generator: g, cfg: cfg, ctx: ctx, request: with, tools: tools, most: cfg.Calls, until: time.Now().Add(cfg.Time)}
	if n := r.MCP.Calls; n > 0 {
		l.most = min(l.most, n)
	}
	return func(yield func(chat.Event, error) bool) {
		l.yield = yield
		l.run(events)
	}, nil
}

// equip is r with the tools that it asks for, and those by their full names. A tool of the client's own goes before one of the
// same name.
func (h *Host) equip(ctx context.Context, r *chat.Request) (*chat.Request, map[string]*Tool, error) {
	switch {
	case r.Prompt != nil:
		return nil, nil, chat.Invalidf("mcp", "tools are for conversations: use chat completions, messages or responses")
	case r.N > 1:
		return nil, nil, chat.Invalidf("n", "with mcp there is one choice")
	}
	chosen, err := h.choose(ctx, r.MCP.Servers)
	if err != nil {
		return nil, nil, err
	}
	with := *r
	with.MCP = nil
	with.Tools, with.Messages = slices.Clone(r.Tools), slices.Clone(r.Messages)
	taken, tools := map[string]bool{}, map[string]*Tool{}
	for i := range r.Tools {
		taken[r.Tools[i].Name] = true
	}
	for _, s := range chosen {
		s.mu.Lock()
		for _, t := range s.tools {
			if t.Allowed && !taken[t.Name] {
				tools[t.Name] = t
				with.Tools = append(with.Tools, chat.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
			}
		}
		s.mu.Unlock()
	}
	switch {
	case len(tools) == 0:
		return nil, nil, chat.Invalidf("mcp", "none of these MCP servers has a tool that its file allows: GET /v1/mcp/servers tells how it stands with them")
	case len(with.Tools) > wire.MaxTools:
		return nil, nil, chat.Boundf(chat.BoundTools, "mcp", "there are %d tools with those of MCP servers: at most %d in one request", len(with.Tools), wire.MaxTools)
	}
	return &with, tools, nil
}

// choose finds servers by their names. It waits until each was tried; one that was named and is not connected is an error.
func (h *Host) choose(ctx context.Context, names []string) (chosen []*server, err error) {
	cfg, servers := h.now()
	all := slices.Equal(names, []string{chat.AllServers})
	for _, name := range names {
		if all || slices.ContainsFunc(servers, func(s *server) bool { return s.Name == name }) {
			continue
		}
		if i := slices.IndexFunc(cfg.Faults, func(f Fault) bool { return f.Server == name }); i >= 0 {
			return nil, chat.Invalidf("mcp", "the MCP server %s is left out: %v", regular.Quote(name), cfg.Faults[i])
		}
		return nil, chat.Invalidf("mcp", "there is no MCP server named %s: GET /v1/mcp/servers lists them", regular.Quote(name))
	}
	for _, s := range servers {
		if !all && !slices.Contains(names, s.Name) {
			continue
		}
		select {
		case <-s.tried:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !all && s.status().State != Connected {
			return nil, s.absent()
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

// loop is a reply of several rounds.
type loop struct {
	generator
	cfg     *Config // as the reply began
	ctx     context.Context
	request *chat.Request // of the round; its messages and its choice change
	tools   map[string]*Tool
	most    int       // calls
	until   time.Time // no call runs after that
	yield   func(chat.Event, error) bool

	usage chat.Usage // of the rounds that have ended
	begun bool       // the first of them has
	spent bool       // a bound is met: the model answers with what it has
	calls int        // that were run
	own   int        // calls that are the client's to carry out
	ran   int        // that are not
}

// round is what a model said once.
type round struct {
	parts  []chat.Part
	kind   chat.PartKind // of the text under way
	text   strings.Builder
	calls  []*chat.ToolCall // that are to be run here, as they ended
	first  int              // number of the first of those
	own    bool             // there are others
	finish chat.Event       // how it ended
}

func (l *loop) run(events iter.Seq2[chat.Event, error]) {
	for n := 1; ; n++ {
		r, ok := l.listen(events)
		if !ok {
			return
		}
		if len(r.calls) == 0 || r.finish.Finish != chat.FinishToolCalls {
			l.end(&r.finish)
			return
		}
		results, ok := l.perform(r)
		switch {
		case !ok:
			return
		case r.own:
			l.end(&r.finish)
			return
		case l.request.Choice.Kind == chat.ChoiceNone: // it was told to call nothing
			r.finish.Finish = chat.FinishStop
			l.end(&r.finish)
			return
		}
		l.add(r.finish.Usage)
		if most := l.request.MaxTokens; most > 0 {
			if l.request.MaxTokens -= r.finish.Usage.Output; l.request.MaxTokens <= 0 {
				r.finish.Finish, r.finish.Usage = chat.FinishLength, &chat.Usage{}
				l.end(&r.finish)
				return
			}
		}
		l.request.Choice = chat.ToolChoice{Single: l.request.Choice.Single} // a call that was demanded has been made
		if l.spent = l.spent || n >= l.cfg.Rounds || l.calls >= l.most || time.Now().After(l.until); l.spent {
			l.request.Choice.Kind = chat.ChoiceNone
			if !slices.Contains(l.usage.Bounds, chat.BoundMCP) {
				l.usage.Bounds = append(l.usage.Bounds, chat.BoundMCP)
			}
		}
		var err error
		if events, err = l.next(r, results); err != nil {
			l.yield(chat.Event{Finish: chat.FinishError, Usage: &l.usage}, err)
			return
		}
	}
}

// listen passes on what the model says in a round, but for its end, until there is no more; false: there will be no more at all.
func (l *loop) listen(events iter.Seq2[chat.Event, error]) (r *round, ok bool) {
	r = &round{first: l.ran}
	numbers := map[int]int{} // of calls, by those that the round gives them
	hosted := map[int]*chat.ToolCall{}
	for e, err := range events {
		if err != nil {
			usage := l.usage
			if e.Usage != nil {
				l.add(e.Usage)
				usage = l.usage
			}
			e.Usage = &usage
			l.yield(e, err)
			return r, false
		}
		switch e.Kind {
		case chat.EventStart:
			if l.begun { // it is one reply
				continue
			}
		case chat.EventText:
			r.say(chat.PartText, e.Text)
		case chat.EventReasoning:
			r.say(chat.PartReasoning, e.Text)
		case chat.EventToolStart, chat.EventToolArgs, chat.EventToolEnd:
			l.mark(r, &e, numbers, hosted)
		case chat.EventFinish:
			r.endText()
			r.finish = e
			if e.Usage == nil {
				r.finish.Usage = &chat.Usage{}
			}
			return r, true
		}
		if !l.yield(e, nil) {
			return r, false
		}
	}
	l.yield(chat.Event{Usage: &l.usage}, errors.New("the reply ended without its finish event"))
	return r, false
}

// mark says of an event of a call whether that is run here, and numbers it.
func (l *loop) mark(r *round, e *chat.Event, numbers map[int]int, hosted map[int]*chat.ToolCall) {
	if e.Kind == chat.EventToolStart {
		call := &chat.ToolCall{}
		if e.Call != nil {
			*call = *e.Call
		}
		if t := l.tools[call.Name]; t != nil {
			call.MCP = &chat.MCPTool{Server: t.Server, Name: t.Own}
			if call.ID == "" {
				call.ID = wire.NewID("call_")
			}
			hosted[e.Tool], numbers[e.Tool] = call, l.ran
			l.ran++
		} else {
			r.own = true
			numbers[e.Tool] = l.own
			l.own++
		}
		e.Tool, e.Call = numbers[e.Tool], call
		return
	}
	call := hosted[e.Tool]
	e.Tool = numbers[e.Tool]
	if e.Kind == chat.EventToolEnd && call != nil {
		if e.Call != nil {
			call.Arguments = e.Call.Arguments
		}
		e.Call = call
		r.calls = append(r.calls, call)
		r.endText()
		r.parts = append(r.parts, chat.Part{Kind: chat.PartToolCall, Call: call})
	}
}

// say adds to what the model said.
func (r *round) say(kind chat.PartKind, text string) {
	if r.kind != kind {
		r.endText()
		r.kind = kind
	}
	r.text.WriteString(text)
}

// endText ends the text under way.
func (r *round) endText() {
	if r.text.Len() > 0 {
		r.parts = append(r.parts, chat.Part{Kind: r.kind, Text: r.text.String()})
		r.text.Reset()
	}
}

// perform runs the calls of a round, one after the other; false: nobody waits for more.
func (l *loop) perform(r *round) (results []*chat.ToolResult, ok bool) {
	for i, call := range r.calls {
		res, err := l.call(call)
		if err != nil {
			l.add(r.finish.Usage)
			l.yield(chat.Event{Finish: chat.FinishCancelled, Usage: &l.usage}, err)
			return nil, false
		}
		result := &chat.ToolResult{CallID: call.ID, Parts: wire.TextParts(res.Text), IsError: res.IsError}
		results = append(results, result)
		if !l.yield(chat.Event{Kind: chat.EventToolResult, Tool: r.first + i, Call: call, Result: result}, nil) {
			return nil, false
		}
	}
	return results, true
}

// call runs one call, if it still may; the error is the context's.
func (l *loop) call(call *chat.ToolCall) (*Result, error) {
	not := func(why string) (*Result, error) {
		l.spent = true
		return &Result{"not run: " + why, true}, nil
	}
	switch {
	case l.request.Choice.Kind == chat.ChoiceNone:
		return not("no further call may be made in this reply")
	case l.calls >= l.most:
		return not(fmt.Sprintf("this reply has had its %d calls", l.most))
	case time.Now().After(l.until):
		return not(fmt.Sprintf("the %s for calls in this reply are over", l.cfg.Time))
	}
	l.calls++
	ctx, cancel := context.WithDeadline(l.ctx, l.until)
	defer cancel()
	res, err := l.host.Call(ctx, call.Name, call.Arguments)
	switch {
	case err == nil:
		return res, nil
	case l.ctx.Err() != nil:
		return nil, l.ctx.Err()
	case ctx.Err() != nil:
		l.spent = true
		return &Result{fmt.Sprintf("broken off: the %s for calls in this reply are over", l.cfg.Time), true}, nil
	}
	return &Result{chat.AsError(err).Msg, true}, nil
}

// next asks the model again, with the results. Results that do not fit are left out.
func (l *loop) next(r *round, results []*chat.ToolResult) (iter.Seq2[chat.Event, error], error) {
	said := chat.Message{Role: chat.Assistant, Parts: r.parts}
	before := slices.Clip(l.request.Messages)
	answer := func() (iter.Seq2[chat.Event, error], error) {
		turn := chat.Message{Role: chat.ToolRole}
		for _, res := range results {
			turn.Parts = append(turn.Parts, chat.Part{Kind: chat.PartToolResult, Result: res})
		}
		l.request.Messages = append(before, said, turn)
		return l.Generator.Generate(l.ctx, l.request)
	}
	events, err := answer()
	var e *chat.Error
	if !errors.As(err, &e) || e.Kind != chat.ContextLength {
		return events, err
	}
	for i, res := range results {
		n := len(chat.Text(res.Parts))
		results[i] = &chat.ToolResult{CallID: res.CallID, IsError: true, Parts: wire.TextParts(fmt.Sprintf("the result has %d bytes, more than there is room for", n))}
	}
	return answer()
}

// end ends the reply.
func (l *loop) end(finish *chat.Event) {
	l.add(finish.Usage)
	finish.Usage = &l.usage
	l.yield(*finish, nil)
}

// add adds what a round used. What cannot be added up is the first round's, which the client was told of.
func (l *loop) add(u *chat.Usage) {
	switch {
	case u == nil:
	case !l.begun:
		bounds := l.usage.Bounds
		l.usage = *u
		l.usage.Bounds = slices.Concat(u.Bounds, bounds)
	default:
		s := &l.usage
		s.Prompt += u.Prompt
		s.Cached += u.Cached
		s.Disk += u.Disk
		s.Added += u.Added
		s.Output += u.Output
		s.Reasoning += u.Reasoning
		s.Tokenized += u.Tokenized
		s.Queued += u.Queued
		s.Matched += u.Matched
		s.Prefill += u.Prefill
		s.Decode += u.Decode
		s.Bounds, s.Loose, s.Mended = slices.Concat(s.Bounds, u.Bounds), slices.Concat(s.Loose, u.Loose), slices.Concat(s.Mended, u.Mended)
		s.Limit, s.Form = max(s.Limit, u.Limit), cmp.Or(u.Form, s.Form)
	}
	l.begun = true
}
