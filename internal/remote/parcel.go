package remote

import (
	"slices"
	"sync"

	"hearth/internal/engine"
)

// parcel is a prompt with images on its way to the worker process. Their patches are too many for a frame, and for a buffer
// beside them: they go in parts, between which other frames go, and the prompt goes last.
type parcel struct {
	id      uint64
	prompt  []byte
	images  []engine.Image
	image   int // the next part is of this one, from this number on
	from    int
	numbers []float32 // of its patches; nil: not yet made
}

// parcels are those of a session, in order.
type parcels struct {
	mu  sync.Mutex
	all []*parcel
}

func (l *parcels) add(p *parcel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, p)
}

// remove takes one out that has not gone whole; false: it has.
func (l *parcels) remove(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.all)
	l.all = slices.DeleteFunc(l.all, func(p *parcel) bool { return p.id == id })
	return len(l.all) < n
}

// next appends the next part, and says whether there are more.
func (l *parcels) next(b []byte) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return b, false
	}
	p, start := l.all[0], len(b)
	if p.image < len(p.images) {
		if p.numbers == nil {
			p.numbers = p.images[p.image].Numbers()
		}
		to := min(p.from+partNumbers, len(p.numbers))
		b = appendFloats(appendUint(appendUint(begin(b, kindPatches), p.id), uint64(p.image)), p.numbers[p.from:to])
		if p.from = to; to == len(p.numbers) {
			p.image, p.from, p.numbers = p.image+1, 0, nil
		}
	} else {
		b = append(begin(b, kindPrompt), p.prompt...)
		l.all = slices.Delete(l.all, 0, 1)
	}
	return finish(b, start), len(l.all) > 0
}

// addPatches adds a part to those of its stream, which come image by image.
func (w *worker) addPatches(c *contents) {
	id, image, part := c.uint(), c.uint(), c.floats()
	if c.end() != nil {
		return
	}
	all := w.patches[id]
	switch n := uint64(len(all)); {
	case image == n:
		all = append(all, part)
	case image+1 == n:
		all[image] = append(all[image], part...)
	default:
		c.fail()
		return
	}
	w.patches[id] = all
}
