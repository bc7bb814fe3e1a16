package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// figures is a monitor that says what it is told.
type figures struct {
	status  Status
	history History
	live    []Trace
	tree    Tree
	asked   []TreeQuery
	cleared int
	salts   [][16]byte // cleared
	err     error
}

func (f *figures) Status() Status        { return f.status }
func (f *figures) Live() []Trace         { return f.live }
func (f *figures) History(int64) History { return f.history }
func (f *figures) Tree(_ context.Context, q TreeQuery) (Tree, error) {
	f.asked = append(f.asked, q)
	return f.tree, f.err
}
func (f *figures) Progress() Progress { return Progress{} }
func (f *figures) CacheStats() CacheStats {
	return CacheStats{Type: "prefix_tree", Isolation: "key", Entries: 1, Sessions: 2, MaxSessions: 3, Bytes: 4, Idle: 5, MaxIdle: 6, Budget: 7,
		TTL: 8, Queries: 10, Hits: 9, HitRate: 0.9, TokensSaved: 11, Disk: &DiskStats{"/d", 1, 2, 3, 4, 5, 6, 7, 8, 9}}
}

func (f *figures) Stored(salt [16]byte) Stored {
	if salt == ([16]byte{}) {
		return Stored{}
	}
	return Stored{Entries: 21, Bytes: 22e6, DiskEntries: 23, DiskBytes: 24}
}

func (f *figures) ClearStored(_ context.Context, salt [16]byte) (Cleared, error) {
	f.salts = append(f.salts, salt)
	return Cleared{Entries: 21, Bytes: 22, DiskEntries: 23, DiskBytes: 24}, f.err
}

func (f *figures) ClearCache(context.Context) (Cleared, error) {
	f.cleared++
	return Cleared{Entries: 1, Bytes: 2, DiskEntries: 3, DiskBytes: 4}, f.err
}

// The fields of the status pages, all of them and in this order: scripts read them.
func TestStatus(t *testing.T) {
	f := &figures{status: Status{Status: "running", Model: "m", Steps: 1, Running: 2, Waiting: 3,
		Metal: Metal{1.5, 2.5, 3.5}, Memory: Memory{1, 2, 3, 4, 5, 6}, Cache: Cache{"prefix_tree", 1, 0.5, 2.5},
		Requests: []RequestStatus{{"req_1", "m", "", 1.5, "generation", 12.5, 0.25, 0.75, "prefix", 110, 100, 30, 40}}}}
	o := options()
	o.Monitor = f
	s := New(o)
	s.began = time.Now().Add(-90 * time.Second)
	do(s, "POST", "/v1/messages", messages)
	do(s, "POST", "/v1/messages", messages)
	do(s, "POST", "/v1/messages", "{") // reaches no model
	const rest = `,"model":"m","uptime_s":90,"operator":true,"steps_executed":1,"num_running":2,"num_waiting":3,"total_requests_processed":2,` +
		`"total_prompt_tokens":6,"total_completion_tokens":2,"metal":{"active_memory_gb":1.5,"peak_memory_gb":2.5,"cache_memory_gb":3.5},` +
		`"memory":{"weights_bytes":1,"state_bytes":2,"cache_bytes":3,"budget_bytes":4,"resident_bytes":5,"peak_resident_bytes":6},` +
		`"cache":{"type":"prefix_tree","entries":1,"hit_rate":0.5,"memory_mb":2.5},`
	status := func(want string) {
		t.Helper()
		for _, path := range []string{"/v1/status", "/status"} {
			if w := do(s, "GET", path, ""); w.Code != 200 || w.Body.String() != want+"\n" {
				t.Errorf("%s: %d %s\nwant %s", path, w.Code, w.Body, want)
			}
		}
	}
	status(`{"status":"running"` + rest + `"requests":[{"request_id":"req_1","model":"m","session":"","age_s":1.5,"phase":"generation","tokens_per_second":12.5,"ttft_s":0.25,` +
		`"progress":0.75,"cache_hit_type":"prefix","prompt_tokens":110,"cached_tokens":100,"generated_tokens":30,"max_tokens":40}]}`)
	f.status.Requests = nil
	close(s.draining)
	status(`{"status":"draining"` + rest + `"requests":[]}`)

	const stats = `{"type":"prefix_tree","isolation":"none","entries":1,"sessions":2,"max_sessions":3,"bytes":4,"idle_bytes":5,"max_idle_bytes":6,` +
		`"budget_bytes":7,"ttl_ms":8,"queries":10,"hits":9,"hit_rate":0.9,"tokens_saved":11,` +
		`"disk":{"dir":"/d","entries":1,"bytes":2,"max_bytes":3,"hits":4,"tokens_saved":5,"writes":6,"refused":7,"dropped":8,"errors":9}}` + "\n"
	if w := do(s, "GET", "/v1/cache/stats", ""); w.Code != 200 || w.Body.String() != stats {
		t.Errorf("cache: %d %s", w.Code, w.Body)
	}
	const cleared = `{"dropped_entries":1,"dropped_bytes":2,"dropped_disk_entries":3,"dropped_disk_bytes":4}` + "\n"
	if w := do(s, "DELETE", "/v1/cache", ""); w.Code != 200 || w.Body.String() != cleared || f.cleared != 1 {
		t.Errorf("clearing: %d %s", w.Code, w.Body)
	}
	for _, c := range []struct{ method, path string }{{"POST", "/v1/status"}, {"GET", "/v1/cache"}, {"DELETE", "/v1/cache/stats"}} {
		if w := do(s, c.method, c.path, "{}"); w.Code != 405 {
			t.Errorf("%s %s: %d", c.method, c.path, w.Code)
		}
	}
	f.err = errors.New("no engine")
	if w := do(s, "DELETE", "/v1/cache", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "no engine") {
		t.Errorf("clearing fails: %d %s", w.Code, w.Body)
	}
	f.err = &chat.Error{Kind: chat.Invalid, Msg: "no"}
	if w := do(s, "DELETE", "/v1/cache", ""); w.Code != 400 {
		t.Errorf("clearing is refused: %d %s", w.Code, w.Body)
	}
}

// Where there is a key, status and cache want it; the cache is not cleared by who has none.
func TestStatusKeys(t *testing.T) {
	f := &figures{}
	o := options()
	o.Monitor, o.Keys = f, plain("k")
	s := New(o)
	for _, c := range []struct{ method, path string }{{"GET", "/v1/status"}, {"GET", "/cache/stats"}, {"DELETE", "/v1/cache"}} {
		for _, key := range []string{"", "wrong", "k"} {
			want := 401
			if key == "k" {
				want = 200
			}
			if w := do(s, c.method, c.path, "", "X-Api-Key: "+key); w.Code != want {
				t.Errorf("%s %s with key %q: %d", c.method, c.path, key, w.Code)
			}
		}
	}
	if f.cleared != 1 {
		t.Errorf("cleared %d times", f.cleared)
	}
}

// Who asks reaches the generator: a caller where there are several, and a salt where they are to be kept apart.
func TestCallers(t *testing.T) {
	var got chat.Origin
	gen := wiretest.New(wiretest.Hello(1)...)
	gen.Got = func(r *chat.Request) { got = r.Origin }
	ask := func(isolation access.Isolation, keys []string, key string) chat.Origin {
		t.Helper()
		o := options()
		o.Models, o.Keys, o.Isolation = gen, plain(keys...), isolation
		if w := do(New(o), "POST", "/v1/messages", messages, "X-Api-Key: "+key, "X-Hearth-Priority: background", "X-Session-Id: s"); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if !strings.HasPrefix(got.ID, "req_") || got.Session != "s" || !got.Background {
			t.Errorf("%+v", got)
		}
		return got
	}
	none := [16]byte{}
	if o := ask("none", nil, "x"); o.Caller != none || o.Salt != none {
		t.Errorf("without keys: %+v", o)
	}
	if o := ask("none", []string{"a"}, "a"); o.Caller != none || o.Salt != none {
		t.Errorf("one key: %+v", o)
	}
	if o := ask("key", []string{"a"}, "a"); o.Caller != none || o.Salt == none {
		t.Errorf("one key apart: %+v", o)
	}
	if o := ask("none", []string{"a", "b"}, "a"); o.Caller == none || o.Salt != none {
		t.Errorf("two keys: %+v", o)
	}
	a, b := ask("key", []string{"a", "b"}, "a"), ask("key", []string{"a", "b"}, "b")
	if a.Salt == none || a.Salt != a.Caller || a.Salt == b.Salt || a.Party() == b.Party() {
		t.Errorf("two keys apart: %+v %+v", a, b)
	}
	if again := ask("key", []string{"b", "a"}, "a"); again.Salt != a.Salt {
		t.Error("a salt depends on the order of the keys")
	}
}

// What is too much now is refused in each protocol's words, with a time to come back, before a stream begins.
func TestBusy(t *testing.T) {
	gen := wiretest.New()
	o := options()
	o.Models = gen
	s := New(o)
	reply := func(path, body string) (*httptest.ResponseRecorder, string, string) {
		w := do(s, "POST", path, body)
		var e struct {
			Error struct{ Type, Code, Message string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || !bytes.HasPrefix(w.Body.Bytes(), []byte("{")) {
			t.Fatalf("%s: %v: %s", path, err, w.Body)
		}
		return w, e.Error.Type, e.Error.Code
	}
	for _, tc := range []struct {
		kind       chat.ErrorKind
		path       string
		status     int
		kindOf, as string
	}{
		{chat.Overloaded, "/v1/messages", 529, "overloaded_error", ""},
		{chat.RateLimited, "/v1/messages", 429, "rate_limit_error", ""},
		{chat.Overloaded, "/v1/chat/completions", 503, "server_error", "server_overloaded"},
		{chat.RateLimited, "/v1/chat/completions", 429, "rate_limit_error", "rate_limit_exceeded"},
	} {
		gen.Script = func(*chat.Request) ([]wiretest.Step, error) {
			return nil, &chat.Error{Kind: tc.kind, Msg: "busy", RetryAfter: 1500 * time.Millisecond}
		}
		for _, body := range []string{messages, messages[:len(messages)-1] + `,"stream":true}`} {
			w, kind, code := reply(tc.path, body)
			if w.Code != tc.status || kind != tc.kindOf || code != tc.as || w.Header().Get("Retry-After") != "2" || w.Header().Get("Retry-After-Ms") != "1500" {
				t.Errorf("%s: %d %s %s, headers %v, want %d %s", tc.path, w.Code, kind, code, w.Header(), tc.status, tc.kindOf)
			}
		}
	}
}
