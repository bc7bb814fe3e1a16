package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/chat"
	"hearth/internal/server/servertest"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// protocols are those that a client of TLS asks for, by what its replies then say they are.
var protocols = map[string][]string{"HTTP/1.1": {"http/1.1"}, "HTTP/2.0": {"h2", "http/1.1"}}

// secured is o with TLS, and a client for it that asks for one of protocols and gets its connections from dial.
func secured(t *testing.T, o Options, protocol string, dial func() (net.Conn, error)) (Options, *http.Client) {
	t.Helper()
	certificate, trust := servertest.TLS(t)
	o.Certificate = certificate
	trust.NextProtos = protocols[protocol]
	both := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: protocol == "HTTP/2.0", DisableCompression: true}
	if dial != nil {
		both.DialContext = func(context.Context, string, string) (net.Conn, error) { return dial() }
	}
	return o, &http.Client{Transport: both}
}

// send asks over TLS, and sees to it that the protocol is the one that was meant.
func send(t *testing.T, c *http.Client, protocol, url, body string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	if err == nil && (res.Proto != protocol || res.TLS == nil) {
		t.Errorf("%s, want %s", res.Proto, protocol)
	}
	return res, err
}

var streamed = strings.Replace(messages, "{", `{"stream":true,`, 1)

// Replies, whole and streamed, come over TLS in both versions of HTTP as they do without; a client that leaves ends its request,
// and the server ends when what runs has.
func TestTLS(t *testing.T) {
	for protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			o, client := secured(t, options(), protocol, nil)
			addr, stop := serve(t, o)
			addr = strings.Replace(addr, "http", "https", 1)
			for body, want := range map[string]string{messages: `"stop_reason":"end_turn"`, streamed: "event: message_stop"} {
				res, err := send(t, client, protocol, addr+"/v1/messages", body)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK || !bytes.Contains(got, []byte(want)) {
					t.Errorf("%s: %s, %v: %s", body, res.Status, err, got)
				}
			}
			client.CloseIdleConnections()
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTLSDisconnect(t *testing.T) {
	for protocol := range protocols {
		for _, body := range []string{messages, streamed} {
			w := newWaiting()
			left := make(chan struct{})
			w.Script = func(*chat.Request) ([]wiretest.Step, error) {
				return []wiretest.Step{{Before: func(ctx context.Context) { _ = w.wait(ctx); close(left) }}}, nil
			}
			logged := make(lines, 10)
			o := options()
			o.Models, o.Log = w, slog.New(slog.NewJSONHandler(logged, nil))
			o, client := secured(t, o, protocol, nil)
			addr, stop := serve(t, o)
			ctx, leave := context.WithCancel(t.Context())
			go func() { <-w.asked; leave() }()
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, strings.Replace(addr, "http", "https", 1)+"/v1/messages", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			if res, err := client.Do(r); err == nil {
				res.Body.Close()
				t.Errorf("%s %s: %s", protocol, body, res.Status)
			}
			<-left
			if line := logLine(t, bytes.NewBuffer(<-logged)); line["status"] != 499.0 {
				t.Errorf("%s %s: logged %v", protocol, body, line)
			}
			client.CloseIdleConnections()
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A reply that runs is finished during the drain, or ended with the protocol's error.
func TestTLSDrain(t *testing.T) {
	for protocol := range protocols {
		for want, drain := range map[string]time.Duration{"event: message_stop": time.Minute, `"message":"the server is shutting down"`: time.Millisecond} {
			started, release := make(chan struct{}), make(chan struct{})
			steps := wiretest.Hello(1)
			steps[1].Before = func(ctx context.Context) {
				close(started)
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			o := options()
			o.Models, o.Drain = wiretest.New(steps...), drain
			o, client := secured(t, o, protocol, nil)
			addr, stop := serve(t, o)
			stopped := make(chan error, 1)
			go func() {
				<-started
				go func() { stopped <- stop() }()
				if drain > time.Second {
					close(release)
				}
			}()
			res, err := send(t, client, protocol, strings.Replace(addr, "http", "https", 1)+"/v1/messages", streamed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || !bytes.Contains(got, []byte(want)) {
				t.Errorf("%s: %v: %s, want %s", protocol, err, got, want)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			client.CloseIdleConnections()
		}
	}
}

// What is no TLS, or an old one, is told so and gets nothing; the next one is served.
func TestTLSRefusals(t *testing.T) {
	o, client := secured(t, options(), "HTTP/2.0", nil)
	addr, stop := serve(t, o)
	conn, err := net.Dial("tcp", strings.TrimPrefix(addr, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if got, _ := io.ReadAll(conn); !bytes.HasPrefix(got, []byte("HTTP/1.0 400 ")) || !bytes.Contains(got, []byte("HTTP request to an HTTPS server")) {
		t.Errorf("plain HTTP got %q", got)
	}
	conn.Close()
	old := client.Transport.(*http.Transport).TLSClientConfig.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	var alert tls.AlertError
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(addr, "http://"), old); err == nil {
		conn.Close()
		t.Error("TLS 1.1 is spoken")
	} else if !errors.As(err, &alert) && !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	res, err := send(t, client, "HTTP/2.0", strings.Replace(addr, "http", "https", 1)+"/v1/messages", messages)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	client.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// stalling is a connection whose owner can stop reading it.
type stalling struct {
	net.Conn
	stalled atomic.Bool
	closed  chan struct{}
	once    sync.Once
}

func (s *stalling) Read(b []byte) (int, error) {
	if s.stalled.Load() {
		<-s.closed
		return 0, net.ErrClosed
	}
	return s.Conn.Read(b)
}

func (s *stalling) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// secretly runs f with a server of TLS, in the time of unread, and a client that speaks protocol.
func secretly(t *testing.T, o Options, protocol string, f func(p *pipes, logged lines, c *http.Client, last func() *stalling)) {
	t.Helper()
	var last atomic.Pointer[stalling]
	p := &pipes{}
	o, client := secured(t, o, protocol, func() (net.Conn, error) {
		s := &stalling{Conn: p.dial(), closed: make(chan struct{})}
		last.Store(s)
		return s, nil
	})
	unread(t, o, func(of *pipes, logged lines) {
		p.conns = of.conns
		f(of, logged, client, last.Load)
		client.CloseIdleConnections()
		if s := last.Load(); s != nil {
			s.Close()
		}
		synctest.Wait()
	})
}

// A reply that takes longer than a write may, because the model takes so long, is sent all the same; so is a whole one that is
// read slowly. Who does not read a stream holds the lock that its keep-alive waits for, and the time of the test would stand
// still.
func TestTLSSlow(t *testing.T) {
	for protocol := range protocols {
		for _, body := range []string{messages, streamed} {
			o := options()
			slow := long(300 << 10)
			steps, _ := slow.Script(nil)
			steps[1].Before = func(context.Context) { time.Sleep(3 * wire.WriteTimeout) }
			o.Models = slow
			secretly(t, o, protocol, func(_ *pipes, _ lines, client *http.Client, _ func() *stalling) {
				began := time.Now()
				res, err := send(t, client, protocol, "https://localhost/v1/messages", body)
				if err != nil {
					t.Errorf("%s %s: %v", protocol, body, err)
					return
				}
				defer res.Body.Close()
				var got bytes.Buffer
				least := 3 * wire.WriteTimeout
				if body == messages {
					least += wire.WriteTimeout
				}
				for err == nil {
					if body == messages {
						time.Sleep(time.Second)
					}
					_, err = io.CopyN(&got, res.Body, 4<<10)
				}
				if took := time.Since(began); err != io.EOF || got.Len() < 300<<10 || took < least {
					t.Errorf("%s %s: %d bytes in %v, %v", protocol, body, got.Len(), took, err)
				}
			})
		}
	}
}

// A reply whose connection nobody reads is given up after WriteTimeout, and so is, in HTTP/2, one that is not read while the
// connection is. What a client may have under way in HTTP/2 is more than the reply of other tests.
func TestTLSUnread(t *testing.T) {
	for protocol := range protocols {
		for _, stall := range []bool{true, false} {
			for _, body := range []string{messages, streamed} {
				o := options()
				long := long(16 << 20)
				steps, _ := long.Script(nil)
				var last func() *stalling
				steps[1].Before = func(context.Context) { last().stalled.Store(stall) }
				o.Models, o.KeepAlive = long, time.Hour
				secretly(t, o, protocol, func(_ *pipes, logged lines, client *http.Client, of func() *stalling) {
					last = of
					began := time.Now()
					enough, left := make(chan struct{}), make(chan struct{})
					go func() {
						defer close(left)
						if res, err := send(t, client, protocol, "https://localhost/v1/messages", body); err == nil {
							<-enough
							res.Body.Close()
						}
					}()
					line := <-logged
					if took := time.Since(began); took < wire.WriteTimeout || took > 2*wire.WriteTimeout || !bytes.Contains(line, []byte("the client closed the connection")) {
						t.Errorf("%s, connection read %t, %s: after %v %s", protocol, !stall, body, took, line)
					}
					of().Close()
					close(enough)
					<-left
				})
			}
		}
	}
}

// A handshake that does not go on, a client of HTTP/2 that says nothing, and a connection on which nothing is asked any more are
// closed.
func TestTLSSilent(t *testing.T) {
	hello := []byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}
	for sent, limit := range map[string]time.Duration{"": readHeaderTimeout, string(hello[:1]): readHeaderTimeout, string(hello): readHeaderTimeout} {
		secretly(t, options(), "HTTP/2.0", func(p *pipes, _ lines, _ *http.Client, _ func() *stalling) {
			began := time.Now()
			conn := p.dial()
			_, _ = io.WriteString(conn, sent)
			_, _ = io.ReadAll(conn)
			if took := time.Since(began); took != limit {
				t.Errorf("%q: closed after %v, want %v", sent, took, limit)
			}
		})
	}
	for protocol, names := range protocols {
		secretly(t, options(), protocol, func(p *pipes, _ lines, client *http.Client, last func() *stalling) {
			began := time.Now()
			trust := client.Transport.(*http.Transport).TLSClientConfig.Clone()
			trust.NextProtos = names
			conn := tls.Client(p.dial(), trust)
			if err := conn.Handshake(); err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(conn)
			if took := time.Since(began); took > readHeaderTimeout {
				t.Errorf("%s: who says nothing after the handshake is let go after %v", protocol, took)
			}
			conn.Close()
		})
		secretly(t, options(), protocol, func(_ *pipes, _ lines, client *http.Client, last func() *stalling) {
			res, err := send(t, client, protocol, "https://localhost/v1/messages", messages)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			began := time.Now()
			<-closedAt(last())
			if took := time.Since(began); took < idleTimeout || took > idleTimeout+2*time.Second {
				t.Errorf("%s: an idle connection is closed after %v, want %v", protocol, took, idleTimeout)
			}
		})
	}
}

// closedAt is closed when the client's transport has noticed that its connection has ended, and closed its side.
func closedAt(s *stalling) <-chan struct{} { return s.closed }

// A body that does not come to its end, and a request on which nothing is done, are answered in time, in the caller's protocol.
func TestTLSDeadlines(t *testing.T) {
	for protocol := range protocols {
		secretly(t, options(), protocol, func(_ *pipes, _ lines, client *http.Client, _ func() *stalling) {
			body, more := io.Pipe()
			defer more.Close()
			go func() { _, _ = io.WriteString(more, messages[:10]) }()
			r, _ := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, "https://localhost/v1/messages", body)
			r.Header.Set("Content-Type", "application/json")
			began := time.Now()
			res, err := client.Do(r)
			if err != nil {
				t.Errorf("%s: %v", protocol, err)
				return
			}
			got, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if took := time.Since(began); res.StatusCode != http.StatusBadRequest || !bytes.Contains(got, []byte("could not be read to its end")) || took != 2*time.Minute {
				t.Errorf("%s: half a body: after %v %s %s", protocol, took, res.Status, got)
			}
		})
		o := options()
		w := newWaiting()
		o.Models, o.Limits = w, Limits{Timeout: 5 * time.Minute}
		secretly(t, o, protocol, func(_ *pipes, _ lines, client *http.Client, _ func() *stalling) {
			began := time.Now()
			res, err := send(t, client, protocol, "https://localhost/v1/messages", messages)
			if err != nil {
				t.Errorf("%s: %v", protocol, err)
				return
			}
			got, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if took := time.Since(began); res.StatusCode != http.StatusGatewayTimeout || took < 5*time.Minute || took > 6*time.Minute {
				t.Errorf("%s: nothing is done: after %v %s %s", protocol, took, res.Status, got)
			}
		})
	}
}
