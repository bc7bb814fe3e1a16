package anthropic

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// TestThinkingShown: a message has thinking blocks exactly when the request asks for thinking, unless a setting says
// always or never; what is asked of the model does not change with it.
func TestThinkingShown(t *testing.T) {
	steps, _, err := wiretest.ParseScript([]byte(`{"Kind": "start", "Usage": {"Prompt": 1}}
{"Kind": "reasoning", "Text": "hm"}
{"Kind": "text", "Text": "yes"}
{"Kind": "finish", "Finish": "stop", "Usage": {"Output": 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		thinking                 string
		byRequest, always, never bool
	}{
		{``, false, true, false},
		{`"thinking": {"type": "disabled"}, `, false, true, false},
		{`"thinking": {"type": "enabled", "budget_tokens": 1024}, `, true, true, false},
		{`"thinking": {"type": "adaptive"}, `, true, true, false},
		{`"thinking": null, `, false, true, false},
	} {
		for mode, want := range map[chat.Toggle]bool{chat.Default: c.byRequest, chat.On: c.always, chat.Off: c.never} {
			for _, stream := range []string{"", `"stream": true, `} {
				mux := http.NewServeMux()
				Protocol{Thinking: mode}.Mount(mux, wiretest.Options(wiretest.New(steps...)))
				body := `{` + c.thinking + stream + `"max_tokens": 2000, "messages": [{"role": "user", "content": "q"}]}`
				r := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, r)
				got := w.Body.String()
				if shown := strings.Contains(got, `"thinking":"hm"`); shown != want || strings.Contains(got, `"type":"thinking"`) != want || !strings.Contains(got, "yes") {
					t.Errorf("%s with %d: %s", body, mode, got)
				}
				if !strings.Contains(got, `"index":0`) && stream != "" {
					t.Errorf("%s with %d: blocks do not count from 0: %s", body, mode, got)
				}
			}
		}
	}
}

// TestShortReplies: a request that says nothing of thinking and wants fewer tokens than Anthropic's least budget marks its
// reply as short. That changes nothing of what is counted.
func TestShortReplies(t *testing.T) {
	for fields, want := range map[string]bool{
		``:                                      false,
		`"max_tokens": null, `:                  false,
		`"max_tokens": 1, `:                     true,
		`"max_tokens": 100, `:                   true,
		`"max_tokens": 1023, `:                  true,
		`"max_tokens": 1024, `:                  false,
		`"max_tokens": 100, "thinking": null, `: true,
		`"max_tokens": 100, "thinking": {"type": "disabled"}, `:                               false,
		`"max_tokens": 100, "thinking": {"type": "adaptive"}, `:                               false,
		`"max_tokens": 100, "thinking": {"type": "enabled", "budget_tokens": 64}, `:           false,
		`"max_tokens": 100, "output_config": {"effort": "low"}, `:                             false,
		`"max_tokens": 100, "output_config": {"format": null}, `:                              true,
		`"max_tokens": 100, "temperature": 0, "tools": [{"name": "f", "input_schema": {}}], `: true,
	} {
		body := `{` + fields + `"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]}, {"role": "user", "content": "q"}]}`
		for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
			g := wiretest.New()
			var got *chat.Request
			g.Got = func(r *chat.Request) { got = r }
			mux := http.NewServeMux()
			Protocol{}.Mount(mux, wiretest.Options(g))
			r := httptest.NewRequest("POST", path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			mux.ServeHTTP(httptest.NewRecorder(), r)
			if got == nil || got.Thinking.Short != (want && path == "/v1/messages") {
				t.Errorf("%s %s: %+v", path, fields, got)
			}
		}
	}
}
