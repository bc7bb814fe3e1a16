//go:build linux

package hostile

import (
	"bytes"
	"compress/gzip"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// packers compress, by the name of the encoding.
var packers = map[string]func(w io.Writer) (io.WriteCloser, error){
	"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestSpeed) },
	"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithZeroFrames(true)) },
}

// pack compresses a body with n spaces before it.
func pack(packer func(io.Writer) (io.WriteCloser, error), body []byte, n int) []byte {
	var b bytes.Buffer
	w, err := packer(&b)
	if err != nil {
		panic(err)
	}
	for spaces := bytes.Repeat([]byte{' '}, 1<<20); n > 0; n -= len(spaces) {
		_, _ = w.Write(spaces[:min(n, len(spaces))]) // to a buffer
	}
	_, _ = w.Write(body)
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// packedAs is a request whose body is compressed, as its header says.
func packedAs(q request, encoding string, body []byte) request {
	q.body, q.header = body, map[string]string{"Content-Encoding": encoding}
	return q
}

// unpacks is for bodies that are large only when they are uncompressed: they take what one takes that comes so.
func unpacks(r *row) { r.memory = bodyTimes*largestBody + floorPeak }

// largestBody is how large a body may be at most.
const largestBody = 64 << 20

// packed are compressed bodies. A size is that of the body, not of what is sent.
func packed() (out []row) {
	const mb = 1 << 20
	for _, name := range []string{"gzip", "zstd"} {
		packer := packers[name]
		whole := func(q request, n int) request { return packedAs(q, name, pack(packer, q.body, n)) }
		out = slices.Concat(out,
			each(name+" of 20 MB of spaces", 20*mb, func(a api, n int) request { return whole(a.say("Hi", ""), n) }, unpacks),
			each(name+" that unfolds to 1 GB", 1<<30, func(a api, n int) request { return whole(a.say("Hi", ""), n) }, unpacks, refused),
			each(name+" in "+name+" that unfolds to 1 GB", 1<<30, func(a api, n int) request {
				q := a.say("Hi", "")
				return packedAs(q, name+", "+name, pack(packer, pack(packer, q.body, n), 0))
			}, unpacks, refused),
			each(name+" three times", mb, func(a api, n int) request {
				q := a.say("Hi", "")
				return packedAs(q, name+", "+name+", "+name, pack(packer, pack(packer, pack(packer, q.body, n), 0), 0))
			}, refused),
			each(name+" of 4 MB, cut", 4*mb, func(a api, n int) request {
				q := whole(a.say(letters(n), ""), 0)
				q.body = q.body[:len(q.body)*9/10]
				return q
			}, unpacks, refused),
			each(name+" in the header alone", mb, func(a api, n int) request {
				q := a.say(letters(n), "")
				return packedAs(q, name, q.body)
			}, refused),
			each(name+" of nothing, again and again", 200_000, func(a api, n int) request {
				q := a.say("Hi", "")
				return packedAs(q, name, append(bytes.Repeat(pack(packer, nil, 0), n), pack(packer, q.body, 0)...))
			}),
		)
		at := len(out)
		out = append(out, each(name+" bodies at once that unfold to 1 GB", 8, func(a api, _ int) request { return whole(a.say("Hi", ""), 1<<30) }, unpacks, refused)...)
		for i := range out[at:] {
			r := &out[at+i]
			f := r.send
			r.send = func(n int) []request { return slices.Repeat(f(0), n) }
		}
	}
	far := func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithWindowSize(64*mb)) }
	return slices.Concat(out,
		each("zstd, as gzip", mb, func(a api, n int) request {
			q := a.say("Hi", "")
			return packedAs(q, "zstd", pack(packers["gzip"], q.body, n))
		}, refused),
		each("zstd with a window of 64 MB", 20*mb, func(a api, n int) request {
			q := a.say("Hi", "")
			return packedAs(q, "zstd", pack(far, q.body, n))
		}, refused))
}
