package responses

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"slices"

	"hearth/internal/chat"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/openai"
)

// maxTop is the most top_logprobs.
const maxTop = 20

// request is a decoded call: the neutral form and what only this protocol's encoder needs.
type request struct {
	chat.Request
	stream    bool
	tools     map[string]tool // by the name that the model knows
	encrypted bool            // reasoning comes as encrypted_content too
	summary   bool            // reasoning comes as a summary
	body      response        // what of the request stands in its response
	store     bool            // it is kept in the store, with its input
	kept      bool            // it is kept there, by its connection or by a conversation
	warm      bool            // only its prompt is computed, for what builds on it
	previous  string          // the response that it builds on
	link      *link           // that response, if it is its connection's
	compacts  bool            // its answer is a summary of the conversation
	summed    int             // the place of a summary in Messages, counted from their end; 0: there is none
	threshold int             // tokens of the prompt above which there is such a summary before the answer; 0: there is none
	input     []store.Item    // as it is kept

	conversation string // that it is made on
	at           int64  // where that ended
}

// tool is what a function of the model's is to the client.
type tool struct {
	kind            toolKind
	namespace, name string
}

type toolKind uint8

const (
	function toolKind = iota
	custom
	toolSearch
)

// Decode reads the body of a request outside a server.
func Decode(body []byte) (*chat.Request, *chat.Error) {
	v, err := wire.Parse(body)
	if err != nil {
		return nil, err
	}
	r, err := decode(v, &decoder{newID: wire.NewID})
	if err != nil {
		return nil, err
	}
	return &r.Request, nil
}

// decode reads the body of /v1/responses. Fields about OpenAI's own service (service_tier, safety_identifier, …) do nothing;
// those that would change the answer and that there are not are refused by name.
func decode(body wire.Value, d *decoder) (*request, *chat.Error) {
	d.r = &request{tools: map[string]tool{}}
	if !d.Want(body, wire.Object) {
		return nil, d.Err()
	}
	r := d.r
	r.stream, r.Model = d.Bool(body.Get("stream")), d.OptString(body.Get("model"))
	r.KeepAlive = d.KeepAlive(body.Get("keep_alive"))
	d.envelope(body)
	d.notHere(body)
	r.store = d.keeps
	if v := body.Get("store"); !v.Absent() {
		r.store = d.Bool(v) && d.keeps
	}
	if d.compact {
		d.compactBody(body)
	} else {
		d.background(body.Get("background"))
	}
	r.kept = r.store || d.past.exchange != nil
	d.instructions(body.Get("instructions"))
	d.declare(body.Get("tools"))
	d.previous(body.Get("previous_response_id"))
	d.conversation(body.Get("conversation"))
	d.input(body.Get("input"))
	d.toolChoice(body.Get("tool_choice"))
	r.body.ParallelToolCalls = true
	if v := body.Get("parallel_tool_calls"); !v.Absent() {
		r.body.ParallelToolCalls = d.Bool(v)
		r.Choice.Single = !r.body.ParallelToolCalls
	}
	d.limits(body)
	d.Sample(&r.Request, body)
	d.Thinking(&r.Request, body)
	d.reasoning(body.Get("reasoning"))
	d.include(body)
	d.text(body.Get("text"))
	d.Guided(&r.Request, body)
	d.others(body)
	d.management(body)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// decoder adds the readers of this protocol's objects.
type decoder struct {
	openai.Decoder
	r            *request
	refuseHosted bool
	keeps        bool // responses are stored unless a request says otherwise
	past         past
	known        map[string]bool // ids of the items of the conversation; nil: there is none
	referred     *store.Item     // by the last item_reference
	newID        func(prefix string) string
	turn         *wire.Parts     // of the assistant, under way; nil: none
	compact      bool            // the route is that for compaction
	summary      summary         // of the messages so far
	called       map[string]bool // by the calls so far: their ids, as plainID has them
	goesOn       bool            // what is read goes on from a response, and all that was said is known
}

// decoder makes one for a request.
func (h handler) decoder(r *http.Request) *decoder {
	return &decoder{refuseHosted: h.RefuseHosted, keeps: h.Store.Keeps(), past: h.past(r), newID: h.NewID}
}

// notHere refuses what there is not.
func (d *decoder) notHere(body wire.Value) {
	if v := body.Get("prompt"); !v.Absent() {
		d.Fail(v, "stored prompts are not served: send what they say as input")
	}
}

// background reads whether nobody waits for the response. It is read later, and so must be stored.
func (d *decoder) background(v wire.Value) {
	d.r.body.Background = d.Bool(v)
	switch {
	case !d.r.body.Background || d.r.store:
	case d.keeps:
		d.Fail(v, "a response in the background must be stored: leave store: false out, or background")
	default:
		d.Fail(v, "a response in the background must be stored, and nothing is stored here: leave it out, or stream")
	}
}

// instructions are the system's: text, or items.
func (d *decoder) instructions(v wire.Value) {
	if v.Absent() {
		return
	}
	d.r.body.Instructions = raw(v)
	if v.Kind() == wire.String {
		d.r.Messages = append(d.r.Messages, chat.Message{Role: chat.System, Parts: wire.TextParts(d.String(v))})
		return
	}
	for _, item := range d.Messages(v) {
		d.item(item)
	}
	d.endTurn()
}

// raw is a copy of v's bytes without blanks: what goes back to the client, and to nobody else.
func raw(v wire.Value) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, v.Raw()) != nil {
		return bytes.Clone(v.Raw())
	}
	return b.Bytes()
}

func (d *decoder) limits(body wire.Value) {
	r := d.r
	v := body.Get("max_output_tokens")
	if n := d.Limit(v, 1); n != nil && *n > 0 {
		r.MaxTokens, r.ClampMaxTokens = *n, true
		r.body.MaxOutputTokens = n
	}
	r.Stop = d.Stops(body.Get("stop"))
	r.body.MaxToolCalls = d.Int(body.Get("max_tool_calls"), 1, math.MaxInt)
}

// reasoning reads how it is shown; whether and how much there is, Thinking reads.
func (d *decoder) reasoning(v wire.Value) {
	if v.Absent() || !d.Want(v, wire.Object) {
		return
	}
	for _, name := range []string{"summary", "generate_summary"} {
		switch s := d.OptString(v.Get(name)); s {
		case "":
		case "auto", "concise", "detailed":
			d.r.summary, d.r.body.Reasoning.Summary = true, &s
		case "none":
		default:
			d.Fail(v.Get(name), "unknown summary %s: must be auto, concise, detailed or none", wire.Quote(s))
		}
	}
	if s := d.OptString(v.Get("effort")); s != "" {
		d.r.body.Reasoning.Effort = &s
	}
}

// include reads what the response has besides. What is not known here concerns tools that do not run here.
func (d *decoder) include(body wire.Value) {
	wanted := false
	for _, v := range d.ItemsWithin(body.Get("include"), chat.BoundTools, wire.MaxTools, "things to include") {
		switch d.String(v) {
		case "reasoning.encrypted_content":
			d.r.encrypted = true
		case "message.output_text.logprobs":
			wanted = true
		}
	}
	if n := d.Int(body.Get("top_logprobs"), 0, maxTop); n != nil {
		d.r.body.TopLogprobs = *n
		wanted = wanted || *n > 0
	}
	d.r.Logprobs, d.r.TopLogprobs = wanted, d.r.body.TopLogprobs
}

// text reads the form of the answer.
func (d *decoder) text(v wire.Value) {
	d.r.body.Text = json.RawMessage(`{"format":{"type":"text"}}`)
	if v.Absent() || !d.Want(v, wire.Object) {
		return
	}
	format := v.Get("format")
	d.Format(&d.r.Request, format, format)
	if !format.Absent() {
		d.r.body.Text = raw(v)
		return
	}
	if verbosity := d.OptString(v.Get("verbosity")); verbosity != "" {
		d.r.body.Text = wire.Marshal(struct {
			Format    map[string]string `json:"format"`
			Verbosity string            `json:"verbosity"`
		}{map[string]string{"type": "text"}, verbosity})
	}
}

// others reads what only goes back.
func (d *decoder) others(body wire.Value) {
	b := &d.r.body
	b.PromptCacheKey, b.SafetyID = orNull(d.OptString(body.Get("prompt_cache_key"))), orNull(d.OptString(body.Get("safety_identifier")))
	b.Metadata = json.RawMessage("{}")
	if v := body.Get("metadata"); !v.Absent() && d.Want(v, wire.Object) {
		b.Metadata = raw(v)
	}
	b.Truncation = "disabled"
	switch s := d.OptString(body.Get("truncation")); s {
	case "", "disabled":
	case truncationAuto:
		b.Truncation = s
	default:
		d.Fail(body.Get("truncation"), "unknown truncation %s: must be auto or disabled", wire.Quote(s))
	}
}

// toolChoice reads how far the model is free to call tools. One that is only run elsewhere cannot be demanded: the model may then
// answer as it likes.
func (d *decoder) toolChoice(v wire.Value) {
	d.r.body.ToolChoice = json.RawMessage(`"auto"`)
	if v.Absent() {
		return
	}
	d.r.body.ToolChoice = raw(v)
	if v.Kind() == wire.String {
		d.r.Choice.Kind = d.ChoiceMode(v, &d.r.Request)
		return
	}
	if !d.Want(v, wire.Object) {
		return
	}
	switch kind := d.String(v.Get("type")); {
	case kind == "function" || kind == "custom":
		d.r.Choice.Kind, d.r.Choice.Name = chat.ChoiceNamed, d.chosen(v)
	case kind == "allowed_tools":
		allowed := map[string]bool{}
		for _, t := range d.Tools(v.Get("tools")) {
			if d.Want(t, wire.Object) && isOwn(d.String(t.Get("type"))) {
				allowed[d.chosen(t)] = true
			}
		}
		d.r.Tools = slices.DeleteFunc(d.r.Tools, func(t chat.Tool) bool { return !allowed[t.Name] })
		d.r.Choice.Kind = d.ChoiceMode(v.Get("mode"), &d.r.Request)
	case !d.refuseHosted:
		d.r.body.ToolChoice = json.RawMessage(`"auto"`)
	default:
		d.Fail(v.Get("type"), "tools of type %s do not run here: must be function, custom or allowed_tools", wire.Quote(kind))
	}
}

// isOwn tells the types of tools that the client runs.
func isOwn(kind string) bool { return kind == "function" || kind == "custom" }

// chosen reads the name of a tool in tools.
func (d *decoder) chosen(v wire.Value) string {
	name := joined(d.OptString(v.Get("namespace")), d.String(v.Get("name")))
	if t, ok := d.r.tools[name]; d.Err() == nil && (!ok || (t.kind == custom) != (d.String(v.Get("type")) == "custom")) {
		d.Fail(v.Get("name"), "there is no %s tool named %s in tools", d.String(v.Get("type")), wire.Quote(name))
	}
	return name
}
