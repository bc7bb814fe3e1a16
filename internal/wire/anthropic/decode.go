package anthropic

import (
	"math"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// request is a decoded call: the neutral form and what only this protocol's encoder needs.
type request struct {
	chat.Request
	stream       bool
	asksThinking bool // for blocks of it
	omitThinking bool // thinking.display is "omitted": thinking blocks come empty, their text inside the signature
}

// Decode reads the body of a request outside a server.
func Decode(body []byte) (*chat.Request, *chat.Error) {
	v, err := wire.Parse(body)
	if err != nil {
		return nil, err
	}
	r, err := decode(v)
	if err != nil {
		return nil, err
	}
	return &r.Request, nil
}

// decode reads the body of /v1/messages or /v1/messages/count_tokens. Fields that ask for what a local server has no
// notion of (cache_control, metadata, service_tier, context_management, container, mcp_servers, …) are ignored.
func decode(body wire.Value) (*request, *chat.Error) {
	d := &decoder{}
	if !d.Want(body, wire.Object) {
		return nil, d.Err()
	}
	if err := d.thread(body.Get("thread")); err != nil {
		return nil, err
	}
	r := &request{stream: d.Bool(body.Get("stream"))}
	r.Model = d.OptString(body.Get("model"))
	r.KeepAlive = d.KeepAlive(body.Get("keep_alive"))
	if n := d.Limit(body.Get("max_tokens"), 1); n != nil {
		r.MaxTokens = max(*n, 0)
	}
	r.ClampMaxTokens = true
	d.tools(r, body.Get("tools"))
	d.toolChoice(r, body.Get("tool_choice"))
	if parts := d.system(body.Get("system")); len(parts) > 0 {
		r.Messages = append(r.Messages, chat.Message{Role: chat.System, Parts: parts})
	}
	d.messages(r, body.Get("messages"))
	d.thinking(r, body.Get("thinking"))
	d.outputConfig(r, body)
	r.Thinking.Short = body.Get("thinking").Absent() && r.Thinking.Effort == "" && 0 < r.MaxTokens && r.MaxTokens < leastBudget
	if v := body.Get("stop_sequences"); v.Absent() || d.Want(v, wire.Array) {
		r.Stop = d.Stops(v)
	}
	d.Sampling(&r.Sampling, body, true)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// threadNotFound is the code on which clients send their whole conversation.
const threadNotFound = "thread_not_found"

// thread reads who holds the conversation. A client may ask to begin one here; but no server that restarts can promise to
// hold it, so the next message, which has only what is new, is told that it is gone, and comes again whole. What was
// computed for it is in the prompt cache either way.
func (d *decoder) thread(v wire.Value) *chat.Error {
	if v.Absent() || !d.Want(v, wire.Object) {
		return d.Err()
	}
	switch kind := d.String(v.Get("type")); kind {
	case "create":
	case "continue":
		return &chat.Error{Kind: chat.NotFound, Param: "thread.previous_message_id", Code: threadNotFound,
			Msg: "conversations are not held here: send all messages"}
	default:
		d.Fail(v.Get("type"), "unknown thread type %s: must be create or continue", wire.Quote(kind))
	}
	return d.Err()
}

// strict says what Anthropic would miss, and leaves a max_tokens that is too large to be refused.
func (r *request) strict(maxTokens wire.Value) *chat.Error {
	switch {
	case r.Model == "":
		return chat.Invalidf("model", "is required and must be a string")
	case maxTokens.Absent():
		return chat.Invalidf("max_tokens", "is required and must be a number")
	}
	return wire.Strict(&r.Request, 1, maxTokens)
}

// decoder adds the readers of this protocol's objects.
type decoder struct {
	wire.Decoder
	byName   map[string]*chat.Tool
	server   map[string]bool // names of server tools, which nobody here can run
	inResult bool            // inside a tool result

	references int // bytes that toolReference has printed
	depth      int // of documents and search results in each other
}

// tools keeps the client's own tools. Server tools (web_search_20250305, bash_20250124, …) have a versioned type and no
// schema: nobody here could run them, so the model does not learn of them.
func (d *decoder) tools(r *request, v wire.Value) {
	d.server = map[string]bool{}
	names := map[string]bool{}
	for _, t := range d.Tools(v) {
		if !d.Want(t, wire.Object) {
			return
		}
		kind := d.OptString(t.Get("type"))
		schema := t.Get("input_schema")
		if kind != "" && kind != "custom" && schema.Absent() {
			d.server[d.OptString(t.Get("name"))] = true
			continue
		}
		tool := chat.Tool{
			Name: d.String(t.Get("name")), Description: d.OptString(t.Get("description")),
			Parameters: d.ObjectRaw(schema), Strict: d.Bool(t.Get("strict")), Deferred: d.Bool(t.Get("defer_loading")),
			Path: schema.Path(),
		}
		switch {
		case tool.Name == "":
			d.Fail(t.Get("name"), "must not be empty")
		case names[tool.Name]:
			d.Fail(t.Get("name"), "there is another tool named %s: names must be unique", wire.Quote(tool.Name))
		}
		names[tool.Name] = true
		r.Tools = append(r.Tools, tool)
	}
	d.byName = make(map[string]*chat.Tool, len(r.Tools))
	for i := range r.Tools {
		d.byName[r.Tools[i].Name] = &r.Tools[i]
	}
}

func (d *decoder) toolChoice(r *request, v wire.Value) {
	if v.Absent() || !d.Want(v, wire.Object) {
		return
	}
	switch kind := d.String(v.Get("type")); kind {
	case "auto":
		r.Choice.Kind = chat.ChoiceAuto
	case "any":
		r.Choice.Kind = chat.ChoiceRequired
	case "none":
		r.Choice.Kind = chat.ChoiceNone
	case "tool":
		name := d.String(v.Get("name"))
		switch {
		case d.server[name]:
			d.Fail(v.Get("name"), "%s is a server tool, which this server cannot run", wire.Quote(name))
		case d.byName[name] == nil:
			d.Fail(v.Get("name"), "there is no tool named %s in tools", wire.Quote(name))
		}
		r.Choice.Kind, r.Choice.Name = chat.ChoiceNamed, name
	default:
		d.Fail(v.Get("type"), "unknown tool_choice %s: must be auto, any, tool or none", wire.Quote(kind))
	}
	if r.Choice.Kind == chat.ChoiceRequired && len(r.Tools) == 0 {
		d.Fail(v.Get("type"), "any needs at least one tool in tools")
	}
	r.Choice.Single = d.Bool(v.Get("disable_parallel_tool_use"))
}

// leastBudget is the smallest budget of thinking that Anthropic knows. Its models do not think unless they are asked to; a
// model that does by itself would use up a reply that is shorter, and the client, which is not shown thinking that it did not
// ask for, would get nothing.
const leastBudget = 1024

// thinking: "adaptive" and "between_tools" leave it to the model, which is what our default does. Real clients send
// budgets of -1 and budgets as large as max_tokens; neither limits anything, so neither is an error.
func (d *decoder) thinking(r *request, v wire.Value) {
	if v.Absent() || !d.Want(v, wire.Object) {
		return
	}
	r.asksThinking = true
	switch kind := d.String(v.Get("type")); kind {
	case "enabled":
		r.Thinking.Mode = chat.On
	case "disabled":
		r.Thinking.Mode, r.asksThinking = chat.Off, false
	case "adaptive", "between_tools":
	default:
		d.Fail(v.Get("type"), "unknown thinking type %s: must be enabled, adaptive, disabled or between_tools", wire.Quote(kind))
	}
	if n := d.Int(v.Get("budget_tokens"), math.MinInt, math.MaxInt); n != nil && *n > 0 && (r.MaxTokens == 0 || *n < r.MaxTokens) {
		r.Thinking.Budget = *n
	}
	r.omitThinking = d.OptString(v.Get("display")) == "omitted"
}

// outputConfig reads effort and format. The format's schema is put to the model in words, too.
func (d *decoder) outputConfig(r *request, f wire.Value) {
	format := f.Get("output_format")
	if c := f.Get("output_config"); !c.Absent() {
		if !d.Want(c, wire.Object) {
			return
		}
		r.Thinking.Effort = d.OptString(c.Get("effort"))
		if v := c.Get("format"); !v.Absent() {
			if !format.Absent() {
				d.Fail(format, "the text cannot have two forms: leave out this or output_config.format")
			}
			format = v
		}
	}
	if format.Absent() || !d.Want(format, wire.Object) {
		return
	}
	if kind := d.String(format.Get("type")); kind != "json_schema" {
		d.Fail(format.Get("type"), "unknown output format %s: must be json_schema", wire.Quote(kind))
	}
	schema := format.Get("schema")
	if d.Want(schema, wire.Object) {
		source := d.Compact(schema)
		r.Form = &chat.Form{Kind: chat.FormSchema, Source: string(source), Path: schema.Path()}
		wire.AppendSystem(&r.Request, wire.JSONInstruction(source))
	}
}

// billingHeader starts a line that Claude Code puts in front of its system prompt and that differs between sessions.
// It would keep every prompt from sharing a prefix with another.
const billingHeader = "x-anthropic-billing-header:"

func (d *decoder) system(v wire.Value) []chat.Part {
	if v.Absent() {
		return nil
	}
	if v.Kind() == wire.String {
		return wire.TextParts(stripBilling(d.String(v)))
	}
	var parts wire.Parts
	for _, b := range d.Parts(v) {
		if !d.Want(b, wire.Object) {
			return nil
		}
		if kind := d.String(b.Get("type")); kind != "text" {
			d.Fail(b.Get("type"), "unknown block type %s: a system prompt has text blocks only", wire.Quote(kind))
		}
		parts.Text(stripBilling(d.String(b.Get("text"))))
	}
	return parts.All()
}

func stripBilling(s string) string {
	if !strings.HasPrefix(s, billingHeader) {
		return s
	}
	_, rest, _ := strings.Cut(s, "\n")
	return strings.TrimLeft(rest, "\n")
}

func (d *decoder) messages(r *request, v wire.Value) {
	if !d.Want(v, wire.Array) {
		return
	}
	n := 0
	for _, m := range d.Messages(v) {
		n++
		d.message(r, m)
	}
	if n == 0 {
		d.Fail(v, "must hold at least one message")
	}
}

func (d *decoder) message(r *request, m wire.Value) {
	if !d.Want(m, wire.Object) {
		return
	}
	content := m.Get("content")
	switch role := d.String(m.Get("role")); role {
	case "user":
		d.user(r, content)
	case "assistant":
		r.Messages = append(r.Messages, wire.Turns(d.blocks(content, chat.Assistant))...)
	case "system":
		r.Messages = append(r.Messages, chat.Message{Role: chat.System, Parts: d.blocks(content, chat.System)})
	default:
		d.Fail(m.Get("role"), "unknown role %s: must be user, assistant or system", wire.Quote(role))
	}
}
