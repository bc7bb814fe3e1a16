package anthropic

import (
	"strconv"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// pingFrame keeps a silent stream alive; all clients ignore it wherever it comes.
const pingFrame = "event: ping\ndata: {\"type\": \"ping\"}\n\n"

type startEvent struct {
	Type    string  `json:"type"`
	Message message `json:"message"`
}

type blockStartEvent struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Block any    `json:"content_block"`
}

type blockStopEvent struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

type messageDeltaEvent struct {
	Type  string      `json:"type"`
	Delta messageStop `json:"delta"`
	Usage usage       `json:"usage"`
}

type messageStop struct {
	StopReason   string  `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// openBlock is the kind of the content block that was started and not stopped.
type openBlock uint8

const (
	noBlock openBlock = iota
	openText
	openThinking
	openTool
	openResult
)

// streamEncoder writes Anthropic's event sequence: message_start, blocks one after another with indexes from 0,
// message_delta, message_stop. A block is stopped as soon as it is known to be complete, because clients start a tool
// at its content_block_stop.
type streamEncoder struct {
	reply
	out      *wire.Stream
	index    int // of the open block, or of the next one
	open     openBlock
	answers  bool            // a block that is no thinking was started, see collectEncoder.answers
	thinking strings.Builder // kept when the client is not shown it
	argBytes int             // of the open tool's arguments sent so far
	buf      []byte          // of delta
}

func (s *streamEncoder) Event(e *chat.Event) {
	switch e.Kind {
	case chat.EventStart:
		if e.Usage != nil {
			s.start = *e.Usage
		}
		s.send("message_start", startEvent{"message_start", s.message()})
	case chat.EventText:
		if e.Text != "" {
			s.begin(openText)
			s.delta("text_delta", "text", e.Text)
		}
	case chat.EventReasoning:
		s.reasoning(e.Text)
	case chat.EventToolStart:
		s.close()
		s.startBlock(openTool, s.toolUse(e.Call))
		s.argBytes = 0
	case chat.EventToolArgs:
		s.args(e.Text)
	case chat.EventToolEnd:
		if s.argBytes == 0 && e.Call != nil {
			s.args(string(e.Call.Arguments))
		}
		s.close()
	case chat.EventToolResult:
		s.close()
		s.startBlock(openResult, mcpResult(e))
		s.close()
	case chat.EventFinish:
		if !s.answers {
			s.begin(openText)
		}
		s.close()
		reason, sequence := s.stop(e)
		s.send("message_delta", messageDeltaEvent{"message_delta", messageStop{reason, sequence}, s.usage(e.Usage)})
	}
}

// Done ends the stream: message_stop, or an error event in its place.
func (s *streamEncoder) Done(e *chat.Error) {
	if e != nil {
		s.send("error", newErrorBody(e, s.requestID))
		return
	}
	s.send("message_stop", struct {
		Type string `json:"type"`
	}{"message_stop"})
}

func (s *streamEncoder) reasoning(text string) {
	if text == "" || s.hideThinking {
		return
	}
	s.begin(openThinking)
	if s.omitThinking {
		s.thinking.WriteString(text)
		return
	}
	s.delta("thinking_delta", "thinking", text)
}

func (s *streamEncoder) args(text string) {
	if text != "" && s.open == openTool {
		s.argBytes += len(text)
		s.delta("input_json_delta", "partial_json", text)
	}
}

// begin makes a block of the given kind the open one.
func (s *streamEncoder) begin(kind openBlock) {
	if s.open == kind {
		return
	}
	s.close()
	if kind == openText {
		s.startBlock(kind, textBlock{Type: "text"})
	} else {
		s.startBlock(kind, thinkingBlock{Type: "thinking"})
	}
}

func (s *streamEncoder) startBlock(kind openBlock, block any) {
	s.open = kind
	s.answers = s.answers || kind != openThinking
	s.send("content_block_start", blockStartEvent{"content_block_start", s.index, block})
}

// close stops the open block; thinking gets its signature first.
func (s *streamEncoder) close() {
	if s.open == noBlock {
		return
	}
	if s.open == openThinking {
		signature := sealSignature(s.thinking.String())
		s.thinking.Reset()
		s.delta("signature_delta", "signature", signature)
	}
	s.send("content_block_stop", blockStopEvent{"content_block_stop", s.index})
	s.open = noBlock
	s.index++
}

// delta sends a fragment of the open block, the text of field. It is what most events are, so it goes the short way: the bytes
// are those that wire.Marshal would write.
func (s *streamEncoder) delta(kind, field, text string) {
	b := strconv.AppendInt(append(s.buf[:0], `{"type":"content_block_delta","index":`...), int64(s.index), 10)
	b = append(append(append(b, `,"delta":{"type":"`...), kind...), `","`...)
	b = wire.AppendString(append(append(b, field...), `":`...), text)
	s.buf = append(b, `}}`...)
	s.out.Event("content_block_delta", s.buf)
}

func (s *streamEncoder) send(name string, v any) {
	s.out.Event(name, wire.Marshal(v))
}
