package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() {
	for _, typ := range []string{"mistral3", "pixtral", "llava"} {
		towers[typ] = newPixtralVision
	}
}

// pixtralVisionArgs are the keys of vision_config.
type pixtralVisionArgs struct {
	Type     string `json:"model_type"`
	D        int    `json:"hidden_size"`
	FFN      int    `json:"intermediate_size"`
	Layers   int    `json:"num_hidden_layers"`
	Heads    int    `json:"num_attention_heads"`
	HeadDim  int    `json:"head_dim"`
	Channels int    `json:"num_channels"`
	Side     int    `json:"patch_size"`
	Act      string `json:"hidden_act"`
	Base     float  `json:"rope_theta"` // older, or
	Rope     struct {
		Theta float `json:"rope_theta"`
	} `json:"rope_parameters"`
}

// pixtralJoinArgs are the keys beside it.
type pixtralJoinArgs struct {
	Merge int             `json:"spatial_merge_size"` // of mistral3
	Layer json.RawMessage `json:"vision_feature_layer"`
	Crop  string          `json:"vision_feature_select_strategy"` // of llava
	Act   string          `json:"projector_hidden_act"`
	Bias  *bool           `json:"multimodal_projector_bias"`
}

// pixtralVision sees as Pixtral does: patches of an image of any shape, whose places turn heads and are not learned, see each
// other. What a layer holds, or some of them side by side, becomes rows; mistral3 makes one of a square of patches before. A line
// of rows ends with a token of text.
type pixtralVision struct {
	args  pixtralVisionArgs
	width int
	merge int
	takes []int // hidden states that become rows: 0 is before the first layer
	act   B.Activation
	rope  *B.Rope

	Patch  nn.Patches           `w:"patch_conv"`
	Norm   nn.RMSNorm           `w:"ln_pre"`
	Layers []pixtralVisionLayer `w:"transformer.layers"`

	OutNorm *nn.RMSNorm `w:"projector.norm"`
	Merger  *nn.Linear  `w:"projector.patch_merger.merging_layer"`
	Up      nn.Linear   `w:"projector.linear_1"`
	Down    nn.Linear   `w:"projector.linear_2"`
}

type pixtralVisionLayer struct {
	Norm1 nn.RMSNorm `w:"attention_norm"`
	QKV   nn.Linear  `w:"attention.q_proj+attention.k_proj+attention.v_proj"`
	O     nn.Linear  `w:"attention.o_proj"`
	Norm2 nn.RMSNorm `w:"ffn_norm"`
	MLP   nn.GLUMLP  `w:"feed_forward"`
	spec  B.Attn
}

func newPixtralVision(cfg *config, width int) (vision, error) {
	a := pixtralVisionArgs{Type: "pixtral", D: 1024, FFN: 4096, Layers: 24, Heads: 16, Channels: 3, Side: 16, Act: "gelu"}
	if cfg.vision(&a); cfg.err == nil && a.Type != "pixtral" {
		return nil, errBlind // llava's tower may be another family's
	}
	mistral := cfg.typ == "mistral3"
	j := pixtralJoinArgs{Merge: 1, Act: "gelu"}
	if mistral {
		j.Merge = 2
	}
	cfg.beside(&j)
	if width == 0 {
		width = pixtralWidths[cfg.typ]
	}
	if err := a.check(cfg); err != nil {
		return nil, err
	}
	takes, err := j.takes(a.Layers, mistral)
	if err != nil {
		return nil, err
	}
	if !mistral {
		j.Merge = 1
	}
	const eps = 1e-5
	head := a.D / a.Heads
	m := &pixtralVision{args: a, width: width, merge: j.Merge, takes: takes, act: B.Activation{Kind: cfg.actNamed("projector_hidden_act", j.Act)},
		rope:  alternating(head, float64(a.Rope.Theta)),
		Patch: nn.Patches{Out: a.D, Window: []int{a.Channels, a.Side, a.Side}}, Norm: nn.RMS(a.D, eps),
		Up: nn.Lin(a.D*len(takes), width), Down: nn.Lin(width, width)}
	m.Up.Bias = !mistral
	if j.Bias != nil {
		m.Up.Bias = *j.Bias
	}
	m.Down.Bias = m.Up.Bias
	if mistral {
		norm, merger := nn.RMS(a.D, float32(textEps(cfg))), nn.Lin(j.Merge*j.Merge*a.D, a.D)
		merger.Square = j.Merge * j.Merge
		m.OutNorm, m.Merger = &norm, &merger
	}
	act := cfg.visionAct(a.Act)
	for range a.Layers {
		m.Layers = append(m.Layers, pixtralVisionLayer{Norm1: nn.RMS(a.D, eps), QKV: nn.Lin(a.D, a.D, a.D, a.D), O: nn.Lin(a.D, a.D),
			Norm2: nn.RMS(a.D, eps), MLP: nn.NewGLUMLP(a.D, a.FFN, act),
			spec: eachOther(a.Heads, head)})
	}
	return m, nil
}

// pixtralWidths are those of language models whose config leaves theirs out.
var pixtralWidths = map[string]int{"mistral3": 5120, "pixtral": 4096, "llava": 4096}

// textEps is that of the language model's norms.
func textEps(cfg *config) float64 {
	text := struct {
		Eps float `json:"rms_norm_eps"`
	}{1e-5}
	cfg.into(&text)
	if !(text.Eps > 0 && text.Eps < 1) {
		cfg.fail(fmt.Errorf("%srms_norm_eps %g is out of range", cfg.at, float64(text.Eps)))
	}
	return float64(text.Eps)
}

// alternating turns half of a head's pairs by the row of a patch, with every other frequency, and half by its column, with those
// between.
func alternating(head int, theta float64) *B.Rope {
	r := &B.Rope{Head: head}
	for axis := range uint8(2) {
		for i := range head / 4 {
			r.InvFreq = append(r.InvFreq, float32(math.Pow(theta, -2*float64(2*i+int(axis))/float64(head))))
			r.Axis = append(r.Axis, axis)
		}
	}
	return r
}

func (a *pixtralVisionArgs) check(cfg *config) error {
	cfg.outOf("hidden_size", a.D, 1, 1<<16)
	cfg.outOf("intermediate_size", a.FFN, 1, maxSize)
	cfg.outOf("num_hidden_layers", a.Layers, 1, maxLayers)
	cfg.outOf("num_attention_heads", a.Heads, 1, 1<<12)
	cfg.outOf("num_channels", a.Channels, 1, 16)
	cfg.outOf("patch_size", a.Side, 1, 256)
	if a.Rope.Theta == 0 {
		a.Rope.Theta = a.Base
	}
	if a.Rope.Theta == 0 {
		a.Rope.Theta = 10000
	}
	switch {
	case cfg.err != nil:
		return cfg.err
	case a.D%a.Heads != 0 || a.D/a.Heads%4 != 0:
		return fmt.Errorf("%s.hidden_size %d is no multiple of four times num_attention_heads %d", visionKey, a.D, a.Heads)
	case a.HeadDim != 0 && a.HeadDim != a.D/a.Heads:
		return fmt.Errorf("%s.head_dim is %d, hidden_size %d and num_attention_heads %d make it %d", visionKey, a.HeadDim, a.D, a.Heads, a.D/a.Heads)
	case !(a.Rope.Theta > 1):
		return fmt.Errorf("%s.rope_parameters.rope_theta %g is out of range", visionKey, float64(a.Rope.Theta))
	}
	return nil
}

// takes are the hidden states that become rows.
func (j *pixtralJoinArgs) takes(layers int, mistral bool) ([]int, error) {
	const key = "vision_feature_layer"
	all := []int{-1}
	if j.Layer == nil && !mistral {
		all[0] = -2 // llava's
	}
	if j.Layer != nil {
		if one := 0; json.Unmarshal(j.Layer, &one) == nil {
			all[0] = one
		} else if err := json.Unmarshal(j.Layer, &all); err != nil {
			return nil, keyed(key, err)
		}
	}
	if len(all) == 0 || len(all) > 1 && mistral || len(all) > layers+1 {
		return nil, fmt.Errorf("%s: %d layers are not supported", key, len(all))
	}
	for i, n := range all {
		if n < 0 {
			all[i] += layers + 1
		}
		if all[i] < 0 || all[i] > layers {
			return nil, fmt.Errorf("%s %d is out of range for %d layers", key, n, layers)
		}
	}
	switch {
	case j.Merge < 1 || j.Merge > 16:
		return nil, fmt.Errorf("spatial_merge_size %d is out of range", j.Merge)
	case j.Crop == "default" && !mistral:
		return nil, errors.New("vision_feature_select_strategy default leaves out the first patch, which is none of its own in this tower: full is supported")
	}
	return all, nil
}

// States implements stateful.
func (m *pixtralVision) States() []B.StateSpec { return nil }

// Rename implements renamer.
func (m *pixtralVision) Rename(name string) string {
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "model."), "multi_modal_projector."); ok {
		return "projector." + rest
	}
	name = strings.TrimPrefix(visionName(name), "vision_model.")
	if strings.HasPrefix(name, "patch_positional_embedding.") {
		return "" // made from the config
	}
	return name
}

func (m *pixtralVision) sizes() (patch, width, deep int) { return product(m.Patch.Window), m.width, 0 }

func (m *pixtralVision) together() bool { return false }

func (m *pixtralVision) fits(grid [3]int) error { return squared(grid, m.merge) }

// rows counts the tokens between lines too.
func (m *pixtralVision) rows(grid [3]int) int {
	return (m.line(grid)+1)*(grid[1]/m.merge) - 1
}

func (m *pixtralVision) line(grid [3]int) int { return grid[2] / m.merge }

func (m *pixtralVision) at(_ [3]int, i int) [3]int32 { return inLine(i) }

func (m *pixtralVision) extent(grid [3]int) int { return m.rows(grid) }

func (m *pixtralVision) batch(grid [3]int) *B.Batch {
	b := frames(grid)
	b.Pos[0], b.Pos[1] = squares(grid, 1)
	return b
}

func (m *pixtralVision) encode(o B.Ops, _ *B.Batch, grid [3]int, patches B.Array) []B.Array {
	h := m.Norm.Forward(o, m.Patch.Forward(o, patches))
	held := make([]B.Array, len(m.Layers)+1)
	keep := func(n int) {
		if slices.Contains(m.takes, n) {
			held[n] = o.Keep(h)
		}
	}
	keep(0)
	for i := range m.Layers {
		l := &m.Layers[i]
		y := l.QKV.Forward(o, l.Norm1.Forward(o, h))
		q, k := o.RoPE(l.QKV.Part(o, y, 0), m.rope), o.RoPE(l.QKV.Part(o, y, 1), m.rope)
		h = o.Add(h, l.O.Forward(o, o.Attention(q, k, l.QKV.Part(o, y, 2), &l.spec)))
		h = o.Add(h, l.MLP.Forward(o, l.Norm2.Forward(o, h)))
		keep(i + 1)
		o.Sweep(h)
	}
	h = held[m.takes[0]]
	for _, n := range m.takes[1:] {
		h = o.Concat(h, held[n])
	}
	if m.Merger != nil {
		h = m.OutNorm.Forward(o, h)
		if m.merge > 1 {
			h = merge(o, h, grid, m.merge)
		}
		h = m.Merger.Forward(o, h)
	}
	return []B.Array{m.Down.Forward(o, o.Act(m.Up.Forward(o, h), &m.act))}
}
