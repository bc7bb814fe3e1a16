package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/metrics"
	"hearth/internal/wire/wiretest"
)

// scraped is the samples of a server, without those of the process.
func scraped(t *testing.T, s http.Handler) string {
	t.Helper()
	w := do(s, "GET", "/metrics", "")
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("GET /metrics = %d %s", w.Code, w.Header())
	}
	var b strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "hearth_") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// wants fails for lines that got lacks.
func wants(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+got, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

func TestMetrics(t *testing.T) {
	o := options()
	o.Models = wiretest.New(wiretest.Hello(1)...)
	o.Keys = plain("secret")
	o.Metrics = metrics.New(metrics.Options{Version: "1", Commit: "c"})
	s := New(o)
	const key = "X-Api-Key: secret"
	for range 2 {
		do(s, "POST", "/v1/messages", messages, key)
	}
	do(s, "POST", "/messages", messages, key)
	do(s, "POST", "//v1//chat/completions/", messages, key)
	do(s, "POST", "/openai/deployments/test-model/chat/completions?api-version=1", messages, key)
	do(s, "POST", "/openai/deployments/any-name-at-all/chat/completions?api-version=1", messages, key)
	do(s, "POST", "/v1/messages", "{", key)
	do(s, "POST", "/v1/messages", messages)
	do(s, "POST", "/v1/messages", `{"model":"a-callers-word","messages":[{"role":"user","content":"Hi"}]}`, key)
	do(s, "GET", "/a/path/of/the/caller", "", key)
	do(s, strings.Repeat("M", 30), "/v1/models/x", "", key)
	got := scraped(t, s)
	wants(t, got,
		`hearth_http_requests_total{model="test-model",route="/v1/messages",status="200"} 3`,
		`hearth_http_requests_total{model="test-model",route="/v1/chat/completions",status="200"} 1`,
		`hearth_http_requests_total{model="test-model",route="/openai/deployments/{rest...}",status="200"} 1`,
		`hearth_http_requests_total{model="",route="/v1/messages",status="400"} 1`,
		`hearth_http_requests_total{model="",route="/v1/messages",status="401"} 1`,
		`hearth_http_requests_total{model="",route="/v1/messages",status="404"} 1`,
		`hearth_http_requests_total{model="",route="other",status="404"} 1`,
		`hearth_http_requests_total{model="",route="/v1/models/{id...}",status="405"} 1`,
		`hearth_http_requests_in_flight 1`,
		`hearth_requests_refused_total{reason="unauthenticated"} 1`,
		`hearth_requests_refused_total{reason="not_found"} 3`,
		`hearth_requests_finished_total{model="test-model",reason="stop"} 5`,
		`hearth_request_generation_tokens_count{model="test-model"} 5`,
		`hearth_e2e_request_latency_seconds_count{model="test-model"} 5`,
		`hearth_time_to_first_token_seconds_count{model="test-model"} 5`,
		`hearth_build_info{commit="c",version="1"} 1`)
	for _, word := range []string{"callers", "any-name", "caller", "MMM"} {
		if strings.Contains(got, word) {
			t.Errorf("a caller chose a label:\n%s", got)
		}
	}
}

// TestMetricsCancelled: what was generated for a client that left counts.
func TestMetricsCancelled(t *testing.T) {
	o := options()
	o.Models = wiretest.New(wiretest.Step{Event: chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 3}}},
		wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishCancelled, Usage: &chat.Usage{Prompt: 3, Output: 7, Hit: "miss"}}, Err: context.Canceled})
	o.Metrics = metrics.New(metrics.Options{})
	s := New(o)
	do(s, "POST", "/v1/messages", messages)
	wants(t, scraped(t, s), `hearth_requests_finished_total{model="test-model",reason="cancelled"} 1`,
		`hearth_request_generation_tokens_sum{model="test-model"} 7`, `hearth_prompts_total{cache="miss",model="test-model"} 1`)
}

// TestMetricsApart: with an address of their own the API has none, and the other has nothing else.
func TestMetricsApart(t *testing.T) {
	o := options()
	if w := do(New(o), "GET", "/metrics", ""); w.Code != 404 {
		t.Errorf("without metrics: %d", w.Code)
	}
	o.Metrics, o.MetricsApart = metrics.New(metrics.Options{}), true
	s := New(o)
	if w := do(s, "GET", "/metrics", ""); w.Code != 404 {
		t.Errorf("with the API: %d", w.Code)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.ServeMetrics(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{"/metrics": 200, "/v1/models": 404, "/health": 404} {
		resp, err := client.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != want || err != nil || want == 200 && !strings.Contains(string(body), "hearth_build_info") {
			t.Errorf("%s: %d %v\n%s", path, resp.StatusCode, err, body)
		}
		resp.Body.Close()
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestMetricsSource: pages that are not the operator's read nothing, with keys neither.
func TestMetricsSource(t *testing.T) {
	for _, keys := range [][]string{nil, {"secret"}} {
		o := options()
		o.Keys = plain(keys...)
		o.Metrics = metrics.New(metrics.Options{})
		s := New(o)
		for _, tc := range []struct {
			header string
			status int
		}{
			{"Host: localhost:8080", 200},
			{"Host: 10.1.2.3:8080", 200},
			{"Host: box.example.org", 200},
			{"Host: rebound.example.com", 403},
			{"Origin: https://evil.example", 403},
			{"Origin: http://localhost:3000", 200},
		} {
			if w := do(s, "GET", "/metrics", "", tc.header); w.Code != tc.status {
				t.Errorf("keys %v, %s: %d, want %d", keys, tc.header, w.Code, tc.status)
			}
		}
	}
}
