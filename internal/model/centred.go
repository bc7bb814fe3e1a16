package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

// centred is the decoder of families whose norms are LayerNorms. In a parallel one attention and MLP both read a norm
// of a layer's input, the same one or each its own, and both are added to it.
type centred struct {
	declared
	nested    bool                                // as in decoder
	family    *strings.Replacer                   // as in decoder
	drop      []string                            // ends of names of tensors that are left out
	root      []string                            // prefixes of names, each replaced by "model."; nil: none
	look      func(shape func(name string) []int) // as in inspector; nil: none
	logits    float32                             // factor; 0: none
	Positions *nn.Embedding                       `w:"model.positions"` // added to the embedding; nil: none
	Embed     nn.Embedding                        `w:"model.embed_tokens"`
	Layers    []centredLayer                      `w:"model.layers"`
	Norm      nn.LayerNorm                        `w:"model.norm"`
	Head      nn.Linear                           `w:"lm_head,tied=Embed"`
}

// centredLayer has one of the two kinds of MLP.
type centredLayer struct {
	Attn nn.Attention `w:"self_attn"`
	GLU  *nn.GLUMLP   `w:"mlp"`
	MLP  *nn.MLP      `w:"mlp"`

	InNorm   nn.LayerNorm  `w:"input_layernorm"`
	PostNorm *nn.LayerNorm `w:"post_attention_layernorm"` // nil: parallel

	beside bool // PostNorm reads the layer's input, not what attention has added to
}

// centredArgs are the keys of these families beside the common ones; they have more than one name for the norms' epsilon.
type centredArgs struct {
	common
	LNEps float `json:"layer_norm_eps"`
}

// check is common's; eps is what the family calls layer_norm_eps.
func (a *centredArgs) check(eps float) error { return a.checkEps("layer_norm_eps", eps) }

// checkEps is check for families that have another key.
func (a *centredArgs) checkEps(key string, eps float) error {
	a.Eps = cmp.Or(eps, 1e-5)
	if err := checkEps(key, a.Eps); err != nil {
		return err
	}
	return a.common.check()
}

// checkShare refuses a head_dim that is not hidden_size over the number of heads. Attention of these families ignores
// the key, but transformers sizes their rotation by it.
func (a *centredArgs) checkShare() error {
	if a.HeadDim != 0 && a.HeadDim*a.Heads != a.D {
		return fmt.Errorf("head_dim is %d, but %d heads share hidden_size %d", a.HeadDim, a.Heads, a.D)
	}
	return nil
}

// newCentred declares the parts common to all; like has the settings that all norms of the family share.
func newCentred(a *common, b *Build, like nn.LayerNorm, layer func(i int, l *centredLayer)) *centred {
	norm := nn.LN(a.D, float32(a.Eps))
	norm.NoBias, norm.Plus1 = like.NoBias, like.Plus1
	m := &centred{Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Norm: norm, Head: nn.Lin(a.D, a.Vocab)}
	m.Head.Tied = a.tie()
	for i := range a.Layers {
		after := norm
		l := centredLayer{InNorm: norm, PostNorm: &after}
		layer(i, &l)
		m.Layers = append(m.Layers, l)
	}
	m.declared = b.declared(a)
	return m
}

// within limits positions to a table of n rows: those beyond it read the last one.
func within(pos []int32, n int) []int32 {
	if len(pos) == 0 || int(slices.Max(pos)) < n {
		return pos
	}
	pos = slices.Clone(pos)
	for i, p := range pos {
		pos[i] = min(p, int32(n-1))
	}
	return pos
}

// Inspect implements inspector.
func (m *centred) Inspect(shape func(name string) []int) {
	if m.look != nil {
		m.look(shape)
	}
}

// Forward implements Model.
func (m *centred) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Embed.Tokens(o, b)
	if m.Positions != nil {
		h = o.Add(h, o.Embed(m.Positions.W, B.Index{IDs: within(b.Pos[0], m.Positions.Vocab)}))
	}
	for i := range m.Layers {
		l := &m.Layers[i]
		x, in := l.InNorm.Forward(o, h), h
		h = o.Add(h, l.Attn.Forward(o, x))
		switch {
		case l.PostNorm != nil && l.beside:
			x = in
		case l.PostNorm != nil:
			x = h
		}
		if i == len(m.Layers)-1 { // the last MLP only runs for wanted rows
			h, x = nn.Outputs(o, b, h), nn.Outputs(o, b, x)
		}
		if l.PostNorm != nil {
			x = l.PostNorm.Forward(o, x)
		}
		if l.GLU != nil {
			h = o.Add(h, l.GLU.Forward(o, x))
		} else {
			h = o.Add(h, l.MLP.Forward(o, x))
		}
		o.Sweep(h)
	}
	return m.Norm.Forward(o, h)
}

// Logits implements Generator.
func (m *centred) Logits(o B.Ops, h B.Array) B.Array {
	y := m.Head.Forward(o, h)
	if m.logits != 0 {
		y = o.Scale(y, m.logits)
	}
	return y
}

// Rename implements renamer.
func (m *centred) Rename(name string) string {
	if m.nested {
		name = textName(name)
	}
	for _, end := range append(m.drop, "rotary_emb.inv_freq") {
		if strings.HasSuffix(name, end) {
			return ""
		}
	}
	if m.root != nil && !strings.HasPrefix(name, "lm_head") {
		for _, r := range m.root {
			if rest, ok := strings.CutPrefix(name, r); ok {
				name = rest
				break
			}
		}
		name = "model." + name
	}
	if m.family != nil {
		name = m.family.Replace(name)
	}
	return name
}
