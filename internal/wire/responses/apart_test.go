package responses

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/server"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

func named(name string) access.Key {
	k := access.PlainKey(name)
	k.Name = name
	return k
}

// TestBackgroundServer: in a server a response in the background is a call of its own with its key, in the log beside what
// asked for it; the server waits for it when it shuts down, and tells it and who follows it when it will wait no more.
func TestBackgroundServer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		drain  time.Duration
		status string
	}{{"waits", time.Minute, completed}, {"is ended", time.Millisecond, failed}} {
		t.Run(tt.name, func(t *testing.T) {
			gate, begun := make(chan struct{}), make(chan string, 2)
			steps := answer(&chat.Request{})
			g := wiretest.New()
			g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
				all, err := gated(gate, steps[:2], steps[2:])(r)
				return append([]wiretest.Step{{Event: all[0].Event, Before: func(context.Context) { begun <- r.Origin.ID }}}, all[1:]...), err
			}
			dir, log := t.TempDir(), newLines()
			s := server.New(server.Options{Models: g, Protocols: []wire.Protocol{Protocol{Store: newStore(t, dir)}}, Keys: []access.Key{named("ada"), named("bob")},
				Health: func() server.Health { return server.Health{} }, Drain: tt.drain, Log: slog.New(slog.NewTextHandler(log, nil))})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			stopped := make(chan error, 1)
			go func() { stopped <- s.Serve(ctx, l) }()
			ask := func(key, method, path, body string) *http.Response {
				t.Helper()
				r, err := http.NewRequest(method, "http://"+l.Addr().String()+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+key)
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				return resp
			}
			var d document
			resp := ask("ada", "POST", "/v1/responses", inBackground)
			if err := json.NewDecoder(resp.Body).Decode(&d); err != nil || d.Status != queued {
				t.Fatalf("%d %+v, %v", resp.StatusCode, d, err)
			}
			resp.Body.Close()
			callID := <-begun
			if resp.Header.Get("X-Request-Id") == callID {
				t.Error("the response is no call of its own")
			}
			resp = ask("bob", "GET", "/v1/responses/"+d.ID, "")
			if resp.Body.Close(); resp.StatusCode != 404 {
				t.Errorf("%d for another key", resp.StatusCode)
			}
			stream := ask("ada", "POST", "/v1/responses", andStream)
			defer stream.Body.Close()
			<-begun
			events := bufio.NewReader(stream.Body)
			if first, err := events.ReadString('\n'); err != nil || first != "event: response.created\n" {
				t.Errorf("%q, %v", first, err)
			}
			stop()
			if <-s.Draining(); tt.status == completed {
				close(gate)
			}
			rest, err := io.ReadAll(events)
			if err != nil || !strings.Contains(string(rest), "event: response."+tt.status+"\n") {
				t.Errorf("%s, %v", rest, err)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			if got := column(t, dir, "status"); !slices.Equal(got, []string{tt.status, tt.status}) {
				t.Errorf("%q", got)
			}
			var calls int
			for _, line := range log.all() {
				if strings.Contains(line, "id="+callID) {
					calls++
					for _, want := range []string{"method=POST", "path=/v1/responses", "key=ada", "model=test-model", "prompt_tokens=3"} {
						if !strings.Contains(line, want) {
							t.Errorf("%s is not in %s", want, line)
						}
					}
				}
			}
			if all := strings.Join(log.all(), "\n"); calls != 1 || strings.Count(all, "msg=request") != 5 || strings.Count(all, "prompt_tokens=") != 2 {
				t.Errorf("%d lines, all:\n%s", calls, all)
			}
		})
	}
}
