// Package browser lets a real browser show hearth's own page, and call hearth from pages of other origins: `make browser` runs it
// where Chromium is installed. It is only tests.
package browser

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"hearth/interop/program"
)

var (
	binary   = flag.String("hearth", "", "the hearth binary under test; without it the tests are skipped")
	chromium = flag.String("chromium", "chromium", "the browser")
	shots    = flag.String("shots", "", "a folder for pictures of the views; without it none are made")
	axe      = flag.String("axe", "", "the file axe.min.js of axe-core; without it no page is looked over by it")
)

// limit is how long anything that is waited for may take, on a machine that is busy with other things.
const limit = time.Minute

//go:embed page.html
var page []byte

// result is what the page says of its calls: what came back, or the error.
type result struct{ Models, Chat, Chunks, Events, Socket string }

// TestOrigins: pages on this machine may call, others where the flag names them or where a key is required and they have it.
func TestOrigins(t *testing.T) {
	if *binary == "" {
		t.Skip("run by make browser")
	}
	results := make(chan result, 1)
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/result" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(page)
			return
		}
		var got result
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Errorf("the page's result: %v", err)
		}
		results <- got
	}))
	defer pages.Close()
	_, port, err := net.SplitHostPort(pages.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	browser := start(t)
	here, elsewhere := "http://localhost:"+port, "http://page.example:"+port
	const refused = "TypeError: Failed to fetch"
	for _, tt := range []struct {
		name, origin, key string
		args              []string
		models, chat      string
		upgrade           int // status
	}{
		{"loopback", here, "", nil, "demo", "Hello req_", 101},
		{"elsewhere", elsewhere, "", nil, refused, refused, 403},
		{"elsewhere, named", elsewhere, "", []string{"--allowed-origins", elsewhere}, "demo", "Hello req_", 101},
		{"elsewhere, another named", elsewhere, "", []string{"--allowed-origins", "http://other.example:" + port}, refused, refused, 403},
		{"elsewhere, with a key", elsewhere, "secret", []string{"--api-key", "secret"}, "demo", "Hello req_", 401},
		{"elsewhere, with a wrong key", elsewhere, "wrong", []string{"--api-key", "secret"}, "TypeError: ", "Incorrect API key provided", 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, log := serve(t, tt.args...)
			query := url.Values{"server": {server.URL}}
			if tt.key != "" {
				query.Set("key", tt.key)
			}
			b := open(t, browser)
			b.expects("") // what is refused
			b.show(tt.origin + "/?" + query.Encode())
			var got result
			select {
			case got = <-results:
			case <-time.After(limit):
				t.Fatal("the page told no result")
			}
			if !strings.HasPrefix(got.Models, tt.models) || !strings.HasPrefix(got.Chat, tt.chat) {
				t.Errorf("models %q, chat %q; want %q and %q", got.Models, got.Chat, tt.models, tt.chat)
			}
			if want := map[bool]string{true: "Hello", false: "closed with 1006"}[tt.upgrade == http.StatusSwitchingProtocols]; got.Socket != want {
				t.Errorf("socket %q, want %q", got.Socket, want)
			}
			server.Stop()
			if line := fmt.Sprint("method=GET path=/v1/responses status=", tt.upgrade, " "); !strings.Contains(log.String(), line) {
				t.Errorf("the log has no %s:\n%s", line, log)
			}
			whole := strings.HasPrefix(tt.chat, "Hello")
			if strings.HasSuffix(got.Chunks, "data: [DONE]\n\n") != whole || strings.Contains(got.Events, "message_stop") != whole {
				t.Errorf("chunks %q, events %q", got.Chunks, got.Events)
			}
		})
	}
}

// serve runs hearth with a script in the model's place until the test ends. Its log may be read when it has stopped.
func serve(t *testing.T, args ...string) (s *program.Server, log *bytes.Buffer) {
	t.Helper()
	script := t.TempDir() + "/script.jsonl"
	if err := os.WriteFile(script, []byte(`{"raw": "Hello"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	log = &bytes.Buffer{}
	return program.Serve(t, *binary, nil, log, append([]string{"--prefix-cache-dir", "off", "--store", "memory", "--script", script}, args...)...), log
}
