package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hearth/internal/backend"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// conversion is what is to be written.
type conversion struct {
	options   Options
	modelType string
	layers    int
	stored    func(name string) *backend.Tensor
	release   func(name string) // of a stored tensor that has been read
	cast      quant.DType       // of floats; "": each as it is
	config    map[string]json.RawMessage
	spelled   map[string]json.RawMessage // config with both names of keys that have two
	units     []unit
	rules     map[string]rule // by module, of those with an entry in config.json
	seen      map[string]bool
	report    Report
}

// unit is a module or a tensor: what is written together.
type unit struct {
	name    string            // module path of a matrix, else the tensor's name
	stored  []*backend.Tensor // rows of floats, on top of one another
	rows    int               // of all
	in      int
	scheme  quant.Scheme         // none: a copy
	dtype   quant.DType          // of floats, scales and biases; "": no floats
	tensors []safetensors.Tensor // what it becomes, in order
}

// size is what is read of the source.
func (u *unit) size() (n int64) {
	for _, t := range u.stored {
		n += int64(len(t.Bytes))
	}
	return n
}

// foreignLayout says why a folder must be converted to MLX's layout before.
func foreignLayout(where, tensor string) error {
	return &model.LoadError{Where: where, Tensor: tensor, Problem: fmt.Sprintf("tensor %s is laid out as Hugging Face has it, which quantize does not rearrange for this architecture", tensor),
		Hint: "quantise an MLX version of the model"}
}

func newConversion(c *model.Checkpoint, o Options) (*conversion, error) {
	p := &conversion{options: o, modelType: c.Name(), stored: c.Tensor, release: c.Release, rules: map[string]rule{}, seen: map[string]bool{}}
	if err := p.readConfig(c.Config); err != nil {
		return nil, &model.LoadError{Where: c.Where, File: "config.json", Err: err}
	}
	if why, hint := p.unsupported(); why != "" {
		return nil, &model.LoadError{Where: c.Where, File: "config.json", Problem: why, Hint: hint}
	}
	var specs []backend.WeightSpec
	m, err := c.Load(backend.Visitor(func(s backend.WeightSpec) (backend.Weight, error) {
		specs = append(specs, s)
		return nil, nil
	}), backend.Options{})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	for i := range specs {
		if err := p.spec(c.Where, &specs[i]); err != nil {
			return nil, err
		}
	}
	if end, ok := marks[p.modelType]; ok && !slices.ContainsFunc(p.units, func(u unit) bool { return strings.HasSuffix(u.name, end) }) {
		return nil, &model.LoadError{Where: c.Where, Problem: fmt.Sprintf("no tensor is a %s, so it is another model than what mlx-lm calls %s", end, p.modelType),
			Hint: asItIs}
	}
	p.spelled = maps.Clone(p.config)
	spellBoth(p.spelled, p.modelType, slices.ContainsFunc(p.units, func(u unit) bool { return strings.HasSuffix("."+u.name, ".lm_head") }))
	if key := missingKey(p.spelled, p.modelType); key != "" {
		return nil, &model.LoadError{Where: c.Where, File: "config.json", Problem: fmt.Sprintf("has no %s, which mlx-lm must have of %s and which does not follow from the rest", key, p.modelType),
			Hint: asItIs}
	}
	p.report.Warnings = slices.Concat(c.Warnings, p.apartFromMLX(m.Reading, m.Context))
	p.report.Parameters = m.Params
	if p.report.Quantised == 0 {
		return nil, &model.LoadError{Where: c.Where, Problem: fmt.Sprintf("no module divides into groups of %d", o.Scheme.Group), Hint: "choose a smaller group"}
	}
	return p, nil
}

func (p *conversion) readConfig(raw []byte) error {
	if err := json.Unmarshal(raw, &p.config); err != nil {
		return err
	}
	if limits := p.config["time_step_limit"]; limits != nil { // mlx-lm reads plain numbers there; none is above this one
		p.config["time_step_limit"] = bytes.ReplaceAll(limits, []byte(`{"__float__": "Infinity"}`), []byte("3.4e38"))
	}
	var c struct {
		Type   string `json:"torch_dtype"`
		Layers int    `json:"num_hidden_layers"`
		Text   struct {
			Type   string `json:"dtype"`
			Layers int    `json:"num_hidden_layers"`
		} `json:"text_config"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	p.layers = cmp.Or(c.Text.Layers, c.Layers)
	p.cast = map[string]quant.DType{"float16": quant.F16, "bfloat16": quant.BF16, "float32": quant.F32}[cmp.Or(c.Type, c.Text.Type)]
	return nil
}

// spec plans the tensors of one weight.
func (p *conversion) spec(where string, s *backend.WeightSpec) error {
	for _, part := range s.Parts {
		if !part.Scheme.None() {
			return &model.LoadError{Where: where, Tensor: part.Weight.Name, Problem: fmt.Sprintf("tensor %s is quantised already (%s)", part.Weight.Name, part.Scheme),
				Hint: "quantise the original: another rounding would only add errors"}
		}
		if strings.HasPrefix(part.Weight.Name, "model.language_model.") || p.modelType == "gpt2" && !strings.HasPrefix(part.Weight.Name, "model.") ||
			p.modelType == "nanochat" && strings.HasPrefix(part.Weight.Name, "model.") {
			return foreignLayout(where, part.Weight.Name)
		}
	}
	switch s.Use {
	case backend.UseVector:
		for _, part := range s.Parts {
			p.copy(part.Weight)
		}
		return nil
	case backend.UseConv:
		for _, part := range s.Parts {
			t := p.stored(part.Weight.Name)
			if n := len(t.Shape); n == 3 && t.Shape[n-1] != 1 {
				return foreignLayout(where, t.Name)
			}
			p.copy(t)
		}
		return nil
	}
	if s.Stacked() && len(s.Parts) < len(s.Out) {
		return foreignLayout(where, s.Parts[0].Weight.Name)
	}
	if s.Stacked() && len(s.Parts) > len(s.Out) {
		return p.stackExperts(where, s)
	}
	for i := range s.Parts {
		w := s.Parts[i].Weight
		module, ok := strings.CutSuffix(w.Name, ".weight")
		switch {
		case !ok:
			p.copy(w)
			continue
		case strings.HasSuffix(module, "kv_b_proj"): // the model has taken it apart
			p.together(module)
			continue
		}
		p.matrix(module, w.Shape, s.In, w)
		if b := s.Parts[i].Bias; b != nil {
			p.copy(b)
		}
	}
	return nil
}

// stackExperts stacks experts that are stored in tensors of their own under the name that mlx-lm has for the stack.
func (p *conversion) stackExperts(where string, s *backend.WeightSpec) error {
	names := []string{"down_proj"}
	if s.Use == backend.UseExpertGLU {
		names = []string{"gate_proj", "up_proj"}
	}
	for i, name := range names {
		var stored []*backend.Tensor
		for _, part := range s.Parts[i*s.Count : (i+1)*s.Count] {
			if part.Bias != nil {
				return foreignLayout(where, part.Bias.Name)
			}
			stored = append(stored, part.Weight)
		}
		first := stored[0]
		before, _, ok := strings.Cut(first.Name, ".experts.")
		if !ok {
			return foreignLayout(where, first.Name)
		}
		p.matrix(before+".switch_mlp."+name, append([]int{s.Count}, first.Shape...), s.In, stored...)
	}
	return nil
}

// matrix plans a module's matrix, or stack of them, of that shape.
func (p *conversion) matrix(module string, shape []int, in int, stored ...*backend.Tensor) {
	u := unit{name: module, stored: stored, in: in, rows: 1, dtype: p.typeOf(module+".weight", stored[0])}
	for _, n := range shape[:len(shape)-1] {
		u.rows *= n
	}
	lead := shape[:len(shape)-1]
	tensor := func(suffix string, t quant.DType, cols int) {
		u.tensors = append(u.tensors, safetensors.Tensor{Name: module + suffix, DType: string(t), Shape: append(slices.Clone(lead), cols)})
	}
	r := p.rule(module, in)
	p.report.Modules++
	if u.scheme = r.scheme; u.scheme.None() {
		tensor(".weight", u.dtype, in)
		p.add(u)
		return
	}
	p.report.Quantised++
	if r.named {
		p.rules[module] = r
	}
	tensor(".weight", quant.U32, in*u.scheme.Bits/32)
	scales := quant.U8
	if u.scheme.Mode == quant.Affine {
		scales = u.dtype
	}
	tensor(".scales", scales, in/u.scheme.Group)
	if u.scheme.Mode == quant.Affine {
		tensor(".biases", scales, in/u.scheme.Group)
	}
	p.add(u)
}

// together plans the tensor that holds both kinds of matrices of latent attention: mlx-lm keeps it so in some architectures, and
// takes it apart in others, where it must find floats.
func (p *conversion) together(module string) {
	t := p.stored(module + ".weight")
	if p.seen[module] || p.seen[t.Name] {
		return
	}
	if !slices.Contains(keepTogether, p.modelType) {
		p.copy(t)
		return
	}
	p.matrix(module, t.Shape, t.Shape[len(t.Shape)-1], t)
}

// copy plans a tensor that stays what it is, with the shape that its file gives it.
func (p *conversion) copy(t *backend.Tensor) {
	if p.seen[t.Name] {
		return
	}
	if s := p.stored(t.Name); s != nil {
		t = s
	}
	u := unit{name: t.Name, stored: []*backend.Tensor{t}, rows: 1, in: 1, dtype: p.typeOf(t.Name, t)}
	for _, n := range t.Shape {
		u.in *= n
	}
	u.in = max(u.in, 1)
	dtype := cmp.Or(string(u.dtype), t.DType)
	u.tensors = []safetensors.Tensor{{Name: t.Name, DType: dtype, Shape: t.Shape}}
	p.add(u)
}

func (p *conversion) typeOf(name string, t *backend.Tensor) quant.DType {
	switch d := quant.DType(t.DType); {
	case !d.Float():
		return ""
	case p.cast == "" || keepsType(p.modelType, name):
		return d
	}
	return p.cast
}

func (p *conversion) add(u unit) {
	if p.seen[u.name] {
		return
	}
	p.seen[u.name] = true
	p.units = append(p.units, u)
}
