package openai

import (
	"net/http"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// discard is a reply that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}

// BenchmarkStream is what a streamed token costs from its event to the flushed frame.
func BenchmarkStream(b *testing.B) {
	s := wire.NewStream(discard{http.Header{}}, wire.DefaultKeepAlive, pingFrame, func() {})
	defer s.Close()
	enc := newStreamEncoder(s, reply{id: "chatcmpl-0123456789abcdef01234567", model: "demo", fingerprint: "hearth-dev", choices: 1}, false)
	b.ReportAllocs()
	for b.Loop() {
		enc.Event(&chat.Event{Kind: chat.EventText, Text: " token"})
		s.Flush()
	}
}
