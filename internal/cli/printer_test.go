package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// reader is a file whose reader may stall, or be away.
type reader struct {
	got  bytes.Buffer
	gate chan struct{} // a write takes one
	away bool
}

func (r *reader) Write(b []byte) (int, error) {
	if r.gate != nil {
		<-r.gate
	}
	if r.away {
		return 0, errors.New("broken pipe")
	}
	return r.got.Write(b)
}

// Whoever prints never waits. Lines beyond the queue are told as a number, in their place, when the reader goes on.
func TestPrinterStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{gate: make(chan struct{})}
		p := newPrinter(r)
		fmt.Fprintln(p, "first")
		time.Sleep(2 * gatherTime)
		synctest.Wait()
		line := strings.Repeat("x", 1023) + "\n"
		const lines = 3 * printQueue / 1024
		for range lines {
			if n, err := io.WriteString(p, line); n != len(line) || err != nil {
				t.Fatal(n, err)
			}
		}
		fmt.Fprintln(p, "one more") // which would fit, in the wrong place
		if p.dropped != lines-printQueue/1024+1 || len(p.queue) > printQueue {
			t.Errorf("%d lines dropped, %d bytes wait", p.dropped, len(p.queue))
		}
		began := time.Now()
		close(r.gate)
		time.Sleep(2 * gatherTime)
		synctest.Wait()
		fmt.Fprintln(p, "last")
		p.Close(time.Hour)
		want := "first\n" + strings.Repeat(line, printQueue/1024) + fmt.Sprintf("hearth: %d log lines were dropped: nobody read them\nlast\n", lines-printQueue/1024+1)
		if r.got.String() != want || time.Since(began) > 10*gatherTime {
			t.Errorf("%d bytes, want %d, after %v, with %q at the end", r.got.Len(), len(want), time.Since(began), r.got.Bytes()[max(r.got.Len()-100, 0):])
		}
	})
}

// Nor does it fail where nobody reads; what was lost is told first when somebody does.
func TestPrinterClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{away: true}
		p := newPrinter(r)
		for range 3 {
			fmt.Fprint(p, "[cache] one\n[perf] two\n")
			time.Sleep(2 * gatherTime)
			synctest.Wait()
		}
		r.away = false
		fmt.Fprintln(p, "back")
		p.Close(time.Hour)
		if got, want := r.got.String(), "hearth: 6 log lines were dropped: nobody read them\nback\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// A program that ends waits for its reader, for a while.
func TestPrinterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{gate: make(chan struct{})}
		p := newPrinter(r)
		fmt.Fprintln(p, "error")
		began := time.Now()
		time.AfterFunc(flushLimit/2, func() { r.gate <- struct{}{} })
		if p.Close(flushLimit); r.got.String() != "error\n" || time.Since(began) != flushLimit/2 {
			t.Errorf("%q after %v", r.got.String(), time.Since(began))
		}
		p = newPrinter(r)
		fmt.Fprintln(p, "error")
		if p.Close(flushLimit); time.Since(began) != flushLimit*3/2 {
			t.Errorf("%v", time.Since(began))
		}
		close(r.gate)
	})
}

// What does not end is left behind.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, hang := time.Now(), make(chan struct{})
		err := within(time.Minute, func() error { <-hang; return nil })
		if err == nil || !strings.Contains(err.Error(), "has not ended within 1m0s") || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		close(hang)
		if err := within(time.Minute, func() error { return io.EOF }); err != io.EOF {
			t.Error(err)
		}
	})
}
