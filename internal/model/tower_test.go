package model_test

import (
	"encoding/binary"
	"encoding/json"

	"fmt"
	"maps"
	"math"
	"os"
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

// seen is a golden of tools/golden/vision.py: a folder that transformers saved, what its tower makes of images, and what it says
// to a text with them.
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
	base, amp := 0.0, 1.0
	if g.typ() == "gemma4" { // which brings pixels around 0 itself
		base, amp = 0.5, 0.5
	}
	quant.Floats(img.Patches, quant.F32, model.Fill(fmt.Sprintf("patches.%d", i), g.Seed, n, base, amp))
	return img
}

// typ is the model_type.
func (g *seen) typ() string {
	var head struct {
		Type string `json:"model_type"`
	}
	_ = json.Unmarshal(g.Config, &head)
	return head.Type
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
			in, line := backend.Insert{Features: s.all[i].Rows, Deep: s.all[i].Deep}, s.tower.Line(img.Grid)
			for at := from; at < to; at++ {
				feature, ok := model.Feature(line, at-img.At)
				if !ok {
					continue
				}
				if len(in.Rows) == 0 {
					in.From = feature
				}
				in.Rows = append(in.Rows, int32(at-start))
			}
			if len(in.Rows) > 0 {
				b.Media = append(b.Media, in)
			}
			if s.tower.Together {
				b.Spans[0].Both = append(b.Spans[0].Both, backend.Range{From: from, To: to})
			}
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
	next := 0
	for from := 0; from < len(g.Tokens); from = next {
		to := min(from+chunk, len(g.Tokens))
		for _, img := range g.Images {
			if end := img.At + s.tower.Rows(img.Grid); s.tower.Together && to > img.At && to < end {
				to = end
			}
		}
		next = to
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
		t.Run(name+"/ref", func(t *testing.T) { loadSeen(t, name).compare(t, ref.New()) })
		t.Run(name+"/cpu", func(t *testing.T) { loadSeen(t, name).compare(t, cpu.New()) })
	}
}

func (g *seen) compare(t *testing.T, be backend.Backend) {
	const features, logit = 1e-5, 1e-4 // of the largest number, and of the range
	s := g.see(t, g.folder(t), be, backend.Options{Precision: backend.Float32, Threads: 2})
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
			t.Logf("image %d of %v, features %d: %.2g", i, img.Grid, n, d)
			if !(d <= features) {
				t.Errorf("image %d of %v, features %d differ by %.3g", i, img.Grid, n, d)
			}
		}
	}
	whole := g.say(t, s, be, len(g.Tokens))
	d := g.diff(whole, g.Logits)
	t.Logf("logits: %.2g of their range", d)
	if !(d <= logit) {
		t.Errorf("logits differ by %.3g of their range", d)
	}
	for _, chunk := range []int{1, 7} {
		cut := g.say(t, s, be, chunk)
		if d := g.diff(cut, whole); be.Caps().Invariant && !slices.Equal(cut, whole) || !(d <= logit) {
			t.Errorf("chunks of %d differ from the whole by %.3g", chunk, d)
		}
	}
}

// mlxNames are those of mlx-community's folders for transformers' of now.
var mlxNames = strings.NewReplacer("model.visual.", "vision_tower.", "model.language_model.", "language_model.model.", "model.text_model.", "language_model.",
	"model.vision_model.", "vision_model.", "model.vision_tower.", "vision_tower.", "model.connector.", "connector.", "model.multi_modal_projector.", "multi_modal_projector.")

// mlx is the folder as mlx-community has it: other prefixes, and kernels of patches with channels last.
func (g *seen) mlx(t *testing.T, folder fstest.MapFS) fstest.MapFS {
	t.Helper()
	f, err := safetensors.Parse("model.safetensors", folder["model.safetensors"].Data)
	if err != nil {
		t.Fatal(err)
	}
	var tensors []safetensors.Tensor
	for _, x := range f.Tensors {
		x.Name = mlxNames.Replace(x.Name)
		if strings.HasPrefix(x.Name, "lm_head.") {
			x.Name = "language_model." + x.Name
		}
		x.Name = strings.Replace(x.Name, "model.multi_modal_projector.", "multi_modal_projector.", 1)
		x.Name = strings.Replace(x.Name, "model.embed_vision.", "embed_vision.", 1)
		if g.typ() == "mistral3" || g.typ() == "llava" {
			x.Name = strings.Replace(x.Name, "model.vision_tower.", "vision_tower.vision_model.", 1)
		}
		if len(x.Shape) > 3 {
			x = channelsLast(x)
		}
		tensors = append(tensors, x)
	}
	return with(maps.Clone(folder), "model.safetensors", pack(t, tensors))
}

// named is the golden with the type that MLX's folders have.
func (g *seen) named() *seen {
	other := *g
	other.Config = []byte(strings.Replace(string(g.Config), `"model_type": "llava"`, `"model_type": "pixtral"`, 1))
	return &other
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
			hf, mlx := g.see(t, g.folder(t), one, opts), g.named().see(t, g.mlx(t, g.folder(t)), two, opts)
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

// TestTowerQuantized: a tower whose matrices are quantised as in published folders is the one of the numbers that they stand for.
func TestTowerQuantized(t *testing.T) {
	for _, name := range []string{"qwen3_vl", "lfm2_vl", "idefics3", "gemma4", "gemma4-both", "mistral3", "llava-pixtral"} {
		t.Run(name, func(t *testing.T) { loadSeen(t, name).quantized(t) })
	}
}

func (g *seen) quantized(t *testing.T) {
	const group, bits = 32, 8
	scheme := quant.Scheme{Mode: quant.Affine, Bits: bits, Group: group}
	f, err := safetensors.Parse("model.safetensors", g.mlx(t, g.folder(t))["model.safetensors"].Data)
	if err != nil {
		t.Fatal(err)
	}
	var stored, meant []safetensors.Tensor
	quantised := 0
	for _, x := range f.Tensors {
		path, ok := strings.CutSuffix(x.Name, ".weight")
		if !ok || strings.HasPrefix(x.Name, "language_model.") || len(x.Shape) != 2 || x.Shape[1]%group != 0 {
			stored, meant = append(stored, x), append(meant, x)
			continue
		}
		numbers := make([]float32, x.Shape[0]*x.Shape[1])
		quant.Floats(numbers, quant.F32, x.Bytes)
		m, err := quant.Quantize(scheme, numbers, x.Shape[0], x.Shape[1], quant.F32)
		if err != nil {
			t.Fatal(err)
		}
		quantised++
		groups := []int{x.Shape[0], x.Shape[1] / group}
		stored = append(stored, safetensors.Tensor{Name: x.Name, DType: "U32", Shape: []int{x.Shape[0], x.Shape[1] * bits / 32}, Bytes: m.Weight},
			safetensors.Tensor{Name: path + ".scales", DType: "F32", Shape: groups, Bytes: m.Scales}, safetensors.Tensor{Name: path + ".biases", DType: "F32", Shape: groups, Bytes: m.Biases})
		for r := range x.Shape[0] {
			m.Row(numbers[r*x.Shape[1]:][:x.Shape[1]], r)
		}
		x.Bytes = make([]byte, 4*len(numbers))
		quant.PutFloats(x.Bytes, quant.F32, numbers)
		meant = append(meant, x)
	}
	if quantised < 10 {
		t.Fatalf("%d matrices are quantised", quantised)
	}
	opts := backend.Options{Precision: backend.Float32, Threads: 2}
	one, two := cpu.New(), cpu.New()
	a := g.see(t, fstest.MapFS{"model.safetensors": pack(t, meant)}, one, opts)
	m := mutation{Key: "quantization", Value: []byte(`{"group_size": 32, "bits": 8}`)}
	g.Config = m.apply(t, g.Config)
	b := g.see(t, fstest.MapFS{"model.safetensors": pack(t, stored)}, two, opts)
	for i := range g.Images {
		x, y := numbers(t, one, a.all[i]), numbers(t, two, b.all[i])
		for n := range x {
			if d := relative(y[n], x[n]); !(d <= 1e-5) {
				t.Errorf("image %d, features %d differ by %.3g", i, n, d)
			}
		}
	}
}

// TestTowerHalf: a tower that is stored in bfloat16, as published ones are, is the one of those numbers.
func TestTowerHalf(t *testing.T) {
	for _, name := range visionGoldens(t) {
		t.Run(name, func(t *testing.T) {
			g := loadSeen(t, name)
			f, err := safetensors.Parse("model.safetensors", g.folder(t)["model.safetensors"].Data)
			if err != nil {
				t.Fatal(err)
			}
			var stored, meant []safetensors.Tensor
			for _, x := range f.Tensors {
				n := len(x.Bytes) / 4
				numbers, half := make([]float32, n), make([]byte, 2*n)
				quant.Floats(numbers, quant.F32, x.Bytes)
				quant.PutFloats(half, quant.BF16, numbers)
				quant.Floats(numbers, quant.BF16, half)
				whole := make([]byte, 4*n)
				quant.PutFloats(whole, quant.F32, numbers)
				stored = append(stored, safetensors.Tensor{Name: x.Name, DType: "BF16", Shape: x.Shape, Bytes: half})
				meant = append(meant, safetensors.Tensor{Name: x.Name, DType: "F32", Shape: x.Shape, Bytes: whole})
			}
			opts := backend.Options{Precision: backend.Float32, Threads: 2}
			one, two := cpu.New(), cpu.New()
			a := g.see(t, fstest.MapFS{"model.safetensors": pack(t, meant)}, one, opts)
			b := g.see(t, fstest.MapFS{"model.safetensors": pack(t, stored)}, two, opts)
			for i := range g.Images {
				x, y := numbers(t, one, a.all[i]), numbers(t, two, b.all[i])
				for n := range x {
					if d := relative(y[n], x[n]); !(d <= 1e-5) {
						t.Errorf("image %d, features %d differ by %.3g", i, n, d)
					}
				}
			}
		})
	}
}

// TestTowerAbsent: a folder with the language model alone has no tower, and says nothing of it; one with a part of a tower names
// what is missing.
func TestTowerAbsent(t *testing.T) {
	g := loadSeen(t, "qwen3_vl")
	f, err := safetensors.Parse("model.safetensors", g.folder(t)["model.safetensors"].Data)
	if err != nil {
		t.Fatal(err)
	}
	open := func(keep func(name string) bool) (*model.Tower, error) {
		var tensors []safetensors.Tensor
		for _, x := range f.Tensors {
			if keep(x.Name) {
				tensors = append(tensors, x)
			}
		}
		c, err := model.OpenCheckpoint(fstest.MapFS{"config.json": text(string(g.Config)), "model.safetensors": pack(t, tensors)}, "seen")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.Tower()
	}
	if v, err := open(func(name string) bool { return !strings.Contains(name, "visual.") }); v != nil || err != nil {
		t.Errorf("a folder without a tower has %v: %v", v, err)
	}
	const missing = "blocks.1.attn.proj.weight"
	if _, err := open(func(name string) bool { return !strings.HasSuffix(name, missing) }); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v, should name %s", err, missing)
	}
}

// TestTowerConfigs: what is wrong with vision_config is said by its key.
func TestTowerConfigs(t *testing.T) {
	for _, tc := range []struct{ golden, key, value string }{
		{"qwen3_vl", "depth", "0"}, {"qwen3_vl", "num_heads", "3"}, {"qwen3_vl", "out_hidden_size", "32"}, {"qwen3_vl", "deepstack_visual_indexes", "[0, 7]"},
		{"qwen3_vl", "hidden_act", `"mish"`}, {"qwen3_vl", "patch_size", `"large"`}, {"qwen3_vl", "spatial_merge_size", "-1"}, {"qwen3_vl", "rope_parameters", `{"rope_theta": 0}`},
		{"gemma4", "head_dim", "30"}, {"gemma4", "num_key_value_heads", "3"}, {"gemma4", "pooling_kernel_size", "0"}, {"gemma4", "position_embedding_size", "0"},
		{"gemma4", "hidden_activation", `"mish"`}, {"gemma4", "rope_parameters", `{"rope_theta": 0.5}`}, {"mistral3", "num_attention_heads", "3"},
		{"mistral3", "head_dim", "16"}, {"mistral3", "patch_size", "[4, 4]"}, {"mistral3", "hidden_act", `"mish"`}, {"mistral3", "num_channels", "0"},
		{"qwen2_5_vl", "window_size", "1"}, {"qwen2_5_vl", "intermediate_size", "-3"}, {"qwen2_vl", "embed_dim", "70000000"},
		{"lfm2_vl", "/projector_hidden_act", `"mish"`}, {"lfm2_vl", "/downsample_factor", "0"}, {"lfm2_vl", "/projector_hidden_size", "-1"}, {"smolvlm", "/scale_factor", "17"},
		{"gemma3", "/mm_tokens_per_image", "5"}, {"gemma3", "image_size", "3"}, {"gemma3", "layer_norm_eps", "0"}, {"lfm2_vl", "num_patches", "50"}, {"lfm2_vl", "num_patches", "0"}, {"lfm2_vl", "hidden_act", `"mish"`},
		{"lfm2_vl", "num_attention_heads", "3"}, {"idefics3", "image_size", "1"}, {"smolvlm", "patch_size", "300"}, {"idefics3", "num_channels", "0"},
	} {
		g := loadSeen(t, tc.golden)
		key, beside := strings.CutPrefix(tc.key, "/") // of the whole, not of vision_config
		if tc.key = key; !beside {
			key = "vision_config." + key
		}
		m := mutation{Key: key, Value: []byte(tc.value)}
		_, err := model.Synthetic{Config: m.apply(t, g.Config), Type: quant.F32}.Tower()
		if err == nil || !strings.Contains(err.Error(), tc.key) {
			t.Errorf("%s, %s %s: got %v", tc.golden, tc.key, tc.value, err)
		}
	}
}

// TestTowerJoins: nor is what joins a tower to the language model taken as it comes.
func TestTowerJoins(t *testing.T) {
	for _, tc := range []struct{ golden, key, value string }{
		{"mistral3", "vision_feature_layer", "4"}, {"mistral3", "vision_feature_layer", "[0, 1]"}, {"mistral3", "vision_feature_layer", `"last"`},
		{"mistral3", "spatial_merge_size", "0"}, {"mistral3", "projector_hidden_act", `"mish"`}, {"llava-pixtral", "vision_feature_select_strategy", `"default"`},
		{"llava-pixtral", "vision_feature_layer", "[]"},
	} {
		g := loadSeen(t, tc.golden)
		m := mutation{Key: tc.key, Value: []byte(tc.value)}
		_, err := model.Synthetic{Config: m.apply(t, g.Config), Type: quant.F32}.Tower()
		if err == nil || !strings.Contains(err.Error(), tc.key) {
			t.Errorf("%s, %s %s: got %v", tc.golden, tc.key, tc.value, err)
		}
	}
	for _, tc := range []struct{ golden, from, to string }{{"llava-pixtral", `"model_type": "pixtral"`, `"model_type": "clip_vision_model"`},
		{"gemma4", `"model_type": "gemma4"`, `"model_type": "gemma4_unified"`}} {
		cfg := strings.Replace(string(loadSeen(t, tc.golden).Config), tc.from, tc.to, 1)
		if v, err := (model.Synthetic{Config: []byte(cfg), Type: quant.F32}).Tower(); v != nil || err != nil {
			t.Errorf("%s as %s has %v: %v", tc.golden, tc.to, v, err)
		}
	}
}

// FuzzTowerConfig: a tower of any config is declared, or refused, with bounded work.
func FuzzTowerConfig(f *testing.F) {
	for _, name := range []string{"qwen3_vl", "qwen2_vl", "qwen2_5_vl", "qwen3_5", "gemma3", "lfm2_vl", "lfm2_vl-bare", "idefics3", "smolvlm", "gemma4", "mistral3", "llava-pixtral"} {
		b, err := os.ReadFile(filepath.Join("testdata", "vision", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		var g seen
		if err := json.Unmarshal(b, &g); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(g.Config), 4, 6)
	}
	f.Fuzz(func(t *testing.T, config []byte, rows, cols int) {
		v, err := model.Synthetic{Config: config, Type: quant.BF16, Blank: true}.Tower()
		if err != nil || v == nil {
			return
		}
		grid := [3]int{1, rows % 1000, cols % 1000}
		if v.Check(grid, grid[1]*grid[2]*v.Patch) != nil {
			return
		}
		n, extent := v.Rows(grid), v.Extent(grid)
		for i := range n {
			for _, p := range v.At(grid, i) {
				if p < 0 || int(p) >= extent {
					t.Fatalf("row %d of %d of %v is at %v, the text goes on at %d", i, n, grid, v.At(grid, i), extent)
				}
			}
		}
	})
}

// TestTowerWeigh: what a tower takes is told before it is loaded, and is what it takes then.
func TestTowerWeigh(t *testing.T) {
	for _, name := range visionGoldens(t) {
		t.Run(name, func(t *testing.T) {
			g := loadSeen(t, name)
			c, err := model.OpenCheckpoint(with(g.folder(t), "config.json", text(string(g.Config))), "seen")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			v, err := c.Tower()
			if err != nil {
				t.Fatal(err)
			}
			be, opts := cpu.New(), backend.Options{Precision: backend.Float32, Threads: 2}
			defer be.Close()
			grid, ok := v.Largest(64)
			if !ok || v.Rows(grid) > 64 || v.Check(grid, grid[1]*grid[2]*v.Patch) != nil {
				t.Fatalf("the largest image has %v patches and %d rows", grid, v.Rows(grid))
			}
			if _, ok := v.Largest(0); ok {
				t.Error("an image takes no rows")
			}
			weights, step, err := v.Weigh(be, opts, grid)
			if err != nil || v.Loaded() || be.Held() != 0 {
				t.Fatalf("%d bytes are held: %v", be.Held(), err)
			}
			if err := v.Load(be, opts); err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			if held := be.Held(); held > weights || weights-held > weights/50 { // vectors are of the heap
				t.Errorf("weights take %d bytes, %d were told", held, weights)
			}
			be.Trim()
			f, err := v.Encode(be, &model.Image{Grid: grid, Patches: make([]float32, grid[1]*grid[2]*v.Patch)})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Free(be)
			if took := be.StepBytes(); took != step {
				t.Errorf("a step takes %d bytes, %d were told", took, step)
			}
			if n := v.FeatureBytes(grid); n < f.Bytes() || n > f.Bytes()*5/4 { // tokens between lines count
				t.Errorf("features take %d bytes, %d were told", f.Bytes(), n)
			}
			if small, at := v.Largest(16); at && small != grid {
				be.Trim()
				f, err := v.Encode(be, &model.Image{Grid: small, Patches: make([]float32, small[1]*small[2]*v.Patch)})
				if err != nil {
					t.Fatal(err)
				}
				defer f.Free(be)
				if took := be.StepBytes(); took > step {
					t.Errorf("a smaller image takes %d bytes, the largest %d", took, step)
				}
			}
		})
	}
}
