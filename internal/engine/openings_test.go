package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/model"
)

// shelf has the patches of images that prompts were given without.
type shelf struct {
	mu         sync.Mutex
	opened     int
	held, most int // numbers that were opened and that no tower has read
	wait       func(ctx context.Context) error
}

// put takes the patches out of prompts.
func (s *shelf) put(v *model.Tower, all ...Prompt) []Prompt {
	all = slices.Clone(all)
	for i := range all {
		all[i].Images = slices.Clone(all[i].Images)
		for k := range all[i].Images {
			img := &all[i].Images[k]
			numbers := img.Patches
			img.Patches, img.Each = nil, v.Patch
			img.Open = func(ctx context.Context) (Patches, error) {
				s.count(1, len(numbers))
				if s.wait != nil {
					if err := s.wait(ctx); err != nil {
						s.count(0, -len(numbers))
						return nil, err
					}
				}
				return func(from, to int) []float32 {
					s.count(0, -len(numbers))
					return numbers[from*v.Patch : to*v.Patch]
				}, nil
			}
		}
	}
	return all
}

func (s *shelf) count(opened, held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened += opened
	s.held += held
	s.most = max(s.most, s.held)
}

func (s *shelf) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// TestImagesOpened: patches are got where the tower runs, once for each picture, and for nothing that is cached.
func TestImagesOpened(t *testing.T) {
	v := towerOf(t, seeing)
	var s shelf
	all := s.put(v, album(v)...)
	e, direct := sees(t, v, nil), sees(t, towerOf(t, seeing), nil)
	for i, opened := range []int{1, 2, 2, 3, 3, 5, 5} { // 4 has three pictures, of which two are one, and all are known
		want := read(t, submit(t, direct, album(v)[i]))
		for range 2 {
			if d := cmp.Diff(want, read(t, submit(t, e, all[i]))); d != "" {
				t.Errorf("prompt %d: %s", i, d)
			}
			if n := s.total(); n != opened {
				t.Errorf("prompt %d: %d pictures opened, want %d", i, n, opened)
			}
		}
	}
	if s.held != 0 {
		t.Errorf("%d numbers were got for nothing", s.held)
	}
}

// TestOpeningWaits: while patches are got other streams go on, and who needs the same picture waits for it, too.
func TestOpeningWaits(t *testing.T) {
	v := towerOf(t, seeing)
	go1 := make(chan struct{})
	s := shelf{wait: func(ctx context.Context) error {
		select {
		case <-go1:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	all := s.put(v, album(v)...)
	e := sees(t, v, nil)
	first, second := submit(t, e, all[0]), submit(t, e, all[2]) // with the same picture, at the same place
	read(t, submit(t, e, all[6]))
	third := submit(t, e, all[1])
	third.Close()
	if _, err := third.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	close(go1)
	want := sees(t, towerOf(t, seeing), nil)
	for i, stream := range map[int]*Stream{0: first, 2: second} {
		if d := cmp.Diff(read(t, submit(t, want, album(v)[i])), read(t, stream)); d != "" {
			t.Errorf("prompt %d: %s", i, d)
		}
	}
	if n := e.Stats().Images.Encoded; n != 1 {
		t.Errorf("%d images encoded", n)
	}
}

// TestOpeningFails: the sequence whose picture cannot be got ends with why, and another with the same one gets it.
func TestOpeningFails(t *testing.T) {
	v := towerOf(t, seeing)
	why := errors.New("no memory")
	e := sees(t, v, nil)
	var good, short shelf
	for name, fail := range map[string]func(context.Context) error{
		"no memory": func(context.Context) error { return why },
		"panic: a bug": func(context.Context) error {
			panic("a bug")
		},
	} {
		bad := &shelf{wait: fail}
		stream := submit(t, e, bad.put(v, album(v)[0])[0])
		_, err := stream.Next()
		var image *ImageError
		if !errors.As(err, &image) || image.Image != 0 || !strings.Contains(err.Error(), name) {
			t.Errorf("it ends with %v", err)
		}
	}
	few := short.put(v, album(v)[0])[0]
	open := few.Images[0].Open
	few.Images[0].Open = func(ctx context.Context) (Patches, error) {
		patches, err := open(ctx)
		return func(from, to int) []float32 { return patches(from, to-1) }, err
	}
	if _, err := submit(t, e, few).Next(); err == nil || !strings.Contains(err.Error(), "numbers, not") {
		t.Errorf("it ends with %v", err)
	}
	read(t, submit(t, e, good.put(v, album(v)[0])[0]))
}

// TestOpeningOfAnother: who has failed to get a picture has not got it for others of the same step: they try themselves.
func TestOpeningOfAnother(t *testing.T) {
	why, woken := errors.New("no memory"), make(chan struct{}, 1)
	s := sights{memory: &memory{}, openings: openings{signal: func() { woken <- struct{}{} }}}
	with := func(open func(context.Context) (Patches, error)) *sequence {
		img := &Image{Image: model.Image{Grid: [3]int{1, 2, 2}}, Each: 1, Open: open, At: 5}
		return &sequence{stream: newStream(t.Context(), 20), images: []placed{{Image: img, rows: 4}}}
	}
	bad := with(func(context.Context) (Patches, error) { return nil, why })
	good := with(func(context.Context) (Patches, error) { return func(int, int) []float32 { return nil }, nil })
	shorten := func(q *sequence, want int) {
		t.Helper()
		if end := s.shorten(q, 20, 0); end != want {
			t.Errorf("the step ends at %d, want %d", end, want)
		}
	}
	shorten(bad, 5)
	<-woken
	shorten(good, 5) // it is the other's
	shorten(bad, 20)
	shorten(good, 5)
	<-woken
	shorten(bad, 20)
	shorten(good, 20)
	if !errors.Is(bad.unseen, why) || good.unseen != nil || len(s.planned) != 1 {
		t.Errorf("%v and %v, %d planned", bad.unseen, good.unseen, len(s.planned))
	}
}

// TestOpeningBounded: of patches that the tower has not read there are never more than there is memory for, but for those of one
// picture, however many prompts with images there are.
func TestOpeningBounded(t *testing.T) {
	v := towerOf(t, seeing)
	all := album(v)[:6]
	for _, limit := range []int64{1, 25000, 1 << 20} {
		var s shelf
		two := make(chan struct{})
		once := sync.OnceFunc(func() { close(two) })
		if limit > 1 { // the first waits for another, which has to be got beside it
			s.wait = func(ctx context.Context) error {
				if s.total() > 1 {
					once()
				}
				<-two
				return nil
			}
		}
		e := sees(t, v, func(c *Config) { c.Sights = 0 })
		set := make(chan struct{})
		e.mu.Lock()
		e.calls = append(e.calls, func() {
			e.memory.tower.open = limit
			close(set)
		})
		e.mu.Unlock()
		e.signal()
		<-set
		var streams []*Stream
		for _, p := range s.put(v, all...) {
			streams = append(streams, submit(t, e, p))
		}
		for _, stream := range streams {
			read(t, stream)
		}
		if one := 120 * v.Patch; s.most > max(int(limit/4), one) {
			t.Errorf("of %d bytes, %d numbers were held", limit, s.most)
		}
		closeNow(t, e)
	}
}
