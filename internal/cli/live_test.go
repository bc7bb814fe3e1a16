package cli

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/server"
)

// What the live view shows of requests adds up: the phases of each to no more than its time, and the seconds of the hour to what
// the status counts.
func TestLiveView(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) { c.APIKeys, c.OperatorKey = []string{"a", "b"}, "o" })
	const long = `{"max_tokens":8,"temperature":0,"messages":[{"role":"user","content":%q}],"n":%d}`
	for i := range 6 {
		body := fmt.Sprintf(long, strings.Repeat("Count the sheep. ", 40+i), 1+i%2)
		if status, b := request(t, "POST", url+"/v1/chat/completions", body, "X-Api-Key", "ab"[i%2:i%2+1]); status != 200 {
			t.Errorf("%d %s", status, b)
		}
	}
	var all server.Traces
	_, b := request(t, "GET", url+"/v1/requests", "", "X-Api-Key", "o")
	exactly(t, b, &all)
	var prompt, cached, output int64
	for i := range all.Requests {
		r := &all.Requests[i]
		p := r.Phases
		if sum := p.Load + p.Tokenize + p.Queue + p.Match + p.Prefill + p.Decode; sum > r.Wall || sum <= 0 || min(p.Load, p.Tokenize, p.Queue, p.Match, p.Prefill, p.Decode) < 0 ||
			p.Tokenize == 0 || p.Match == 0 || p.Prefill == 0 || r.State != "done" || r.TTFT <= 0 || r.TTFT > r.Wall {
			t.Errorf("%+v", r)
		}
		prompt += int64(r.Prompt)
		cached += int64(r.Cached)
		output += int64(r.Output)
	}
	var st server.Status
	_, b = request(t, "GET", url+"/v1/status", "", "X-Api-Key", "o")
	exactly(t, b, &st)
	if len(all.Requests) != 6 || prompt != st.Prompt || output != st.Output || st.Processed != 6 {
		t.Errorf("%d requests of %d and %d tokens, the status has %+v", len(all.Requests), prompt, output, st)
	}
	var h server.History
	_, b = request(t, "GET", url+"/v1/status/history", "", "X-Api-Key", "o")
	exactly(t, b, &h)
	sum := func(lists ...[]int64) (n int64) {
		for _, list := range lists {
			if len(list) != len(h.Columns.Batch) || len(list) != int(h.Now-h.First+1) {
				t.Errorf("%d entries, of batches %d, from %d to %d", len(list), len(h.Columns.Batch), h.First, h.Now)
			}
			for _, x := range list {
				n += x
			}
		}
		return n
	}
	c := &h.Columns
	// Of a request for two answers the second one's prompt comes from the cache.
	if n := sum(c.Requests); n != 9 || n != sum(c.Hits.Exact, c.Hits.Prefix, c.Hits.Supersequence, c.Hits.LCP, c.Hits.Miss) || sum(c.Prompt)+sum(c.Cached) < prompt || sum(c.Cached) < cached ||
		sum(c.Output) < output || sum(c.Running) == 0 || sum(c.State) == 0 || sum(c.Cache) == 0 || sum(c.Waiting) < 0 {
		t.Errorf("the hour is %s", b)
	}
	var later server.History
	_, b = request(t, "GET", url+fmt.Sprintf("/v1/status/history?since=%d", h.Now-1), "", "X-Api-Key", "o")
	if exactly(t, b, &later); later.First != h.Now || len(later.Columns.Prompt) != int(later.Now-later.First+1) {
		t.Errorf("later %s", b)
	}
}

// What a request has behind it is in its trace while it runs.
func TestTraceWhileItRuns(t *testing.T) {
	url := serveDemo(t, func(*config.Config) {})
	var seen atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; !seen.Load(); i++ {
			request(t, "POST", url+"/v1/chat/completions", fmt.Sprintf(`{"max_tokens":500,"messages":[{"role":"user","content":"%d. %s"}]}`, i, strings.Repeat("Tell me a story. ", 40)))
		}
	}()
	for deadline := time.Now().Add(20 * time.Second); !seen.Load(); time.Sleep(time.Millisecond) {
		var all server.Traces
		_, b := request(t, "GET", url+"/v1/requests", "")
		exactly(t, b, &all)
		if len(all.Requests) > 0 && all.Requests[0].State == "generation" {
			seen.Store(true)
			p := all.Requests[0].Phases
			if sum := p.Load + p.Tokenize + p.Queue + p.Match + p.Prefill + p.Decode; p.Load == 0 || p.Tokenize == 0 || p.Match == 0 || p.Prefill == 0 || sum > all.Requests[0].Wall {
				t.Errorf("%s", b)
			}
		}
		if time.Now().After(deadline) {
			seen.Store(true)
			t.Errorf("none runs: %s", b)
		}
	}
	<-ended
}

// The tree shows each key its own part, with the first words of what it has said, and the operator all of it, with nobody's
// words; without keys everybody is one party.
func TestCacheTreeOfKeys(t *testing.T) {
	for _, isolation := range []string{"key", "none", "open"} {
		url := serveDemo(t, func(c *config.Config) {
			if isolation != "open" {
				c.APIKeys, c.OperatorKey, c.CacheIsolation = []string{"a", "b"}, "o", isolation
			}
		})
		for _, key := range []string{"a", "b"} {
			body := fmt.Sprintf(`{"max_tokens":4,"messages":[{"role":"user","content":%q}]}`, key+"lpine "+strings.Repeat("flowers of the hills grow slowly. ", 20))
			if status, b := request(t, "POST", url+"/v1/chat/completions", body, "X-Api-Key", key, "X-Session-Id", "of "+key); status != 200 {
				t.Fatalf("%d %s", status, b)
			}
		}
		get := func(key string, want int) (tree server.Tree, text string) {
			t.Helper()
			status, b := request(t, "GET", url+"/v1/cache/tree?most=50", "", "X-Api-Key", key)
			if status != want {
				t.Errorf("%s, key %s: %d %s", isolation, key, status, b)
			} else if status == http.StatusOK {
				exactly(t, b, &tree)
			}
			return tree, string(b)
		}
		says := func(text string) (all string) {
			for _, word := range []string{"alpine flowers", "blpine flowers"} {
				if strings.Contains(text, word) {
					all += word[:1]
				}
			}
			return all
		}
		all, text := get("o", 200)
		if want := map[string]string{"key": "", "none": "", "open": "ab"}[isolation]; says(text) != want || len(all.Nodes) < 2 || all.PageTokens != 64 {
			t.Errorf("%s: the operator sees %s", isolation, text)
		}
		for _, key := range []string{"a", "b"} {
			switch isolation {
			case "none":
				get(key, 403)
			case "key":
				own, text := get(key, 200)
				if says(text) != key || len(own.Nodes) != 1 || own.Nodes[0].Sessions != 1 || own.Nodes[0].Model == "" || own.Nodes[0].InUse != 0 || len([]rune(own.Nodes[0].Label)) > 80 || strings.Contains(own.Nodes[0].Label, "<|") {
					t.Errorf("key %s sees %s", key, text)
				}
			}
		}
	}
}

// BenchmarkWatch is what the live view asks for each second, of a server with 300 requests behind it and their conversations in
// the cache: time per poll, so that 10 ms are 1 % of a processor.
func BenchmarkWatch(b *testing.B) {
	cfg := config.Default()
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		b.Fatal(err)
	}
	models := catalog.New(src, cfg)
	if err := models.Load(backends()); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = models.Close() }()
	h := newServer(cfg, models, slog.New(slog.DiscardHandler))
	ask := func(method, path, body string) int {
		r, w := httptest.NewRequestWithContext(b.Context(), method, path, strings.NewReader(body)), httptest.NewRecorder()
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		if h.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.Len()
	}
	for i := range 300 {
		ask("POST", "/v1/chat/completions", fmt.Sprintf(`{"max_tokens":2,"messages":[{"role":"user","content":"%s %d"}]}`, strings.Repeat("flowers ", 10+i%7*10), i))
	}
	bytes := 0
	for b.Loop() {
		bytes = ask("GET", "/v1/status", "") + ask("GET", fmt.Sprintf("/v1/status/history?since=%d", time.Now().Unix()-2), "") + ask("GET", "/v1/requests", "") + ask("GET", "/v1/cache/tree", "")
	}
	b.ReportMetric(float64(bytes), "bytes/poll")
}
