package openai

import (
	"bytes"
	"strconv"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// short is the short way to what most chunks of a stream are: nothing but a fragment of text, without logprobs. They differ
// from each other in little, and come out byte for byte as wire.Marshal writes their types.
type short struct {
	head int    // length of what all chunks begin with
	buf  []byte // that, and the rest of the last one
}

// begin returns the beginning of a chunk up to what follows its choice's index. A chunk without choices tells it.
func (s *short) begin(empty func() any, choice int) []byte {
	if s.head == 0 {
		text := wire.Marshal(empty())
		s.buf = text[:bytes.LastIndexByte(text, '[')+1] // the choices are what comes last
		s.head = len(s.buf)
	}
	return strconv.AppendInt(append(s.buf[:s.head], `{"index":`...), int64(choice), 10)
}

// send ends b, a chunk up to its choice's logprobs, and sends it.
func (s *short) send(out *wire.Stream, b []byte, includeUsage bool) {
	b = append(b, `,"logprobs":null,"finish_reason":null}]`...)
	if includeUsage {
		b = append(b, `,"usage":null`...)
	}
	s.buf = append(b, '}')
	out.Event("", s.buf)
}

// fragment sends text, reasoning or arguments.
func (s *streamEncoder) fragment(e *chat.Event) {
	b := s.short.begin(func() any { return s.chunk() }, e.Choice)
	switch e.Kind {
	case chat.EventText:
		b = wire.AppendString(append(b, `,"delta":{"content":`...), e.Text)
	case chat.EventReasoning:
		content, reasoning := s.reasoning(e.Text)
		b = append(b, `,"delta":{`...)
		if content != "" {
			b = wire.AppendString(append(b, `"reasoning_content":`...), content)
		}
		if content != "" && reasoning != "" {
			b = append(b, ',')
		}
		if reasoning != "" {
			b = wire.AppendString(append(b, `"reasoning":`...), reasoning)
		}
	case chat.EventToolArgs:
		b = strconv.AppendInt(append(b, `,"delta":{"tool_calls":[{"index":`...), int64(e.Tool), 10)
		b = append(wire.AppendString(append(b, `,"function":{"arguments":`...), e.Text), `}}]`...)
	}
	s.short.send(s.out, append(b, '}'), s.includeUsage)
}

// fragment sends text.
func (s *completionStream) fragment(choice int, text string) {
	b := s.short.begin(func() any { return s.body() }, choice)
	b = wire.AppendString(append(b, `,"text":`...), text)
	s.short.send(s.out, b, s.includeUsage)
}
