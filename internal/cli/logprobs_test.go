package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"hearth/internal/config"
)

// chatLogprobs is what a chat reply or chunk says of its text's tokens.
type chatLogprobs struct {
	Content []struct {
		Token string `json:"token"`
		Bytes []byte `json:"-"`
		Raw   []int  `json:"bytes"`
	} `json:"content"`
}

func (l *chatLogprobs) text() string {
	var b []byte
	for _, t := range l.Content {
		for _, c := range t.Raw {
			b = append(b, byte(c))
		}
	}
	return string(b)
}

// textLogprobs is the same of completions.
type textLogprobs struct {
	Tokens  []string             `json:"tokens"`
	Token   []*float64           `json:"token_logprobs"`
	Top     []map[string]float64 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"`
}

// frames are the chunks of a stream.
func frames(body []byte) (all []string) {
	for line := range strings.Lines(string(body)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" {
			all = append(all, data)
		}
	}
	return all
}

// The demo's replies, whole and streamed, one token a chunk and several: the logprobs of a text are those of its tokens.
func TestLogprobs(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}],`
	for _, interval := range []int{1, 4} {
		url := serveDemo(t, func(c *config.Config) { c.StreamInterval = interval })
		for _, more := range []string{"", `"max_tokens":7,`, `"stop":["ea","e","o"],`, `"enable_thinking":true,`, `"enable_thinking":false,`, tools, tools + `"tool_choice":"required",`, `"n":2,"temperature":1.5,"seed":4,`} {
			for _, say := range []string{"Hello", "What is 17 × 23?", "Repeat: grüße 日本語 🙂", "What is the weather in Paris?"} {
				body := fmt.Sprintf(`{%s"logprobs":true,"top_logprobs":2,"max_completion_tokens":24,"messages":[{"role":"user","content":%q}]}`, more, say)
				if strings.Contains(more, "max_tokens") {
					body = strings.Replace(body, `"max_completion_tokens":24,`, "", 1)
				}
				status, b := request(t, "POST", url+"/v1/chat/completions", body)
				var whole struct {
					Choices []struct {
						Message struct {
							Content *string `json:"content"`
						} `json:"message"`
						Logprobs *chatLogprobs `json:"logprobs"`
					} `json:"choices"`
				}
				if err := json.Unmarshal(b, &whole); err != nil || status != 200 {
					t.Fatalf("%s: %d %s", body, status, b)
				}
				for _, c := range whole.Choices {
					text := ""
					if c.Message.Content != nil {
						text = *c.Message.Content
					}
					if c.Logprobs == nil || c.Logprobs.Content == nil || c.Logprobs.text() != text {
						t.Errorf("%s: content %q, logprobs %+v", body, text, c.Logprobs)
					}
				}
				_, b = request(t, "POST", url+"/v1/chat/completions", `{"stream":true,`+body[1:])
				for _, f := range frames(b) {
					var chunk struct {
						Choices []struct {
							Delta struct {
								Content *string `json:"content"`
							} `json:"delta"`
							Logprobs *chatLogprobs `json:"logprobs"`
						} `json:"choices"`
					}
					if err := json.Unmarshal([]byte(f), &chunk); err != nil {
						t.Fatal(err)
					}
					for _, c := range chunk.Choices {
						text, told := "", ""
						if c.Delta.Content != nil {
							text = *c.Delta.Content
						}
						if c.Logprobs != nil {
							told = c.Logprobs.text()
						}
						if text != told {
							t.Errorf("%s: the chunk %q is told as %q", body, text, told)
						}
					}
				}
			}
		}
		for _, more := range []string{`"logprobs":0,`, `"logprobs":2,`, `"logprobs":0,"echo":true,`, `"logprobs":1,"stop":["a","e"],`, `"logprobs":0,"max_tokens":0,"echo":true,`, `"logprobs":0,"n":2,"temperature":1.9,"seed":5,`} {
			for _, prompt := range []string{`"Hello, I am"`, `"grüße 日本語"`, `[1,2,3,200,201]`} {
				body := fmt.Sprintf(`{%s"prompt":%s,"max_tokens":16}`, more, prompt)
				if strings.Contains(more, "max_tokens") {
					body = strings.Replace(body, `,"max_tokens":16`, "", 1)
				}
				check := func(text string, l *textLogprobs, from int) {
					t.Helper()
					if l == nil || l.Tokens == nil || l.Top == nil || l.Token == nil || l.Offsets == nil || len(l.Tokens) != len(l.Top) || len(l.Tokens) != len(l.Token) || len(l.Tokens) != len(l.Offsets) {
						t.Fatalf("%s: logprobs %+v", body, l)
					}
					chars := []rune(text)
					for i, name := range l.Tokens {
						end := len(chars)
						if i+1 < len(l.Tokens) {
							end = l.Offsets[i+1] - from
						}
						at := l.Offsets[i] - from
						if at < 0 || end < at || end > len(chars) {
							t.Fatalf("%s: offsets %v of %q", body, l.Offsets, text)
						}
						if part := string(chars[at:end]); utf8.ValidString(name) && !strings.HasPrefix(name, "bytes:") && part != name && !strings.Contains(part, "\uFFFD") {
							t.Errorf("%s: token %q is at %q of %q", body, name, part, text)
						}
						if l.Token[i] != nil && len(l.Top[i]) == 0 {
							t.Errorf("%s: token %q without itself among its alternatives", body, name)
						}
					}
				}
				type reply struct {
					Choices []struct {
						Index    int
						Text     string        `json:"text"`
						Logprobs *textLogprobs `json:"logprobs"`
					} `json:"choices"`
				}
				status, b := request(t, "POST", url+"/v1/completions", body)
				var whole reply
				if err := json.Unmarshal(b, &whole); err != nil || status != 200 {
					t.Fatalf("%s: %d %s", body, status, b)
				}
				for _, c := range whole.Choices {
					check(c.Text, c.Logprobs, 0)
				}
				_, b = request(t, "POST", url+"/v1/completions", `{"stream":true,`+body[1:])
				at := map[int]int{}
				for _, f := range frames(b) {
					var chunk reply
					if err := json.Unmarshal([]byte(f), &chunk); err != nil {
						t.Fatal(err)
					}
					for _, c := range chunk.Choices {
						if c.Text != "" {
							check(c.Text, c.Logprobs, at[c.Index])
							at[c.Index] += utf8.RuneCountInString(c.Text)
						}
					}
				}
			}
		}
	}
}
