package model

import (
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() {
	register("deepseek_v3", newDeepseek)
	register("glm4_moe_lite", newDeepseek)
}

// latentArgs are the keys of models whose heads share a latent.
type latentArgs struct {
	glm4MoEArgs
	QLora int      `json:"q_lora_rank"` // 0: queries come from the hidden state at once
	Lora  int      `json:"kv_lora_rank"`
	Rot   int      `json:"qk_rope_head_dim"`
	Nope  int      `json:"qk_nope_head_dim"`
	VDim  int      `json:"v_head_dim"`
	Freq  int      `json:"moe_layer_freq"`
	Kinds []string `json:"mlp_layer_types"` // in place of first_k_dense_replace and moe_layer_freq

	theta   float64 // where the config has none
	normEps float64 // of the norms inside attention
	kvb     nn.Heads
	grows   bool    // queries grow with their position: see config.growth
	apart   bool    // partners of the rotation are half of its width apart, not neighbours
	turns   int     // columns that turn, whatever their share; 0: by the share
	part    float64 // as Share of a rotation
}

// pairs reads whether neighbours are partners; null is false.
func (a *latentArgs) pairs(cfg *config) {
	var k struct {
		Pairs *bool `json:"rope_interleave"`
	}
	cfg.into(&k)
	a.apart = a.apart || cfg.null("rope_interleave") || k.Pairs != nil && !*k.Pairs
}

// sparse reports a layer with experts.
func (a *latentArgs) sparse(i int) bool {
	if len(a.Kinds) > 0 {
		return a.Kinds[i] == sparse
	}
	return a.Experts > 0 && i >= a.Dense && i%a.Freq == 0
}

// newDeepseek: latent attention, and experts as in glm4_moe unless the config has none.
func newDeepseek(cfg *config, b *Build) (Generator, error) {
	a := latentArgs{Freq: 1, theta: 10000, normEps: 1e-6, kvb: nn.Heads{Again: true}}
	a.glm4MoEArgs = glm4MoEArgs{Scale: 1, Renorm: true, Method: "noaux_tc", Scoring: "sigmoid", common: common{Eps: 1e-6}}
	switch cfg.typ {
	case "deepseek_v3", "kimi_k25":
		a.Scale, a.TopK, a.Dense, a.ExpFFN, a.Shared = 2.5, 8, 3, 2048, 1
	case "glm4_moe_lite":
		a.Scale, a.TopK, a.Dense, a.ExpFFN, a.Shared, a.Eps, a.part = 1.8, 4, 1, 1536, 1, 1e-5, 1
	}
	a.read(cfg, &a)
	a.pairs(cfg)
	a.groups(cfg.typ == "deepseek_v3" || cfg.typ == "kimi_k25")
	if err := a.check(); err != nil {
		return nil, err
	}
	m, err := a.decoder(cfg, b, a.router())
	if err != nil || cfg.at == "" {
		return m, err
	}
	var beside struct {
		Tied *bool `json:"tie_word_embeddings"`
	}
	cfg.beside(&beside)
	if cfg.typ == "kimi_k25" {
		m.family = kimiNames
		if beside.Tied == nil || *beside.Tied { // a folder without a head uses the embedding, whatever text_config says
			m.look = func(shape func(name string) []int) {
				if shape("model.embed_tokens.weight") != nil && shape("lm_head.weight") == nil {
					m.Head.Tied = nn.TieAlways
				}
			}
		} else if m.Head.Tied == nn.TieAlways {
			m.Head.Tied = nn.TieFile // transformers saves a head then
		}
	}
	return m, nil
}

// groups fills n_group and topk_group where the config leaves them out: with those of the published deepseek_v3 if they
// fit, else with 1.
func (a *latentArgs) groups(published bool) {
	if a.Groups == 0 {
		if a.Groups = 1; published && a.Experts >= 16 && a.Experts%8 == 0 {
			a.Groups = 8
		}
	}
	if a.TopGroups == 0 {
		if a.TopGroups = 1; published && a.Groups >= 4 {
			a.TopGroups = 4
		}
	}
}

// kimiNames: transformers saves layers of the language model under the name that those of the vision tower have.
var kimiNames = strings.NewReplacer("language_model.model.blocks.", "language_model.model.layers.")

func (a *latentArgs) decoder(cfg *config, b *Build, router B.Router) (*decoder, error) {
	cfg.harmless("qk_head_dim") // the sum of the two
	ra, err := cfg.ropeArgs(rotation{Head: a.Rot, Base: a.theta, Pairs: !a.apart, Turns: a.turns, Share: a.part, Fixed: cfg.typ != "youtu_llm"})
	if err != nil {
		return nil, err
	}
	if ra.Partial != 1 {
		return nil, fmt.Errorf("partial_rotary_factor %g is not supported: the %d columns of qk_rope_head_dim turn", ra.Partial, a.Rot)
	}
	rope, err := nn.NewRope(a.Rot, ra)
	if err != nil {
		return nil, err
	}
	qrope, krope := nn.At(rope, a.Nope+a.Rot, a.Nope), nn.At(rope, a.Rot, 0)
	if a.grows {
		qrope.QBeta, qrope.QOrig = cfg.growth()
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := a.attention(b, i, &ra)
		t.QRope, t.KRope = qrope, krope
		l := decoderLayer{MLA: t, InNorm: a.norm(), PostNorm: a.norm()}
		if !a.sparse(i) {
			mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), a.act)
			l.MLP = &mlp
			return l
		}
		return l.routed(a.moe(b, router, &B.GLU{Act: a.act}))
	})
	m.extra, m.nested, m.drop = fmt.Sprintf("model.layers.%d.", a.Layers), true, []string{"mm_projector."}
	m.Head.Tied = a.ownTie()
	return m, nil
}

// attention declares latent attention of layer i, without its rotations.
func (a *latentArgs) attention(b *Build, i int, ra *nn.RopeArgs) *nn.MLA {
	h, qd := b.Local(a.Heads), a.Nope+a.Rot
	scale := 1 / math.Sqrt(float64(qd))
	if ra.MScaleAllDim != 0 && ra.Factor > 1 && ra.Type != "" && ra.Type != "default" {
		s := 0.1*ra.MScaleAllDim*math.Log(ra.Factor) + 1
		scale *= s * s
	}
	m := &nn.MLA{
		KVA: nn.Lin(a.D, a.Lora, a.Rot), KVNorm: nn.RMS(a.Lora, float32(a.normEps)),
		KUp: a.kvb, VUp: a.kvb, O: nn.Lin(h*a.VDim, a.D),
		Spec: B.MLA{State: b.Latent(i, a.Lora, a.Rot), Heads: h, Nope: a.Nope, Rot: a.Rot, Lora: a.Lora, VDim: a.VDim, Scale: float32(scale)},
	}
	m.KUp.N, m.KUp.Out, m.KUp.In, m.KUp.Of, m.KUp.Transposed = h, a.Lora, a.Nope, a.Nope+a.VDim, true
	m.VUp.N, m.VUp.Out, m.VUp.In, m.VUp.Of, m.VUp.From = h, a.VDim, a.Lora, a.Nope+a.VDim, a.Nope
	m.KVA.Bias, m.O.Bias = a.AttnBias, a.AttnBias
	if a.QLora == 0 {
		q := nn.Lin(a.D, h*qd)
		m.Q = &q
		return m
	}
	qa, norm, qb := nn.Lin(a.D, a.QLora), nn.RMS(a.QLora, float32(a.normEps)), nn.Lin(a.QLora, h*qd)
	qa.Bias = a.AttnBias
	m.QA, m.QNorm, m.QB = &qa, &norm, &qb
	return m
}

func (a *latentArgs) check() error {
	for _, f := range []struct {
		key      string
		n, least int
	}{
		{"kv_lora_rank", a.Lora, 1}, {"q_lora_rank", a.QLora, 0}, {"qk_rope_head_dim", a.Rot, 2}, {"qk_nope_head_dim", a.Nope, 1},
		{"v_head_dim", a.VDim, 1}, {"moe_layer_freq", a.Freq, 1},
	} {
		if f.n < f.least || f.n > 1<<16 {
			return fmt.Errorf("%s %d is missing or out of range", f.key, f.n)
		}
	}
	a.HeadDim, a.KVHeads = a.Rot, a.Heads // only the rotation reads them: latent attention has the sizes above
	if a.FFN == 0 && a.Experts > 0 && a.sparse(0) {
		a.FFN = a.ExpFFN // no layer has it
	}
	if len(a.Kinds) > 0 && len(a.Kinds) != a.Layers {
		return fmt.Errorf("mlp_layer_types has %d entries for %d layers", len(a.Kinds), a.Layers)
	}
	for i, k := range a.Kinds {
		if k != dense && (k != sparse || a.Experts == 0) {
			return fmt.Errorf("mlp_layer_types[%d] is %s, with %d experts", i, regular.Quote(k), a.Experts)
		}
	}
	if a.Experts == 0 {
		return a.common.check()
	}
	return a.glm4MoEArgs.check()
}
