package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

const badTable = "testdata/bad_requests.txt"

// whole is a request with every field that is read. Its parts are what the table breaks.
const whole = `{
 "model": "m", "max_completion_tokens": 100, "max_tokens": 100, "stream": false, "stream_options": {"include_usage": true},
 "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": 0.5,
 "xtc_probability": 0.5, "xtc_threshold": 0.1, "seed": 1, "stop": ["END"], "n": 2, "logprobs": true, "top_logprobs": 2, "logit_bias": {"7": 1},
 "chat_template_kwargs": {"enable_thinking": true}, "enable_thinking": true, "thinking": {"type": "enabled", "budget_tokens": 50},
 "reasoning_effort": "low", "reasoning": {"effort": "low", "max_tokens": 50}, "parallel_tool_calls": false,
 "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": false}},
 "tools": [
  {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true}},
  {"type": "custom", "custom": {"name": "c", "description": "d", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}}}],
 "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}},
 "messages": [
  {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
  {"role": "user", "name": "u", "content": [
   {"type": "text", "text": "Hi"},
   {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]},
  {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}], "reasoning_content": "Hmm", "refusal": null, "tool_calls": [
   {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
   {"id": "call_2", "type": "custom", "custom": {"name": "c", "input": "x"}}]},
  {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
  {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "ok"}]}
 ]
}`

// wholeText is the same of /v1/completions.
const wholeText = `{
 "model": "m", "prompt": [[1, 2], [3]], "suffix": null, "max_tokens": 100, "stream": false, "stream_options": {"include_usage": true},
 "temperature": 0.5, "n": 2, "best_of": 3, "logprobs": 2, "echo": true, "stop": "END", "logit_bias": {"7": 1}, "user": "u"
}`

// breaking has values of some JSON types; with null and what is in the requests there is a wrong one of every type.
var breaking = wiretest.Breaking{Values: []any{7.5, "text", map[string]any{}}, Index: "[%d]", Own: []string{"schema.schema", ".parameters"}}

// special are the ones of chat that are not about types.
func special() map[string]string {
	m := func(fields string) string { return `{"messages": [{"role": "user", "content": "Hi"}], ` + fields + `}` }
	user := func(part string) string { return `{"messages": [{"role": "user", "content": [` + part + `]}]}` }
	turn := func(message string) string {
		return `{"messages": [{"role": "user", "content": "Hi"}, ` + message + `]}`
	}
	tools := func(fields string) string {
		return m(`"tools": [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "c"}}], ` + fields)
	}
	bodies := map[string]string{
		"body empty": "", "body blank": "  \n", "body not JSON": "hello", "body cut": `{"messages": [`, "body twice": `{} {}`,
		"body array": `[]`, "body string": `"x"`, "body null": `null`, "body with a byte order mark": "\ufeff{}",
		"body too deep":                        strings.Repeat("[", 300) + strings.Repeat("]", 300),
		"body with a control character":        "{\"model\": \"a\x01b\"}",
		"body with a trailing comma":           `{"n": 1,}`,
		"body with NaN":                        m(`"temperature": NaN`),
		"messages none":                        `{"messages": []}`,
		"messages a string":                    `{"messages": "Hi"}`,
		"role unknown":                         turn(`{"role": "robot", "content": "Hi"}`),
		"role empty":                           turn(`{"role": "", "content": "Hi"}`),
		"role with capitals":                   turn(`{"role": "User", "content": "Hi"}`),
		"content a number":                     turn(`{"role": "user", "content": 5}`),
		"content of the system a picture":      turn(`{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}`),
		"content of the system a file":         turn(`{"role": "system", "content": [{"type": "file", "file": {"file_id": "f"}}]}`),
		"image by a path":                      user(`{"type": "image_url", "image_url": {"url": "/etc/passwd"}}`),
		"image by another scheme":              user(`{"type": "image_url", "image_url": "file:///etc/passwd"}`),
		"image by nothing":                     user(`{"type": "image_url"}`),
		"image of another media type":          user(`{"type": "image_url", "image_url": {"url": "data:text/plain;base64,AA=="}}`),
		"image data not in base64":             user(`{"type": "image_url", "image_url": {"url": "data:image/svg+xml,%3Csvg%3E"}}`),
		"audio not base64":                     user(`{"type": "input_audio", "input_audio": {"data": "A", "format": "wav"}}`),
		"audio of nothing":                     user(`{"type": "input_audio"}`),
		"video of a file's bytes":              user(`{"type": "video_url", "video_url": {"url": "data:image/png;base64,AA=="}}`),
		"file of nothing":                      user(`{"type": "file", "file": {"filename": "a.pdf"}}`),
		"file not base64":                      user(`{"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,A%"}}`),
		"file a text":                          user(`{"type": "file", "file": "a.pdf"}`),
		"image not base64":                     user(`{"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}}`),
		"image without data":                   user(`{"type": "image_url", "image_url": {"url": "data:image/png"}}`),
		"video":                                user(`{"type": "video_url", "video_url": {"url": "https://x/y.mp4"}}`),
		"part unknown":                         user(`{"type": "hologram"}`),
		"part without type":                    user(`{"text": "Hi"}`),
		"part in a later message":              turn(`{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "hologram"}]}`),
		"call without function":                turn(`{"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]}`),
		"call without name":                    turn(`{"role": "assistant", "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]}`),
		"call with a list for arguments":       turn(`{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": []}}]}`),
		"max_tokens negative":                  m(`"max_tokens": -2`),
		"max_tokens fraction":                  m(`"max_tokens": 1.5`),
		"temperature below":                    m(`"temperature": -0.1`),
		"temperature above":                    m(`"temperature": 2.1`),
		"top_p below":                          m(`"top_p": -1`),
		"top_p above":                          m(`"top_p": 1.01`),
		"min_p above":                          m(`"min_p": 2`),
		"top_k below":                          m(`"top_k": -2`),
		"top_k fraction":                       m(`"top_k": 0.5`),
		"repetition_penalty below":             m(`"repetition_penalty": -1`),
		"presence_penalty above":               m(`"presence_penalty": 2.5`),
		"frequency_penalty below":              m(`"frequency_penalty": -3`),
		"xtc_probability above":                m(`"xtc_probability": 1.5`),
		"xtc_threshold above":                  m(`"xtc_threshold": 0.6`),
		"seed fraction":                        m(`"seed": 0.5`),
		"n zero":                               m(`"n": 0`),
		"n above":                              m(`"n": 129`),
		"top_logprobs without logprobs":        m(`"top_logprobs": 3`),
		"top_logprobs without true logprobs":   m(`"logprobs": false, "top_logprobs": 3`),
		"top_logprobs below":                   m(`"logprobs": true, "top_logprobs": -1`),
		"top_logprobs above":                   m(`"logprobs": true, "top_logprobs": 21`),
		"logprobs a number":                    m(`"logprobs": 5`),
		"logit_bias of a word":                 m(`"logit_bias": {"hello": 1}`),
		"logit_bias of a negative id":          m(`"logit_bias": {"-5": 1}`),
		"logit_bias of a huge id":              m(`"logit_bias": {"4294967296": 1}`),
		"logit_bias above":                     m(`"logit_bias": {"5": 101}`),
		"logit_bias null":                      m(`"logit_bias": {"5": null}`),
		"stop too many":                        m(`"stop": [` + strings.Repeat(`"x",`, 64) + `"x"]`),
		"stop too long":                        m(`"stop": "` + strings.Repeat("x", 1025) + `"`),
		"stop of numbers":                      m(`"stop": [1]`),
		"tool name empty":                      m(`"tools": [{"type": "function", "function": {"name": ""}}]`),
		"tool name twice":                      m(`"tools": [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "f"}}]`),
		"tool parameters a list":               m(`"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]`),
		"tool without function":                m(`"tools": [{"type": "function", "name": "f"}]`),
		"custom tool without name":             m(`"tools": [{"type": "custom", "custom": {}}]`),
		"custom tool with another format":      m(`"tools": [{"type": "custom", "custom": {"name": "c", "format": {"type": "xml"}}}]`),
		"custom tool with another syntax":      m(`"tools": [{"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "bnf", "definition": "x"}}}}]`),
		"functions":                            m(`"functions": [{"name": "f"}]`),
		"function_call":                        m(`"function_call": "auto"`),
		"tool_choice unknown":                  tools(`"tool_choice": "maybe"`),
		"tool_choice of an unknown type":       tools(`"tool_choice": {"type": "web_search"}`),
		"tool_choice of no tool":               tools(`"tool_choice": {"type": "function", "function": {"name": "g"}}`),
		"tool_choice of a custom tool by type": tools(`"tool_choice": {"type": "function", "function": {"name": "c"}}`),
		"tool_choice of a function by type":    tools(`"tool_choice": {"type": "custom", "custom": {"name": "f"}}`),
		"tool_choice without name":             tools(`"tool_choice": {"type": "function"}`),
		"tool_choice required without tools":   m(`"tool_choice": "required"`),
		"tool_choice required without others than web_search": m(`"tools": [{"type": "web_search"}], "tool_choice": "required"`),
		"allowed_tools of no tool":                            tools(`"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "g"}}]}}`),
		"allowed_tools of none":                               tools(`"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}`),
		"allowed_tools of another mode":                       tools(`"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "none", "tools": [{"type": "function", "function": {"name": "f"}}]}}`),
		"allowed_tools of another type":                       tools(`"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "mcp"}]}}`),
		"response_format unknown":                             m(`"response_format": {"type": "yaml"}`),
		"response_format strict":                              m(`"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {}}}`),
		"response_format without schema":                      m(`"response_format": {"type": "json_schema"}`),
		"response_format with a list for a schema":            m(`"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": []}}`),
		"response_format a word":                              m(`"response_format": "json"`),
		"stream_options a word":                               m(`"stream_options": "usage"`),
	}
	return bodies
}

// specialText are those of /v1/completions.
func specialText() map[string]string {
	p := func(fields string) string { return `{"prompt": "x", ` + fields + `}` }
	return map[string]string{
		"prompt none": `{}`, "prompt a list of nothing": `{"prompt": []}`, "prompt a boolean": `{"prompt": true}`,
		"prompt of texts and ids": `{"prompt": ["a", 1]}`, "prompt of ids and lists": `{"prompt": [1, [2]]}`, "prompt of objects": `{"prompt": [{}]}`,
		"token negative": `{"prompt": [1, -1]}`, "token fraction": `{"prompt": [1.5]}`, "token huge": `{"prompt": [[4294967296]]}`, "token null": `{"prompt": [[1, null]]}`,
		"suffix with echo":          p(`"suffix": "end", "echo": true`),
		"max_tokens 0 without echo": p(`"max_tokens": 0`),
		"max_tokens negative":       p(`"max_tokens": -2, "echo": true`),
		"best_of below n":           p(`"n": 3, "best_of": 2`),
		"best_of in a stream":       p(`"best_of": 2, "stream": true`),
		"best_of above":             p(`"best_of": 129`),
		"logprobs above":            p(`"logprobs": 21`),
		"logprobs true":             p(`"logprobs": true`),
		"too many completions":      `{"prompt": ["a","a","a","a","a","a","a","a","a"], "n": 128}`,
		"temperature above":         p(`"temperature": 3`),
	}
}

// TestBadRequests: no broken request reaches a model, gets a 5xx, or is answered without its place. Those that are broken
// and accepted all the same, where null is nothing and some fields are read by nobody, must not fail either.
func TestBadRequests(t *testing.T) {
	var table strings.Builder
	refused, accepted := 0, 0
	for _, api := range []struct {
		path   string
		bodies []map[string]string
	}{
		{"/chat/completions", []map[string]string{breaking.All(t, whole), special()}},
		{"/completions", []map[string]string{breaking.All(t, wholeText), specialText()}},
	} {
		bodies := map[string]string{}
		for _, more := range api.bodies {
			maps.Copy(bodies, more)
		}
		fmt.Fprintf(&table, "\n# %s\n", api.path)
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			status, reply := wiretest.Post(t, Protocol{}, "/v1"+api.path, bodies[name])
			if status == http.StatusOK {
				accepted++
				continue
			}
			refused++
			var e errorBody
			if err := json.Unmarshal([]byte(reply), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
				t.Errorf("%s: %d %s", name, status, reply)
			}
			param, code := "-", "-"
			if e.Error.Param != nil {
				param = *e.Error.Param
				if !strings.HasPrefix(e.Error.Message, param+": ") {
					t.Errorf("%s: the message does not begin with the place: %s", name, reply)
				}
			} else if !strings.HasPrefix(name, "body") {
				t.Errorf("%s: no param: %s", name, reply)
			}
			if e.Error.Code != nil {
				code = *e.Error.Code
			}
			for _, path := range []string{"", "/openai", "/openai/v1", "/openai/deployments/m"} {
				if s, again := wiretest.Post(t, Protocol{}, path+api.path, bodies[name]); s != status || again != reply {
					t.Errorf("%s at %s: %d %s, want %d %s", name, path, s, again, status, reply)
				}
			}
			fmt.Fprintf(&table, "%s\n\t%d %s param=%s code=%s: %s\n", name, status, e.Error.Type, param, code, strings.TrimPrefix(e.Error.Message, param+": "))
		}
	}
	head := fmt.Sprintf("# Broken requests and their answers: %d refused, %d accepted (not listed). Written by go test -run TestBadRequests -update.\n", refused, accepted)
	if refused < 200 {
		t.Errorf("only %d requests were refused", refused)
	}
	wiretest.Golden(t, badTable, head+table.String())
}

// TestUnprocessable: the status that older servers have, for what is wrong with the request and for nothing else.
func TestUnprocessable(t *testing.T) {
	for _, tt := range []struct {
		body   string
		status int
	}{
		{`{"messages": []}`, 422}, {`{`, 422}, {`{"model": "other", "messages": [{"role": "user", "content": "q"}]}`, 404},
		{`{"messages": [{"role": "user", "content": "q"}]}`, 200},
	} {
		mux := http.NewServeMux()
		Protocol{Unprocessable: true}.Mount(mux, wiretest.Options(wiretest.New(wiretest.Hello(1)...)))
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != tt.status {
			t.Errorf("%s: %d %s, want %d", tt.body, w.Code, w.Body, tt.status)
		}
	}
}

// TestBadEnvelope: what is wrong around a body.
func TestBadEnvelope(t *testing.T) {
	for _, tt := range []struct {
		name, method, path string
		header             map[string]string
		body               string
		status             int
		says               string
	}{
		{"no media type", "POST", "/v1/chat/completions", map[string]string{"Content-Type": ""}, whole, 415, "Content-Type must be application/json"},
		{"a form", "POST", "/v1/completions", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "a=b", 415, "Content-Type must be application/json"},
		{"compressed", "POST", "/v1/chat/completions", map[string]string{"Content-Encoding": "br"}, "\x0b\x00", 415, "send the body as gzip, zstd or uncompressed"},
		{"GET", "GET", "/v1/chat/completions", nil, "", 405, "method GET is not allowed"},
		{"DELETE", "DELETE", "/openai/deployments/m/completions", nil, "", 405, "method DELETE is not allowed"},
		{"too large", "POST", "/v1/chat/completions", nil, `{"model": "` + strings.Repeat("x", 5000) + `"}`, 413, "larger than the limit of 4096 bytes"},
		{"an unknown priority", "POST", "/v1/chat/completions", map[string]string{wire.PriorityHeader: "high"}, `{"messages": [{"role": "user", "content": "q"}]}`, 400, "must be interactive or background"},
		{"nothing in a deployment", "POST", "/openai/deployments/m", nil, "{}", 404, "there is nothing at POST"},
		{"a deployment without a name", "POST", "/openai/deployments/completions", nil, "{}", 404, "there is nothing at POST"},
		{"images of a deployment", "POST", "/openai/deployments/m/images/generations", nil, "{}", 404, "deployments have /chat/completions"},
		{"embeddings", "POST", "/v1/embeddings", nil, `{"model": "m", "input": "x"}`, 400, `embeddings need an embedding model (--embedding-model)`},
		{"embeddings of a deployment", "POST", "/openai/deployments/dep/embeddings", nil, `{"input": "x"}`, 400, `\"dep\" generates text`},
		{"embeddings without an object", "POST", "/v1/embeddings", nil, `[]`, 400, `expected an object, got an array`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mux := http.NewServeMux()
			o := wiretest.Options(wiretest.New())
			o.MaxBody = 4096
			Protocol{}.Mount(mux, o)
			r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
			r.Header.Set("Content-Type", "application/json")
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) || !strings.HasPrefix(w.Body.String(), `{"error":{"message":"`) {
				t.Errorf("%d %s, want %d %q", w.Code, w.Body, tt.status, tt.says)
			}
		})
	}
}
