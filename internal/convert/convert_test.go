package convert

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/backend/stub"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// quantized is made by tools/golden/quantize.py.
type quantized struct {
	Cases []struct {
		Name    string           `json:"name"`
		Config  json.RawMessage  `json:"config"`
		Type    quant.DType      `json:"type"`
		Mode    quant.Mode       `json:"mode"`
		Bits    int              `json:"bits"`
		Group   int              `json:"group"`
		Recipe  string           `json:"recipe"`
		Shapes  map[string][]int `json:"shapes"` // with * for every layer
		Layers  int              `json:"layers"`
		Tensors int              `json:"tensors"`
		Digest  string           `json:"digest"` // of a line for each: name, type, shape and hash
		Scheme  map[string]any   `json:"quantization"`
		Meta    map[string]int64 `json:"metadata"` // of the index
	} `json:"cases"`
}

// numbered is tensor k of a folder, by the formula of the script.
func numbered(k int, name string, t quant.DType, shape []int) safetensors.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((i*7919+k*104729+i/61*31)%2003-1001) / 1001
	}
	b := make([]byte, n*t.Size())
	quant.PutFloats(b, t, x)
	return safetensors.Tensor{Name: name, DType: string(t), Shape: shape, Bytes: b}
}

// everyLayer writes out the names that stand for all layers.
func everyLayer(shapes map[string][]int, layers int) map[string][]int {
	all := map[string][]int{}
	for name, shape := range shapes {
		for i := range layers {
			all[strings.Replace(name, "layers.*.", fmt.Sprintf("layers.%d.", i), 1)] = shape
		}
	}
	return all
}

func folderOf(t *testing.T, config []byte, dt quant.DType, shapes map[string][]int) fstest.MapFS {
	t.Helper()
	var tensors []safetensors.Tensor
	for k, name := range slices.Sorted(maps.Keys(shapes)) {
		tensors = append(tensors, numbered(k, name, dt, shapes[name]))
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, tensors, nil); err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"config.json": {Data: config}, "model.safetensors": {Data: b.Bytes()}}
}

// TestEqualsMLX: the folder has the tensors, to the bit, and the quantisation keys that mlx-lm's converter gives it, and loads.
func TestEqualsMLX(t *testing.T) {
	file := filepath.Join("testdata", "quantize.json")
	golden.Update(t, filepath.FromSlash("../../tools/golden/quantize.py"), file)
	var g quantized
	golden.Load(t, file, &g)
	for _, c := range g.Cases {
		t.Run(c.Name, func(t *testing.T) {
			src := folderOf(t, c.Config, c.Type, everyLayer(c.Shapes, c.Layers))
			dst := filepath.Join(t.TempDir(), "made")
			o := Options{Scheme: quant.Scheme{Mode: c.Mode, Bits: c.Bits, Group: c.Group}, Recipe: c.Recipe}
			r, err := Quantize(t.Context(), src, "src", dst, o)
			if err != nil {
				t.Fatal(err)
			}
			f, err := safetensors.Open(os.DirFS(dst), "model.safetensors")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var lines []string
			for _, x := range f.Tensors {
				shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(x.Shape), "[]"), " ", "x")
				sum := fmt.Sprintf("%x", sha256.Sum256(x.Bytes))
				lines = append(lines, fmt.Sprintf("%s %s %s %s\n", x.Name, x.DType, shape, sum[:12]))
			}
			slices.Sort(lines)
			all := strings.Join(lines, "")
			if fmt.Sprintf("%x", sha256.Sum256([]byte(all))) != c.Digest || len(lines) != c.Tensors {
				t.Errorf("%d tensors, mlx-lm has %d others; the script prints them when given the case:\n%s", len(lines), c.Tensors, all)
			}
			var made struct {
				MLX map[string]any `json:"quantization"`
				HF  map[string]any `json:"quantization_config"`
			}
			read(t, dst, "config.json", &made)
			if !reflect.DeepEqual(made.MLX, c.Scheme) || !reflect.DeepEqual(made.HF, c.Scheme) {
				t.Errorf("quantization %v and %v, mlx-lm has %v", made.MLX, made.HF, c.Scheme)
			}
			var index struct {
				Meta map[string]int64 `json:"metadata"`
			}
			read(t, dst, "model.safetensors.index.json", &index)
			if index.Meta["total_size"] != c.Meta["total_size"] || r.Bytes != c.Meta["total_size"] {
				t.Errorf("%v bytes and %v, mlx-lm has %v", index.Meta, r.Bytes, c.Meta)
			}
			loads(t, dst)
		})
	}
}

func read(t *testing.T, dir, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func loads(t *testing.T, dir string) {
	t.Helper()
	c, err := model.OpenCheckpoint(os.DirFS(dir), "made")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Load(stub.New(1), backend.Options{}); err != nil {
		t.Error(err)
	}
}

// TestComparedTypes: what quantize takes is what there is.
func TestComparedTypes(t *testing.T) {
	for _, typ := range compared {
		if !slices.Contains(model.Types(), typ) {
			t.Errorf("no architecture is called %s", typ)
		}
	}
	for _, typ := range slices.Concat(slices.Collect(maps.Keys(preciseParts)), slices.Collect(maps.Keys(floatParts)), keepTogether) {
		if !slices.Contains(compared, typ) {
			t.Errorf("%s has rules, but was not compared", typ)
		}
	}
}

// TestNotCompared: a type whose folders were never held against mlx-lm's is refused by name.
func TestNotCompared(t *testing.T) {
	all := compared
	compared = nil
	t.Cleanup(func() { compared = all })
	_, err := Quantize(t.Context(), folderOf(t, []byte(tinyConfig), quant.BF16, tinyShapes()), "src", filepath.Join(t.TempDir(), "made"), fourBits)
	if err == nil || !strings.Contains(err.Error(), `quantize does not know what mlx-lm quantises of "qwen3"; convert it with mlx-lm`) {
		t.Errorf("error %v", err)
	}
}

const tinyConfig = `{"_name_or_path": "/home/somebody", "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "num_attention_heads": 2,
	"num_key_value_heads": 1, "head_dim": 32, "rms_norm_eps": 1e-6, "vocab_size": 40, "max_position_embeddings": 64, "rope_theta": 1e6,
	"tie_word_embeddings": true, "eos_token_id": 7}`

// tinyShapes are those of tinyConfig's tensors.
func tinyShapes() map[string][]int {
	s := map[string][]int{"model.embed_tokens.weight": {40, 64}, "model.norm.weight": {64}}
	for _, l := range []string{"model.layers.0.", "model.layers.1."} {
		for name, shape := range map[string][]int{"self_attn.q_proj": {64, 64}, "self_attn.k_proj": {32, 64}, "self_attn.v_proj": {32, 64},
			"self_attn.o_proj": {64, 64}, "self_attn.q_norm": {32}, "self_attn.k_norm": {32}, "mlp.gate_proj": {96, 64}, "mlp.up_proj": {96, 64},
			"mlp.down_proj": {64, 96}, "input_layernorm": {64}, "post_attention_layernorm": {64}} {
			s[l+name+".weight"] = shape
		}
	}
	return s
}

var fourBits = Options{Scheme: quant.Scheme{Mode: quant.Affine, Bits: 4, Group: 64}}

// TestFolder: what is beside the weights comes along, weights in other forms do not, and large models are cut into files.
func TestFolder(t *testing.T) {
	mostShard = 20_000
	t.Cleanup(func() { mostShard = 5 << 30 })
	src := folderOf(t, []byte(tinyConfig), quant.BF16, tinyShapes())
	for name, data := range map[string]string{"tokenizer.json": "{}", "chat_template.jinja": "x", "generation_config.json": `{"eos_token_id": 7,}`, "1_Pooling/config.json": "{}",
		"pytorch_model.bin": "x", ".gitattributes": "x", ".cache/x.json": "x", "model.safetensors.index.json": `{"weight_map": {}}`, "original/consolidated.00.pth": "x"} {
		src[name] = &fstest.MapFile{Data: []byte(data)}
	}
	dst := filepath.Join(t.TempDir(), "made")
	if err := os.Mkdir(dst, 0o700); err != nil { // an empty folder may be there
		t.Fatal(err)
	}
	o, last := fourBits, int64(0)
	o.Progress = func(done, total int64) {
		if done < last || done > total {
			t.Errorf("%d of %d bytes done after %d", done, total, last)
		}
		if last = done; done == total {
			last = -1
		}
	}
	r, err := Quantize(t.Context(), src, "src", dst, o)
	if err != nil {
		t.Fatal(err)
	}
	if last != -1 {
		t.Error("the last of the progress is not all")
	}
	if want := []string{"generation_config.json: has a comma too many at byte 19, line 1, which JSON does not allow; it is read without"}; !slices.Equal(r.Warnings, want) {
		t.Errorf("warnings %q, want %q", r.Warnings, want)
	}
	params := int64(0)
	for _, shape := range tinyShapes() {
		n := int64(1)
		for _, d := range shape {
			n *= int64(d)
		}
		params += n
	}
	if r.Modules != 15 || r.Quantised != 13 || r.Parameters != params || r.BitsPerWeight() < 4.5 || r.BitsPerWeight() > 8 { // 96 columns make no groups of 64
		t.Errorf("report %+v, %g bits per weight, of %d parameters", *r, r.BitsPerWeight(), params)
	}
	var names []string
	err = fs.WalkDir(os.DirFS(dst), ".", func(name string, e fs.DirEntry, err error) error {
		if !e.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1_Pooling/config.json", "chat_template.jinja", "config.json", "generation_config.json", "model-00001-of-00003.safetensors",
		"model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors", "model.safetensors.index.json", "tokenizer.json"}
	if !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	var c map[string]any
	read(t, dst, "config.json", &c)
	if c["_name_or_path"] != nil || c["eos_token_id"] != 7.0 {
		t.Errorf("config %v", c)
	}
	loads(t, dst)
}

// TestRefused: nothing is written, not even beside the folder, when something is in the way.
func TestRefused(t *testing.T) {
	good := folderOf(t, []byte(tinyConfig), quant.BF16, tinyShapes())
	missing := tinyShapes()
	delete(missing, "model.norm.weight")
	tiny := func(old, new string) []byte { return []byte(strings.Replace(tinyConfig, old, new, 1)) }
	for _, c := range []struct {
		name string
		src  fs.FS
		o    Options
		want string
	}{
		{"no folder", fstest.MapFS{}, fourBits, "config.json: is missing"},
		{"missing tensor", folderOf(t, []byte(tinyConfig), quant.BF16, missing), fourBits, "tensor model.norm.weight is missing"},
		{"unknown type", folderOf(t, tiny("qwen3", "qwen9"), quant.BF16, tinyShapes()), fourBits, `architecture "qwen9" is not supported`},
		{"width", good, Options{Scheme: quant.Scheme{Mode: quant.Affine, Bits: 7, Group: 64}}, "quantisation affine 7 bits, group 64 is not supported"},
		{"recipe", good, Options{Scheme: fourBits.Scheme, Recipe: "mixed_1_2"}, `unknown recipe "mixed_1_2", want one of [mixed_2_6 mixed_3_4 mixed_3_6 mixed_4_6]`},
		{"recipe's mode", good, Options{Scheme: quant.Scheme{Mode: quant.MXFP4, Bits: 4, Group: 32}, Recipe: "mixed_3_4"}, "recipe mixed_3_4 is for mode affine, not mxfp4"},
		{"large groups", good, Options{Scheme: quant.Scheme{Mode: quant.Affine, Bits: 4, Group: 128}}, "no module divides into groups of 128"},
		{"prefix", folderOf(t, []byte(`{"model_type": "gemma3", "text_config": `+strings.Replace(tinyConfig, `"num_hidden_layers": 2`, `"num_hidden_layers": 1, "sliding_window_pattern": 1`, 1)+`, "vocab_size": 40}`), quant.BF16, prefixed()), fourBits, "is laid out as Hugging Face has it"},
	} {
		parent := t.TempDir()
		_, err := Quantize(t.Context(), c.src, "src", filepath.Join(parent, "made"), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Errorf("%s: left %v behind", c.name, left)
		}
	}

	parent := t.TempDir()
	dst := filepath.Join(parent, "made")
	if _, err := Quantize(t.Context(), good, "src", dst, fourBits); err != nil {
		t.Fatal(err)
	}
	if _, err := Quantize(t.Context(), good, "src", dst, fourBits); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("into a full folder: %v", err)
	}
	if _, err := Quantize(t.Context(), os.DirFS(dst), "made", filepath.Join(parent, "again"), fourBits); err == nil || !strings.Contains(err.Error(), "is quantised already (affine 4 bits, group 64)") {
		t.Errorf("a quantised one: %v", err)
	}
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Quantize(t.Context(), good, "src", file, fourBits); err == nil {
		t.Error("a file was taken for a folder")
	}

	ctx, cancel := context.WithCancel(t.Context())
	o := fourBits
	o.Progress = func(done, _ int64) {
		if done > 10_000 {
			cancel()
		}
	}
	if _, err := Quantize(ctx, good, "src", filepath.Join(parent, "stopped"), o); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	var names []string
	left, _ := os.ReadDir(parent)
	for _, e := range left {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"file", "made"}) {
		t.Errorf("the folder holds %v", names)
	}
}

// prefixed are the tensors of a gemma3 as Hugging Face names them.
func prefixed() map[string][]int {
	s := map[string][]int{}
	for name, shape := range tinyShapes() {
		if rest, ok := strings.CutPrefix(name, "model."); ok && !strings.HasPrefix(rest, "layers.1.") {
			s["model.language_model."+rest] = shape
		}
	}
	for _, n := range []string{"pre_feedforward_layernorm", "post_feedforward_layernorm"} {
		s["model.language_model.layers.0."+n+".weight"] = []int{64}
	}
	return s
}
