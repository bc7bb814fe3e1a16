package wire

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"hearth/internal/chat"
)

// Bodies bounds the bytes of request bodies that are held at once, each from its first byte until the prompt is made of
// it. What a client promises does not count, only what has come.
type Bodies struct {
	most int64
	// Huge, if set, is told when the first body of more than hugeBody is held, and when none is any more. It must not wait.
	Huge func(held bool)

	mu    sync.Mutex
	held  int64 // bytes of all bodies
	large int64 // of those, bytes beyond the first smallBody of each
	huge  int   // bodies of more than hugeBody
}

// hugeBody is a size that only the largest bodies of agents come near; what is made of one takes much memory.
const hugeBody = 1 << 20

// smallBody is more than the body of a conversation that begins has. A part of the bytes is kept for the beginnings of bodies,
// so that clients with large ones, which may come slowly, do not shut out all the others.
const smallBody = 64 << 10

// forLarge is the share of the bytes that may be beyond the beginnings of bodies.
func (b *Bodies) forLarge() int64 { return b.most / 4 * 3 }

// NewBodies makes a bound of so many bytes.
func NewBodies(most int64) *Bodies { return &Bodies{most: most} }

// Most is the bound.
func (b *Bodies) Most() int64 { return b.most }

// Held is how many bytes are held now.
func (b *Bodies) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// grow makes a body of from bytes one of to bytes. false: there is no room for that now. A body that is alone always has.
func (b *Bodies) grow(from, to int64) bool {
	large := max(to-smallBody, 0) - max(from-smallBody, 0)
	b.mu.Lock()
	defer b.mu.Unlock()
	small := to - from - large
	if b.held > from && (small > 0 && b.held-b.large+small > b.most-b.forLarge() || large > 0 && b.large+large > b.forLarge()) {
		return false
	}
	b.held += to - from
	b.large += large
	b.count(from, to)
	return true
}

// release lets go of a body.
func (b *Bodies) release(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= bytes
	b.large -= max(bytes-smallBody, 0)
	b.count(bytes, 0)
}

// count keeps the number of huge bodies as one of from bytes becomes one of to bytes. Called with mu held.
func (b *Bodies) count(from, to int64) {
	before := b.huge
	if from > hugeBody {
		b.huge--
	}
	if to > hugeBody {
		b.huge++
	}
	if b.Huge != nil && (before == 0) != (b.huge == 0) {
		b.Huge(b.huge > 0)
	}
}

// full is the answer to a body that there is no room for. Like that of a full queue it asks the client to come back.
func (b *Bodies) full() *chat.Error {
	return &chat.Error{Kind: chat.Overloaded, RetryAfter: time.Second, Bound: chat.BoundBodies,
		Msg: fmt.Sprintf("the server is busy: the requests that it reads hold as many bytes as its flag --max-request-bytes lets, %s; try again later", byteCount(b.most))}
}

// Body is the place of one request's body among Bodies. It is held for what was made of the bytes after they are gone.
type Body struct {
	of    *Bodies
	bytes int64
}

// Close gives the place back. Closing twice, and closing nil, does nothing.
func (b *Body) Close() {
	if b == nil {
		return
	}
	b.of.release(b.bytes)
	b.bytes = 0
}

// forget gives back a part of the place: what was made of those bytes is all that is needed.
func (b *Body) forget(bytes int64) {
	b.of.grow(b.bytes, b.bytes-bytes)
	b.bytes -= bytes
}

// Memory for a body is taken as it comes: a little at first, then several times as much as there is, and what was promised
// once that is not far.
const (
	firstBytes = 4 << 10
	growth     = 4
)

var (
	errFull  = errors.New("no room for the body")
	errLarge = errors.New("larger than the limit")
)

// read reads all of r, of which promised bytes are to come (-1: nobody knows), and counts what is held for it beside what is held
// already.
func (b *Body) read(r io.Reader, promised, limit int64) ([]byte, error) {
	var buf []byte
	before := b.bytes
	for {
		if len(buf) == cap(buf) {
			size := min(max(growth*int64(cap(buf)), firstBytes), limit+1)
			if whole := promised + 1; whole > int64(len(buf)) && whole <= 2*size { // one more shows the end
				size = whole
			}
			if !b.of.grow(b.bytes, before+size) {
				return nil, errFull
			}
			b.bytes = before + size
			buf = append(make([]byte, 0, size), buf...)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, errLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}
