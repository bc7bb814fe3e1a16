package vision

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// fuzzLimits keep a fuzzer's pictures small.
var fuzzLimits = Limits{Bytes: 1 << 20, Pixels: 1 << 16, Ratio: 100, Images: 1}

func addImages(f *testing.F, keep func(name string) bool) {
	files, err := os.ReadDir("testdata/images")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range files {
		if keep(e.Name()) {
			f.Add(imageFile(f, e.Name()))
		}
	}
}

// checkDecoded: a file is a picture within the limits, or an error that is one of ours and is printable.
func checkDecoded(t *testing.T, b []byte) {
	h, err := Inspect(b, fuzzLimits)
	if err == nil {
		if h.Width < 1 || h.Height < 1 || h.Width*h.Height > fuzzLimits.Pixels {
			t.Fatalf("%d by %d is within the limits", h.Width, h.Height)
		}
		var r *Raster
		if r, err = decode(t.Context(), b, h); err == nil {
			if r.Width != h.Width || r.Height != h.Height || len(r.Pix) != 3*r.Width*r.Height {
				t.Fatalf("%d by %d with %d bytes, the header said %d by %d", r.Width, r.Height, len(r.Pix), h.Width, h.Height)
			}
			return
		}
	}
	var e *Error
	if !errors.As(err, &e) || len(e.Error()) > 500 {
		t.Fatalf("%T: %v", err, err)
	}
}

func fuzzFormat(f *testing.F, ends string, starts string) {
	addImages(f, func(name string) bool {
		return strings.HasSuffix(name, ends) && !strings.HasPrefix(name, "photo") && !strings.HasPrefix(name, "screen")
	})
	for _, c := range hostile(f) {
		if strings.HasPrefix(c.name, strings.TrimPrefix(ends, ".")) && len(c.file) < 4096 {
			f.Add(c.file)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !strings.HasPrefix(string(b), starts) {
			t.Skip()
		}
		checkDecoded(t, b)
	})
}

func FuzzPNG(f *testing.F)  { fuzzFormat(f, ".png", "\x89PNG") }
func FuzzJPEG(f *testing.F) { fuzzFormat(f, ".jpg", "\xff\xd8") }
func FuzzGIF(f *testing.F)  { fuzzFormat(f, ".gif", "GIF8") }
func FuzzWebP(f *testing.F) { fuzzFormat(f, ".webp", "RIFF") }
func FuzzBMP(f *testing.F)  { fuzzFormat(f, ".bmp", "BM") }
func FuzzTIFF(f *testing.F) { fuzzFormat(f, ".tiff", "") }

// FuzzInspect reads headers of all formats, and what is no image.
func FuzzInspect(f *testing.F) {
	addImages(f, func(name string) bool { return !strings.HasPrefix(name, "photo") })
	for _, c := range hostile(f) {
		f.Add(c.file[:min(len(c.file), 4096)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Inspect(b, fuzzLimits)
		if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		if err == nil && (h.Orientation < 1 || h.Orientation > 8) {
			t.Fatalf("orientation %d", h.Orientation)
		}
	})
}

// FuzzProcessor: files of a model make a processor that keeps to its own plan, or an error.
func FuzzProcessor(f *testing.F) {
	for _, kind := range []string{"qwen2_vl", "gemma3", "gemma4", "pixtral", "lfm2_vl", "idefics3", "smolvlm"} {
		f.Add([]byte(`{"model_type":"`+kind+`"}`), []byte(`{}`), uint16(300), uint16(200))
	}
	f.Add([]byte(`{"model_type":"gemma3"}`), []byte(`{"do_pan_and_scan":true,"size":{"height":896,"width":896}}`), uint16(1), uint16(9000))
	f.Add([]byte(`{"model_type":"lfm2_vl"}`), []byte(`{"min_tiles":1,"max_tiles":4,"tile_size":64}`), uint16(4000), uint16(3000))
	f.Fuzz(func(t *testing.T, config, pre []byte, w, h uint16) {
		p, err := NewProcessor(Files{Config: config, Preprocessor: pre})
		if err != nil || w == 0 || h == 0 {
			return
		}
		plan, err := p.Plan(int(w), int(h))
		if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		if err != nil {
			return
		}
		if len(plan.Tiles) == 0 || plan.Positions() < 1 {
			t.Fatalf("%v", plan)
		}
		pixels := 0
		for _, tile := range plan.Tiles {
			pixels += tile.width * tile.height
			if tile.width < 1 || tile.height < 1 || tile.Grid[1]*p.patch > tile.height || tile.Grid[2]*p.patch > tile.width {
				t.Fatalf("%v", tile)
			}
		}
		if pixels > 2*maxPrepared {
			t.Fatalf("%d pixels", pixels)
		}
		if pixels > 1<<18 || int(w)*int(h) > 1<<16 {
			return
		}
		pic, err := p.Prepare(t.Context(), newRaster(int(w), int(h)))
		if err != nil {
			t.Fatal(err)
		}
		for i, tile := range pic.Tiles {
			n := tile.Grid[0] * tile.Grid[1] * tile.Grid[2]
			pic.Patches(make([]float32, n*pic.PatchLen()), i, 0, n)
		}
	})
}
