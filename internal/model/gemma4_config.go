package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

// gemma4Args: layers that see everything have heads of another width, and perhaps of another number, and rotate otherwise.
type gemma4Args struct {
	common
	windows
	GlobalDim  int    `json:"global_head_dim"`            // where there is no per_layer_config
	GlobalKV   int    `json:"num_global_key_value_heads"` // likewise, with attention_k_eq_v
	KEqV       bool   `json:"attention_k_eq_v"`           // layers that see everything use their keys as values
	Shared     int    `json:"num_kv_shared_layers"`       // at the end: they read the last state of their kind before them
	DoubleWide bool   `json:"use_double_wide_mlp"`        // in those
	PerLayer   int    `json:"hidden_size_per_layer_input"`
	PerVocab   int    `json:"vocab_size_per_layer_input"`
	Pad        int    `json:"pad_token_id"` // stands for rows of images there
	Cap        *float `json:"final_logit_softcapping"`
	MoE        bool   `json:"enable_moe_block"`
	Experts    int    `json:"num_experts"`
	TopK       int    `json:"top_k_experts"`
	ExpFFN     int    `json:"moe_intermediate_size"`

	heads []gemma4Heads // by layer
	gate  *B.GLU
}

// gemma4Heads are the sizes of a layer's heads, and the entries of per_layer_config.
type gemma4Heads struct {
	Dim int `json:"head_dim"`
	KV  int `json:"num_key_value_heads"`
}

// gemma4Defaults are what configs leave out.
func gemma4Defaults() gemma4Args {
	yes := true
	return gemma4Args{GlobalDim: 512, PerLayer: 256, PerVocab: 262144, windows: windows{Window: 512},
		common: common{D: 2304, Layers: 30, FFN: 9216, Heads: 8, KVHeads: 4, HeadDim: 256, Eps: 1e-6, Vocab: 262144, MaxPos: 131072, Tied: &yes}}
}

func newGemma4Text(cfg *config, b *Build) (Generator, error) {
	a := gemma4Defaults()
	cfg.into(&a)
	return a.build(cfg, b)
}

// newGemma4 is the language model of a model of text, images and sound. The size of the vocabulary beside its config counts.
func newGemma4(cfg *config, b *Build) (Generator, error) {
	a := gemma4Defaults()
	if strings.HasPrefix(cfg.typ, "gemma4_unified") {
		a.Window, a.PerLayer, a.MaxPos = 1024, 0, 262144
	}
	cfg.into(&a)
	var beside struct {
		Vocab int   `json:"vocab_size"`
		Tied  *bool `json:"tie_word_embeddings"`
	}
	cfg.beside(&beside)
	if beside.Vocab != 0 {
		a.Vocab = beside.Vocab
	}
	if beside.Tied != nil {
		a.Tied = beside.Tied
	}
	return a.build(cfg, b)
}

func (a *gemma4Args) build(cfg *config, b *Build) (Generator, error) {
	if err := a.check(cfg); err != nil {
		return nil, err
	}
	act := cfg.act("hidden_activation", "gelu_pytorch_tanh")
	a.gate = &B.GLU{Act: act}
	cfg.is("use_bidirectional_attention", `"vision"`) // of the rows of an image
	cfg.harmless("sliding_window_pattern")            // the reference reads layer_types alone
	cfg.unused(a.Types)
	ropes := map[gemma4Rope]*B.Rope{}
	for i, t := range a.Types {
		k := gemma4Rope{t, a.heads[i].Dim}
		if ropes[k] != nil {
			continue
		}
		args, err := cfg.ropeArgs(gemma4Rotations[t].of(k.dim))
		if err != nil {
			return nil, err
		}
		note := &cfg.rotations[len(cfg.rotations)-1]
		if _, newer, _, err := cfg.ropes(t, true); err == nil && newer != nil { // the family's own are for configs without
			if newer.kind() == "" {
				args.Type, note.Type = "default", "default"
			}
			if newer.Partial == 0 {
				args.Partial, note.Columns = 1, k.dim
			}
		}
		switch {
		case args.Type == "proportional" && args.Factor == 0:
			args.Factor = 1
		case args.Type == "default" || args.Type == "":
			args.Partial = 1 // whatever the share
			note.Columns = k.dim
		}
		if ropes[k], err = nn.NewRope(k.dim, args); err != nil {
			return nil, err
		}
	}
	m := &gemma4{narrow: a.Layers - a.Shared, Norm: *a.norm(), Head: nn.Lin(a.D, a.Vocab),
		Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D, Scale: float32(math.Sqrt(float64(a.D)))}}
	m.Head.Tied = a.tie()
	m.cap = capped(a.Cap)
	if w := a.PerLayer; w > 0 {
		m.Inputs = &layerInputs{width: w, pad: int32(a.Pad), root: float32(1 / math.Sqrt(float64(a.D))),
			Table: nn.Embedding{Vocab: a.PerVocab, Dim: a.Layers * w, Scale: float32(math.Sqrt(float64(w)))},
			Proj:  nn.Lin(a.D, a.Layers*w), Norm: *nn.HeadRMS(w, float32(a.Eps))}
	}
	last := map[string]B.StateID{} // by kind of layer
	for i := range a.Layers {
		m.Layers = append(m.Layers, a.layer(b, i, ropes[gemma4Rope{a.Types[i], a.heads[i].Dim}], last))
	}
	m.declared = b.declared(&a.common)
	return m, nil
}

// gemma4Rope says which layers share a rotation.
type gemma4Rope struct {
	kind string
	dim  int
}

// gemma4Rotations are the reference's defaults: of the layers that see everything a part of each head turns, with the
// frequencies of the whole.
var gemma4Rotations = map[string]rotation{
	full:   {Kind: full, Base: 1e6, Type: "proportional", Share: 0.25, New: true, Apart: true, Fixed: true},
	slides: {Kind: slides, Base: 1e4, New: true, Apart: true, Fixed: true},
}

func (a *gemma4Args) layer(b *Build, i int, rope *B.Rope, last map[string]B.StateID) gemma4Layer {
	kind, window, shared, ffn := a.Types[i], a.window(i), i >= a.Layers-a.Shared, a.FFN
	h, kv, hd, eps := b.Local(a.Heads), b.LocalKV(a.heads[i].KV), a.heads[i].Dim, float32(a.Eps)
	kEqV := a.KEqV && kind == full
	t := nn.Attention{QKV: nn.Lin(a.D, h*hd, kv*hd, kv*hd), O: nn.Lin(h*hd, a.D), Rope: rope,
		QNorm: nn.HeadRMS(hd, eps), KNorm: nn.HeadRMS(hd, eps), VNorm: &B.Norm{Eps: eps, Width: hd},
		Spec: B.Attn{Heads: h, KVHeads: kv, KDim: hd, VDim: hd, Scale: 1, Window: window, OneWay: kind == full}}
	t.QKV.Least = B.Exact // scores of normalised heads that nothing scales down make much of small differences
	if kEqV {
		t.QKV.Outs[2] = 0
	}
	if shared {
		t.QKV.Outs[1], t.QKV.Outs[2], t.KNorm = 0, 0, nil
		t.Spec.State = last[kind]
		if a.DoubleWide {
			ffn *= 2
		}
	} else {
		t.Spec.State = b.KV(i, kv, hd, hd, window)
		last[kind] = t.Spec.State
	}
	l := gemma4Layer{Attn: t, MLP: nn.NewGLUMLP(a.D, b.Local(ffn), a.gate.Act),
		InNorm: *a.norm(), AttnNorm: *a.norm(), PreNorm: *a.norm(), MLPNorm: *a.norm()}
	if a.PerLayer > 0 {
		l.Input = &layerInput{gate: a.gate, Gate: nn.Lin(a.D, a.PerLayer), Proj: nn.Lin(a.PerLayer, a.D), Norm: *a.norm()}
	}
	if a.MoE {
		l.MoE = a.experts(b)
	}
	return l
}

func (a *gemma4Args) experts(b *Build) *gemma4Experts {
	n, ffn := a.Experts, b.Local(a.ExpFFN)
	e := &gemma4Experts{Scale: nn.Vec{N: a.D}, Router: nn.Lin(a.D, n), Each: nn.Vec{N: n},
		Up:   nn.Stack{N: n, In: a.D, Outs: []int{ffn, ffn}, Picks: a.TopK},
		Down: nn.Stack{N: n, In: ffn, Outs: []int{a.D}, Picks: a.TopK},
		Pre:  *a.norm(), Post1: *a.norm(), Post2: *a.norm(),
		norm: B.Norm{Eps: float32(a.Eps)}, root: float32(1 / math.Sqrt(float64(a.D))),
		router: B.Router{Score: B.SoftmaxSelected, K: a.TopK}, spec: B.Experts{GLU: a.gate}}
	e.Router.Least = B.Float32
	return e
}

// check fills what may be left out and refuses what no model has.
func (a *gemma4Args) check(cfg *config) error {
	if a.GlobalDim == 0 {
		a.GlobalDim = a.HeadDim
	}
	if err := a.common.check(); err != nil {
		return err
	}
	a.fill(a.Layers, func(i int) bool { return (i+1)%6 != 0 })
	if err := a.checkWindows(a.Layers); err != nil {
		return err
	}
	if n := len(a.Types); n > 0 && cfg.raw("per_layer_config") != nil {
		a.Types[n-1] = full // as the reference has it then, whatever layer_types says
	}
	switch {
	case a.GlobalDim < 0 || a.GlobalDim > 1<<12 || a.GlobalDim%2 != 0:
		return fmt.Errorf("global_head_dim %d is odd or out of range", a.GlobalDim)
	case a.GlobalKV < 0 || a.GlobalKV > 0 && a.Heads%a.GlobalKV != 0:
		return fmt.Errorf("num_attention_heads %d is no multiple of num_global_key_value_heads %d", a.Heads, a.GlobalKV)
	case a.PerLayer < 0 || a.PerLayer > maxSize/a.Layers:
		return fmt.Errorf("hidden_size_per_layer_input %d is out of range for %d layers", a.PerLayer, a.Layers)
	case a.PerLayer > 0 && (a.Pad < 0 || a.Pad >= a.PerVocab):
		return fmt.Errorf("pad_token_id %d is outside a vocab_size_per_layer_input of %d", a.Pad, a.PerVocab)
	case a.PerLayer > 0 && (a.PerVocab < a.Vocab || a.PerVocab > maxSize):
		return fmt.Errorf("vocab_size_per_layer_input %d does not cover a vocab_size of %d", a.PerVocab, a.Vocab)
	case a.MoE && (a.ExpFFN <= 0 || a.ExpFFN > maxSize):
		return fmt.Errorf("moe_intermediate_size %d is missing or out of range", a.ExpFFN)
	}
	if err := cmp.Or(checkCap("final_logit_softcapping", a.Cap), checkShared(a.Types, a.Shared)); err != nil {
		return err
	}
	if err := a.perLayer(cfg); err != nil {
		return err
	}
	if a.MoE {
		return checkExperts("num_experts", a.Experts, "top_k_experts", a.TopK)
	}
	return nil
}

// perLayer fills the sizes of every layer's heads. Without per_layer_config, which transformers writes since 5.24,
// layers that see everything have sizes of their own.
func (a *gemma4Args) perLayer(cfg *config) error {
	const key = "per_layer_config"
	raw := cfg.raw(key)
	for _, t := range a.Types {
		h := gemma4Heads{a.HeadDim, a.KVHeads}
		if raw == nil && t == full {
			if h.Dim = a.GlobalDim; a.KEqV && a.GlobalKV > 0 {
				h.KV = a.GlobalKV
			}
		}
		a.heads = append(a.heads, h)
	}
	if raw == nil {
		return nil
	}
	var layers map[string]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &layers); err != nil {
		return keyed(key, err)
	}
	for _, n := range slices.Sorted(maps.Keys(layers)) {
		i, err := strconv.Atoi(n)
		if err != nil || i < 0 || i >= a.Layers {
			return fmt.Errorf("%s has an entry for layer %s, of %d", key, regular.Quote(n), a.Layers)
		}
		for _, k := range slices.Sorted(maps.Keys(layers[n])) {
			if k != "head_dim" && k != "num_key_value_heads" {
				return fmt.Errorf("%s.%s has %s: head_dim and num_key_value_heads are supported there", key, n, regular.Quote(k))
			}
		}
		h := &a.heads[i]
		if err := cfg.decode(layers[n], cfg.at+key+"."+n+".", h); err != nil {
			return fmt.Errorf("%s.%s: %w", key, n, err)
		}
		switch {
		case h.Dim <= 0 || h.Dim > 1<<12 || h.Dim%2 != 0:
			return fmt.Errorf("%s.%s.head_dim %d is odd or out of range", key, n, h.Dim)
		case h.KV <= 0 || a.Heads%h.KV != 0:
			return fmt.Errorf("%s.%s.num_key_value_heads %d does not divide num_attention_heads %d", key, n, h.KV, a.Heads)
		}
	}
	return a.checkHeads(key)
}

// checkHeads: layers at the end read the keys and values of an earlier one, so their heads must have its sizes.
func (a *gemma4Args) checkHeads(key string) error {
	own := a.Layers - a.Shared
	for i := own; i < a.Layers; i++ {
		for from := own - 1; from >= 0; from-- {
			if a.Types[from] != a.Types[i] {
				continue
			}
			if a.heads[from] != a.heads[i] {
				return fmt.Errorf("%s: layer %d shares keys and values with layer %d, whose heads are others", key, i, from)
			}
			break
		}
	}
	return nil
}

// Rename drops the parts of other kinds, what training left behind, and the keys and values of layers that use others'. Experts
// may be stored as in training: gate and up as one tensor, without a suffix.
func (m *gemma4) Rename(name string) string {
	for _, s := range []string{"self_attn.rotary_emb", "input_max", "input_min", "output_max", "output_min"} {
		if strings.Contains(name, s) {
			return ""
		}
	}
	bare := strings.TrimPrefix(name, "model.")
	for _, p := range [...]string{"vision_tower", "multi_modal_projector", "audio_tower", "embed_audio", "embed_vision", "vision_embedder"} {
		if strings.HasPrefix(bare, p) {
			return ""
		}
	}
	if rest, ok := strings.CutPrefix(bare, "language_model."); ok {
		name = rest
		if !strings.HasPrefix(rest, "model.") && !strings.HasPrefix(rest, "lm_head.") {
			name = "model." + rest
		}
	}
	if ofShared(name, m.narrow, len(m.Layers)) {
		return ""
	}
	for _, part := range []string{"gate_up_proj", "down_proj"} {
		if rest, ok := strings.CutSuffix(name, ".experts."+part); ok {
			return rest + ".experts.switch_glu." + part + ".weight"
		}
	}
	return name
}

// checkShared: every layer at the end that shares keys and values finds an earlier one of its kind.
func checkShared(types []string, shared int) error {
	if len(types) == 0 {
		return fmt.Errorf("sliding_window is 0, and layer_types does not say which layers have none")
	}
	if shared < 0 || shared >= len(types) {
		return fmt.Errorf("num_kv_shared_layers %d of %d layers leave none to share with", shared, len(types))
	}
	own := types[:len(types)-shared]
	for i, kind := range types[len(own):] {
		if !slices.Contains(own, kind) {
			return fmt.Errorf("layer %d shares keys and values with an earlier layer of %s, but num_kv_shared_layers %d leaves none", len(own)+i, kind, shared)
		}
	}
	return nil
}

// ofShared reports a tensor that makes keys or values in a layer from first on: those read the state of another.
func ofShared(name string, first, layers int) bool {
	rest, ok := strings.CutPrefix(name, "model.layers.")
	number, part, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i < first || i >= layers {
		return false
	}
	return slices.ContainsFunc([]string{"self_attn.k_proj.", "self_attn.v_proj.", "self_attn.k_norm."},
		func(p string) bool { return strings.HasPrefix(part, p) })
}
