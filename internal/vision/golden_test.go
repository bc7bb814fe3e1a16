package vision

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readGolden reads what tools/golden/image.py made.
func readGolden(t testing.TB, name string, to any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func imageFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "images", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// far compares bytes with samples of a golden at even distances: how many there are, how many are further away than most, and
// the largest distance.
func far(t *testing.T, got []byte, samples string, most int) (n, beyond, worst int) {
	t.Helper()
	want, err := base64.StdEncoding.DecodeString(samples)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		d := int(got[i*len(got)/len(want)]) - int(w)
		d = max(d, -d)
		worst = max(worst, d)
		if d > most {
			beyond++
		}
	}
	return len(want), beyond, worst
}

// TestDecodedAsPillow compares decoded pixels with Pillow's: to the bit what is coded without loss and what
// baseline decodes, within 2 at 99.9 % of the samples what is not.
func TestDecodedAsPillow(t *testing.T) {
	var golden struct {
		Images map[string]struct {
			Width, Height int
			Sum           string
			Samples       string
		}
	}
	readGolden(t, "decoded.json", &golden)
	if len(golden.Images) < 50 {
		t.Fatalf("there are %d images", len(golden.Images))
	}
	exact := 0
	all, off := 0, 0
	for name, want := range golden.Images {
		r, err := Decode(t.Context(), imageFile(t, name), DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Width != want.Width || r.Height != want.Height {
			t.Errorf("%s: %d by %d, want %d by %d", name, r.Width, r.Height, want.Width, want.Height)
			continue
		}
		sum := sha256.Sum256(r.Pix)
		if hex.EncodeToString(sum[:]) == want.Sum {
			exact++
			continue
		}
		if want.Samples == "" {
			t.Errorf("%s: other pixels than Pillow's", name)
			continue
		}
		if own(t, name) {
			t.Errorf("%s: other pixels than Pillow's, and baseline has decoded it", name)
		}
		n, beyond, worst := far(t, r.Pix, want.Samples, 2)
		all, off = all+n, off+beyond
		t.Logf("%s: not to the bit: %d of %d samples are further than 2, at most %d", name, beyond, n, worst)
		if beyond*1000 > n {
			t.Errorf("%s: too many", name)
		}
	}
	t.Logf("%d of %d images to the bit; of %d samples of others %d further than 2", exact, len(golden.Images), all, off)
}

// TestPreparedAsTransformers compares patches with those of transformers' processors, and their order.
func TestPreparedAsTransformers(t *testing.T) {
	var golden struct {
		Processors map[string]struct {
			Config, Preprocessor, Processor json.RawMessage
			Images                          map[string]struct {
				Refused    string
				Grids      [][3]int
				Rows, Cols int
				Sum        string
				Floats     string
				Samples    string
			}
		}
	}
	readGolden(t, "prepared.json", &golden)
	rasters := map[string]*Raster{}
	for kind, g := range golden.Processors {
		t.Run(kind, func(t *testing.T) {
			p, err := NewProcessor(Files{g.Config, g.Preprocessor, g.Processor})
			if err != nil {
				t.Fatal(err)
			}
			exact, refused, all, off := 0, 0, 0, 0
			for name, want := range g.Images {
				// Tens of megapixels for each picture: some do, where time is short.
				if strings.HasPrefix(kind, "smolvlm") || strings.HasPrefix(kind, "idefics3") || kind == "gemma3_crops" {
					if testing.Short() && !strings.HasPrefix(name, "t") && !strings.HasPrefix(name, "screen") {
						continue
					}
				}
				r := rasters[name]
				if r == nil {
					if r, err = Decode(t.Context(), imageFile(t, name), DefaultLimits()); err != nil {
						t.Fatal(err)
					}
					rasters[name] = r
				}
				pic, err := p.Prepare(t.Context(), r)
				if want.Grids == nil {
					if refused++; err == nil {
						t.Errorf("%s: taken, but transformers says %s", name, want.Refused)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				var grids [][3]int
				for _, tile := range pic.Tiles {
					grids = append(grids, tile.Grid)
				}
				if !slices.Equal(grids, want.Grids) || pic.Rows != want.Rows || pic.Cols != want.Cols {
					t.Errorf("%s: grids %v in %d by %d, want %v in %d by %d", name, grids, pic.Rows, pic.Cols, want.Grids, want.Rows, want.Cols)
					continue
				}
				floats, bytes := patchesOf(pic)
				sum := sha256.Sum256(bytes)
				same := hex.EncodeToString(sum[:16]) == want.Sum
				if same {
					exact++
				} else if want.Samples == "" {
					t.Errorf("%s: other pixels", name)
				} else {
					n, beyond, worst := far(t, bytes, want.Samples, 2)
					all, off = all+n, off+beyond
					if worst > 6 {
						t.Errorf("%s: a sample is %d off", name, worst)
					}
				}
				b, err := base64.StdEncoding.DecodeString(want.Floats)
				if err != nil {
					t.Fatal(err)
				}
				for i := range len(b) / 4 {
					w := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
					if v := floats[i*len(floats)/(len(b)/4)]; v != w && same {
						t.Errorf("%s: float %d is %v, want %v", name, i, v, w)
					}
				}
			}
			if off*1000 > all {
				t.Errorf("%d of %d samples of lossy pictures are further than 2", off, all)
			}
			t.Logf("%d of %d pictures to the bit, %d refused by both; of %d samples of the others %d further than 2", exact, len(g.Images), refused, all, off)
		})
	}
}

// patchesOf reads all patches of a picture, as floats and as the values of the pixels that they are made of.
func patchesOf(p *Picture) (floats []float32, bytes []byte) {
	per := p.PatchLen()
	for i, tile := range p.Tiles {
		n := tile.Grid[0] * tile.Grid[1] * tile.Grid[2]
		// In two calls: where a call begins must not matter.
		f := make([]float32, n*per)
		p.Patches(f, i, 0, n/2)
		p.Patches(f[n/2*per:], i, n/2, n-n/2)
		floats = append(floats, f...)
	}
	bytes = make([]byte, len(floats))
	run := 1 // of floats of one channel
	if p.proc.planes {
		run = p.proc.temporal * p.proc.patch * p.proc.patch
	}
	for i := 0; i < len(floats); i += run {
		table := &p.proc.table[i/run%3]
		zero, scale := table[0], 255/(table[255]-table[0])
		for j, v := range floats[i : i+run] {
			bytes[i+j] = uint8((v-zero)*scale + 0.5)
		}
	}
	return floats, bytes
}
