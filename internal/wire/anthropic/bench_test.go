package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hearth/internal/wire"
)

// agentBody is a request of about 100 KB in the shape of a coding agent's: half of it tools, half of it conversation.
func agentBody() []byte {
	type object = map[string]any
	var tools []any
	for i := range 14 {
		tools = append(tools, object{"name": fmt.Sprint("Tool", i), "description": strings.Repeat("Reads a file; the \"path\" must be absolute.\n", 80),
			"input_schema": object{"type": "object", "properties": object{"path": object{"type": "string"}, "limit": object{"type": "integer"}}}})
	}
	messages := []any{object{"role": "user", "content": "Look at the files."}}
	for i := range 12 {
		id := fmt.Sprint("toolu_", i)
		messages = append(messages,
			object{"role": "assistant", "content": []any{object{"type": "text", "text": "Let me look."}, object{"type": "tool_use", "id": id, "name": "Tool1", "input": object{"path": "/a"}}}},
			object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": id, "content": strings.Repeat("1\tfunc f(x int) int { return x + 1 } // \"adds\"\n", 80)}}})
	}
	body, err := json.Marshal(object{"model": "m", "max_tokens": 1000, "tools": tools, "messages": messages, "system": strings.Repeat("Be brief. ", 800)})
	if err != nil {
		panic(err)
	}
	return body
}

// BenchmarkDecode is the wire's part of what a server adds to a request.
func BenchmarkDecode(b *testing.B) {
	body := agentBody()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		v, err := wire.Parse(body)
		if err == nil {
			_, err = decode(v)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
