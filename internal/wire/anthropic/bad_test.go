package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hearth/internal/wire/wiretest"
)

const badTable = "testdata/bad_requests.txt"

// whole is a request with every field that is read. Its parts are what the table breaks.
const whole = `{
 "model": "m", "max_tokens": 100, "stream": false, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop_sequences": ["END"],
 "system": [{"type": "text", "text": "Be brief."}],
 "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": true, "defer_loading": true, "type": "custom"}],
 "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true},
 "thinking": {"type": "enabled", "budget_tokens": 50, "display": "omitted"},
 "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
 "messages": [
  {"role": "user", "content": [
   {"type": "text", "text": "Hi"},
   {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
   {"type": "document", "title": "T", "source": {"type": "text", "data": "text"}},
   {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "more"}]}},
   {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "found"}]}]},
  {"role": "assistant", "content": [
   {"type": "thinking", "thinking": "Hmm", "signature": "s"},
   {"type": "text", "text": "Calling."},
   {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]},
  {"role": "system", "content": [{"type": "text", "text": "Note."}]},
  {"role": "user", "content": [
   {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": false, "content": [
    {"type": "text", "text": "ok"}, {"type": "tool_reference", "tool_name": "f"}]}]}
 ]
}`

// breaking puts a value of every JSON type in the place of each other.
var breaking = wiretest.Breaking{Values: []any{true, 7.5, "text", []any{}, map[string]any{}}, Index: ".%d", Own: []string{"schema", ".input"}}

// special are the ones that are not about types.
func special() map[string]string {
	m := func(fields string) string {
		return `{"max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}], ` + fields + `}`
	}
	user := func(block string) string {
		return `{"max_tokens": 10, "messages": [{"role": "user", "content": [` + block + `]}]}`
	}
	assistant := func(block string) string {
		return `{"max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [` + block + `]}]}`
	}
	return map[string]string{
		"body empty": "", "body blank": "  \n", "body not JSON": "hello", "body cut": `{"messages": [`, "body twice": `{} {}`,
		"body array": `[]`, "body string": `"x"`, "body null": `null`, "body with a byte order mark": "\ufeff{}",
		"body too deep":                           strings.Repeat("[", 300) + strings.Repeat("]", 300),
		"body with a control character":           "{\"model\": \"a\x01b\"}",
		"body with a trailing comma":              `{"max_tokens": 10,}`,
		"body with NaN":                           m(`"temperature": NaN`),
		"max_tokens zero":                         `{"max_tokens": 0, "messages": [{"role": "user", "content": "Hi"}]}`,
		"max_tokens negative":                     `{"max_tokens": -2, "messages": [{"role": "user", "content": "Hi"}]}`,
		"max_tokens fraction":                     `{"max_tokens": 1.5, "messages": [{"role": "user", "content": "Hi"}]}`,
		"messages none":                           `{"max_tokens": 10, "messages": []}`,
		"role unknown":                            `{"max_tokens": 10, "messages": [{"role": "robot", "content": "Hi"}]}`,
		"role empty":                              `{"max_tokens": 10, "messages": [{"role": "", "content": "Hi"}]}`,
		"role with capitals":                      `{"max_tokens": 10, "messages": [{"role": "User", "content": "Hi"}]}`,
		"system block unknown":                    m(`"system": [{"type": "image", "text": "x"}]`),
		"tool name empty":                         m(`"tools": [{"name": "", "input_schema": {}}]`),
		"tool name twice":                         m(`"tools": [{"name": "f", "input_schema": {}}, {"name": "f", "input_schema": {}}]`),
		"tool_choice unknown":                     m(`"tool_choice": {"type": "maybe"}`),
		"tool_choice any without tools":           m(`"tool_choice": {"type": "any"}`),
		"tool_choice any with server tools alone": m(`"tools": [{"type": "web_search_20250305", "name": "web_search"}], "tool_choice": {"type": "any"}`),
		"tool_choice of a server tool":            m(`"tools": [{"type": "web_search_20250305", "name": "web_search"}], "tool_choice": {"type": "tool", "name": "web_search"}`),
		"tool_choice of no tool":                  m(`"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "tool", "name": "g"}`),
		"thread of another kind":                  m(`"thread": {"type": "fork"}`),
		"thread that goes on":                     m(`"thread": {"type": "continue", "previous_message_id": "msg_1"}`),
		"thread of a wrong type":                  m(`"thread": "x"`),
		"thinking unknown":                        m(`"thinking": {"type": "perhaps"}`),
		"format unknown":                          m(`"output_config": {"format": {"type": "yaml"}}`),
		"legacy format unknown":                   m(`"output_format": {"type": "yaml"}`),
		"stop sequences too many":                 m(`"stop_sequences": [` + strings.Repeat(`"x",`, 64) + `"x"]`),
		"stop sequence too long":                  m(`"stop_sequences": ["` + strings.Repeat("x", 1025) + `"]`),
		"image by no URL":                         user(`{"type": "image", "source": {"type": "url", "url": 3}}`),
		"image by another scheme":                 user(`{"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}}`),
		"image by no file":                        user(`{"type": "image", "source": {"type": "file"}}`),
		"image by an unknown source":              user(`{"type": "image", "source": {"type": "cloud"}}`),
		"image of another media type":             user(`{"type": "image", "source": {"type": "base64", "media_type": "text/plain", "data": "AA=="}}`),
		"image without a source":                  user(`{"type": "image"}`),
		"image not base64 in a tool result":       user(`{"type": "tool_result", "tool_use_id": "i", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A"}}]}`),
		"image not base64":                        user(`{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "%%%"}}`),
		"document PDF not base64":                 user(`{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "A=A"}}`),
		"document of another media type":          user(`{"type": "document", "source": {"type": "base64", "media_type": "text/csv", "data": "AA=="}}`),
		"document by no URL":                      user(`{"type": "document", "source": {"type": "url"}}`),
		"document by no file":                     user(`{"type": "document", "source": {"type": "file", "file_id": null}}`),
		"document by an unknown source":           user(`{"type": "document", "source": {"type": "cloud"}}`),
		"block unknown to users":                  user(`{"type": "hologram"}`),
		"block unknown to assistants":             assistant(`{"type": "hologram"}`),
		"block of the assistant from a user":      user(`{"type": "tool_use", "id": "t", "name": "f", "input": {}}`),
		"block of the user from an assistant":     assistant(`{"type": "tool_result", "tool_use_id": "t"}`),
		"block unknown in a tool result":          user(`{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "hologram"}]}`),
		"block unknown in a document":             user(`{"type": "document", "source": {"type": "content", "content": [{"type": "hologram"}]}}`),
		"block unknown in a system turn":          `{"max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}, {"role": "system", "content": [{"type": "image"}]}]}`,
		"image in a later message": `{"max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"},
			{"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image", "source": {"type": "url"}}]}]}`,
	}
}

// TestBadRequests: no broken request reaches a model, gets a 5xx, or is answered without its place. Those that are broken
// and accepted all the same, where null is nothing and some fields are read by nobody, must not fail either.
func TestBadRequests(t *testing.T) {
	bodies := breaking.All(t, whole)
	maps.Copy(bodies, special())
	var table strings.Builder
	refused, accepted := 0, 0
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		status, reply := wiretest.Post(t, Protocol{}, "/v1/messages", bodies[name])
		if status == http.StatusOK {
			accepted++
			continue
		}
		refused++
		var e struct {
			Type  string
			Error struct{ Type, Message string }
			ID    string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(reply), &e); err != nil || e.Type != "error" || e.ID == "" || e.Error.Message == "" {
			t.Errorf("%s: %d %s", name, status, reply)
		}
		for _, path := range []string{"/v1/messages/count_tokens", "/anthropic/v1/messages", "/messages"} {
			if s, again := wiretest.Post(t, Protocol{}, path, bodies[name]); s != status || again != reply {
				t.Errorf("%s at %s: %d %s, want %d %s", name, path, s, again, status, reply)
			}
		}
		fmt.Fprintf(&table, "%s\n\t%d %s: %s\n", name, status, e.Error.Type, e.Error.Message)
	}
	head := fmt.Sprintf("# Broken requests and their answers: %d refused, %d accepted (not listed). Written by go test -run TestBadRequests -update.\n", refused, accepted)
	if refused < 120 {
		t.Errorf("only %d requests were refused", refused)
	}
	wiretest.Golden(t, badTable, head+table.String())
}

// TestBadEnvelope: what is wrong around a body.
func TestBadEnvelope(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		header       map[string]string
		body         string
		status       int
		says         string
	}{
		{"no media type", "POST", map[string]string{"Content-Type": ""}, whole, 415, "Content-Type must be application/json"},
		{"a form", "POST", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "a=b", 415, "Content-Type must be application/json"},
		{"plain text", "POST", map[string]string{"Content-Type": "text/plain"}, whole, 415, "Content-Type must be application/json"},
		{"compressed", "POST", map[string]string{"Content-Encoding": "br"}, "\x0b\x00", 415, "send the body as gzip, zstd or uncompressed"},
		{"GET", "GET", nil, "", 405, "method GET is not allowed"},
		{"DELETE", "DELETE", nil, "", 405, "method DELETE is not allowed"},
		{"too large", "POST", nil, `{"model": "` + strings.Repeat("x", 5000) + `"}`, 413, "larger than the limit of 4096 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mux := http.NewServeMux()
			o := wiretest.Options(wiretest.New())
			o.MaxBody = 4096
			Protocol{}.Mount(mux, o)
			r := httptest.NewRequest(tt.method, "/v1/messages", strings.NewReader(tt.body))
			r.Header.Set("Content-Type", "application/json")
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) || !strings.HasPrefix(w.Body.String(), `{"type":"error"`) {
				t.Errorf("%d %s, want %d %q", w.Code, w.Body, tt.status, tt.says)
			}
		})
	}
}
