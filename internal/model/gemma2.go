package model

import (
	"cmp"
	"fmt"
	"math"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("gemma2", newGemma2) }

// gemma2Args: scores and logits are capped, unless the config says null. Every other layer has a window where
// layer_types is missing.
type gemma2Args struct {
	common
	windows
	ScoreCap *float `json:"attn_logit_softcapping"`
	LogitCap *float `json:"final_logit_softcapping"`
	Query    float  `json:"query_pre_attn_scalar"`
}

func newGemma2(cfg *config, b *Build) (Generator, error) {
	score, logit, yes := float(50), float(30), true
	a := gemma2Args{ScoreCap: &score, LogitCap: &logit, Query: 256, windows: windows{Window: 4096},
		common: common{HeadDim: 256, Eps: 1e-6, MaxPos: 8192, Tied: &yes}}
	cfg.into(&a)
	cfg.harmless("sliding_window_size", "sliding_window_pattern", "_sliding_window_pattern")
	a.fill(a.Layers, func(i int) bool { return i%2 == 0 })
	if err := a.check(); err != nil {
		return nil, err
	}
	act := cfg.act("hidden_activation", "gelu_pytorch_tanh")
	cfg.harmless("hidden_act") // hidden_activation counts
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := a.sandwich(b, gqa(b, &a.common, i, a.window(i), rope), a.Query)
		l.MLP.Spec.Act = act
		if a.ScoreCap != nil {
			l.Attn.Spec.Cap = float32(*a.ScoreCap)
		}
		return l
	})
	m.gemma(a.D)
	m.cap = capped(a.LogitCap)
	return m, nil
}

// capped is the activation of logits that are kept below a limit; nil: none.
func capped(limit *float) *B.Activation {
	if limit == nil {
		return nil
	}
	return &B.Activation{Kind: B.TanhCap, A: float32(*limit)}
}

// checkCap refuses limits that no model has.
func checkCap(key string, limit *float) error {
	if limit != nil && !(*limit > 0 && *limit < 1e9) {
		return fmt.Errorf("%s %g is out of range", key, float64(*limit))
	}
	return nil
}

func (a *gemma2Args) check() error {
	if err := cmp.Or(checkCap("attn_logit_softcapping", a.ScoreCap), checkCap("final_logit_softcapping", a.LogitCap), checkQuery(a.Query)); err != nil {
		return err
	}
	if err := a.common.check(); err != nil {
		return err
	}
	return a.checkWindows(a.Layers)
}

func checkQuery(q float) error {
	if !(q > 0 && q < 1e9) {
		return fmt.Errorf("query_pre_attn_scalar %g is out of range", float64(q))
	}
	return nil
}

// sandwich is the layer of gemma2 and gemma3: norms before and after attention and MLP, all stored as w and used as 1+w.
// Scores are divided by √query.
func (c *common) sandwich(b *Build, t nn.Attention, query float) decoderLayer {
	t.Spec.Scale = float32(1 / math.Sqrt(float64(query)))
	mlp := nn.NewGLUMLP(c.D, b.Local(c.FFN), B.GeluTanh)
	l := decoderLayer{Attn: &t, MLP: &mlp, InNorm: c.norm(), AttnNorm: c.norm(), PreNorm: c.norm(), MLPNorm: c.norm()}
	for _, n := range []*nn.RMSNorm{l.InNorm, l.AttnNorm, l.PreNorm, l.MLPNorm, t.QNorm, t.KNorm} {
		if n != nil {
			n.Plus1 = true
		}
	}
	return l
}
