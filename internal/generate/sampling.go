package generate

import (
	"strconv"

	"hearth/internal/chat"
	"hearth/internal/sample"
	"hearth/internal/tokenizer"
)

func ptr[T any](v T) *T { return &v }

// builtin is the sampling of last resort.
var builtin = func() (s chat.Sampling) {
	for _, p := range chat.SamplingParameters {
		if p.Builtin != 0 {
			*p.Field(&s) = &p.Builtin
		}
	}
	return s
}()

// overlay returns top with its unset fields taken from base.
func overlay(top chat.Sampling, base *chat.Sampling) *chat.Sampling {
	for _, p := range chat.SamplingParameters {
		if x := p.Field(&top); *x == nil {
			*x = *p.Field(base)
		}
	}
	if top.Seed == nil {
		top.Seed = base.Seed
	}
	if top.LogitBias == nil {
		top.LogitBias = base.LogitBias
	}
	return &top
}

// params converts to what the sampler takes; unset fields are off.
func params(s *chat.Sampling) (p sample.Params) {
	for _, row := range chat.SamplingParameters {
		if x := *row.Field(s); x != nil {
			p.Set(row.Name, *x)
		}
	}
	if s.Seed != nil {
		p.Seed = *s.Seed
	}
	if len(s.LogitBias) > 0 {
		p.LogitBias = make(map[int32]float32, len(s.LogitBias))
		for id, b := range s.LogitBias {
			p.LogitBias[id] = float32(b)
		}
	}
	return p
}

// checkBias refuses biases of what is no token: of so many there are.
func checkBias(bias map[int32]float64, tokens int) *chat.Error {
	bad := int32(-1)
	for id := range bias {
		if (id < 0 || int(id) >= tokens) && (bad == -1 || id < bad) {
			bad = id
		}
	}
	if bad == -1 {
		return nil
	}
	return chat.Boundf(chat.BoundLogitBias, "logit_bias."+strconv.Itoa(int(bad)), "there is no token %d: the vocabulary has %d", bad, tokens)
}

// xtcSpare are the tokens that XTC must not drop, as in mlx-lm: those that end a line or a turn.
func (o *output) xtcSpare() []int32 {
	return append(o.tok.Encode("\n", tokenizer.EncodeOptions{}), o.stopIDs...)
}
