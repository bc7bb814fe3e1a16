package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// continues answers a prompt with its length and the number of the choice; the later choices are the likelier ones.
func continues(r *chat.Request) ([]wiretest.Step, error) {
	p := r.Prompt
	size := max(utf8.RuneCountInString(p.Text), len(p.Tokens))
	u := &chat.Usage{Prompt: size, Cached: 1, Output: 2}
	lp := func(text string, x float64) chat.Logprob {
		return chat.Logprob{Token: text, Bytes: []byte(text), Runes: utf8.RuneCountInString(text), Logprob: x}
	}
	start := chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: size, Cached: 1}}
	if p.Echo {
		if start.Text = p.Text; p.Tokens != nil {
			start.Text = fmt.Sprint(p.Tokens)
		}
		if r.Logprobs {
			_, cut := utf8.DecodeRuneInString(start.Text)
			first, second := lp(start.Text[:cut], math.NaN()), lp(start.Text[cut:], -2)
			second.Top = []chat.Logprob{lp("ö", -0.5), lp("\xff", math.Inf(-1))}
			start.Logprobs = []chat.Logprob{first, second}
		}
	}
	steps := []wiretest.Step{{Event: start}}
	for i := range max(r.N, 1) {
		if p.Only {
			steps = append(steps, wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Choice: i, Finish: chat.FinishLength, Usage: start.Usage}})
			continue
		}
		e := chat.Event{Kind: chat.EventText, Choice: i, Text: fmt.Sprintf(" ü%d%c", size, 'a'+i)}
		if r.Logprobs {
			e.Logprobs = []chat.Logprob{lp(" ü", -1), lp(e.Text[len(" ü"):], float64(i)-5)}
		}
		steps = append(steps, wiretest.Step{Event: e},
			wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Choice: i, Finish: chat.FinishStop, Usage: u}})
	}
	return steps, nil
}

func complete(t *testing.T, body string, stream bool) string {
	t.Helper()
	g := wiretest.New()
	g.Names, g.Script = []string{"*"}, continues
	mux := http.NewServeMux()
	Protocol{}.Mount(mux, wiretest.Options(g))
	if stream {
		body = `{"stream": true, ` + body[1:]
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", body, w.Code, w.Body)
	}
	return w.Body.String()
}

// TestSuffix: what follows goes with every prompt.
func TestSuffix(t *testing.T) {
	v, err := wire.Parse([]byte(`{"prompt": ["a", "b"], "suffix": "end"}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := decodeCompletion(v)
	if err != nil || len(c.prompts) != 2 || c.prompts[0].Suffix != "end" || c.prompts[1].Suffix != "end" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestCompletions: the choices and the usage of replies, and the same of their streams.
func TestCompletions(t *testing.T) {
	many, manyTexts := make([]string, 40), make([]string, 40)
	for i := range many {
		many[i], manyTexts[i] = "x", " ü1a"
	}
	list, _ := json.Marshal(many)
	for _, tt := range []struct {
		body          string
		texts         []string
		prompt, total int
	}{
		{`{"prompt": "abc"}`, []string{" ü3a"}, 3, 5},
		{`{"prompt": ["abc"]}`, []string{" ü3a"}, 3, 5},
		{`{"prompt": [7, 8]}`, []string{" ü2a"}, 2, 4},
		{`{"prompt": [[7, 8], [9]]}`, []string{" ü2a", " ü1a"}, 3, 7},
		{`{"prompt": ["abc", "d"], "n": 2}`, []string{" ü3a", " ü3b", " ü1a", " ü1b"}, 4, 12},
		{`{"prompt": "abc", "echo": true}`, []string{"abc ü3a"}, 3, 5},
		{`{"prompt": [[7, 8], [9]], "echo": true, "n": 2}`, []string{"[7 8] ü2a", "[7 8] ü2b", "[9] ü1a", "[9] ü1b"}, 3, 11},
		{`{"prompt": "abc", "echo": true, "max_tokens": 0}`, []string{"abc"}, 3, 3},
		{`{"prompt": ` + string(list) + `}`, manyTexts, 40, 120},
	} {
		var whole textCompletion
		if err := json.Unmarshal([]byte(complete(t, tt.body, false)), &whole); err != nil {
			t.Fatal(err)
		}
		var texts []string
		for i, c := range whole.Choices {
			texts = append(texts, c.Text)
			if c.Index != i || c.FinishReason == nil || c.Logprobs != nil {
				t.Errorf("%s: choice %d is %+v", tt.body, i, c)
			}
		}
		if !slices.Equal(texts, tt.texts) || whole.Usage.Prompt != tt.prompt || whole.Usage.Total != tt.total || whole.Object != "text_completion" {
			t.Errorf("%s: %q, %+v", tt.body, texts, *whole.Usage)
		}
		streamed, usage := foldText(t, complete(t, `{"stream_options": {"include_usage": true}, `+tt.body[1:], true))
		if !slices.Equal(streamed, tt.texts) || usage == nil || *usage != *whole.Usage {
			t.Errorf("%s: streamed %q, %+v", tt.body, streamed, usage)
		}
	}
}

// foldText joins the chunks of a stream.
func foldText(t *testing.T, sse string) (texts []string, u *usage) {
	t.Helper()
	frames := strings.Split(strings.TrimSuffix(sse, "\n\n"), "\n\n")
	if frames[len(frames)-1] != "data: [DONE]" {
		t.Errorf("the stream ends %q", frames[len(frames)-1])
	}
	for _, frame := range frames[:len(frames)-1] {
		var c textCompletion
		if err := json.Unmarshal([]byte(strings.TrimPrefix(frame, "data: ")), &c); err != nil {
			t.Fatalf("%q: %v", frame, err)
		}
		for _, one := range c.Choices {
			for len(texts) <= one.Index {
				texts = append(texts, "")
			}
			texts[one.Index] += one.Text
		}
		if c.Usage != nil {
			u = c.Usage
		}
		if len(c.Choices) == 0 && c.Usage == nil {
			t.Errorf("an empty chunk: %s", frame)
		}
	}
	return texts, u
}

// TestBestOf: the likeliest choices come first, and only so many; what the others cost is counted.
func TestBestOf(t *testing.T) {
	var got textCompletion
	reply := complete(t, `{"prompt": ["abc", "d"], "n": 2, "best_of": 4, "echo": true}`, false)
	if err := json.Unmarshal([]byte(reply), &got); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range got.Choices {
		texts = append(texts, c.Text)
	}
	if want := []string{"abc ü3d", "abc ü3c", "d ü1d", "d ü1c"}; !slices.Equal(texts, want) || got.Usage.Completion != 16 || strings.Contains(reply, "token_logprobs") {
		t.Errorf("got %s, want %q", reply, want)
	}
}

// TestTextLogprobs: with and without alternatives, of the prompt too, the same in a stream.
func TestTextLogprobs(t *testing.T) {
	for _, tt := range []struct{ fields, want string }{
		{`"logprobs": 0`, `{"tokens":[" ü","2a"],"token_logprobs":[-1,-5],"top_logprobs":[{" ü":-1},{"2a":-5}],"text_offset":[0,2]}`},
		{`"logprobs": 1`, `{"tokens":[" ü","2a"],"token_logprobs":[-1,-5],"top_logprobs":[{" ü":-1},{"2a":-5}],"text_offset":[0,2]}`},
		{`"logprobs": 2, "echo": true`, `{"tokens":["ä","b"," ü","2a"],"token_logprobs":[null,-2,-1,-5],"top_logprobs":[null,{"b":-2,"bytes:\\xff":-9999,"ö":-0.5},{" ü":-1},{"2a":-5}],"text_offset":[0,1,2,4]}`},
		{`"logprobs": 2, "echo": true, "max_tokens": 0`, `{"tokens":["ä","b"],"token_logprobs":[null,-2],"top_logprobs":[null,{"b":-2,"bytes:\\xff":-9999,"ö":-0.5}],"text_offset":[0,1]}`},
	} {
		body := `{"prompt": "äb", ` + tt.fields + `}`
		reply := complete(t, body, false)
		var whole textCompletion
		if err := json.Unmarshal([]byte(reply), &whole); err != nil {
			t.Fatal(err)
		}
		if got := logprobsOf(t, reply); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.fields, got, tt.want)
		}
		joined := textLogprobs{}
		for _, frame := range strings.Split(complete(t, body, true), "\n\n") {
			var c textCompletion
			if json.Unmarshal([]byte(strings.TrimPrefix(frame, "data: ")), &c) != nil || len(c.Choices) == 0 || c.Choices[0].Logprobs == nil {
				continue
			}
			l := c.Choices[0].Logprobs
			joined.Tokens = append(joined.Tokens, l.Tokens...)
			joined.Token = append(joined.Token, l.Token...)
			joined.Top = append(joined.Top, l.Top...)
			joined.Offsets = append(joined.Offsets, l.Offsets...)
		}
		if diff := cmp.Diff(*whole.Choices[0].Logprobs, joined); diff != "" {
			t.Errorf("%s: -plain +stream\n%s", tt.fields, diff)
		}
	}
}

// logprobsOf cuts the logprobs of the first choice out of a reply.
func logprobsOf(t *testing.T, reply string) string {
	t.Helper()
	var r struct {
		Choices []struct{ Logprobs json.RawMessage }
	}
	if err := json.Unmarshal([]byte(reply), &r); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(r.Choices[0].Logprobs))
}

// TestLaterPromptFails: an error of one prompt is the error of the request.
func TestLaterPromptFails(t *testing.T) {
	g := wiretest.New()
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		if r.Prompt.Text == "long" {
			return nil, &chat.Error{Kind: chat.ContextLength, Param: r.Prompt.Path, Tokens: 9, Limit: 8}
		}
		return continues(r)
	}
	for _, n := range []int{1, 20} { // before anything is told, and later
		prompts := append(slices.Repeat([]string{"x"}, n), "long")
		list, _ := json.Marshal(prompts)
		for _, stream := range []string{"false", "true"} {
			mux := http.NewServeMux()
			Protocol{}.Mount(mux, wiretest.Options(g))
			r := httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(`{"stream": `+stream+`, "prompt": `+string(list)+`}`))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			late := stream == "true" && n > ahead
			if want := fmt.Sprintf(`"param":"prompt[%d]","code":"context_length_exceeded"`, n); !strings.Contains(w.Body.String(), want) || (w.Code == 200) != late {
				t.Errorf("%d prompts, stream %s: %d %s", n, stream, w.Code, w.Body)
			}
			if late && !strings.HasSuffix(w.Body.String(), "\n\ndata: [DONE]\n\n") {
				t.Errorf("the stream ends without [DONE]: %s", w.Body)
			}
		}
	}
}

func FuzzCompletions(f *testing.F) { wiretest.FuzzDecode(f, Protocol{}, "/completions") }

// TestModelOfDeployment: the path names the model, whatever the body says.
func TestModelOfDeployment(t *testing.T) {
	for _, tt := range []struct{ path, want string }{
		{"/openai/deployments/dep/chat/completions?api-version=2024-10-21", "dep"},
		{"/openai/deployments/org/model/chat/completions", "org/model"},
		{"/openai/deployments/org%2Fmodel/completions?api-version=x", "org/model"},
		{"/openai/v1/chat/completions", "body"},
		{"/openai/chat/completions", "body"},
	} {
		g := wiretest.New(wiretest.Hello(1)...)
		g.Names = []string{"*"}
		mux := http.NewServeMux()
		Protocol{}.Mount(mux, wiretest.Options(g))
		r := httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader(`{"model": "body", "prompt": "x", "messages": [{"role": "user", "content": "q"}]}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if want := fmt.Sprintf(`"model":%q`, tt.want); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", tt.path, w.Code, w.Body, want)
		}
	}
}
