package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

// decoderEncoder is a decoder that reads whole texts without keeping anything of them.
type decoderEncoder struct {
	Decoder *decoder `w:""`
	dim     int
	tokens  []int32 // whose logits are wanted, not the hidden row; nil: none

	rank B.PoolKind // what a head that ranks reads
	over float32    // a score is divided by it
}

// encode makes an encoder of a decoder. Where rows also see what follows them, a window has as many positions in all,
// half of them on either side, as in transformers.
func encode(d *decoder, cfg *config, p *Pooling, e embedder) (*decoderEncoder, error) {
	var k struct {
		Both   bool  `json:"use_bidirectional_attention"`
		Causal *bool `json:"is_causal"`
	}
	cfg.into(&k)
	if k.Both && cfg.at != "" {
		cfg.is("use_bidirectional_attention", "false") // the whole model has a mask of its own, which does not look at the key
	}
	for _, s := range d.states {
		if s.Kind != B.StateKV && s.Kind != B.StateConv {
			return nil, &LoadError{File: configFile, Problem: fmt.Sprintf("architecture %s cannot embed or rank texts here: its layers keep latents or recurrent states", regular.Quote(cfg.typ)),
				Hint: "use a model of attention and short convolutions, such as Qwen/Qwen3-Embedding-0.6B or LiquidAI/LFM2.5-Embedding-350M"}
		}
	}
	m := &decoderEncoder{Decoder: d, dim: d.Embed.Dim, rank: B.PoolLast, over: 1}
	if cfg.typ == "llama_bidirec" {
		if err := m.bidirec(cfg, e); err != nil {
			return nil, err
		}
	}
	d.states = nil
	both := e.both || k.Both || k.Causal != nil && !*k.Causal
	if !both && p.Kind == Embeds && p.Rows == B.PoolFirst {
		return nil, &LoadError{File: configFile, Problem: fmt.Sprintf("the pooling is that of the first token, which sees no other in a causal %s: all texts would be alike", regular.Quote(cfg.typ)),
			Hint: "fetch the files again as they were published: what says that rows see ahead is lost"}
	}
	for i := range d.Layers {
		l := &d.Layers[i]
		if c, ok := l.Mixer.(*nn.ShortConv); ok {
			c.Conv.Forget(!both)
			continue
		}
		if l.Attn == nil {
			return nil, fmt.Errorf("the model cannot embed or rank here: layer %d has no attention of the usual kind", i)
		}
		s := &l.Attn.Spec
		s.State = B.NoState
		if s.Both = both; both && s.Window > 0 {
			s.Window = s.Window/2 + 1
		}
	}
	if !p.yesNo() || p.Kind != Ranks {
		d.Head.Tied = nn.TieAlways // no logits are wanted
		return m, nil
	}
	if n := int32(d.vocab); p.Yes < 0 || p.No < 0 || p.Yes >= n || p.No >= n {
		return nil, fmt.Errorf("tokens %d and %d are outside the vocabulary of %d", p.Yes, p.No, n)
	}
	m.tokens = []int32{p.Yes, p.No}
	return m, nil
}

// bidirec reads the keys of llama_bidirec, whose head reads the same rows as its vectors.
func (m *decoderEncoder) bidirec(cfg *config, e embedder) error {
	k := struct {
		Over float `json:"temperature"`
	}{1}
	cfg.into(&k)
	if !(k.Over > 0 && k.Over < 1e6) {
		return fmt.Errorf("temperature %g is out of range", float64(k.Over))
	}
	m.over = float32(k.Over)
	var err error
	m.rank, err = cfg.poolingOf(e.rows)
	return err
}

// Sizes implements encoderBody.
func (m *decoderEncoder) Sizes() (vocab, context, width int) {
	return m.Decoder.vocab, m.Decoder.context, m.dim
}

// States implements Model: there is none.
func (m *decoderEncoder) States() []B.StateSpec { return nil }

func (m *decoderEncoder) classifier(labels int) (head, B.PoolKind) {
	h := head{Score: lin(m.dim, labels, false)}
	h.steps = []step{{layer: h.Score, scale: 1 / m.over}}
	return h, m.rank
}

// Forward implements Model.
func (m *decoderEncoder) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Decoder.Forward(o, b)
	if m.tokens == nil {
		return h
	}
	y := m.Decoder.Logits(o, h)
	return o.Concat(o.Cols(y, int(m.tokens[0]), int(m.tokens[0])+1), o.Cols(y, int(m.tokens[1]), int(m.tokens[1])+1))
}

// Rename also takes names without the prefix that models with a head have, and drops a head that is not needed.
func (m *decoderEncoder) Rename(name string) string {
	for _, p := range []string{"layers.", "embed_tokens.", "norm.", "embedding_norm."} {
		for _, around := range []string{"language_model.", "lfm2."} {
			if rest, ok := strings.CutPrefix(name, around); ok && strings.HasPrefix(rest, p) {
				name = rest
			}
		}
		if strings.HasPrefix(name, p) {
			name = "model." + name
		}
	}
	if m.tokens == nil && strings.HasPrefix(name, "lm_head.") {
		return ""
	}
	return m.Decoder.Rename(name)
}
