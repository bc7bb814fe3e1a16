package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/server"
)

// logLines is a log of which every Write is one line or two.
type logLines chan string

func (p logLines) Write(b []byte) (int, error) {
	p <- string(b)
	return len(b), nil
}

// watched serves the demo model, or a script, with the [perf] lines and the request log in the hands of the test.
func watched(t *testing.T, change func(*config.Config)) (url string, perf, log logLines, cut func()) {
	t.Helper()
	cfg := config.Default()
	change(cfg)
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	models := catalog.New(src, cfg)
	bs := withWorkers(cfg, slog.New(slog.DiscardHandler), io.Discard)
	if bs.Workers != nil {
		bs.Workers.Command = func() (*exec.Cmd, error) { return exec.Command("hearth", workerName), nil }
	}
	if err := models.Load(bs); err != nil {
		t.Fatal(err)
	}
	perf, log = make(logLines, 16), make(logLines, 1024)
	opts := serverOptions(cfg, models, nil, slog.New(slog.NewJSONHandler(log, nil)))
	opts.Perf = perf
	ctx, cancel := context.WithCancelCause(context.Background())
	handler := server.New(opts)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of, end := context.WithCancelCause(r.Context()) // as a drain that took too long does
		defer end(nil)
		defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
		handler.ServeHTTP(w, r.WithContext(of))
	}))
	t.Cleanup(func() {
		srv.Close()
		cancel(nil)
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv.URL, perf, log, func() {
		cancel(&chat.Error{Kind: chat.Overloaded, Code: "shutting_down", Msg: "the server is shutting down"})
	}
}

// told are the fields of a [perf] line that say what was generated.
type told struct {
	Request string  `json:"request"`
	Input   int     `json:"input_tokens"`
	Output  int     `json:"output_tokens"`
	TPS     float64 `json:"generation_tps"`
	Finish  string  `json:"finish"`
}

func perfOf(t *testing.T, text string) (p told) {
	t.Helper()
	_, line, ok := strings.Cut(text, "[perf] ")
	if err := json.Unmarshal([]byte(line), &p); err != nil || !ok {
		t.Fatalf("%v: %s", err, text)
	}
	return p
}

// logged waits for the request log's line of a request.
func logged(t *testing.T, log logLines, id string) map[string]any {
	t.Helper()
	for line := range log {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m["id"] == id {
			return m
		}
	}
	return nil
}

// What was generated counts, however the reply ended: in [perf], in the request log, in the totals and in those of each key.
func TestCancelledCounts(t *testing.T) {
	// Without what ends its turns, and sampled from all of its vocabulary, the demo goes on and on.
	const endless = `"max_tokens":8000,"logit_bias":{"5709":-100,"5711":-100}`
	seed, hot, all, any := uint64(3), 2., 1., 0.
	for _, apart := range []string{"never", "always"} {
		for _, tc := range []struct {
			name, path, body string
			chunks           int // read before leaving; 0: of a whole reply, which is left when so many tokens were generated
			choices          int
			drain            bool
		}{
			{"chat stream", "/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"Hi"}],` + endless + `}`, 40, 1, false},
			{"chat whole", "/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],` + endless + `}`, 0, 1, false},
			{"two choices", "/v1/chat/completions", `{"n":2,"stream":true,"messages":[{"role":"user","content":"Hi"}],` + endless + `}`, 40, 2, false},
			{"completions stream", "/v1/completions", `{"stream":true,"prompt":"Hi",` + endless + `}`, 40, 1, false},
			{"completions whole", "/openai/deployments/demo/completions", `{"prompt":"Hi",` + endless + `}`, 0, 1, false},
			{"drain", "/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"Hi"}],` + endless + `}`, 40, 1, true},
		} {
			if apart == "always" && tc.name != "chat stream" && tc.name != "completions whole" {
				continue
			}
			t.Run(apart+"/"+tc.name, func(t *testing.T) {
				url, perf, log, cut := watched(t, func(c *config.Config) {
					c.APIKeys, c.OperatorKey, c.ModelProcess, c.Seed = []string{"a", "b"}, "o", apart, &seed
					c.Temperature, c.TopP, c.TopK = &hot, &all, &any
				})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				status := func() (st server.Status) {
					_, b := request(t, "GET", url+"/v1/status", "", "X-Api-Key", "o")
					exactly(t, b, &st)
					return st
				}
				r, err := http.NewRequestWithContext(ctx, "POST", url+tc.path, strings.NewReader(tc.body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Api-Key", "a")
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					res, err := http.DefaultClient.Do(r)
					if err != nil {
						return
					}
					defer res.Body.Close()
					lines := bufio.NewScanner(res.Body)
					for n := 0; n < tc.chunks && lines.Scan(); {
						if strings.HasPrefix(lines.Text(), "data: ") {
							n++
						}
					}
					if tc.drain {
						cut()
						_, _ = io.Copy(io.Discard, res.Body)
					}
					leave()
				}()
				if tc.chunks == 0 {
					for st := status(); len(perf) == 0 && (len(st.Requests) == 0 || st.Requests[0].Generated < 40); st = status() {
						if st.Status != "running" {
							t.Fatalf("status %+v", st)
						}
					}
					leave()
				}
				p := perfOf(t, <-perf)
				<-ended
				st := status()
				for st.Running > 0 { // the step in which the client left
					st = status()
				}
				if least := 30; p.Output < least || p.Input == 0 || p.TPS <= 0 || p.Finish != "cancelled" {
					t.Errorf("perf %+v", p)
				}
				// Another process goes on until it hears that the client has left.
				if diff := int(st.Steps)*tc.choices - p.Output; diff < -tc.choices || apart == "never" && diff > 4*tc.choices {
					t.Errorf("%d steps of %d choices ran, %d tokens are told of", st.Steps, tc.choices, p.Output)
				}
				if st.Output != int64(p.Output) || st.Prompt != int64(p.Input) || st.Processed != 1 {
					t.Errorf("totals %+v of %+v", st, p)
				}
				if l := logged(t, log, p.Request); l["output_tokens"] != float64(p.Output) || l["prompt_tokens"] != float64(p.Input) || l["finish"] != "cancelled" {
					t.Errorf("log %v of %+v", l, p)
				}
				for key, want := range map[string]int64{"a": int64(p.Output), "b": 0} {
					var own server.OwnStatus
					_, b := request(t, "GET", url+"/v1/status", "", "X-Api-Key", key)
					exactly(t, b, &own)
					if own.Output != want || own.Status != "running" {
						t.Errorf("key %s: %s", key, b)
					}
				}
			})
		}
	}
}

// A script's reply that breaks off counts what came before, and while it runs it is seen.
func TestScriptCounts(t *testing.T) {
	for _, tc := range []struct{ kind, finish string }{{"cut", "cancelled"}, {"error", "error"}, {"stall", "cancelled"}} {
		for _, stream := range []string{"true", "false"} {
			t.Run(tc.kind+"/"+stream, func(t *testing.T) {
				file := scriptFile(t, fmt.Sprintf(`{"raw":"one two three four five six","fault":{"kind":%q,"after_tokens":4}}`, tc.kind))
				url, perf, log, _ := watched(t, func(c *config.Config) { c.Script = file })
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				r, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/messages", strings.NewReader(`{"stream":`+stream+`,`+hello[1:]))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					if res, err := http.DefaultClient.Do(r); err == nil {
						_, _ = io.Copy(io.Discard, res.Body)
						res.Body.Close()
					}
				}()
				if tc.kind == "stall" {
					var st server.Status
					for len(perf) == 0 && (len(st.Requests) == 0 || st.Requests[0].Generated < 4) {
						_, b := request(t, "GET", url+"/v1/status", "")
						exactly(t, b, &st)
					}
					if st.Status != "running" || st.Running != 1 || len(st.Requests) != 1 || st.Requests[0].Phase != "generation" || st.Requests[0].ID == "" {
						t.Errorf("status %+v", st)
					}
					leave()
				}
				p := perfOf(t, <-perf)
				<-ended
				if p.Output != 4 || p.Finish != tc.finish {
					t.Errorf("perf %+v", p)
				}
				if l := logged(t, log, p.Request); l["output_tokens"] != 4. || l["finish"] != tc.finish {
					t.Errorf("log %v", l)
				}
				var st server.Status
				_, b := request(t, "GET", url+"/v1/status", "")
				exactly(t, b, &st)
				if st.Output != 4 || st.Running != 0 || len(st.Requests) != 0 || st.Status != "running" {
					t.Errorf("status %s", b)
				}
			})
		}
	}
}

// A reply that ends before its model would have has counts and rates like any other, and a bound it met stands in all of them.
func TestEndedEarlyCounts(t *testing.T) {
	zero := 0.
	for _, tc := range []struct {
		name, body, finish, bound string
		off                       bool
	}{
		{"a stop string", `"stop":["?"],`, "stop_text", "", false},
		{"max tokens", `"max_tokens":9,`, "length", "", false},
		{"a runaway", `"logit_bias":{"5709":-100,"5711":-100,"12":100},`, "length", "runaway", false},
		{"one that is let", `"max_tokens":2000,"logit_bias":{"5709":-100,"5711":-100,"12":100},`, "length", "", true},
	} {
		for _, stream := range []string{"true", "false"} {
			t.Run(tc.name+"/"+stream, func(t *testing.T) {
				url, perf, log, _ := watched(t, func(c *config.Config) { c.Temperature, c.RunawayStop = &zero, !tc.off })
				status, b := request(t, "POST", url+"/v1/chat/completions", `{`+tc.body+`"stream":`+stream+`,"messages":[{"role":"user","content":"Hello"}]}`)
				if status != 200 {
					t.Fatalf("%d %s", status, b)
				}
				line := <-perf
				p := perfOf(t, line)
				if p.Output < 2 || p.TPS <= 0 || p.Finish != tc.finish || strings.Contains(line, `"bounds":["runaway"]`) != (tc.bound != "") {
					t.Errorf("perf %s", line)
				}
				l := logged(t, log, p.Request)
				if met, ok := l["bounds"].([]any); l["finish"] != tc.finish || ok != (tc.bound != "") || ok && (len(met) != 1 || met[0] != tc.bound) {
					t.Errorf("log %v", l)
				}
				var st server.Status
				_, b = request(t, "GET", url+"/v1/status", "")
				exactly(t, b, &st)
				if st.Output != int64(p.Output) || tc.bound != "" && st.Bounds[chat.BoundRunaway] != 1 || tc.off && p.Output != 2000 {
					t.Errorf("status %s of %+v", b, p)
				}
			})
		}
	}
}
