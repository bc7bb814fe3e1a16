package parser

import "strings"

// Evidence is what a family is chosen by. Names of models are not evidence: they go stale and misroute fine-tunes.
type Evidence struct {
	Template string                  // the chat template's text
	HasToken func(token string) bool // whether the vocabulary has a token of its own for this text; may be nil
}

func (e Evidence) mentions(all ...string) bool {
	for _, s := range all {
		if !strings.Contains(e.Template, s) {
			return false
		}
	}
	return true
}

func (e Evidence) token(all ...string) bool {
	for _, s := range all {
		if e.HasToken == nil || !e.HasToken(s) {
			return false
		}
	}
	return true
}

// families in the order they are tried: the more special markup first, because templates quote each other's.
var families = []*Family{hermes, thinkOnly}

// Choose returns the family that the evidence points to, first by the template, then by the vocabulary. Without
// evidence the output is plain text.
func Choose(e Evidence) *Family {
	for _, f := range families {
		if f.matches(Evidence{Template: e.Template}) {
			return f
		}
	}
	for _, f := range families {
		if f.matches(Evidence{HasToken: e.HasToken}) {
			return f
		}
	}
	return plain
}

// plain is output without markup.
var plain = &Family{
	Name: "plain",
	New:  func(o Options) Parser { return newTagged(tags{}, o) },
}

// thinkOnly is output with reasoning in <think> tags and no known form of tool calls.
var thinkOnly = &Family{
	Name: "think", Open: thinkOpen, Close: thinkClose,
	Markers: []string{thinkOpen, thinkClose},
	New:     func(o Options) Parser { return newTagged(tags{open: thinkOpen, close: thinkClose}, o) },
	matches: func(e Evidence) bool { return e.mentions(thinkClose) || e.token(thinkOpen, thinkClose) },
}

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)
