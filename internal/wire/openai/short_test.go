package openai

import (
	"net/http/httptest"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// TestShort: the short way writes the bytes of the long one.
func TestShort(t *testing.T) {
	const text = "a \"b\"\n</x> ü\xff\u2028"
	r := reply{id: "chatcmpl-1", created: 5, model: `org/"m"[1]`, fingerprint: "f", choices: 3, asContent: true, asReasoning: true}
	onlyContent, onlyReasoning := r, r
	onlyContent.asReasoning, onlyReasoning.asContent = false, false
	s := text
	for _, tt := range []struct {
		r     reply
		e     chat.Event
		delta delta
	}{
		{r, chat.Event{Kind: chat.EventText, Choice: 2, Text: text}, delta{Content: &s}},
		{r, chat.Event{Kind: chat.EventReasoning, Text: text}, delta{ReasoningContent: text, Reasoning: text}},
		{onlyContent, chat.Event{Kind: chat.EventReasoning, Text: text}, delta{ReasoningContent: text}},
		{onlyReasoning, chat.Event{Kind: chat.EventReasoning, Text: text}, delta{Reasoning: text}},
		{r, chat.Event{Kind: chat.EventToolArgs, Tool: 7, Text: text}, delta{ToolCalls: []toolCall{{Index: new(7), Function: &toolFunction{Arguments: text}}}}},
	} {
		for _, includeUsage := range []bool{false, true} {
			got := sent(func(out *wire.Stream) {
				enc := newStreamEncoder(out, tt.r, includeUsage)
				enc.Event(&tt.e)
				enc.Event(&tt.e)
			})
			want := sent(func(out *wire.Stream) {
				enc := newStreamEncoder(out, tt.r, includeUsage)
				enc.send(chunkChoice{Index: tt.e.Choice, Delta: tt.delta})
				enc.send(chunkChoice{Index: tt.e.Choice, Delta: tt.delta})
			})
			if got != want {
				t.Errorf("%+v: %s\nwant %s", tt.e, got, want)
			}
		}
	}
}

// TestShortText: the same of text completions.
func TestShortText(t *testing.T) {
	const text = "a \"b\" [1]"
	for _, includeUsage := range []bool{false, true} {
		var enc *completionStream
		got := sent(func(out *wire.Stream) {
			enc = newCompletionStream(out, completionReply{reply: reply{id: "cmpl-1", model: "m[1]", choices: 2}, per: 1}, includeUsage)
			enc.Event(&chat.Event{Kind: chat.EventText, Choice: 1, Text: text})
		})
		body := enc.body()
		body.Choices = []textChoice{{Index: 1, Text: text}}
		want := wire.Marshal(body)
		if includeUsage {
			want = wire.Marshal(textUsageChunk{textCompletion: body})
		}
		if got != "data: "+string(want)+"\n\n" {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// sent is what f sends.
func sent(f func(*wire.Stream)) string {
	w := httptest.NewRecorder()
	s := wire.NewStream(w, wire.DefaultKeepAlive, pingFrame, func() {})
	f(s)
	s.Close()
	return w.Body.String()
}
