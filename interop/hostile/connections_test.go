//go:build linux

package hostile

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

func (s *server) dial() (*net.TCPConn, error) {
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.url, "http://"), 10*time.Second)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// head is the head of a POST with a body of so many bytes.
func head(path string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, length)
}

// hold opens n connections, writes text on each and keeps them open, with nothing more to say.
func hold(text string) func(ctx context.Context, s *server, n int, begun func()) {
	return func(ctx context.Context, s *server, n int, begun func()) {
		var wg sync.WaitGroup
		limit := make(chan struct{}, 32)
		open := make([]*net.TCPConn, n)
		for i := range n {
			limit <- struct{}{}
			wg.Go(func() {
				defer func() { <-limit }()
				if c, err := s.dial(); err == nil {
					_, _ = c.Write([]byte(text)) // a server that refuses has done well
					open[i] = c
				}
			})
		}
		wg.Wait()
		begun()
		<-ctx.Done()
		for _, c := range open {
			if c != nil {
				c.Close()
			}
		}
	}
}

// connections are such as promise more than they send.
func connections() (out []row) {
	for _, a := range both {
		begun := string(a.say(strings.Repeat("a", 130), "").body)[:130]
		out = append(out, row{name: a.name + " connections that promise 60 MB and send 130 bytes", n: 400, memory: 64 << 20, open: hold(head(a.path, 60_000_000) + begun)},
			row{name: a.name + " connections that promise 60 MB and send 2 MB", n: 100, memory: 512 << 20, open: hold(head(a.path, 60_000_000) + begun + strings.Repeat("a", 2<<20))},
			row{name: a.name + " connections in chunks without an end", n: 400, memory: 64 << 20,
				open: hold(strings.Replace(head(a.path, 0), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "82\r\n" + begun + "\r\n")})
	}
	return append(out, row{name: "connections that say nothing", n: 400, memory: 64 << 20, open: hold("")},
		row{name: "connections without an end of their head", n: 400, memory: 64 << 20, open: hold("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-A: " + strings.Repeat("a", 3000))})
}
