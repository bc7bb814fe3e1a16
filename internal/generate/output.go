package generate

import (
	"slices"
	"strings"

	"hearth/internal/dialect"
	"hearth/internal/tokenizer"
)

// output is what is known of a model's own words: the form of its reasoning and calls, and what ends a reply.
type output struct {
	tok      *tokenizer.Tokenizer
	family   *dialect.Family
	stopIDs  []int32  // the tokens that end a reply
	stops    []string // texts of those
	endTexts []string // that end one where no token does, see turnEnds
}

func newOutput(cfg *Config, family *dialect.Family, p *prober) output {
	o := output{tok: cfg.Tokenizer, family: family}
	var ends []End
	ends, o.endTexts = turnEnds(cfg, family, p)
	for _, e := range ends {
		o.stopIDs = append(o.stopIDs, e.ID)
		if e.Token != "" {
			o.stops = append(o.stops, e.Token)
		}
	}
	return o
}

// visible tells whether a token is part of the text: special tokens are not, except those that mark reasoning and calls.
func (o *output) visible(id int32) bool {
	if !o.tok.Special(id) {
		return true
	}
	name, _ := o.tok.Token(id)
	return slices.Contains(o.family.Markers, name)
}

// insideReasoning tells whether the model goes on in a reasoning block. Only what follows the last special token
// counts, which is the template's own: a user can write tags but not special tokens.
func (o *output) insideReasoning(tokens []int32) bool {
	if o.family.Open == "" {
		return false
	}
	start := len(tokens)
	for start > 0 {
		id := tokens[start-1]
		if name, _ := o.tok.Token(id); o.tok.Special(id) && !slices.Contains(o.family.Markers, name) {
			break
		}
		start--
	}
	tail := o.tok.Decode(tokens[start:], false)
	return strings.LastIndex(tail, o.family.Open) > strings.LastIndex(tail, o.family.Close)
}
