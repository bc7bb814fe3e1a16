package vision

import (
	"bytes"
	"image"
	"image/jpeg"
	"slices"
	"strings"
	"testing"
)

// own reports whether baseline decodes a file of testdata.
func own(t *testing.T, name string) bool {
	t.Helper()
	if !strings.HasSuffix(name, ".jpg") {
		return false
	}
	file := imageFile(t, name)
	h, err := Inspect(file, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return baseline(t.Context(), file, h.raw[0], h.raw[1]) != nil
}

// TestBaselineTakes: what is common is decoded here, and what is not is left to image/jpeg.
func TestBaselineTakes(t *testing.T) {
	for _, name := range []string{"411.jpg", "420.jpg", "420odd.jpg", "420tiny.jpg", "422.jpg", "440.jpg", "444.jpg", "grey.jpg", "noisy.jpg", "photo.jpg", "restart.jpg", "turned6.jpg"} {
		if !own(t, name) {
			t.Errorf("%s is not decoded", name)
		}
	}
	for _, name := range []string{"cmyk.jpg", "progressive.jpg", "rgb.jpg", "ycck.jpg"} {
		if own(t, name) {
			t.Errorf("%s is decoded", name)
		}
	}
}

// TestBaselineLeaves: of a file in which something is odd baseline makes nothing.
func TestBaselineLeaves(t *testing.T) {
	file := imageFile(t, "restart.jpg")
	scan := bytes.Index(file, []byte{0xff, 0xda})
	first := scan + bytes.Index(file[scan:], []byte{0xff, 0xd0})
	table := bytes.Index(file, []byte{0xff, 0xc4})
	with := func(at int, b ...byte) []byte {
		f := slices.Clone(file)
		copy(f[at:], b)
		return f
	}
	h, err := Inspect(file, DefaultLimits())
	if err != nil || first < scan || table < 0 {
		t.Fatal(err, scan, first, table)
	}
	for name, f := range map[string][]byte{
		"half of it":               file[:len(file)/2],
		"no end":                   file[:len(file)-2],
		"another mark at the end":  with(len(file)-2, 0xff, 0xd0),
		"restarts in another turn": with(first, 0xff, 0xd1),
		"no restart":               slices.Delete(slices.Clone(file), first, first+2),
		"a byte too many":          slices.Insert(slices.Clone(file), first, 0x55),
		"codes without an end":     with(table+5, 200, 200, 200),
		"too many codes":           with(table+5, 3),
		"a table that is not told": with(scan+6, 0x33),
		"spectral selection":       with(scan+11, 1),
		"nothing":                  nil,
		"the start alone":          file[:scan],
	} {
		if baseline(t.Context(), f, h.raw[0], h.raw[1]) != nil {
			t.Errorf("%s: it is decoded", name)
		}
	}
	if baseline(t.Context(), file, h.raw[0]+1, h.raw[1]) != nil {
		t.Error("it is decoded with a width that it does not have")
	}
	if baseline(t.Context(), file, h.raw[0], h.raw[1]) == nil {
		t.Error("the file itself is not decoded")
	}
}

// FuzzBaseline: what baseline decodes is a picture to image/jpeg too, of the same size and kind.
func FuzzBaseline(f *testing.F) {
	addImages(f, func(name string) bool { return strings.HasSuffix(name, ".jpg") && name != "photo.jpg" })
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Inspect(b, fuzzLimits)
		if err != nil || h.Format != "jpeg" {
			return
		}
		m := baseline(t.Context(), b, h.raw[0], h.raw[1])
		if m == nil {
			return
		}
		want, err := jpeg.Decode(bytes.NewReader(b))
		if err != nil || m.Bounds() != want.Bounds() {
			t.Fatalf("%v, to image/jpeg %v: %v", m.Bounds(), want, err)
		}
		switch m := m.(type) {
		case *image.Gray:
			if _, grey := want.(*image.Gray); !grey {
				t.Fatalf("%T, to image/jpeg %T", m, want)
			}
		case *image.YCbCr:
			if y, ok := want.(*image.YCbCr); !ok || y.SubsampleRatio != m.SubsampleRatio {
				t.Fatalf("%T, to image/jpeg %T", m, want)
			}
		}
	})
}
