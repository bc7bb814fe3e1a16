package bench

import (
	"encoding/json"
	"maps"
	"slices"

	"hearth/internal/quant"
)

// shape is the sizes of a published model; a benchmark needs no more of it. Embedded parts that a model has not are nil.
type shape struct {
	Hidden  int  `json:"hidden_size"`
	Layers  int  `json:"num_hidden_layers"`
	Heads   int  `json:"num_attention_heads"`
	KVHeads int  `json:"num_key_value_heads"`
	FFN     int  `json:"intermediate_size"`
	Tied    bool `json:"tie_word_embeddings"`
	*mixers
	*routed
}

// mixers are the layers of a hybrid: those whose number Interval divides attend, the others have the gated delta rule.
type mixers struct {
	Interval int `json:"full_attention_interval"`
	KHeads   int `json:"linear_num_key_heads"`
	VHeads   int `json:"linear_num_value_heads"`
	KDim     int `json:"linear_key_head_dim"`
	VDim     int `json:"linear_value_head_dim"`
	Kernel   int `json:"linear_conv_kernel_dim"`
}

// routed are the experts of every layer; Shared is the columns of the one that every row goes through, 0 without one.
type routed struct {
	Experts int  `json:"num_experts"`
	TopK    int  `json:"num_experts_per_tok"`
	ExpFFN  int  `json:"moe_intermediate_size"`
	Shared  int  `json:"shared_expert_intermediate_size,omitempty"`
	Renorm  bool `json:"norm_topk_prob"`
}

// shapes are Qwen3's (head dim 128, vocabulary 151,936) and hybrids that followed them (head dim 256, vocabulary 248,320).
var shapes = map[string]shape{
	"qwen3-0.6b":      {1024, 28, 16, 8, 3072, true, nil, nil},
	"qwen3-1.7b":      {2048, 28, 16, 8, 6144, true, nil, nil},
	"qwen3-4b":        {2560, 36, 32, 8, 9728, true, nil, nil},
	"qwen3-8b":        {4096, 36, 32, 8, 12288, false, nil, nil},
	"qwen3-30b-a3b":   {2048, 48, 32, 4, 6144, false, nil, &routed{128, 8, 768, 0, true}},
	"qwen3.5-0.8b":    {1024, 24, 8, 2, 3584, true, &mixers{4, 16, 16, 128, 128, 4}, nil},
	"qwen3.5-27b":     {5120, 64, 24, 4, 17408, false, &mixers{4, 16, 48, 128, 128, 4}, nil},
	"qwen3.5-35b-a3b": {2048, 40, 16, 2, 512, false, &mixers{4, 16, 32, 128, 128, 4}, &routed{256, 8, 512, 512, true}},
	"tiny":            {128, 2, 2, 1, 256, true, nil, nil},
	"tiny-experts":    {128, 2, 2, 1, 256, true, nil, &routed{8, 2, 64, 0, true}},
	"tiny-hybrid":     {128, 2, 2, 1, 256, true, &mixers{2, 1, 2, 64, 64, 4}, nil},
}

func shapeNames() []string { return slices.Sorted(maps.Keys(shapes)) }

// sized is the shape with so many layers as asked for.
func (f *benchFlags) sized() shape {
	s := shapes[f.shape]
	if f.layers > 0 {
		s.Layers = min(s.Layers, f.layers)
	}
	return s
}

// config is the model's config.json.
func (f *benchFlags) config() []byte {
	type stored struct {
		Mode  quant.Mode `json:"mode,omitempty"`
		Bits  int        `json:"bits"`
		Group int        `json:"group_size"`
	}
	c := struct {
		Type string `json:"model_type"`
		shape
		HeadDim int     `json:"head_dim"`
		Vocab   int     `json:"vocab_size"`
		Eps     float64 `json:"rms_norm_eps"`
		Theta   float64 `json:"rope_theta"`
		MaxPos  int     `json:"max_position_embeddings"`
		Quant   *stored `json:"quantization,omitempty"`
	}{"qwen3", f.sized(), 128, 151936, 1e-6, 1e6, 40960, nil}
	if c.routed != nil {
		c.Type = "qwen3_moe"
	}
	if c.mixers != nil {
		c.Type, c.HeadDim, c.Vocab = "qwen3_5", 256, 248320
	}
	if c.mixers != nil && c.routed != nil {
		c.Type = "qwen3_5_moe"
	}
	if s, err := f.scheme(); err == nil && !s.None() {
		c.Quant = &stored{s.Mode, s.Bits, s.Group}
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // a struct of numbers
	}
	return b
}
