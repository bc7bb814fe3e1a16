package chat

import (
	"math"
	"slices"
)

// Sampling holds what the client set; nil fields fall back to flag, generation_config.json, then the built-in default.
// The numbers are rows of SamplingParameters.
type Sampling struct {
	Temperature, TopP, MinP, TopK                        *float64
	RepetitionPenalty, PresencePenalty, FrequencyPenalty *float64
	// XTC, with a probability per token, drops every token that is likelier than a threshold but the least likely of them.
	XTCProbability, XTCThreshold *float64

	Seed      *uint64
	LogitBias map[int32]float64
}

// SamplingParameter is a row of SamplingParameters.
type SamplingParameter struct {
	Name  string // in requests, generation_config.json and the log; a flag has dashes in it
	Field func(*Sampling) **float64
	Whole bool // a whole number, and less than 0 is 0

	Least, Most float64 // of a request
	Zero        float64 // what a request's 0 means; 0: just that
	Messages    bool    // Anthropic's API has it too; what is out of bounds there is moved into them
	Recommended float64 // generation_config.json may say so much; 0: it is not looked for there
	Builtin     float64 // its value where nobody says; 0: off

	Doc       string   // of its flag, one line; "": it has none
	Also, Env []string // further names of the flag, beside default- and its name, and of its variable
	Unbounded bool     // the flag may say more than a request
}

// SamplingParameters is the table of sampling parameters, in the order in which requests are checked: a client is told of the
// first one that is wrong. Protocols, flags, a model's folder, what merges them, the log and show go by it; package sample has
// the same names.
var SamplingParameters = []*SamplingParameter{
	{Name: "temperature", Field: func(s *Sampling) **float64 { return &s.Temperature }, Most: 2, Messages: true, Recommended: 100, Builtin: 0.7,
		Doc: "randomness; 0 always takes the likeliest token", Also: []string{"temp"}, Env: []string{"MLX_TEMPERATURE"}, Unbounded: true},
	{Name: "top_p", Field: func(s *Sampling) **float64 { return &s.TopP }, Most: 1, Messages: true, Recommended: 1, Builtin: 0.95,
		Doc: "sample from the likeliest tokens that hold this share of the probability", Env: []string{"MLX_TOP_P"}},
	{Name: "min_p", Field: func(s *Sampling) **float64 { return &s.MinP }, Most: 1, Recommended: 1,
		Doc: "drop tokens less likely than this share of the likeliest"},
	{Name: "top_k", Field: func(s *Sampling) **float64 { return &s.TopK }, Whole: true, Least: -1, Most: math.MaxInt32, Messages: true,
		Recommended: 1 << 24, Doc: "sample from this many likeliest tokens; 0 is off"},
	{Name: "repetition_penalty", Field: func(s *Sampling) **float64 { return &s.RepetitionPenalty }, Most: 10, Zero: 1, Recommended: 100,
		Doc: "divide the logits of recent tokens; 1 is off", Unbounded: true},
	{Name: "presence_penalty", Field: func(s *Sampling) **float64 { return &s.PresencePenalty }, Least: -2, Most: 2,
		Doc: "subtract this from the logits of tokens that were generated before"},
	{Name: "frequency_penalty", Field: func(s *Sampling) **float64 { return &s.FrequencyPenalty }, Least: -2, Most: 2,
		Doc: "subtract this from the logits of tokens for every time they were generated before"},
	{Name: "xtc_probability", Field: func(s *Sampling) **float64 { return &s.XTCProbability }, Most: 1},
	{Name: "xtc_threshold", Field: func(s *Sampling) **float64 { return &s.XTCThreshold }, Most: 0.5, Builtin: 0.1},
}

// Merged has every number: that of the last level that sets it, else its built-in value. The seed and the biases are those of the
// last level that has them.
func Merged(levels ...*Sampling) *Sampling {
	m, numbers := &Sampling{}, make([]float64, len(SamplingParameters))
	for i, row := range SamplingParameters {
		numbers[i] = row.Builtin
		for _, s := range levels {
			if set := *row.Field(s); set != nil {
				numbers[i] = *set
			}
		}
		*row.Field(m) = &numbers[i]
	}
	for _, s := range levels {
		if s.Seed != nil {
			m.Seed = s.Seed
		}
		if s.LogitBias != nil {
			m.LogitBias = s.LogitBias
		}
	}
	return m
}

// ListedParameters is the table in the order of flags and their documentation: what both APIs have stands first.
var ListedParameters = starting(func(p *SamplingParameter) bool { return p.Messages })

// WholeLastParameters is the table with whole numbers at the end: the order of the log, and of warnings about a model's folder.
var WholeLastParameters = starting(func(p *SamplingParameter) bool { return !p.Whole })

// starting is the table with some of its rows first.
func starting(first func(*SamplingParameter) bool) []*SamplingParameter {
	rest := slices.DeleteFunc(slices.Clone(SamplingParameters), first)
	all := slices.DeleteFunc(slices.Clone(SamplingParameters), func(p *SamplingParameter) bool { return !first(p) })
	return append(all, rest...)
}
