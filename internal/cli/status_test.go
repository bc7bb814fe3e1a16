package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/engine"
	"hearth/internal/hub"
	"hearth/internal/kv"
	"hearth/internal/server"
)

// serveDemo serves the demo model in this process.
func serveDemo(t *testing.T, change func(*config.Config)) (url string) {
	t.Helper()
	cfg := config.Default()
	change(cfg)
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	return serveSource(t, src, cfg)
}

// serveSource serves a model in this process.
func serveSource(t *testing.T, src *catalog.Source, cfg *config.Config) (url string) {
	t.Helper()
	return serveOn(t, src, cfg, backends())
}

func serveOn(t *testing.T, src *catalog.Source, cfg *config.Config, bs catalog.Backends) (url string) {
	t.Helper()
	models := catalog.New(src, cfg)
	if err := models.Load(bs); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(newServer(cfg, models, slog.New(slog.DiscardHandler)))
	t.Cleanup(func() {
		srv.Close()
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv.URL
}

// exactly decodes a body that must have no other fields.
func exactly(t *testing.T, body []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Errorf("%v: %s", err, body)
	}
}

// Two keys talk at the same time, in the same words, while others look at the state and clear the cache. Neither learns
// from headers or counts that the other was there, and both get the same answers.
func TestTwoKeys(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) { c.APIKeys, c.OperatorKey, c.CacheMemoryMB = []string{"a", "b"}, "o", 64 })
	long := strings.Repeat("Count the sheep on the green hill. ", 30)
	body := func(turn int) string {
		return fmt.Sprintf(`{"max_tokens":12,"temperature":0,"system":%q,"messages":[{"role":"user","content":"turn %d"}]}`, long, turn)
	}
	post := func(key string, turn int) (cache, text string) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/messages", strings.NewReader(body(turn)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Api-Key", key)
		r.Header.Set("X-Session-Id", "same")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return "", ""
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		var m struct{ Content json.RawMessage }
		if err != nil || res.StatusCode != 200 || json.Unmarshal(b, &m) != nil {
			t.Errorf("%d %v %s", res.StatusCode, err, b)
		}
		return res.Header.Get("X-Hearth-Cache"), string(m.Content)
	}
	answers := map[string][]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, key := range []string{"a", "b"} {
		wg.Go(func() {
			for turn := range 4 {
				cache, text := post(key, turn)
				if turn == 0 && (!strings.HasPrefix(cache, "miss; cached=0;") || !strings.Contains(cache, "; common=0")) {
					t.Errorf("the first request of key %s: %q", key, cache)
				}
				mu.Lock()
				answers[key] = append(answers[key], text)
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-done:
				return
			default:
			}
			_, b := request(t, "GET", url+"/v1/status", "", "X-Api-Key", "b")
			exactly(t, b, &server.OwnStatus{})
			_, b = request(t, "GET", url+"/v1/cache/stats", "", "X-Api-Key", "b")
			exactly(t, b, &server.OwnCacheStats{})
			_, b = request(t, "GET", url+"/v1/status", "", "X-Api-Key", "o")
			exactly(t, b, &server.Status{})
			_, b = request(t, "DELETE", url+"/v1/cache", "", "X-Api-Key", "o")
			exactly(t, b, &server.Cleared{})
			_, b = request(t, "DELETE", url+"/v1/cache", "", "X-Api-Key", "a")
			exactly(t, b, &server.Cleared{})
		}
	}()
	wg.Wait()
	close(done)
	<-watched
	if d := cmp.Diff(answers["a"], answers["b"]); d != "" || len(answers["a"]) != 4 {
		t.Errorf("the same words, other answers:\n%s", d)
	}
	// Alone with the server, each key finds its own.
	for _, key := range []string{"a", "b"} {
		post(key, 9)
		if cache, _ := post(key, 9); !strings.HasPrefix(cache, "supersequence; ") {
			t.Errorf("key %s again: %q", key, cache)
		}
	}
	own := func(key string) (stats server.OwnCacheStats) {
		t.Helper()
		_, b := request(t, "GET", url+"/v1/cache/stats", "", "X-Api-Key", key)
		exactly(t, b, &stats)
		if stats.Isolation != "key" || stats.Entries == nil || stats.Queries != 6 || stats.Hits < 1 || stats.TokensSaved < 64 {
			t.Errorf("key %s: %s", key, b)
		}
		return stats
	}
	a, b := own("a"), own("b")
	var stats server.CacheStats
	_, text := request(t, "GET", url+"/v1/cache/stats", "", "X-Api-Key", "o")
	exactly(t, text, &stats)
	if stats.Isolation != "key" || stats.Sessions != 2 || stats.Entries != *a.Entries+*b.Entries || stats.Bytes != *a.Bytes+*b.Bytes || *a.Bytes == 0 || *b.Bytes == 0 ||
		stats.Idle != stats.Bytes || stats.Budget != 64<<20 {
		t.Errorf("%+v, of them %s", stats, text)
	}
	// One key's part goes without the other's, and what is left with the operator.
	var cleared server.Cleared
	_, text = request(t, "DELETE", url+"/v1/cache", "", "X-Api-Key", "a")
	exactly(t, text, &cleared)
	if cleared.Entries != *a.Entries || cleared.Bytes != *a.Bytes || *own("a").Entries != 0 || *own("b").Entries != *b.Entries {
		t.Errorf("cleared %+v of %+v", cleared, a)
	}
	if cache, _ := post("b", 9); !strings.HasPrefix(cache, "supersequence; ") {
		t.Errorf("key b after key a has cleared: %q", cache)
	}
	_, text = request(t, "DELETE", url+"/v1/cache", "", "X-Api-Key", "o")
	exactly(t, text, &cleared)
	if cleared.Entries != *b.Entries || cleared.Bytes != *b.Bytes {
		t.Errorf("cleared %+v of %+v", cleared, b)
	}
}

// A prompt that does not fit is refused before any work, in the words that clients of each protocol look for.
func TestTooLong(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) { c.ContextLength = 512 })
	steps := func() int64 {
		var st server.Status
		_, b := request(t, "GET", url+"/v1/status", "")
		exactly(t, b, &st)
		if st.Status != "running" || len(st.Requests) != 0 {
			t.Errorf("%+v", st)
		}
		return st.Steps
	}
	before := steps()
	for _, stream := range []string{"true", "false"} {
		for _, tc := range []struct {
			path, want string
			words      int
		}{
			{"/v1/messages", " tokens > 511 maximum", 2000},
			{"/v1/chat/completions", "This model's maximum context length is 511 tokens. However, ", 2000},
		} {
			body := fmt.Sprintf(`{"stream":%s,"max_tokens":500,"messages":[{"role":"user","content":%q}]}`, stream, strings.Repeat("a ", tc.words))
			if status, got := request(t, "POST", url+tc.path, body); status != 400 || !strings.Contains(string(got), tc.want) {
				t.Errorf("%s of %d words: %d %.300s, want %q", tc.path, tc.words, status, got, tc.want)
			}
		}
	}
	if after := steps(); after != before {
		t.Errorf("%d steps ran", after-before)
	}
}

// A budget that does not hold one sequence is an error at the start, with the numbers.
func TestSmallBudget(t *testing.T) {
	cfg := config.Default()
	cfg.CacheMemoryMB, cfg.ContextLength = 1, 8192
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	models := catalog.New(src, cfg)
	err = models.Load(backends())
	if err == nil || !strings.Contains(err.Error(), "1048576 bytes are less than the ") || !strings.Contains(err.Error(), "one sequence of 8192 tokens needs") {
		t.Errorf("load: %v", err)
	}
	if err := models.Close(); err != nil {
		t.Error(err)
	}
}

// The lines of a request fold its choices; every phase has what can be known in it.
func TestRequests(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(s float64) time.Time { return at.Add(time.Duration(s * float64(time.Second))) }
	live := []catalog.Live{
		{Model: "m", Live: engine.Live{Request: "one", Max: 100, Usage: engine.Usage{Prompt: 40, Cached: 30, Hit: kv.Within, Ran: 40, Submitted: at, Started: after(1), First: after(2), Generated: 21}}},
		{Model: "m", Live: engine.Live{Request: "one", Max: 100, Usage: engine.Usage{Prompt: 40, Cached: 39, Ran: 40, Submitted: at, Started: after(2), First: after(3), Generated: 11}}},
		{Model: "m", Live: engine.Live{Request: "two", Max: 50, Usage: engine.Usage{Prompt: 400, Ran: 100, Submitted: after(2), Started: after(3)}}},
		{Model: "n", Live: engine.Live{Request: "three", Max: 60, Usage: engine.Usage{Prompt: 10, Submitted: at}}},
	}
	want := []server.RequestStatus{
		{ID: "one", Model: "m", Age: 12, Prompt: 40, Phase: "generation", TokensPerSec: 20./10 + 10./9, TTFT: 2, Progress: 0.21, HitType: "prefix", Cached: 30, Generated: 32, MaxTokens: 100},
		{ID: "two", Model: "m", Age: 10, Prompt: 400, Phase: "prefill", Progress: 0.25, HitType: "miss", MaxTokens: 50},
		{ID: "three", Model: "n", Age: 12, Prompt: 10, Phase: "queued", MaxTokens: 60},
	}
	if d := cmp.Diff(want, requests(live, after(12))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// What one key left on disk helps that key after a restart and tells another nothing; clearing the part of a key clears it on
// disk, too, and no more.
func TestKeysOnDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	dir := t.TempDir()
	body := fmt.Sprintf(`{"max_tokens":4,"temperature":0,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("Count the sheep on the green hill. ", 30))
	run := func(f func(p *process)) {
		t.Helper()
		p := start(t, nil, "--api-key", "a,b", "--prefix-cache-dir", dir)
		f(p)
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, p.stderr)
		}
		if !strings.Contains("\n"+p.stderr.String(), "\n[config] version=") {
			t.Errorf("no [config] line:\n%s", p.stderr)
		}
	}
	cached := func(p *process, key string) int {
		t.Helper()
		status, b := request(t, "POST", p.url+"/v1/messages", body, "X-Api-Key", key)
		var m struct {
			Usage struct {
				Read int `json:"cache_read_input_tokens"`
			}
		}
		if err := json.Unmarshal(b, &m); err != nil || status != 200 {
			t.Errorf("%d %v %s", status, err, b)
		}
		return m.Usage.Read
	}
	tree := func(p *process, key string) (tree server.Tree) {
		t.Helper()
		status, b := request(t, "GET", p.url+"/v1/cache/tree", "", "X-Api-Key", key)
		if exactly(t, b, &tree); status != 200 {
			t.Errorf("%d %s", status, b)
		}
		return tree
	}
	var cleared server.Cleared
	run(func(p *process) { cached(p, "a") })
	run(func(p *process) {
		own, others := tree(p, "a"), tree(p, "b")
		if len(own.Nodes) != 1 || len(others.Nodes) != 0 || own.Nodes[0].InMemory || own.Nodes[0].OnDisk != own.Nodes[0].Tokens || own.Nodes[0].DiskBytes == 0 || !strings.Contains(own.Nodes[0].Label, "Count the sheep") {
			t.Errorf("key a sees %+v of its own, key b %+v", own, others)
		}
		if n := cached(p, "b"); n != 0 {
			t.Errorf("key b finds %d tokens of key a", n)
		}
		if n := cached(p, "a"); n < 64 {
			t.Errorf("key a finds %d tokens of its own", n)
		}
		_, b := request(t, "DELETE", p.url+"/v1/cache", "", "X-Api-Key", "a")
		exactly(t, b, &cleared)
		if cleared.DiskEntries == 0 || cleared.DiskBytes == 0 || cleared.Entries != 1 {
			t.Errorf("cleared %+v", cleared)
		}
		if own, others := tree(p, "a"), tree(p, "b"); len(own.Nodes) != 0 || len(others.Nodes) == 0 || !others.Nodes[0].InMemory {
			t.Errorf("after clearing, key a sees %+v, key b %+v", own, others)
		}
	})
	run(func(p *process) {
		if n := cached(p, "a"); n != 0 {
			t.Errorf("after clearing, key a finds %d tokens", n)
		}
		if n := cached(p, "b"); n < 64 {
			t.Errorf("after clearing by key a, key b finds %d tokens", n)
		}
	})
}

// With a small model beside the main one, figures are of both and clearing clears both.
func TestStatusOfTwo(t *testing.T) {
	cfg := config.Default()
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	both := catalog.New(src, cfg)
	both.AddSmall(src)
	if err := both.Load(backends()); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(newServer(cfg, both, slog.New(slog.DiscardHandler)))
	defer func() {
		srv.Close()
		if err := both.Close(); err != nil {
			t.Error(err)
		}
	}()
	say := strings.Repeat("Count the sheep on the green hill. ", 30)
	for _, model := range []string{"demo", "claude-haiku"} {
		body := fmt.Sprintf(`{"model":%q,"max_tokens":4,"temperature":0,"messages":[{"role":"user","content":%q}]}`, model, say)
		if status, b := request(t, "POST", srv.URL+"/v1/messages", body); status != 200 {
			t.Fatalf("%d %s", status, b)
		}
	}
	var st server.Status
	_, b := request(t, "GET", srv.URL+"/v1/status", "")
	exactly(t, b, &st)
	main := both.Main()
	s := main.Stats()
	if st.Cache.Entries != 2 || s.Cache.Entries != 1 || st.Steps < 2*s.Steps || st.Memory.Weights != 2*main.Weights().Model.Bytes || st.Processed != 2 {
		t.Errorf("%s", b)
	}
	var cleared server.Cleared
	_, b = request(t, "DELETE", srv.URL+"/v1/cache", "")
	exactly(t, b, &cleared)
	if cleared.Entries != 2 || both.Stats().Cache.Entries != 0 {
		t.Errorf("%s", b)
	}
}
