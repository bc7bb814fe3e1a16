package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// bareEvent is as long as a token of a chat stream.
var bareEvent = fmt.Appendf(nil, "data: %0240d\n\n", 0)

// bareServer is the least that can stream: net/http, one goroutine a stream, which writes and flushes an event when it is woken.
// What it costs is what the kernel and the run time take for waking a thread and writing to a socket.
type bareServer struct {
	http *http.Server
	url  string

	mu      sync.Mutex
	streams map[chan struct{}]bool
}

func startBare() (*bareServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &bareServer{url: "http://" + l.Addr().String(), streams: map[chan struct{}]bool{}}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve)}
	go func() { _ = s.http.Serve(l) }() // until it is closed
	return s, nil
}

func (s *bareServer) serve(w http.ResponseWriter, r *http.Request) {
	wake := make(chan struct{}, 1)
	s.join(wake, true)
	defer s.join(wake, false)
	out := http.NewResponseController(w)
	for {
		select {
		case <-wake:
		case <-r.Context().Done():
			return
		}
		if _, err := w.Write(bareEvent); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
	}
}

func (s *bareServer) join(wake chan struct{}, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in {
		s.streams[wake] = true
	} else {
		delete(s.streams, wake)
	}
}

// token wakes every stream and tells how many there are.
func (s *bareServer) token() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake := range s.streams {
		select {
		case wake <- struct{}{}:
		default: // it is late
		}
	}
	return len(s.streams)
}

// bare is the processor time of an event from a bare server's handler to the socket, with n streams and the same steps of the
// model, in microseconds.
func (s *idleServer) bare(ctx context.Context, n int, while time.Duration, idle float64) (float64, error) {
	b, err := startBare()
	if err != nil {
		return 0, err
	}
	defer b.http.Close()
	stop, err := readStreams(ctx, b.url, n)
	if err != nil {
		return 0, err
	}
	defer stop()
	for begun := time.Now(); b.token() < n; s.model.step() {
		if time.Since(begun) > streamStart {
			return 0, fmt.Errorf("wait for %d bare streams: %d are there", n, b.token())
		}
	}
	events := 0
	start, from := time.Now(), s.besides()
	for time.Since(start) < while {
		s.model.step()
		events += b.token()
	}
	return ((s.besides() - from).Seconds() - idle*time.Since(start).Seconds()) * 1e6 / float64(max(events, 1)), nil
}
