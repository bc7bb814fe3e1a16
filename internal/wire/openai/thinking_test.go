package openai

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// TestThinkingShown: a completion shows reasoning in the fields that are asked for, unless a setting says never.
func TestThinkingShown(t *testing.T) {
	steps, _, err := wiretest.ParseScript([]byte(`{"Kind": "start", "Usage": {"Prompt": 1}}
{"Kind": "reasoning", "Text": "hm"}
{"Kind": "text", "Text": "yes"}
{"Kind": "finish", "Finish": "stop", "Usage": {"Output": 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	const content, reasoning = `"reasoning_content":"hm"`, `"reasoning":"hm"`
	for p, want := range map[Protocol]string{
		{}: content + reasoning, {Thinking: chat.On}: content + reasoning, {Thinking: chat.Off}: "",
		{Reasoning: "reasoning_content"}: content, {Reasoning: "reasoning"}: reasoning, {Reasoning: "reasoning", Thinking: chat.Off}: "",
	} {
		for _, stream := range []string{"false", "true"} {
			mux := http.NewServeMux()
			p.Mount(mux, wiretest.Options(wiretest.New(steps...)))
			r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(`{"stream": `+stream+`, "messages": [{"role": "user", "content": "q"}]}`))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			got := w.Body.String()
			for _, field := range []string{content, reasoning} {
				if strings.Contains(got, field) != strings.Contains(want, field) {
					t.Errorf("%+v, stream %s: %s", p, stream, got)
				}
			}
			if strings.Contains(got, `"delta":{},"logprobs":null,"finish_reason":null`) || !strings.Contains(got, "yes") {
				t.Errorf("%+v, stream %s: an empty chunk, or no answer: %s", p, stream, got)
			}
		}
	}
}
