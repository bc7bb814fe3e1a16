package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	mostEvent = 1 << 20  // bytes of an event of a stream
	mostReply = 64 << 20 // bytes of a reply
)

// events reads a stream of server-sent events, as the HTML standard has them: lines end in CR, LF or both, an empty one ends an
// event, and only data counts here. Its methods belong to one goroutine.
type events struct {
	in   *bufio.Reader
	cr   bool // the last line ended in CR: an LF behind it belongs to it
	line []byte
	data []byte
}

func newEvents(r io.Reader) *events {
	e := &events{in: bufio.NewReader(io.LimitReader(r, mostReply))}
	if mark, err := e.in.Peek(1); err == nil && mark[0] == 0xef { // of the order of bytes, before everything else
		if mark, err := e.in.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
			_, _ = e.in.Discard(3) // they were seen
		}
	}
	return e
}

// next is the data of the next event that has any, good until the next call; io.EOF behind the last. An event that the stream
// ends in counts: not every server sends the empty line.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	some := false
	for {
		line, err := e.readLine()
		if value, ok := bytes.CutPrefix(line, []byte("data")); ok && (len(value) == 0 || value[0] == ':') {
			if some {
				e.data = append(e.data, '\n')
			}
			value = bytes.TrimPrefix(value, []byte(":"))
			e.data, some = append(e.data, bytes.TrimPrefix(value, []byte(" "))...), true
		}
		switch {
		case len(e.data) > mostEvent:
			return nil, errLongEvent
		case err != nil && (!some || !errors.Is(err, io.EOF)):
			return nil, err
		case some && (len(line) == 0 || err != nil):
			return e.data, nil
		}
	}
}

var errLongEvent = fmt.Errorf("an event of the stream has more than %d MiB", mostEvent>>20)

// readLine is the next line without its end. Where the stream ends it is what there was, with io.EOF.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		c, err := e.in.ReadByte()
		if err != nil {
			return e.line, err
		}
		after := e.cr
		e.cr = c == '\r'
		switch {
		case c == '\n' && after && len(e.line) == 0: // the rest of CR LF
		case c == '\n' || c == '\r':
			return e.line, nil
		case len(e.line) >= mostEvent:
			return nil, errLongEvent
		default:
			e.line = append(e.line, c)
		}
	}
}
