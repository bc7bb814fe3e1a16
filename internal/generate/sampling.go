package generate

import (
	"strconv"

	"hearth/internal/chat"
	"hearth/internal/sample"
	"hearth/internal/tokenizer"
)

func ptr[T any](v T) *T { return &v }

// builtin is the sampling of last resort.
var builtin = chat.Sampling{Temperature: ptr(0.7), TopP: ptr(0.95), XTCThreshold: ptr(0.1)}

// overlay returns top with its unset fields taken from base.
func overlay(top, base chat.Sampling) chat.Sampling {
	pick(&top.Temperature, base.Temperature)
	pick(&top.TopP, base.TopP)
	pick(&top.MinP, base.MinP)
	pick(&top.TopK, base.TopK)
	pick(&top.RepetitionPenalty, base.RepetitionPenalty)
	pick(&top.PresencePenalty, base.PresencePenalty)
	pick(&top.FrequencyPenalty, base.FrequencyPenalty)
	pick(&top.XTCProbability, base.XTCProbability)
	pick(&top.XTCThreshold, base.XTCThreshold)
	pick(&top.Seed, base.Seed)
	if top.LogitBias == nil {
		top.LogitBias = base.LogitBias
	}
	return top
}

func pick[T any](p **T, base *T) {
	if *p == nil {
		*p = base
	}
}

// params converts to what the sampler takes; unset fields are off.
func params(s chat.Sampling) sample.Params {
	p := sample.Params{
		Temperature: single(s.Temperature), TopP: single(s.TopP), MinP: single(s.MinP),
		RepetitionPenalty: single(s.RepetitionPenalty), PresencePenalty: single(s.PresencePenalty), FrequencyPenalty: single(s.FrequencyPenalty),
		XTCProbability: single(s.XTCProbability), XTCThreshold: single(s.XTCThreshold),
	}
	if s.TopK != nil {
		p.TopK = max(*s.TopK, 0)
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

func single(f *float64) float32 {
	if f == nil {
		return 0
	}
	return float32(*f)
}
