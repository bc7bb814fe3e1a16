package model_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/backend/stub"
	"hearth/internal/model"
	"hearth/internal/safetensors"
)

// correct is what to do about a config.json that a constructor refuses.
const correct = "; correct it in config.json or use another conversion of the model; hearth show FOLDER/config.json tries the file alone"

func load(folder fstest.MapFS) error {
	c, err := model.OpenCheckpoint(folder, "m")
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Load(stub.New(1), backend.Options{})
	return err
}

// TestBrokenFolders: one sentence with the file, the tensor and what to do.
func TestBrokenFolders(t *testing.T) {
	s, good := tinyModel(t)
	tensors := tensorsOf(t, s)
	edit := func(f func(x *safetensors.Tensor) bool) *fstest.MapFile {
		var out []safetensors.Tensor
		for _, x := range tensors {
			if f(&x) {
				out = append(out, x)
			}
		}
		return pack(t, out)
	}
	drop := func(names ...string) *fstest.MapFile {
		return edit(func(x *safetensors.Tensor) bool {
			for _, n := range names {
				if strings.HasPrefix(x.Name, n) {
					return false
				}
			}
			return true
		})
	}
	reshape := func(name string, shape ...int) *fstest.MapFile {
		return edit(func(x *safetensors.Tensor) bool {
			if x.Name == name {
				n := len(x.Bytes)
				for _, k := range x.Shape {
					n /= k
				}
				for _, k := range shape {
					n *= k
				}
				x.Shape, x.Bytes = shape, make([]byte, n)
			}
			return true
		})
	}
	weights := func(f *fstest.MapFile) fstest.MapFS { return with(good, "model.safetensors", f) }
	config := func(old, new string) fstest.MapFS {
		if !strings.Contains(tiny, old) {
			t.Fatalf("config has no %s", old)
		}
		return with(good, "config.json", text(strings.Replace(tiny, old, new, 1)))
	}
	whole := good["model.safetensors"].Data
	extra := append(tensors[:len(tensors):len(tensors)], safetensors.Tensor{Name: "visual.patch.weight", DType: "F32", Shape: []int{1}, Bytes: make([]byte, 4)})

	for _, c := range []struct {
		name   string
		folder fstest.MapFS
		want   string // the whole text, or with … parts of it in order
	}{
		{"good", good, ""},
		{"empty folder", fstest.MapFS{}, "load model: m: config.json: is missing; give the path of a folder with config.json and model.safetensors in it"},
		{"gguf folder", fstest.MapFS{"tiny-Q4_K_M.gguf": text("GGUF")},
			"load model: m: tiny-Q4_K_M.gguf: GGUF files are not supported; use the model's MLX or safetensors version, a folder with config.json in it"},
		{"gguf with config", with(without(good, "model.safetensors"), "x.GGUF", text("GGUF")), "load model: m: x.GGUF: GGUF files are not supported; …"},
		{"pytorch", with(without(good, "model.safetensors"), "pytorch_model-00001-of-00002.bin", text("x")),
			"load model: m: pytorch_model-00001-of-00002.bin: the folder holds PyTorch weights, which are not supported; use a conversion of the model to MLX or safetensors"},
		{"adapter", fstest.MapFS{"adapter_config.json": text("{}"), "adapters.safetensors": text("x")},
			"load model: m: adapter_config.json: the folder holds an adapter without the model it belongs to; give the folder of the base model, and this one as --adapter-path"},
		{"no weights", without(good, "model.safetensors"), "load model: m: model.safetensors: is missing; …"},
		{"config no JSON", with(good, "config.json", text("{\"model_type\": ")), "load model: m: config.json: is no valid JSON at byte 15…"},
		{"config list", with(good, "config.json", text("[]")), "load model: m: config.json: a JSON array is not what should be here" + correct},
		{"no type", with(good, "config.json", text("{}")), "load model: m: config.json: model_type is missing; …"},
		{"unknown type", config(`"qwen3"`, `"qwen9"`),
			`load model: m: config.json: architecture "qwen9" is not supported; its nearest relative here is qwen3; known architectures: ` + strings.Join(append(model.Types(), model.EncoderTypes()...), ", ")},
		{"strange type", config(`"qwen3"`, `"9q"`),
			`load model: m: config.json: architecture "9q" is not supported; known architectures: ` + strings.Join(append(model.Types(), model.EncoderTypes()...), ", ")},
		{"too many layers", config(`"num_hidden_layers": 2`, `"num_hidden_layers": 4097`), "load model: m: config.json: num_hidden_layers 4097 is out of range" + correct},
		{"no size", config(`"hidden_size": 64,`, ``), "load model: m: config.json: hidden_size is missing or not positive" + correct},
		{"text for a size", config(`"hidden_size": 64`, `"hidden_size": "64"`), "load model: m: config.json: hidden_size should not be a JSON string" + correct},
		{"absurd size", config(`"vocab_size": 32`, `"vocab_size": 99999999999`), "load model: m: config.json: vocab_size 99999999999 is out of range" + correct},
		{"heads", config(`"num_key_value_heads": 1`, `"num_key_value_heads": 3`), "load model: m: config.json: num_attention_heads 2 is no multiple of num_key_value_heads 3" + correct},
		{"odd head", config(`"head_dim": 32`, `"head_dim": 31`), "load model: m: config.json: head_dim 31 is odd" + correct},
		{"rope", config(`"rope_theta": 1e6`, `"rope_scaling": {"type": "spiral"}`), `load model: m: config.json: rope_type "spiral" is not supported: default, dynamic, linear, llama3, longrope, mrope, proportional, su, yarn, deepseek_yarn are` + correct},
		{"two ropes", config(`"rope_theta": 1e6`, `"rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "yarn", "factor": 2}`),
			`load model: m: config.json: rope_scaling says "linear", rope_parameters says "yarn"` + correct},
		{"two factors", config(`"rope_theta": 1e6`, `"rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "linear", "factor": 4}`),
			"load model: m: config.json: rope_scaling has the factor 2, rope_parameters has 4" + correct},
		{"rope without factor", config(`"rope_theta": 1e6`, `"rope_scaling": {"rope_type": "yarn"}`), "load model: m: config.json: rope yarn: factor 0 is out of range" + correct},
		{"quant method", config(`"quantization": {"group_size": 32, "bits": 4`, `"quantization_config": {"quant_method": "quanto"`),
			`load model: m: config.json: quantisation method "quanto" is not supported; use a conversion to MLX's own quantisation`},
		{"quant mode", config(`"model.layers.1.mlp.down_proj": false`, `"lm_head": {"bits": 4, "group_size": 32, "mode": "nf9"}`),
			`load model: m: config.json: lm_head: quantisation mode "nf9" is not supported; use an affine conversion of 2, 3, 4, 5, 6 or 8 bits, or mxfp4, mxfp8 or nvfp4`},
		{"quant bits", config(`"bits": 4`, `"bits": 7`), "load model: m: config.json: quantisation affine 7 bits, group 32 is not supported; …"},
		{"quant text", config(`"bits": 4`, `"bits": "four"`), "load model: m: config.json: quantization: bits should not be a JSON string" + correct},

		{"truncated", weights(&fstest.MapFile{Data: whole[:len(whole)-100]}), `load model: m: model.safetensors: tensor "…": the file is truncated: it should reach byte …; fetch the file again`},
		{"no safetensors", weights(text("version https://git-lfs")), "load model: m: model.safetensors: …; fetch the file again"},
		{"missing tensor", weights(drop("model.norm.")),
			"load model: m: tensor model.norm.weight is missing (expected shape [64]); the folder is incomplete or config.json belongs to another model: fetch the model again"},
		{"missing head", weights(drop("lm_head.")), "load model: m: tensor lm_head.weight is missing (expected shape [32 64]); …"},
		{"missing layer", weights(drop("model.layers.1.")),
			"load model: m: 11 tensors are missing: model.layers.1.self_attn.q_proj.weight (expected shape [64 64]), model.layers.1.self_attn.k_proj.weight (expected shape [32 64]), … and 5 more; …"},
		{"missing scales", weights(drop("model.layers.0.mlp.up_proj.scales")), "load model: m: tensor model.layers.0.mlp.up_proj.scales is missing (the weight is quantised); …"},
		{"missing biases", weights(drop("model.layers.0.mlp.up_proj.biases")), "load model: m: model.safetensors: tensor model.layers.0.mlp.up_proj.weight does not fit (biases are missing); …"},
		{"shape", weights(reshape("model.norm.weight", 65)), "load model: m: model.safetensors: tensor model.norm.weight does not fit (expected shape [64], found [65]); config.json and the weights disagree: fetch the model again"},
		{"codes shape", weights(reshape("lm_head.weight", 31, 8)), "load model: m: model.safetensors: tensor lm_head.weight does not fit (expected shape [32 8] for affine 4 bits, group 32 of 64 columns, found [31 8]); …"},
		{"scales shape", weights(reshape("lm_head.scales", 31, 2)), "load model: m: model.safetensors: tensor lm_head.weight does not fit (scales have shape [31 2], expected [32 2]); …"},
		{"float type", weights(edit(func(x *safetensors.Tensor) bool {
			if x.Name == "model.norm.weight" {
				x.DType = "I16"
			}
			return true
		})), "load model: m: model.safetensors: tensor model.norm.weight does not fit (expected a float type, found I16); …"},
		{"quantised against the config", config(`"model.layers.1.mlp.down_proj": false`, `"model.layers.1.mlp.down_proj": false, "lm_head": false`),
			"load model: m: model.safetensors: tensor lm_head.weight does not fit (it is quantised, config.json says that it is not); …"},
		{"scales of a plain weight", weights(pack(t, append(tensors[:len(tensors):len(tensors)],
			safetensors.Tensor{Name: "model.layers.1.mlp.down_proj.scales", DType: "BF16", Shape: []int{64, 4}, Bytes: make([]byte, 512)}))),
			"load model: m: model.safetensors: tensor model.layers.1.mlp.down_proj.scales is not part of this architecture; …"},
		{"extra", weights(pack(t, extra)), "load model: m: model.safetensors: tensor visual.patch.weight is not part of this architecture; config.json names the wrong model_type or the model has parts that are not supported"},
		{"extras in order", weights(pack(t, append(extra, safetensors.Tensor{Name: "visual.10.w", DType: "U8", Shape: []int{1}, Bytes: []byte{1}},
			safetensors.Tensor{Name: "visual.9.w", DType: "U8", Shape: []int{1}, Bytes: []byte{1}}))),
			"load model: m: model.safetensors: 3 tensors are not part of this architecture: visual.9.w, visual.10.w, visual.patch.weight; …"},
		{"all at once", weights(edit(func(x *safetensors.Tensor) bool {
			if x.Name == "model.norm.weight" {
				x.Name = "model.norn.weight"
			}
			if x.Name == "model.layers.0.input_layernorm.weight" {
				x.Shape = []int{8, 8}
			}
			return true
		})), "load model: m: tensor model.norm.weight is missing …; tensor model.layers.0.input_layernorm.weight does not fit (expected shape [64], found [8 8]); tensor model.norn.weight is not part of this architecture; …"},
		{"config of a wider model", config(`"hidden_size": 64`, `"hidden_size": 128`), "load model: m: model.safetensors: … tensors do not fit: …"},

		{"index no JSON", with(without(good, "model.safetensors"), "model.safetensors.index.json", text("x")), "load model: m: model.safetensors.index.json: is no valid JSON …"},
		{"index leaves folder", with(good, "model.safetensors.index.json", text(`{"weight_map": {"a": "../x.safetensors"}}`)),
			`load model: m: model.safetensors.index.json: tensor a is said to be in "../x.safetensors", which is outside the folder`},
		{"index absolute", with(good, "model.safetensors.index.json", text(`{"weight_map": {"a": "/etc/x.safetensors"}}`)), `load model: m: model.safetensors.index.json: tensor a is said to be in "/etc/x.safetensors", which is outside the folder`},
		{"index of something else", with(good, "model.safetensors.index.json", text(`{"weight_map": {"a": "config.json"}}`)), `load model: m: model.safetensors.index.json: tensor a is said to be in "config.json", which is no safetensors file`},
		{"missing shard", with(good, "model.safetensors.index.json", text(`{"weight_map": {"a": "model-00002-of-00002.safetensors"}}`)),
			"load model: m: model-00002-of-00002.safetensors: model.safetensors.index.json names this file, but it is missing; …"},
		{"tensor in two files", with(good, "model-b.safetensors", pack(t, tensors[:1])), "load model: m: model.safetensors: tensor model.embed_tokens.weight is in model-b.safetensors as well; remove one of the two files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := load(c.folder)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			if !like(err.Error(), c.want) {
				t.Errorf("error\n\t%s\nwant\n\t%s", err, c.want)
			}
			var e *model.LoadError
			if !errors.As(err, &e) || e.Where != "m" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%#v is no LoadError for m in one line", err)
			}
		})
	}
}

// like matches text against a pattern in which … stands for anything.
func like(s, pattern string) bool {
	parts := strings.Split(pattern, "…")
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for i, p := range parts[1:] {
		if i == len(parts)-2 {
			return strings.HasSuffix(s, p)
		}
		k := strings.Index(s, p)
		if k < 0 {
			return false
		}
		s = s[k+len(p):]
	}
	return s == ""
}

// TestPathIsNoFolder: what people give instead of a folder.
func TestPathIsNoFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tiny.Q4.gguf")
	if err := os.WriteFile(file, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                         "GGUF files are not supported",
		plain:                        "is not a folder",
		filepath.Join(dir, "absent"): "the folder does not exist",
	} {
		_, err := model.OpenCheckpoint(os.DirFS(path), path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %q in it", path, err, want)
		}
	}
}
