package wire

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// WriteTimeout is how long one write of a reply may take: a client that reads nothing for this long with full buffers is gone.
// It may be up to deadlineAge less: a younger deadline is not set anew.
const (
	WriteTimeout = 60 * time.Second
	deadlineAge  = 5 * time.Second
)

// pieceBytes is how much of a whole reply is written under one deadline, so that a slow client may take its time over a long one.
const pieceBytes = 64 << 10

// deadline is that of the writes to a connection. A ResponseWriter without deadlines (a test recorder) just writes.
type deadline struct {
	rc  *http.ResponseController
	set time.Time // when last
}

// renew gives the next write WriteTimeout.
func (d *deadline) renew() {
	if now := time.Now(); now.Sub(d.set) > deadlineAge {
		d.set = now
		_ = d.rc.SetWriteDeadline(now.Add(WriteTimeout))
	}
}

// Write sends b as the body of a reply, under a deadline that moves on with it. What a client that is
// gone did not get is lost.
func Write(w http.ResponseWriter, b []byte) {
	d := deadline{rc: http.NewResponseController(w)}
	for len(b) > 0 {
		n := min(len(b), pieceBytes)
		d.renew()
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
		b = b[n:]
	}
}

// Stream writes server-sent events. Event collects, Flush sends; after keepAlive of silence on the wire,
// whatever the reason, a timer sends ping by itself. The status line goes out with the first byte, so that a failure
// before it can still be answered with a status of its own. One that was made with Options.Frame hands events over as they are.
//
// Invariants: mu is held for every write to w; once err is set or closed is true nothing is written any more.
type Stream struct {
	mu       sync.Mutex
	w        http.ResponseWriter
	rc       *http.ResponseController
	frame    func(data []byte) error // nil: events are written to w
	frames   [][]byte                // collected
	buf      bytes.Buffer
	every    time.Duration
	ping     []byte
	timer    *time.Timer // of the keep-alive; it looks at sent when it fires, nobody resets it for every token
	sent     time.Time   // when something was sent last
	deadline deadline
	cancel   context.CancelFunc
	began    bool
	closed   bool
	err      error
}

// NewStream makes a stream on w. ping is a complete frame. cancel is called when the client can no longer be written
// to, so that its generation ends. Close must be called.
func NewStream(w http.ResponseWriter, every time.Duration, ping string, cancel context.CancelFunc) *Stream {
	rc := http.NewResponseController(w)
	s := &Stream{w: w, rc: rc, deadline: deadline{rc: rc}, every: every, ping: []byte(ping), cancel: cancel, sent: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(every, s.keepAlive)
	return s
}

// newStream makes the stream of a reply. Without a reply to write to there is nothing to keep alive.
func (o Options) newStream(w http.ResponseWriter, ping string, cancel context.CancelFunc) *Stream {
	s := NewStream(w, o.KeepAlive, ping, cancel)
	if o.Frame != nil {
		s.timer.Stop()
		s.frame = o.Frame
	}
	return s
}

// header sets a header field unless value is empty or the headers are out.
func (s *Stream) header(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value != "" && !s.began {
		s.w.Header().Set(name, value)
	}
}

// Event adds a frame; name "" leaves out the event line. data is one line of JSON.
func (s *Stream) Event(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frame != nil {
		s.frames = append(s.frames, bytes.Clone(data))
		return
	}
	if name != "" {
		s.buf.WriteString("event: ")
		s.buf.WriteString(name)
		s.buf.WriteByte('\n')
	}
	s.buf.WriteString("data: ")
	s.buf.Write(data)
	s.buf.WriteString("\n\n")
}

// Flush sends what was collected.
func (s *Stream) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buf.Len() > 0 {
		s.send(s.buf.Bytes())
		s.buf.Reset()
	}
	for _, data := range s.frames {
		s.hand(data)
	}
	s.frames = s.frames[:0]
}

// hand gives an event to frame; mu is held.
func (s *Stream) hand(data []byte) {
	if s.closed || s.err != nil {
		return
	}
	if !s.began {
		s.began = true
		s.w.WriteHeader(http.StatusOK)
	}
	if err := s.frame(data); err != nil {
		s.err = err
		s.cancel()
	}
}

// Err returns the write error that ended the stream.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close flushes and stops the keep-alive. The handler must call it before it returns.
func (s *Stream) Close() {
	s.Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
	if s.began && s.frame == nil {
		_ = s.rc.SetWriteDeadline(time.Time{})
	}
}

// Claim takes the reply back if nothing was sent yet: then it returns true, the stream is closed and the caller may
// answer with a status of its own.
func (s *Stream) Claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began {
		return false
	}
	s.closed = true
	s.timer.Stop()
	s.buf.Reset()
	s.frames = nil
	return true
}

func (s *Stream) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return
	}
	silent := time.Since(s.sent)
	if silent >= s.every {
		s.send(s.ping)
		silent = 0
	}
	if s.err == nil {
		s.timer.Reset(s.every - silent)
	}
}

// send writes and flushes b and starts the silence anew; mu is held.
func (s *Stream) send(b []byte) {
	if s.closed || s.err != nil {
		return
	}
	if !s.began {
		s.began = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no") // nginx would hold the events back
		s.w.WriteHeader(http.StatusOK)
	}
	s.deadline.renew()
	_, err := s.w.Write(b)
	if err == nil {
		err = s.rc.Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) { // a test recorder cannot flush
		s.err = err
		s.timer.Stop()
		s.cancel()
		return
	}
	s.sent = time.Now()
}
