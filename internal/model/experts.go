package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

// checkExperts refuses numbers of experts that no model has. key and pick are what config.json calls all of them and those
// that a token uses.
func checkExperts(key string, n int, pick string, k int) error {
	switch {
	case n <= 0 || n > maxExperts:
		return fmt.Errorf("%s %d is missing or out of range", key, n)
	case k <= 0 || k > n:
		return fmt.Errorf("%s %d is missing or more than the %d experts", pick, k, n)
	}
	return nil
}

const maxExperts, maxGroups = 4096, 64

// groupsFit reports whether experts can be picked from the best top of n groups, each of more than one unless n is 1.
func groupsFit(n, top, experts int) bool {
	return n > 0 && n <= maxGroups && experts%n == 0 && (n == 1 || experts != n) && top > 0 && top <= n
}

// fusedExperts gives stacks of experts that transformers saved, without ".weight", their usual names.
func fusedExperts(name string) string {
	for _, part := range []string{"gate_up_proj", "up_proj", "down_proj"} {
		for _, suffix := range [][2]string{{"", ".weight"}, {"_bias", ".bias"}} {
			for _, stack := range []string{".experts.", ".switch_mlp."} {
				if path, ok := strings.CutSuffix(name, stack+part+suffix[0]); ok {
					return path + ".switch_mlp." + part + suffix[1]
				}
			}
		}
	}
	return name
}

// transposedExperts finds out which way round the matrices of experts lie: transformers saves some families' as [in,
// out]. Where one of the two stacks is square, the other is not.
func transposedExperts(m *nn.MoE, path string, shape func(name string) []int) {
	up, down := shape(path+"gate_up_proj.weight"), shape(path+"down_proj.weight")
	if len(up) != 3 || len(down) != 3 || shape(path+"down_proj.scales") != nil {
		return
	}
	transposed := down[2] == m.Up.In && down[1] != m.Up.In || down[1] == down[2] && up[1] == m.Up.In && up[2] != m.Up.In
	m.Up.Transposed, m.Down.Transposed = transposed, transposed
}

// mlpTypes says which layers have experts.
type mlpTypes struct {
	MLPs []string `json:"mlp_layer_types"`
}

const (
	dense  = "dense"
	sparse = "sparse"
)

// fillMLPs fills mlp_layer_types where the config lacks it, by the layers that have experts in the family, and checks the words.
func (m *mlpTypes) fillMLPs(layers int, experts func(i int) bool) error {
	if m.MLPs == nil {
		for i := range min(max(layers, 0), maxLayers) {
			m.MLPs = append(m.MLPs, either(experts(i), sparse, dense))
		}
	}
	return checkKinds("mlp_layer_types", m.MLPs, layers, dense, sparse)
}

func (m *mlpTypes) sparse(i int) bool { return m.MLPs[i] == sparse }

// freeBiases: whatever mlp_bias says, MLPs have biases where the folder has them, as in transformers, which does not
// read the key.
func (m *decoder) freeBiases(shape func(name string) []int) {
	for i := range m.Layers {
		l, path := &m.Layers[i], fmt.Sprintf("model.layers.%d.mlp.", i)
		bare := func(down string) bool { return shape(path+down+".weight") != nil && shape(path+down+".bias") == nil }
		if l.MLP != nil && bare("down_proj") {
			l.MLP.GateUp.Bias, l.MLP.Down.Bias = false, false
		}
		if l.MoE == nil {
			continue
		}
		if bare("switch_mlp.down_proj") || bare("experts.0.down_proj") {
			l.MoE.Up.Bias, l.MoE.Down.Bias = false, false
		}
		if s := l.MoE.Shared; s != nil && bare("shared_experts.down_proj") {
			s.GateUp.Bias, s.Down.Bias = false, false
		}
	}
}

// anyGate is gate for types whose constructors leave hidden_act alone: where every layer is attention and a gated MLP
// or experts, it is theirs and nothing else's. Elsewhere it may be a convolution's too, and only the usual one is
// taken.
func (m *decoder) anyGate(cfg *config) {
	if _, ok := cfg.text["hidden_act"]; !ok || cfg.seen[cfg.at+"hidden_act"] {
		return
	}
	for i := range m.Layers {
		l := &m.Layers[i]
		plain := l.MLP != nil && l.MLP.Spec == B.GLU{Act: B.SiLU}
		routed := l.MoE != nil && l.MoE.Spec.GLU != nil && *l.MoE.Spec.GLU == B.GLU{Act: B.SiLU}
		if l.Mixer != nil || l.Recur != nil || l.Two != nil || l.Other != nil || !plain && !routed {
			return
		}
	}
	m.gate(cfg)
}

// gate gives all gated MLPs, experts among them, the activation that the config names.
func (m *decoder) gate(cfg *config) {
	kind := cfg.act("hidden_act", "silu")
	glu := &B.GLU{Act: kind}
	for i := range m.Layers {
		l := &m.Layers[i]
		if l.MLP != nil {
			l.MLP.Spec.Act = kind
		}
		if l.MoE == nil {
			continue
		}
		if l.MoE.Spec.GLU = glu; l.MoE.Shared != nil {
			l.MoE.Shared.Spec.Act = kind
		}
	}
}
