package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"hearth/internal/chat"
)

const (
	// maxEncodings bounds how often a body is compressed.
	maxEncodings = 2
	// maxWindow bounds how far back a zstd body refers, in bytes, which is the memory that reading it takes. Encoders at their
	// usual levels stay below it.
	maxWindow = 8 << 20
)

// encodings are how the body of a request is compressed, in the order in which that was done.
func encodings(h http.Header) ([]string, *chat.Error) {
	var all []string
	for _, name := range strings.Split(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "", "identity":
			continue
		case "x-gzip":
			name = "gzip"
		case "gzip", "zstd":
		default:
			return nil, &chat.Error{Kind: chat.Invalid, Code: CodeMediaType,
				Msg: "Content-Encoding " + Quote(name) + " is not supported; send the body as gzip, zstd or uncompressed"}
		}
		if all = append(all, name); len(all) > maxEncodings {
			return nil, &chat.Error{Kind: chat.Invalid, Code: CodeMediaType, Msg: "the body is compressed more than twice; once is enough"}
		}
	}
	return all, nil
}

// unpacking has a place for every body that is being uncompressed. That takes a window of memory and a processor each, but no
// waiting for a client: the compressed body is there by then.
var unpacking = make(chan struct{}, runtime.GOMAXPROCS(0))

// unpack undoes encodings, the last first. What it makes of a body is bounded and counted like a body that was not compressed.
func (o Options) unpack(ctx context.Context, raw []byte, body *Body, encodings []string) ([]byte, *chat.Error) {
	if len(encodings) == 0 {
		return raw, nil
	}
	select {
	case unpacking <- struct{}{}:
		defer func() { <-unpacking }()
	case <-ctx.Done():
		return nil, asError(ctx, ctx.Err())
	}
	for _, name := range slices.Backward(encodings) {
		packed := body.bytes
		r, err := unpacker(name, raw)
		var out []byte
		if err == nil {
			out, err = body.read(whileWanted{ctx, r}, -1, o.MaxBody)
			r.Close()
		}
		body.forget(packed)
		switch {
		case err == nil:
		case errors.Is(err, errLarge):
			return nil, tooLarge(o.MaxBody)
		case errors.Is(err, errFull):
			return nil, o.Bodies.full()
		case ctx.Err() != nil:
			return nil, asError(ctx, ctx.Err())
		case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return nil, &chat.Error{Kind: chat.TooLarge, Bound: chat.BoundBody, Err: err,
				Msg: "the zstd body needs a window of more than " + byteCount(maxWindow) + "; compress it at a usual level"}
		default:
			return nil, &chat.Error{Kind: chat.Invalid, Msg: "the request body is not valid " + name, Err: err}
		}
		raw = out
	}
	return raw, nil
}

func unpacker(name string, raw []byte) (io.ReadCloser, error) {
	if name == "gzip" {
		return gzip.NewReader(bytes.NewReader(raw))
	}
	d, err := zstd.NewReader(bytes.NewReader(raw), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// whileWanted reads as long as somebody waits for it.
type whileWanted struct {
	ctx context.Context
	io.Reader
}

func (r whileWanted) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}
