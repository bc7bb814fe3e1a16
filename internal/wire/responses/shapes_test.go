package responses

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shapes are what clients are sent: the keys of every object, with their types. s is a string, i a whole number, n a number, b
// a bool, o an object, x anything; x? may be null, [x] is a list, @name is another shape, of which name/type is one where there
// are several, =name is that string; a key with ~ may be left out. They follow the schema of Open Responses (2026-04-24) and the
// types of OpenAI's SDK for Python (3.57).
var shapes = map[string]string{
	"response": `id:s object:=response created_at:i completed_at:i? status:s incomplete_details:@reason? error:@failure? model:s
		previous_response_id:s? instructions:x output:[@item] tools:[@tool] tool_choice:x parallel_tool_calls:b max_tool_calls:i?
		max_output_tokens:i? truncation:s text:@text reasoning:@effort temperature:n top_p:n presence_penalty:n frequency_penalty:n
		top_logprobs:i metadata:o store:b background:b service_tier:s safety_identifier:s? prompt_cache_key:s? usage:@usage?`,
	"reason":  `reason:s`,
	"failure": `code:s message:s`,
	"text":    `format:o verbosity~:s`,
	"effort":  `effort:s? summary:s?`,
	"usage": `input_tokens:i input_tokens_details:@input output_tokens:i output_tokens_details:@output total_tokens:i
		hearth_max_tokens~:i hearth_dropped_messages~:i`,
	"input":  `cached_tokens:i cache_write_tokens:i`,
	"output": `reasoning_tokens:i`,

	"tool/function":    `type:s name:s description:s? parameters:o? strict:b?`,
	"tool/custom":      `type:s name:s description~:s format~:o`,
	"tool/namespace":   `type:s name:s description:s tools:[o]`,
	"tool/tool_search": `type:s execution~:s description~:s parameters~:o`,
	"tool/web_search":  `type:s external_web_access~:b`,

	"item/message":          `type:s id:s status:s role:=assistant content:[@part]`,
	"item/reasoning":        `type:s id:s status:s summary:[@part] content~:[@part] encrypted_content~:s`,
	"item/compaction":       `type:s id:s encrypted_content:s`,
	"item/function_call":    `type:s id:s status:s call_id:s namespace~:s name:s arguments:s`,
	"item/custom_tool_call": `type:s id:s status:s call_id:s namespace~:s name:s input:s`,
	"item/tool_search_call": `type:s id:s status:s call_id:s execution:=client arguments:o`,

	"item/mcp_call": `type:s id:s status:s approval_request_id:s? server_label:s name:s arguments:s output:s? error:s?`,

	"part/output_text":    `type:s text:s annotations:[o] logprobs:[@logprob]`,
	"part/reasoning_text": `type:s text:s`,
	"part/summary_text":   `type:s text:s`,
	"logprob":             `token:s logprob:n bytes:[i] top_logprobs:[@toplogprob]`,
	"toplogprob":          `token:s logprob:n bytes:[i]`,

	"event/response.created":                       `response:@response`,
	"event/response.in_progress":                   `response:@response`,
	"event/response.completed":                     `response:@response`,
	"event/response.incomplete":                    `response:@response`,
	"event/response.failed":                        `response:@response`,
	"event/response.output_item.added":             `output_index:i item:@item`,
	"event/response.output_item.done":              `output_index:i item:@item`,
	"event/response.content_part.added":            `item_id:s output_index:i content_index:i part:@part`,
	"event/response.content_part.done":             `item_id:s output_index:i content_index:i part:@part`,
	"event/response.output_text.delta":             `item_id:s output_index:i content_index:i delta:s logprobs:[@logprob]`,
	"event/response.output_text.done":              `item_id:s output_index:i content_index:i text:s logprobs:[@logprob]`,
	"event/response.reasoning_text.delta":          `item_id:s output_index:i content_index:i delta:s`,
	"event/response.reasoning_text.done":           `item_id:s output_index:i content_index:i text:s`,
	"event/response.reasoning_summary_part.added":  `item_id:s output_index:i summary_index:i part:@part`,
	"event/response.reasoning_summary_part.done":   `item_id:s output_index:i summary_index:i part:@part`,
	"event/response.reasoning_summary_text.delta":  `item_id:s output_index:i summary_index:i delta:s`,
	"event/response.reasoning_summary_text.done":   `item_id:s output_index:i summary_index:i text:s`,
	"event/response.compaction.compacting":         `item_id:s output_index:i`,
	"event/response.function_call_arguments.delta": `item_id:s output_index:i delta:s`,
	"event/response.function_call_arguments.done":  `item_id:s output_index:i name:s arguments:s`,
	"event/response.mcp_call.in_progress":          `item_id:s output_index:i`,
	"event/response.mcp_call.completed":            `item_id:s output_index:i`,
	"event/response.mcp_call.failed":               `item_id:s output_index:i`,
	"event/response.mcp_call_arguments.delta":      `item_id:s output_index:i delta:s`,
	"event/response.mcp_call_arguments.done":       `item_id:s output_index:i arguments:s`,
	"event/response.custom_tool_call_input.delta":  `item_id:s output_index:i delta:s`,
	"event/response.custom_tool_call_input.done":   `item_id:s output_index:i input:s`,
}

// misshapen says where v is not of a type, "" if nowhere; seen notes the shapes that were compared with.
func misshapen(v any, kind, at string, seen map[string]bool) string {
	if rest, ok := strings.CutSuffix(kind, "?"); ok {
		if v == nil {
			return ""
		}
		kind = rest
	}
	ok := false
	switch {
	case kind == "x":
		ok = true
	case kind == "s":
		_, ok = v.(string)
	case kind == "b":
		_, ok = v.(bool)
	case kind == "o":
		_, ok = v.(map[string]any)
	case kind == "n" || kind == "i":
		var n float64
		n, ok = v.(float64)
		ok = ok && (kind == "n" || n == math.Trunc(n))
	case kind[0] == '=':
		ok = v == kind[1:]
	case kind[0] == '[':
		var list []any
		list, ok = v.([]any)
		for i, v := range list {
			if bad := misshapen(v, kind[1:len(kind)-1], fmt.Sprintf("%s[%d]", at, i), seen); bad != "" {
				return bad
			}
		}
	case kind[0] == '@':
		return misshapenObject(v, kind[1:], at, seen)
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%s is %v, not of type %s", at, v, kind)
}

func misshapenObject(v any, name, at string, seen map[string]bool) string {
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is %v, not a %s", at, v, name)
	}
	if shapes[name] == "" {
		name = fmt.Sprint(name, "/", object["type"])
	}
	fields := shapes[name]
	if strings.HasPrefix(name, "event/") && fields != "" {
		fields += " type:s sequence_number:i"
	}
	if fields == "" {
		return fmt.Sprintf("%s is a %s, which is in no table", at, name)
	}
	seen[name] = true
	left := maps.Clone(object)
	for _, f := range strings.Fields(fields) {
		key, kind, _ := strings.Cut(f, ":")
		key, optional := strings.CutSuffix(key, "~")
		v, ok := object[key]
		delete(left, key)
		switch {
		case !ok && !optional:
			return fmt.Sprintf("%s has no %s", at, key)
		case !ok:
			continue
		}
		if bad := misshapen(v, kind, at+"."+key, seen); bad != "" {
			return bad
		}
	}
	if len(left) > 0 {
		return fmt.Sprintf("%s has keys that are in no table: %v", at, slices.Sorted(maps.Keys(left)))
	}
	return ""
}

// checkShape fails the test where data is not of a shape.
func checkShape(t *testing.T, name, shape string, data []byte, seen map[string]bool) {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if bad := misshapen(v, "@"+shape, shape, seen); bad != "" {
		t.Errorf("%s: %s", name, bad)
	}
}

// TestShapes: every response and every event of all cases has the keys and types of the table, and every row of the table is met.
func TestShapes(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	seen := map[string]bool{}
	for _, file := range files {
		if body, ok := strings.CutPrefix(section(t, file, "response.json"), "HTTP 200\n"); ok {
			checkShape(t, file, "response", []byte(body), seen)
		}
		if sse := section(t, file, "response.sse"); strings.HasPrefix(sse, "HTTP 200") {
			for _, m := range dataLine.FindAllStringSubmatch(sse, -1) {
				checkShape(t, file, "event", []byte(m[2]), seen)
			}
		}
	}
	for name := range shapes {
		if !seen[name] {
			t.Errorf("no case has a %s", name)
		}
	}
}
