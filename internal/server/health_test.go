package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"hearth/internal/wire/wiretest"
)

// Probes tell loading from ready and dead from alive, need no key, and ask nothing but the state.
func TestProbes(t *testing.T) {
	var state State
	o := options()
	o.Keys = plain("k")
	o.Health = func() Health { panic("a probe asked for figures") }
	o.State = func() State { return state }
	s := New(o)
	for _, tc := range []struct {
		state       State
		live, ready int
	}{{OK, 200, 200}, {Loading, 200, 503}, {Stuck, 503, 503}} {
		state = tc.state
		for path, want := range map[string]int{"/livez": tc.live, "/healthz": tc.live, "/readyz": tc.ready, "/health/ready": tc.ready, "/readyz/": tc.ready} {
			for _, method := range []string{"GET", "HEAD"} {
				w := do(s, method, path, "")
				if w.Code != want || w.Body.String() != `{"status":"`+string(tc.state)+`"}`+"\n" {
					t.Errorf("%s %s while %s = %d %s, want %d", method, path, tc.state, w.Code, w.Body, want)
				}
			}
		}
	}
	if w := do(s, "POST", "/readyz", "{}"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d %s", w.Code, w.Body)
	}
	if w := do(s, "GET", "/readyz/x", ""); w.Code != http.StatusUnauthorized { // no probe
		t.Errorf("/readyz/x: %d", w.Code)
	}
	o.Keys, o.State = nil, nil
	o.Health = func() Health { return Health{Status: Loading} }
	if w := do(New(o), "GET", "/readyz", ""); w.Code != 503 || !strings.Contains(w.Body.String(), `"loading"`) {
		t.Errorf("without a state of its own: %d %s", w.Code, w.Body)
	}
}

// Who is told that the server drains on a connection that was open before takes it out of its pool; it still lives.
func TestProbesDrain(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	steps := wiretest.Hello(1)
	steps[1].Before = func(context.Context) { close(started); <-release }
	o := options()
	o.Models = wiretest.New(steps...)
	s := New(o)
	done := make(chan int)
	go func() { done <- do(s, "POST", "/v1/messages", messages).Code }()
	<-started
	close(s.draining)
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503} {
		if w := do(s, "GET", path, ""); w.Code != want || w.Body.String() != `{"status":"draining"}`+"\n" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	close(release)
	if code := <-done; code != 200 {
		t.Errorf("the reply that ran: %d", code)
	}
}

// Probes come every few seconds for months: those that are answered as they hope to be are no lines of the usual log.
func TestProbesLog(t *testing.T) {
	for level, want := range map[slog.Level]string{slog.LevelInfo: "/readyz 503", slog.LevelDebug: "/livez 200, /readyz 503, /health 200"} {
		var lines []string
		o := options()
		o.State = func() State { return Loading }
		o.Log = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case "path":
				lines = append(lines, a.Value.String())
			case "status":
				lines[len(lines)-1] += " " + a.Value.String()
			}
			return a
		}}))
		s := New(o)
		for _, path := range []string{"/livez", "/readyz", "/health"} {
			do(s, "GET", path, "")
		}
		if got := strings.Join(lines, ", "); got != want {
			t.Errorf("at %v: %s, want %s", level, got, want)
		}
	}
}
