package anthropic

import (
	"fmt"
	"strings"
	"testing"

	"hearth/internal/wire"
)

// TestContentKinds is the table of docs/anthropic.md: what becomes of every block from a user, in a tool's result and
// from the assistant. R is rendered, N a note, S skipped, X refused; an image is refused later, by the model, so here it
// is an image (I).
func TestContentKinds(t *testing.T) {
	for block, want := range map[string]string{
		`{"type": "text", "text": "MARK"}`: "RRR",
		`{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}`:            "III",
		`{"type": "image", "source": {"type": "url", "url": "u"}}`:                                              "XNX",
		`{"type": "document", "source": {"type": "text", "data": "MARK"}}`:                                      "RRR",
		`{"type": "document", "source": {"type": "content", "content": "MARK"}}`:                                "RRR",
		`{"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "MARK"}]}}`:    "RRR",
		`{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}`:   "XNX",
		`{"type": "document", "source": {"type": "url", "url": "u"}}`:                                           "XNX",
		`{"type": "document", "source": {"type": "file", "file_id": "f"}}`:                                      "XNX",
		`{"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "MARK"}]}`: "RRR",
		`{"type": "thinking", "thinking": "MARK", "signature": "s"}`:                                            "XXR",
		`{"type": "redacted_thinking", "data": "x"}`:                                                            "XXS",
		`{"type": "tool_use", "id": "i", "name": "MARK", "input": {}}`:                                          "XXR",
		`{"type": "tool_result", "tool_use_id": "i", "content": "MARK"}`:                                        "RXX",
		`{"type": "tool_reference", "tool_name": "MARK"}`:                                                       "RRX",
		`{"type": "server_tool_use", "id": "i", "name": "web_search", "input": {}}`:                             "XXS",
		`{"type": "mcp_tool_use", "id": "i", "name": "n", "input": {}}`:                                         "XXS",
		`{"type": "web_search_tool_result", "tool_use_id": "i", "content": []}`:                                 "XXS",
		`{"type": "compaction", "encrypted_content": "x"}`:                                                      "XXS",
		`{"type": "fallback"}`:                         "XXS",
		`{"type": "container_upload", "file_id": "f"}`: "SSS",
		`{"type": "browser_state"}`:                    "SSX",
		`{"type": "hologram"}`:                         "XXX",
	} {
		got := ""
		for _, place := range []string{
			`[{"role": "user", "content": [%s]}]`,
			`[{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": [%s]}]}]`,
			`[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [%s]}]`,
		} {
			got += fate(t, `{"messages": `+fmt.Sprintf(place, block)+`}`)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", block, got, want)
		}
	}
}

func fate(t *testing.T, body string) string {
	t.Helper()
	v, err := wire.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := decode(v)
	if err != nil {
		return "X"
	}
	switch got := string(wire.Marshal(r.Messages)); {
	case strings.Contains(got, "MARK"):
		return "R"
	case strings.Contains(got, "this server cannot"):
		return "N"
	case strings.Contains(got, `"Image":"`):
		return "I"
	}
	return "S"
}
