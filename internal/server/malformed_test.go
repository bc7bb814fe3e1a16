package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What is no HTTP, or may be read in two ways, is refused and its connection closed; whoever comes next is answered.
func TestMalformedHTTP(t *testing.T) {
	addr, stop := serve(t, options())
	host := strings.TrimPrefix(addr, "http://")
	const post = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for name, tc := range map[string]struct {
		text   string
		status int
	}{
		"no HTTP":                     {"hello\r\n\r\n", 400},
		"another version":             {"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", 505},
		"TLS":                         {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
		"no host":                     {"GET / HTTP/1.1\r\n\r\n", 400},
		"two hosts":                   {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		"zero bytes in a header":      {"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", 400},
		"a header without a name":     {"GET / HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n", 400},
		"two megabytes of headers":    {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", 431},
		"two lengths":                 {post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", 400},
		"a length and chunks":         {post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nxx\r\n", 400},
		"a length that is none":       {post + "Content-Length: -1\r\n\r\n", 400},
		"an encoding nobody knows":    {post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
		"a chunk whose size is none":  {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400},
		"a chunk longer than it says": {post + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}{}\r\n0\r\n\r\n", 400},
	} {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		go func() { _, _ = io.WriteString(conn, tc.text) }() // it may be closed before all is written
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if _, err := in.ReadByte(); err == nil || res.StatusCode != tc.status {
				t.Errorf("%s: %s, want %d; the connection: %v", name, res.Status, tc.status, err)
			}
		}
		conn.Close()
		res, err = http.Get(addr + "/livez")
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("after %s: %v", name, err)
		}
		res.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
}
