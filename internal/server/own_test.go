package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// named are keys called like themselves; those in capitals are an operator's.
func named(names ...string) (all []access.Key) {
	for _, n := range names {
		k := access.PlainKey("key-" + n)
		k.Name, k.Operator = n, n == strings.ToUpper(n)
		all = append(all, k)
	}
	return all
}

// Each caller sees their own requests, totals and part of the cache, and the operator all there is.
func TestOwnStatus(t *testing.T) {
	for _, isolate := range []bool{true, false} {
		f := &figures{status: Status{Status: "running", Model: "m", Steps: 7, Running: 2, Process: &Process{4711, 1}, Cache: Cache{"prefix_tree", 99, 0.5, 99},
			Memory: Memory{Weights: 4711}, Repairs: map[string]int64{"x": 4711}, Encoders: []EncoderStatus{{Model: "e"}}}}
		started, ended := make(chan string), make(chan struct{})
		gen := wiretest.New()
		gen.Script = func(r *chat.Request) ([]wiretest.Step, error) {
			steps := wiretest.Hello(1)
			steps[0].Event.Usage.Hit, steps[len(steps)-1].Event.Usage.Hit = "prefix", "prefix"
			steps[0].Event.Usage.Cached, steps[len(steps)-1].Event.Usage.Cached = 2, 2
			if r.Messages[0].Text() == "wait" {
				steps[1].Before = func(context.Context) { started <- r.Origin.ID; <-ended }
			}
			return steps, nil
		}
		o := options()
		o.Models, o.Monitor, o.Keys, o.Isolation = gen, f, named("alice", "bob", "OP"), "none"
		if isolate {
			o.Isolation = ""
		}
		s := New(o)
		do(s, "POST", "/v1/messages", messages, "X-Api-Key: key-bob")
		do(s, "POST", "/v1/messages", messages, "X-Api-Key: key-alice")
		do(s, "POST", "/v1/messages", messages, "X-Api-Key: key-alice")
		replied := make(chan struct{})
		go func() {
			do(s, "POST", "/v1/messages", strings.Replace(messages, "Hi", "wait", 1), "X-Api-Key: key-alice")
			close(replied)
		}()
		hers := <-started
		f.status.Requests = []RequestStatus{{ID: "req_theirs", Phase: "generation"}, {ID: hers, Phase: "prefill"}}
		get := func(path, who string, into any) string {
			t.Helper()
			w := do(s, "GET", path, "", "Authorization: Bearer key-"+who)
			if err := json.Unmarshal(w.Body.Bytes(), into); err != nil || w.Code != 200 {
				t.Fatalf("%s of %s: %d %s", path, who, w.Code, w.Body)
			}
			return w.Body.String()
		}
		var all Status
		if get("/v1/status", "OP", &all); !all.Operator || len(all.Requests) != 2 || all.Process == nil || all.Steps != 7 || all.Processed != 3 {
			t.Errorf("the operator sees %+v", all)
		}
		var own OwnStatus
		text := get("/v1/status", "alice", &own)
		if own.Status != "running" || own.Operator || len(own.Requests) != 1 || own.Requests[0].ID != hers || own.Running != 1 || own.Processed != 2 || own.Prompt != 6 || own.Cache.HitRate != 1 ||
			(own.Cache.Entries != nil) != isolate || isolate && (*own.Cache.Entries != 21 || *own.Cache.MemoryMB != 22) {
			t.Errorf("isolated %t: alice sees %s", isolate, text)
		}
		for _, other := range []string{":4711", "req_theirs", ":99", "steps", "embedding"} {
			if strings.Contains(text, other) {
				t.Errorf("alice sees %q in %s", other, text)
			}
		}
		own = OwnStatus{}
		if text = get("/v1/status", "bob", &own); own.Status != "running" || len(own.Requests) != 0 || own.Running+own.Waiting != 0 || own.Processed != 1 || own.Prompt != 3 ||
			strings.Contains(text, hers) {
			t.Errorf("isolated %t: bob sees %s", isolate, text)
		}
		close(ended)
		<-replied
		want := `{"type":"prefix_tree","isolation":"key","entries":21,"bytes":22000000,"ttl_ms":8,"queries":3,"hits":3,"hit_rate":1,"tokens_saved":6,"disk":{"entries":23,"bytes":24}}` + "\n"
		if !isolate {
			want = `{"type":"prefix_tree","isolation":"none","ttl_ms":8,"queries":3,"hits":3,"hit_rate":1,"tokens_saved":6}` + "\n"
		}
		if got := get("/v1/cache/stats", "alice", &OwnCacheStats{}); got != want {
			t.Errorf("isolated %t: %s, want %s", isolate, got, want)
		}
		if got := get("/v1/cache/stats", "OP", &CacheStats{}); !strings.Contains(got, `"sessions":2`) {
			t.Errorf("the operator sees %s", got)
		}
	}
}

// Who is not the operator clears their own part, or, where there is none, nothing.
func TestOwnClear(t *testing.T) {
	f := &figures{}
	o := options()
	o.Monitor, o.Keys, o.Isolation = f, named("alice", "bob", "OP"), "key"
	s := New(o)
	for _, who := range []string{"alice", "bob", "alice"} {
		if w := do(s, "DELETE", "/v1/cache", "", "X-Api-Key: key-"+who); w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"dropped_entries":21,`) {
			t.Errorf("%s: %d %s", who, w.Code, w.Body)
		}
	}
	if len(f.salts) != 3 || f.salts[0] != f.salts[2] || f.salts[0] == f.salts[1] || f.salts[0] == ([16]byte{}) || f.cleared != 0 {
		t.Errorf("cleared under %x, all %d times", f.salts, f.cleared)
	}
	if w := do(s, "DELETE", "/v1/cache", "", "X-Api-Key: key-OP"); w.Code != 200 || f.cleared != 1 {
		t.Errorf("the operator: %d %s", w.Code, w.Body)
	}
	o.Isolation = "none"
	s = New(o)
	for header, want := range map[string]string{"X-None: x": open + "all keys share the prompt cache", "Anthropic-Version: 2023-06-01": anthro + "permission_error"} {
		if w := do(s, "DELETE", "/v1/cache", "", "X-Api-Key: key-bob", header); w.Code != 403 || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%s: %d %s", header, w.Code, w.Body)
		}
	}
	if w := do(s, "DELETE", "/v1/cache", "", "X-Api-Key: key-OP"); w.Code != 200 || f.cleared != 2 || len(f.salts) != 3 {
		t.Errorf("the operator of a shared cache: %d %s", w.Code, w.Body)
	}
}

// Pages of others learn from /health that the server is there, where there is a key; who asks without a page learns what they
// did.
func TestHealthOrigins(t *testing.T) {
	const alone = `{"status":"ok"}` + "\n"
	for _, tc := range []struct {
		keys   []access.Key
		origin string
		alone  bool
	}{
		{plain("k"), "", false}, {plain("k"), "http://localhost:8080", false}, {plain("k"), "HTTPS://LOCALHOST:8080", false},
		{plain("k"), "http://localhost:3000", true}, {plain("k"), "https://evil.com", true}, {plain("k"), "null", true}, {plain("k"), "localhost:8080", true},
		{plain("k", "l"), "https://evil.com", true}, {nil, "http://localhost:3000", false},
	} {
		o := options()
		o.Keys = tc.keys
		for _, key := range []string{"", "k"} {
			w := do(New(o), "GET", "/health", "", "Origin: "+tc.origin, "X-Api-Key: "+key)
			if w.Code != 200 || (w.Body.String() == alone) != tc.alone || !tc.alone && !strings.Contains(w.Body.String(), `"version":"1.2.3"`) {
				t.Errorf("%d keys, origin %q: %d %s", len(tc.keys), tc.origin, w.Code, w.Body)
			}
		}
	}
}

// A model that is stuck is no model to send requests to, and a probe sees that without reading.
func TestHealthStuck(t *testing.T) {
	o := options()
	o.Keys, o.Health = plain("k"), func() Health { return Health{Status: Stuck} }
	for _, origin := range []string{"", "https://evil.com"} {
		if w := do(New(o), "GET", "/health", "", "Origin: "+origin); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"status":"stuck"`) {
			t.Errorf("origin %q: %d %s", origin, w.Code, w.Body)
		}
	}
}

// The log names whose key it was, and never the key.
func TestKeyNames(t *testing.T) {
	var logged strings.Builder
	o := options()
	o.Keys = append(named("alice", "OP"), plain("key-plain")...)
	o.Log = slog.New(slog.NewTextHandler(&logged, nil))
	s := New(o)
	for who, want := range map[string]string{"key-alice": " key=alice ", "key-OP": " key=OP ", "key-plain": "", "key-wrong": ""} {
		logged.Reset()
		do(s, "POST", "/v1/messages", messages, "X-Api-Key: "+who)
		if got := logged.String(); want != "" && !strings.Contains(got, want) || want == "" && strings.Contains(got, " key=") || strings.Contains(got, "key-") {
			t.Errorf("%s: logged %s", who, got)
		}
	}
}

// Nobody makes long lines in the log, or gets long ones for an answer.
func TestLogLine(t *testing.T) {
	var logged strings.Builder
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&logged, nil))
	s := New(o)
	long := strings.Repeat("x", 1<<20)
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/" + long, ""}, {"GET", "/v1/models/" + long, ""}, {"POST", "/v1/models/" + long, "{}"}, {long, "/v1/messages", ""}, {long, "/" + long, ""},
		{"POST", "/v1/messages", strings.Replace(messages, "{", `{"model":"`+long+`",`, 1)},
	} {
		logged.Reset()
		w := do(s, r.method, r.path, r.body)
		if n := logged.Len(); n == 0 || n > 20<<10 {
			t.Errorf("%.20s %.20s: a line of %d bytes", r.method, r.path, n)
		}
		if r.body == "" && !strings.HasPrefix(r.path, "/v1/models/") && w.Body.Len() > 2<<10 {
			t.Errorf("%.20s %.20s: an answer of %d bytes", r.method, r.path, w.Body.Len())
		}
	}
}
