package remote

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"hearth/internal/engine"
)

// parcel is the patches of an image on their way to the worker process, which has asked for them. They are too many for a frame,
// and for a buffer beside them: they go in parts, which are made one by one, and between which other frames go.
type parcel struct {
	id      uint64
	stream  uint64
	cancel  context.CancelFunc
	patches engine.Patches // nil while they are got, and after err
	from, n int            // the next part is from this patch on
	err     error
}

// parcels are those of a session, in the order in which they were asked for.
type parcels struct {
	mu  sync.Mutex
	all []*parcel
}

// remove takes out those that are meant, and ends what gets their patches.
func (l *parcels) remove(meant func(*parcel) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(p *parcel) bool {
		if meant(p) {
			p.cancel()
			return true
		}
		return false
	})
}

// next appends the next part, and says whether there are more.
func (l *parcels) next(b []byte) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ready := func(p *parcel) bool { return p.patches != nil || p.err != nil }
	i := slices.IndexFunc(l.all, ready)
	if i < 0 {
		return b, false
	}
	p, start := l.all[i], len(b)
	var part []float32
	if p.err == nil {
		each := len(p.patches(p.from, min(p.from+1, p.n)))
		to := min(p.from+max(partNumbers/max(each, 1), 1), p.n)
		part, p.from = p.patches(p.from, to), to
	}
	more := p.err == nil && p.from < p.n
	b = appendError(appendBool(appendUint(begin(b, kindPatches), p.id), more), p.err)
	b = finish(appendFloats(b, part), start)
	if !more {
		p.cancel()
		l.all = slices.Delete(l.all, i, i+1)
	}
	return b, slices.ContainsFunc(l.all, ready)
}

// open gets the patches of an image that the worker process asks for.
func (s *session) open(c *contents) {
	id, stream, image := c.uint(), c.uint(), c.uint()
	s.e.mu.Lock()
	q := s.e.streams[stream]
	s.e.mu.Unlock()
	if c.end() != nil || q == nil {
		return
	}
	if image >= uint64(len(q.images)) {
		c.fail()
		return
	}
	img := &q.images[image]
	ctx, cancel := context.WithCancel(q.ctx)
	p := &parcel{id: id, stream: stream, cancel: cancel, n: img.Grid[0] * img.Grid[1] * img.Grid[2]}
	s.parcels.mu.Lock()
	s.parcels.all = append(s.parcels.all, p)
	s.parcels.mu.Unlock()
	go func() {
		patches, err := opened(ctx, img)
		if err != nil && ctx.Err() == nil {
			q.unseen.Store(&err)
		}
		s.parcels.mu.Lock()
		p.patches, p.err = patches, err
		s.parcels.mu.Unlock()
		s.out.signal()
	}()
}

// opened gets patches; a panic of who makes them is an error.
func opened(ctx context.Context, img *engine.Image) (patches engine.Patches, err error) {
	defer func() {
		if v := recover(); v != nil {
			patches, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	return img.Opened(ctx)
}

// wanted is the patches of an image that the worker process waits for.
type wanted struct {
	numbers []float32 // with room for all
	done    chan error
}

// open asks the parent for the patches of an image, and waits for them.
func (w *worker) open(ctx context.Context, stream uint64, image int, img *engine.Image) (engine.Patches, error) {
	each := img.Each
	v := &wanted{numbers: make([]float32, 0, img.Grid[0]*img.Grid[1]*img.Grid[2]*each), done: make(chan error, 1)}
	w.mu.Lock()
	w.opens++
	id := w.opens
	w.wanted[id] = v
	w.mu.Unlock()
	w.out.put(kindOpen, func(b []byte) []byte { return appendUint(appendUint(appendUint(b, id), stream), uint64(image)) })
	select {
	case err := <-v.done:
		if err != nil {
			return nil, err
		}
		return func(from, to int) []float32 { return v.numbers[from*each : to*each] }, nil
	case <-ctx.Done():
		w.mu.Lock()
		delete(w.wanted, id)
		w.mu.Unlock()
		w.out.put(kindShut, func(b []byte) []byte { return appendUint(b, id) })
		return nil, ctx.Err()
	}
}

// addPatches adds a part to those of an image, unless nobody waits for it any more.
func (w *worker) addPatches(c *contents) {
	id, more, err, part := c.uint(), c.bool(), c.error(), c.floats()
	if c.end() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.wanted[id]
	switch {
	case v == nil:
		return
	case len(part) > cap(v.numbers)-len(v.numbers), !more && err == nil && len(part) < cap(v.numbers)-len(v.numbers):
		c.fail()
		return
	}
	v.numbers = append(v.numbers, part...)
	if !more {
		delete(w.wanted, id)
		v.done <- err
	}
}
