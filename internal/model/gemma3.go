package model

import (
	"cmp"
	"fmt"

	"hearth/internal/nn"
)

func init() {
	register("gemma3_text", newGemma3Text)
	register("gemma3", newGemma3)
}

// gemma3Args: where layer_types is missing, the last of every Pattern layers sees everything. Those have a rotation of their own.
type gemma3Args struct {
	common
	windows
	Pattern  int    `json:"sliding_window_pattern"`
	Query    float  `json:"query_pre_attn_scalar"`
	LogitCap *float `json:"final_logit_softcapping"`
}

// gemma3Defaults are what configs leave out.
func gemma3Defaults() gemma3Args {
	return gemma3Args{Pattern: 6, Query: 256, windows: windows{Window: 4096}, common: common{
		D: 2304, Layers: 26, FFN: 9216, Heads: 8, KVHeads: 4, HeadDim: 256, Eps: 1e-6, Vocab: 262208, MaxPos: 131072}}
}

func newGemma3Text(cfg *config, b *Build) (Generator, error) {
	a := gemma3Defaults()
	cfg.into(&a)
	return a.decoder(cfg, b)
}

// newGemma3 is the language model of a model of text and images. The size of the vocabulary beside its config counts, and no head
// but the embedding table is known to it where the folder has none.
func newGemma3(cfg *config, b *Build) (Generator, error) {
	a := gemma3Defaults()
	cfg.into(&a)
	var beside struct {
		Vocab int   `json:"vocab_size"`
		Tied  *bool `json:"tie_word_embeddings"` // the folder tells
	}
	cfg.beside(&beside)
	if beside.Vocab != 0 {
		a.Vocab = beside.Vocab
	}
	a.LogitCap = nil // the reference has none in this model
	m, err := a.decoder(cfg, b)
	if err != nil {
		return nil, err
	}
	m.nested = true
	return m, nil
}

func (a *gemma3Args) decoder(cfg *config, b *Build) (*decoder, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	// The pattern that transformers writes is not read by it, nor are capped scores done: layer_types counts.
	cfg.harmless("_sliding_window_pattern", "attn_logit_softcapping")
	act := cfg.act("hidden_activation", "gelu_pytorch_tanh")
	cfg.harmless("hidden_act") // hidden_activation counts
	global := cfg.rope(rotation{Head: a.HeadDim, Kind: full, Base: 1e6, Apart: true, Fixed: true})
	local := cfg.rope(rotation{Head: a.HeadDim, Kind: slides, Base: 10000, BaseKey: "rope_local_base_freq", Plain: true, Apart: true, Fixed: true})
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		rope := local
		if a.kind(i) == full {
			rope = global
		}
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l := a.sandwich(b, t, a.Query)
		l.MLP.Spec.Act = act
		return l
	})
	m.gemma(a.D)
	m.Embed.Rounded = true
	m.Head.Tied = nn.TieFile // whatever tie_word_embeddings says
	m.cap = capped(a.LogitCap)
	return m, nil
}

func (a *gemma3Args) check() error {
	if a.Pattern <= 0 {
		return fmt.Errorf("sliding_window_pattern %d is not positive", a.Pattern)
	}
	if err := cmp.Or(checkCap("final_logit_softcapping", a.LogitCap), checkQuery(a.Query)); err != nil {
		return err
	}
	a.fill(a.Layers, func(i int) bool { return (i+1)%a.Pattern != 0 })
	if err := a.common.check(); err != nil {
		return err
	}
	return a.checkWindows(a.Layers)
}
