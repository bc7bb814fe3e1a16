package wire

import (
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"hearth/internal/chat"
)

const (
	bodyTimeout  = 2 * time.Minute // for the whole body to arrive
	drainTimeout = 5 * time.Second // for what is left of a refused body
)

// Read hands the body of a POST to decode, which must keep nothing of its bytes but images, which go when the prompt is made. It
// returns the body's place among Bodies, which the caller closes, or nil: then it has answered r with what is wrong.
func (o Options) Read(w http.ResponseWriter, r *http.Request, fail ErrorWriter, decode func(Value) *chat.Error) *Body {
	v, body, err := o.parseBody(w, r)
	if err == nil {
		err = decode(v)
	}
	if err != nil {
		fail(w, r, err)
		body.Close()
		return nil
	}
	return body
}

// parseBody reads a body that is application/json, which also keeps web pages from posting without a CORS preflight.
func (o Options) parseBody(w http.ResponseWriter, r *http.Request) (Value, *Body, *chat.Error) {
	if m, ok := r.Body.(*Message); ok {
		return m.parse(r)
	}
	if e := checkMediaType(r.Header); e != nil {
		return Value{}, nil, e
	}
	packed, e := encodings(r.Header)
	if e != nil {
		return Value{}, nil, e
	}
	rc := http.NewResponseController(w)
	if r.ContentLength > o.MaxBody {
		drain(rc, r.Body, o.MaxBody)
		return Value{}, nil, tooLarge(o.MaxBody)
	}
	body := &Body{of: o.Bodies}
	raw, err := ReadBody(w, func() ([]byte, error) { return body.read(r.Body, r.ContentLength, o.MaxBody) })
	if err == nil {
		var v Value
		if raw, e = o.unpack(r.Context(), raw, body, packed); e == nil {
			v, e = parse(r.Context(), raw)
		}
		return v, body, e
	}
	body.Close()
	e = o.unread(err)
	if e.Bound != "" {
		drain(rc, r.Body, o.MaxBody)
	}
	return Value{}, nil, e
}

// LeaveBody bounds the time that net/http, before it replies, waits for what a handler leaves of a body.
func LeaveBody(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTimeout))
}

// ReadBody has read take the whole body of a request, in a time that is bounded; where not all of it comes, the bound stays for
// what is left. Not every ResponseWriter has deadlines (a test recorder); then it is unbounded.
func ReadBody(w http.ResponseWriter, read func() ([]byte, error)) ([]byte, error) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	raw, err := read()
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{})
	}
	return raw, err
}

// Unread is what a client is told of a body that did not come whole.
func Unread(err error) *chat.Error {
	return &chat.Error{Kind: chat.Invalid, Msg: "the request body could not be read to its end", Err: err}
}

// unread is what a client is told of a body that was not read to its end.
func (o Options) unread(err error) *chat.Error {
	switch err {
	case errLarge:
		return tooLarge(o.MaxBody)
	case errFull:
		return o.Bodies.full()
	}
	return Unread(err)
}

func tooLarge(limit int64) *chat.Error {
	return &chat.Error{Kind: chat.TooLarge, Bound: chat.BoundBody, Msg: "the request body is larger than the limit of " + byteCount(limit)}
}

func byteCount(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// drain reads on for a while: a client that still writes when the connection closes sees a reset instead of the reply.
func drain(rc *http.ResponseController, body io.Reader, limit int64) {
	_ = rc.SetReadDeadline(time.Now().Add(drainTimeout))
	_, _ = io.CopyN(io.Discard, body, limit)
}

func checkMediaType(h http.Header) *chat.Error {
	got := h.Get("Content-Type")
	if t, _, err := mime.ParseMediaType(got); err != nil || t != "application/json" {
		return &chat.Error{Kind: chat.Invalid, Code: CodeMediaType,
			Msg: "Content-Type must be application/json, got " + Quote(got)}
	}
	return nil
}
