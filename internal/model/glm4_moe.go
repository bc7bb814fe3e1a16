package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("glm4_moe", newGLM4MoE) }

type glm4MoEArgs struct {
	common
	Experts   int    `json:"n_routed_experts"`
	Shared    int    `json:"n_shared_experts"` // widths of an expert that the shared one has
	TopK      int    `json:"num_experts_per_tok"`
	ExpFFN    int    `json:"moe_intermediate_size"`
	Dense     int    `json:"first_k_dense_replace"` // layers without experts, at the start
	Groups    int    `json:"n_group"`
	TopGroups int    `json:"topk_group"`
	Scale     float  `json:"routed_scaling_factor"`
	Renorm    bool   `json:"norm_topk_prob"` // null is false
	AttnBias  bool   `json:"attention_bias"`
	Method    string `json:"topk_method"`
	Scoring   string `json:"scoring_func"`

	act B.ActKind
}

// read decodes the keys, which newer folders may have under other names, into all, of which a is a part.
func (a *glm4MoEArgs) read(cfg *config, all any) {
	cfg.also("n_routed_experts", "num_local_experts", "num_experts")
	cfg.into(all)
	for key, to := range map[string]*int{"n_shared_experts": &a.Shared, "n_routed_experts": &a.Experts} {
		if cfg.null(key) {
			*to = 0
		}
	}
	a.Renorm = a.Renorm && !cfg.null("norm_topk_prob")
	a.act = cfg.act("hidden_act", "silu")
}

// newGLM4MoE: experts picked by sigmoids and a bias, in groups, beside a shared one; a part of each head rotates.
func newGLM4MoE(cfg *config, b *Build) (Generator, error) {
	a := glm4MoEArgs{Groups: 1, TopGroups: 1, Scale: 1, Method: "noaux_tc", Scoring: "sigmoid", Experts: 128, Shared: 1, TopK: 8, ExpFFN: 1408, Dense: 1,
		Renorm: true, common: common{KVHeads: 8, Eps: 1e-5}}
	turn := rotation{Base: 10000, Share: 0.5, Fixed: true}
	if cfg.typ == "solar_open" {
		turn.Base, turn.Share, a.Dense, a.ExpFFN, a.HeadDim = 1e6, 1, 0, 1280, 128
	}
	a.read(cfg, &a)
	var heads struct {
		Norm bool `json:"use_qk_norm"`
	}
	cfg.into(&heads)
	switch {
	case a.FFN == 0 && a.Dense > 0:
		return nil, fmt.Errorf("intermediate_size is missing, but first_k_dense_replace is %d", a.Dense)
	case a.FFN == 0:
		a.FFN = a.ExpFFN // no layer has it
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(turn.of(a.HeadDim))
	glu := &B.GLU{Act: a.act}
	router := a.router()
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, 0, rope)
		t.QKV.Bias = a.AttnBias
		if heads.Norm {
			t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		}
		l := preNorm(&a.common, b, t)
		l.MLP.Spec.Act = a.act
		if i < a.Dense {
			return l
		}
		return l.routed(a.moe(b, router, glu))
	})
	m.extra = fmt.Sprintf("model.layers.%d.", a.Layers)
	m.Head.Tied = a.ownTie()
	return m, nil
}

// moe declares the experts of a layer, with the shared one if there is any. Sigmoids have a bias that corrects the choice.
func (a *glm4MoEArgs) moe(b *Build, router B.Router, glu *B.GLU) *nn.MoE {
	moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, router, glu)
	if router.Score == B.Sigmoid {
		moe.Bias = &nn.Vec{N: a.Experts}
	}
	if a.Shared > 0 {
		shared := nn.NewGLUMLP(a.D, b.Local(a.ExpFFN*a.Shared), glu.Act)
		moe.Shared = &shared
	}
	return &moe
}

func (a *glm4MoEArgs) router() B.Router {
	return B.Router{Score: B.Sigmoid, K: a.TopK, Groups: a.Groups, TopGroups: a.TopGroups, Renorm: a.Renorm, Scale: float32(a.Scale)}
}

func (a *glm4MoEArgs) check() error {
	if err := checkExperts("n_routed_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	switch {
	case a.ExpFFN <= 0 || a.ExpFFN > maxSize || a.Shared < 0 || a.Shared > 64:
		return fmt.Errorf("moe_intermediate_size %d or n_shared_experts %d is missing or out of range", a.ExpFFN, a.Shared)
	case !groupsFit(a.Groups, a.TopGroups, a.Experts):
		return fmt.Errorf("n_group %d and topk_group %d do not fit %d experts", a.Groups, a.TopGroups, a.Experts)
	case a.TopGroups*(a.Experts/a.Groups) < a.TopK:
		return fmt.Errorf("topk_group %d of n_group %d leaves %d experts, fewer than num_experts_per_tok %d", a.TopGroups, a.Groups, a.TopGroups*(a.Experts/a.Groups), a.TopK)
	case a.Method != "noaux_tc" || a.Scoring != "sigmoid":
		return fmt.Errorf("topk_method %s with scoring_func %s is not supported", regular.Quote(a.Method), regular.Quote(a.Scoring))
	case !(a.Scale > 0 && a.Scale < 1e6):
		return fmt.Errorf("routed_scaling_factor %g is out of range", float64(a.Scale))
	}
	return a.common.check()
}
