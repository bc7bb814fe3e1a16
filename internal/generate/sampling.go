package generate

import (
	"math/rand/v2"
	"strconv"

	"hearth/internal/chat"
	"hearth/internal/sample"
	"hearth/internal/tokenizer"
)

// params are what the sampler takes of several levels, each of which comes before those in front of it. What none of them sets
// has its built-in value, or is off; the seed is then drawn.
func params(levels ...*chat.Sampling) sample.Params {
	p := sample.Params{Seed: rand.Uint64()}
	for _, row := range chat.SamplingParameters {
		x := row.Builtin
		for _, s := range levels {
			if set := *row.Field(s); set != nil {
				x = *set
			}
		}
		p.Set(row.Name, x)
	}
	var bias map[int32]float64
	for _, s := range levels {
		if s.Seed != nil {
			p.Seed = *s.Seed
		}
		if s.LogitBias != nil {
			bias = s.LogitBias
		}
	}
	if len(bias) > 0 {
		p.LogitBias = make(map[int32]float32, len(bias))
		for id, b := range bias {
			p.LogitBias[id] = float32(b)
		}
	}
	return p
}

// checkBias refuses biases of ids that a vocabulary of so many tokens does not have.
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
