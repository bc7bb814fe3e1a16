package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// FuzzResult: whatever a server says of a call, a model is told text that is UTF-8 and within its bound, however the content is
// made up; tools that it lists have a name of their server's or are left out.
func FuzzResult(f *testing.F) {
	for _, s := range []string{
		`{"content":[{"type":"text","text":"12 degrees"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"inside"}},{"type":"resource_link","uri":"u","name":"n"},{"type":"audio","data":"","mimeType":""}],"isError":true}`,
		`{"content":[{"type":"resource","resource":{"uri":"u","blob":"AAAA"}},{"type":"resource"}]}`,
		`{"content":[],"structuredContent":{"a":[1,null]}}`, `{"structuredContent":null}`, `{"content":[null]}`, `{"content":[{"type":"other"}]}`, `null`,
		`{"name":"read","description":"é","inputSchema":{"type":"object"}}`, `{"name":"","inputSchema":[]}`, `{"name":"a__b\u0000","inputSchema":null}`,
	} {
		f.Add([]byte(s), 10)
	}
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		most = int(uint(most) % 1000)
		var r sdk.CallToolResult
		if json.Unmarshal(text, &r) == nil {
			if got := resultText(&r, most); !utf8.ValidString(got) || len(got) > most+100 {
				t.Errorf("%s: %d of %d bytes: %q", text, len(got), most, got)
			}
		}
		var listed sdk.Tool
		if json.Unmarshal(text, &listed) == nil {
			if tool, err := toolOf(&Server{Name: "files", Allow: []string{"read"}}, &listed); err == nil && (!strings.HasPrefix(tool.Name, "files__") ||
				len(tool.Name) > longestTool || len(tool.Description) > maxDescription+100 || tool.Allowed != (tool.Own == "read") || !json.Valid(tool.Parameters)) {
				t.Errorf("%s: %+v", text, tool)
			}
		}
	})
}
