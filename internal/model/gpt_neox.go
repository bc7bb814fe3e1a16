package model

import (
	"strings"

	"hearth/internal/nn"
)

func init() { register("gpt_neox", newGPTNeoX) }

// newGPTNeoX: attention and an MLP of two products side by side, each behind a norm of its own, biases everywhere; the query, key
// and value of every head are next to each other in one tensor.
func newGPTNeoX(cfg *config, b *Build) (Generator, error) {
	a := struct {
		centredArgs
		Parallel bool `json:"use_parallel_residual"`
		AttnBias bool `json:"attention_bias"`
	}{Parallel: true, AttnBias: true}
	cfg.into(&a)
	act := cfg.act("hidden_act", "gelu")
	if err := a.checkShare(); err != nil {
		return nil, err
	}
	a.KVHeads = a.Heads // whatever the config says
	if a.FFN == 0 {
		a.FFN = 4 * min(max(a.D, 0), maxSize/4)
	}
	if err := a.check(a.LNEps); err != nil {
		return nil, err
	}
	ra, err := cfg.ropeArgs(rotation{Head: a.HeadDim, Base: 10000, BaseKey: "rotary_emb_base", Share: 0.25, ShareKey: "rotary_pct"})
	if err != nil {
		return nil, err
	}
	cfg.same("rope_theta", ra.Theta)
	cfg.same("partial_rotary_factor", ra.Partial)
	if _, newer, _, err := cfg.ropes("", false); err == nil && newer != nil { // then these are never read
		if newer.Theta != nil {
			cfg.harmless("rope_theta")
		}
		if newer.Partial != 0 {
			cfg.harmless("partial_rotary_factor")
		}
	}
	rope, err := nn.NewRope(a.HeadDim, ra)
	if err != nil {
		return nil, err
	}
	perm := groupedHeads(b.Local(a.Heads), b.LocalKV(a.KVHeads), a.HeadDim)
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, 0, rope)
		l.Attn.QKV.Fused, l.Attn.QKV.Perm = true, [][]int32{perm}
		l.Attn.QKV.Bias, l.Attn.O.Bias = a.AttnBias, a.AttnBias
		l.MLP = nn.NewMLP(a.D, b.Local(a.FFN), act)
		l.MLP.Up.Bias, l.MLP.Down.Bias = true, true
		l.beside = a.Parallel
	})
	m.family, m.drop = neoXNames, []string{".attention.bias", ".attention.masked_bias"}
	m.Head.Tied = a.ownTie()
	return m, nil
}

var neoXNames = strings.NewReplacer("gpt_neox.layers.", "model.layers.", "model.h.", "model.layers.", "gpt_neox.embed_in", "model.embed_tokens",
	"model.embed_in", "model.embed_tokens", "model.embed_out", "lm_head", "embed_out", "lm_head", "gpt_neox.final_layer_norm", "model.norm",
	"model.final_layer_norm", "model.norm", ".attention.query_key_value", ".self_attn.qkv_proj", ".attention.dense", ".self_attn.o_proj",
	".attention.rotary_emb", ".rotary_emb", ".dense_h_to_4h", ".up_proj", ".dense_4h_to_h", ".down_proj")
