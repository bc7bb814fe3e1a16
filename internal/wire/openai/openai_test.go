package openai

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/wire/wiretest"
)

func TestCases(t *testing.T) { wiretest.RunCases(t, Protocol{}, "/v1/chat/completions") }

func FuzzChat(f *testing.F) { wiretest.FuzzDecode(f, Protocol{}, "/chat/completions") }

// A client that folds the stream of a case must arrive at the case's plain reply, usage aside.
func TestStreamFoldsToPlainReply(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := len(ar.Files)
		plain, sse := string(ar.Files[n-2].Data), string(ar.Files[n-1].Data)
		if strings.HasPrefix(sse, "HTTP 200\n") && !strings.HasSuffix(sse, "\n\ndata: [DONE]\n\n") {
			t.Errorf("%s: the stream does not end with [DONE]", file)
		}
		if !strings.HasPrefix(plain, "HTTP 200\n") {
			continue
		}
		var want completion
		if err := json.Unmarshal([]byte(strings.TrimPrefix(plain, "HTTP 200\n")), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Choices, foldStream(t, sse)); diff != "" {
			t.Errorf("%s: -plain +folded stream:\n%s", file, diff)
		}
	}
}

// foldStream does what the SDKs' accumulators do.
func foldStream(t *testing.T, sse string) []choice {
	var out []choice
	for _, frame := range strings.Split(strings.TrimSpace(strings.TrimPrefix(sse, "HTTP 200\n")), "\n\n") {
		data := strings.TrimPrefix(frame, "data: ")
		if data == "[DONE]" {
			break
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("frame %q: %v", frame, err)
		}
		for _, d := range c.Choices {
			for len(out) <= d.Index {
				empty := ""
				out = append(out, choice{Index: len(out), Message: message{Content: &empty}})
			}
			foldDelta(&out[d.Index], d)
		}
	}
	for i := range out {
		if m := &out[i].Message; len(m.ToolCalls) > 0 && *m.Content == "" {
			m.Content = nil
		}
	}
	return out
}

func foldDelta(c *choice, d chunkChoice) {
	m := &c.Message
	m.Role += d.Delta.Role
	if d.Delta.Content != nil {
		text := *m.Content + *d.Delta.Content
		m.Content = &text
	}
	m.ReasoningContent += d.Delta.ReasoningContent
	m.Reasoning += d.Delta.Reasoning
	for _, call := range d.Delta.ToolCalls {
		if *call.Index == len(m.ToolCalls) {
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: call.ID, Type: call.Type})
			if last := &m.ToolCalls[*call.Index]; call.Custom != nil {
				last.Custom = &toolCustom{Name: call.Custom.Name}
			} else {
				last.Function = &toolFunction{Name: call.Function.Name}
			}
		}
		switch of := &m.ToolCalls[*call.Index]; {
		case of.Custom != nil:
			of.Custom.Input += call.Custom.Input
		default:
			of.Function.Arguments += call.Function.Arguments
		}
	}
	for _, call := range d.Delta.MCPCalls {
		if call.Index == len(m.MCPCalls) {
			m.MCPCalls = append(m.MCPCalls, MCPCall{})
		}
		of := &m.MCPCalls[call.Index]
		of.ID += call.ID
		of.Type += call.Type
		of.Server += call.Server
		of.Name += call.Name
		of.Arguments += call.Arguments
		of.Status += call.Status
		of.Output, of.Error = call.Output, call.Error
	}
	if d.Logprobs != nil {
		if c.Logprobs == nil {
			c.Logprobs = &logprobs{}
		}
		c.Logprobs.Content = append(c.Logprobs.Content, d.Logprobs.Content...)
	}
	if d.FinishReason != nil {
		c.FinishReason = *d.FinishReason
	}
}

// Six seconds of prefill: the stream begins with a keep-alive.
func TestKeepAlive(t *testing.T) {
	got := wiretest.SlowStart(t, Protocol{}, "/v1/chat/completions", 6*time.Second)
	if want := ": keep-alive\n\ndata: {\"id\""; !strings.HasPrefix(got, want) {
		t.Errorf("the stream begins %.80q, want %q", got, want)
	}
}
