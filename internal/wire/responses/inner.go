package responses

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"hearth/internal/wire"
)

// innerReply is the reply to a call that comes without a connection of its own, kept for who made the call.
type innerReply struct {
	header http.Header
	status int // 0: nothing was written
	body   bytes.Buffer
	cut    bool // the handler would have closed its connection
}

func (w *innerReply) Header() http.Header { return w.header }

func (w *innerReply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *innerReply) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// inner has the server answer a POST of body as if it had come by itself, from the sender of outer to the same path, and waits
// until it is answered. ctx is that of the call.
func (h handler) inner(ctx context.Context, outer *http.Request, body []byte) *innerReply {
	return h.innerFrom(ctx, outer, io.NopCloser(bytes.NewReader(body)), int64(len(body)))
}

// innerFrom is inner for a body of so many bytes, -1 if nobody knows.
func (h handler) innerFrom(ctx context.Context, outer *http.Request, body io.ReadCloser, length int64) (w *innerReply) {
	w = &innerReply{header: http.Header{}}
	r := outer.Clone(ctx)
	r.Method, r.Body, r.ContentLength, r.TransferEncoding = http.MethodPost, body, length, nil
	for name := range r.Header {
		if strings.HasPrefix(name, "Sec-Websocket-") {
			r.Header.Del(name)
		}
	}
	for _, name := range []string{"Connection", "Upgrade", "Content-Encoding"} {
		r.Header.Del(name)
	}
	r.Header.Set("Content-Type", "application/json")
	defer func() { // this is how a handler closes its connection, and there is none
		p := recover()
		if p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
		w.cut = p != nil
	}()
	h.Server.ServeHTTP(w, r)
	return w
}

// send answers with the reply.
func (w *innerReply) send(to http.ResponseWriter) {
	if w.status == 0 {
		panic(http.ErrAbortHandler)
	}
	h := to.Header()
	for name, values := range w.header {
		if h[name] == nil { // the request has an id of its own
			h[name] = values
		}
	}
	to.WriteHeader(w.status)
	wire.Write(to, w.body.Bytes())
}
