package model_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
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

// recipe says how to fill a tensor; tools/golden/folders.py states the rules.
type recipe struct {
	Name   string          `json:"name"`
	DType  string          `json:"dtype"`
	Shape  []int           `json:"shape"`
	Base   float64         `json:"base"`
	Amp    float64         `json:"amp"`
	Low    uint8           `json:"low"`
	Span   uint64          `json:"span"`
	Sign   bool            `json:"sign"`
	Values json.RawMessage `json:"values"`
}

func (c *recipe) tensor(t testing.TB, seed uint64) safetensors.Tensor {
	t.Helper()
	n, draw, dt := 1, model.Draws(c.Name, seed), quant.DType(c.DType)
	for _, k := range c.Shape {
		n *= k
	}
	x := safetensors.Tensor{Name: c.Name, DType: c.DType, Shape: c.Shape}
	switch {
	case c.Values != nil:
		x.Bytes = values(t, c.Values, c.DType)
	case c.Amp != 0:
		w := make([]float32, n)
		for i := range w {
			w[i] = float32(c.Base + c.Amp*model.Unit(draw(i)))
		}
		x.Bytes = make([]byte, n*dt.Size())
		quant.PutFloats(x.Bytes, dt, w)
	default:
		if c.DType == "U32" || c.DType == "I32" {
			n *= 4
		}
		x.Bytes = make([]byte, n)
		for i := range x.Bytes {
			r := draw(i)
			x.Bytes[i] = c.Low + uint8(r>>40%c.Span)
			if c.Sign {
				x.Bytes[i] |= uint8(r&1) << 7
			}
		}
	}
	return x
}

// values are a number or a list of them.
func values(t testing.TB, raw json.RawMessage, dtype string) []byte {
	t.Helper()
	var one float64
	var many []float64
	if json.Unmarshal(raw, &one) == nil {
		many = []float64{one}
	} else if err := json.Unmarshal(raw, &many); err != nil {
		t.Fatal(err)
	}
	var b []byte
	for _, v := range many {
		switch dtype {
		case "F32":
			b = append(b, 0, 0, 0, 0)
			quant.PutFloats(b[len(b)-4:], quant.F32, []float32{float32(v)})
		case "I32":
			b = append(b, byte(int32(v)), byte(int32(v)>>8), byte(int32(v)>>16), byte(int32(v)>>24))
		case "I64":
			b = append(b, byte(int64(v)), byte(int64(v)>>8), byte(int64(v)>>16), byte(int64(v)>>24), 0, 0, 0, 0)
		default:
			t.Fatalf("no values of type %s", dtype)
		}
	}
	return b
}

// folderCase is a folder as it is published, and what mlx-lm makes of it.
type folderCase struct {
	Name    string          `json:"name"`
	Config  json.RawMessage `json:"config"`
	Beside  json.RawMessage `json:"beside"` // hf_quant_config.json
	Tensors []recipe        `json:"tensors"`
	Logits  golden.Floats   `json:"logits"`
}

func (c *folderCase) folder(t testing.TB, seed uint64) fstest.MapFS {
	t.Helper()
	var tensors []safetensors.Tensor
	for i := range c.Tensors {
		tensors = append(tensors, c.Tensors[i].tensor(t, seed))
	}
	f := fstest.MapFS{"config.json": text(string(c.Config)), "model.safetensors": pack(t, tensors)}
	if string(c.Beside) != "null" {
		f["hf_quant_config.json"] = text(string(c.Beside))
	}
	return f
}

type folderCases struct {
	Seed   uint64       `json:"seed"`
	Tokens []int32      `json:"tokens"`
	Rows   []int32      `json:"rows"`
	Cases  []folderCase `json:"cases"`
}

func loadFolders(t testing.TB) (g folderCases) {
	t.Helper()
	golden.Load(t, "testdata/folders.json", &g)
	return g
}

// compare loads the folder on b and holds its logits against the reference's.
func (c *folderCase) compare(t *testing.T, g *folderCases, b backend.Backend, opts backend.Options, bound float64) {
	defer b.Close()
	p, err := model.OpenCheckpoint(c.folder(t, g.Seed), "m")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(b, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(p.Warnings) > 0 {
		t.Errorf("warnings %q", p.Warnings)
	}
	got := golden.NewSequence(t, b, m, len(g.Tokens)).Step(g.Tokens, g.Rows...)
	d := golden.Diff(got, c.Logits, c.Logits)
	t.Logf("%.2g of the logit range (bound %.0e)", d, bound)
	if d > bound {
		t.Errorf("differs by %.3g of the logit range, bound %g", d, bound)
	}
}

// TestFolderGoldens: every published way to store quantised weights gives the logits that mlx-lm gives for the folder.
func TestFolderGoldens(t *testing.T) {
	golden.Update(t, filepath.FromSlash("../../tools/golden/folders.py"), "testdata/folders.json")
	g := loadFolders(t)
	for i := range g.Cases {
		for _, be := range backends {
			t.Run(fmt.Sprintf("%s/%s", g.Cases[i].Name, be.name), func(t *testing.T) {
				g.Cases[i].compare(t, &g, be.open(), be.opts, be.quantised)
			})
		}
	}
}

// TestMethodsRefused: what cannot be read is called by its exact name.
func TestMethodsRefused(t *testing.T) {
	_, good := tinyModel(t)
	for _, c := range []struct{ config, want string }{
		{`{"quant_method": "quanto"}`,
			`config.json: quantisation method "quanto" is not supported; use a conversion to MLX's own quantisation`},
		{`{"quant_method": "bitsandbytes", "load_in_4bit": true}`, `method "bitsandbytes" is`},
		{`{"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}`, `method "fp8" with blocks of [128 128] is`},
		{`{"quant_method": "fp8", "weight_block_size": [32, 32], "scale_fmt": "float"}`, `method "fp8" with blocks of [32 32] and scales of type "float" is`},
		{`{"quant_method": "fp8", "activation_scheme": "static"}`, `method "fp8" with a scale per tensor is`},
		{`{"quant_method": "compressed-tensors", "format": "float-quantized"}`, `method "compressed-tensors" in format "float-quantized" is`},
		{`{"quant_method": "modelopt", "quant_algo": "FP8"}`, `method "modelopt" with algorithm "FP8" is`},
		{`{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "W4A8_AWQ"}}`, `method "modelopt" with algorithm "W4A8_AWQ" is`},
		{`{"quant_method": "awq", "bits": 3}`, `method "awq" with 3 bits is`},
		{`{"quant_method": "gptq", "bits": 8}`, `method "gptq" with 8 bits is`},
		{`{"quant_method": 4}`, `quant_method should not be a JSON number`},
		{`"awq"`, `a JSON string is not what should be here`},
	} {
		for _, at := range []string{"config.json", "hf_quant_config.json"} {
			unquantised := strings.Replace(tiny, `"quantization": {`, `"unused": {`, 1)
			folder := with(good, "config.json", text(unquantised), at, text(c.config))
			if at == "config.json" {
				folder[at] = text(strings.Replace(unquantised, `"unused"`, `"quantization_config": `+c.config+`, "unused"`, 1))
			}
			err := load(folder)
			want := strings.Replace(c.want, "config.json", at, 1)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "load model: m: "+at) {
				t.Errorf("%s in %s: error %v, want %q", c.config, at, err, want)
			}
		}
	}
}

// said is the folder of the case with other words about quantisation.
func (g *folderCases) said(t testing.TB, name, quantization string) fstest.MapFS {
	t.Helper()
	i := slices.IndexFunc(g.Cases, func(c folderCase) bool { return c.Name == name })
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(g.Cases[i].Config, &keys); err != nil {
		t.Fatal(err)
	}
	keys["quantization"] = json.RawMessage(quantization)
	b, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return with(g.Cases[i].folder(t, g.Seed), "config.json", text(string(b)))
}

// TestEntries: what config.json says of a module is held against its tensors, or refused by name; of what is not there it may say
// anything. What may change numbers and is not followed is told.
func TestEntries(t *testing.T) {
	g := loadFolders(t)
	const hint = `; correct the module's entry in "quantization" of config.json, or remove it: the tensors say how they are stored`
	for _, c := range []struct {
		entry, want string // with @ for the module
		warning     string
	}{
		{`"@": {"group_size": 128, "bits": 6}`, "", ""},
		{`"@": {"group_size": 64, "bits": 6}`, "load model: m: model.safetensors: tensor @.weight does not fit (config.json says that it is affine 6 bits, group 64, its tensors are affine 6 bits, group 128)" + hint, ""},
		{`"@": {"group_size": 64, "bits": 12}`, "load model: m: config.json: @: quantisation affine 12 bits, group 64 is not supported; use an affine conversion of 2, 3, 4, 5, 6 or 8 bits, or mxfp4, mxfp8 or nvfp4", ""},
		{`"@": {"group_size": 32, "bits": 4, "mode": "mxfp4"}`, "…says that it is mxfp4 4 bits, group 32, its tensors are affine 6 bits, group 128)" + hint, ""},
		{`"@": {"group_size": 64, "bits": 6, "mode": "nf4"}`, `load model: m: config.json: @: quantisation mode "nf4" is not supported; …`, ""},
		{`"@": true`, "…says that it is affine 4 bits, group 64, its tensors are affine 6 bits, group 128)" + hint, ""},
		{`"@": false`, "…does not fit (it is quantised, config.json says that it is not)" + hint, ""},
		{`"@": {}`, "…does not fit (it is quantised, config.json says that it is not)" + hint, ""},
		{`"@": null`, "…does not fit (it is quantised, config.json says that it is not)" + hint, ""},
		{`"@": 6`, `load model: m: config.json: quantization: @: 6 does not say how it is stored; write false, or a dictionary such as {"group_size": 64, "bits": 4, "mode": "affine"}`, ""},
		{`"@": "6bit"`, `load model: m: config.json: quantization: @: "6bit" does not say how it is stored; …`, ""},
		{`"@": [6, 128]`, `load model: m: config.json: quantization: @: [6,128] does not say how it is stored; …`, ""},
		{`"@": {"bits": "six"}`, `load model: m: config.json: quantization: @: bits should not be a JSON string; …`, ""},
		{`"model.embed_tokens": {"bits": 16}, "@s": {"bits": "six"}, "vision_tower.0": 7, "model.layers": {"bits": 2}`, "load model: m: config.json: model.embed_tokens: quantisation affine 16 bits, group 64 is not supported; …", ""},
		{`"@s": {"bits": "six"}, "vision_tower.0": 7, "model.layers": {"bits": 2}, "*.mlp.up_proj": {"bits": 2}, "calibration": {"bits": 4.5}, "layers": ["a"]`, "", ""},
		{`"@": {"group_size": 128, "bits": 6, "rotation": "hadamard"}`, "", `quantization: @ in config.json: "rotation" "hadamard" is not understood: if it changes what the codes mean, answers are wrong`},
		{`"@": {"group_size": 128, "bits": 6, "quantize_input": true}`, "", `quantization: @ in config.json: "quantize_input" true is not understood: if it changes what the codes mean, answers are wrong`},
		{`"@": {"group_size": 128, "bits": 6, "quantize_input": false}`, "", ""},
		{`"@": {"group_size": 128, "bits": 6, "global_scale": true}`, "load model: m: tensor @.global_scale is missing, which config.json says is there; …", ""},
		{`"@": {"group_size": 128, "bits": 6, "global_scale": false}`, "", ""},
		{`"group_size": 16`, "", ""}, // a default that no module has
		{`"group_size": 16, "@": true`, "load model: m: config.json: @: quantisation affine 4 bits, group 16 is not supported; …", ""},
		{`"rotation": "hadamard"`, "", `quantization in config.json: "rotation" "hadamard" is not understood: if it changes what the codes mean, answers are wrong`},
	} {
		const up = "model.layers.0.mlp.up_proj"
		folder := g.said(t, "bits and groups by module, none said", `{"group_size": 64, "bits": 4, `+strings.ReplaceAll(c.entry, "@", up)+"}")
		warnings, err := loadTwice(folder)
		want := strings.ReplaceAll(c.want, "@", up)
		if (err == nil) != (want == "") || err != nil && !like(err.Error(), want) {
			t.Errorf("%s: error\n\t%v\nwant\n\t%s", c.entry, err, want)
		}
		if err == nil && strings.Join(warnings, "; ") != strings.ReplaceAll(c.warning, "@", up) {
			t.Errorf("%s: warnings %q, want %q", c.entry, warnings, c.warning)
		}
	}
}

// loadTwice loads a folder twice and gives what it was told.
func loadTwice(folder fstest.MapFS) ([]string, error) {
	p, err := model.OpenCheckpoint(folder, "m")
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for range 2 {
		if _, err := p.Load(stub.New(1), backend.Options{}); err != nil {
			return nil, err
		}
	}
	return p.Warnings, nil
}

// TestActivationsAreNotRounded: mlx-lm would, so it is told.
func TestActivationsAreNotRounded(t *testing.T) {
	_, good := tinyModel(t)
	p, err := model.OpenCheckpoint(with(good, "config.json", text(strings.Replace(tiny, `"quantization": {`, `"quantize_activations": true, "quantization": {`, 1))), "m")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "quantize_activations in config.json is not followed: ") {
		t.Errorf("warnings %q", p.Warnings)
	}
}

// TestFormatsThatAreNotRead: tensors that only other tools write are called by the tool.
func TestFormatsThatAreNotRead(t *testing.T) {
	s, good := tinyModel(t)
	for end, tool := range map[string]string{".tq_packed": "JANGTQ (TurboQuant)", ".qweight": "AWQ or GPTQ, which config.json does not say", ".trellis": "EXL3"} {
		tensors := tensorsOf(t, s)
		for i := range tensors {
			if tensors[i].Name == "model.layers.0.mlp.up_proj.weight" {
				tensors[i].Name = "model.layers.0.mlp.up_proj" + end
			}
		}
		err := load(with(good, "model.safetensors", pack(t, tensors)))
		want := "load model: m: tensor model.layers.0.mlp.up_proj" + end + " is stored as by " + tool + ", which is not supported; use an affine conversion of 2, …"
		if err == nil || !like(err.Error(), want) {
			t.Errorf("error\n\t%v\nwant\n\t%s", err, want)
		}
	}
}

// edited is a copy of the case's folder with one tensor changed, or removed where f says so.
func (c *folderCase) edited(t testing.TB, seed uint64, name string, f func(x *safetensors.Tensor) bool) fstest.MapFS {
	t.Helper()
	folder, found := c.folder(t, seed), false
	var tensors []safetensors.Tensor
	for i := range c.Tensors {
		x := c.Tensors[i].tensor(t, seed)
		if x.Name == name {
			found = true
			if !f(&x) {
				continue
			}
		}
		tensors = append(tensors, x)
	}
	if !found {
		t.Fatalf("%s has no tensor %s", c.Name, name)
	}
	folder["model.safetensors"] = pack(t, tensors)
	return folder
}

// reshaped gives a tensor another type and shape, and zeros.
func reshaped(dtype string, shape ...int) func(x *safetensors.Tensor) bool {
	return func(x *safetensors.Tensor) bool {
		n := map[string]int{"I64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2}[dtype]
		if n == 0 {
			n = 1
		}
		for _, k := range shape {
			n *= k
		}
		x.DType, x.Shape, x.Bytes = dtype, shape, make([]byte, n)
		return true
	}
}

func removed(*safetensors.Tensor) bool { return false }

// TestForeignTensorsThatDoNotFit: contradictory sizes are named by tensor.
func TestForeignTensorsThatDoNotFit(t *testing.T) {
	g := loadFolders(t)
	const up = "model.layers.0.mlp.up_proj"
	for _, c := range []struct {
		folder, suffix string // of up's tensor that is edited
		edit           func(x *safetensors.Tensor) bool
		want           string // with @ for up
	}{
		{"compressed-tensors ints", ".weight_scale", removed,
			"tensor @.weight_scale is missing (the weight is quantised); …"},
		{"compressed-tensors ints", ".weight_packed", removed, "tensor @.weight is missing (expected shape [256 128]); …"},
		{"compressed-tensors ints", ".weight_packed", reshaped("I32", 256, 24),
			"tensor @.weight_packed does not fit (24 words per row of 128 columns, expected codes of 4 or 8 bits); …"},
		{"compressed-tensors ints", ".weight_packed", reshaped("F32", 256, 16),
			"tensor @.weight_packed does not fit (@.weight_packed is F32, expected I32); …"},
		{"compressed-tensors ints", ".weight_scale", reshaped("BF16", 255, 4),
			"tensor @.weight_packed does not fit (@.weight_scale has shape [255 4], expected [256 4]); …"},
		{"compressed-tensors ints", ".weight_scale", reshaped("BF16", 256, 1, 4),
			"tensor @.weight_packed does not fit (@.weight_scale has shape [256 1 4], which does not divide 128 columns into groups); …"},
		{"compressed-tensors ints", ".weight_scale", reshaped("BF16", 256, 8),
			"tensor @.weight_packed does not fit (quantisation affine 4 bits, group 16 is not supported); …"},
		{"compressed-tensors ints", ".weight_shape", func(x *safetensors.Tensor) bool { x.Name = up + ".weight_zero_point"; return true },
			"tensor @.weight_packed does not fit (codes with zero points are not supported); …"},
		{"compressed-tensors ints", ".weight_shape", func(x *safetensors.Tensor) bool { x.Name = up + ".weight_g_idx"; return true },
			"tensor @.weight_packed does not fit (columns that are reordered before they are grouped are not supported); …"},
		{"compressed-tensors mxfp4", ".weight_packed", reshaped("U8", 255, 64),
			"tensor @.weight_packed does not fit (expected 256 rows, found shape [255 64]); …"},
		{"compressed-tensors mxfp4", ".weight_scale", reshaped("U8", 256, 8),
			"tensor @.weight_packed does not fit (@.weight_scale has shape [256 8], expected [256 4]); …"},
		{"compressed-tensors nvfp4", ".weight_global_scale", reshaped("F32", 1),
			"tensor @.weight_packed does not fit (@.weight_global_scale is 0); …"},
		{"compressed-tensors nvfp4", ".weight_global_scale", reshaped("F32", 2),
			"…@.weight_global_scale is F32 of shape [2], expected one F32); …"},
		{"modelopt", ".weight_scale_2", removed, "tensor @.weight_scale_2 is missing …"},
		{"modelopt", ".weight", removed, "tensor @.weight is missing …"},
		{"modelopt", ".weight", reshaped("U8", 256, 63),
			"tensor @.weight_scale does not fit (@.weight has shape [256 63], expected [256 64]); …"},
		{"modelopt", ".weight_scale", removed,
			"tensor @.weight does not fit (expected shape [256 128], found [256 64]); …"},
		{"method fp8 ue8m0", ".scale", reshaped("F8_E8M0", 9, 4),
			"tensor @.scale does not fit (@.scale has shape [9 4], expected [8 4]); …"},
		{"method fp8 ue8m0", ".scale", reshaped("F32", 8, 4),
			"tensor @.scale does not fit (@.scale holds 0, which is no power of two); …"},
		{"method fp8 ue8m0", ".weight", reshaped("U8", 256, 127),
			"tensor @.scale does not fit (@.weight has shape [256 127], expected [256 128]); …"},
		{"awq", ".scales", removed, "tensor @.scales is missing …"},
		{"awq", ".qweight", reshaped("I32", 64, 64),
			"tensor @.qweight does not fit (expected 256 outputs, found shape [64 64]); …"},
		{"awq", ".qzeros", reshaped("I32", 2, 31),
			"tensor @.qweight does not fit (@.qzeros has shape [2 31], expected [2 32]); …"},
		{"awq", ".scales", reshaped("F16", 3, 256),
			"tensor @.qweight does not fit (@.scales has shape [3 256], which does not divide 128 columns into groups); …"},
		{"gptq", ".g_idx", func(x *safetensors.Tensor) bool { x.Bytes[4*5] = 1; return true },
			"tensor @.qweight does not fit (@.g_idx puts column 5 into group 1: columns that are reordered before they are grouped are not supported); …"},
		{"gptq", ".g_idx", reshaped("I32", 5),
			"tensor @.qweight does not fit (@.g_idx is I32 of shape [5], expected I32 of [128]); …"},
		{"fp8 beside affine", ".weight_scale_inv", reshaped("F32", 4, 1),
			"tensor @.weight_scale_inv does not fit (@.weight_scale_inv has shape [4 1], expected one number, one for each of 256 rows, or [2 1] for blocks of 128x128); …"},
		{"fp8 beside affine", ".weight_scale_inv", reshaped("U8", 2, 1), "…(@.weight_scale_inv is U8, expected BF16); …"},
		{"fp8 beside affine", ".weight", removed, "tensor @.weight is missing (the weight is quantised); …"},
		{"fp8 beside affine", ".weight_scale_inv", removed, "tensor @.weight does not fit (expected a float type, found F8_E4M3); …"},
		{"groups of 128", ".biases", removed,
			"tensor @.weight does not fit (biases are missing); without them nobody can know which code is zero: convert the model again with mlx-lm; mxfp4, mxfp8 and nvfp4 have none"},
		{"groups of 128", ".scales", reshaped("F16", 256, 8), "tensor @.weight does not fit (…"},
		{"groups of 128", ".weight", reshaped("U32", 256, 4), "tensor @.weight does not fit (4 words of codes for 128 columns are codes of 1 bits, which no format has); use an affine conversion of …"},
		{"groups of 128", ".weight", reshaped("U32", 256, 64), "tensor @.weight does not fit (64 words of codes for 128 columns are codes of 16 bits, which no format has); …"},
		{"mxfp4", ".scales", reshaped("U8", 256, 5),
			"tensor @.weight does not fit (scales have shape [256 5], expected [256 4]); …"},
		{"mxfp4", ".scales", reshaped("BF16", 256, 4), "tensor @.weight does not fit (biases are missing); …"},
		{"nvfp4 tied", ".scales", reshaped("U8", 256, 16),
			"tensor @.weight does not fit (scales have shape [256 16], expected [256 8]); …"},
	} {
		i := slices.IndexFunc(g.Cases, func(f folderCase) bool { return f.Name == c.folder })
		err := load(g.Cases[i].edited(t, g.Seed, up+c.suffix, c.edit))
		if err == nil {
			t.Errorf("%s without a good %s: no error", c.folder, c.suffix)
			continue
		}
		text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "load model: m: "), "model.safetensors: ")
		if want := strings.ReplaceAll(c.want, "@", up); !like(text, want) {
			t.Errorf("%s without a good %s: error\n\t%s\nwant\n\t%s", c.folder, c.suffix, text, want)
		}
	}
}

// stack reads the first and the last row of every weight.
func stack(t testing.TB) backend.Backend {
	l := stub.New(1).NewLoader(backend.Options{})
	return backend.Visitor(func(s backend.WeightSpec) (backend.Weight, error) {
		k, err := s.Stack()
		if err != nil {
			t.Errorf("what the checkpoint let through does not stack: %v", err)
			return l.Load(s)
		}
		row := make([]float32, k.In)
		for _, r := range []int{0, k.Out - 1} {
			m, at := k.At(r)
			m.Row(row, at)
		}
		return l.Load(s)
	})
}

// FuzzQuantised: no quantisation dictionary and no tensor of another size makes the loader panic, or hand a backend what
// it cannot read.
func FuzzQuantised(f *testing.F) {
	g := loadFolders(f)
	types := []string{"U32", "I32", "U8", "F8_E4M3", "F8_E8M0", "F16", "BF16", "F32", "I64"}
	for i := range g.Cases {
		var c struct {
			Config json.RawMessage `json:"quantization"`
		}
		if err := json.Unmarshal(g.Cases[i].Config, &c); err != nil {
			f.Fatal(err)
		}
		if c.Config == nil {
			c.Config = json.RawMessage(`null`)
		}
		f.Add(uint8(i), string(c.Config), string(g.Cases[i].Beside), uint8(20), uint8(2), uint16(256), uint16(16))
	}
	f.Add(uint8(9), `null`, `{"quantization": {"quant_algo": "NVFP4"}}`, uint8(3), uint8(1), uint16(64), uint16(0))
	f.Fuzz(func(t *testing.T, which uint8, dictionary, beside string, tensor, dtype uint8, rows, cols uint16) {
		c := &g.Cases[int(which)%len(g.Cases)]
		if cols > 512 || rows > 512 {
			return
		}
		name, dt := c.Tensors[int(tensor)%len(c.Tensors)].Name, types[int(dtype)%len(types)]
		folder := c.edited(t, g.Seed, name, reshaped(dt, int(rows), int(cols)))
		if dictionary != "null" {
			config := strings.TrimSuffix(string(c.Config), "}") + `, "quantization": ` + dictionary + "}"
			folder["config.json"] = text(config)
		}
		folder["hf_quant_config.json"] = text(beside)
		p, err := model.OpenCheckpoint(folder, "m")
		if err == nil {
			defer p.Close()
			_, err = p.Load(stack(t), backend.Options{})
		}
		if err != nil && !strings.HasPrefix(err.Error(), "load model: m: ") {
			t.Errorf("error %q does not name the folder", err)
		}
	})
}
