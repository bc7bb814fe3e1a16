package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// TestMessage: a message is read as a body is, and counted until it is let go of; what is wrong with it is its answer.
func TestMessage(t *testing.T) {
	o := wire.Options{MaxBody: 100, Bodies: wire.NewBodies(1 << 20)}.WithDefaults()
	ask := func(m *wire.Message) (got string, status int) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Body = m
		w := httptest.NewRecorder()
		body := o.Read(w, r, fail, func(v wire.Value) *chat.Error {
			got = string(v.Raw())
			return nil
		})
		body.Close()
		return got, w.Code
	}
	for _, tt := range []struct {
		text   string
		more   bool
		status int
	}{
		{`{"a":1}`, false, 200}, {strings.Repeat(" ", 101), false, http.StatusTeapot}, {strings.Repeat(" ", 300), true, http.StatusTeapot}, {"{", false, http.StatusTeapot},
	} {
		m := o.ReadMessage(strings.NewReader(tt.text), func() {})
		if got, status := ask(m); status != tt.status || m.More() != tt.more || status == 200 && got != tt.text {
			t.Errorf("%.20q: %d %q, more: %t", tt.text, status, got, m.More())
		}
		if n, err := m.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Error(n, err)
		}
		m.Close()
	}
	m := o.ReadMessage(strings.NewReader("{}"), func() {})
	if o.Bodies.Held() == 0 {
		t.Error("a message that waits does not count")
	}
	m.Refuse(&chat.Error{Kind: chat.Invalid, Msg: "no"})
	if _, status := ask(m); status != http.StatusTeapot {
		t.Error(status)
	}
	if m := o.ReadMessage(iotest.ErrReader(errors.New("gone")), func() {}); m != nil {
		t.Error("half a message is one")
	}
	if n := o.Bodies.Held(); n != 0 {
		t.Errorf("%d bytes are held", n)
	}
}
