package openai

import (
	"hearth/internal/chat"
	"hearth/internal/wire"
)

type chunk struct {
	ID          string        `json:"id"`
	Object      string        `json:"object"`
	Created     int64         `json:"created"`
	Model       string        `json:"model"`
	Fingerprint string        `json:"system_fingerprint"`
	Choices     []chunkChoice `json:"choices"`
}

// usageChunk is a chunk of a stream that was asked for usage: null but in the last.
type usageChunk struct {
	chunk
	Usage *usage `json:"usage"`
}

type chunkChoice struct {
	Index        int       `json:"index"`
	Delta        delta     `json:"delta"`
	Logprobs     *logprobs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

type delta struct {
	Role             string     `json:"role,omitempty"`
	Content          *string    `json:"content,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Reasoning        string     `json:"reasoning,omitempty"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	MCPCalls         []mcpDelta `json:"mcp_calls,omitempty"`
}

// mcpDelta is what a chunk has of an MCPCall: at first what it is, then what came of it, so that clients which add texts up have
// each once.
type mcpDelta struct {
	Index     int     `json:"index"`
	ID        string  `json:"id,omitempty"`
	Type      string  `json:"type,omitempty"`
	Server    string  `json:"server_label,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments string  `json:"arguments,omitempty"`
	Status    string  `json:"status,omitempty"`
	Output    *string `json:"output,omitempty"`
	Error     *string `json:"error,omitempty"`
}

// streamEncoder writes chunks: the role of every choice first, then deltas, a finish reason per choice, the usage if
// it was asked for, and [DONE] whatever happened.
type streamEncoder struct {
	reply
	out          *wire.Stream
	includeUsage bool
	parts        []streaming
	short        short
}

// streaming is what is known of one choice so far.
type streaming struct {
	open     toolCall // the head of the call that was begun last
	argBytes int      // of its arguments, sent so far
	here     bool     // it is run here
	said     bool     // there was text
	again    bool     // see choiceState
}

func newStreamEncoder(out *wire.Stream, r reply, includeUsage bool) *streamEncoder {
	return &streamEncoder{reply: r, out: out, includeUsage: includeUsage, parts: make([]streaming, r.choices)}
}

func (s *streamEncoder) Event(e *chat.Event) {
	c, of := chunkChoice{Index: e.Choice}, &s.parts[e.Choice]
	if s.logprobs && len(e.Logprobs) > 0 {
		c.Logprobs = &logprobs{Content: Logprobs(e.Logprobs)}
	}
	switch e.Kind {
	case chat.EventStart:
		s.count(e.Usage)
		empty := ""
		for i := range s.choices {
			s.send(chunkChoice{Index: i, Delta: delta{Role: "assistant", Content: &empty}})
		}
		return
	case chat.EventText:
		if of.again && of.said {
			with := *e
			with.Text = betweenRounds + e.Text
			e = &with
		}
		of.said, of.again = true, false
		if c.Logprobs == nil {
			s.fragment(e)
			return
		}
		c.Delta.Content = &e.Text
	case chat.EventReasoning:
		if s.asContent || s.asReasoning {
			s.fragment(e)
		}
		return
	case chat.EventToolResult:
		of.again = true
		m := NewMCPCall(e.Call.ID, e.Call, e.Result)
		c.Delta.MCPCalls = []mcpDelta{{Index: e.Tool, Status: m.Status, Output: m.Output, Error: m.Error}}
	case chat.EventToolStart:
		if of.here = e.Call != nil && e.Call.MCP != nil; of.here { // it is told when it is whole
			return
		}
		call := s.toolCall(e)
		call.Index = &e.Tool
		of.open, of.argBytes = call, 0
		c.Delta.ToolCalls = []toolCall{call}
	case chat.EventToolArgs:
		if of.here || of.open.Custom != nil { // its input is known at the end
			return
		}
		of.argBytes += len(e.Text)
		s.fragment(e)
		return
	case chat.EventToolEnd:
		switch {
		case of.here:
			m := NewMCPCall(e.Call.ID, e.Call, nil)
			c.Delta.MCPCalls = []mcpDelta{{Index: e.Tool, ID: m.ID, Type: m.Type, Server: m.Server, Name: m.Name, Arguments: m.Arguments}}
		case e.Call == nil || of.argBytes > 0:
			return
		case of.open.Custom != nil:
			c.Delta.ToolCalls = []toolCall{{Index: &e.Tool, Custom: &toolCustom{Input: InputText(e.Call)}}}
		default:
			c.Delta.ToolCalls = []toolCall{{Index: &e.Tool, Function: &toolFunction{Arguments: ArgumentText(e.Call)}}}
		}
	case chat.EventFinish:
		s.count(e.Usage)
		reason := finishReason(e.Finish)
		c.FinishReason = &reason
	}
	s.send(c)
}

// Done ends the stream. An error stands in a chunk of its own: clients take the mere presence of the key for failure.
func (s *streamEncoder) Done(e *chat.Error) {
	switch {
	case e != nil:
		s.out.Event("", wire.Marshal(errorBody{NewErrorDetail(e)}))
	case s.includeUsage:
		s.out.Event("", wire.Marshal(usageChunk{s.chunk(), s.usageBody()}))
	}
	s.out.Event("", []byte("[DONE]"))
}

func (s *streamEncoder) chunk(choices ...chunkChoice) chunk {
	if choices == nil {
		choices = []chunkChoice{}
	}
	return chunk{ID: s.id, Object: "chat.completion.chunk", Created: s.created, Model: s.model, Fingerprint: s.fingerprint, Choices: choices}
}

func (s *streamEncoder) send(c chunkChoice) {
	if s.includeUsage {
		s.out.Event("", wire.Marshal(usageChunk{chunk: s.chunk(c)}))
		return
	}
	s.out.Event("", wire.Marshal(s.chunk(c)))
}
