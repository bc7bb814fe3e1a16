package wire_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

const ping = ": ping\n\n"

// frames is a StreamEncoder that writes events as their text.
type frames struct{ s *wire.Stream }

func (f frames) Begin(chat.Model) {}
func (f frames) Event(e *chat.Event) {
	if e.Text == "bug" {
		panic(e.Text)
	}
	f.s.Event("", []byte(e.Text))
}
func (f frames) Done(e *chat.Error) {
	if e != nil {
		f.s.Event("error", []byte(e.Msg))
		return
	}
	f.s.Event("", []byte("done"))
}

func fail(w http.ResponseWriter, _ *http.Request, e *chat.Error) {
	http.Error(w, e.Error(), http.StatusTeapot)
}

func text(s string) wiretest.Step {
	return wiretest.Step{Event: chat.Event{Kind: chat.EventText, Text: s}}
}

func finish() wiretest.Step {
	return wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop}}
}

func after(d time.Duration, s wiretest.Step) wiretest.Step {
	s.Before = func(ctx context.Context) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	return s
}

func run(t *testing.T, w http.ResponseWriter, ctx context.Context, steps ...wiretest.Step) *wire.Info {
	info := &wire.Info{}
	r := httptest.NewRequestWithContext(wire.WithInfo(ctx, info), http.MethodPost, "/", nil)
	o := wiretest.Options(wiretest.New(steps...)).WithDefaults()
	o.Stream(w, r, &chat.Request{}, fail, ping, func(s *wire.Stream) wire.StreamEncoder { return frames{s} })
	return info
}

// The keep-alive measures silence on the wire: before the first event, between events, and anew after each.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		run(t, w, t.Context(), after(11*time.Second, text("a")), after(4*time.Second, text("b")), after(6*time.Second, text("c")), finish())
		want := ping + ping + "data: a\n\ndata: b\n\n" + ping + "data: c\n\ndata: \n\ndata: done\n\n"
		if got := w.Body.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			t.Errorf("status %d, headers %v", w.Code, w.Header())
		}
		time.Sleep(time.Minute)
		if got := w.Body.String(); got != want {
			t.Errorf("wrote after the end: %q", got)
		}
	})
}

// deadlines notes write deadlines, as times from the beginning; a cleared one is 0.
type deadlines struct {
	*httptest.ResponseRecorder
	began time.Time
	set   []time.Duration
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		d.set = append(d.set, 0)
	} else {
		d.set = append(d.set, t.Sub(d.began))
	}
	return nil
}

// Every write has most of a minute; the deadline is not set anew for each of them, and not left behind.
func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder(), began: time.Now()}
		run(t, w, t.Context(), after(time.Second, text("a")), after(time.Second, text("b")), after(4500*time.Millisecond, text("c")), after(time.Second, finish()))
		want := []time.Duration{61 * time.Second, 66500 * time.Millisecond, 0}
		if !slices.Equal(w.set, want) {
			t.Errorf("deadlines %v, want %v", w.set, want)
		}
	})
}

func TestErrorBeforeFirstByteKeepsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := wiretest.Step{Err: &chat.Error{Kind: chat.Overloaded, Msg: "full"}}
		w := httptest.NewRecorder()
		run(t, w, t.Context(), after(time.Second, broken))
		if w.Code != http.StatusTeapot {
			t.Errorf("status %d, body %q", w.Code, w.Body)
		}
		w = httptest.NewRecorder()
		run(t, w, t.Context(), after(6*time.Second, broken)) // a keep-alive went out
		if got, want := w.Body.String(), ping+"event: error\ndata: full\n\n"; w.Code != 200 || got != want {
			t.Errorf("status %d, got %q, want %q", w.Code, got, want)
		}
	})
}

func TestPanicOfGeneratorEndsStream(t *testing.T) {
	w := httptest.NewRecorder()
	boom := text("b")
	boom.Before = func(context.Context) { panic("boom") }
	info := run(t, w, t.Context(), text("a"), boom)
	if got, want := w.Body.String(), "data: a\n\nevent: error\ndata: internal error while generating\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var e *chat.Error
	if !errors.As(info.Err, &e) || e.Err == nil || !strings.Contains(e.Err.Error(), "boom") {
		t.Errorf("logged %v", info.Err)
	}
}

// A shutdown ends a running stream with the error given as the context's cause; a client that left gets nothing.
// A panic of the encoder too: after the first byte as an event, and in any case for the server to log.
func TestPanicOfEncoderEndsStream(t *testing.T) {
	for _, tt := range []struct {
		steps []wiretest.Step
		want  string
	}{
		{[]wiretest.Step{text("a"), text("bug")}, "data: a\n\nevent: error\ndata: internal error\n\n"},
		{[]wiretest.Step{text("bug")}, ""},
	} {
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != "bug" {
					t.Errorf("recovered %v", p)
				}
			}()
			run(t, w, t.Context(), tt.steps...)
		}()
		if got := w.Body.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// A cut closes the connection without a word.
func TestCut(t *testing.T) {
	w := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("recovered %v", p)
		}
		if got := w.Body.String(); got != "data: a\n\n" {
			t.Errorf("got %q", got)
		}
	}()
	run(t, w, t.Context(), text("a"), wiretest.Step{Err: chat.ErrCut})
}

func TestCancelledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := &chat.Error{Kind: chat.Overloaded, Msg: "shutting down"}
		for _, tc := range []struct {
			cause error
			want  string
		}{{cause, "data: a\n\nevent: error\ndata: shutting down\n\n"}, {nil, "data: a\n\n"}} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(tc.cause) })
			w := httptest.NewRecorder()
			run(t, w, ctx, text("a"), after(time.Hour, text("b")))
			if got := w.Body.String(); got != tc.want {
				t.Errorf("cause %v: got %q, want %q", tc.cause, got, tc.want)
			}
		}
	})
}

// brokenPipe fails every write after the first n.
type brokenPipe struct {
	*httptest.ResponseRecorder
	n int
}

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.n--; b.n < 0 {
		return 0, errors.New("broken pipe")
	}
	return b.ResponseRecorder.Write(p)
}

// A failed write cancels the generation, also when the keep-alive is what notices it.
func TestWriteErrorCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := &brokenPipe{httptest.NewRecorder(), 1}
		info := run(t, w, t.Context(), text("a"), after(time.Hour, text("b")))
		if took := time.Since(began); took != wire.DefaultKeepAlive {
			t.Errorf("ended after %v", took)
		}
		if got := w.Body.String(); got != "data: a\n\n" {
			t.Errorf("wrote %q", got)
		}
		if info.Err == nil {
			t.Error("nothing logged")
		}
	})
}

// With Frame the events are handed over one by one, as they are; an error of it ends the generation, and a call that fails before
// its first event is answered as ever.
func TestFrame(t *testing.T) {
	var got []string
	o := wiretest.Options(wiretest.New(text("a"), text("b"), finish())).WithDefaults()
	o.Frame = func(data []byte) error {
		got = append(got, string(data))
		if len(got) == 3 {
			return errors.New("nobody listens")
		}
		return nil
	}
	ask := func(o wire.Options) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		o.Stream(w, httptest.NewRequest(http.MethodPost, "/", nil), &chat.Request{}, fail, ping,
			func(s *wire.Stream) wire.StreamEncoder { return frames{s} })
		return w
	}
	w := ask(o)
	if want := []string{"a", "b", ""}; !slices.Equal(got, want) || w.Body.Len() > 0 || w.Code != http.StatusOK {
		t.Errorf("got %q and %d %q, want %q", got, w.Code, w.Body, want)
	}
	got = nil
	o.Models = wiretest.New(wiretest.Step{Err: &chat.Error{Kind: chat.Invalid, Msg: "bad"}})
	if w := ask(o); w.Code != http.StatusTeapot || len(got) > 0 {
		t.Errorf("got %d and %q", w.Code, got)
	}
}
