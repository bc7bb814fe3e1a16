package responses

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"hearth/internal/wire/wiretest"
)

// whole is a request with every field that is read. Its parts are what the table breaks.
const whole = `{
 "model": "m", "stream": false, "instructions": "Be brief.", "max_output_tokens": 100, "max_tool_calls": 2, "parallel_tool_calls": false,
 "temperature": 0.5, "top_p": 0.9, "top_k": 40, "seed": 1, "stop": ["END"], "top_logprobs": 2, "logit_bias": {"7": 1},
 "include": ["message.output_text.logprobs"], "reasoning": {"effort": "low", "summary": "auto"}, "truncation": "auto", "store": true,
 "metadata": {"k": "v"}, "prompt_cache_key": "k", "safety_identifier": "s", "background": false, "previous_response_id": null, "conversation": null,
 "context_management": [{"type": "compaction", "compact_threshold": 1000}],
 "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": false}},
 "tools": [
  {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": false},
  {"type": "custom", "name": "c", "description": "d", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
  {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]},
  {"type": "tool_search", "description": "d", "parameters": {"type": "object"}}],
 "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
 "input": [
  {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
  {"type": "compaction", "id": "cmp_1", "encrypted_content": "hearth1s.SGk"},
  {"role": "user", "content": [
   {"type": "input_text", "text": "Hi"},
   {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}]},
  {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}], "encrypted_content": "x"},
  {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}, {"type": "refusal", "refusal": "No."}]},
  {"type": "function_call", "call_id": "call_1", "name": "f", "namespace": "n", "arguments": "{}"},
  {"type": "custom_tool_call", "call_id": "call_2", "name": "c", "input": "x"},
  {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
  {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "ok"}]},
  {"type": "tool_search_call", "call_id": "call_3", "arguments": {}},
  {"type": "tool_search_output", "call_id": "call_3", "tools": [{"type": "function", "name": "h"}]},
  {"type": "additional_tools", "tools": [{"type": "function", "name": "i"}]}
 ]
}`

// breaking has values of some JSON types; with null and what is in the request there is a wrong one of every type.
var breaking = wiretest.Breaking{Values: []any{7.5, "text", map[string]any{}}, Index: "[%d]",
	Own: []string{"format.schema", ".parameters", "metadata", "tool_search_call.arguments"}}

// special are those that are not about types.
func special() map[string]string {
	m := func(fields string) string { return `{"input": "Hi", ` + fields + `}` }
	item := func(item string) string { return `{"input": [` + item + `]}` }
	return map[string]string{
		"body empty": "", "body not JSON": "hello", "body cut": `{"input": [`, "body array": `[]`, "body null": `null`,
		"input missing": `{}`, "input of nothing": `{"input": []}`, "input of texts": `{"input": ["Hi"]}`,
		"item unknown": item(`{"type": "massage"}`), "role unknown": item(`{"role": "robot", "content": "Hi"}`), "role of tools": item(`{"role": "tool", "content": "Hi"}`),
		"part unknown":                item(`{"role": "user", "content": [{"type": "hologram"}]}`),
		"image in a system's":         item(`{"role": "system", "content": [{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}]}`),
		"call without a name":         item(`{"type": "function_call", "call_id": "a", "arguments": "{}"}`),
		"items behind a trigger":      item(`{"role": "user", "content": "Hi"}, {"type": "compaction_trigger"}, {"role": "user", "content": "Hi"}`),
		"trigger alone":               item(`{"type": "compaction_trigger"}`),
		"management unknown":          m(`"context_management": [{"type": "magic"}]`),
		"threshold 0":                 m(`"context_management": [{"type": "compaction", "compact_threshold": 0}]`),
		"reference":                   item(`{"type": "item_reference", "id": "msg_1"}`),
		"previous response":           m(`"previous_response_id": "resp_1"`),
		"conversation":                m(`"conversation": {"id": "conv_1"}`),
		"conversation without an id":  m(`"conversation": {}`),
		"prompt":                      m(`"prompt": {"id": "pmpt_1"}`),
		"background":                  m(`"background": true`),
		"truncation unknown":          m(`"truncation": "some"`),
		"summary unknown":             m(`"reasoning": {"summary": "long"}`),
		"format unknown":              m(`"text": {"format": {"type": "yaml"}}`),
		"format strict":               m(`"text": {"format": {"type": "json_schema", "name": "n", "strict": true, "schema": {}}}`),
		"max_output_tokens 0":         m(`"max_output_tokens": 0`),
		"max_output_tokens negative":  m(`"max_output_tokens": -2`),
		"top_logprobs above":          m(`"top_logprobs": 21`),
		"temperature above":           m(`"temperature": 2.1`),
		"tools of one name":           m(`"tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "f"}]`),
		"tools of one joined name":    m(`"tools": [{"type": "function", "name": "n__f"}, {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]}]`),
		"tool without a name":         m(`"tools": [{"type": "function", "name": ""}]`),
		"namespace in a namespace":    m(`"tools": [{"type": "namespace", "name": "a", "tools": [{"type": "namespace", "name": "b"}]}]`),
		"grammar of another syntax":   m(`"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "bnf", "definition": "x"}}]`),
		"tool_choice unknown":         m(`"tool_choice": "some"`),
		"tool_choice without tools":   m(`"tool_choice": "required"`),
		"tool_choice of no tool":      m(`"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "function", "name": "g"}`),
		"tool_choice of another kind": m(`"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "custom", "name": "f"}`),
		"allowed_tools of no tool":    m(`"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]}`),
	}
}

// refusedWith is what a broken request was told; "-" stands for what was null.
type refusedWith struct{ Message, Type, Param, Code string }

// answered reads the answer to a broken request, which says what is wrong, and where unless it is the body itself.
func answered(t *testing.T, name string, status int, reply string) refusedWith {
	t.Helper()
	var e struct {
		Error struct {
			Message, Type string
			Param, Code   *string
		}
	}
	if err := json.Unmarshal([]byte(reply), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" || e.Error.Param == nil && !strings.HasPrefix(name, "body") {
		t.Errorf("%s: %d %s", name, status, reply)
	}
	or := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	return refusedWith{e.Error.Message, e.Error.Type, or(e.Error.Param), or(e.Error.Code)}
}

// TestBadRequests: no broken request reaches a model, gets a 5xx, or is answered without its place, and all paths answer alike.
func TestBadRequests(t *testing.T) {
	var table strings.Builder
	bodies := breaking.All(t, whole)
	maps.Copy(bodies, special())
	refused, accepted := 0, 0
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		status, reply := wiretest.Post(t, Protocol{}, "/v1/responses", bodies[name])
		if status == http.StatusOK {
			accepted++
			continue
		}
		refused++
		e := answered(t, name, status, reply)
		for _, path := range []string{"", "/openai", "/openai/v1", "/openai/deployments/m"} {
			if s, again := wiretest.Post(t, Protocol{}, path+"/responses", bodies[name]); s != status || again != reply {
				t.Errorf("%s at %s: %d %s, want %d %s", name, path, s, again, status, reply)
			}
		}
		fmt.Fprintf(&table, "%s\n\t%d %s param=%s code=%s: %s\n", name, status, e.Type, e.Param, e.Code, strings.TrimPrefix(e.Message, e.Param+": "))
	}
	if refused < 150 {
		t.Errorf("only %d requests were refused", refused)
	}
	head := fmt.Sprintf("# Broken requests and their answers: %d refused, %d accepted (not listed). Written by go test -run TestBadRequests -update.\n", refused, accepted)
	wiretest.Golden(t, "testdata/bad_requests.txt", head+table.String())
}

// TestWhole: what the table breaks is a request that passes.
func TestWhole(t *testing.T) {
	if status, reply := wiretest.Post(t, Protocol{}, "/v1/responses", whole); status != http.StatusOK {
		t.Errorf("%d %s", status, reply)
	}
}
