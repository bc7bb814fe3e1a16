//go:build darwin || linux

package model_test

import (
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/golden"
	"hearth/internal/model"
)

// TestMLXGoldens runs every golden on MLX itself, in float32 on its CPU device.
func TestMLXGoldens(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	for _, typ := range model.Types() {
		files, _ := filepath.Glob(filepath.Join("testdata", typ, "*.json"))
		for _, file := range files {
			var g logits
			golden.Load(t, file, &g)
			t.Run(typ+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				g.compare(t, testshim.Open(t), backend.Options{Precision: backend.Float32}, g.bound(exact))
			})
		}
	}
}

// TestMLXEncoders is TestEncoders on MLX itself.
func TestMLXEncoders(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	files, _ := filepath.Glob(filepath.Join("testdata", "encoders", "*", "*.json"))
	for _, file := range files {
		var g encoding
		golden.Load(t, file, &g)
		t.Run(filepath.Base(filepath.Dir(file))+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			g.compare(t, testshim.Open(t), backend.Options{Precision: backend.Float32})
		})
	}
}

// TestMLXSavedFolders is TestSavedFolders on MLX itself.
func TestMLXSavedFolders(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	for _, name := range savedGoldens(t) {
		t.Run(name, func(t *testing.T) { loadSaved(t, name).compare(t, testshim.Open(t)) })
	}
}

// TestMLXTowers is TestTowers on MLX itself.
func TestMLXTowers(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	for _, name := range visionGoldens(t) {
		t.Run(name, func(t *testing.T) { loadSeen(t, name).compare(t, testshim.Open(t)) })
	}
}

// TestMLXFolders: folders in which modules are stored in several ways give the reference's logits on MLX itself.
func TestMLXFolders(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	g := loadFolders(t)
	for i := range g.Cases {
		t.Run(g.Cases[i].Name, func(t *testing.T) {
			g.Cases[i].compare(t, &g, testshim.Open(t), backend.Options{Precision: backend.Float32}, exact.quantised)
		})
	}
}

// TestMLXSteady: a decode step leaves nothing behind, and closing leaves nothing at all.
func TestMLXSteady(t *testing.T) {
	be := testshim.Open(t)
	before := be.Live()
	for _, typ := range []string{"qwen3", "gpt_oss", "qwen3_next", "deepseek_v3"} {
		be := testshim.Open(t)
		var g logits
		golden.Load(t, filepath.Join("testdata", typ, "f32.json"), &g)
		m, err := model.Synthetic{Config: g.Config, Seed: g.Seed, Type: g.Type}.Load(be, backend.Options{Precision: backend.Float32})
		if err != nil {
			t.Fatal(err)
		}
		const warm, steps = 20, 100 // the buffers of 256 positions do not grow meanwhile
		s := golden.NewSequence(t, be, m, warm+steps)
		var live int
		for i := range warm + steps {
			if i == warm {
				live = be.Live()
			}
			s.Step([]int32{int32(i) % 7}, 0)
		}
		if now := be.Live(); now != live {
			t.Errorf("%s: %d arrays after %d steps, %d before them", typ, now, steps, live)
		}
		m.Close()
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	}
	if now := be.Live(); now != before {
		t.Errorf("%d arrays are left of %d", now-before, before)
	}
}

// TestMLXHalf: with activations in bfloat16, as on a GPU, results are as near as that type lets them be. MLX's CPU device has no
// gathered product of floats in it.
func TestMLXHalf(t *testing.T) {
	c := testshim.Config(t, testshim.Newest)
	c.Activations = backend.BF16
	for _, file := range []string{"qwen3/4bit", "qwen3/bf16", "gemma3/f32", "gpt_oss/mxfp4", "deepseek_v3/4bit"} {
		t.Run(file, func(t *testing.T) {
			var g logits
			golden.Load(t, filepath.Join("testdata", filepath.FromSlash(file)+".json"), &g)
			be, err := mlx.Open(c)
			if err != nil {
				t.Fatal(err)
			}
			g.compare(t, be, backend.Options{}, 0.1)
		})
	}
}
