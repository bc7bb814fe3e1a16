package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

// decoder is the transformer that most families are; their files say what differs.
type decoder struct {
	declared
	nested         bool                                // a language model inside another: prefixed names, other parts beside it
	family         *strings.Replacer                   // from the family's tensor names to those of the tags; nil: none
	extra          string                              // prefix of the layers that predict further tokens; "": none
	drop           []string                            // tensors with any of these in their names are left out
	look           func(shape func(name string) []int) // as in inspector; nil: none
	note           func(name string)                   // hears every stored name first; nil: none
	branch, logits float32                             // factors of what attention and MLP add, and of the logits; 0: none
	first          *nn.RMSNorm                         // of the embedding; nil: none
	cap            *B.Activation                       // on logits; nil: none
	Embed          nn.Embedding                        `w:"model.embed_tokens"`
	Layers         []decoderLayer                      `w:"model.layers"`
	Norm           nn.RMSNorm                          `w:"model.norm"`
	Head           nn.Linear                           `w:"lm_head,tied=Embed"`
}

// decoderLayer adds attention, and then an MLP of one of the kinds, to its input. Norms that the architecture lacks
// are nil. post_attention_layernorm is the norm before the MLP in some families, and of attention's result in others.
type decoderLayer struct {
	Attn  *nn.Attention `w:"self_attn"` // or MLA, or a mixer
	MLA   *nn.MLA       `w:"self_attn"`
	Mixer mixer         `w:"mixer"`
	Recur mixer         `w:"self_attn"` // a mixer under attention's name
	MLP   *nn.GLUMLP    `w:"mlp"`
	MoE   *nn.MoE       `w:"mlp"`
	Two   *nn.MLP       `w:"mlp"` // of two products
	Other mixer         `w:"mlp"` // an MLP of a family's own

	InNorm   *nn.RMSNorm `w:"input_layernorm"`
	AttnNorm *nn.RMSNorm `w:"post_attention_layernorm"` // of attention's result
	PostNorm *nn.RMSNorm `w:"post_attention_layernorm"` // before the MLP
	PreNorm  *nn.RMSNorm `w:"pre_feedforward_layernorm"`
	MLPNorm  *nn.RMSNorm `w:"post_feedforward_layernorm"` // of the MLP's result
}

// mixer is what some layers have in place of attention: a recurrence or a convolution over the rows of a sequence.
type mixer interface {
	Forward(o B.Ops, x B.Array) B.Array // [rows, D] to [rows, D], for all rows of the batch
}

// newDecoder declares the parts common to all.
func newDecoder(a *common, b *Build, layer func(i int) decoderLayer) *decoder {
	m := &decoder{Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Norm: *a.norm(), Head: nn.Lin(a.D, a.Vocab)}
	m.Head.Tied = a.tie()
	for i := range a.Layers {
		m.Layers = append(m.Layers, layer(i))
	}
	m.declared = b.declared(a)
	return m
}

// norm declares a norm over whole hidden rows.
func (c *common) norm() *nn.RMSNorm {
	n := nn.RMS(c.D, float32(c.Eps))
	return &n
}

// preNorm is the layer of llama and most others: a norm before attention, one before the MLP.
func preNorm(a *common, b *Build, t nn.Attention) decoderLayer {
	mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), B.SiLU)
	return decoderLayer{Attn: &t, MLP: &mlp, InNorm: a.norm(), PostNorm: a.norm()}
}

// gqa declares the usual attention of layer i with its state. A window of 0 is none; a nil rope turns nothing.
func gqa(b *Build, a *common, i, window int, rope *B.Rope) nn.Attention {
	return gqaOf(b, a, i, a.HeadDim, window, rope)
}

// gqaOf is gqa with values of vdim columns a head.
func gqaOf(b *Build, a *common, i, vdim, window int, rope *B.Rope) nn.Attention {
	h, kv, hd := b.Local(a.Heads), b.LocalKV(a.KVHeads), a.HeadDim
	return nn.Attention{
		QKV: nn.Lin(a.D, h*hd, kv*hd, kv*vdim), O: nn.Lin(h*vdim, a.D), Rope: rope,
		Spec: B.Attn{State: b.KV(i, kv, hd, vdim, window), Heads: h, KVHeads: kv, KDim: hd, VDim: vdim,
			Scale: float32(1 / math.Sqrt(float64(hd))), Window: window},
	}
}

// Inspect implements inspector.
func (m *decoder) Inspect(shape func(name string) []int) {
	if m.look != nil {
		m.look(shape)
	}
	for i := range m.Layers {
		if moe := m.Layers[i].MoE; moe != nil {
			transposedExperts(moe, fmt.Sprintf("model.layers.%d.mlp.switch_mlp.", i), shape)
		}
	}
}

// Forward implements Model.
func (m *decoder) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.first.Forward(o, m.Embed.Tokens(o, b))
	for i := range m.Layers {
		l := &m.Layers[i]
		h = m.add(o, h, l.AttnNorm.Forward(o, l.attention(o, l.InNorm.Forward(o, h))))
		deep := nn.Deep(b, i)
		if i == len(m.Layers)-1 && !deep {
			h = nn.Outputs(o, b, h) // the last MLP only runs for wanted rows
		}
		h = m.add(o, h, l.MLPNorm.Forward(o, l.mlp(o, l.PreNorm.Forward(o, l.PostNorm.Forward(o, h)))))
		if deep {
			h = nn.AddDeep(o, b, h, i)
		}
		o.Sweep(h)
	}
	return m.Norm.Forward(o, nn.Outputs(o, b, h))
}

func (l *decoderLayer) attention(o B.Ops, x B.Array) B.Array {
	switch {
	case l.Mixer != nil:
		return l.Mixer.Forward(o, x)
	case l.Recur != nil:
		return l.Recur.Forward(o, x)
	case l.MLA != nil:
		return l.MLA.Forward(o, x)
	}
	return l.Attn.Forward(o, x)
}

func (l *decoderLayer) mlp(o B.Ops, x B.Array) B.Array {
	switch {
	case l.MoE != nil:
		return l.MoE.Forward(o, x)
	case l.Two != nil:
		return l.Two.Forward(o, x)
	case l.Other != nil:
		return l.Other.Forward(o, x)
	}
	return l.MLP.Forward(o, x)
}

// add is the residual.
func (m *decoder) add(o B.Ops, h, x B.Array) B.Array {
	if m.branch != 0 {
		x = o.Scale(x, m.branch)
	}
	return o.Add(h, x)
}

// Logits implements Generator.
func (m *decoder) Logits(o B.Ops, h B.Array) B.Array {
	y := m.Head.Forward(o, h)
	if m.logits != 0 {
		y = o.Scale(y, m.logits)
	}
	if m.cap != nil {
		y = o.Act(y, m.cap)
	}
	return y
}

// otherParts are the beginnings of names that a model of text, images and sound has beside the language model.
var otherParts = []string{"vision_tower.", "vision_model.", "multi_modal_projector.", "connector.", "audio_tower.", "visual.", "image_newline",
	"image_tower.", "video_tower.", "vision_encoder.", "vision_projection.", "mtp."}

// textName is the name that a tensor of a nested model has alone, "" where it is of another part.
func textName(name string) string {
	for _, p := range []string{"model.language_model.", "model.text_model."} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return "model." + rest
		}
	}
	bare := strings.TrimPrefix(name, "model.")
	for _, p := range otherParts {
		if strings.HasPrefix(bare, p) {
			return ""
		}
	}
	rest, ok := strings.CutPrefix(name, "language_model.")
	for _, p := range []string{"layers.", "embed_tokens.", "norm."} {
		if ok && strings.HasPrefix(rest, p) {
			return "model." + rest
		}
	}
	return rest
}

// Rename drops the rotation tables that old exporters wrote and, in nested models, prefixes and parts of other kinds.
func (m *decoder) Rename(name string) string {
	if m.note != nil {
		m.note(name)
	}
	for _, d := range m.drop {
		if strings.Contains(name, d) {
			return ""
		}
	}
	if m.extra != "" && (strings.HasPrefix(name, m.extra) || m.nested && strings.HasPrefix(textName(name), m.extra)) {
		return ""
	}
	if m.family != nil {
		name = m.family.Replace(name)
	}
	name = fusedExperts(name)
	if strings.HasSuffix(name, "rotary_emb.inv_freq") {
		return ""
	}
	if m.nested {
		name = textName(name)
	}
	return name
}

// Words of layer_types.
const slides, full, linear = "sliding_attention", "full_attention", "linear_attention"

// windows are the keys of models in which some layers see only the last positions.
type windows struct {
	Types  []string `json:"layer_types"`
	Window int      `json:"sliding_window"`
}

// fill says which layers slide where layer_types does not; a config without a window has none.
func (w *windows) fill(layers int, slide func(i int) bool) {
	if len(w.Types) > 0 || w.Window == 0 {
		return
	}
	for i := range min(max(layers, 0), maxLayers) {
		w.Types = append(w.Types, either(slide(i), slides, full))
	}
}

// checkWindows: there is a known word per layer, or none at all, and a window where a layer slides.
func (w *windows) checkWindows(layers int) error {
	if len(w.Types) == 0 {
		return nil
	}
	if err := checkKinds("layer_types", w.Types, layers, full, slides); err != nil {
		return err
	}
	if i := slices.Index(w.Types, slides); i >= 0 && (w.Window <= 0 || w.Window > 1<<30) {
		return fmt.Errorf("layer_types[%d] is sliding, but sliding_window is %d", i, w.Window)
	}
	return nil
}

// checkKinds: a key has one of the known words for every layer.
func checkKinds(key string, kinds []string, layers int, known ...string) error {
	if len(kinds) != layers {
		return fmt.Errorf("%s has %d entries for %d layers", key, len(kinds), layers)
	}
	for i, k := range kinds {
		if !slices.Contains(known, k) {
			return fmt.Errorf("%s[%d] is %s; %s are known", key, i, regular.Quote(k), strings.Join(known, " and "))
		}
	}
	return nil
}

// either is one of two words.
func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// kind is what layer_types says of layer i.
func (w *windows) kind(i int) string {
	if len(w.Types) > 0 {
		return w.Types[i]
	}
	return full
}

// window is that of layer i, 0 if it sees everything.
func (w *windows) window(i int) int {
	if len(w.Types) > 0 && w.Types[i] == slides {
		return w.Window
	}
	return 0
}
