package anthropic

import (
	"strings"
	"testing"

	"hearth/internal/wire"
)

// TestContentKinds is the table of docs/anthropic.md: what becomes of every block from a user, in a tool's result and
// from the assistant. R is rendered, S skipped, X refused; of images and other files (M) the model's side makes notes.
func TestContentKinds(t *testing.T) {
	for block, want := range map[string]string{
		`{"type": "text", "text": "MARK"}`: "RRR",
		`{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}`:          "MMM",
		`{"type": "image", "source": {"type": "url", "url": "https://e/u"}}`:                                  "MMM",
		`{"type": "document", "source": {"type": "text", "data": "MARK"}}`:                                    "RRR",
		`{"type": "document", "source": {"type": "content", "content": "MARK"}}`:                              "RRR",
		`{"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "MARK"}]}}`:  "RRR",
		`{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}`: "MMM",
		`{"type": "document", "source": {"type": "url", "url": "https://e/u"}}`:                               "MMM",
		`{"type": "document", "source": {"type": "file", "file_id": "f"}}`:                                    "MMM",
		`{"type": "image", "source": {"type": "file", "file_id": "f"}}`:                                       "MMM",
		`{"type": "image", "source": {"type": "base64", "media_type": "text/plain", "data": "AA=="}}`:         "XMX",
		`{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "%%"}}`:            "XXX",
		`{"type": "image", "source": {"type": "base64", "media_type": "image/png"}}`:                          "XXX",
		`{"type": "image", "source": {"type": "url", "url": "data:image/png;base64,AAAA"}}`:                   "MMM",
		`{"type": "image", "source": {"type": "url", "url": "data:image/png;base64,A"}}`:                      "XMX",
		`{"type": "image", "source": {"type": "url", "url": "/etc/passwd"}}`:                                  "XMX",
		`{"type": "image", "source": {"type": "url"}}`:                                                        "XMX",
		`{"type": "image", "source": {"type": "cloud"}}`:                                                      "XMX",
		`{"type": "image"}`: "XXX",
		`{"type": "document", "source": {"type": "base64", "media_type": "text/csv", "data": "AA=="}}`:                                         "XMX",
		`{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "A"}}`:                                     "XXX",
		`{"type": "document", "source": {"type": "file"}}`:                                                                                     "XMX",
		`{"type": "document", "source": {"type": "cloud"}}`:                                                                                    "XMX",
		`{"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": {"type": "url", "url": "https://e/u"}}]}}`: "MMM",
		`{"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "MARK"}]}`:                                "RRR",
		`{"type": "thinking", "thinking": "MARK", "signature": "s"}`:                                                                           "XXR",
		`{"type": "redacted_thinking", "data": "x"}`:                                                                                           "XXS",
		`{"type": "tool_use", "id": "i", "name": "MARK", "input": {}}`:                                                                         "XXR",
		`{"type": "tool_result", "tool_use_id": "i", "content": "MARK"}`:                                                                       "RXX",
		`{"type": "tool_reference", "tool_name": "MARK"}`:                                                                                      "RRX",
		`{"type": "server_tool_use", "id": "i", "name": "web_search", "input": {}}`:                                                            "XXS",
		`{"type": "mcp_tool_use", "id": "i", "name": "n", "input": {}}`:                                                                        "XXS",
		`{"type": "web_search_tool_result", "tool_use_id": "i", "content": []}`:                                                                "XXS",
		`{"type": "compaction", "encrypted_content": "x"}`:                                                                                     "XXS",
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
			got += fate(t, `{"messages": `+strings.Replace(place, "%s", block, 1)+`}`)
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
	case strings.Contains(got, `"Media":{`):
		return "M"
	}
	return "S"
}
