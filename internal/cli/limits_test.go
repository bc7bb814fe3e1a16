package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"hearth/internal/config"
)

// reply is what a reply of any API says of its length, whole or streamed.
type reply struct {
	status   int
	body     string
	header   string // of the limit
	limit    int    // what usage says of it; 0: nothing
	prompt   int
	output   int
	finishes []string
	usages   []usage // all that it has
}

// usage is that of any API.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Read     int `json:"cached_tokens"`
		Creation int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Input    int `json:"input_tokens"`
	Creation int `json:"cache_creation_input_tokens"`
	Read     int `json:"cache_read_input_tokens"`
	Output   int `json:"output_tokens"`
	Limit    int `json:"hearth_max_tokens"`
}

// whole is the prompt's length.
func (u *usage) whole() int { return u.Prompt + u.Input + u.Creation + u.Read }

// ask posts to an API, and says what the reply tells in the end.
func ask(t *testing.T, url, path string, body object, stream bool) (r reply) {
	t.Helper()
	if body["stream"] = stream; stream && !strings.HasSuffix(path, "/messages") {
		body["stream_options"] = object{"include_usage": true}
	}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url+path, "application/json", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	r.status, r.body, r.header = res.StatusCode, text.String(), res.Header.Get("X-Hearth-Max-Tokens")
	if r.status != http.StatusOK {
		return r
	}
	pieces := []string{r.body}
	if stream {
		pieces = nil
		for _, line := range strings.Split(r.body, "\n") {
			if data, ok := strings.CutPrefix(line, "data: {"); ok {
				pieces = append(pieces, "{"+data)
			}
		}
	}
	for _, p := range pieces {
		var m struct {
			StopReason string `json:"stop_reason"`
			Delta      struct {
				StopReason string `json:"stop_reason"`
			}
			Choices []struct {
				FinishReason string `json:"finish_reason"`
			}
			Message struct{ Usage *usage }
			Usage   *usage
		}
		if err := json.Unmarshal([]byte(p), &m); err != nil {
			t.Fatalf("%s: %v in %.300s", path, err, p)
		}
		for _, f := range []string{m.StopReason, m.Delta.StopReason} {
			if f != "" {
				r.finishes = append(r.finishes, f)
			}
		}
		for _, c := range m.Choices {
			if c.FinishReason != "" {
				r.finishes = append(r.finishes, c.FinishReason)
			}
		}
		for _, u := range []*usage{m.Message.Usage, m.Usage} {
			if u != nil {
				r.usages = append(r.usages, *u)
				r.prompt, r.output, r.limit = u.whole(), u.Completion+u.Output, u.Limit
			}
		}
	}
	return r
}

// The three APIs at all their paths.
var (
	messagesPaths   = []string{"/v1/messages", "/anthropic/v1/messages"}
	chatPaths       = []string{"/v1/chat/completions", "/chat/completions", "/openai/v1/chat/completions", "/openai/deployments/demo/chat/completions"}
	completionPaths = []string{"/v1/completions", "/openai/deployments/demo/completions"}
)

// api is a path, and how it says that a reply was cut short by the end of the context and by its limit.
type api struct{ path, context, length string }

func apis() (all []api) {
	for _, p := range messagesPaths {
		all = append(all, api{p, "model_context_window_exceeded", "max_tokens"})
	}
	for _, p := range append(append([]string(nil), chatPaths...), completionPaths...) {
		all = append(all, api{p, "length", "length"})
	}
	return all
}

func (a *api) messages() bool { return a.context != a.length }
func (a *api) completions() bool {
	return strings.HasSuffix(a.path, "/completions") && !strings.Contains(a.path, "/chat/")
}

// body is a short prompt, or a long one, and a limit of tokens in JSON; "" leaves it out.
func (a *api) body(prompt, field, limit string) object {
	b := object{"model": "demo"}
	if a.completions() {
		b["prompt"] = prompt
	} else {
		b["messages"] = []any{object{"role": "user", "content": prompt}}
	}
	if limit != "" {
		b[field] = json.RawMessage(limit)
	}
	return b
}

// endless is a script that says more than fits, and not twice the same.
func endless(t *testing.T) string {
	var said strings.Builder
	for i := range 2000 {
		said.WriteString(strconv.Itoa(i*i) + " ")
	}
	return scriptFile(t, fmt.Sprintf(`{"raw": %q}`, said.String()))
}

const smallContext = 512

// TestMaxTokens: on every API a limit that does not fit behind the prompt is lowered to what does, which the reply says, and
// the reply ends where the context does; what means "what fits" is no limit.
func TestMaxTokens(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) { c.Script, c.ContextLength = endless(t), smallContext })
	for _, a := range apis() {
		for _, stream := range []bool{false, true} {
			check := func(field, limit, finish string, n int, lowered bool) {
				t.Helper()
				r := ask(t, url, a.path, a.body("Hello", field, limit), stream)
				what := fmt.Sprintf("%s, stream %t, %s %s", a.path, stream, field, limit)
				if n == 0 {
					n = smallContext - r.prompt
				}
				header, told := "", 0
				if lowered {
					header, told = strconv.Itoa(n), n
				}
				if r.status != 200 || r.output != n || r.header != header || r.limit != told || strings.Join(r.finishes, " ") != finish {
					t.Errorf("%s: %d, %d tokens behind %d, header %q, usage %d, %q; want %d, header %q, %q\n%.200s", what,
						r.status, r.output, r.prompt, r.header, r.limit, r.finishes, n, header, finish, r.body)
				}
			}
			fields := []string{"max_tokens"}
			if !a.messages() {
				fields = append(fields, "max_completion_tokens")
			}
			for _, field := range fields {
				least := "513"
				if a.messages() { // a shorter reply does not think, and its prompt is longer than usage says by what tells the model so
					least = "1024"
				}
				for _, limit := range []string{least, "32000", "32000.0", "1e9", "9007199254740993", "9223372036854775807", "99999999999999999999", "1e300", "1e400"} {
					check(field, limit, a.context, 0, true)
				}
				for _, limit := range []string{"-1", "-1.0", "null", ""} {
					check(field, limit, a.context, 0, false)
				}
				check(field, "10", a.length, 10, false)
				for _, limit := range []string{"-2", "-1e300", "1.5", `"10"`, "true", "[]", "{}"} {
					if r := ask(t, url, a.path, a.body("Hello", field, limit), stream); r.status != 400 || !strings.Contains(r.body, field) {
						t.Errorf("%s, stream %t, %s %s: %d %s", a.path, stream, field, limit, r.status, r.body)
					}
				}
				if !a.messages() && !a.completions() {
					check(field, "0", a.context, 0, false)
				} else if r := ask(t, url, a.path, a.body("Hello", field, "0"), stream); r.status != 400 {
					t.Errorf("%s: %s 0: %d %s", a.path, field, r.status, r.body)
				}
			}
			// A prompt that itself does not fit is refused in the words that clients look for.
			long := strings.Repeat("sheep ", 2*smallContext)
			for _, limit := range []string{"", "-1", "10", "32000"} {
				r := ask(t, url, a.path, a.body(long, "max_tokens", limit), stream)
				want := "This model's maximum context length is 511 tokens. However, your messages resulted in "
				if a.messages() {
					want = "prompt is too long: "
				}
				if r.status != 400 || !strings.Contains(r.body, want) || !a.messages() && !strings.Contains(r.body, `"context_length_exceeded"`) {
					t.Errorf("%s: a long prompt, max_tokens %q: %d %s", a.path, limit, r.status, r.body)
				}
			}
		}
	}
	// Pages in browsers may read the header.
	r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "http://localhost:3000")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if exposed := res.Header.Get("Access-Control-Expose-Headers"); !strings.Contains(exposed, "x-hearth-max-tokens") {
		t.Errorf("exposed: %s", exposed)
	}
	checkChoices(t, url)
}

// checkChoices: of several choices and prompts, and of none.
func checkChoices(t *testing.T, url string) {
	t.Helper()
	// Each of several choices has what fits, and so has that of each prompt; the least of them is told.
	b := (&api{path: "/v1/chat/completions"}).body("Hello", "max_tokens", "32000")
	b["n"] = 3
	r := ask(t, url, "/v1/chat/completions", b, false)
	if room := smallContext - r.prompt; r.output != 3*room || r.header != strconv.Itoa(room) {
		t.Errorf("three choices: %d tokens behind %d, header %q", r.output, r.prompt, r.header)
	}
	r = ask(t, url, "/v1/completions", object{"prompt": []string{"Hello there, you", "Hello"}, "max_tokens": 32000}, false)
	if r.output != 2*smallContext-r.prompt || r.limit == 0 || r.limit >= smallContext-r.prompt/2 || r.header != strconv.Itoa(r.limit) {
		t.Errorf("two prompts: %d tokens behind %d, header %q, usage %d", r.output, r.prompt, r.header, r.limit)
	}
	// Nothing is generated where a completion is to be none, whichever field says so.
	for _, body := range []object{
		{"prompt": "Hello", "echo": true, "max_tokens": 0}, {"prompt": "Hello", "echo": true, "max_completion_tokens": 0},
		{"prompt": "Hello", "echo": true, "max_completion_tokens": 0, "max_tokens": 7},
	} {
		if r := ask(t, url, "/v1/completions", body, false); r.status != 200 || r.output != 0 || r.header != "" {
			t.Errorf("%v: %d, %d tokens, header %q", body, r.status, r.output, r.header)
		}
	}
	if r := ask(t, url, "/v1/completions", object{"prompt": "Hello", "max_completion_tokens": 7, "max_tokens": 0}, false); r.output != 7 {
		t.Errorf("max_completion_tokens comes first: %d %s", r.output, r.body)
	}
}

// TestMaxTokensCap: the operator's limit lowers too, and says so.
func TestMaxTokensCap(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) { c.Script, c.ContextLength, c.MaxTokensCap = endless(t), smallContext, 20 })
	for _, a := range apis() {
		for limit, header := range map[string]string{"32000": "20", "21": "20", "20": "", "-1": "", "": ""} {
			if r := ask(t, url, a.path, a.body("Hello", "max_tokens", limit), true); r.output != 20 || r.header != header || r.finishes[0] != a.length {
				t.Errorf("%s: %q: %d tokens, header %q, %q", a.path, limit, r.output, r.header, r.finishes)
			}
		}
	}
}

// TestStrictOpenAI: what OpenAI refuses is refused, and nothing else.
func TestStrictOpenAI(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) { c.Script, c.ContextLength, c.StrictOpenAI = endless(t), smallContext, true })
	for _, a := range apis() {
		if a.messages() {
			continue
		}
		for _, field := range []string{"max_tokens", "max_completion_tokens"} {
			for limit, want := range map[string]string{
				"32000": "This model's maximum context length is 512 tokens. However, you requested ", "9223372036854775807": "context_length_exceeded",
				"-1": "-1 is out of range", "": "", "null": "", "10": "",
			} {
				r := ask(t, url, a.path, a.body("Hello", field, limit), false)
				if refused := r.status == 400; refused != (want != "") || !strings.Contains(r.body, want) || r.header != "" {
					t.Errorf("%s: %s %q: %d %s, header %q", a.path, field, limit, r.status, r.body, r.header)
				}
			}
			r := ask(t, url, a.path, a.body("Hello", field, "0"), false)
			if r.status != 400 || !strings.Contains(r.body, `"param":"`+field) {
				t.Errorf("%s: %s 0: %d %s", a.path, field, r.status, r.body)
			}
		}
	}
	if r := ask(t, url, "/v1/completions", object{"prompt": "Hello", "echo": true, "max_tokens": 0}, false); r.status != 200 || r.output != 0 {
		t.Errorf("echo alone: %d %s", r.status, r.body)
	}
	if r := ask(t, url, "/v1/messages", (&api{path: "/v1/messages"}).body("Hello", "max_tokens", "32000"), false); r.status != 200 || r.header == "" {
		t.Errorf("Messages are not OpenAI's: %d %s", r.status, r.body)
	}
}

// TestStrictAnthropic: a max_tokens that stands for what fits is as wrong as none.
func TestStrictAnthropic(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) { c.Script, c.ContextLength, c.StrictAnthropic = endless(t), smallContext, true })
	for _, a := range apis()[:len(messagesPaths)] {
		for limit, want := range map[string]string{
			"32000": "input length and `max_tokens` exceed context limit: ", "-1": "max_tokens: -1 is out of range: must be at least 1",
			"0": "max_tokens: 0 is out of range", "null": "max_tokens: is required", "": "max_tokens: is required", "10": "",
		} {
			r := ask(t, url, a.path, a.body("Hello", "max_tokens", limit), false)
			if refused := r.status == 400; refused != (want != "") || !strings.Contains(r.body, want) {
				t.Errorf("%s: %q: %d %s", a.path, limit, r.status, r.body)
			}
		}
	}
}

// TestPublishedLimits: what /v1/models says may be asked for is given, also where nothing is lowered, and no more than the
// operator allows.
func TestPublishedLimits(t *testing.T) {
	for _, most := range []int{0, 50} {
		url := serveDemo(t, func(c *config.Config) {
			c.Script, c.ContextLength, c.MaxTokensCap, c.StrictOpenAI, c.StrictAnthropic = endless(t), smallContext, most, true, true
		})
		for _, path := range []string{"/v1/models/demo", "/anthropic/v1/models/demo", "/openai/models/demo"} {
			_, body := request(t, "GET", url+path, "")
			var m struct {
				MaxTokens int `json:"max_tokens"`
				Context   int `json:"context_length"`
			}
			if err := json.Unmarshal(body, &m); err != nil || m.Context != smallContext || m.MaxTokens < 1 {
				t.Fatalf("%s: %v, %s", path, err, body)
			}
			for _, a := range apis() {
				r := ask(t, url, a.path, a.body("Hello. Who are you, and what can you do for me today?", "max_tokens", strconv.Itoa(m.MaxTokens)), false)
				if r.status != 200 || r.output != m.MaxTokens || r.header != "" {
					t.Errorf("%s says %d, %s: %d, %d tokens, header %q, %.200s", path, m.MaxTokens, a.path, r.status, r.output, r.header, r.body)
				}
			}
		}
	}
}

// conversations are requests of many kinds, most of them longer than a page of the prompt cache.
func conversations() (all []object) {
	long := strings.Repeat("Count the sheep on the green hill. ", 15)
	weather := object{"name": "weather", "description": "Says the weather of a city.", "input_schema": object{
		"type": "object", "properties": object{"city": object{"type": "string"}}, "required": []any{"city"}}}
	user := func(text string) object { return object{"role": "user", "content": text} }
	loop := []any{user("How is the weather in Paris?"),
		object{"role": "assistant", "content": []any{object{"type": "text", "text": "Let me look."},
			object{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": object{"city": "Paris"}}}},
		object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "toolu_1", "content": "Rain. " + long}}}}
	for name, fields := range map[string]object{
		"short":      {"messages": []any{user("Hello")}},
		"long":       {"system": long, "messages": []any{user("One")}},
		"other":      {"system": long, "messages": []any{user("Two, which parts there")}},
		"stopped":    {"system": long, "messages": []any{user("One")}, "stop_sequences": []any{"e", "a", "o", "i"}},
		"one token":  {"system": long, "messages": []any{user("One")}, "max_tokens": 1},
		"thinking":   {"system": long, "messages": []any{user("One")}, "thinking": object{"type": "enabled", "budget_tokens": 5}},
		"tools":      {"tools": []any{weather}, "messages": []any{user("How is the weather in Paris?")}},
		"any":        {"tools": []any{weather}, "tool_choice": object{"type": "any"}, "messages": []any{user(long)}},
		"named":      {"tools": []any{weather}, "tool_choice": object{"type": "tool", "name": "weather"}, "messages": []any{user(long)}},
		"no tools":   {"tools": []any{weather}, "tool_choice": object{"type": "none"}, "messages": []any{user(long)}},
		"loop":       {"tools": []any{weather}, "messages": loop},
		"loop's end": {"tools": []any{weather}, "messages": append(loop[:3:3], object{"role": "assistant", "content": "It rains."}, user("And in Rome?"))},
		"continued":  {"system": long, "messages": []any{user("One"), object{"role": "assistant", "content": "The sheep"}}},
		"lowered":    {"system": long, "messages": []any{user("Three")}, "max_tokens": 1000000, "stop_sequences": []any{".", "!", "?", ","}},
		"too long":   {"messages": []any{user(strings.Repeat(long, 100))}},
	} {
		fields["model"], fields["name"] = "demo", name
		if fields["max_tokens"] == nil {
			fields["max_tokens"] = 12
		}
		all = append(all, fields)
	}
	return all
}

// TestUsageIsWhole: what was computed, newly stored and read makes the length of the prompt, which is what counting says, in
// whatever reply; and what is stored once is read afterwards.
func TestUsageIsWhole(t *testing.T) {
	const page = 64
	for _, tt := range []struct {
		name   string
		change func(*config.Config)
		cached bool
	}{
		{"cache", func(*config.Config) {}, true},
		{"no cache", func(c *config.Config) { c.PromptCache = false }, false},
		{"script", func(c *config.Config) {
			c.Script = scriptFile(t, `{"if_tool": "weather", "raw": "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"}`+"\n"+`{"raw": ""}`)
			c.ContextLength = 8192
		}, true},
	} {
		url := serveDemo(t, func(c *config.Config) { c.CacheMemoryMB = 64; tt.change(c) })
		seen := false // a long prompt that began alike
		for _, body := range conversations() {
			name := body["name"]
			delete(body, "name")
			for round := range 2 {
				for _, stream := range []bool{false, true} {
					b, _ := json.Marshal(body)
					_, counted := request(t, "POST", url+"/v1/messages/count_tokens", string(b))
					var count struct {
						Input int `json:"input_tokens"`
					}
					if err := json.Unmarshal(counted, &count); err != nil {
						t.Fatal(err)
					}
					r := ask(t, url, "/v1/messages", body, stream)
					what := fmt.Sprintf("%s, %s, round %d, stream %t", tt.name, name, round, stream)
					if name == "too long" {
						if want := fmt.Sprintf("prompt is too long: %d tokens > ", count.Input); r.status != 400 || !strings.Contains(r.body, want) {
							t.Errorf("%s: %d %s, want %s", what, r.status, r.body, want)
						}
						continue
					}
					for _, u := range r.usages {
						if u.whole() != count.Input || u.Input < 1 || u.Creation < 0 || u.Read < 0 {
							t.Errorf("%s: %+v of %d counted", what, u, count.Input)
						}
					}
					last := r.usages[len(r.usages)-1]
					switch {
					case !tt.cached && last.Creation+last.Read > 0:
						t.Errorf("%s: %+v", what, last)
					case tt.cached && round == 0 && !stream && last.Creation == 0 && last.Read == 0 && count.Input >= page:
						t.Errorf("%s: nothing of %d tokens was stored: %+v", what, count.Input, last)
					case tt.cached && (round > 0 || stream) && count.Input > page && (last.Creation > 0 || last.Read < count.Input-1):
						t.Errorf("%s: what was stored was not read: %+v", what, last)
					}
					seen = seen || last.Creation > 0
				}
			}
		}
		if seen != tt.cached {
			t.Errorf("%s: stored %t", tt.name, seen)
		}
	}
}

// TestStoredTokens: a first long prompt is newly stored and a second one read, with the same figures on every API, and nothing is
// stored for a prompt that shares less than a page.
func TestStoredTokens(t *testing.T) {
	const page = 64
	url := serveDemo(t, func(c *config.Config) { c.CacheMemoryMB = 512 })
	for _, a := range apis() {
		for _, stream := range []bool{false, true} {
			long := fmt.Sprint(a.path, stream, strings.Repeat(" Count the sheep on the green hill.", 15))
			for i, prompt := range []string{"Hello", long, long, long + "One more."} {
				u := ask(t, url, a.path, a.body(prompt, "max_tokens", "1"), stream).usages
				last := u[len(u)-1]
				creation, read, n := last.Creation+last.Details.Creation, last.Read+last.Details.Read, last.whole()
				var want [2]int
				switch i {
				case 1:
					want = [2]int{min(n-n%page, n-1), 0}
				case 2:
					want = [2]int{0, n - 1}
				case 3:
					want = [2]int{max(min(n-n%page, n-1)-read, 0), read}
				}
				if creation != want[0] || read != want[1] || i == 3 && read < page {
					t.Errorf("%s, stream %t, prompt %d of %d tokens: %d stored, %d read, want %d", a.path, stream, i, n, creation, read, want)
				}
			}
		}
	} // What several prompts of one request add counts together.
	long := strings.Repeat(" The cat sleeps under the old tree.", 15)
	body := object{"prompt": []string{"a" + long, "b" + long}, "max_tokens": 1}
	u := ask(t, url, "/v1/completions", body, false).usages[0]
	if u.Details.Creation < u.Prompt-2*page || u.Details.Creation+u.Details.Read >= u.Prompt {
		t.Errorf("two prompts: %+v", u)
	}
	if u = ask(t, url, "/v1/completions", body, false).usages[0]; u.Details.Creation != 0 || u.Details.Read != u.Prompt-2 {
		t.Errorf("two prompts again: %+v", u)
	}
}
