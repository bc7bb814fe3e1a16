package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"hearth/internal/regular"
)

// reply is what came of a request's stream, and when.
type reply struct {
	text   []byte
	calls  []toolCall
	finish string
	done   bool // the stream said that it is whole

	// Tokens, as the server's usage tells them. Without usage, known is false, and output counts the events that had some.
	known       bool
	prompt      int
	cached      int
	input       int // of Messages alone, which tells a prompt in three parts: what is neither cached nor
	written     int // written to the cache
	tellsCached bool
	output      int

	grown       int // events with tokens
	first, last time.Duration
	gaps        []float64 // milliseconds between two such events
}

// toolCall is a call of the model's.
type toolCall struct {
	id, name string
	args     []byte
}

// object is the arguments as a JSON object, which a call that was cut does not have.
func (c *toolCall) object() json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(c.args, &o) != nil || o == nil {
		return json.RawMessage("{}")
	}
	return c.args
}

// mostCalls bounds the calls of a reply.
const mostCalls = 64

// call is the n-th call of the reply, nil if that is too many or no number of one.
func (r *reply) call(n int) *toolCall {
	if n < 0 || n >= mostCalls {
		return nil
	}
	for len(r.calls) <= n {
		r.calls = append(r.calls, toolCall{})
	}
	return &r.calls[n]
}

// read follows a stream to its end. since tells the time since the request was sent.
func (r *reply) read(a *api, body io.Reader, since func() time.Duration) error {
	in := newEvents(body)
	for {
		data, err := in.next()
		switch {
		case errors.Is(err, io.EOF) && r.done:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the stream was cut after %d events with tokens: %s", r.grown, a.unfinished)
		case err != nil:
			return fmt.Errorf("the stream broke off after %d events with tokens: %w", r.grown, err)
		}
		grew, err := a.event(r, data)
		if err != nil {
			return err
		}
		if !grew {
			continue
		}
		now := since()
		if r.grown == 0 {
			r.first = now
		} else {
			r.gaps = append(r.gaps, 1e3*(now-r.last).Seconds())
		}
		r.last = now
		r.grown++
	}
}

// tokens is how many the reply has.
func (r *reply) tokens() int {
	if r.known {
		return r.output
	}
	return r.grown
}

// rate is tokens per second from the first to the last, 0 where there is no time between them.
func (r *reply) rate() float64 {
	if n, took := r.tokens(), (r.last - r.first).Seconds(); n > 1 && took > 0 {
		return float64(n-1) / took
	}
	return 0
}

// said is an error that a server put into its stream.
func said(e *wireError) error {
	return fmt.Errorf("the stream ended in an error: %s", regular.Clip(e.String()))
}

// wireError is an error as both APIs have it.
type wireError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
}

func (e *wireError) String() string {
	switch {
	case e.Message == "":
		return e.Type
	case e.Type == "":
		return e.Message
	}
	return e.Type + ": " + e.Message
}

// chatEvent reads an event of Chat Completions, and says whether it has tokens.
func chatEvent(r *reply, data []byte) (grew bool, err error) {
	if string(data) == "[DONE]" {
		r.done = true
		return false, nil
	}
	var v struct {
		Error   *wireError
		Choices []struct {
			Delta struct {
				Content          string
				ReasoningContent string `json:"reasoning_content"`
				Reasoning        string
				ToolCalls        []struct {
					Index    int
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
		Usage *struct {
			PromptTokens     int `json:"prompt_tokens"`
			CompletionTokens int `json:"completion_tokens"`
			Details          *struct {
				Cached *int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return false, fmt.Errorf("an event of the stream is no chat completion: %w: %s", err, regular.Clip(string(data)))
	}
	if v.Error != nil {
		return false, said(v.Error)
	}
	for _, c := range v.Choices {
		d := &c.Delta
		r.text = append(r.text, d.Content...)
		grew = grew || d.Content != "" || d.ReasoningContent != "" || d.Reasoning != ""
		for _, t := range d.ToolCalls {
			if call := r.call(t.Index); call != nil {
				call.id, call.name = cmp.Or(call.id, t.ID), cmp.Or(call.name, t.Function.Name)
				call.args = append(call.args, t.Function.Arguments...)
				grew = grew || t.Function.Name != "" || t.Function.Arguments != ""
			}
		}
		if c.FinishReason != "" {
			r.finish, r.done = c.FinishReason, true
		}
	}
	if u := v.Usage; u != nil {
		r.known, r.prompt, r.output = true, u.PromptTokens, u.CompletionTokens
		if u.Details != nil && u.Details.Cached != nil {
			r.cached, r.tellsCached = *u.Details.Cached, true
		}
	}
	return grew, nil
}

// messageUsage is usage of Messages. What is left out of an event is as it was.
type messageUsage struct {
	Input  *int `json:"input_tokens"`
	Write  *int `json:"cache_creation_input_tokens"`
	Cached *int `json:"cache_read_input_tokens"`
	Output *int `json:"output_tokens"`
}

func (r *reply) usage(u *messageUsage) {
	if u == nil {
		return
	}
	for _, of := range []struct{ told, kept *int }{{u.Input, &r.input}, {u.Write, &r.written}, {u.Cached, &r.cached}, {u.Output, &r.output}} {
		if of.told != nil {
			*of.kept, r.known = *of.told, true
		}
	}
	r.tellsCached = r.tellsCached || u.Cached != nil
	r.prompt = r.input + r.written + r.cached
}

// messagesEvent reads an event of Messages, and says whether it has tokens.
func messagesEvent(r *reply, data []byte) (grew bool, err error) {
	var v struct {
		Type    string
		Error   *wireError
		Message struct{ Usage *messageUsage }
		Usage   *messageUsage
		Content struct {
			Type, ID, Name, Text string
		} `json:"content_block"`
		Delta struct {
			Type, Text, Thinking string
			PartialJSON          string `json:"partial_json"`
			StopReason           string `json:"stop_reason"`
		}
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return false, fmt.Errorf("an event of the stream is none of Messages: %w: %s", err, regular.Clip(string(data)))
	}
	switch v.Type {
	case "error":
		if v.Error == nil {
			v.Error = &wireError{Message: "it says not which"}
		}
		return false, said(v.Error)
	case "message_start":
		r.usage(v.Message.Usage)
	case "content_block_start":
		r.text = append(r.text, v.Content.Text...)
		if v.Content.Type == "tool_use" {
			if call := r.call(len(r.calls)); call != nil {
				call.id, call.name = v.Content.ID, v.Content.Name
			}
		}
		return v.Content.Text != "" || v.Content.Type == "tool_use", nil
	case "content_block_delta":
		r.text = append(r.text, v.Delta.Text...)
		if n := len(r.calls); n > 0 && v.Delta.Type == "input_json_delta" {
			r.calls[n-1].args = append(r.calls[n-1].args, v.Delta.PartialJSON...)
		}
		return v.Delta.Text != "" || v.Delta.Thinking != "" || v.Delta.PartialJSON != "", nil
	case "message_delta":
		r.finish = v.Delta.StopReason
		r.usage(v.Usage)
	case "message_stop":
		r.done = true
	}
	return false, nil
}
