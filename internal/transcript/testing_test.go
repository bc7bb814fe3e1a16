package transcript

import (
	"encoding/json"
	"os"
	"testing"

	"hearth/internal/tokenizer"
)

// demoTokenizer is the demo model's tokenizer with more special tokens.
func demoTokenizer(t testing.TB, special ...string) *tokenizer.Tokenizer {
	t.Helper()
	data, err := os.ReadFile("../demo/model/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	added := file["added_tokens"].([]any)
	first := len(file["model"].(map[string]any)["vocab"].(map[string]any)) // of the ids behind the vocabulary
	for _, s := range special {
		added = append(added, map[string]any{"id": first + len(added), "content": s, "special": true})
	}
	file["added_tokens"] = added
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// demoGuard is that of the demo's own generator.
func demoGuard(t testing.TB) *Guard {
	return NewGuard(demoTokenizer(t), []string{"<think>", "</think>", "<tool_call>", "</tool_call>"}, "")
}
