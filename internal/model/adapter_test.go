package model_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/backend/stub"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// adapterGolden is made by tools/golden/adapter.py.
type adapterGolden struct {
	Cases []struct {
		Name    string           `json:"name"`
		Config  json.RawMessage  `json:"config"`
		Seed    uint64           `json:"seed"`
		Type    quant.DType      `json:"type"`
		Adapter json.RawMessage  `json:"adapter"` // adapter_config.json
		Shapes  map[string][]int `json:"shapes"`
		Prompt  []int32          `json:"prompt"`
		Decode  []int32          `json:"decode"`
		Rows    []int32          `json:"rows"`
		Prefill golden.Floats    `json:"prefill_logits"`
		Steps   golden.Floats    `json:"decode_logits"`
	} `json:"cases"`
}

// adapterTensor is one by formula.
func adapterTensor(name string, seed uint64, shape []int) safetensors.Tensor {
	n, amp := 1, 0.2
	for _, k := range shape {
		n *= k
	}
	if strings.HasSuffix(name, "_b") {
		amp = 0.1
	}
	t := safetensors.Tensor{Name: name, DType: "F32", Shape: shape}
	for _, v := range model.Amplitudes(name, seed, n, amp) {
		t.Bytes = binary.LittleEndian.AppendUint32(t.Bytes, math.Float32bits(v))
	}
	return t
}

func openAdapter(t *testing.T, config string, tensors []safetensors.Tensor) *model.Adapter {
	t.Helper()
	a, err := model.OpenAdapter(fstest.MapFS{"adapter_config.json": text(config), "adapters.safetensors": pack(t, tensors)}, "tuned/mine")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAdapters compares models with adapters with mlx-lm: over quantised and float modules, a tied table, stacks of
// experts, a nested model, and layers that share what others keep.
func TestAdapters(t *testing.T) {
	file := filepath.Join("testdata", "adapter.json")
	golden.Update(t, filepath.FromSlash("../../tools/golden/adapter.py"), file)
	var g adapterGolden
	golden.Load(t, file, &g)
	for _, c := range g.Cases {
		var tensors []safetensors.Tensor
		for _, name := range slices.Sorted(maps.Keys(c.Shapes)) {
			tensors = append(tensors, adapterTensor(name, c.Seed, c.Shapes[name]))
		}
		for _, b := range backends[:2] {
			be := b.open()
			a := openAdapter(t, string(c.Adapter), tensors)
			m, err := model.Synthetic{Config: c.Config, Seed: c.Seed, Type: c.Type, Adapter: a}.Load(be, b.opts)
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if m.Adapter != "tuned/mine" || !strings.HasSuffix(m.Description, ", adapter mine") {
				t.Errorf("%s: adapter %q, %s", c.Name, m.Adapter, m.Description)
			}
			s := golden.NewSequence(t, be, m, 16)
			prefill := s.Step(c.Prompt, c.Rows...)
			var steps []float32
			for _, tok := range c.Decode {
				steps = append(steps, s.Step([]int32{tok}, 0)...)
			}
			p, d := golden.Diff(prefill, c.Prefill, c.Prefill), golden.Diff(steps, c.Steps, c.Prefill)
			t.Logf("%s, %s: prefill %.2g, decode %.2g of the logit range", c.Name, b.name, p, d)
			if p > 1e-4 || d > 1e-4 {
				t.Errorf("%s, %s: prefill %.3g, decode %.3g of the logit range, bound 1e-4", c.Name, b.name, p, d)
			}
			m.Close()
			a.Close()
			be.Close()
		}
	}
}

// TestAdapterOfFiles: over a folder whose experts are stored one by one, the stacked adapter means the same.
func TestAdapterOfFiles(t *testing.T) {
	config := `{"model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 32, "norm_topk_prob": true, ` + tinyExperts + `}`
	stacked := experts(t, config)
	var tensors []safetensors.Tensor
	for name, shape := range map[string][]int{
		"switch_mlp.gate_proj.lora_a": {4, 2, 64}, "switch_mlp.gate_proj.lora_b": {4, 32, 2},
		"switch_mlp.down_proj.lora_a": {4, 2, 32}, "switch_mlp.down_proj.lora_b": {4, 64, 2},
	} {
		tensors = append(tensors, adapterTensor("model.layers.1.mlp."+name, 1, shape))
	}
	run := func(folder fstest.MapFS, a *model.Adapter) []float32 {
		c, err := model.OpenCheckpoint(folder, "m")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Adapter = a
		return firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return c.Load(be, backend.Options{}) })
	}
	a := openAdapter(t, `{"lora_parameters": {"rank": 2, "scale": 10}}`, tensors)
	defer a.Close()
	with, without := run(stacked, a), run(stacked, nil)
	if golden.Diff(with, without, without) < 1e-3 {
		t.Error("the adapter changes nothing")
	}
	if !slices.Equal(run(apart(t, stacked), a), with) {
		t.Error("experts in tensors of their own give other bits")
	}
}

// TestBrokenAdapters: one sentence that names the file, the tensors and what to do.
func TestBrokenAdapters(t *testing.T) {
	good := `{"fine_tune_type": "lora", "lora_parameters": {"rank": 2, "scale": 10, "dropout": 0}}`
	module := "model.layers.0.self_attn.q_proj" // [64, 64]
	pair := []safetensors.Tensor{adapterTensor(module+".lora_a", 1, []int{64, 2}), adapterTensor(module+".lora_b", 1, []int{2, 64})}
	codes := safetensors.Tensor{Name: module + ".lora_b", DType: "U32", Shape: []int{2, 64}, Bytes: make([]byte, 512)}
	for _, c := range []struct {
		config  string
		tensors []safetensors.Tensor
		want    string
	}{
		{good, pair, ""},
		{strings.Replace(good, "lora", "dora", 1), pair, `load adapter: a: adapter_config.json: fine_tune_type "dora" is not supported; fuse it into the model with the program that made it`},
		{`{"fine_tune_type": "full"}`, pair, `load adapter: a: adapter_config.json: fine_tune_type "full" is not supported; …`},
		{`{"peft_type": "LORA", "r": 8}`, pair, `load adapter: a: adapter_config.json: adapters of PEFT (peft_type "LORA") are not supported; …`},
		{`{}`, pair, "load adapter: a: adapter_config.json: lora_parameters is missing"},
		{`{"lora_parameters": {"rank": 2, "alpha": 16}}`, pair, "load adapter: a: adapter_config.json: lora_parameters has alpha, but no scale; divide alpha by the rank"},
		{`{"lora_parameters": {"rank": 0, "scale": 1}}`, pair, "load adapter: a: adapter_config.json: rank 0 is missing or out of range"},
		{`{"lora_parameters": {"rank": 2, "scale": 1e9}}`, pair, "load adapter: a: adapter_config.json: scale 1e+09 is out of range"},
		{`[]`, pair, "load adapter: a: adapter_config.json: a JSON array is not what should be here"},
		{good, nil, "load adapter: a: adapters.safetensors: is missing; give the folder that mlx-lm's training wrote"},
		{good, pair[:1], "load model: m: a/adapters.safetensors: tensor model.layers.0.self_attn.q_proj.lora_b is missing (it belongs to lora_a); the adapter was made for another model"},
		{good, []safetensors.Tensor{pair[0], codes}, "load model: m: a/adapters.safetensors: tensor " + module + ".lora_b does not fit (expected a float type, found U32); …"},
		{strings.Replace(good, `"rank": 2`, `"rank": 3`, 1), pair,
			"load model: m: a/adapters.safetensors: 2 tensors do not fit: " + module + ".lora_a (expected shape [64 3], found [64 2]), " + module + ".lora_b (expected shape [3 64], found [2 64]); …"},
		{good, []safetensors.Tensor{adapterTensor("model.layers.2.mlp.up_proj.lora_a", 1, []int{64, 2}), adapterTensor("model.norm.m", 1, []int{4})},
			"load model: m: a/adapters.safetensors: 2 tensors are not part of this architecture: model.layers.2.mlp.up_proj.lora_a, model.norm.m; the adapter was made for another model"},
	} {
		folder := fstest.MapFS{"adapter_config.json": text(c.config)}
		if c.tensors != nil {
			folder["adapters.safetensors"] = pack(t, c.tensors)
		}
		err := func() error {
			a, err := model.OpenAdapter(folder, "a")
			if err != nil {
				return err
			}
			defer a.Close()
			_, base := tinyModel(t)
			ck, err := model.OpenCheckpoint(base, "m")
			if err != nil {
				return err
			}
			defer ck.Close()
			ck.Adapter = a
			_, err = ck.Load(stub.New(1), backend.Options{})
			return err
		}()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !like(err.Error(), c.want)) {
			t.Errorf("%s: error\n\t%v\nwant\n\t%s", c.config, err, c.want)
		}
	}
	if _, err := model.OpenAdapter(fstest.MapFS{}, "a"); err == nil || !strings.Contains(err.Error(), "load adapter: a: adapter_config.json: is missing") {
		t.Errorf("empty folder: %v", err)
	}
}

// FuzzAdapter: no adapter makes the loader panic.
func FuzzAdapter(f *testing.F) {
	_, base := tinyModel(f)
	var good bytes.Buffer
	const module = "model.layers.0.self_attn.q_proj"
	if err := safetensors.Write(&good, []safetensors.Tensor{adapterTensor(module+".lora_a", 1, []int{64, 2}), adapterTensor(module+".lora_b", 1, []int{2, 64}),
		adapterTensor("model.embed_tokens.lora_a", 1, []int{32, 2}), adapterTensor("model.embed_tokens.lora_b", 1, []int{2, 64})}, nil); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"fine_tune_type": "lora", "lora_parameters": {"rank": 2, "scale": 10}}`), good.Bytes())
	f.Add([]byte(`{"lora_parameters": {"rank": 1, "scale": {"__float__": "NaN"}}}`), []byte("x"))
	f.Fuzz(func(t *testing.T, config, file []byte) {
		a, err := model.OpenAdapter(fstest.MapFS{"adapter_config.json": {Data: config}, "adapters.safetensors": {Data: file}}, "a")
		if err != nil {
			return
		}
		defer a.Close()
		c, err := model.OpenCheckpoint(base, "m")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Adapter = a
		be := ref.New()
		if m, err := c.Load(be, backend.Options{}); err == nil {
			golden.NewSequence(t, be, m, 2).Step([]int32{1}, 0)
		}
	})
}
