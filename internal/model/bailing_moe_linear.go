package model

import (
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("bailing_moe_linear", newBailingLinear) }

// lightning is linear attention whose heads forget at rates of their own, the same in every row.
type lightning struct {
	QKV   nn.Linear   `w:"q_proj+k_proj+v_proj,fused=qkv_proj"`
	QNorm *nn.RMSNorm `w:"q_norm"`
	KNorm *nn.RMSNorm `w:"k_norm"`
	Gate  nn.Linear   `w:"g_proj"`
	Norm  nn.RMSNorm  `w:"g_norm"`
	O     nn.Linear   `w:"o_proj"`
	rope  *B.Rope
	scale float32
	spec  B.SSM
}

// Forward implements mixer.
func (l *lightning) Forward(o B.Ops, x B.Array) B.Array {
	y := l.QKV.Forward(o, x)
	q := o.Scale(o.RoPE(l.QNorm.Forward(o, l.QKV.Part(o, y, 0)), l.rope), l.scale)
	k := o.RoPE(l.KNorm.Forward(o, l.QKV.Part(o, y, 1)), l.rope)
	y = o.SSM(l.QKV.Part(o, y, 2), k, q, B.Array{}, &l.spec)
	return l.O.Forward(o, o.Gate(l.Gate.Forward(o, x), l.Norm.Forward(o, y), &B.GLU{Act: B.SigmoidAct}))
}

var bailingLinearNames = strings.NewReplacer("word_embeddings", "embed_tokens", ".attention.query_key_value", ".self_attn.qkv_proj",
	".attention.dense", ".self_attn.o_proj", ".attention.query_layernorm", ".self_attn.q_norm", ".attention.key_layernorm", ".self_attn.k_norm",
	".attention.", ".self_attn.", ".gate.gate_proj", ".gate", ".gate.expert_bias", ".gate.e_score_correction_bias")

// newBailingLinear is bailing_moe with lightning attention in every layer but the last of each group and those behind
// the last whole group.
func newBailingLinear(cfg *config, b *Build) (Generator, error) {
	var a struct {
		bailingArgs
		Group      int  `json:"layer_group_size"`
		NormGroups int  `json:"group_norm_size"`
		Scaled     bool `json:"moe_router_enable_routed_scaling"`
	}
	cfg.onlyBailing()
	cfg.is("use_linear_silu", "false")
	cfg.is("linear_rope", "true")
	cfg.harmless("using_split_qkv_in_self_attention", "linear_mode", "linear_backend") // how the same is computed
	a.bailingArgs = bailingArgs{UseShared: true, Groups: 1, TopGroups: 4, Scale: 1, Score: "softmax"}
	cfg.into(&a)
	if hd := a.HeadDim; hd != 0 && a.Heads > 0 && hd != a.D/a.Heads {
		return nil, fmt.Errorf("head_dim %d is no share of hidden_size %d", hd, a.D)
	}
	if a.Rotary = 0; a.Group <= 0 {
		return nil, fmt.Errorf("layer_group_size %d is missing or out of range", a.Group)
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	inner := a.Heads * a.HeadDim
	if a.NormGroups <= 0 || inner%a.NormGroups != 0 {
		return nil, fmt.Errorf("group_norm_size %d does not divide %d columns", a.NormGroups, inner)
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 1})
	router := B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm && a.TopK > 1, Scale: float32(a.Scale)}
	if a.Score == "sigmoid" {
		router.Score, router.Groups, router.TopGroups = B.Sigmoid, a.Groups, a.TopGroups
	}
	slopes := alibiSlopes(a.Heads)
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		if (i+1)%a.Group == 0 || i >= a.Layers/a.Group*a.Group {
			return a.layer(b, i, rope, router)
		}
		l := &lightning{QKV: nn.Lin(a.D, inner, inner, inner), Gate: nn.Lin(a.D, inner), O: nn.Lin(inner, a.D), rope: rope,
			Norm: nn.RMSNorm{N: inner, Spec: B.Norm{Eps: float32(a.Eps), Width: inner / a.NormGroups}}, scale: float32(1 / math.Sqrt(float64(a.HeadDim))),
			spec: B.SSM{State: b.Recurrent(i, a.Heads, a.HeadDim, a.HeadDim), Heads: a.Heads, Groups: a.Heads, KDim: a.HeadDim, VDim: a.HeadDim}}
		l.QKV.Fused, l.QKV.Bias, l.O.Bias = true, a.QKVBias, a.Bias
		if a.QKNorm {
			l.QNorm, l.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		}
		for _, s := range slopes { // later layers forget less
			l.spec.Slopes = append(l.spec.Slopes, float32(s*(1-float64(max(0, i-1))/float64(max(1, a.Layers-1))+1e-5)))
		}
		full := a.mlp(b, i, router)
		full.Recur = l
		return full
	})
	m.family = bailingLinearNames
	m.Head.Tied = a.ownTie()
	return m, nil
}

// alibiSlopes are the slopes that ALiBi has for n heads: a geometric series where n is a power of two; other n take
// what they lack from the series of twice as many heads.
func alibiSlopes(n int) []float64 {
	powers := func(n int) (s []float64) {
		for i := range n {
			s = append(s, math.Pow(2, -math.Pow(2, -(math.Log2(float64(n))-3))*float64(i+1)))
		}
		return s
	}
	p := 1
	for 2*p <= n {
		p *= 2
	}
	s := powers(p)
	for i, v := range powers(2 * p) {
		if i%2 == 0 && len(s) < n {
			s = append(s, v)
		}
	}
	return s
}
