package wire_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	w.Close()
	return out.Bytes()
}

func zstded(b []byte, o ...zstd.EOption) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, o...)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(b)
	w.Close()
	return out.Bytes()
}

// unpacked reads a body that is encoded in some ways.
func unpacked(ctx context.Context, o wire.Options, body []byte, encodings ...string) (got string, err *chat.Error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, e := range encodings {
		r.Header.Add("Content-Encoding", e)
	}
	b := o.Read(httptest.NewRecorder(), r, func(_ http.ResponseWriter, _ *http.Request, e *chat.Error) { err = e },
		func(v wire.Value) *chat.Error { got = string(v.Raw()); return nil })
	b.Close()
	return got, err
}

func TestEncodings(t *testing.T) {
	noise := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise)
	long, _ := json.Marshal(noise) // base64: it hardly compresses
	text := []byte(`{"a": "` + strings.Repeat("words and words, ", 5000) + `"}`)
	bomb := []byte(`"` + strings.Repeat("0", 64<<20) + `"`)
	o := wire.Options{MaxBody: 8 << 20}.WithDefaults()
	for _, tt := range []struct {
		name      string
		body      []byte
		encodings []string
		want      []byte
		kind      chat.ErrorKind
		says      string
	}{
		{"gzip", gzipped(text), []string{"gzip"}, text, 0, ""},
		{"x-gzip", gzipped(text), []string{"X-GZIP"}, text, 0, ""},
		{"zstd", zstded(text), []string{"zstd"}, text, 0, ""},
		{"zstd, best", zstded(long, zstd.WithEncoderLevel(zstd.SpeedBestCompression)), []string{"zstd"}, long, 0, ""},
		{"zstd in gzip", gzipped(zstded(text)), []string{"zstd, gzip"}, text, 0, ""},
		{"gzip in zstd, in two headers", zstded(gzipped(text)), []string{"gzip", "identity, zstd"}, text, 0, ""},
		{"two frames", append(zstded(text[:100]), zstded(text[100:])...), []string{"zstd"}, text, 0, ""},
		{"the wrong way round", zstded(gzipped(text)), []string{"zstd, gzip"}, nil, chat.Invalid, "is not valid gzip"},
		{"three times", gzipped(gzipped(gzipped(text))), []string{"gzip, gzip, gzip"}, nil, chat.Invalid, "compressed more than twice"},
		{"an unknown one", text, []string{"br"}, nil, chat.Invalid, "send the body as gzip, zstd or uncompressed"},
		{"cut gzip", gzipped(text)[:40], []string{"gzip"}, nil, chat.Invalid, "is not valid gzip"},
		{"cut zstd", zstded(text)[:40], []string{"zstd"}, nil, chat.Invalid, "is not valid zstd"},
		{"no gzip at all", text, []string{"gzip"}, nil, chat.Invalid, "is not valid gzip"},
		{"no zstd at all", text, []string{"zstd"}, nil, chat.Invalid, "is not valid zstd"},
		{"not JSON", gzipped([]byte("hello")), []string{"gzip"}, nil, chat.Invalid, "is not valid JSON"},
		{"a gzip bomb", gzipped(bomb), []string{"gzip"}, nil, chat.TooLarge, "larger than the limit of 8 MiB"},
		{"a zstd bomb", zstded(bomb), []string{"zstd"}, nil, chat.TooLarge, "larger than the limit of 8 MiB"},
		{"a bomb in a bomb", gzipped(gzipped(bomb)), []string{"gzip, gzip"}, nil, chat.TooLarge, "larger than the limit of 8 MiB"},
		{"a wide window", zstded(bytes.Repeat(long, 8), zstd.WithWindowSize(16<<20)), []string{"zstd"}, nil, chat.TooLarge, "a window of more than 8 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := unpacked(t.Context(), o, tt.body, tt.encodings...)
			switch {
			case tt.says == "" && (err != nil || got != string(tt.want)):
				t.Errorf("%d bytes, %v", len(got), err)
			case tt.says != "" && (err == nil || err.Kind != tt.kind || !strings.Contains(err.Msg, tt.says)):
				t.Errorf("error %#v, want %q", err, tt.says)
			}
			if n := o.Bodies.Held(); n != 0 {
				t.Errorf("%d bytes are held at the end", n)
			}
		})
	}
}

// TestUnpackedCounts: what becomes of a body counts as what is held, not what came.
func TestUnpackedCounts(t *testing.T) {
	o := wire.Options{MaxBody: 8 << 20, Bodies: wire.NewBodies(4 << 20)}.WithDefaults()
	body := gzipped([]byte(`"` + strings.Repeat("0", 3<<20) + `"`))
	held := func(inner func()) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Content-Encoding", "gzip")
		b := o.Read(httptest.NewRecorder(), r, func(_ http.ResponseWriter, _ *http.Request, e *chat.Error) { t.Error(e) },
			func(wire.Value) *chat.Error { return nil })
		inner()
		b.Close()
	}
	held(func() {
		if n := o.Bodies.Held(); n < 3<<20 {
			t.Errorf("%d bytes are held", n)
		}
		if _, err := unpacked(t.Context(), o, body, "gzip"); err == nil || err.Kind != chat.Overloaded {
			t.Errorf("a second one: %v", err)
		}
	})
}

// TestUnpackLeft: nothing is uncompressed for a client that has left.
func TestUnpackLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := wire.Options{}.WithDefaults()
	if _, err := unpacked(ctx, o, gzipped([]byte(`{}`)), "gzip"); err == nil {
		t.Error("it was read all the same")
	}
	if n := o.Bodies.Held(); n != 0 {
		t.Errorf("%d bytes are held at the end", n)
	}
}

func FuzzEncodings(f *testing.F) {
	f.Add(gzipped([]byte(`{"a": 1}`)), "gzip")
	f.Add(zstded([]byte(`{"a": 1}`)), "zstd")
	f.Add(zstded(gzipped([]byte(`{"a": 1}`))), "gzip, zstd")
	o := wire.Options{MaxBody: 1 << 20}.WithDefaults()
	f.Fuzz(func(t *testing.T, body []byte, encodings string) {
		if got, err := unpacked(t.Context(), o, body, encodings); err == nil && !json.Valid([]byte(got)) {
			t.Errorf("%q", got)
		}
		if n := o.Bodies.Held(); n != 0 {
			t.Errorf("%d bytes are held at the end", n)
		}
	})
}
