package convert

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/model"
	"hearth/internal/quant"
)

// TestStrangers: what mlx-lm does not have, or would read as another model, is refused by name.
func TestStrangers(t *testing.T) {
	for _, c := range []struct{ typ, inner, why, hint string }{
		{"qwen3", "", "", ""},
		{"llava", "", "", ""},
		{"llava", "mistral", "", ""},
		{"mistral3", "ministral3", "", ""},
		{"llava", "qwen2", `takes text_config.model_type "qwen2" for a llama within llava`, asItIs},
		{"mistral3", "qwen3", `takes text_config.model_type "qwen3" for a llama within mistral3`, asItIs},
		{"gemma3", "gemma3_text", "", ""},
		{"bitnet", "", `does not know what mlx-lm quantises of "bitnet"`, "convert it with mlx-lm"},
		{"qwen3_5_text", "", `does not know what mlx-lm quantises of "qwen3_5_text"`, asItIs},
	} {
		p := &conversion{modelType: c.typ, config: keys{"text_config": marshal(map[string]string{"model_type": c.inner})}}
		why, hint := p.unsupported()
		if hint != c.hint || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s with %q: %q, %q; want %q, %q", c.typ, c.inner, why, hint, c.why, c.hint)
		}
	}
	for _, c := range []struct{ typ, config, want string }{
		{"olmo3", `{"rope_theta": 5e5}`, ""}, {"olmo3", `{"rope_parameters": {}}`, "rope_theta"}, {"minicpm3", `{"rope_scaling": null}`, "rope_scaling"}, {"qwen3", `{}`, ""},
	} {
		if got := missingKey(object([]byte(c.config)), c.typ); got != c.want {
			t.Errorf("%s %s: lacks %q, want %q", c.typ, c.config, got, c.want)
		}
	}

	refuse := func(config, want string, shapes map[string][]int) {
		t.Helper()
		_, err := Quantize(t.Context(), folderOf(t, []byte(config), quant.BF16, shapes), "src", filepath.Join(t.TempDir(), "made"), fourBits)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	needed["qwen3"] = []string{"vocab_size", "moon"}
	refuse(tinyConfig, "has no moon, which mlx-lm must have of qwen3 and which does not follow from the rest; "+asItIs, tinyShapes())
	delete(needed, "qwen3")
	marks["qwen3"] = "bias_that_is_nowhere"
	refuse(tinyConfig, "no tensor is a bias_that_is_nowhere, so it is another model than what mlx-lm calls qwen3; "+asItIs, tinyShapes())
	delete(marks, "qwen3")
	saved := map[string][]int{"model.embed_tokens.weight": {40, 64}, "lm_head.weight": {40, 64}}
	for name, shape := range tinyShapes() {
		if strings.Contains(name, "self_attn") && !strings.Contains(name, "norm") {
			saved[name] = shape
		}
	}
	for i := range 2 {
		layer := fmt.Sprintf("model.layers.%d.mlp.fc", i)
		saved[layer+"1.weight"], saved[layer+"2.weight"] = []int{96, 64}, []int{64, 96}
	}
	refuse(strings.NewReplacer(`"qwen3"`, `"nanochat"`, `"tie_word_embeddings": true`, `"tie_word_embeddings": false`).Replace(tinyConfig), "is laid out as Hugging Face has it", saved)
}

// TestApartFromMLX: what mlx-lm has not of a family is told, as far as the model has it.
func TestApartFromMLX(t *testing.T) {
	yarn := model.Rotation{Type: "yarn", From: "rope_parameters", Columns: 128}
	plain := model.Rotation{Type: "default", Columns: 64}
	windows := []model.Window{{Layers: 2}, {Layers: 2, Positions: 4096, Whence: "sliding_window"}}
	for _, c := range []struct {
		typ  string
		r    model.Reading
		want []string
	}{
		{"glm4", model.Reading{Rotations: []model.Rotation{yarn, plain, yarn}}, []string{"config.json: mlx-lm does not know positions stretched by yarn (rope_parameters) in glm4: its numbers of what is written are others"}},
		{"glm4", model.Reading{Rotations: []model.Rotation{plain}, Windows: windows[:1]}, nil},
		{"llama", model.Reading{Rotations: []model.Rotation{yarn}}, nil},
		{"mistral", model.Reading{Windows: windows}, []string{"config.json: mlx-lm does not know windows of 4096 tokens (sliding_window) in mistral: its numbers of what is written are others"}},
		{"mistral3", model.Reading{Windows: windows}, []string{"config.json: mlx-lm does not know windows of 4096 tokens (sliding_window) in mistral: its numbers of what is written are others"}},
		{"mistral", model.Reading{Windows: []model.Window{{Layers: 2, Positions: 8192}}}, nil},
		{"gemma3_text", model.Reading{Windows: windows}, nil},
		{"mimo_v2_flash", model.Reading{Windows: windows}, []string{"config.json: mlx-lm does not know the first of 4096 positions that windows have (sliding_window) in mimo_v2_flash: its numbers of what is written are others"}},
		{"glm", model.Reading{Rotations: []model.Rotation{plain}}, []string{"config.json: mlx-lm does not know heads that turn in part (partial_rotary_factor) in glm: its numbers of what is written are others"}},
	} {
		p := &conversion{modelType: c.typ, spelled: keys{"head_dim": marshal(128)}}
		if got := p.apartFromMLX(&c.r, 8192); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.typ, got, c.want)
		}
	}
	p := &conversion{modelType: "gpt_bigcode", config: keys{"activation_function": marshal("gelu_new"), "multi_query": marshal(false)}}
	want := []string{"config.json: mlx-lm does not know activation_function gelu_new (it takes gelu) in gpt_bigcode: its numbers of what is written are others",
		"config.json: mlx-lm does not know multi_query false (it takes true) in gpt_bigcode: its numbers of what is written are others"}
	if got := p.apartFromMLX(&model.Reading{}, 0); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	p.config = keys{"activation_function": marshal("gelu"), "multi_query": marshal(true)}
	if got := p.apartFromMLX(&model.Reading{}, 0); got != nil {
		t.Errorf("%q of what mlx-lm does", got)
	}
	for _, typ := range slices.Concat(slices.Collect(maps.Keys(fixed)), unstretched, windowless, allColumns) {
		if !slices.Contains(compared, typ) {
			t.Errorf("%s is not written at all", typ)
		}
	}
}

// TestToldApart: that is among the report's warnings.
func TestToldApart(t *testing.T) {
	config := strings.Replace(tinyConfig, `{`, `{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 1, `, 1)
	r, err := Quantize(t.Context(), folderOf(t, []byte(config), quant.BF16, tinyShapes()), "src", filepath.Join(t.TempDir(), "made"), fourBits)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "windows of 16 tokens (sliding_window) in qwen3") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// TestWrittenType: a type is written as mlx-lm spells it.
func TestWrittenType(t *testing.T) {
	shapes := tinyShapes()
	for name := range shapes {
		if strings.Contains(name, "q_norm") || strings.Contains(name, "k_norm") {
			delete(shapes, name)
		}
	}
	dst := filepath.Join(t.TempDir(), "made")
	config := strings.Replace(tinyConfig, `"qwen3"`, `"seed-oss"`, 1)
	if _, err := Quantize(t.Context(), folderOf(t, []byte(config), quant.BF16, shapes), "src", dst, fourBits); err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	read(t, dst, "config.json", &c)
	if c["model_type"] != "seed_oss" {
		t.Errorf("model_type %v", c["model_type"])
	}
	loads(t, dst)
}
