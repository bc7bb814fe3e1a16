package model

import (
	"cmp"
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("mistral4", newMistral4) }

// newMistral4: latent attention like deepseek_v3's, with queries that grow like ministral3's; experts picked by softmax.
func newMistral4(cfg *config, b *Build) (Generator, error) {
	a := latentArgs{Freq: 1, theta: 10000, normEps: 1e-6, kvb: nn.Heads{Again: true}}
	a.glm4MoEArgs = glm4MoEArgs{Groups: 1, TopGroups: 1, Scale: 1, Renorm: true, Experts: 128, Shared: 1, TopK: 4, ExpFFN: 2048, common: common{Eps: 1e-6}}
	a.read(cfg, &a)
	a.pairs(cfg)
	a.Method, a.Scoring = "noaux_tc", "sigmoid" // the rest is checked like deepseek_v3's
	head := cmp.Or(a.HeadDim, a.Nope+a.Rot)
	if err := a.check(); err != nil {
		return nil, err
	}
	if err := a.share(cfg, head); err != nil {
		return nil, err
	}
	a.grows, a.turns = true, a.Rot
	m, err := a.decoder(cfg, b, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm, Scale: float32(a.Scale), Groups: a.Groups, TopGroups: a.TopGroups,
		TwoBest: true})
	if err != nil {
		return nil, err
	}
	m.family = stackNames
	return m, nil
}

// stackNames: stacks of experts as they are named in training, with or without a suffix.
var stackNames = strings.NewReplacer(
	".mlp.experts.gate_up_proj.weight", ".mlp.switch_mlp.gate_up_proj.weight", ".mlp.experts.down_proj.weight", ".mlp.switch_mlp.down_proj.weight",
	".mlp.experts.gate_up_proj", ".mlp.switch_mlp.gate_up_proj.weight", ".mlp.experts.down_proj", ".mlp.switch_mlp.down_proj.weight")

// share checks that the share of a head that turns is the part of it that is there to turn.
func (a *latentArgs) share(cfg *config, head int) error {
	_, newer, at, err := cfg.ropes("", false)
	if err != nil || newer == nil || newer.Partial == 0 {
		return err
	}
	if k := newer.kind(); (k == "" || k == "default") && head == a.Rot {
		return nil // transformers does not look at the share then
	}
	if n := int(float64(head)*float64(newer.Partial) + 1e-6); n != a.Rot {
		return fmt.Errorf("%s.partial_rotary_factor %g of head_dim %d are %d columns, but qk_rope_head_dim is %d", at, float64(newer.Partial), head, n, a.Rot)
	}
	return nil
}
