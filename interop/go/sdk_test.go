package interop

import (
	"net/http/httptest"
	"strings"
	"testing"
)

var sdks = []struct {
	name string
	new  func(url, key string) sdk
	// what the protocol calls things
	stop, toolStop          string
	input                   int64 // of 20 prompt tokens, 8 of them cached
	unauthorized, unknown   string
	overloaded              int
	overloadedType, tooLong string
}{
	{"anthropic1", newAnthropic1, "end_turn", "tool_use", 12, "authentication_error", "not_found_error", 529, "overloaded_error", "prompt is too long: 5000 tokens > 4096 maximum"},
	{"anthropic2", newAnthropic2, "end_turn", "tool_use", 12, "authentication_error", "not_found_error", 529, "overloaded_error", "prompt is too long: 5000 tokens > 4096 maximum"},
	{"openai3", newOpenAI3, "stop", "tool_calls", 20, "invalid_request_error", "invalid_request_error", 503, "server_error", "maximum context length is 4096 tokens"},
	{"azure3", newAzure3, "stop", "tool_calls", 20, "invalid_request_error", "invalid_request_error", 503, "server_error", "maximum context length is 4096 tokens"},
}

// TestScripted checks what every SDK makes of known replies, to the letter.
func TestScripted(t *testing.T) {
	srv := httptest.NewServer(newScripted())
	defer srv.Close()
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			c := s.new(srv.URL, scriptedKey)
			for _, model := range []string{"test-model", "thinking", "slow"} {
				want := reply{model: model, text: "Hello, wörld", stop: s.stop, input: s.input, output: 7}
				if model == "thinking" {
					want.reasoning = "Let me see."
				}
				got, err := c.create(t.Context(), call{model: model, prompt: "Hi"})
				check(t, model+" created", got, err, want)
				got, err = c.stream(t.Context(), call{model: model, prompt: "Hi"})
				check(t, model+" streamed", got, err, want)
			}
			for name, do := range map[string]func(call) (*reply, error){
				"created":  func(q call) (*reply, error) { return c.create(t.Context(), q) },
				"streamed": func(q call) (*reply, error) { return c.stream(t.Context(), q) },
			} {
				ask := call{model: "test-model", prompt: "Weather?", tool: true}
				first, err := do(ask)
				check(t, "tool call "+name, first, err, reply{model: "test-model", stop: s.toolStop, input: s.input, output: 7,
					calls: []toolCall{{"call_1", toolName, `{"city":"Paris"}`}}})
				if first == nil {
					continue
				}
				ask.previous, ask.result = first, "rain"
				second, err := do(ask)
				check(t, "tool result "+name, second, err, reply{model: "test-model", text: "The tool says: rain", stop: s.stop, input: s.input, output: 7})
			}
			_, err := c.stream(t.Context(), call{model: "midway", prompt: "Hi"})
			if err == nil || !strings.Contains(err.Error(), "a step failed") {
				t.Errorf("broken off midway: %v", err)
			}
			_, err = c.stream(t.Context(), call{model: "long", prompt: "Hi"})
			if status, _, message := c.failure(err); status != 400 || !strings.Contains(message, s.tooLong) {
				t.Errorf("too long: %v", err)
			}
			_, err = c.create(t.Context(), call{model: "overloaded", prompt: "Hi"})
			if status, kind, _ := c.failure(err); status != s.overloaded || kind != s.overloadedType {
				t.Errorf("overloaded: %d %s, %v", status, kind, err)
			}
			common(t, c, s.new(srv.URL, "wrong"), s.unauthorized, s.unknown)
			unknownModel(t, c, s.unknown)
		})
	}
}

// TestHearth checks that every SDK gets along with a running hearth; what the small model says is its own affair.
func TestHearth(t *testing.T) {
	url := startHearth(t)
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			c := s.new(url, realKey)
			for _, model := range []string{"demo", "claude-sonnet-4-5"} {
				got, err := c.create(t.Context(), call{model: model, prompt: "Hello! Who are you?"})
				alive(t, model+" created", got, err, model)
				got, err = c.stream(t.Context(), call{model: model, prompt: "Hello! Who are you?"})
				alive(t, model+" streamed", got, err, model)
			}
			ask := call{model: "demo", prompt: "What is the weather in Paris?", tool: true}
			first, err := c.stream(t.Context(), ask)
			alive(t, "with a tool", first, err, "demo")
			if first != nil && len(first.calls) > 0 {
				ask.previous, ask.result = first, "Sunny, 21 degrees."
				second, err := c.create(t.Context(), ask)
				alive(t, "after the tool", second, err, "demo")
			}
			common(t, c, s.new(url, "wrong"), s.unauthorized, s.unknown)
			if s.name == "azure3" { // a deployment may have any name
				got, err := c.create(t.Context(), call{model: "my-deployment", prompt: "Hello! Who are you?"})
				alive(t, "of a deployment", got, err, "my-deployment")
				return
			}
			unknownModel(t, c, s.unknown)
		})
	}
}

// common is what holds on every server: the models, a wrong key.
func common(t *testing.T, c, wrong sdk, unauthorized, unknown string) {
	t.Helper()
	ids, err := c.models(t.Context())
	if err != nil || len(ids) == 0 {
		t.Fatalf("models: %v, %v", ids, err)
	}
	if id, err := c.model(t.Context(), ids[0]); err != nil || id != ids[0] {
		t.Errorf("model %s: %s, %v", ids[0], id, err)
	}
	if status, kind, _ := c.failure(second(c.model(t.Context(), "no-such-model"))); status != 404 || kind != unknown {
		t.Errorf("get of an unknown model: %d %s", status, kind)
	}
	for name, err := range map[string]error{
		"models": second(wrong.models(t.Context())),
		"create": second(wrong.create(t.Context(), call{model: "demo", prompt: "Hi"})),
		"stream": second(wrong.stream(t.Context(), call{model: "demo", prompt: "Hi"})),
	} {
		if status, kind, _ := c.failure(err); status != 401 || kind != unauthorized {
			t.Errorf("%s with a wrong key: %d %s, %v", name, status, kind, err)
		}
	}
}

// unknownModel asks for what is not served.
func unknownModel(t *testing.T, c sdk, unknown string) {
	t.Helper()
	for name, err := range map[string]error{
		"create": second(c.create(t.Context(), call{model: "no-such-model", prompt: "Hi"})),
		"stream": second(c.stream(t.Context(), call{model: "no-such-model", prompt: "Hi"})),
	} {
		if status, kind, _ := c.failure(err); status != 404 || kind != unknown {
			t.Errorf("%s of an unknown model: %d %s, %v", name, status, kind, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func check(t *testing.T, what string, got *reply, err error, want reply) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	g := *got
	g.turn = nil
	if len(g.calls) != len(want.calls) || len(g.calls) > 0 && g.calls[0] != want.calls[0] {
		t.Errorf("%s: calls %v, want %v", what, g.calls, want.calls)
	}
	if g.model != want.model || g.text != want.text || g.reasoning != want.reasoning || g.stop != want.stop || g.input != want.input || g.output != want.output {
		t.Errorf("%s: %+v, want %+v", what, g, want)
	}
}

func alive(t *testing.T, what string, got *reply, err error, model string) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if got.model != model || got.text+got.reasoning == "" && len(got.calls) == 0 || got.stop == "" || got.input == 0 || got.output == 0 {
		t.Errorf("%s: %+v", what, *got)
	}
}
