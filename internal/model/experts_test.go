package model_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

const tinyExperts = `"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1,
	"head_dim": 32, "rms_norm_eps": 1e-6, "vocab_size": 32, "max_position_embeddings": 64, "tie_word_embeddings": false, "num_experts_per_tok": 2`

// expertForms are the ways in which folders store the same experts, by what is done to the tensors and the config.
func expertForms(t *testing.T) map[string]map[string]fstest.MapFS {
	qwen := func(quantization string) fstest.MapFS {
		return experts(t, `{"model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 32, "norm_topk_prob": true, `+tinyExperts+quantization+`}`)
	}
	// tinyExperts is half as wide inside as outside, so that gate and up together are square; here the product behind them is.
	square := experts(t, `{"model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 64, "norm_topk_prob": true, `+tinyExperts+`}`)
	quantised := `, "quantization": {"group_size": 32, "bits": 4, "model.layers.1.mlp.switch_mlp.up_proj": {"group_size": 64, "bits": 6}}`
	oss := `{"model_type": "gpt_oss", "num_local_experts": 4, "sliding_window": 8, ` + tinyExperts
	plain := []string{`"model.embed_tokens": false`, `"lm_head": false`}
	for i := range 2 {
		for _, name := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.router"} {
			plain = append(plain, fmt.Sprintf(`"model.layers.%d.%s": false`, i, name))
		}
	}
	mxfp4 := experts(t, oss+`, "quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4", `+strings.Join(plain, ", ")+`}}`)
	names := strings.NewReplacer(".mlp.gate.", ".mlp.router.", ".mlp.switch_mlp.", ".mlp.experts.")
	return map[string]map[string]fstest.MapFS{
		"floats":    {"stacked": qwen(""), "apart": apart(t, qwen("")), "fused": fuse(t, qwen(""), false), "turned": fuse(t, qwen(""), true)},
		"square":    {"stacked": square, "fused": fuse(t, square, false), "turned": fuse(t, square, true)},
		"quantised": {"stacked": qwen(quantised)},
		"mxfp4": {
			"ours": mxfp4,
			"mlx": tensorsAs(t, mxfp4, func(x safetensors.Tensor) []safetensors.Tensor {
				x.Name = names.Replace(x.Name)
				return []safetensors.Tensor{x}
			}),
			"openai": with(published(t, mxfp4), "config.json",
				text(oss+`, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}}`)),
		},
	}
}

// experts is the folder of a formula model.
func experts(t *testing.T, config string) fstest.MapFS {
	s := model.Synthetic{Config: []byte(config), Seed: 5, Type: quant.BF16}
	return fstest.MapFS{"config.json": text(config), "model.safetensors": pack(t, tensorsOf(t, s))}
}

// tensorsAs replaces every tensor of a folder.
func tensorsAs(t *testing.T, folder fstest.MapFS, f func(x safetensors.Tensor) []safetensors.Tensor) fstest.MapFS {
	t.Helper()
	file, err := safetensors.Open(folder, "model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []safetensors.Tensor
	for _, x := range file.Tensors {
		out = append(out, f(x)...)
	}
	return with(folder, "model.safetensors", pack(t, out))
}

// apart stores a tensor per expert, as Hugging Face folders do.
func apart(t *testing.T, folder fstest.MapFS) fstest.MapFS {
	return tensorsAs(t, folder, func(x safetensors.Tensor) (out []safetensors.Tensor) {
		before, after, stacked := strings.Cut(x.Name, ".switch_mlp.")
		if !stacked {
			return []safetensors.Tensor{x}
		}
		n := len(x.Bytes) / x.Shape[0]
		for e := range x.Shape[0] {
			out = append(out, safetensors.Tensor{Name: fmt.Sprintf("%s.experts.%d.%s", before, e, after), DType: x.DType, Shape: x.Shape[1:], Bytes: x.Bytes[e*n:][:n]})
		}
		return out
	})
}

// fuse stores gate and up of all experts as one tensor, as transformers does: of matrices as they are, or turned.
func fuse(t *testing.T, folder fstest.MapFS, turned bool) fstest.MapFS {
	gates := map[string]safetensors.Tensor{}
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		before, after, stacked := strings.Cut(x.Name, ".switch_mlp.")
		if !stacked {
			return []safetensors.Tensor{x}
		}
		part := strings.TrimSuffix(after, ".weight")
		if part != "down_proj" {
			other, both := gates[before]
			if !both {
				gates[before] = x
				return nil
			}
			gate, up := other, x
			if part == "gate_proj" {
				gate, up = x, other
			}
			each := len(gate.Bytes) / gate.Shape[0]
			x.Shape, x.Bytes = []int{gate.Shape[0], 2 * gate.Shape[1], gate.Shape[2]}, nil
			for e := range gate.Shape[0] {
				x.Bytes = append(append(x.Bytes, gate.Bytes[e*each:][:each]...), up.Bytes[e*each:][:each]...)
			}
			part = "gate_up_proj"
		}
		x.Name = before + ".experts." + part
		if turned {
			n, rows, cols := x.Shape[0], x.Shape[1], x.Shape[2]
			size := len(x.Bytes) / (n * rows * cols)
			from := x.Bytes
			x.Shape, x.Bytes = []int{n, cols, rows}, make([]byte, len(from))
			for e := range n {
				for r := range rows {
					for c := range cols {
						copy(x.Bytes[((e*cols+c)*rows+r)*size:][:size], from[((e*rows+r)*cols+c)*size:])
					}
				}
			}
		}
		return []safetensors.Tensor{x}
	})
}

// published stores experts as OpenAI did: rows of gate and up in turn, codes in blocks of 16 bytes.
func published(t *testing.T, folder fstest.MapFS) fstest.MapFS {
	gates := map[string]safetensors.Tensor{}
	suffix := strings.NewReplacer(".weight", "_blocks", ".scales", "_scales", ".bias", "_bias")
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		if strings.Contains(x.Name, ".mlp.gate.") {
			x.Name = strings.Replace(x.Name, ".mlp.gate.", ".mlp.router.", 1)
			return []safetensors.Tensor{x}
		}
		before, after, stacked := strings.Cut(x.Name, ".switch_mlp.")
		if !stacked {
			return []safetensors.Tensor{x}
		}
		name := before + ".experts." + suffix.Replace(after)
		if key := strings.NewReplacer("gate_proj", "", "up_proj", "").Replace(name); key != name {
			other, both := gates[key]
			if !both {
				gates[key] = x
				return nil
			}
			gate, up := other, x
			if strings.Contains(other.Name, "up_proj") {
				gate, up = x, other
			}
			name = strings.NewReplacer("gate_proj", "gate_up_proj", ".up_proj", ".gate_up_proj").Replace(name)
			x = interleave(gate, up)
		}
		x.Name = name
		if strings.HasSuffix(name, "_blocks") {
			x.DType, x.Shape = "U8", []int{x.Shape[0], x.Shape[1], x.Shape[2] / 4, 16}
		}
		return []safetensors.Tensor{x}
	})
}

// interleave puts the rows of two stacks in turn.
func interleave(a, b safetensors.Tensor) safetensors.Tensor {
	x := a
	x.Shape = slices.Clone(a.Shape)
	x.Shape[1] *= 2
	rows := a.Shape[0] * a.Shape[1]
	n := len(a.Bytes) / rows
	x.Bytes = nil
	for r := range rows {
		x.Bytes = append(append(x.Bytes, a.Bytes[r*n:][:n]...), b.Bytes[r*n:][:n]...)
	}
	return x
}

// sameLogits: all forms of one model's folder have the same bits.
func sameLogits(t *testing.T, group string, forms map[string]fstest.MapFS) {
	t.Helper()
	var first []float32
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		c, err := model.OpenCheckpoint(forms[name], name)
		if err != nil {
			t.Fatal(err)
		}
		got := firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return c.Load(be, backend.Options{}) })
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Errorf("%s, %s: other logits", group, name)
		}
	}
}

// TestExpertFolders: however experts are stored, the logits have the same bits.
func TestExpertFolders(t *testing.T) {
	for group, forms := range expertForms(t) {
		sameLogits(t, group, forms)
	}
}

// TestBrokenExperts: stacks that do not fit are named.
func TestBrokenExperts(t *testing.T) {
	forms := expertForms(t)
	change := func(folder fstest.MapFS, name string, f func(x *safetensors.Tensor) bool) fstest.MapFS {
		found := false
		defer func() {
			if !found {
				t.Errorf("no tensor %s", name)
			}
		}()
		return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
			if x.Name == name {
				found = true
				if !f(&x) {
					return nil
				}
			}
			return []safetensors.Tensor{x}
		})
	}
	drop := func(*safetensors.Tensor) bool { return false }
	cut := func(x *safetensors.Tensor) bool {
		n := len(x.Bytes) / x.Shape[0]
		x.Shape = append([]int{x.Shape[0] - 1}, x.Shape[1:]...)
		x.Bytes = x.Bytes[n:]
		return true
	}
	up := "model.layers.1.mlp.switch_mlp.up_proj"
	for _, c := range []struct {
		folder fstest.MapFS
		want   string
	}{
		{change(forms["floats"]["stacked"], up+".weight", drop), "load model: m: tensor " + up + ".weight is missing (expected shape [4 32 64]); …"},
		{change(forms["floats"]["stacked"], up+".weight", cut), "load model: m: model.safetensors: tensor " + up + ".weight does not fit (expected shape [4 32 64], found [3 32 64]); …"},
		{change(forms["quantised"]["stacked"], up+".weight", cut),
			"load model: m: model.safetensors: tensor " + up + ".weight does not fit (expected shape [4 32 12] for affine 6 bits, group 64 of 64 columns, found [3 32 12]); …"},
		{change(forms["quantised"]["stacked"], up+".scales", cut), "load model: m: model.safetensors: tensor " + up + ".weight does not fit (scales have shape [3 32 1], expected [128 1]); …"},
		{change(forms["floats"]["apart"], "model.layers.0.mlp.experts.3.down_proj.weight", drop),
			"load model: m: tensor model.layers.0.mlp.experts.3.down_proj.weight is missing (expected shape [64 32]); …"},
		{change(forms["floats"]["turned"], "model.layers.0.mlp.experts.gate_up_proj", drop),
			"load model: m: 2 tensors are missing: model.layers.0.mlp.switch_mlp.gate_proj.weight (expected shape [4 32 64]), model.layers.0.mlp.switch_mlp.up_proj.weight (expected shape [4 32 64]); …"},
		{change(forms["floats"]["turned"], "model.layers.0.mlp.experts.gate_up_proj", cut),
			"load model: m: model.safetensors: tensor model.layers.0.mlp.experts.gate_up_proj does not fit (expected shape [4 64 64], found [3 64 64]); …"},
		{change(forms["mxfp4"]["ours"], "model.layers.0.mlp.switch_mlp.down_proj.bias", drop),
			"load model: m: tensor model.layers.0.mlp.switch_mlp.down_proj.bias is missing (expected shape [4 64]); …"},
		{change(forms["mxfp4"]["openai"], "model.layers.0.mlp.experts.gate_up_proj_bias", cut),
			"load model: m: model.safetensors: tensor model.layers.0.mlp.experts.gate_up_proj_bias does not fit (expected shape [4 64], found [3 64]); …"},
		{change(forms["mxfp4"]["openai"], "model.layers.0.self_attn.sinks", cut),
			"load model: m: model.safetensors: tensor model.layers.0.self_attn.sinks does not fit (expected shape [2], found [1]); …"},
		{with(forms["floats"]["stacked"], "config.json", text(strings.Replace(string(forms["floats"]["stacked"]["config.json"].Data), `"num_experts": 4`, `"num_experts": 1`, 1))),
			"load model: m: config.json: num_experts_per_tok 2 is missing or more than the 1 experts" + correct},
		{with(forms["floats"]["stacked"], "config.json", text(strings.Replace(string(forms["floats"]["stacked"]["config.json"].Data), `"num_experts": 4`, `"num_experts": 123456`, 1))),
			"load model: m: config.json: num_experts 123456 is missing or out of range" + correct},
	} {
		err := load(c.folder)
		if err == nil || !like(err.Error(), c.want) {
			t.Errorf("error\n\t%v\nwant\n\t%s", err, c.want)
		}
	}
}

// TestGlobalScales: nvfp4 experts each have a scale for their whole matrix.
func TestGlobalScales(t *testing.T) {
	folder := experts(t, `{"model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 32, `+tinyExperts+`, "quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}}`)
	logits := func(folder fstest.MapFS) []float32 {
		c, err := model.OpenCheckpoint(folder, "m")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return c.Load(be, backend.Options{}) })
	}
	const path = "model.layers.1.mlp.switch_mlp.down_proj"
	global := func(scales ...float32) fstest.MapFS {
		return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
			if x.Name != path+".weight" {
				return []safetensors.Tensor{x}
			}
			g := safetensors.Tensor{Name: path + ".global_scale", DType: "F32", Shape: []int{len(scales)}, Bytes: make([]byte, 4*len(scales))}
			quant.PutFloats(g.Bytes, quant.F32, scales)
			return []safetensors.Tensor{x, g}
		})
	}
	const one = quant.GlobalUnit // a factor of 1
	want := logits(folder)
	if !slices.Equal(logits(global(one, one, one, one)), want) {
		t.Error("scales that stand for 1 change the logits")
	}
	if slices.Equal(logits(global(one, 9*one, 9*one, 9*one)), want) {
		t.Error("scales of single experts change nothing")
	}
	if err := load(global(one, one)); err == nil || !strings.Contains(err.Error(), "the global scales are F32 of shape [2], expected F32 of shape [4]") {
		t.Errorf("error %v", err)
	}
}

// TestNestedNames: the language model of a model of text and images is found under either prefix, and what is beside
// it is left out.
func TestNestedNames(t *testing.T) {
	folder := experts(t, `{"model_type": "gemma3", "text_config": {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 32, "num_attention_heads": 2,
		"num_key_value_heads": 1, "head_dim": 16, "sliding_window": 8}, "vocab_size": 40}`)
	var want []float32
	for _, prefix := range []string{"", "language_model.", "model.language_model."} {
		c, err := model.OpenCheckpoint(tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
			beside := safetensors.Tensor{Name: "vision_tower." + x.Name, DType: "F32", Shape: []int{1}, Bytes: make([]byte, 4)}
			if prefix == "model.language_model." {
				beside.Name = "model." + beside.Name
				x.Name = prefix + strings.TrimPrefix(x.Name, "model.")
			} else {
				x.Name = prefix + x.Name
			}
			return []safetensors.Tensor{x, beside}
		}), "m")
		if err != nil {
			t.Fatal(err)
		}
		got := firstLogits(t, func(be backend.Backend) (*model.Loaded, error) {
			l, err := c.Load(be, backend.Options{})
			if err == nil && (l.Vocab != 40 || l.Context != 131072) {
				t.Errorf("vocabulary of %d, context of %d", l.Vocab, l.Context)
			}
			return l, err
		})
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("prefix %q: other logits", prefix)
		}
	}
}
