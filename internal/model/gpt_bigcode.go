package model

import (
	"hearth/internal/nn"
)

func init() { register("gpt_bigcode", newGPTBigCode) }

// newGPTBigCode is gpt2 in which all heads may share one key and value; else the query, key and value of every head
// are next to each other.
func newGPTBigCode(cfg *config, b *Build) (Generator, error) {
	tied := true
	a := struct {
		gpt2Args
		Shared   bool `json:"multi_query"`
		AttnBias bool `json:"attention_bias"`
		MLPBias  bool `json:"mlp_bias"`
	}{Shared: true, AttnBias: true, MLPBias: true}
	a.Tied = &tied
	cfg.into(&a)
	act := cfg.act("activation_function", "gelu_pytorch_tanh")
	cfg.harmless("inference_runner", "validate_runner_input", "pre_allocate_kv_cache", "pad_key_length")
	a.ByLayer = false
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Shared {
		a.KVHeads = 1
	}
	perm := groupedHeads(b.Local(a.Heads), b.LocalKV(a.KVHeads), a.HeadDim)
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = a.attention(b, i, nil)
		if !a.Shared {
			l.Attn.QKV.Perm = [][]int32{perm}
		}
		l.Attn.QKV.Fused, l.Attn.QKV.Bias, l.Attn.O.Bias = true, a.AttnBias, a.AttnBias
		l.MLP = nn.NewMLP(a.D, b.Local(a.FFN), act)
		l.MLP.Up.Bias, l.MLP.Down.Bias = a.MLPBias, a.MLPBias
	})
	a.learned(m)
	m.family, m.drop, m.root = gpt2Names, []string{".attn.bias", ".attn.masked_bias"}, []string{"transformer.", "model."}
	return m, nil
}
