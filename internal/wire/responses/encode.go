package responses

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/openai"
)

// response is the response object. Clients check that every key is there.
type response struct {
	ID                string            `json:"id"`
	Object            string            `json:"object"`
	CreatedAt         int64             `json:"created_at"`
	CompletedAt       *int64            `json:"completed_at"`
	Status            string            `json:"status"`
	IncompleteDetails *incomplete       `json:"incomplete_details"`
	Error             *failure          `json:"error"`
	Model             string            `json:"model"`
	PreviousID        *string           `json:"previous_response_id"`
	Conversation      *conversationID   `json:"conversation,omitempty"`
	Instructions      json.RawMessage   `json:"instructions"`
	Output            []any             `json:"output"`
	Tools             []json.RawMessage `json:"tools"`
	ToolChoice        json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls bool              `json:"parallel_tool_calls"`
	MaxToolCalls      *int              `json:"max_tool_calls"`
	MaxOutputTokens   *int              `json:"max_output_tokens"`
	Truncation        string            `json:"truncation"`
	Text              json.RawMessage   `json:"text"`
	Reasoning         reasoningEcho     `json:"reasoning"`
	Temperature       float64           `json:"temperature"`
	TopP              float64           `json:"top_p"`
	PresencePenalty   float64           `json:"presence_penalty"`
	FrequencyPenalty  float64           `json:"frequency_penalty"`
	TopLogprobs       int               `json:"top_logprobs"`
	Metadata          json.RawMessage   `json:"metadata"`
	Store             bool              `json:"store"`
	Background        bool              `json:"background"`
	ServiceTier       string            `json:"service_tier"`
	SafetyID          *string           `json:"safety_identifier"`
	PromptCacheKey    *string           `json:"prompt_cache_key"`
	Usage             *usage            `json:"usage"`
}

// reasoningEcho is what the request said of reasoning.
type reasoningEcho struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

// failure is what went wrong with a response that had begun.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type usage struct {
	Input         int           `json:"input_tokens"`
	InputDetails  inputDetails  `json:"input_tokens_details"`
	Output        int           `json:"output_tokens"`
	OutputDetails outputDetails `json:"output_tokens_details"`
	Total         int           `json:"total_tokens"`
	MaxTokens     int           `json:"hearth_max_tokens,omitempty"`       // where it was lowered: to what
	Dropped       int           `json:"hearth_dropped_messages,omitempty"` // of the conversation, so that it fits
	Schema        chat.Outcome  `json:"hearth_schema,omitempty"`           // what became of the form that was asked for
}

type inputDetails struct {
	Cached int `json:"cached_tokens"`
	Added  int `json:"cache_write_tokens"`
}

type outputDetails struct {
	Reasoning int `json:"reasoning_tokens"`
}

// States of a response and of its items.
const (
	queued     = "queued"
	inProgress = "in_progress"
	completed  = "completed"
	unfinished = "incomplete"
	cancelled  = "cancelled"
	failed     = "failed"
)

type messageItem struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Status  string `json:"status"`
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type textPart struct {
	Type        string           `json:"type"`
	Text        string           `json:"text"`
	Annotations []any            `json:"annotations"`
	Logprobs    []openai.Logprob `json:"logprobs"`
}

type reasoningItem struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Status    string  `json:"status"`
	Summary   []any   `json:"summary"`
	Content   []any   `json:"content,omitempty"`
	Encrypted *string `json:"encrypted_content,omitempty"`
}

// plainPart is a part of reasoning: reasoning_text or summary_text.
type plainPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type callItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type customItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Input     string `json:"input"`
}

type searchItem struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Status    string          `json:"status"`
	CallID    string          `json:"call_id"`
	Execution string          `json:"execution"`
	Arguments json.RawMessage `json:"arguments"`
}

// reply makes a response of the events of a reply: the object, and where there is a stream the events that tell of it.
//
// Invariant: open is the item under way, the last of the output; nil between items.
type reply struct {
	req      *request
	newID    func(prefix string) string
	now      func() time.Time
	shown    bool // reasoning is
	out      *wire.Stream
	sequence int // number of the next event

	body   response
	usage  chat.Usage
	items  []*item // of the output
	open   *item
	here   map[string]*item // calls that are run here and have no result yet, by their ids
	finish chat.Finish
	kept   *kept // nil: it is not stored

	summary summaryState
}

// item is an item of the output while it comes.
type item struct {
	kind     itemKind
	id       string
	index    int
	text     strings.Builder // of a message or of reasoning; arguments of a call
	logprobs []openai.Logprob
	tool     tool
	callID   string
	call     *chat.ToolCall   // of mcpKind
	result   *chat.ToolResult // of mcpKind; nil: there is none yet
	ended    bool             // a call is complete
	short    []byte           // event of the last fragment
	head     int              // of short, what the events of all fragments begin with
}

type itemKind uint8

const (
	messageKind itemKind = iota
	reasoningKind
	compactionKind
	callKind
	customKind
	searchKind
	mcpKind
)

var (
	itemTypes    = [...]string{"message", "reasoning", "compaction", "function_call", "custom_tool_call", "tool_search_call", "mcp_call"}
	itemPrefixes = [...]string{"msg_", "rs_", "cmp_", "fc_", "ctc_", "tsc_", "mcp_"}
)

func newReply(h handler, req *request) *reply {
	rep := &reply{req: req, newID: h.NewID, now: h.Now, shown: h.Thinking != chat.Off}
	rep.body = req.body
	b := &rep.body
	b.ID, b.Object, b.CreatedAt, b.Status, b.Model = h.NewID("resp_"), "response", h.Now().Unix(), inProgress, req.Model
	if b.Background {
		b.Status = queued
	}
	b.PreviousID, b.ServiceTier, b.Output = orNull(req.previous), "default", []any{}
	if b.Tools == nil {
		b.Tools = []json.RawMessage{}
	}
	rep.sampled(&chat.Sampling{})
	return rep
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Begin names the model that answers, if the client did not name one; else its name is echoed.
func (r *reply) Begin(m chat.Model) {
	r.body.Model = cmp.Or(r.body.Model, m.ID)
	if m.Sampling != nil {
		r.sampled(m.Sampling)
	}
}

// sampled says how tokens are drawn: as the request has it, else by the model's defaults. Clients check that these are numbers.
func (r *reply) sampled(defaults *chat.Sampling) {
	s := chat.Merged(defaults, &r.req.Sampling)
	r.body.Temperature, r.body.TopP, r.body.PresencePenalty, r.body.FrequencyPenalty = *s.Temperature, *s.TopP, *s.PresencePenalty, *s.FrequencyPenalty
}

// Event takes the next event.
func (r *reply) Event(e *chat.Event) {
	if r.summary != noSummary && r.sumUp(e) {
		return
	}
	switch e.Kind {
	case chat.EventStart:
		r.count(e.Usage)
		if r.body.Background { // it is told that there is one already
			r.body.Status = inProgress
			r.kept.run.begun.Store(true)
		} else {
			r.tell("response.created", "response", &r.body)
		}
		r.tell("response.in_progress", "response", &r.body)
	case chat.EventText:
		r.in(messageKind)
		r.fragment(e)
	case chat.EventReasoning:
		if r.shown || r.req.encrypted || r.kept != nil {
			r.in(reasoningKind)
			r.fragment(e)
		}
	case chat.EventToolStart:
		r.end(completed)
		r.beginCall(e.Call)
	case chat.EventToolArgs:
		if r.open != nil && (r.open.kind == callKind || r.open.kind == mcpKind) {
			r.fragment(e)
		}
	case chat.EventToolEnd:
		r.endCall(e)
	case chat.EventToolResult:
		r.endHere(e)
	case chat.EventFinish:
		r.count(e.Usage)
		r.finish = e.Finish
		status := completed
		if _, ok := reasons[e.Finish]; ok {
			status = unfinished
		}
		r.end(status)
	}
}

func (r *reply) count(u *chat.Usage) {
	if u == nil {
		return
	}
	r.usage.Prompt, r.usage.Cached, r.usage.Added, r.usage.Limit, r.usage.Dropped = u.Prompt, u.Cached, u.Added, u.Limit, u.Dropped
	r.usage.Form = u.Form
	r.usage.Output += u.Output
	r.usage.Reasoning += u.Reasoning
}

// reasons are why a response is not complete.
var reasons = map[chat.Finish]string{
	chat.FinishLength: "max_output_tokens", chat.FinishContext: "max_output_tokens", chat.FinishRefusal: "content_filter",
}

// Keep implements wire.Keeper.
func (r *reply) Keep() *chat.Error {
	r.complete()
	if r.req.compacts && len(r.items) == 0 {
		return errNoSummary
	}
	return r.settle()
}

// Body is the response object once the reply has ended.
func (r *reply) Body() any { return &r.body }

// complete fills in how the response ended.
func (r *reply) complete() {
	r.end(completed)
	r.endLost()
	u := &r.usage
	r.body.Usage = &usage{Input: u.Prompt, InputDetails: inputDetails{u.Cached, u.Added}, Output: u.Output,
		OutputDetails: outputDetails{u.Reasoning}, Total: u.Prompt + u.Output, MaxTokens: u.Limit, Dropped: u.Dropped, Schema: u.Form}
	if reason, ok := reasons[r.finish]; ok {
		r.body.Status, r.body.IncompleteDetails = unfinished, &incomplete{reason}
		return
	}
	at := r.now().Unix()
	r.body.Status, r.body.CompletedAt = completed, &at
}

// in makes an item of that kind the one under way, unless it is.
func (r *reply) in(kind itemKind) {
	if r.open == nil || r.open.kind != kind {
		r.end(completed)
		r.begin(&item{kind: kind})
	}
}

func (r *reply) begin(i *item) {
	i.id, i.index = r.newID(itemPrefixes[i.kind]), len(r.body.Output)
	r.open = i
	r.items = append(r.items, i)
	r.body.Output = append(r.body.Output, r.object(i, inProgress, false))
	r.added(i)
}

func (r *reply) beginCall(call *chat.ToolCall) {
	if call == nil {
		call = &chat.ToolCall{}
	}
	if call.MCP != nil {
		r.begin(&item{kind: mcpKind, call: call})
		r.tell("response.mcp_call.in_progress", r.open.at(&mcpEvents)...)
		return
	}
	t, ok := r.req.tools[call.Name]
	if !ok {
		t.name = call.Name
	}
	i := &item{kind: callKind, tool: t, callID: call.ID}
	switch t.kind {
	case custom:
		i.kind = customKind
	case toolSearch:
		i.kind = searchKind
	}
	if i.callID == "" {
		i.callID = r.newID("call_")
	}
	r.begin(i)
}

// endCall completes the call under way.
func (r *reply) endCall(e *chat.Event) {
	i := r.open
	if i == nil || i.kind < callKind {
		return
	}
	if e.Call != nil && i.text.Len() == 0 { // the fragments did not tell it
		text := ""
		if i.kind == customKind {
			text = openai.InputText(e.Call)
		} else {
			text = openai.ArgumentText(e.Call)
		}
		r.fragment(&chat.Event{Kind: chat.EventToolArgs, Text: text})
	}
	i.ended = true
	if i.kind == mcpKind { // its end is its result
		r.tell("response."+mcpEvents.text+".done", append(i.at(&mcpEvents), "arguments", i.text.String())...)
		if r.here == nil {
			r.here = map[string]*item{}
		}
		r.here[i.call.ID], r.open = i, nil
		return
	}
	r.end(completed)
}

// endHere ends a call that was run here by its result.
func (r *reply) endHere(e *chat.Event) {
	i := r.here[e.Call.ID]
	if i == nil {
		return
	}
	delete(r.here, e.Call.ID)
	i.result = e.Result
	status := completed
	if e.Result.IsError {
		status = failed
	}
	r.body.Output[i.index] = r.object(i, status, true)
	r.tell("response.mcp_call."+status, i.at(&mcpEvents)...)
	r.tell("response.output_item.done", "output_index", i.index, "item", r.body.Output[i.index])
}

// end ends the item under way. A call that has no end of its own is never complete.
func (r *reply) end(status string) {
	i := r.open
	if i == nil {
		return
	}
	r.open = nil
	if i.kind >= callKind && !i.ended {
		status = unfinished
	}
	r.body.Output[i.index] = r.object(i, status, true)
	r.done(i, status)
}

// endLost ends calls that have no result and get none any more.
func (r *reply) endLost() {
	for _, i := range r.here {
		r.body.Output[i.index] = r.object(i, unfinished, true)
	}
	r.here = nil
}

// object is an item as the response has it; whole tells whether it has come so far as it will.
func (r *reply) object(i *item, status string, whole bool) any {
	text := i.text.String()
	kind := itemTypes[i.kind]
	switch i.kind {
	case messageKind:
		o := messageItem{i.id, kind, status, "assistant", []any{}}
		if whole {
			o.Content = append(o.Content, r.part(i, text))
		}
		return o
	case reasoningKind:
		o := reasoningItem{ID: i.id, Type: kind, Status: status, Summary: []any{}}
		switch {
		case !whole:
			return o
		case r.shown && r.req.summary:
			o.Summary = append(o.Summary, r.part(i, text))
		case r.shown:
			o.Content = append(o.Content, r.part(i, text))
		}
		if r.req.encrypted {
			s := encrypted(sealed, text)
			o.Encrypted = &s
		}
		return o
	case compactionKind:
		o := compactionItem{ID: i.id, Type: kind}
		if whole && status == completed { // half a summary would pass for one
			o.Encrypted = encrypted(sealedSummary, strings.TrimSpace(text))
		}
		return o
	case mcpKind:
		c := openai.NewMCPCall(i.id, i.call, i.result)
		if c.Arguments = text; i.result == nil {
			c.Status = status
		}
		return c
	case customKind:
		return customItem{i.id, kind, status, i.callID, i.tool.namespace, i.tool.name, text}
	case searchKind:
		args := json.RawMessage(text)
		if !json.Valid(args) {
			args = json.RawMessage("{}")
		}
		return searchItem{i.id, kind, status, i.callID, "client", args}
	}
	return callItem{i.id, kind, status, i.callID, i.tool.namespace, i.tool.name, text}
}

// part is the one part of an item with that text.
func (r *reply) part(i *item, text string) any {
	switch {
	case i.kind == messageKind:
		return textPart{"output_text", text, []any{}, i.tokens()}
	case r.req.summary:
		return plainPart{"summary_text", text}
	}
	return plainPart{"reasoning_text", text}
}

// tokens are those of a message so far, a list also of none.
func (i *item) tokens() []openai.Logprob { return append([]openai.Logprob{}, i.logprobs...) }
