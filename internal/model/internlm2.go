package model

import (
	"strings"
)

func init() { register("internlm2", newInternLM2) }

// newInternLM2 is llama under other names, with the queries, key and value of each key head next to each other in one tensor.
func newInternLM2(cfg *config, b *Build) (Generator, error) {
	a := struct {
		llamaArgs
		Bias bool `json:"bias"`
	}{Bias: true}
	cfg.into(&a)
	a.Types, a.HeadDim = nil, 0 // the family has no windows, and heads are always a share of the width
	a.AttnBias, a.MLPBias = a.Bias, false
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	perm := groupedHeads(b.Local(a.Heads), b.LocalKV(a.KVHeads), a.HeadDim)
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := a.layer(b, i, rope)
		l.Attn.QKV.Fused, l.Attn.QKV.Perm = true, [][]int32{perm}
		return l
	})
	m.family = internLM2Names
	return m, nil
}

// groupedHeads are the rows of all queries, then of keys, then of values, where they are stored by key head: its
// queries, its key, its value.
func groupedHeads(heads, kv, width int) []int32 {
	return interleave(kv, heads/kv*width, width, width)
}

var internLM2Names = strings.NewReplacer("tok_embeddings", "embed_tokens", ".attention.wqkv", ".self_attn.qkv_proj", ".attention.wo", ".self_attn.o_proj",
	".attention.rope.inv_freq", ".rotary_emb.inv_freq", ".attention_norm", ".input_layernorm", ".ffn_norm", ".post_attention_layernorm",
	".feed_forward.w1", ".mlp.gate_proj", ".feed_forward.w2", ".mlp.down_proj", ".feed_forward.w3", ".mlp.up_proj", "output", "lm_head")
