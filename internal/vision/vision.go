// Package vision makes of an image file what a tower reads: it looks at the header, decodes, turns, flattens onto white,
// resizes, cuts into tiles and patches, and normalises, each as the processor of the model's family does in transformers and
// Pillow. It knows file formats and processors, no model and no protocol.
//
// Picture of a Gate does all of it within Limits. Inspect and Processor.Plan tell size and cost from the header alone, so
// that a request can be counted, or refused, before anything is decoded.
package vision

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Limits are what one image may cost. All are checked on the header, before anything of its size is allocated.
type Limits struct {
	Bytes  int // of the file
	Pixels int // width times height
	Ratio  int // of the longer side to the shorter
	Images int // of one request
}

// Defaults of Limits. A picture of MaxPixels takes 3 bytes a pixel, and while it is decoded up to 8 more.
const (
	MaxBytes  = 32 << 20
	MaxPixels = 50 << 20
	MaxRatio  = 1000
	MaxImages = 100
)

// DefaultLimits are the limits where nobody has set others.
func DefaultLimits() Limits {
	return Limits{Bytes: MaxBytes, Pixels: MaxPixels, Ratio: MaxRatio, Images: MaxImages}
}

// Count checks the number of images of a request.
func (l Limits) Count(n int) error {
	if n > l.Images {
		return refuse(Count, "there are %d images, the limit is %d: send fewer", n, l.Images)
	}
	return nil
}

// Cause is the kind of thing that is wrong with an image, a word for logs and counters.
type Cause string

const (
	Type   Cause = "image_type"   // a format that is not read
	Broken Cause = "image_broken" // truncated, or not what it says to be
	Bytes  Cause = "image_bytes"  // over Limits.Bytes
	Pixels Cause = "image_pixels" // over Limits.Pixels
	Ratio  Cause = "image_ratio"  // over Limits.Ratio, or that of the model's processor
	Count  Cause = "images"       // over Limits.Images
)

// Error is an image that is not taken. Its text follows "the image ": it says what is wrong and what to do.
type Error struct {
	Cause Cause
	text  string
}

func (e *Error) Error() string { return e.text }

// Limit tells whether a limit was met, rather than that nobody could read the file.
func (e *Error) Limit() bool { return e.Cause != Type && e.Cause != Broken }

func refuse(c Cause, format string, args ...any) error {
	return &Error{Cause: c, text: fmt.Sprintf(format, args...)}
}

// Gate lets a bounded number of images be prepared at a time, so that many of them take neither the memory nor the
// processors from those who generate.
type Gate struct {
	limits Limits
	slots  chan struct{}
}

// NewGate makes a gate for n images at a time, at least one.
func NewGate(n int, limits Limits) *Gate {
	return &Gate{limits: limits, slots: make(chan struct{}, max(n, 1))}
}

// Limits are those that the gate checks.
func (g *Gate) Limits() Limits { return g.limits }

// Picture prepares a file for the processor's model. Limits are checked, and what is no image refused, before it waits for
// its turn; the context ends both the wait and the work.
func (g *Gate) Picture(ctx context.Context, file []byte, p *Processor) (*Picture, error) {
	h, err := Inspect(file, g.limits)
	if err != nil {
		return nil, err
	}
	if _, err := p.Plan(h.Width, h.Height); err != nil {
		return nil, err
	}
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r, err := decode(ctx, file, h)
	if err != nil {
		return nil, err
	}
	return p.Prepare(ctx, r)
}

// share runs work(0) … work(n-1) on as many goroutines as help, and returns when all have ended or the context has.
func share(ctx context.Context, n int, work func(i int)) error {
	const mostWorkers = 4
	var next atomic.Int64
	run := func() {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			work(i)
		}
	}
	var wg sync.WaitGroup
	for range min(n, mostWorkers, runtime.GOMAXPROCS(0)) - 1 {
		wg.Go(run)
	}
	run()
	wg.Wait()
	return ctx.Err()
}
