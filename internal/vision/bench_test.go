package vision

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"testing"
)

// scene is a picture like a photo: waves and noise.
func scene(w, h int) *Raster {
	r := newRaster(w, h)
	rng := rand.New(rand.NewPCG(1, 2))
	for y := range h {
		row := r.row(y)
		for x := range w {
			v := 127 + 80*math.Sin(float64(x)/97+float64(y)/201)
			for c := range 3 {
				row[3*x+c] = uint8(v + float64(rng.IntN(12)) + float64(c))
			}
		}
	}
	return r
}

// screen is a picture like a screenshot: flat, with short runs of other colours.
func screen(w, h int) *Raster {
	r := newRaster(w, h)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range r.Pix {
		r.Pix[i] = 250
	}
	for y := range h {
		if y%16 < 5 {
			continue
		}
		for x := 0; x < w*2/3; x++ {
			if rng.IntN(3) == 0 {
				copy(r.row(y)[3*x:], []byte{40, 60, 90})
			}
		}
	}
	return r
}

func nrgba(r *Raster) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, r.Width, r.Height))
	for i := range r.Width * r.Height {
		copy(m.Pix[4*i:], append(r.Pix[3*i:3*i+3:3*i+3], 255))
	}
	return m
}

// encoded is a picture as a file.
func encoded(b testing.TB, name string, r *Raster) []byte {
	b.Helper()
	var out bytes.Buffer
	var err error
	if name == "photo.jpg" {
		err = jpeg.Encode(&out, nrgba(r), &jpeg.Options{Quality: 90})
	} else {
		err = png.Encode(&out, nrgba(r))
	}
	if err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	for name, r := range map[string]*Raster{"photo.jpg": scene(4032, 3024), "screen.png": screen(2560, 1600), "photo.png": scene(2560, 1600)} {
		file := encoded(b, name, r)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Decode(b.Context(), file, DefaultLimits()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPrepare is what comes after decoding 12 megapixels.
func BenchmarkPrepare(b *testing.B) {
	r := scene(4032, 3024)
	for _, c := range []struct{ name, config, pre string }{
		{"qwen3_vl", `{"model_type":"qwen3_vl"}`, `{"size":{"longest_edge":16777216,"shortest_edge":65536},"patch_size":16}`},
		{"qwen2_5_vl", `{"model_type":"qwen2_5_vl"}`, `{"max_pixels":1003520}`},
		{"gemma3", `{"model_type":"gemma3"}`, `{"size":{"height":896,"width":896}}`},
		{"gemma4", `{"model_type":"gemma4"}`, `{}`},
		{"mistral3", `{"model_type":"mistral3","spatial_merge_size":2,"vision_config":{"patch_size":14}}`, `{"size":{"longest_edge":1540}}`},
		{"lfm2_vl", `{"model_type":"lfm2_vl"}`, `{}`},
		{"smolvlm", `{"model_type":"smolvlm","scale_factor":4,"vision_config":{"patch_size":16}}`, `{"size":{"longest_edge":2048},"max_image_size":{"longest_edge":512}}`},
	} {
		p, err := NewProcessor(Files{Config: []byte(c.config), Preprocessor: []byte(c.pre)})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Prepare(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPatches reads all floats of a prepared picture, as a tower does that takes 1024 patches at a time.
func BenchmarkPatches(b *testing.B) {
	pic, err := qwen3(b).Prepare(b.Context(), scene(4032, 3024))
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]float32, 1024*pic.PatchLen())
	for b.Loop() {
		n := pic.PatchCount()
		for at := 0; at < n; at += 1024 {
			pic.Patches(dst, 0, at, min(1024, n-at))
		}
	}
}

// BenchmarkScreenshot is all of it for a screenshot of 4 megapixels.
func BenchmarkScreenshot(b *testing.B) {
	file := encoded(b, "screen.png", screen(2560, 1600))
	g, p := NewGate(1, DefaultLimits()), qwen3(b)
	for b.Loop() {
		if _, err := g.Picture(b.Context(), file, p); err != nil {
			b.Fatal(err)
		}
	}
}
