package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// promise begins a request of 60 MB, of which some bytes come, and waits until the server has begun to read them.
func promise(t *testing.T, addr, path string, sent int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	// A server asks for the body when it reads it for the first time.
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60000000\r\nExpect: 100-continue\r\n\r\n", path)
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("%q %v", line, err)
	}
	if _, err := io.WriteString(c, strings.Repeat(" ", sent)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHalfSentBodies: many clients that promise much and send little hold little; where they hold all there is, one more is
// told so as by a full queue in its own protocol, and is answered again when they are gone.
func TestHalfSentBodies(t *testing.T) {
	const each = 4 << 10 // what the server takes for a body at first
	const clients = 400
	o := options()
	o.MaxBodies = clients * each
	o.Monitor = &figures{}
	s := New(o)
	srv := httptest.NewServer(s)
	defer srv.Close()
	addr := srv.Listener.Addr().String()
	post := func(path string) (int, http.Header, string) {
		res, err := http.Post(srv.URL+path, "application/json", strings.NewReader(messages))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header, string(body)
	}
	if status, _, body := post("/v1/messages"); status != 200 {
		t.Fatalf("before: %d %s", status, body)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var held []net.Conn
	for i := range clients {
		held = append(held, promise(t, addr, []string{"/v1/messages", "/v1/chat/completions"}[i%2], 130))
	}
	runtime.ReadMemStats(&after)
	const most = 64 << 10 // of a client, this test's side and what net/http takes included
	if took := (after.TotalAlloc - before.TotalAlloc) / clients; took > most {
		t.Errorf("a body of which 130 bytes have come takes %d bytes", took)
	}
	for _, tc := range []struct {
		path, kind string
		status     int
	}{
		{"/v1/messages", `"overloaded_error"`, 529},
		{"/v1/messages/count_tokens", `"overloaded_error"`, 529},
		{"/v1/chat/completions", `"server_overloaded"`, 503},
		{"/v1/completions", `"server_overloaded"`, 503},
		{"/v1/embeddings", `"server_overloaded"`, 503},
		{"/v1/rerank", `"server_overloaded"`, 503},
	} {
		status, header, body := post(tc.path)
		if status != tc.status || header.Get("Retry-After") != "1" || !strings.Contains(body, tc.kind) || !strings.Contains(body, "--max-request-bytes") {
			t.Errorf("%s: %d %v %s", tc.path, status, header, body)
		}
	}
	var st Status
	if err := json.Unmarshal(do(s, "GET", "/v1/status", "").Body.Bytes(), &st); err != nil || st.Bounds[chat.BoundBodies] != 6 {
		t.Errorf("bounds met: %v, %v", st.Bounds, err)
	}
	for _, c := range held {
		_ = c.Close()
	}
	for tries := 0; ; tries++ { // the server hears of them going one by one
		status, _, body := post("/v1/messages")
		if status == 200 {
			break
		}
		if tries == 10_000 {
			t.Fatalf("after: %d %s", status, body)
		}
	}
}

// TestBodyIsLetGo: what is held of a body is free again when its prompt is made, while its reply still goes on.
func TestBodyIsLetGo(t *testing.T) {
	for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
		o := options()
		body := messages[:1] + `"pad":"` + strings.Repeat("x", 7000) + `",` + messages[1:]
		o.MaxBodies = int64(len(body)) + 10 // one body has room, and another only in its place
		inner := 0
		var s *Server
		steps := wiretest.Hello(1)
		steps[1].Before = func(context.Context) {
			if inner == 0 {
				inner = -1
				inner = do(s, "POST", path, messages).Code
			}
		}
		o.Models = wiretest.New(steps...)
		s = New(o)
		if w := do(s, "POST", path, body); w.Code != 200 || inner != 200 {
			t.Errorf("%s: %d, and while it is answered %d: %s", path, w.Code, inner, w.Body)
		}
	}
}
