package openai

import (
	"encoding/json"
	"math"
	"strconv"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

const (
	maxChoices = 128
	maxTop     = 20 // top_logprobs
)

// request is a decoded call: the neutral form and what only this protocol's encoder needs.
type request struct {
	chat.Request
	stream       bool
	includeUsage bool
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

// decode reads the body of /v1/chat/completions. Besides OpenAI's fields it knows those other servers of open models
// have: top_k, min_p, repetition_penalty, chat_template_kwargs, enable_thinking, thinking, reasoning. Fields about
// OpenAI's own service (store, metadata, service_tier, prompt_cache_key, user, …) are ignored.
func decode(body wire.Value) (*request, *chat.Error) {
	d := &decoder{}
	if !d.Want(body, wire.Object) {
		return nil, d.Err()
	}
	r := &request{stream: d.Bool(body.Get("stream"))}
	if v := body.Get("stream_options"); !v.Absent() && d.Want(v, wire.Object) {
		r.includeUsage = d.Bool(v.Get("include_usage"))
	}
	r.Model = d.OptString(body.Get("model"))
	d.tools(r, body)
	d.toolChoice(r, body.Get("tool_choice"))
	if v := body.Get("parallel_tool_calls"); !v.Absent() {
		r.Choice.Single = !d.Bool(v)
	}
	d.messages(r, body.Get("messages"))
	d.limits(r, body)
	d.sampling(r, body)
	d.thinking(r, body)
	d.responseFormat(r, body.Get("response_format"))
	if err := d.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// decoder adds the readers of this protocol's objects.
type decoder struct {
	wire.Decoder
}

func (d *decoder) limits(r *request, f wire.Value) {
	n := d.Int(f.Get("max_completion_tokens"), 1, math.MaxInt)
	if old := d.Int(f.Get("max_tokens"), 1, math.MaxInt); n == nil {
		n = old
	}
	if n != nil {
		r.MaxTokens = *n
	}
	r.Stop = d.Stops(f.Get("stop"))
	if n := d.Int(f.Get("n"), 1, maxChoices); n != nil {
		r.N = *n
	}
	r.Logprobs = d.Bool(f.Get("logprobs"))
	if v := f.Get("top_logprobs"); !v.Absent() {
		if n := d.Int(v, 0, maxTop); n != nil && *n > 0 {
			r.TopLogprobs = *n
			if !r.Logprobs {
				d.Fail(v, "needs logprobs to be true")
			}
		}
	}
}

func (d *decoder) sampling(r *request, f wire.Value) {
	r.Sampling = chat.Sampling{
		Temperature:       d.Float(f.Get("temperature"), 0, 2),
		TopP:              d.Float(f.Get("top_p"), 0, 1),
		MinP:              d.Float(f.Get("min_p"), 0, 1),
		TopK:              d.Int(f.Get("top_k"), -1, math.MaxInt32),
		RepetitionPenalty: d.Float(f.Get("repetition_penalty"), 0, 10),
		PresencePenalty:   d.Float(f.Get("presence_penalty"), -2, 2),
		FrequencyPenalty:  d.Float(f.Get("frequency_penalty"), -2, 2),
	}
	if k := r.Sampling.TopK; k != nil && *k < 0 { // vLLM's spelling of "all"
		*k = 0
	}
	if p := r.Sampling.RepetitionPenalty; p != nil && *p == 0 { // some clients' spelling of "none"
		*p = 1
	}
	if n := d.Int(f.Get("seed"), math.MinInt, math.MaxInt); n != nil {
		seed := uint64(*n)
		r.Sampling.Seed = &seed
	}
	for k, v := range d.Fields(f.Get("logit_bias")) {
		id, err := strconv.ParseInt(k, 10, 32)
		if err != nil || id < 0 {
			d.Fail(v, "the keys of logit_bias are token ids, got %s", wire.Quote(k))
			return
		}
		bias := d.Float(v, -100, 100)
		if bias == nil {
			d.Fail(v, "expected a number, got null")
			return
		}
		if r.Sampling.LogitBias == nil {
			r.Sampling.LogitBias = map[int32]float64{}
		}
		r.Sampling.LogitBias[int32(id)] = *bias
	}
}

// thinking gathers the spellings in use: enable_thinking, alone or among the template's arguments; thinking.type;
// reasoning_effort or reasoning.effort, whose "none" switches thinking off.
func (d *decoder) thinking(r *request, f wire.Value) {
	for k, v := range d.Fields(f.Get("chat_template_kwargs")) {
		if r.TemplateArgs == nil {
			r.TemplateArgs = map[string]json.RawMessage{}
		}
		r.TemplateArgs[k] = v.Raw()
		if (k == "enable_thinking" || k == "thinking") && v.Kind() == wire.Bool {
			r.Thinking.Mode = toggle(d.Bool(v))
		}
	}
	if v := f.Get("enable_thinking"); !v.Absent() {
		r.Thinking.Mode = toggle(d.Bool(v))
	}
	if v := f.Get("thinking"); v.Kind() == wire.Bool {
		r.Thinking.Mode = toggle(d.Bool(v))
	} else if !v.Absent() && d.Want(v, wire.Object) {
		switch kind := d.OptString(v.Get("type")); kind {
		case "enabled":
			r.Thinking.Mode = chat.On
		case "disabled":
			r.Thinking.Mode = chat.Off
		}
		if n := d.Int(v.Get("budget_tokens"), math.MinInt, math.MaxInt); n != nil && *n > 0 {
			r.Thinking.Budget = *n
		}
	}
	effort := d.OptString(f.Get("reasoning_effort"))
	if v := f.Get("reasoning"); !v.Absent() && d.Want(v, wire.Object) {
		if s := d.OptString(v.Get("effort")); s != "" {
			effort = s
		}
		if n := d.Int(v.Get("max_tokens"), 1, math.MaxInt); n != nil {
			r.Thinking.Budget = *n
		}
	}
	if effort == "none" {
		r.Thinking.Mode = chat.Off
		return
	}
	r.Thinking.Effort = effort
}

func toggle(on bool) chat.Toggle {
	if on {
		return chat.On
	}
	return chat.Off
}

// responseFormat puts a wanted format to the model in words. Nothing constrains the output yet, so a client that asks
// for a guarantee is refused rather than misled.
func (d *decoder) responseFormat(r *request, v wire.Value) {
	if v.Absent() || !d.Want(v, wire.Object) {
		return
	}
	switch kind := d.String(v.Get("type")); kind {
	case "text":
	case "json_object":
		wire.AppendSystem(&r.Request, wire.JSONInstruction(nil))
	case "json_schema":
		s := v.Get("json_schema")
		if !d.Want(s, wire.Object) {
			return
		}
		if d.Bool(s.Get("strict")) {
			d.Fail(s.Get("strict"), "strict schemas are not enforced by this version; send strict: false to have the schema put to the model in words")
			return
		}
		if schema := s.Get("schema"); !schema.Absent() {
			wire.AppendSystem(&r.Request, wire.JSONInstruction(d.Compact(schema)))
			return
		}
		wire.AppendSystem(&r.Request, wire.JSONInstruction(nil))
	default:
		d.Fail(v.Get("type"), "unknown response format %s: must be text, json_object or json_schema", wire.Quote(kind))
	}
}

// tools keeps functions. Tools of other types (custom, web_search, …) only work where OpenAI runs or parses them; the
// model does not learn of them.
func (d *decoder) tools(r *request, f wire.Value) {
	for _, t := range d.Items(f.Get("tools")) {
		if !d.Want(t, wire.Object) {
			return
		}
		if kind := d.OptString(t.Get("type")); kind != "" && kind != "function" {
			continue
		}
		fn := t.Get("function")
		if !d.Want(fn, wire.Object) {
			return
		}
		tool := chat.Tool{
			Name: d.String(fn.Get("name")), Description: d.OptString(fn.Get("description")),
			Parameters: d.ObjectRaw(fn.Get("parameters")), Strict: d.Bool(fn.Get("strict")),
		}
		if tool.Name == "" {
			d.Fail(fn.Get("name"), "must not be empty")
		}
		r.Tools = append(r.Tools, tool)
	}
	if v := f.Get("functions"); !v.Absent() {
		d.Fail(v, "functions and function_call are not supported: send tools and tool_choice")
	}
}

func (d *decoder) toolChoice(r *request, v wire.Value) {
	if v.Absent() {
		return
	}
	if v.Kind() == wire.String {
		r.Choice.Kind = d.choiceMode(v, r)
		return
	}
	if !d.Want(v, wire.Object) {
		return
	}
	switch kind := d.String(v.Get("type")); kind {
	case "function":
		fn := v.Get("function")
		if !d.Want(fn, wire.Object) {
			return
		}
		name := d.String(fn.Get("name"))
		if !hasTool(r.Tools, name) {
			d.Fail(fn.Get("name"), "there is no function named %s in tools", wire.Quote(name))
		}
		r.Choice.Kind, r.Choice.Name = chat.ChoiceNamed, name
	case "allowed_tools":
		d.allowedTools(r, v.Get("allowed_tools"))
	default:
		d.Fail(v.Get("type"), "unknown tool_choice %s: must be function or allowed_tools", wire.Quote(kind))
	}
}

func (d *decoder) choiceMode(v wire.Value, r *request) chat.ChoiceKind {
	switch mode := d.String(v); mode {
	case "auto":
	case "none":
		return chat.ChoiceNone
	case "required", "any":
		if len(r.Tools) == 0 {
			d.Fail(v, "%s needs at least one function in tools", mode)
		}
		return chat.ChoiceRequired
	default:
		d.Fail(v, "unknown tool_choice %s: must be none, auto, required or an object", wire.Quote(mode))
	}
	return chat.ChoiceAuto
}

// allowedTools narrows the tools to those listed.
func (d *decoder) allowedTools(r *request, v wire.Value) {
	if !d.Want(v, wire.Object) {
		return
	}
	allowed := map[string]bool{}
	for _, t := range d.Items(v.Get("tools")) {
		if !d.Want(t, wire.Object) {
			return
		}
		fn := t.Get("function")
		if !d.Want(fn, wire.Object) {
			return
		}
		name := d.String(fn.Get("name"))
		if !hasTool(r.Tools, name) {
			d.Fail(fn.Get("name"), "there is no function named %s in tools", wire.Quote(name))
		}
		allowed[name] = true
	}
	var kept []chat.Tool
	for _, t := range r.Tools {
		if allowed[t.Name] {
			kept = append(kept, t)
		}
	}
	r.Tools = kept
	r.Choice.Kind = d.choiceMode(v.Get("mode"), r)
}

func hasTool(tools []chat.Tool, name string) bool {
	for i := range tools {
		if tools[i].Name == name {
			return true
		}
	}
	return false
}
