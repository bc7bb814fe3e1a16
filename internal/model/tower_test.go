package model_test

import (
	"encoding/binary"

	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/ref"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// seen is a golden of tools/golden/vision.py: a folder that transformers saved, what its tower makes of images, and what it says to
// a text with them.
type seen struct {
	saved
	Columns int     `json:"columns"` // numbers of a patch
	Images  []image `json:"images"`
}

type image struct {
	Grid     [3]int          `json:"grid"`
	At       int             `json:"at"` // index of the first token whose place it takes
	Features []golden.Floats `json:"features"`
}

func visionGoldens(t *testing.T) []string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("testdata", "vision", "*.json"))
	if len(files) == 0 {
		t.Fatal("no goldens of towers")
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".json"))
	}
	return names
}

func loadSeen(t *testing.T, name string) *seen {
	t.Helper()
	var g seen
	golden.Load(t, filepath.Join("testdata", "vision", name+".json"), &g)
	g.Range = rangeOf(g.Logits)
	return &g
}

func rangeOf(x []float32) float64 { return float64(slices.Max(x)) - float64(slices.Min(x)) }

// image is image i, prepared.
func (g *seen) image(i int) *model.Image {
	grid := g.Images[i].Grid
	n := grid[0] * grid[1] * grid[2] * g.Columns
	img := &model.Image{Grid: grid, Patches: make([]float32, n)}
	quant.Floats(img.Patches, quant.F32, model.Fill(fmt.Sprintf("patches.%d", i), g.Seed, n, 0, 1))
	return img
}

// sight is a loaded model with its tower and the features of the golden's images.
type sight struct {
	m     *model.Loaded
	tower *model.Tower
	all   []model.Features
}

// see loads the folder and encodes all images.
func (g *seen) see(t *testing.T, folder fstest.MapFS, be backend.Backend, opts backend.Options) *sight {
	t.Helper()
	c, err := model.OpenCheckpoint(with(folder, "config.json", text(string(g.Config))), "seen")
	if err != nil {
		t.Fatal(err)
	}
	s := &sight{}
	if s.m, err = c.Load(be, opts); err != nil {
		t.Fatal(err)
	}
	if s.tower, err = c.Tower(); err != nil || s.tower == nil {
		t.Fatalf("tower %v: %v", s.tower, err)
	}
	if err := s.tower.Load(be, opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for i := range s.all {
			s.all[i].Free(be)
		}
		for _, c := range []interface{ Close() error }{s.tower, s.m, c, be} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range g.Images {
		img := g.image(i)
		if err := s.tower.Check(img.Grid, len(img.Patches)); err != nil {
			t.Fatal(err)
		}
		f, err := s.tower.Encode(be, img)
		if err != nil {
			t.Fatal(err)
		}
		s.all = append(s.all, f)
	}
	return s
}

// numbers reads features.
func numbers(t *testing.T, be backend.Backend, f model.Features) (all [][]float32) {
	t.Helper()
	b := &backend.Batch{Spans: []backend.Span{{Slot: -1, Len: 1}}}
	b.Pos[0] = []int32{0}
	o := be.Begin(nil, b)
	defer o.End()
	for _, a := range append([]backend.Array{f.Rows}, f.Deep...) {
		x, err := o.Floats(a)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, slices.Clone(x))
	}
	return all
}

// place puts the images into a step of the one sequence.
func (g *seen) place(s *sight, b *backend.Batch) {
	start, n := b.Spans[0].Start, b.Rows()
	for i := range b.Pos {
		b.Pos[i] = make([]int32, n)
	}
	for row := range n {
		for axis, p := range g.position(s, start+row) {
			b.Pos[axis][row] = p
		}
	}
	for i, img := range g.Images {
		from := max(start, img.At)
		to := min(start+n, img.At+s.tower.Rows(img.Grid))
		if from < to {
			in := backend.Insert{Features: s.all[i].Rows, Deep: s.all[i].Deep, From: from - img.At}
			for at := from; at < to; at++ {
				in.Rows = append(in.Rows, int32(at-start))
			}
			b.Media = append(b.Media, in)
		}
	}
}

func (g *seen) position(s *sight, index int) (p [3]int32) {
	shift := 0
	for _, img := range g.Images {
		n := s.tower.Rows(img.Grid)
		if index < img.At {
			break
		}
		if index < img.At+n {
			p = s.tower.At(img.Grid, index-img.At)
			for i := range p {
				p[i] += int32(img.At + shift)
			}
			return p
		}
		shift += s.tower.Extent(img.Grid) - n
	}
	return [3]int32{int32(index + shift), int32(index + shift), int32(index + shift)}
}

// run gives the logits of the golden's rows, in chunks.
func (g *seen) say(t *testing.T, s *sight, be backend.Backend, chunk int) (logits []float32) {
	t.Helper()
	seq := golden.NewSequence(t, be, s.m, len(g.Tokens))
	seq.Place = func(b *backend.Batch) { g.place(s, b) }
	for from := 0; from < len(g.Tokens); from += chunk {
		to := min(from+chunk, len(g.Tokens))
		var out []int32
		for _, r := range g.Rows {
			if int(r) >= from && int(r) < to {
				out = append(out, r-int32(from))
			}
		}
		logits = append(logits, seq.Step(g.Tokens[from:to], out...)...)
	}
	return logits
}

// relative is the largest difference as a share of the largest number.
func relative(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	worst, most := 0.0, 0.0
	for i := range got {
		worst, most = max(worst, math.Abs(float64(got[i])-float64(want[i]))), max(most, math.Abs(float64(want[i])))
		if got[i] != got[i] {
			return math.Inf(1)
		}
	}
	return worst / most
}

// TestTowers compares features and logits with those of transformers, whole and in chunks, and decoding behind images.
func TestTowers(t *testing.T) {
	for _, name := range visionGoldens(t) {
		for _, tc := range []struct {
			name            string
			open            func() backend.Backend
			opts            backend.Options
			features, logit float64
		}{
			{"ref", func() backend.Backend { return ref.New() }, backend.Options{Precision: backend.Float32}, 1e-5, 1e-4},
			{"cpu", func() backend.Backend { return cpu.New() }, backend.Options{Precision: backend.Float32, Threads: 2}, 1e-5, 1e-4},
		} {
			t.Run(name+"/"+tc.name, func(t *testing.T) {
				g, be := loadSeen(t, name), tc.open()
				s := g.see(t, g.folder(t), be, tc.opts)
				for _, w := range s.m.Warnings {
					t.Errorf("warning: %s", w)
				}
				for i, img := range g.Images {
					got := numbers(t, be, s.all[i])
					if len(got) != len(img.Features) {
						t.Fatalf("image %d: %d arrays of features, want %d", i, len(got), len(img.Features))
					}
					for n := range got {
						d := relative(got[n], img.Features[n])
						t.Logf("image %d of %v, features %d: %.2g (bound %.0g)", i, img.Grid, n, d, tc.features)
						if !(d <= tc.features) {
							t.Errorf("image %d of %v, features %d differ by %.3g", i, img.Grid, n, d)
						}
					}
				}
				whole := g.say(t, s, be, len(g.Tokens))
				d := g.diff(whole, g.Logits)
				t.Logf("logits: %.2g of their range (bound %.0g)", d, tc.logit)
				if !(d <= tc.logit) {
					t.Errorf("logits differ by %.3g of their range", d)
				}
				for _, chunk := range []int{1, 7} {
					if cut := g.say(t, s, be, chunk); !slices.Equal(cut, whole) {
						t.Errorf("chunks of %d differ from the whole by %.3g", chunk, g.diff(cut, whole))
					}
				}
			})
		}
	}
}

// mlx is the folder as mlx-community has it: other prefixes, and kernels of patches with channels last.
func (g *seen) mlx(t *testing.T, folder fstest.MapFS) fstest.MapFS {
	t.Helper()
	f, err := safetensors.Parse("model.safetensors", folder["model.safetensors"].Data)
	if err != nil {
		t.Fatal(err)
	}
	var tensors []safetensors.Tensor
	for _, x := range f.Tensors {
		x.Name = strings.Replace(x.Name, "model.visual.", "vision_tower.", 1)
		x.Name = strings.Replace(x.Name, "model.language_model.", "language_model.model.", 1)
		if strings.HasPrefix(x.Name, "lm_head.") {
			x.Name = "language_model." + x.Name
		}
		if strings.HasSuffix(x.Name, "patch_embed.proj.weight") {
			x = channelsLast(x)
		}
		tensors = append(tensors, x)
	}
	return with(maps.Clone(folder), "model.safetensors", pack(t, tensors))
}

// channelsLast moves the second dimension behind the others.
func channelsLast(x safetensors.Tensor) safetensors.Tensor {
	outs, in, rest := x.Shape[0], x.Shape[1], 1
	for _, k := range x.Shape[2:] {
		rest *= k
	}
	to := make([]byte, 0, len(x.Bytes))
	for o := range outs {
		for r := range rest {
			for c := range in {
				to = binary.LittleEndian.AppendUint32(to, binary.LittleEndian.Uint32(x.Bytes[4*((o*in+c)*rest+r):]))
			}
		}
	}
	x.Bytes, x.Shape = to, append(append([]int{outs}, x.Shape[2:]...), in)
	return x
}

// TestTowerLayouts: a folder in MLX's layout is the same model, to the bit.
func TestTowerLayouts(t *testing.T) {
	for _, name := range visionGoldens(t) {
		t.Run(name, func(t *testing.T) {
			g, opts := loadSeen(t, name), backend.Options{Precision: backend.Float32, Threads: 2}
			one, two := cpu.New(), cpu.New()
			hf, mlx := g.see(t, g.folder(t), one, opts), g.see(t, g.mlx(t, g.folder(t)), two, opts)
			for i := range g.Images {
				a, b := numbers(t, one, hf.all[i]), numbers(t, two, mlx.all[i])
				for n := range a {
					if !slices.Equal(a[n], b[n]) {
						t.Errorf("image %d, features %d differ", i, n)
					}
				}
			}
			if n := len(g.Tokens); !slices.Equal(g.say(t, hf, one, n), g.say(t, mlx, two, n)) {
				t.Error("logits differ")
			}
		})
	}
}
