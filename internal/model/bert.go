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
	registerEncoder("bert", newBert)
	registerEncoder("xlm-roberta", newXLMRoberta)
}

// encoderAliases are the model types that share another's implementation.
var encoderAliases = map[string]string{
	"roberta":   "xlm-roberta",
	"camembert": "xlm-roberta",
}

type bertArgs struct {
	common
	NormEps   *float  `json:"layer_norm_eps"`
	Types     *int    `json:"type_vocab_size"`
	Pad       *int    `json:"pad_token_id"`
	Positions *string `json:"position_embedding_type"`
}

// bert reads a text in both directions: no state, positions in a table, LayerNorm after every residual.
type bert struct {
	vocab, context, dim int
	offset              int32 // of positions in their table
	roberta             bool
	keep                bool // the pooler is part of the model
	act                 B.Activation

	Words     nn.Embedding  `w:"embeddings.word_embeddings"`
	Positions nn.Embedding  `w:"embeddings.position_embeddings"`
	Types     *nn.Embedding `w:"embeddings.token_type_embeddings"` // nil: there are none
	Norm      nn.LayerNorm  `w:"embeddings.LayerNorm"`
	Layers    []bertLayer   `w:"encoder.layer"`
}

type bertLayer struct {
	QKV      nn.Linear    `w:"attention.self.query+attention.self.key+attention.self.value"`
	O        nn.Linear    `w:"attention.output.dense"`
	AttnNorm nn.LayerNorm `w:"attention.output.LayerNorm"`
	Up       nn.Linear    `w:"intermediate.dense"`
	Down     nn.Linear    `w:"output.dense"`
	OutNorm  nn.LayerNorm `w:"output.LayerNorm"`
	spec     B.Attn
}

func newBert(cfg *config, _ *Build) (encoderBody, error) { return makeBert(cfg, false) }

// newXLMRoberta is bert with positions that begin behind the one of padding, and a classifier of two layers.
func newXLMRoberta(cfg *config, _ *Build) (encoderBody, error) { return makeBert(cfg, true) }

func makeBert(cfg *config, roberta bool) (encoderBody, error) {
	a := read[bertArgs](cfg)
	if err := a.check(); err != nil {
		return nil, err
	}
	cfg.is("is_decoder", "false") // rows of a decoder do not see what follows them
	cfg.is("add_cross_attention", "false")
	cfg.harmless("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
		"output_past") // of the first code, which nothing since reads
	m := &bert{vocab: a.Vocab, context: a.MaxPos, dim: a.D, roberta: roberta, act: B.Activation{Kind: cfg.act("hidden_act", "gelu")},
		Words: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Positions: nn.Embedding{Vocab: a.MaxPos, Dim: a.D}}
	if roberta {
		pad := 1
		if a.Pad != nil {
			pad = *a.Pad
		}
		m.offset = int32(pad) + 1
		if m.context -= pad + 1; pad < 0 || m.context <= 0 {
			return nil, fmt.Errorf("pad_token_id %d leaves no positions of max_position_embeddings %d", pad, a.MaxPos)
		}
	}
	if n := 2; a.Types == nil || *a.Types > 0 {
		if a.Types != nil {
			n = *a.Types
		}
		m.Types = &nn.Embedding{Vocab: n, Dim: a.D}
	}
	eps := float32(*a.NormEps)
	m.Norm = nn.LN(a.D, eps)
	for range a.Layers {
		m.Layers = append(m.Layers, bertLayer{
			QKV: biased(a.D, a.D, a.D, a.D), O: biased(a.D, a.D), AttnNorm: nn.LN(a.D, eps),
			Up: biased(a.D, a.FFN), Down: biased(a.FFN, a.D), OutNorm: nn.LN(a.D, eps),
			spec: eachOther(a.Heads, a.HeadDim),
		})
	}
	return m, nil
}

func biased(in int, outs ...int) nn.Linear {
	l := nn.Lin(in, outs...)
	l.Bias = true
	return l
}

// eachOther is attention of rows that all see each other.
func eachOther(heads, head int) B.Attn {
	return B.Attn{State: B.NoState, Heads: heads, KVHeads: heads, KDim: head, VDim: head, Scale: float32(1 / math.Sqrt(float64(head))), Both: true}
}

// check fills in transformers' defaults.
func (a *bertArgs) check() error {
	if a.NormEps == nil {
		eps := float(1e-12)
		a.NormEps = &eps
	}
	switch {
	case a.Positions != nil && *a.Positions != "absolute":
		return fmt.Errorf("position_embedding_type %s is not supported; absolute is", regular.Quote(*a.Positions))
	case !(*a.NormEps > 0 && *a.NormEps < 1):
		return fmt.Errorf("layer_norm_eps %g is out of range", float64(*a.NormEps))
	case a.MaxPos <= 0 || a.MaxPos > maxSize:
		return fmt.Errorf("max_position_embeddings is missing or out of range")
	case a.Types != nil && (*a.Types < 0 || *a.Types > maxSize):
		return fmt.Errorf("type_vocab_size %d is out of range", *a.Types)
	case a.Pad != nil && (*a.Pad < -1 || *a.Pad > maxSize):
		return fmt.Errorf("pad_token_id %d is out of range", *a.Pad)
	case a.Heads > 0 && a.D%a.Heads != 0:
		return fmt.Errorf("hidden_size %d is no multiple of num_attention_heads %d", a.D, a.Heads)
	}
	a.Eps, a.KVHeads, a.HeadDim = *a.NormEps, 0, 0
	return a.common.check()
}

// Sizes implements encoderBody.
func (m *bert) Sizes() (vocab, context, width int) { return m.vocab, m.context, m.dim }

// States implements Model: there is none.
func (m *bert) States() []B.StateSpec { return nil }

func (m *bert) classifier(labels int) (head, B.PoolKind) {
	m.keep = true
	if m.roberta {
		h := head{Inner: lin(m.dim, m.dim, true), Outer: lin(m.dim, labels, true)}
		h.steps = []step{{layer: h.Inner, act: squash}, {layer: h.Outer}}
		return h, B.PoolFirst
	}
	h := head{Pooler: lin(m.dim, m.dim, true), Classifier: lin(m.dim, labels, true)}
	h.steps = []step{{layer: h.Pooler, act: squash}, {layer: h.Classifier}}
	return h, B.PoolFirst
}

// Forward implements Model. Batch.Types tells two texts apart that are read side by side.
func (m *bert) Forward(o B.Ops, b *B.Batch) B.Array {
	h := o.Add(o.Embed(m.Words.W, B.Index{IDs: b.Tokens}), o.Embed(m.Positions.W, B.Index{IDs: b.Pos[0], Offset: m.offset}))
	if m.Types != nil {
		ids := firstType
		if len(b.Types) > 0 && m.Types.Vocab > 1 {
			ids = b.Types
		}
		h = o.Add(h, o.Embed(m.Types.W, B.Index{IDs: ids}))
	}
	h = m.Norm.Forward(o, h)
	for i := range m.Layers {
		l := &m.Layers[i]
		y := l.QKV.Forward(o, h)
		y = o.Attention(l.QKV.Part(o, y, 0), l.QKV.Part(o, y, 1), l.QKV.Part(o, y, 2), &l.spec)
		if i == len(m.Layers)-1 { // what follows sees one row at a time
			h, y = nn.Outputs(o, b, h), nn.Outputs(o, b, y)
		}
		h = l.AttnNorm.Forward(o, o.Add(h, l.O.Forward(o, y)))
		y = l.Down.Forward(o, o.Act(l.Up.Forward(o, h), &m.act))
		h = l.OutNorm.Forward(o, o.Add(h, y))
		o.Sweep(h)
	}
	return h
}

// firstType is added to every row.
var firstType = []int32{0}

// Rename drops the task's prefix, heads for other tasks, and what old exporters wrote.
func (m *bert) Rename(name string) string {
	for _, p := range []string{"model.", "bert.", "roberta."} {
		name = strings.TrimPrefix(name, p)
	}
	for _, p := range []string{"cls.", "lm_head.", "embeddings.position_ids", "embeddings.token_type_ids"} {
		if strings.HasPrefix(name, p) {
			return ""
		}
	}
	if strings.HasPrefix(name, "pooler.") && (!m.keep || m.roberta) {
		return ""
	}
	if rest, ok := strings.CutSuffix(name, ".gamma"); ok {
		return rest + ".weight"
	}
	if rest, ok := strings.CutSuffix(name, ".beta"); ok {
		return rest + ".bias"
	}
	return name
}
