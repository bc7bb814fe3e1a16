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

// encode makes an encoder of a decoder. Where the config says that rows see what follows them too, windows are what
// transformers makes of them: as many positions in all, half of them on either side.
func encode(d *decoder, cfg *config, p *Pooling, e embedder) (*decoderEncoder, error) {
	var k struct {
		Both   bool  `json:"use_bidirectional_attention"`
		Causal *bool `json:"is_causal"`
	}
	if err := cfg.into(&k); err != nil {
		return nil, err
	}
	if k.Both && cfg.at != "" {
		cfg.is("use_bidirectional_attention", "false") // the whole model has a mask of its own, which does not look at the key
	}
	for _, s := range d.states {
		switch s.Kind {
		case B.StateKV:
		case B.StateConv:
			return nil, &LoadError{File: configFile, Problem: fmt.Sprintf("architecture %s cannot embed or rank texts here: its convolutions would have to see the rows ahead", regular.Quote(cfg.typ)),
				Hint: "use a model that embeds by attention alone, such as Qwen/Qwen3-Embedding-0.6B"}
		default:
			return nil, fmt.Errorf("the model cannot embed or rank here: its layers keep more than keys and values")
		}
	}
	m := &decoderEncoder{Decoder: d, dim: d.Embed.Dim, rank: B.PoolLast, over: 1}
	if cfg.typ == "llama_bidirec" {
		if err := m.bidirec(cfg, e); err != nil {
			return nil, err
		}
	}
	d.states = nil
	for i := range d.Layers {
		s := &d.Layers[i].Attn.Spec
		s.State = B.NoState
		if s.Both = e.both || k.Both || k.Causal != nil && !*k.Causal; s.Both && s.Window > 0 {
			s.Window = s.Window/2 + 1
		}
	}
	if !p.yesNo() || p.Kind != Ranks {
		d.Head.Tied = nn.TieAlways // it has no use
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
	if err := cfg.into(&k); err != nil {
		return err
	}
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

// Rename takes names without the prefix that models with a head have, and leaves heads nobody needs out.
func (m *decoderEncoder) Rename(name string) string {
	for _, p := range []string{"layers.", "embed_tokens.", "norm."} {
		if rest, ok := strings.CutPrefix(name, "language_model."); ok && strings.HasPrefix(rest, p) {
			name = rest
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
