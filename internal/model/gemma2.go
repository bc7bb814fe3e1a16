package model

import (
	"fmt"
	"math"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("gemma2", newGemma2) }

// gemma2Args: scores and logits are capped. As in mlx-lm no layer has a window: the model was made with one of 4096 positions
// in every other layer.
type gemma2Args struct {
	common
	ScoreCap float `json:"attn_logit_softcapping"`
	LogitCap float `json:"final_logit_softcapping"`
	Query    float `json:"query_pre_attn_scalar"`
}

func newGemma2(cfg *config, b *Build) (Generator, error) {
	a := gemma2Args{ScoreCap: 50, LogitCap: 30, Query: 144}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	if err != nil {
		return nil, err
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := a.sandwich(b, gqa(b, &a.common, i, 0, rope), a.Query)
		l.Attn.Spec.Cap = float32(a.ScoreCap)
		return l
	})
	m.gemma(float32(math.Sqrt(float64(a.D))))
	m.Head.Tied = nn.TieAlways
	m.cap = &B.Activation{Kind: B.TanhCap, A: float32(a.LogitCap)}
	return m, nil
}

func (a *gemma2Args) check() error {
	if a.ScoreCap <= 0 || a.LogitCap <= 0 {
		return fmt.Errorf("attn_logit_softcapping %g or final_logit_softcapping %g is not positive", float64(a.ScoreCap), float64(a.LogitCap))
	}
	if err := checkQuery(a.Query); err != nil {
		return err
	}
	return a.common.check()
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

// gemma scales the embeddings; the last norm is as all others.
func (m *decoder) gemma(scale float32) {
	m.Embed.Scale, m.Norm.Plus1 = scale, true
}
