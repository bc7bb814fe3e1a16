package model

import (
	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("deepseek_v2", newDeepseekV2) }

// newDeepseekV2: latent attention like its successor's; experts picked by softmax, from the groups that have the best ones.
func newDeepseekV2(cfg *config, b *Build) (Generator, error) {
	a := latentArgs{Freq: 1, theta: 10000, normEps: 1e-6, kvb: nn.Heads{Together: true}}
	a.glm4MoEArgs = glm4MoEArgs{Groups: 1, TopGroups: 1, Scale: 1, Method: "greedy", Experts: 64, Shared: 2, ExpFFN: 1407,
		common: common{Eps: 1e-6}}
	a.read(cfg, &a)
	router := B.Router{Score: B.Softmax, K: a.TopK, Scale: float32(a.Scale)}
	switch a.Method {
	case "greedy", "gready": // the second spelling is mlx-lm's default
		a.Groups, a.TopGroups = 1, 1
	case "group_limited_greedy":
		router.Groups, router.TopGroups = a.Groups, a.TopGroups
	}
	cfg.is("topk_method", `"greedy"`, `"gready"`, `"group_limited_greedy"`)
	cfg.is("scoring_func", `"softmax"`)
	a.Method, a.Scoring = "noaux_tc", "sigmoid" // the rest is checked like its successor's
	if err := a.check(); err != nil {
		return nil, err
	}
	return a.decoder(cfg, b, router)
}
