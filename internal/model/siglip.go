package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

// siglipArgs are the keys of vision_config of a SigLIP.
type siglipArgs struct {
	D        int    `json:"hidden_size"`
	FFN      int    `json:"intermediate_size"`
	Layers   int    `json:"num_hidden_layers"`
	Heads    int    `json:"num_attention_heads"`
	Channels int    `json:"num_channels"`
	Image    int    `json:"image_size"` // along one side, in pixels
	Side     int    `json:"patch_size"`
	Eps      float  `json:"layer_norm_eps"`
	Act      string `json:"hidden_act"`
	Patches  int    `json:"num_patches"` // of SigLIP 2, instead of image_size
}

// siglip is what families with a SigLIP share: patches that see each other, and a norm behind the last layer.
type siglip struct {
	Layers []siglipLayer `w:"encoder.layers"`
	Norm   nn.LayerNorm  `w:"post_layernorm"`
	act    B.Activation
}

type siglipLayer struct {
	Norm1 nn.LayerNorm `w:"layer_norm1"`
	QKV   nn.Linear    `w:"self_attn.q_proj+self_attn.k_proj+self_attn.v_proj"`
	O     nn.Linear    `w:"self_attn.out_proj"`
	Norm2 nn.LayerNorm `w:"layer_norm2"`
	Up    nn.Linear    `w:"mlp.fc1"`
	Down  nn.Linear    `w:"mlp.fc2"`
	spec  B.Attn
}

func (a *siglipArgs) check(cfg *config) error {
	cfg.outOf("hidden_size", a.D, 1, 1<<16)
	cfg.outOf("intermediate_size", a.FFN, 1, maxSize)
	cfg.outOf("num_hidden_layers", a.Layers, 1, maxLayers)
	cfg.outOf("num_attention_heads", a.Heads, 1, 1<<12)
	cfg.outOf("num_channels", a.Channels, 1, 16)
	cfg.outOf("patch_size", a.Side, 1, 256)
	if a.Patches > 0 {
		cfg.outOf("num_patches", a.Patches, 1, 1<<16)
	} else {
		cfg.outOf("image_size", a.Image, a.Side, 1<<13)
	}
	switch {
	case cfg.err != nil:
		return cfg.err
	case a.D%a.Heads != 0:
		return fmt.Errorf("%s.hidden_size %d is no multiple of num_attention_heads %d", visionKey, a.D, a.Heads)
	case !(a.Eps > 0 && a.Eps < 1):
		return fmt.Errorf("%s.layer_norm_eps %g is out of range", visionKey, float64(a.Eps))
	}
	return nil
}

// net declares the layers.
func (a *siglipArgs) net(cfg *config) siglip {
	eps := float32(a.Eps)
	m := siglip{Norm: nn.LN(a.D, eps), act: B.Activation{Kind: cfg.visionAct(a.Act)}}
	for range a.Layers {
		m.Layers = append(m.Layers, siglipLayer{Norm1: nn.LN(a.D, eps), QKV: biased(a.D, a.D, a.D, a.D), O: biased(a.D, a.D),
			Norm2: nn.LN(a.D, eps), Up: biased(a.D, a.FFN), Down: biased(a.FFN, a.D),
			spec: eachOther(a.Heads, a.D/a.Heads)})
	}
	return m
}

func (m *siglip) Forward(o B.Ops, h B.Array) B.Array {
	for i := range m.Layers {
		l := &m.Layers[i]
		y := l.QKV.Forward(o, l.Norm1.Forward(o, h))
		y = o.Attention(l.QKV.Part(o, y, 0), l.QKV.Part(o, y, 1), l.QKV.Part(o, y, 2), &l.spec)
		h = o.Add(h, l.O.Forward(o, y))
		h = o.Add(h, l.Down.Forward(o, o.Act(l.Up.Forward(o, l.Norm2.Forward(o, h)), &m.act)))
		o.Sweep(h)
	}
	return m.Norm.Forward(o, h)
}

// siglipName is the name of a tensor of a SigLIP without prefixes, "" for others. Its head, which makes one row of an image, is
// not part of the models that have it.
func siglipName(name string) string {
	name = strings.TrimPrefix(visionName(name), "vision_model.")
	if strings.HasPrefix(name, "head.") || strings.HasSuffix(name, "position_ids") {
		return ""
	}
	return name
}
