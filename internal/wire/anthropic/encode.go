package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"hearth/internal/chat"
)

// reply is what both encoders know about the message they produce.
type reply struct {
	id, model    string
	requestID    string
	omitThinking bool
	hideThinking bool // no thinking blocks at all
	newID        func(prefix string) string
	start        chat.Usage // the prompt's counts
}

type message struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        usage   `json:"usage"`
}

type usage struct {
	Input         int           `json:"input_tokens"` // without those of the next two
	CacheCreation int           `json:"cache_creation_input_tokens"`
	CacheRead     int           `json:"cache_read_input_tokens"`
	Output        int           `json:"output_tokens"`
	Details       outputDetails `json:"output_tokens_details"`
	MaxTokens     int           `json:"hearth_max_tokens,omitempty"` // where max_tokens was lowered: to what
	Schema        chat.Outcome  `json:"hearth_schema,omitempty"`     // what became of the form that was asked for
}

type outputDetails struct {
	Thinking int `json:"thinking_tokens"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type toolUseBlock struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Server string          `json:"server_name,omitempty"` // of mcp_tool_use
	Input  json.RawMessage `json:"input"`
}

type mcpResultBlock struct {
	Type    string      `json:"type"`
	ID      string      `json:"tool_use_id"`
	IsError bool        `json:"is_error"`
	Content []textBlock `json:"content"`
}

// mcpResult is what came of a call that was run here.
func mcpResult(e *chat.Event) mcpResultBlock {
	return mcpResultBlock{"mcp_tool_result", e.Result.CallID, e.Result.IsError, []textBlock{{"text", chat.Text(e.Result.Parts)}}}
}

// Begin names the model that answers, if the client did not name one; else its name is echoed.
func (r *reply) Begin(m chat.Model) {
	if r.model == "" {
		r.model = m.ID
	}
}

func (r *reply) message() message {
	return message{ID: r.id, Type: "message", Role: "assistant", Model: r.model, Content: []any{}, Usage: r.usage(&r.start)}
}

func (r *reply) usage(u *chat.Usage) usage {
	if u == nil {
		u = &r.start
	}
	prompt := u.Prompt - u.Short // as count_tokens has it; of any prompt one token at least is neither read nor added
	read := max(min(u.Cached, prompt-1), 0)
	added := max(min(u.Added, prompt-read-1), 0)
	return usage{Input: prompt - read - added, CacheCreation: added, CacheRead: read,
		Output: u.Output, Details: outputDetails{u.Reasoning}, MaxTokens: u.Limit, Schema: u.Form}
}

func (r *reply) toolUse(c *chat.ToolCall) toolUseBlock {
	b := toolUseBlock{Type: "tool_use", Input: json.RawMessage("{}")}
	if c != nil {
		b.ID, b.Name = c.ID, c.Name
		if c.MCP != nil {
			b.Type, b.Server, b.Name = "mcp_tool_use", c.MCP.Server, c.MCP.Name
		}
	}
	if b.ID == "" {
		b.ID = r.newID("toolu_")
	}
	return b
}

// stop spells why the message ended.
func (r *reply) stop(e *chat.Event) (reason string, sequence *string) {
	switch e.Finish {
	case chat.FinishStopText:
		return "stop_sequence", &e.Stop
	case chat.FinishToolCalls:
		return "tool_use", nil
	case chat.FinishRefusal:
		return "refusal", nil
	case chat.FinishLength:
		return "max_tokens", nil
	case chat.FinishContext:
		return "model_context_window_exceeded", nil
	}
	return "end_turn", nil
}

// collectEncoder collects a message.
type collectEncoder struct {
	reply
	msg  message
	last chat.EventKind // of the content event before, to join texts
	text strings.Builder
	args strings.Builder
}

func (f *collectEncoder) Event(e *chat.Event) {
	if f.hideThinking && e.Kind == chat.EventReasoning {
		return
	}
	switch e.Kind {
	case chat.EventStart:
		if e.Usage != nil {
			f.start = *e.Usage
		}
		f.msg = f.message()
	case chat.EventText, chat.EventReasoning:
		if e.Text == "" {
			return
		}
		if f.last != e.Kind {
			f.close()
		}
		f.text.WriteString(e.Text)
	case chat.EventToolStart:
		f.close()
		f.msg.Content = append(f.msg.Content, f.toolUse(e.Call))
		f.args.Reset()
	case chat.EventToolArgs:
		f.args.WriteString(e.Text)
	case chat.EventToolEnd:
		args := json.RawMessage(f.args.String())
		if e.Call != nil && len(e.Call.Arguments) > 0 {
			args = e.Call.Arguments
		}
		if json.Valid(args) {
			f.setInput(args)
		}
	case chat.EventToolResult:
		f.close()
		f.msg.Content = append(f.msg.Content, mcpResult(e))
	case chat.EventFinish:
		f.close()
		if !f.answers() {
			f.msg.Content = append(f.msg.Content, textBlock{Type: "text"})
		}
		reason, sequence := f.stop(e)
		f.msg.StopReason, f.msg.StopSequence, f.msg.Usage = &reason, sequence, f.usage(e.Usage)
	}
	f.last = e.Kind
}

// answers tells whether there is more than thinking. Clients read the text of a reply without a call whatever is in it, so
// such a reply has a text block, be it empty.
func (f *collectEncoder) answers() bool {
	return slices.ContainsFunc(f.msg.Content, func(b any) bool { _, thinking := b.(thinkingBlock); return !thinking })
}

// close ends the open text or thinking. A call that never ended has no arguments, even if those that came are whole: nobody
// must carry it out.
func (f *collectEncoder) close() {
	switch f.last {
	case chat.EventText:
		f.msg.Content = append(f.msg.Content, textBlock{Type: "text", Text: f.text.String()})
	case chat.EventReasoning:
		b := thinkingBlock{Type: "thinking", Thinking: f.text.String(), Signature: sealSignature("")}
		if f.omitThinking {
			b.Thinking, b.Signature = "", sealSignature(b.Thinking)
		}
		f.msg.Content = append(f.msg.Content, b)
	}
	f.text.Reset()
}

func (f *collectEncoder) setInput(args json.RawMessage) {
	i := len(f.msg.Content) - 1
	b := f.msg.Content[i].(toolUseBlock)
	b.Input = args
	f.msg.Content[i] = b
}

func (f *collectEncoder) Body() any { return f.msg }
