//go:build unix

package remote

import (
	"context"
	"errors"
	"slices"
	"testing"

	"hearth/internal/engine"
	"hearth/internal/model"
)

// large is a prompt with more numbers of images than a frame has bytes for.
func large() engine.Prompt {
	p := prompts()[0]
	p.Constrain = nil
	for i, n := range []int{5 * partNumbers / 2, 0, maxFrame/4 + 1, 3} {
		img := engine.Image{Image: model.Image{Grid: [3]int{1, 1, n}, Patches: make([]float32, n)}, At: 1 + i}
		for k := range img.Patches {
			img.Patches[k] = float32(k % 1009 * (i + 1))
		}
		p.Images = append(p.Images, img)
	}
	return p
}

// ended reads a stream to its end.
func ended(t *testing.T, s *engine.Stream) engine.Reason {
	t.Helper()
	for {
		if _, err := s.Next(); err != nil {
			return s.Finish()
		}
	}
}

// TestLargeImagesCross: images of any size arrive in parts, between which other frames go, when they are asked for and not
// before.
func TestLargeImagesCross(t *testing.T) {
	p := large()
	e := mustOpen(t, troupe(t, nil, func(a *actor) {
		a.load()
		c, ok := a.until(kindPrompt)
		if !ok {
			return
		}
		id := c.uint()
		got, _ := c.prompt()
		if c.end() != nil || len(got.Images) != len(p.Images) {
			t.Errorf("%d images, end %v", len(got.Images), c.end())
			return
		}
		w := &worker{wanted: map[uint64]*wanted{}, out: newOutbox()}
		for i := range got.Images {
			img, want := &got.Images[i], &p.Images[i]
			opened := make(chan engine.Patches, 1)
			go func() {
				patches, err := w.open(t.Context(), id, i, img)
				if err != nil {
					t.Error(err)
				}
				opened <- patches
			}()
			<-w.out.wake // it has asked
			ask := appendUint(appendUint(appendUint(nil, w.opens), id), uint64(i))
			a.send(kindOpen, ask)
			parts := 0
			for more := true; more; parts++ {
				c, ok := a.until(kindPatches)
				if !ok {
					return
				}
				if peek := (&contents{b: c.b}); len(c.b) > 4*partNumbers+16 || peek.uint() != w.opens {
					t.Errorf("a part of %d bytes", len(c.b))
				} else {
					more = peek.bool()
				}
				if w.addPatches(c); c.end() != nil {
					t.Errorf("image %d: %v", i, c.end())
					return
				}
			}
			n := len(want.Patches)
			if patches := <-opened; parts != max((n+partNumbers-1)/partNumbers, 1) || !slices.Equal(patches(0, n), want.Patches) || img.Grid != want.Grid {
				t.Errorf("image %d differs, in %d parts", i, parts)
			}
		}
		var s sent
		a.send(kindUpdates, s.appendUpdate(nil, id, &engine.Update{Reason: engine.Stop, StopID: 3}, false))
		a.stay()
	}))
	defer mustClose(t, e)
	s, err := e.Submit(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if u := ended(t, s); u != engine.Stop {
		t.Errorf("it ends with %v", u)
	}
}

// TestPatchesStop: where nobody waits for an image any more, or its stream has ended or was cancelled, what gets its patches
// ends.
func TestPatchesStop(t *testing.T) {
	for name, stop := range map[string]func(a *actor, id uint64){
		"shut": func(a *actor, id uint64) { a.send(kindShut, []byte{7}) },
		"ended": func(a *actor, id uint64) {
			var s sent
			a.send(kindUpdates, s.appendUpdate(nil, id, &engine.Update{Reason: engine.Stop, StopID: 3}, false))
		},
		"lost": func(a *actor, id uint64) { a.conn.Close() },
	} {
		p := prompts()[0]
		p.Constrain = nil
		began, stopped := make(chan struct{}), make(chan struct{})
		p.Images = []engine.Image{{At: 1, Each: 1, Image: model.Image{Grid: [3]int{1, 1, 1}}, Open: func(ctx context.Context) (engine.Patches, error) {
			close(began)
			<-ctx.Done()
			close(stopped)
			return nil, ctx.Err()
		}}}
		e := mustOpen(t, troupe(t, nil, func(a *actor) {
			a.load()
			if c, ok := a.until(kindPrompt); ok {
				id := c.uint()
				a.send(kindOpen, append(appendUint([]byte{7}, id), 0))
				<-began
				stop(a, id)
				a.stay()
			}
		}, (*actor).hear))
		if _, err := e.Submit(t.Context(), p); err != nil {
			t.Fatal(name, err)
		}
		<-stopped
		mustClose(t, e)
	}
}

// TestPatchesFail: what an image cannot be opened with is what its stream ends with, not a copy of its text.
func TestPatchesFail(t *testing.T) {
	p := prompts()[0]
	p.Constrain = nil
	why := errors.New("no memory")
	p.Images = []engine.Image{{At: 1, Each: 1, Image: model.Image{Grid: [3]int{1, 1, 1}}, Open: func(context.Context) (engine.Patches, error) { return nil, why }}}
	e := mustOpen(t, troupe(t, nil, func(a *actor) {
		a.load()
		c, ok := a.until(kindPrompt)
		if !ok {
			return
		}
		id := c.uint()
		a.send(kindOpen, append(appendUint([]byte{7}, id), 0))
		if c, ok = a.until(kindPatches); !ok {
			return
		}
		if c.uint() != 7 || c.bool() {
			t.Error("another image is answered, or more of it follows")
		}
		err := c.error()
		var s sent
		a.send(kindUpdates, s.appendUpdate(nil, id, &engine.Update{Reason: engine.Error, StopID: -1, Err: &engine.ImageError{Image: 0, Err: err}}, false))
		a.stay()
	}))
	defer mustClose(t, e)
	s, err := e.Submit(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); !errors.Is(err, why) {
		t.Errorf("it ends with %v", err)
	}
}
