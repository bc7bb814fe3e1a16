//go:build unix

package remote

import (
	"context"
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

// TestLargeImagesCross: images of any size arrive in parts, between which other frames go.
func TestLargeImagesCross(t *testing.T) {
	p := large()
	e := mustOpen(t, troupe(t, nil, func(a *actor) {
		a.load()
		w := &worker{patches: map[uint64][][]float32{}}
		parts := 0
		for {
			k, b, err := a.in.read()
			c := &contents{b: b}
			switch {
			case err != nil:
				return
			case k == kindPatches:
				parts++
				w.addPatches(c)
				if len(b) > 4*partNumbers+16 {
					t.Errorf("a part of %d bytes", len(b))
				}
			case k == kindPing:
				a.send(kindPong, nil)
			case k == kindPrompt:
				id := c.uint()
				got, _ := c.prompt(w.patches[id])
				if c.end() != nil || len(got.Images) != len(p.Images) || parts != 3+1+17+1 {
					t.Errorf("%d images in %d parts, end %v", len(got.Images), parts, c.end())
					return
				}
				for i := range got.Images {
					if !slices.Equal(got.Images[i].Patches, p.Images[i].Patches) || got.Images[i].Grid != p.Images[i].Grid {
						t.Errorf("image %d differs", i)
					}
				}
				var s sent
				a.send(kindUpdates, s.appendUpdate(nil, id, &engine.Update{Reason: engine.Stop, StopID: 3}, false))
				a.stay()
				return
			}
			if c.end() != nil {
				t.Errorf("%v: %v", k, c.end())
			}
		}
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

// TestCancelledOnTheWay: a prompt that is cancelled while its images cross ends, and never arrives.
func TestCancelledOnTheWay(t *testing.T) {
	p := large()
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan bool, 1)
	e := mustOpen(t, troupe(t, nil, func(a *actor) {
		a.load()
		_, ok := a.until(kindPatches)
		cancel()
		for ok {
			k, _, err := a.in.read()
			if err != nil || k == kindPrompt || k == kindCancel {
				told <- k == kindCancel
				break
			}
		}
		for {
			switch k, _, err := a.in.read(); {
			case err != nil:
				return
			case k == kindPrompt:
				t.Error("the prompt comes after it was cancelled")
			case k == kindEnd:
				a.send(kindClosed, appendError(nil, nil))
				return
			}
		}
	}))
	defer mustClose(t, e)
	s, err := e.Submit(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if u := ended(t, s); u != engine.Cancel {
		t.Errorf("it ends with %v", u)
	}
	if !<-told {
		t.Error("the worker process is not told")
	}
}
