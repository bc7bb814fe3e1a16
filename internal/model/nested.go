package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() {
	register("pixtral", newPixtral)
	registerNear("phi3_v", "phi3", newPhi3V)
	for _, typ := range []string{"mistral3", "llava"} { // mlx-lm's; the rest are near names
		register(typ, nests[typ].make)
	}
}

// part is a language model that may be within a model of text and images.
type part interface {
	Generator
	// within makes the model take tensor names with prefixes and leave out tensors of other parts. It gives the head.
	within() *nn.Linear
}

func (m *decoder) within() *nn.Linear { m.nested = true; return &m.Head }

func (m *centred) within() *nn.Linear { m.nested = true; return &m.Head }

func (m *hybrid) within() *nn.Linear { m.names.nested = true; return &m.Head }

// newNested is the language model of a model of text and images, whose config and tensors are those of another type with a
// prefix. tied is what tie_word_embeddings is beside the language model's part, where it is missing.
func newNested(mk maker, cfg *config, b *Build, tied *bool) (Generator, error) {
	g, err := mk(cfg, b)
	if err != nil {
		return nil, err
	}
	p, ok := g.(part)
	if !ok {
		return nil, fmt.Errorf("%smodel_type: this language model is not supported in %s", cfg.at, regular.Quote(cfg.typ))
	}
	cfg.tieBeside(p.within(), tied)
	return g, nil
}

// nest is a model of text and images whose language model is of the type that text_config.model_type says. Its other
// parts are left out.
type nest struct {
	typ  string // where the config does not say
	only bool   // and no other
	tied bool   // tie_word_embeddings beside text_config, where it is missing
}

// nests are those models by model_type.
var nests = map[string]nest{
	"mistral3":         {typ: "mistral", tied: true},
	"llava":            {typ: "llama"},
	"llava_next":       {typ: "llama"},
	"llava_next_video": {typ: "llama"},
	"llava_onevision":  {typ: "qwen2"},
	"video_llava":      {typ: "llama"},
	"lighton_ocr":      {typ: "qwen3", tied: true},
	"vipllava":         {typ: "llama"},
	"internvl":         {typ: "qwen2", tied: true},
	"got_ocr2":         {typ: "qwen2", tied: true},
	"idefics3":         {typ: "llama"},
	"smolvlm":          {typ: "llama"},
	"exaone4_5":        {typ: "exaone4"},
	"glm4v":            {typ: "glm4v_text", only: true},
	"glm46v":           {typ: "glm4v_text"},
	"glm4v_moe":        {typ: "glm4v_moe_text", only: true},
	"aya_vision":       {typ: "cohere2", tied: true},
	"cohere2_vision":   {typ: "cohere2", tied: true},
}

// what names the language model for documents.
func (n nest) what() string {
	if t := texts[n.typ]; t.as != "" {
		return "text part, " + t.as
	}
	if n.only {
		return "text part, " + n.typ
	}
	return "text part, " + n.typ + " or what it says"
}

// text is a type of language model in a nest.
type text struct {
	as       string            // the type here that it is; "": of the same name
	defaults map[string]string // what is missing of its keys is so in transformers, which used to leave them out
	also     []string          // a key, and further names of it
	shares   bool              // heads are shares of the width, whatever head_dim says
	idle     []string          // keys that transformers reads of type as and not of this one
}

// texts are those types by model_type.
var texts = map[string]text{
	"llama": {defaults: map[string]string{"hidden_size": "4096", "intermediate_size": "11008", "num_hidden_layers": "32", "num_attention_heads": "32",
		"vocab_size": "32000", "rms_norm_eps": "1e-6", "max_position_embeddings": "2048"}},
	"mistral": {defaults: map[string]string{"hidden_size": "4096", "intermediate_size": "14336", "num_hidden_layers": "32", "num_attention_heads": "32",
		"num_key_value_heads": "8", "vocab_size": "32000", "rms_norm_eps": "1e-6", "max_position_embeddings": "131072"}},
	"qwen2": {defaults: map[string]string{"hidden_size": "4096", "intermediate_size": "22016", "num_hidden_layers": "32", "num_attention_heads": "32",
		"num_key_value_heads": "32", "vocab_size": "151936", "rms_norm_eps": "1e-6", "max_position_embeddings": "32768"}},
	"qwen3": {defaults: map[string]string{"hidden_size": "4096", "intermediate_size": "22016", "num_hidden_layers": "32", "num_attention_heads": "32",
		"num_key_value_heads": "32", "head_dim": "128", "vocab_size": "151936", "rms_norm_eps": "1e-6", "max_position_embeddings": "32768"}},
	"cohere2": {defaults: map[string]string{"hidden_size": "8192", "intermediate_size": "22528", "num_hidden_layers": "40", "num_attention_heads": "64",
		"vocab_size": "256000", "layer_norm_eps": "1e-5", "max_position_embeddings": "8192"}},
	"exaone4": {defaults: map[string]string{"hidden_size": "4096", "intermediate_size": "16384", "num_hidden_layers": "32", "num_attention_heads": "32",
		"num_key_value_heads": "32", "vocab_size": "102400", "rms_norm_eps": "1e-5", "max_position_embeddings": "2048", "sliding_window_pattern": "4"}},
	"granite": {defaults: map[string]string{"hidden_size": "4096", "intermediate_size": "11008", "num_hidden_layers": "32", "num_attention_heads": "32",
		"vocab_size": "32000", "rms_norm_eps": "1e-6", "max_position_embeddings": "2048",
		"embedding_multiplier": "1", "attention_multiplier": "1", "residual_multiplier": "1", "logits_scaling": "1"}},
	"phi3": {defaults: map[string]string{"hidden_size": "3072", "intermediate_size": "8192", "num_hidden_layers": "32", "num_attention_heads": "32",
		"vocab_size": "32064", "rms_norm_eps": "1e-5", "max_position_embeddings": "4096"}},
	"gpt_oss": {defaults: map[string]string{"hidden_size": "2880", "intermediate_size": "2880", "num_hidden_layers": "36", "num_attention_heads": "64",
		"num_key_value_heads": "8", "head_dim": "64", "vocab_size": "201088", "rms_norm_eps": "1e-5", "max_position_embeddings": "131072", "num_local_experts": "128",
		"num_experts_per_tok": "4"}},
	"qwen3_moe": {also: []string{"num_experts", "num_local_experts", "n_routed_experts"}, defaults: map[string]string{"hidden_size": "2048", "intermediate_size": "6144",
		"num_hidden_layers": "24", "num_attention_heads": "32", "num_key_value_heads": "4", "vocab_size": "151936", "rms_norm_eps": "1e-6",
		"max_position_embeddings": "32768", "num_experts": "128", "num_experts_per_tok": "8", "moe_intermediate_size": "768"}},
	"exaone4_5_text": {as: "exaone4"},
	"glm4v_text": {as: "glm4", shares: true, idle: []string{"head_dim", "attention_bias"}, defaults: map[string]string{"hidden_size": "4096", "intermediate_size": "13696",
		"num_hidden_layers": "40", "num_attention_heads": "32", "num_key_value_heads": "2", "vocab_size": "151552", "rms_norm_eps": "1e-5",
		"max_position_embeddings": "32768", "attention_bias": "true", "partial_rotary_factor": "1"}},
	"glm4v_moe_text": {as: "glm4_moe", also: []string{"n_routed_experts", "num_local_experts", "num_experts"}, idle: []string{"use_qk_norm", "scoring_func", "topk_method"}, defaults: map[string]string{"hidden_size": "4096", "intermediate_size": "10944",
		"num_hidden_layers": "46", "num_attention_heads": "96", "num_key_value_heads": "8", "vocab_size": "151424", "rms_norm_eps": "1e-5",
		"max_position_embeddings": "65536", "attention_bias": "true", "moe_intermediate_size": "1408", "num_experts_per_tok": "8", "n_shared_experts": "1",
		"n_routed_experts": "128", "routed_scaling_factor": "1", "n_group": "1", "topk_group": "1", "first_k_dense_replace": "1", "norm_topk_prob": "true"}},
	"cohere": {}, "ernie4_5": {}, "gemma": {}, "gemma2": {}, "gemma3_text": {}, "glm": {}, "glm4": {}, "glm4_moe": {},
	"helium": {}, "hunyuan_v1_dense": {}, "internlm2": {}, "internlm3": {}, "lfm2": {}, "lfm2_moe": {}, "ministral3": {}, "mistral4": {}, "mixtral": {}, "olmo2": {},
	"olmo3": {}, "phi": {}, "qwen2_moe": {}, "qwen3_5_text": {as: "qwen3_5"}, "qwen3_5_moe_text": {as: "qwen3_5_moe"},
	"seed_oss": {}, "smollm3": {}, "stablelm": {}, "starcoder2": {},
	"afmoe": {}, "apertus": {}, "bitnet": {}, "deepseek_v2": {}, "deepseek_v3": {}, "dots1": {}, "ernie4_5_moe": {}, "exaone": {}, "exaone_moe": {}, "falcon_h1": {},
	"glm4_moe_lite": {}, "gpt_neox": {}, "granitemoe": {}, "granitemoehybrid": {}, "jamba": {}, "kimi_linear": {}, "laguna": {}, "llama4_text": {}, "mellum": {},
	"mimo_v2_flash": {}, "minicpm3": {}, "minimax_m2": {}, "nanochat": {}, "nemotron": {}, "olmoe": {}, "qwen3_next": {},
}

// TextDefaults are the keys that a text_config of such a type may leave out, with their values in JSON.
func TextDefaults(typ string) map[string]string { return texts[typ].defaults }

// make is the constructor of a nest.
func (n nest) make(cfg *config, b *Build) (Generator, error) {
	typ := n.typ
	if cfg.at != "" {
		var head struct {
			Type string `json:"model_type"`
		}
		cfg.into(&head)
		if head.Type != "" && !n.only {
			typ = underscored(head.Type)
		}
	}
	t, ok := texts[typ]
	if !ok {
		return nil, fmt.Errorf("%smodel_type %s is not supported in %s; these are: %s", cfg.at, regular.Quote(typ), regular.Quote(cfg.typ),
			strings.Join(slices.Sorted(maps.Keys(texts)), ", "))
	}
	if t.as != "" && t.defaults == nil {
		t.defaults = texts[t.as].defaults
	}
	for _, key := range t.idle {
		if _, ok := cfg.text[key]; ok {
			cfg.harmless(key)
			delete(cfg.text, key)
		}
	}
	if len(t.also) > 0 {
		cfg.also(t.also[0], t.also[1:]...)
	}
	for key, value := range t.defaults {
		if _, ok := cfg.text[key]; !ok && cfg.at != "" {
			cfg.text[key] = json.RawMessage(value)
		}
	}
	if t.shares {
		cfg.shareHeads()
	}
	// How images are cut and joined to the text.
	for _, key := range []string{"scale_factor", "downsample_ratio", "adapter_layer_norm_eps", "alignment_intermediate_size", "vision_aspect_ratio",
		"spatial_pool_mode", "spatial_pool_stride",
		"use_reentrant_checkpointing"} {
		cfg.seen[key] = true
	}
	// Of SmolVLM and Idefics3: nobody reads them but training and the part for images.
	cfg.harmless("neftune_noise_alpha", "use_resampler", "perceiver_config")
	cfg.is("qk_layer_norms", "false")
	mk := registry[resolve(cmp.Or(t.as, typ))]
	g, err := newNested(mk, cfg, b, &n.tied)
	if err != nil {
		return nil, err
	}
	switch m := g.(type) { // transformers' head is around the language model: no scale or cap of logits, and no bias
	case *decoder:
		m.logits, m.cap, m.Head.Bias = 0, nil, false
	case *centred:
		m.logits, m.Head.Bias = 0, false
	case *hybrid:
		m.Head.Bias = false
	}
	return g, nil
}

// tieBeside decides whether the head of a nested model is the embedding. tie_word_embeddings beside text_config says
// so, or the one in it, as in older folders; missing is the default beside it. A head that is stored is used even then.
func (c *config) tieBeside(head *nn.Linear, missing *bool) {
	var in struct {
		Tied *bool `json:"tie_word_embeddings"`
	}
	out := struct {
		Tied *bool `json:"tie_word_embeddings"`
	}{missing}
	c.into(&in)
	c.beside(&out)
	head.Tied = nn.TieNever
	if (in.Tied == nil && out.Tied == nil) || (in.Tied != nil && *in.Tied) || (out.Tied != nil && *out.Tied) {
		head.Tied = nn.TieFile
	}
}

// shareHeads gives heads the width that is left to each.
func (c *config) shareHeads() {
	var k struct {
		D     int `json:"hidden_size"`
		Heads int `json:"num_attention_heads"`
	}
	if c.into(&k); k.Heads > 0 {
		c.text["head_dim"] = json.RawMessage(strconv.Itoa(k.D / k.Heads))
		c.harmless("head_dim")
	}
}

// newPixtral is llama with a head of its own. Its configs leave out the number of heads where it is 32.
func newPixtral(cfg *config, b *Build) (Generator, error) {
	if _, ok := cfg.text["num_attention_heads"]; !ok {
		cfg.text["num_attention_heads"] = json.RawMessage("32")
	}
	return newNested(newLlama, cfg, b, new(bool))
}

// newPhi3V is phi3, with the part for images below the embedding.
func newPhi3V(cfg *config, b *Build) (Generator, error) {
	cfg.harmless("img_processor", "embd_layer") // of that part
	g, err := newPhi3(cfg, b)
	if err != nil {
		return nil, err
	}
	m := g.(*decoder)
	m.drop = append(m.drop, "vision_embed_tokens.")
	return m, nil
}
