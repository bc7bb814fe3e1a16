package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// 32 clients that race get as many requests as may be, to the request, and the rest are told so in the words of their protocol,
// with the knob's name and when to come back. What makes no model work is not counted.
func TestRateLimit(t *testing.T) {
	const limit = 50
	o := options()
	o.Limits.PerMinute = limit
	s := New(o)
	now := time.Unix(1e9, 0)
	s.rate = access.NewRate(func() time.Time { return now })
	for _, r := range [][2]string{{"GET", "/health"}, {"GET", "/v1/models"}, {"POST", "/v1/messages/count_tokens"}, {"GET", "/v1/messages"}, {"OPTIONS", "/v1/messages"}} {
		for range limit {
			if w := do(s, r[0], r[1], messages); w.Code == 429 || w.Header().Get("X-Ratelimit-Limit-Requests")+w.Header().Get("Anthropic-Ratelimit-Requests-Limit") != "" {
				t.Fatalf("%v is counted: %d %v", r, w.Code, w.Header())
			}
		}
	}
	paths := []string{"/v1/messages", "/v1/chat/completions", "/openai/deployments/test-model/chat/completions?api-version=1"}
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range 4 {
				w := do(s, "POST", paths[i%len(paths)], messages)
				switch w.Code {
				case 200:
					passed.Add(1)
				case 429:
					refused.Add(1)
				default:
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != limit || refused.Load() != 32*4-limit {
		t.Errorf("%d passed, %d were refused; the limit is %d", passed.Load(), refused.Load(), limit)
	}
	const says = `50 requests a minute are as many as this address may send (the server's flag --rate-limit); the next one in 2 s`
	for _, tc := range []struct {
		path, want string
		headers    map[string]string
	}{
		{"/v1/messages", anthro + `rate_limit_error","message":"` + says + `"}`, map[string]string{"Anthropic-Ratelimit-Requests-Limit": "50", "Anthropic-Ratelimit-Requests-Remaining": "0"}},
		{"/v1/chat/completions", open + says + `","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}`,
			map[string]string{"X-Ratelimit-Limit-Requests": "50", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1m0s"}},
	} {
		w := do(s, "POST", tc.path, messages)
		tc.headers["Retry-After"], tc.headers["Retry-After-Ms"] = "2", "1200"
		for name, want := range tc.headers {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", tc.path, name, got, want)
			}
		}
		if w.Code != 429 || !strings.HasPrefix(w.Body.String(), tc.want) || w.Header().Get("X-Should-Retry") != "" {
			t.Errorf("%s: %d %s", tc.path, w.Code, w.Body)
		}
	}
	if at, err := time.Parse(time.RFC3339, do(s, "POST", "/v1/messages", messages).Header().Get("Anthropic-Ratelimit-Requests-Reset")); err != nil || time.Until(at) < 50*time.Second {
		t.Errorf("reset at %v, %v", at, err)
	}
	now = now.Add(1200*time.Millisecond - 1)
	if w := do(s, "POST", "/v1/messages", messages); w.Code != 429 || w.Header().Get("Retry-After-Ms") != "1" {
		t.Errorf("a nanosecond early: %d %v", w.Code, w.Header())
	}
	now = now.Add(1)
	if w := do(s, "POST", "/v1/messages", messages); w.Code != 200 || w.Header().Get("Anthropic-Ratelimit-Requests-Remaining") != "0" {
		t.Errorf("in time: %d %v", w.Code, w.Header())
	}
}

// Several keys have a bucket each, and one that has limits of its own has those.
func TestRateLimitOfKeys(t *testing.T) {
	o := options()
	o.Keys, o.Limits.PerMinute = named("alice", "bob", "carol"), 2
	o.Keys[2].PerMinute = 3
	s := New(o)
	for name, limit := range map[string]int{"alice": 2, "bob": 2, "carol": 3} {
		for i := range limit + 1 {
			w := do(s, "POST", "/v1/messages", messages, "X-Api-Key: key-"+name)
			if (w.Code == 200) != (i < limit) {
				t.Errorf("%s, request %d: %d %s", name, i, w.Code, w.Body)
			}
			if i == limit && (!strings.Contains(w.Body.String(), "the key "+name) || strings.Contains(w.Body.String(), "rate-limit of the key") != (name == "carol")) {
				t.Errorf("%s: %s", name, w.Body)
			}
		}
	}
	if w := do(s, "POST", "/v1/messages", messages, "X-Api-Key: wrong"); w.Code != 401 {
		t.Errorf("a wrong key: %d", w.Code)
	}
}

// Without keys, or with one for all, clients are addresses, and those behind a trusted proxy are its clients.
func TestRateLimitOfAddresses(t *testing.T) {
	o := options()
	o.Keys, o.Limits.PerMinute = plain("k"), 1
	o.Proxies.Networks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	s := New(o)
	ask := func(peer, forwarded string) int {
		r := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(messages))
		r.RemoteAddr, r.Host = peer, "localhost"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Api-Key", "k")
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	for i, tc := range []struct {
		peer, forwarded string
		want            int
	}{
		{"192.0.2.1:1", "", 200}, {"192.0.2.1:2", "", 429}, {"192.0.2.1:3", "192.0.2.9", 429}, // it is believed nothing
		{"10.0.0.1:1", "192.0.2.2", 200}, {"10.0.0.2:1", "1.2.3.4, 192.0.2.2", 429}, {"10.0.0.2:1", "192.0.2.3, 10.1.1.1", 200},
		{"10.0.0.9:1", "", 200}, {"10.0.0.9:1", "nonsense", 429},
	} {
		if got := ask(tc.peer, tc.forwarded); got != tc.want {
			t.Errorf("%d: %s %q: %d, want %d", i, tc.peer, tc.forwarded, got, tc.want)
		}
	}
}

// Whom a proxy asks for is the last address that is no proxy's, in either header.
func TestForwarded(t *testing.T) {
	p := proxies(config.Proxies{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Unix: true})
	for i, tc := range []struct {
		peer, name, value, want string
	}{
		{"10.0.0.1:1", "X-Forwarded-For", "1.1.1.1, 2.2.2.2", "2.2.2.2"},
		{"10.0.0.1:1", "X-Forwarded-For", "1.1.1.1, 10.0.0.3,10.0.0.2", "1.1.1.1"},
		{"10.0.0.1:1", "X-Forwarded-For", "10.0.0.4", "10.0.0.4"},
		{"10.0.0.1:1", "X-Forwarded-For", "1.1.1.1, unknown", "10.0.0.1"},
		{"10.0.0.1:1", "X-Forwarded-For", "1.1.1.1, [2001:db8::1]:99", "2001:db8::1"},
		{"10.0.0.1:1", "X-Forwarded-For", strings.Repeat("1", mostForwarded) + ", 3.3.3.3", "3.3.3.3"},
		{"10.0.0.1:1", "X-Forwarded-For", "3.3.3.3" + strings.Repeat(" ", mostForwarded), "10.0.0.1"},
		{"10.0.0.1:1", "Forwarded", `for=1.1.1.1, For="[2001:db8::2]:5";proto=https`, "2001:db8::2"},
		{"10.0.0.1:1", "Forwarded", `for=1.1.1.1;by=2.2.2.2, proto=https`, "10.0.0.1"},
		{"9.9.9.9:1", "Forwarded", "for=1.1.1.1", "9.9.9.9"},
		{"@", "X-Forwarded-For", "1.1.1.1", "1.1.1.1"},
		{"@", "X-Other", "", "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: tc.peer, Header: http.Header{tc.name: {tc.value}}}
		if got := p.client(r).String(); got != tc.want {
			t.Errorf("%d: %s, want %s", i, got, tc.want)
		}
	}
}

func FuzzForwarded(f *testing.F) {
	f.Add("10.0.0.1:1", "1.1.1.1, [::1]:2", `for="[::1]";by=x`)
	p := proxies(config.Proxies{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	f.Fuzz(func(t *testing.T, peer, xff, fwd string) {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {xff}, "Forwarded": {fwd}}}
		got := p.client(r)
		if a, ok := address(peer); !p.trusts(a, ok) && got != a {
			t.Errorf("%q is believed: %v", peer, got)
		}
	})
}

// As many requests as may are answered at a time, of one client and of all, to the request; the next one passes when one has
// ended.
func TestConcurrentRequests(t *testing.T) {
	for _, tc := range []struct {
		limits       Limits
		own          int // of the key
		passes       int
		status, code int // of Messages and Chat
		says         string
	}{
		{Limits{Requests: 5}, 0, 5, 529, 503, "the server is busy: 5 requests are being answered, as many as its flag --max-concurrent-requests lets"},
		{Limits{Requests: 9, RequestsPerClient: 3}, 0, 3, 429, 429, "3 requests of this address are being answered, as many as the server's flag --max-requests-per-client lets"},
		{Limits{RequestsPerClient: 3}, 4, 4, 429, 429, "4 requests of this key are being answered, as many as max-requests of the key lets"},
	} {
		began, end := make(chan struct{}, 32), make(chan struct{})
		gen := wiretest.New()
		gen.Script = func(*chat.Request) ([]wiretest.Step, error) {
			steps := wiretest.Hello(1)
			steps[0].Before = func(context.Context) { began <- struct{}{}; <-end }
			return steps, nil
		}
		o := options()
		o.Models, o.Limits = gen, tc.limits
		if tc.own > 0 {
			o.Keys = plain("k")
			o.Keys[0].MaxRequests = tc.own
		}
		s := New(o)
		var codes [32]int
		var wg sync.WaitGroup
		refused := make(chan int, 32)
		for i := range 32 {
			wg.Go(func() {
				w := do(s, "POST", "/v1/messages", messages, "X-Api-Key: k")
				if codes[i] = w.Code; w.Code != 200 {
					refused <- w.Code
				}
			})
		}
		for range tc.passes {
			<-began
		}
		for range 32 - tc.passes {
			if code := <-refused; code != tc.status {
				t.Errorf("%+v: %d", tc.limits, code)
			}
		}
		for path, code := range map[string]int{"/v1/messages": tc.status, "/v1/chat/completions": tc.code} {
			w := do(s, "POST", path, messages, "X-Api-Key: k")
			if w.Code != code || !strings.Contains(w.Body.String(), tc.says) || w.Header().Get("Retry-After") == "" {
				t.Errorf("%+v: %s: %d %s", tc.limits, path, w.Code, w.Body)
			}
		}
		if w := do(s, "POST", "/v1/messages/count_tokens", messages, "X-Api-Key: k"); w.Code != 200 {
			t.Errorf("%+v: counting tokens: %d", tc.limits, w.Code)
		}
		close(end)
		wg.Wait()
		n := 0
		for _, c := range codes {
			if c == 200 {
				n++
			}
		}
		if n != tc.passes {
			t.Errorf("%+v: %d passed, want %d", tc.limits, n, tc.passes)
		}
		if w := do(s, "POST", "/v1/messages", messages, "X-Api-Key: k"); w.Code != 200 {
			t.Errorf("%+v: afterwards: %d %s", tc.limits, w.Code, w.Body)
		}
	}
}

// slowly is a watch by a clock and by progress that a test moves on.
type slowly struct {
	*watch
	clock time.Time
	now   Progress
	info  *wire.Info
	ended error
}

func newSlowly(limits Limits) *slowly {
	x := &slowly{clock: time.Unix(1e9, 0), info: &wire.Info{RequestID: "req_1"}, now: Progress{Requests: map[string]RequestProgress{}}}
	x.watch = newWatch(limits, nil)
	x.watch.now = func() time.Time { return x.clock }
	x.watch.of[x.info.RequestID] = &watched{info: x.info, cancel: func(err error) { x.ended = err }, since: x.clock}
	return x
}

// after looks, some time later, and gives why the request has ended, if it has.
func (x *slowly) after(d time.Duration) string {
	x.clock = x.clock.Add(d)
	x.check(x.clock, &x.now)
	if x.ended == nil {
		return ""
	}
	return x.ended.Error()
}

// A request is ended when nothing of it is done for as long as may be, and not before: a prompt of twenty minutes that runs is
// never cut, nor a model that takes as long to load, nor a reply that comes slowly.
func TestTimeout(t *testing.T) {
	const limit = 5 * time.Minute
	const late = limit - time.Second
	x := newSlowly(Limits{Timeout: limit})
	if e := x.after(time.Hour); e != "" {
		t.Fatalf("while its body is read: %s", e)
	}
	x.info.Advance()
	step := func(what string, f func(i int)) {
		t.Helper()
		for i := range 5 {
			f(i)
			if e := x.after(late); e != "" {
				t.Fatalf("%s, part %d: %s", what, i, e)
			}
		}
	}
	x.after(0)
	step("loading", func(int) { x.now.Loading++ })
	step("embedding", func(int) { x.now.Encoding++ })
	step("a prompt", func(i int) { x.now.Requests["req_1"] = RequestProgress{Steps: int64(2048 * i)} })
	step("events", func(int) { x.info.Advance() })
	x.info.BeginTimed()
	if e := x.after(time.Hour); e != "" {
		t.Fatalf("what has a time limit of its own: %s", e)
	}
	x.info.EndTimed()
	if e := x.after(late); e != "" {
		t.Fatalf("behind that: %s", e)
	}
	x.info.Advance()
	// What others do, and what is loaded for others, is no progress of a request that runs.
	x.after(0)
	x.now.Loading++
	x.now.Requests["req_2"] = RequestProgress{Steps: 1}
	if e := x.after(limit - 2*time.Second); e != "" {
		t.Fatalf("too early: %s", e)
	}
	x.now.Loading++
	if e := x.after(2 * time.Second); !strings.Contains(e, "nothing was done for the request for 5m0s, as long as the server's flag --timeout lets") {
		t.Errorf("%q", e)
	}
	var err *chat.Error
	if !errors.As(x.ended, &err) || err.Kind != chat.TimedOut || err.RetryAfter == 0 {
		t.Errorf("%+v", err)
	}
}

// The wait for a turn has a limit of its own, or that of the rest.
func TestQueueWait(t *testing.T) {
	for _, tc := range []struct {
		limits Limits
		most   time.Duration
		knob   string
	}{
		{Limits{Timeout: time.Minute}, time.Minute, "--timeout"},
		{Limits{Timeout: time.Minute, QueueWait: 10 * time.Second}, 10 * time.Second, "--max-queue-wait"},
		{Limits{Timeout: time.Minute, QueueWait: 10 * time.Minute}, 10 * time.Minute, "--max-queue-wait"},
		{Limits{QueueWait: time.Second}, time.Second, "--max-queue-wait"},
	} {
		x := newSlowly(tc.limits)
		x.info.Advance()
		x.now.Requests["req_1"] = RequestProgress{Queued: true}
		x.after(0)
		if e := x.after(tc.most - 1); e != "" {
			t.Errorf("%+v: early: %s", tc.limits, e)
		}
		x.now.Requests["req_2"] = RequestProgress{Steps: 1}
		e := x.after(1)
		var err *chat.Error
		if !errors.As(x.ended, &err) || err.Kind != chat.Overloaded || err.RetryAfter == 0 || !strings.Contains(e, fmt.Sprintf("waited for its turn for %v, as long as its flag %s lets", tc.most, tc.knob)) {
			t.Errorf("%+v: %+v", tc.limits, x.ended)
		}
	}
}

// What hangs is ended in the words of each protocol, whole replies with a status of their own and streams by their last event;
// what comes slowly is not.
func TestTimeoutReplies(t *testing.T) {
	const limit = 800 * time.Millisecond
	gen := wiretest.New()
	gen.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		steps := wiretest.Hello(1)
		for i := range steps {
			switch text := r.Messages[0].Text(); {
			case text == "slow":
				steps[i].Before = func(ctx context.Context) { // an event in time
					select {
					case <-ctx.Done():
					case <-time.After(limit / 2):
					}
				}
			case text == "hang" && i == 2:
				steps[i].Before = func(ctx context.Context) { <-ctx.Done() }
			}
		}
		return steps, nil
	}
	o := options()
	o.Models, o.Limits.Timeout, o.KeepAlive = gen, limit, limit/10
	s := New(o)
	const says = "nothing was done for the request for 800ms, as long as the server's flag --timeout lets; try again later"
	for _, tc := range []struct {
		path, more string
		status     int
		want       string
	}{
		{"/v1/messages", "", 504, anthro + `timeout_error","message":"` + says},
		{"/v1/chat/completions", "", 504, open + says + `","type":"server_error","param":null,"code":"timeout"}`},
		{"/v1/messages", `"stream":true,`, 200, "event: error\ndata: " + anthro + `timeout_error","message":"` + says},
		{"/v1/chat/completions", `"stream":true,`, 200, `data: {"error":{"message":"` + says},
	} {
		body := "{" + tc.more + messages[1:]
		w := do(s, "POST", tc.path, strings.Replace(body, "Hi", "hang", 1))
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) || tc.status == 504 && w.Header().Get("Retry-After") != "5" {
			t.Errorf("%s %s: %d %v %s", tc.path, tc.more, w.Code, w.Header(), w.Body)
		}
		began := time.Now()
		if w := do(s, "POST", tc.path, strings.Replace(body, "Hi", "slow", 1)); w.Code != 200 || strings.Contains(w.Body.String(), "timeout") || time.Since(began) < limit {
			t.Errorf("%s %s: slow, in %v: %d %s", tc.path, tc.more, time.Since(began), w.Code, w.Body)
		}
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	if len(s.watch.of) != 0 || s.watch.timer != nil {
		t.Errorf("%d requests are still watched", len(s.watch.of))
	}
}
