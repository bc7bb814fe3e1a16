package visiontest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"hearth/internal/vision"
)

// Known is a picture that transformers' image processor has prepared too (tools/golden/image.py), and a model that sees by that
// processor.
type Known struct {
	Folder string // of the model: a qwen3_vl with random weights
	File   string // path of the PNG
	// Seen is how the server's log tells of the picture at --log-level debug when none of it was cached: its pixels, those of
	// the reference, and the digest of a picture whose prepared pixels are the reference's to the bit.
	Seen string
}

// Reference makes the model's folder and compares what package vision makes of the picture with the reference, so that an equal
// digest means equal pixels.
func Reference(t testing.TB) *Known {
	t.Helper()
	const kind, name, patch, merged = "qwen3_vl", "rgb.png", 16, 4
	var golden struct {
		Processors map[string]struct {
			Config, Preprocessor json.RawMessage
			Images               map[string]struct {
				Grids [][3]int
				Sum   string // the first half of SHA-256 of the patches as 8-bit values
			}
		}
	}
	if err := json.Unmarshal(read(t, "vision", "testdata", "prepared.json"), &golden); err != nil {
		t.Fatal(err)
	}
	g := golden.Processors[kind]
	want, ok := g.Images[name]
	if !ok || len(want.Grids) != 1 {
		t.Fatalf("the golden has no %s of one tile", name)
	}
	p, err := vision.NewProcessor(vision.Files{Config: g.Config, Preprocessor: g.Preprocessor})
	if err != nil {
		t.Fatal(err)
	}
	raster, err := vision.Decode(t.Context(), read(t, "vision", "testdata", "images", name), vision.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	pic, err := p.Prepare(t.Context(), raster)
	if err != nil {
		t.Fatal(err)
	}
	grid := want.Grids[0]
	n := grid[0] * grid[1] * grid[2]
	if pic.PatchCount() != n || pic.Tiles[0].Grid != grid {
		t.Fatalf("%s has patches %v, the reference has %v", name, pic.Tiles[0].Grid, grid)
	}
	floats := make([]float32, n*pic.PatchLen())
	pic.Patches(floats, 0, 0, n)
	values := make([]byte, len(floats))
	for i, v := range floats { // mean and deviation are a half
		values[i] = uint8((v+1)*127.5 + 0.5)
	}
	if sum := sha256.Sum256(values); hex.EncodeToString(sum[:16]) != want.Sum {
		t.Fatalf("%s: other pixels than the reference's", name)
	}
	return &Known{
		Folder: folder(t, kind, g.Preprocessor, patch),
		File:   filepath.Join(root(t), "internal", "vision", "testdata", "images", name),
		Seen: fmt.Sprintf("%dx%d prepared=%dx%d tokens=%d cached=0 digest=%x", raster.Width, raster.Height,
			grid[2]*patch, grid[1]*patch, n/merged, pic.Digest),
	}
}
