package soak

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// request is one of those that the clients send again and again.
type request struct {
	name, path string
	body       map[string]any
	status     int // that its answer has
	stream     bool
}

var prompts = []string{
	"Hello!", "Who are you?", "What is 12 + 30?", "Which port does hearth use?", "Repeat after me: the moon looks bright",
	"Name three colors.", "日本語で答えて", strings.Repeat("the same words again and again ", 60), "\x01 \u202e odd \U0001F600",
}

var weather = map[string]any{
	"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"},
}

const (
	askWeather  = "What is the weather in Paris?"
	replyTokens = 48
)

type object = map[string]any

// corpus makes the requests: each API, plain and streamed, with and without tools and forms, greedy and drawn with a seed, and
// those that are refused. An answer depends on its request alone.
func corpus() []request {
	var all []request
	add := func(name, path string, status int, body object) {
		for _, stream := range []bool{false, true} {
			r := request{name: fmt.Sprintf("%s, stream %t", name, stream), path: path, body: object{}, status: status, stream: stream && status == 200}
			for k, v := range body {
				r.body[k] = v
			}
			if stream {
				r.body["stream"] = true
			}
			all = append(all, r)
		}
	}
	says := func(text string) []any { return []any{object{"role": "user", "content": text}} }
	function := object{"name": "get_weather", "description": "The weather in a city.", "parameters": weather}
	form := object{"type": "json_schema", "name": "place", "schema": weather, "strict": true}
	for i, text := range prompts {
		add(fmt.Sprint("messages ", i), "/v1/messages", 200, object{"max_tokens": replyTokens, "temperature": 0, "messages": says(text)})
		add(fmt.Sprint("chat ", i), "/v1/chat/completions", 200, object{"max_tokens": replyTokens, "temperature": 0.8, "seed": i, "messages": says(text)})
		add(fmt.Sprint("completions ", i), "/v1/completions", 200, object{"max_tokens": replyTokens, "temperature": 0.8, "seed": i, "prompt": text})
		add(fmt.Sprint("responses ", i), "/v1/responses", 200, object{"max_output_tokens": replyTokens, "temperature": 0, "store": i%2 == 0, "input": text})
	}
	add("messages with tools", "/v1/messages", 200, object{"max_tokens": 2 * replyTokens, "temperature": 0, "messages": says(askWeather),
		"tools": []any{object{"name": "get_weather", "description": "The weather in a city.", "input_schema": weather}}})
	add("chat with tools", "/v1/chat/completions", 200, object{"max_tokens": 2 * replyTokens, "temperature": 0, "messages": says(askWeather),
		"tools": []any{object{"type": "function", "function": function}}})
	add("chat with a form", "/v1/chat/completions", 200, object{"max_tokens": replyTokens, "temperature": 0.8, "seed": 1, "messages": says(askWeather),
		"response_format": object{"type": "json_schema", "json_schema": object{"name": "place", "schema": weather, "strict": true}}})
	add("two of chat", "/v1/chat/completions", 200, object{"max_tokens": replyTokens, "temperature": 0.8, "seed": 2, "n": 2, "messages": says(prompts[5])})
	add("responses with tools", "/v1/responses", 200, object{"max_output_tokens": 2 * replyTokens, "temperature": 0, "input": askWeather,
		"tools": []any{object{"type": "function", "name": "get_weather", "parameters": weather, "strict": false}}})
	add("responses with a form", "/v1/responses", 200, object{"max_output_tokens": replyTokens, "temperature": 0, "input": askWeather, "text": object{"format": form}})
	add("messages of nobody", "/v1/messages", 400, object{"max_tokens": 1, "messages": []any{object{"role": "nobody", "content": 1}}})
	add("chat of nobody", "/v1/chat/completions", 400, object{"messages": []any{object{"role": "nobody", "content": 1}}})
	add("completions too long", "/v1/completions", 400, object{"prompt": strings.Repeat("much too long ", 9000)})
	add("responses to no input", "/v1/responses", 400, object{"input": 1})
	add("a model that is not there", "/v1/chat/completions", 404, object{"model": "no/such-model", "messages": says("Hello!")})
	count := request{name: "count_tokens", path: "/v1/messages/count_tokens", body: object{"messages": says(prompts[7])}, status: 200}
	return append(all, count)
}

// random are the keys of what differs from one answer to the next, or by what the prompt cache has, at any depth.
var random = map[string]bool{
	"id": true, "call_id": true, "item_id": true, "request_id": true, "created": true, "created_at": true, "completed_at": true,
	"system_fingerprint": true, "sequence_number": true, "obfuscation": true, "signature": true,
	"input_tokens_details": true, "prompt_tokens_details": true, "cache_read_input_tokens": true, "cache_creation_input_tokens": true, "cache_creation": true,
}

// steady takes what is random out of a JSON value, and Anthropic's count of what the cache did not have.
func steady(v any) any {
	switch v := v.(type) {
	case object:
		if _, cached := v["cache_read_input_tokens"]; cached {
			delete(v, "input_tokens")
		}
		for k := range v {
			if random[k] {
				delete(v, k)
			} else {
				v[k] = steady(v[k])
			}
		}
	case []any:
		for i := range v {
			v[i] = steady(v[i])
		}
	}
	return v
}

// fold makes one text of a whole answer, or of the events of a stream: how tokens fell into events does not matter, nothing else
// is left out.
func fold(raw []byte, stream bool) (string, error) {
	if !stream {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return "", fmt.Errorf("%w: %.200q", err, raw)
		}
		b, err := json.Marshal(steady(v))
		return string(b), err
	}
	f := folded{texts: map[string]*strings.Builder{}}
	for line := range strings.Lines(string(raw)) {
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: ")
		switch {
		case !ok:
			continue
		case data == "[DONE]":
			f.end("done")
			continue
		}
		var v object
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			return "", fmt.Errorf("%w: %.200q", err, data)
		}
		if err := f.event(v); err != nil {
			return "", err
		}
	}
	return f.String(), nil
}

// folded is a stream so far.
type folded struct {
	order []string
	texts map[string]*strings.Builder
	last  []string
}

// end notes what comes but once.
func (f *folded) end(s string) { f.last = append(f.last, s) }

// text joins what belongs to one piece of the answer.
func (f *folded) text(of string, piece any) {
	s, ok := piece.(string)
	if !ok || s == "" {
		return
	}
	if f.texts[of] == nil {
		f.texts[of] = &strings.Builder{}
		f.order = append(f.order, of)
	}
	f.texts[of].WriteString(s)
}

func (f *folded) event(v object) error {
	kind, _ := v["type"].(string)
	switch {
	case kind == "ping", kind == "content_block_delta" && at(v, "delta", "type") == "signature_delta":
		return nil
	case kind == "error" || v["error"] != nil && kind == "":
		return fmt.Errorf("an error in the stream: %v", v)
	case kind == "content_block_delta":
		for _, key := range []string{"text", "partial_json", "thinking"} {
			f.text(fmt.Sprint(v["index"], " ", key), at(v, "delta", key))
		}
		return nil
	case strings.HasSuffix(kind, ".delta") && kind != "":
		f.text(fmt.Sprint(kind, v["output_index"], v["content_index"]), v["delta"])
		return nil
	case kind != "":
		b, err := json.Marshal(steady(v))
		f.end(string(b))
		return err
	}
	choices, _ := v["choices"].([]any)
	for _, c := range choices {
		c, _ := c.(object)
		i := c["index"]
		f.text(fmt.Sprint(i, " text"), c["text"])
		for _, key := range []string{"content", "reasoning_content"} {
			f.text(fmt.Sprint(i, " ", key), at(c, "delta", key))
		}
		calls, _ := at(c, "delta", "tool_calls").([]any)
		for _, call := range calls {
			call, _ := call.(object)
			for _, key := range []string{"name", "arguments"} {
				f.text(fmt.Sprint(i, " call ", call["index"], " ", key), at(call, "function", key))
			}
		}
		if reason := c["finish_reason"]; reason != nil {
			f.text(fmt.Sprint(i, " finish"), fmt.Sprint(reason))
		}
	}
	return nil
}

// String is the pieces in the order of their names, since two choices may begin in either order, and what came once in the order
// in which it came.
func (f *folded) String() string {
	var b strings.Builder
	for _, of := range slices.Sorted(slices.Values(f.order)) {
		fmt.Fprintf(&b, "%s: %q\n", of, f.texts[of])
	}
	b.WriteString(strings.Join(f.last, "\n"))
	return b.String()
}

// at walks into objects.
func at(v any, keys ...string) any {
	for _, k := range keys {
		o, _ := v.(object)
		v = o[k]
	}
	return v
}
