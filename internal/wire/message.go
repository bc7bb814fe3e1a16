package wire

import (
	"io"
	"net/http"
	"time"

	"hearth/internal/chat"
)

// Message is the body of a call that did not come by a request of its own: it has been read already, within the limits of bodies.
// It is the Body of the request that Options.Server is given.
type Message struct {
	body *Body
	raw  []byte
	err  *chat.Error // in the place of raw
	more bool        // there is more of it than is read
}

// ReadMessage reads a message. cut is called if that takes too long, and must end the read. nil: r broke off.
func (o Options) ReadMessage(r io.Reader, cut func()) *Message {
	late := time.AfterFunc(bodyTimeout, cut)
	defer late.Stop()
	m := &Message{body: &Body{of: o.Bodies}}
	raw, err := m.body.read(r, -1, o.MaxBody)
	if err == nil {
		m.raw = raw
		return m
	}
	m.body.Close()
	if m.err = o.unread(err); m.err.Bound == "" {
		return nil
	}
	_, err = io.CopyN(io.Discard, r, o.MaxBody)
	m.more = err == nil
	return m
}

// More tells that nothing can be read behind the message, because it was too long.
func (m *Message) More() bool { return m.more }

// Refuse has the message answered with an error.
func (m *Message) Refuse(err *chat.Error) {
	m.Close()
	m.raw, m.err = nil, err
}

// parse is parseBody for a message. Who calls has the place among Bodies from then on.
func (m *Message) parse(r *http.Request) (Value, *Body, *chat.Error) {
	if m.err != nil {
		return Value{}, nil, m.err
	}
	raw := m.raw
	m.raw = nil
	v, err := parse(r.Context(), raw)
	return v, m.body, err
}

// Read is there because a Body has it; what is read from a message, parse takes.
func (m *Message) Read([]byte) (int, error) { return 0, io.EOF }

// Close gives the place among Bodies back.
func (m *Message) Close() error {
	m.body.Close()
	return nil
}
