package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/budget"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/tier/tiertest"
)

// seeing is a model with a tower and random weights: its images turn heads by three axes, and add to three layers.
const seeing = `{"model_type":"qwen3_vl","text_config":{"hidden_size":64,"num_hidden_layers":3,"intermediate_size":96,"num_attention_heads":4,
"num_key_value_heads":2,"head_dim":16,"rms_norm_eps":1e-6,"vocab_size":97,"max_position_embeddings":4096,
"rope_parameters":{"rope_theta":10000,"rope_type":"default","mrope_section":[4,2,2]}},"tie_word_embeddings":true,
"vision_config":{"depth":2,"hidden_size":32,"intermediate_size":48,"num_heads":2,"patch_size":2,"out_hidden_size":64,"num_position_embeddings":25,
"deepstack_visual_indexes":[0,1]}}`

// together is one whose images are of one size, and whose rows see each other in the language model, in windows too.
const together = `{"model_type":"gemma3","mm_tokens_per_image":16,"text_config":{"hidden_size":64,"num_hidden_layers":3,"intermediate_size":96,
"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":97,"max_position_embeddings":4096,"sliding_window":20,"sliding_window_pattern":3,
"query_pre_attn_scalar":16},"vision_config":{"hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":2,"image_size":16,"patch_size":2}}`

// lined is one whose images have tokens of text between their lines.
const lined = `{"model_type":"mistral3","spatial_merge_size":2,"text_config":{"model_type":"mistral","hidden_size":64,"num_hidden_layers":2,
"intermediate_size":96,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":97,"max_position_embeddings":4096,"sliding_window":20},
"vision_config":{"hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":2,"patch_size":2}}`

// parted is one whose rows see each other in layers with a window alone, and whose layers have inputs of their own.
const parted = `{"model_type":"gemma4","text_config":{"hidden_size":64,"num_hidden_layers":3,"intermediate_size":96,"num_attention_heads":4,
"num_key_value_heads":2,"head_dim":16,"global_head_dim":16,"vocab_size":97,"vocab_size_per_layer_input":97,"hidden_size_per_layer_input":16,
"max_position_embeddings":4096,"sliding_window":20,"layer_types":["sliding_attention","sliding_attention","full_attention"],
"use_bidirectional_attention":"vision"},"vision_config":{"hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":2,
"num_key_value_heads":2,"head_dim":16,"patch_size":2,"pooling_kernel_size":2,"position_embedding_size":64}}`

func towerOf(t *testing.T, config string) *model.Tower {
	t.Helper()
	v, err := model.Synthetic{Config: []byte(config), Seed: 5, Type: quant.F32}.Tower()
	if err != nil || v == nil {
		t.Fatal(v, err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// sees is an engine that can see.
func sees(t *testing.T, v *model.Tower, change func(*Config)) *Engine {
	t.Helper()
	h := &hooked{Backend: cpu.New(), config: seeing, precision: backend.Float32}
	if v.Together {
		h.config = together
	}
	return start(t, h, func(c *Config) {
		c.Tower, c.Seeing, c.Sights = v, backend.Options{Precision: backend.Float32, Threads: 2}, 1<<20
		if change != nil {
			change(c)
		}
	})
}

// picture is a random one, from index at on.
func picture(v *model.Tower, at int, seed uint64, grid [3]int) Image {
	r := rand.New(rand.NewPCG(seed, 21))
	img := Image{At: at, Image: model.Image{Grid: grid}}
	for range grid[0] * grid[1] * grid[2] * v.Patch {
		img.Patches = append(img.Patches, float32(r.NormFloat64()))
	}
	img.Digest[0], img.Digest[31] = byte(seed), byte(grid[1])
	return img
}

// album is prompts with images: the same at one place, others, and more than once.
func album(v *model.Tower) (all []Prompt) {
	text := prompt(220, 8)
	wide, tall, small := [3]int{1, 4, 30}, [3]int{1, 20, 6}, [3]int{1, 2, 2}
	if v.Together {
		wide, tall, small = [3]int{1, 8, 8}, [3]int{1, 8, 8}, [3]int{1, 8, 8}
	}
	add := func(n int, images ...Image) {
		p := Prompt{Tokens: append([]int32(nil), text[:n]...), MaxTokens: 12, Logprobs: 3, Images: images}
		for _, img := range images {
			for i := range v.Rows(img.Grid) {
				if _, ok := model.Feature(v.Line(img.Grid), i); ok {
					p.Tokens[img.At+i] = 96
				}
			}
		}
		all = append(all, p)
	}
	add(150, picture(v, 70, 1, wide))
	add(150, picture(v, 70, 2, wide))
	add(160, picture(v, 70, 1, wide))
	add(130, picture(v, 40, 1, wide), picture(v, 90, 3, tall))
	add(200, picture(v, 40, 1, wide), picture(v, 90, 3, tall), picture(v, 130, 1, wide))
	add(140, picture(v, 1, 4, small), picture(v, 1+v.Rows(small), 5, small), picture(v, 60, 3, tall))
	add(180)
	return all
}

// TestImages: what is said to a text with images does not depend on chunks, on what runs beside it, on what is cached, or on how
// much of what the tower made is kept; another picture changes it.
func TestImages(t *testing.T) {
	t.Run("three axes, deep", func(t *testing.T) { testImages(t, seeing) })
	t.Run("together", func(t *testing.T) { testImages(t, together) })
	t.Run("lines", func(t *testing.T) { testImages(t, lined) })
	t.Run("together in windows", func(t *testing.T) { testImages(t, parted) })
}

func testImages(t *testing.T, config string) {
	v := towerOf(t, config)
	one := sees(t, v, func(c *Config) { c.MaxSequences, c.NoCache, c.Sights = 1, true, 0 })
	all := album(v)
	blind := read(t, submit(t, one, all[len(all)-1]))
	if v.Loaded() || one.Stats().Images.Encoded != 0 {
		t.Error("the tower was loaded for a text")
	}
	var want [][]Token
	for _, p := range all {
		want = append(want, read(t, submit(t, one, p)))
	}
	if d := cmp.Diff(blind, want[len(all)-1]); d != "" {
		t.Errorf("a text alone, before images and after: %s", d)
	}
	if cmp.Equal(want[0], want[1]) {
		t.Error("two pictures are the same to the model")
	}
	if s := one.Stats().Images; s.Encoded != 10 || s.Bytes != 0 {
		t.Errorf("nothing is kept: %+v", s)
	}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 4))
		e := sees(t, towerOf(t, config), func(c *Config) {
			c.PrefillChunk, c.MaxSequences, c.Sights = []int{17, 64, 2048}[seed%3], 1+r.IntN(5), int64(r.IntN(2)<<20)
		})
		prompts := all
		if seed%2 == 1 {
			prompts = new(shelf).put(v, all...)
		}
		disturb(t, e, r, prompts, want)
		closeNow(t, e)
	}
}

// TestImagesTogether: where rows of an image see each other, one step has all of them and says so, wherever chunks would end.
func TestImagesTogether(t *testing.T) {
	v := towerOf(t, together)
	var got []backend.Range
	h := &hooked{Backend: cpu.New(), config: together, precision: backend.Float32}
	h.begin = func(b *backend.Batch) {
		for _, sp := range b.Spans {
			got = append(got, sp.Both...)
		}
	}
	e := start(t, h, func(c *Config) {
		c.Tower, c.Seeing, c.PrefillChunk, c.NoCache = v, backend.Options{Precision: backend.Float32, Threads: 2}, 20, true
	})
	read(t, submit(t, e, album(v)[3])) // images at 40 and 90
	settle(e)
	if d := cmp.Diff([]backend.Range{{From: 40, To: 56}, {From: 90, To: 106}}, got); d != "" {
		t.Error(d)
	}
}

// TestImagesCached: the same picture at the same place is a hit, and needs no tower; another one parts there.
func TestImagesCached(t *testing.T) {
	v := towerOf(t, seeing)
	e := sees(t, v, nil)
	all := album(v)
	ask := func(p Prompt, cached int, encoded int64) {
		t.Helper()
		s := submit(t, e, p)
		read(t, s)
		settle(e)
		if got := s.Usage().Cached; got < cached || got > cached+1 { // one more if what was said goes on as the text does
			t.Errorf("%d tokens of the cache, want %d", got, cached)
		}
		if n := e.Stats().Images.Encoded; n != encoded {
			t.Errorf("%d images encoded, want %d", n, encoded)
		}
	}
	ask(all[0], 0, 1)
	ask(all[0], 149, 1)
	ask(all[1], 70, 2)  // up to the other picture
	ask(all[2], 150, 2) // goes on behind the first one
	salted := all[0]
	salted.Salt = kv.Salt{1, 2, 3}
	ask(salted, 0, 2) // what was made of the picture is known all the same
	ask(salted, 149, 2)
	if n := e.Stats().Images.Bytes; n != 2*3*30*64*4 {
		t.Errorf("%d bytes kept", n)
	}
}

// TestImagesRestored: after a restart numbers of pictures are others, and what the disk has is found by their digests.
func TestImagesRestored(t *testing.T) {
	dir := t.TempDir()
	var n tiertest.Notes
	run := func(order ...int) (cached []int, said [][]Token) {
		v := towerOf(t, seeing)
		e := sees(t, v, onDisk(dir, &n, func(c *Config) {
			c.Tower, c.Seeing = v, backend.Options{Precision: backend.Float32, Threads: 2}
		}))
		all := album(v)
		for _, i := range order {
			s := submit(t, e, all[i])
			said = append(said, read(t, s))
			settle(e)
			cached = append(cached, s.Usage().Cached)
		}
		closeNow(t, e)
		return cached, said
	}
	_, want := run(0, 1)
	for _, i := range []int{1, 0} {
		cached, said := run(i)
		if cached[0] != 128 {
			t.Errorf("prompt %d: %d tokens cached, want 128", i, cached[0])
		}
		if d := cmp.Diff(want[i], said[0]); d != "" {
			t.Error(d)
		}
	}
	for _, note := range n.Take() {
		t.Error(note)
	}
}

// TestImageErrors: what is wrong with an image is said before anything runs.
func TestImageErrors(t *testing.T) {
	v := towerOf(t, seeing)
	e, blind := sees(t, v, nil), start(t, &hooked{}, nil)
	at := func(at int, grid [3]int) Image { return picture(v, at, 1, grid) }
	short := at(3, [3]int{1, 2, 2})
	short.Patches = short.Patches[1:]
	odd := at(3, [3]int{1, 2, 2})
	odd.Grid = [3]int{1, 1, 4}
	whole := towerOf(t, together)
	tight := sees(t, whole, func(c *Config) { c.PrefillChunk = 15 })
	for name, tc := range map[string]struct {
		e      *Engine
		images []Image
		want   string
	}{
		"tight":     {tight, []Image{picture(whole, 3, 1, [3]int{1, 8, 8})}, "image 1: its 16 tokens run in one step, which runs 15 at most"},
		"other":     {tight, []Image{picture(whole, 3, 1, [3]int{1, 4, 8})}, "not of one frame of 8·8"},
		"blind":     {blind, []Image{at(3, [3]int{1, 2, 2})}, "image 1: the model cannot see"},
		"first":     {e, []Image{at(0, [3]int{1, 2, 2})}, "image 1: 1 tokens from index 0 on are not between index 1 and the 20 tokens"},
		"end":       {e, []Image{at(3, [3]int{1, 2, 2}), at(19, [3]int{1, 2, 4})}, "image 2: 2 tokens from index 19"},
		"overlap":   {e, []Image{at(3, [3]int{1, 2, 8}), at(6, [3]int{1, 2, 2})}, "image 2: 1 tokens from index 6 on are not between index 7"},
		"short":     {e, []Image{short}, "image 1: an image of [1 2 2] patches has 95 numbers, not 96"},
		"odd":       {e, []Image{odd}, "squares of 2·2 patches"},
		"enormous":  {e, []Image{{At: 3, Image: model.Image{Grid: [3]int{1, 1 << 40, 1 << 40}}}}, "out of range"},
		"no patch":  {e, []Image{{At: 3, Image: model.Image{Grid: [3]int{1, 0, 2}}}}, "out of range"},
		"two times": {e, []Image{{At: 3, Image: model.Image{Grid: [3]int{2, 2, 2}, Patches: make([]float32, 2*96)}}}, "one frame"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.e.Submit(context.Background(), Prompt{Tokens: prompt(20, 1), Images: tc.images})
			var bad *ImageError
			if !errors.As(err, &bad) || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("got %v, should say %s", err, tc.want)
			}
		})
	}
}

// TestNumbers: a digest keeps its number, and none is used twice.
func TestNumbers(t *testing.T) {
	var n numbers
	digest := func(i int) (d [32]byte) { d[0], d[1], d[2] = byte(i), byte(i>>8), byte(i>>16); return d }
	for i := range mostNumbers + 10 {
		if id := n.number(digest(i)); id != uint32(i) || n.number(digest(i)) != id {
			t.Fatalf("digest %d has the number %d", i, id)
		}
	}
	if _, ok := n.known(9); ok || len(n.of) != mostNumbers || len(n.digest) != mostNumbers {
		t.Errorf("%d digests have numbers", len(n.of))
	}
	if d, ok := n.known(10); !ok || d != digest(10) {
		t.Error("digest 10 is forgotten")
	}
	if id := n.number(digest(3)); id != mostNumbers+10 {
		t.Errorf("digest 3 comes back with the number %d", id)
	}
}

// TestTowerPromised: the memory of a tower, of its largest step and of what is kept of images is promised when the engine starts,
// and is not touched before the first image; with images the share does not grow.
func TestTowerPromised(t *testing.T) {
	v, be := towerOf(t, seeing), cpu.New()
	s := sharedMachine(1 << 30)
	var share *budget.Share
	var blind budget.Use
	seesIn := func(tower *model.Tower, be *cpu.Backend, name string) (*Engine, *budget.Share) {
		share, err := s.Ask(t.Context(), budget.Claim{Name: name, Use: budget.Use{Weights: 1000}})
		if err != nil {
			t.Fatal(err)
		}
		return start(t, &hooked{Backend: be, config: seeing, precision: backend.Float32}, func(c *Config) {
			c.Backend = be // tells of its memory
			c.Tower, c.Seeing, c.Sights, c.Share = tower, backend.Options{Precision: backend.Float32, Threads: 2}, 1<<20, share
		}), share
	}
	_, share = seesIn(nil, cpu.New(), "blind")
	blind = share.Use()
	e, share := seesIn(v, be, "sees")
	use, held := share.Use(), be.Held()
	grid, _ := v.Largest(e.Context())
	if use.Weights < blind.Weights+1<<20+v.FeatureBytes(grid) || use.Scratch <= blind.Scratch {
		t.Errorf("%+v are promised, %+v without a tower", use, blind)
	}
	read(t, submit(t, e, album(v)[6]))
	if v.Loaded() || be.Held() > held+use.State {
		t.Error("a text touches the tower")
	}
	for _, p := range album(v) {
		read(t, submit(t, e, p))
	}
	large := Prompt{Tokens: prompt(v.Rows(grid)+1, 3), MaxTokens: 1, Logprobs: -1, Images: []Image{picture(v, 1, 9, grid)}}
	if large.Tokens = large.Tokens[:min(len(large.Tokens), e.Context()-1)]; v.Rows(grid) > len(large.Tokens)-1 {
		grid[1] -= 2
		large.Images[0] = picture(v, 1, 9, grid)
	}
	read(t, submit(t, e, large))
	settle(e)
	now := share.Use()
	if now.Weights != use.Weights || now.Scratch != use.Scratch || be.StepBytes() > use.Scratch {
		t.Errorf("%+v were promised, %+v are taken, %d by a step", use, now, be.StepBytes())
	}
	if !v.Loaded() {
		t.Error("the tower was not loaded")
	}
}

// TestTowerLacksMemory: where there is no memory for a tower, texts are answered and images are refused, until there is.
func TestTowerLacksMemory(t *testing.T) {
	v, be := towerOf(t, seeing), cpu.New()
	s := sharedMachine(256 << 20)
	share, err := s.Ask(t.Context(), budget.Claim{Name: "sees", Use: budget.Use{Weights: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	e := start(t, &hooked{Backend: be, config: seeing, precision: backend.Float32}, func(c *Config) {
		c.Backend = be
		c.Tower, c.Seeing, c.Sights, c.Share, c.PrefillChunk = v, backend.Options{Precision: backend.Float32, Threads: 2}, 1<<30, share, 64 // more than there is
	})
	all := album(v)
	read(t, submit(t, e, all[6]))
	settle(e)
	other, err := s.Ask(t.Context(), budget.Claim{Name: "other", Pinned: true, Use: budget.Use{Weights: s.Free("")}})
	if err != nil {
		t.Fatal(err)
	}
	stream := submit(t, e, all[0])
	var short *NoMemoryError
	for err = nil; err == nil; {
		_, err = stream.Next()
	}
	if !errors.As(err, &short) || v.Loaded() {
		t.Fatalf("the image ends with %v, loaded %t", err, v.Loaded())
	}
	read(t, submit(t, e, all[6]))
	other.Close()
	read(t, submit(t, e, all[0]))
	settle(e)
	if n := share.Use().Sum(); n > s.Capacity() || !v.Loaded() {
		t.Errorf("%d bytes of %d", n, s.Capacity())
	}
}

// TestCancelledImages: a prompt that is cancelled while the tower runs has no more of its images encoded, whoever cancels it.
func TestCancelledImages(t *testing.T) {
	for _, name := range []string{"context", "close"} {
		v := towerOf(t, seeing)
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		started, leave := make(chan struct{}), make(chan struct{})
		h := &hooked{Backend: cpu.New(), config: seeing, precision: backend.Float32}
		seen := 0
		h.begin = func(b *backend.Batch) {
			if b.Spans[0].Slot < 0 {
				if seen++; seen == 1 {
					close(started)
					<-leave
				}
			}
		}
		e := start(t, h, func(c *Config) { c.Tower, c.Seeing = v, backend.Options{Precision: backend.Float32, Threads: 2} })
		s, err := e.Submit(ctx, album(v)[5]) // three images
		if err != nil {
			t.Fatal(err)
		}
		<-started
		if name == "close" {
			s.Close()
		} else {
			cancel()
		}
		close(leave)
		if _, err := s.Next(); !errors.Is(err, context.Canceled) || s.Finish() != Cancel {
			t.Errorf("%s: it ends with %v, %v", name, err, s.Finish())
		}
		read(t, submit(t, e, album(v)[6]))
		settle(e)
		if n := e.Stats().Images.Encoded; n != 1 {
			t.Errorf("%s: %d images encoded", name, n)
		}
	}
}

// TestTowerBesideDecodes: while a stream decodes, a step encodes no more images than its target has time for, and at least one:
// tokens come between them.
func TestTowerBesideDecodes(t *testing.T) {
	v := towerOf(t, seeing)
	h := &hooked{Backend: cpu.New(), config: seeing, precision: backend.Float32}
	submitted := make(chan struct{})
	var order []byte // e: an image is encoded; d: a step with a decode
	h.begin = func(b *backend.Batch) {
		switch {
		case b.Spans[0].Slot < 0:
			order = append(order, 'e')
		case b.Spans[0].Start >= 3: // of the stream, which comes first, and not to its end before the images
			<-submitted
			order = append(order, 'd')
		}
	}
	e := start(t, h, func(c *Config) {
		c.Tower, c.Seeing, c.StepTarget = v, backend.Options{Precision: backend.Float32, Threads: 2}, 1 // a nanosecond
	})
	stream := submit(t, e, Prompt{Tokens: prompt(3, 1), MaxTokens: 380, Logprobs: -1})
	if _, err := stream.Next(); err != nil {
		t.Fatal(err)
	}
	all := album(v)
	images := submit(t, e, all[5]) // three
	other := submit(t, e, all[4])  // two more, and one of those again
	close(submitted)
	want := read(t, images)
	read(t, other)
	stream.Close()
	settle(e)
	if strings.Contains(string(order), "ee") || strings.Count(string(order), "e") != 4 {
		t.Errorf("encoded and decoded: %s", order)
	}
	alone := sees(t, towerOf(t, seeing), nil)
	if d := cmp.Diff(read(t, submit(t, alone, all[5])), want); d != "" {
		t.Error(d)
	}
}
