package generate

import (
	"math/rand/v2"
	"strconv"

	"hearth/internal/chat"
	"hearth/internal/sample"
	"hearth/internal/tokenizer"
)

// params are what the sampler takes of several levels, each of which comes before those in front of it. A seed that none of them
// sets is drawn.
func params(levels ...*chat.Sampling) sample.Params {
	m := chat.Merged(levels...)
	p := sample.Params{Seed: rand.Uint64()}
	for _, row := range chat.SamplingParameters {
		p.Set(row.Name, **row.Field(m))
	}
	if m.Seed != nil {
		p.Seed = *m.Seed
	}
	if len(m.LogitBias) > 0 {
		p.LogitBias = make(map[int32]float32, len(m.LogitBias))
		for id, b := range m.LogitBias {
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
