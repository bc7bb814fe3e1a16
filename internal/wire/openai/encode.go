package openai

import (
	"encoding/json"
	"strings"

	"hearth/internal/chat"
)

// pingFrame keeps a silent stream alive: a comment, which every SSE parser drops.
const pingFrame = ": keep-alive\n\n"

// reply is what both encoders know about the completion they produce.
type reply struct {
	id          string
	created     int64 // Unix seconds
	model       string
	fingerprint string
	choices     int
	logprobs    bool
	asContent   bool // reasoning goes into reasoning_content
	asReasoning bool // and into reasoning
	newID       func(prefix string) string
	custom      map[string]bool // names of custom tools
	usage       chat.Usage
}

type usage struct {
	Prompt            int               `json:"prompt_tokens"`
	Completion        int               `json:"completion_tokens"`
	Total             int               `json:"total_tokens"`
	PromptDetails     promptDetails     `json:"prompt_tokens_details"`
	CompletionDetails completionDetails `json:"completion_tokens_details"`
	MaxTokens         int               `json:"hearth_max_tokens,omitempty"` // where it was lowered: to what
	Schema            chat.Outcome      `json:"hearth_schema,omitempty"`     // what became of the form that was asked for
}

type promptDetails struct {
	Cached int `json:"cached_tokens"`
	Added  int `json:"cache_write_tokens,omitempty"`
}

type completionDetails struct {
	Reasoning int  `json:"reasoning_tokens"`
	Accepted  *int `json:"accepted_prediction_tokens,omitempty"` // of requests with a prediction
	Rejected  *int `json:"rejected_prediction_tokens,omitempty"`
}

// Begin names the model that answers, if the client did not name one; else its name is echoed.
func (r *reply) Begin(m chat.Model) {
	if r.model == "" {
		r.model = m.ID
	}
}

// count adds the usage of an event: the prompt is one for all choices, outputs add up.
func (r *reply) count(u *chat.Usage) {
	if u == nil {
		return
	}
	r.usage.Prompt, r.usage.Cached, r.usage.Added, r.usage.Limit = u.Prompt, u.Cached, u.Added, u.Limit
	r.usage.Form = u.Form
	r.usage.Output += u.Output
	r.usage.Reasoning += u.Reasoning
	if p := u.Prediction; p != nil {
		if r.usage.Prediction == nil {
			r.usage.Prediction = &chat.Prediction{}
		}
		r.usage.Prediction.Accepted += p.Accepted
		r.usage.Prediction.Rejected += p.Rejected
	}
}

func (r *reply) usageBody() *usage {
	u := &r.usage
	details := completionDetails{Reasoning: u.Reasoning}
	if u.Prediction != nil {
		details.Accepted, details.Rejected = &u.Prediction.Accepted, &u.Prediction.Rejected
	}
	return &usage{
		Prompt: u.Prompt, Completion: u.Output, Total: u.Prompt + u.Output,
		PromptDetails: promptDetails{u.Cached, u.Added}, CompletionDetails: details, MaxTokens: u.Limit, Schema: u.Form,
	}
}

// reasoning is what goes into the fields reasoning_content and reasoning.
func (r *reply) reasoning(text string) (content, reasoning string) {
	if r.asContent {
		content = text
	}
	if r.asReasoning {
		reasoning = text
	}
	return content, reasoning
}

func finishReason(f chat.Finish) string {
	switch f {
	case chat.FinishLength, chat.FinishContext:
		return "length"
	case chat.FinishToolCalls:
		return "tool_calls"
	case chat.FinishRefusal:
		return "content_filter"
	}
	return "stop"
}

type logprobs struct {
	Content []Logprob `json:"content"`
	Refusal []Logprob `json:"refusal"`
}

// Logprob is a token of the output and what might have stood in its place.
type Logprob struct {
	Token   string       `json:"token"`
	Logprob float64      `json:"logprob"`
	Bytes   []int        `json:"bytes"`
	Top     []TopLogprob `json:"top_logprobs"`
}

// TopLogprob is one of those.
type TopLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// Logprobs are tokens as this API writes them.
func Logprobs(in []chat.Logprob) []Logprob {
	out := make([]Logprob, len(in))
	for i, lp := range in {
		out[i] = Logprob{lp.Token, finite(lp.Logprob), ints(lp.Bytes), make([]TopLogprob, len(lp.Top))}
		for j, t := range lp.Top {
			out[i].Top[j] = TopLogprob{t.Token, finite(t.Logprob), ints(t.Bytes)}
		}
	}
	return out
}

// finite replaces minus infinity, which JSON lacks, by the number OpenAI uses for "very unlikely".
func finite(x float64) float64 {
	if x >= -9999 { // false for NaN
		return x
	}
	return -9999
}

func ints(b []byte) []int {
	out := make([]int, len(b))
	for i, c := range b {
		out[i] = int(c)
	}
	return out
}

type completion struct {
	ID          string   `json:"id"`
	Object      string   `json:"object"`
	Created     int64    `json:"created"`
	Model       string   `json:"model"`
	Fingerprint string   `json:"system_fingerprint"`
	Choices     []choice `json:"choices"`
	Usage       *usage   `json:"usage"`
}

type choice struct {
	Index        int       `json:"index"`
	Message      message   `json:"message"`
	Logprobs     *logprobs `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
}

type message struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"`
	Refusal          *string    `json:"refusal"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Reasoning        string     `json:"reasoning,omitempty"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	MCPCalls         []MCPCall  `json:"mcp_calls,omitempty"` // that were run here
}

// MCPCall is a call of a tool of an MCP server, which was run here: what the Responses API has as an item.
type MCPCall struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Approval  *string `json:"approval_request_id"` // null: the file of servers has said it
	Server    string  `json:"server_label"`
	Name      string  `json:"name"`
	Arguments string  `json:"arguments"`
	Status    string  `json:"status"`
	Output    *string `json:"output"` // null while there is none, and where there is an error
	Error     *string `json:"error"`
}

// NewMCPCall is a call as far as it is known: without its arguments when it begins, without a result before there is one.
func NewMCPCall(id string, c *chat.ToolCall, result *chat.ToolResult) MCPCall {
	m := MCPCall{ID: id, Type: "mcp_call", Server: c.MCP.Server, Name: c.MCP.Name, Arguments: string(c.Arguments), Status: "in_progress"}
	if result == nil {
		return m
	}
	text := chat.Text(result.Parts)
	if m.Status, m.Output = "completed", &text; result.IsError {
		m.Status, m.Output, m.Error = "failed", nil, &text
	}
	return m
}

// betweenRounds stands between what a model said before calls that were run here and what it said to their results: a message
// has one text.
const betweenRounds = "\n\n"

type toolCall struct {
	Index *int   `json:"index,omitempty"` // in chunks only
	ID    string `json:"id,omitempty"`
	Type  string `json:"type,omitempty"`
	// One of them is set.
	Function *toolFunction `json:"function,omitempty"`
	Custom   *toolCustom   `json:"custom,omitempty"`
}

type toolFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type toolCustom struct {
	Name  string `json:"name,omitempty"`
	Input string `json:"input"`
}

// choiceState is what is known of one choice so far.
type choiceState struct {
	text, reasoning strings.Builder
	calls           []toolCall
	mcpCalls        []MCPCall
	here            bool            // the last call is run here
	again           bool            // what follows is said to results of such calls
	args            strings.Builder // of the last call, as far as it was sent
	logprobs        []Logprob
	finish          chat.Finish
}

// endArgs gives the last call what was sent of its arguments.
func (c *choiceState) endArgs() {
	if c.args.Len() > 0 {
		c.calls[len(c.calls)-1].Function.Arguments = c.args.String()
		c.args.Reset()
	}
}

// collectEncoder collects a completion.
type collectEncoder struct {
	reply
	parts []choiceState
}

func newCollectEncoder(r reply) *collectEncoder {
	return &collectEncoder{reply: r, parts: make([]choiceState, r.choices)}
}

func (f *collectEncoder) Event(e *chat.Event) {
	c := &f.parts[e.Choice]
	if f.logprobs {
		c.logprobs = append(c.logprobs, Logprobs(e.Logprobs)...)
	}
	switch e.Kind {
	case chat.EventStart:
		f.count(e.Usage)
	case chat.EventText:
		if c.again && c.text.Len() > 0 {
			c.text.WriteString(betweenRounds)
		}
		c.again = false
		c.text.WriteString(e.Text)
	case chat.EventReasoning:
		c.reasoning.WriteString(e.Text)
	case chat.EventToolResult:
		c.again = true
		c.mcpCalls = append(c.mcpCalls, NewMCPCall(e.Call.ID, e.Call, e.Result))
	case chat.EventToolStart:
		if c.here = e.Call != nil && e.Call.MCP != nil; c.here {
			return
		}
		c.endArgs()
		c.calls = append(c.calls, f.toolCall(e))
	case chat.EventToolArgs:
		if n := len(c.calls); !c.here && n > 0 && c.calls[n-1].Function != nil {
			c.args.WriteString(e.Text)
		}
	case chat.EventToolEnd:
		if c.here {
			return
		}
		c.endArgs()
		if n := len(c.calls); n > 0 && e.Call != nil {
			c.calls[n-1].complete(e.Call)
		}
	case chat.EventFinish:
		f.count(e.Usage)
		c.finish = e.Finish
	}
}

func (f *collectEncoder) Body() any {
	out := completion{
		ID: f.id, Object: "chat.completion", Created: f.created, Model: f.model, Fingerprint: f.fingerprint,
		Usage: f.usageBody(),
	}
	for i := range f.parts {
		p := &f.parts[i]
		p.endArgs() // the reply may have been cut off in them
		c := choice{Index: i, FinishReason: finishReason(p.finish)}
		text, reasoning := p.text.String(), p.reasoning.String()
		c.Message = message{Role: "assistant", ToolCalls: p.calls, MCPCalls: p.mcpCalls}
		c.Message.ReasoningContent, c.Message.Reasoning = f.reasoning(reasoning)
		if text != "" || len(p.calls) == 0 {
			c.Message.Content = &text
		}
		if f.logprobs {
			c.Logprobs = &logprobs{Content: append([]Logprob{}, p.logprobs...)} // a list, also of none
		}
		out.Choices = append(out.Choices, c)
	}
	return out
}

func (r *reply) toolCall(e *chat.Event) toolCall {
	call := e.Call
	if call == nil {
		call = &chat.ToolCall{}
	}
	c := toolCall{ID: call.ID}
	if r.custom[call.Name] {
		c.Type, c.Custom = "custom", &toolCustom{Name: call.Name}
	} else {
		c.Type, c.Function = "function", &toolFunction{Name: call.Name}
	}
	if c.ID == "" {
		c.ID = r.newID("call_")
	}
	return c
}

// complete fills in what the fragments did not tell of a call.
func (c *toolCall) complete(call *chat.ToolCall) {
	switch {
	case c.Custom != nil:
		c.Custom.Input = InputText(call)
	case c.Function.Arguments == "":
		c.Function.Arguments = ArgumentText(call)
	}
}

// InputText is the input of a custom tool: its one argument, or all that the model wrote in its place.
func InputText(c *chat.ToolCall) string {
	var args map[string]json.RawMessage
	var input string
	if json.Unmarshal(c.Arguments, &args) == nil && json.Unmarshal(args[CustomInput], &input) == nil {
		return input
	}
	return string(c.Arguments)
}

// ArgumentText is the whole of a call's arguments as the text OpenAI has there; never empty.
func ArgumentText(c *chat.ToolCall) string {
	if len(c.Arguments) == 0 {
		return "{}"
	}
	return string(c.Arguments)
}
