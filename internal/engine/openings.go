package engine

import (
	"context"
	"fmt"

	"hearth/internal/model"
	"hearth/internal/sched"
)

// openings are images whose patches the tower is to read next, by digest. They are got on goroutines of their own while their
// sequences wait, as many at a time as their numbers have memory for. What is not there between two steps is asked for again.
type openings struct {
	opened map[[32]byte]*opening
	held   int64  // bytes that the patches of opened take
	signal func() // wakes the loop
}

// opening is an image whose patches are being got, for the sequence that asked first.
type opening struct {
	seq    *sequence
	bytes  int64
	cancel context.CancelFunc

	done    chan struct{} // closed when there is one of these
	patches Patches
	err     error
}

func (o *opening) ready() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// open has the patches of a sequence's image got. What failed is ready, too: the sequence ends with it. begun is false where
// there is no memory for them before others have been read.
func (s *sights) open(q *sequence, i int) (ready, begun bool) {
	img := q.images[i].Image
	if img.Patches != nil || q.unseen != nil {
		return true, true
	}
	if o := s.opened[img.Digest]; o != nil {
		if !o.ready() || o.err != nil && o.seq != q {
			return false, true
		}
		if o.err != nil {
			q.unseen = &ImageError{Image: i, Err: o.err}
			s.drop(img.Digest)
		}
		return true, true
	}
	o := &opening{seq: q, bytes: 4 * int64(img.numbers()), done: make(chan struct{})}
	if len(s.opened) > 0 && s.held+o.bytes > s.memory.tower.open {
		return false, false
	}
	ctx, cancel := context.WithCancel(q.stream.ctx)
	if o.cancel = cancel; s.opened == nil {
		s.opened = map[[32]byte]*opening{}
	}
	s.opened[img.Digest] = o
	s.held += o.bytes
	go func() {
		defer s.signal()
		defer close(o.done)
		defer func() {
			if v := recover(); v != nil {
				o.err = fmt.Errorf("panic: %v", v)
			}
		}()
		o.patches, o.err = img.Open(ctx)
	}()
	return false, true
}

// drop lets go of the patches of an image.
func (s *sights) drop(digest [32]byte) {
	if o := s.opened[digest]; o != nil {
		o.cancel()
		s.held -= o.bytes
		delete(s.opened, digest)
	}
}

// dropStale lets go of patches that nobody waits for: those of sequences that have left or were preempted, and of images that the
// tower has read for others.
func (s *sights) dropStale(seqs map[sched.ID]*sequence) {
	for digest, o := range s.opened {
		if seqs[o.seq.ID] != o.seq || o.seq.Slot < 0 || s.made[digest] != nil {
			s.drop(digest)
		}
	}
}

// waitForPatches waits where the plan is empty because patches are being got.
func (e *Engine) waitForPatches() bool {
	for _, o := range e.run.sights.opened {
		if !o.ready() {
			<-e.wake
			return true
		}
	}
	return false
}

// patches are all of an image that open has found ready, for the tower.
func (s *sights) patches(img *Image) (*model.Image, error) {
	out := &model.Image{Grid: img.Grid, Patches: img.Patches}
	if out.Patches != nil {
		return out, nil
	}
	o := s.opened[img.Digest]
	if o == nil || !o.ready() || o.err != nil {
		return nil, fmt.Errorf("an image of %v patches is not there", img.Grid)
	}
	if out.Patches = o.patches(0, img.patches()); len(out.Patches) != img.numbers() {
		return nil, fmt.Errorf("an image of %v patches has come with %d numbers, not %d", img.Grid, len(out.Patches), img.numbers())
	}
	return out, nil
}
