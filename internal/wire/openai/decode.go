package openai

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

const (
	maxChoices = 128
	maxTop     = 20 // top_logprobs
	// maxBias bounds the entries of logit_bias: no vocabulary has as many tokens. Which tokens there are, the model's side knows.
	maxBias = 300_000
)

// request is a decoded call: the neutral form and what only this protocol's encoder needs.
type request struct {
	chat.Request
	stream       bool
	includeUsage bool
	custom       map[string]bool // names of custom tools, whose input is text
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
	d := &Decoder{}
	if !d.Want(body, wire.Object) {
		return nil, d.Err()
	}
	r := d.request(body)
	d.tools(r, body)
	d.toolChoice(r, body.Get("tool_choice"))
	if v := body.Get("parallel_tool_calls"); !v.Absent() {
		r.Choice.Single = !d.Bool(v)
	}
	d.messages(r, body.Get("messages"))
	d.limits(r, body)
	d.logprobs(r, body)
	r.Prediction = d.prediction(body.Get("prediction"))
	d.Sample(&r.Request, body)
	d.Thinking(&r.Request, body)
	f := body.Get("response_format")
	d.Format(&r.Request, f, f.Get("json_schema"))
	d.Guided(&r.Request, body)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// Decoder adds the readers of this protocol's objects.
type Decoder struct {
	wire.Decoder
	byName map[string]bool // tools
	tokens int             // ids of prompts
}

// request reads what chat and completions have in common first.
func (d *Decoder) request(body wire.Value) *request {
	r := &request{stream: d.Bool(body.Get("stream"))}
	if v := body.Get("stream_options"); !v.Absent() && d.Want(v, wire.Object) {
		r.includeUsage = d.Bool(v.Get("include_usage"))
	}
	r.Model = d.OptString(body.Get("model"))
	r.KeepAlive = d.KeepAlive(body.Get("keep_alive"))
	return r
}

// limits reads what ends a reply. It gives the limit of tokens where that is 0, for who takes it at its word; else it is what
// fits.
func (d *Decoder) limits(r *request, f wire.Value) (none wire.Value) {
	v := f.Get("max_completion_tokens")
	n := d.Limit(v, 0)
	if old := d.Limit(f.Get("max_tokens"), 0); n == nil {
		n, v = old, f.Get("max_tokens")
	}
	if n != nil && *n > 0 {
		r.MaxTokens, r.ClampMaxTokens = *n, true
	}
	r.Stop = d.Stops(f.Get("stop"))
	if n := d.Int(f.Get("n"), 1, maxChoices); n != nil {
		r.N = *n
	}
	if n != nil && *n == 0 {
		return v
	}
	return wire.Value{}
}

// prediction reads the text of a prediction: a string, or parts of type text. What is none has no text, which the usage tells; no
// request fails for it.
func (d *Decoder) prediction(v wire.Value) *string {
	if v.Absent() {
		return nil
	}
	var text strings.Builder
	switch c := v.Get("content"); c.Kind() {
	case wire.String:
		text.WriteString(d.String(c))
	case wire.Array:
		for _, part := range c.Items() {
			if t := part.Get("text"); t.Kind() == wire.String {
				text.WriteString(d.String(t))
			}
		}
	}
	s := text.String()
	return &s
}

func (d *Decoder) logprobs(r *request, f wire.Value) {
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

// Sample reads the sampling parameters, those that are numbers and the others.
func (d *Decoder) Sample(r *chat.Request, f wire.Value) {
	d.Sampling(&r.Sampling, f, false)
	if n := d.Int(f.Get("seed"), math.MinInt, math.MaxInt); n != nil {
		seed := uint64(*n)
		r.Sampling.Seed = &seed
	}
	for k, v := range d.FieldsWithin(f.Get("logit_bias"), chat.BoundLogitBias, maxBias, "entries") {
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

// Thinking gathers the spellings in use: enable_thinking, alone or among the template's arguments; thinking.type;
// reasoning_effort, also as an object, which gateways make of it, or reasoning.effort, whose "none" switches thinking off.
func (d *Decoder) Thinking(r *chat.Request, f wire.Value) {
	for k, v := range d.FieldsWithin(f.Get("chat_template_kwargs"), chat.BoundArgs, wire.MaxArgs, "variables") {
		if r.TemplateArgs == nil {
			r.TemplateArgs = map[string]json.RawMessage{}
		}
		r.TemplateArgs[k] = d.Copy(v)
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
	v := f.Get("reasoning_effort")
	if v.Kind() == wire.Object {
		v = v.Get("effort")
	}
	effort := d.OptString(v)
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

// Format reads a wanted format and puts it to the model in words. A JSON Schema and whether it is strict stand in schema.
func (d *Decoder) Format(r *chat.Request, v, schema wire.Value) {
	if v.Absent() || !d.Want(v, wire.Object) {
		return
	}
	switch kind := d.String(v.Get("type")); kind {
	case "text":
	case "json_object":
		d.json(r, v, v.Get("schema"), false)
	case "json_schema":
		if d.Want(schema, wire.Object) {
			d.json(r, v, schema.Get("schema"), d.Bool(schema.Get("strict")))
		}
	default:
		d.Fail(v.Get("type"), "unknown response format %s: must be text, json_object or json_schema", wire.Quote(kind))
	}
}

// json wants JSON where v stands: any object, or what a schema says.
func (d *Decoder) json(r *chat.Request, v, schema wire.Value, strict bool) {
	form := &chat.Form{Path: v.Path(), Strict: strict}
	var source json.RawMessage
	if !schema.Absent() {
		source = d.Compact(schema)
		form.Kind, form.Source, form.Path = chat.FormSchema, string(source), schema.Path()
	}
	d.form(r, v, form)
	wire.AppendSystem(r, wire.JSONInstruction(source))
}

// form sets what the text has to be, which is told once.
func (d *Decoder) form(r *chat.Request, v wire.Value, form *chat.Form) {
	if r.Form != nil {
		d.Fail(v, "the text cannot have two forms: leave out this or %s", r.Form.Path)
	}
	r.Form = form
}

// Guided reads what other servers have for the form of a text: guided_json and the like, structured_outputs, grammar and
// json_schema.
func (d *Decoder) Guided(r *chat.Request, body wire.Value) {
	within := func(string) (none wire.Value) { return none }
	if v := body.Get("structured_outputs"); !v.Absent() && d.Want(v, wire.Object) {
		within = v.Get
		ways := []string{"json", "regex", "choice", "grammar", "json_object", "structural_tag"}
		if !slices.ContainsFunc(ways, func(name string) bool { return !within(name).Absent() }) {
			d.Fail(v, "says nothing of the form: send json, regex, choice, grammar or json_object in it")
		}
		if v := within("structural_tag"); !v.Absent() {
			d.Fail(v, "structural_tag is not supported: use json, regex, choice or grammar")
		}
		if v := within("json_object"); d.Bool(v) {
			d.json(r, v, wire.Value{}, false)
		}
	}
	for _, v := range []wire.Value{body.Get("json_schema"), body.Get("guided_json"), within("json")} {
		switch {
		case v.Kind() == wire.String:
			form := &chat.Form{Kind: chat.FormSchema, Source: d.String(v), Path: v.Path()}
			d.form(r, v, form)
			wire.AppendSystem(r, wire.JSONInstruction(json.RawMessage(form.Source)))
		case !v.Absent() && d.Want(v, wire.Object):
			d.json(r, v, v, false)
		}
	}
	for _, v := range []wire.Value{body.Get("guided_regex"), within("regex")} {
		if !v.Absent() {
			d.form(r, v, &chat.Form{Kind: chat.FormRegex, Source: d.String(v), Path: v.Path()})
		}
	}
	for _, v := range []wire.Value{body.Get("guided_choice"), within("choice")} {
		if !v.Absent() && d.Want(v, wire.Array) {
			form := &chat.Form{Kind: chat.FormChoice, Path: v.Path()}
			for _, c := range d.Items(v) {
				form.Choices = append(form.Choices, d.String(c))
			}
			d.form(r, v, form)
		}
	}
	for _, v := range []wire.Value{body.Get("grammar"), body.Get("guided_grammar"), within("grammar")} {
		if !v.Absent() {
			form := &chat.Form{Kind: chat.FormLark, Source: d.String(v), Path: v.Path()}
			if strings.Contains(form.Source, "::=") {
				form.Kind = chat.FormGBNF
			}
			d.form(r, v, form)
		}
	}
}
