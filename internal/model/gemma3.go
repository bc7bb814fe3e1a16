package model

import (
	"fmt"
	"math"

	"hearth/internal/nn"
	"hearth/internal/quant"
)

func init() {
	register("gemma3_text", newGemma3Text)
	register("gemma3", newGemma3)
}

// gemma3Args: the last of every Pattern layers sees everything and has a rotation of its own.
type gemma3Args struct {
	common
	Window  int   `json:"sliding_window"`
	Pattern int   `json:"sliding_window_pattern"`
	Query   float `json:"query_pre_attn_scalar"`
}

// gemma3Defaults are what configs leave out.
func gemma3Defaults() gemma3Args {
	return gemma3Args{Window: 512, Pattern: 6, Query: 256, common: common{
		D: 1152, Layers: 26, FFN: 6912, Heads: 4, KVHeads: 1, HeadDim: 256, Eps: 1e-6, Vocab: 262144, MaxPos: 32768}}
}

func newGemma3Text(cfg *config, b *Build) (Generator, error) {
	a := gemma3Defaults()
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	return a.decoder(cfg, b)
}

// newGemma3 is the language model of a model of text and images. Its configs leave out more, and the size of the vocabulary
// beside them counts.
func newGemma3(cfg *config, b *Build) (Generator, error) {
	a := gemma3Defaults()
	a.Heads, a.KVHeads, a.Vocab = 8, 4, 262208
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	var beside struct {
		Vocab int `json:"vocab_size"`
	}
	if err := cfg.beside(&beside); err != nil {
		return nil, err
	}
	if beside.Vocab != 0 {
		a.Vocab = beside.Vocab
	}
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
	global, err := cfg.rope(rotation{Head: a.HeadDim, Kind: full, Base: 1e6})
	if err != nil {
		return nil, err
	}
	local, err := cfg.rope(rotation{Head: a.HeadDim, Kind: slides, Base: 10000, BaseKey: "rope_local_base_freq", Plain: true})
	if err != nil {
		return nil, err
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		rope, window := local, a.Window
		if (i+1)%a.Pattern == 0 {
			rope, window = global, 0
		}
		t := gqa(b, &a.common, i, window, rope)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		return a.sandwich(b, t, a.Query)
	})
	// The reference rounds the factor to bfloat16.
	m.gemma(quant.BF16ToF32(quant.F32ToBF16(float32(math.Sqrt(float64(a.D))))))
	m.Head.Tied = nn.TieFile // whatever tie_word_embeddings says
	return m, nil
}

func (a *gemma3Args) check() error {
	switch {
	case a.Pattern <= 0:
		return fmt.Errorf("sliding_window_pattern %d is not positive", a.Pattern)
	case a.Window <= 0 || a.Window > 1<<30:
		return fmt.Errorf("sliding_window %d is out of range", a.Window)
	}
	if err := checkQuery(a.Query); err != nil {
		return err
	}
	return a.common.check()
}
