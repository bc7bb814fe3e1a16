package responses

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"hearth/internal/wire"
)

// TestInner: a call without a connection comes from the same sender and to the same path as another, with a body and a context of
// its own; one that would close its connection just ends.
func TestInner(t *testing.T) {
	type key struct{}
	var got *http.Request
	var body []byte
	h := handler{Options: wire.Options{Server: wire.Alone{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X", "y")
		if len(body) == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body)
	})}}}
	outer := httptest.NewRequest("GET", "http://here/openai/v1/responses?api-version=1", nil)
	for name, value := range map[string]string{"Authorization": "Bearer k", "Origin": "http://page", "Upgrade": "websocket", "Connection": "Upgrade",
		"Sec-WebSocket-Key": "x", "Content-Encoding": "zstd", "Session-Id": "s"} {
		outer.Header.Set(name, value)
	}
	w := h.inner(context.WithValue(t.Context(), key{}, 1), outer, []byte(`{"input": "Hi"}`))
	if w.status != http.StatusTeapot || w.cut || w.body.String() != `{"input": "Hi"}` || w.header.Get("X") != "y" {
		t.Errorf("%+v", w)
	}
	if got.Method != "POST" || got.Host != "here" || got.URL.String() != outer.URL.String() || got.RemoteAddr != outer.RemoteAddr || got.Context().Value(key{}) != 1 ||
		got.ContentLength != int64(len(body)) {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{"Authorization": "Bearer k", "Origin": "http://page", "Session-Id": "s", "Content-Type": "application/json",
		"Upgrade": "", "Connection": "", "Sec-Websocket-Key": "", "Content-Encoding": ""} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
	if w := h.inner(t.Context(), outer, nil); w.status != 0 || !w.cut || w.body.Len() > 0 || outer.Header.Get("Upgrade") == "" {
		t.Errorf("%+v", w)
	}
}
