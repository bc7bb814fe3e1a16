package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
)

// A frame is four bytes with the length of what follows (little-endian), a byte that says what it is, and its contents: numbers
// as in encoding/binary's Uvarint, texts and lists after their lengths.
const (
	version    = 6
	headerSize = 4
	maxFrame   = 64 << 20
	fullFrame  = 1 << 20 // from here on, updates go on in another frame
	// partNumbers is about how many numbers of an image go in one frame, and before other frames may go: some milliseconds.
	partNumbers = 1 << 20
)

type kind byte

const (
	kindGreeting kind = 1 + iota // the first, in both directions: greeting, as JSON
	kindPing
	kindPong

	// To the worker process.
	kindPatches    // answer to kindOpen: its number, whether more follow, error, some of the numbers of the patches
	kindPrompt     // stream, prompt
	kindCancel     // stream
	kindConstraint // stream, constraint: after every token of a prompt with Constrain
	kindCall       // call, method, arguments
	kindDrop       // call: nobody waits for its reply
	kindEnd        // no more: write caches and end
	kindGrown      // answer to kindGrow, memory, what it lacks as JSON
	kindShrink     // bytes that others need of what the share has to spare
	kindWake       // memory that was lacking may be there

	// From the worker process.
	kindLoaded  // facts, opaque
	kindFailed  // failure, as JSON
	kindUpdates // of streams, any number
	kindReply   // call, whether more follow, error, result
	kindWarn    // a line
	kindClosed  // the last: how ending went
	kindStuck   // a step does not end: for how many nanoseconds
	kindGrow    // least and most memory that the share is to have more; one at a time
	kindGive    // memory of the share that comes back
	kindSpare   // bytes of the share that only the prompt cache holds
	kindOpen    // a number, stream, image: its patches are needed
	kindShut    // that number: nobody waits for them
	kindDrawn   // stream, number and id of a token whose constraint the step waits for; an update brings it, too

	lastKind = kindDrawn
)

func (k kind) String() string {
	return [...]string{"?", "greeting", "ping", "pong", "patches", "prompt", "cancel", "constraint", "call", "drop", "end", "grown", "shrink", "wake",
		"loaded", "failed", "news", "reply", "warn", "closed", "stuck", "grow", "give", "spare", "open", "shut", "drawn"}[min(k, lastKind)]
}

// begin starts a frame at the end of b, finish closes it.
func begin(b []byte, k kind) []byte { return append(b, 0, 0, 0, 0, byte(k)) }

func finish(b []byte, start int) []byte {
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-headerSize))
	return b
}

// receiver reads frames. What read gives is valid until the next one.
type receiver struct {
	r   *bufio.Reader
	buf []byte
}

func newReceiver(r io.Reader) *receiver { return &receiver{r: bufio.NewReaderSize(r, 1<<16)} }

func (r *receiver) read() (kind, []byte, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n < 1 || n > maxFrame {
		return 0, nil, fmt.Errorf("%w: a length of %d", errFrame, n)
	}
	if cap(r.buf) > fullFrame && n < fullFrame {
		r.buf = nil // it had grown for a long prompt
	}
	// The buffer grows as bytes come, so a wrong length costs no memory.
	r.buf = r.buf[:0]
	for len(r.buf) < n {
		part := min(n-len(r.buf), fullFrame)
		at := len(r.buf)
		r.buf = slices.Grow(r.buf, part)[:at+part]
		if _, err := io.ReadFull(r.r, r.buf[at:]); err != nil {
			return 0, nil, err
		}
	}
	k := kind(r.buf[0])
	if k == 0 || k > lastKind {
		return 0, nil, fmt.Errorf("%w: kind %d is not known", errFrame, k)
	}
	return k, r.buf[1:], nil
}

// outbox collects frames and writes all there are at once. put never waits; callers bound what they put.
type outbox struct {
	wake chan struct{}
	more func(b []byte) []byte // appends frames before every write; nil: none

	mu     sync.Mutex
	buf    []byte
	closed bool
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// put adds a frame, the contents of which fill appends. It reports whether the frame is short enough to be sent.
func (o *outbox) put(k kind, fill func(b []byte) []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return true
	}
	start := len(o.buf)
	o.buf = begin(o.buf, k)
	if fill != nil {
		o.buf = fill(o.buf)
	}
	if len(o.buf)-start > maxFrame {
		o.buf = o.buf[:start]
		return false
	}
	o.buf = finish(o.buf, start)
	o.signal()
	return true
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close makes run write what there is and end.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.signal()
}

// run writes to w until close, or until that fails.
func (o *outbox) run(w io.Writer) error {
	var spare []byte
	defer o.close()
	for range o.wake {
		o.mu.Lock()
		b, closed := o.buf, o.closed
		o.buf = spare[:0]
		o.mu.Unlock()
		if o.more != nil {
			b = o.more(b)
		}
		if len(b) > 0 {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		if spare = b; cap(b) > fullFrame {
			spare = nil
		}
		if closed {
			return nil
		}
	}
	return nil
}

// errFrame is what is wrong with a frame.
var errFrame = errors.New("what the other process says makes no sense")

// appendInt encodes a number that may be negative.
func appendInt(b []byte, n int) []byte { return binary.AppendVarint(b, int64(n)) }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendFloat(b []byte, f float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendIDs(b []byte, ids []int32) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(uint32(id)))
	}
	return b
}

// contents takes a frame apart. After bad everything is zero.
type contents struct {
	b   []byte
	bad bool
}

func (c *contents) fail() {
	c.bad, c.b = true, nil
}

// end is an error unless everything was read and made sense.
func (c *contents) end() error {
	if c.bad || len(c.b) > 0 {
		return errFrame
	}
	return nil
}

func (c *contents) uint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *contents) int() int {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return int(v)
}

// count is the length of a list whose elements have at least so many bytes.
func (c *contents) count(size int) int {
	n := c.uint()
	if n > uint64(len(c.b)/size) {
		c.fail()
		return 0
	}
	return int(n)
}

func (c *contents) take(n int) []byte {
	if n > len(c.b) {
		c.fail()
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *contents) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *contents) bool() bool { return c.byte() == 1 }

func (c *contents) float() float32 {
	if b := c.take(4); b != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
	return 0
}

// bytes are a copy.
func (c *contents) bytes() []byte { return slices.Clone(c.take(c.count(1))) }

func (c *contents) text() string { return string(c.take(c.count(1))) }

// id is a token id.
func (c *contents) id() int32 {
	v := c.uint()
	if v > math.MaxUint32 {
		c.fail()
	}
	return int32(uint32(v))
}

// ids is nil for an empty list.
func (c *contents) ids() []int32 {
	n := c.count(1)
	if n == 0 {
		return nil
	}
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = c.id()
	}
	return ids
}
