package cli

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// printQueue is the bytes of lines that wait for a reader who is slow; a line more is dropped.
	printQueue = 1 << 20
	// flushLimit is how long a program that ends waits for its lines to be read.
	flushLimit = time.Second
	// gatherTime is how long lines wait for others: a request has several, and its reply goes out at the same moment.
	gatherTime = 2 * time.Millisecond
)

// printer hands lines on to a file from a goroutine of its own, so that whoever prints never waits for who reads and never
// learns that nobody does. Lines beyond printQueue, and those that could not be written, are counted and told as a number when
// there is a reader again.
type printer struct {
	out io.Writer

	mu      sync.Mutex
	more    sync.Cond // there is something in queue, or dropped
	idle    sync.Cond // there is nothing to write
	queue   []byte
	dropped int  // lines, all of them later than those in queue; if deaf, earlier
	deaf    bool // the last write failed
	busy    bool // one is on its way
	closed  bool
}

func newPrinter(out io.Writer) *printer {
	p := &printer{out: out}
	p.more.L, p.idle.L = &p.mu, &p.mu
	go p.run()
	return p
}

// Write takes whole lines. It never waits and never fails.
func (p *printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue)+len(b) > printQueue || p.dropped > 0 && !p.deaf && len(p.queue) > 0 {
		p.dropped += lineCount(b)
	} else {
		p.queue = append(p.queue, b...)
	}
	p.more.Signal()
	return len(b), nil
}

// lineCount counts lines, one without an end too.
func lineCount(b []byte) int {
	n := bytes.Count(b, []byte("\n"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// run writes until Close. What was dropped is told in its place, or to a reader who is back before
// anything else; one who is not back is tried again with the next line.
func (p *printer) run() {
	var spare []byte
	p.mu.Lock()
	for {
		for len(p.queue) == 0 && (p.dropped == 0 || p.deaf) {
			p.idle.Broadcast()
			if p.closed {
				p.mu.Unlock()
				return
			}
			p.more.Wait()
			p.mu.Unlock()
			time.Sleep(gatherTime)
			p.mu.Lock()
		}
		b, told := p.queue, 0
		if p.dropped > 0 && (p.deaf || len(p.queue) == 0) {
			b, told, p.dropped = fmt.Appendf(nil, "hearth: %d log lines were dropped: nobody read them\n", p.dropped), p.dropped, 0
		} else {
			p.queue, spare = spare[:0], p.queue
		}
		p.busy = true
		p.mu.Unlock()
		n, err := p.out.Write(b)
		p.mu.Lock()
		p.busy, p.deaf = false, err != nil
		switch {
		case err == nil:
		case told > 0:
			p.dropped += told + lineCount(p.queue)
			p.queue = p.queue[:0]
		default:
			p.dropped += lineCount(b[min(max(n, 0), len(b)):])
		}
	}
}

// Close waits until all is written, for limit at most. Nothing may be printed after it.
func (p *printer) Close(limit time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.more.Signal()
	late := false
	t := time.AfterFunc(limit, func() {
		p.mu.Lock()
		late = true
		p.mu.Unlock()
		p.idle.Broadcast()
	})
	defer t.Stop()
	for !late && (p.busy || len(p.queue) > 0 || p.dropped > 0 && !p.deaf) {
		p.idle.Wait()
	}
}
