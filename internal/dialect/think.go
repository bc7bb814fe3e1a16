package dialect

import "strings"

// thinkOnly is output with reasoning in <think> tags and no known form of tool calls.
var thinkOnly = tagFamily(&Family{
	Name: "think", Names: none, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls:   noCalls,
	matches: func(e Evidence) bool { return e.mentions(thinkClose) || e.token(thinkOpen, thinkClose) },
}, &syntax{})

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkTags are the form of reasoning that most families have.
var thinkTags = &Think{Open: thinkOpen, Close: thinkClose, Leave: "\n" + thinkClose + "\n\n", at: beforeAnswer, ReasoningNames: []string{
	"think", "qwen3", "qwen", "deepseek_r1", "deepseek_v3", "deepseek", "glm4", "glm45", "glm47", "glm", "minimax", "minimax_m2", "kimi", "kimi_k2",
	"nemotron", "nemotron_v3", "granite", "step3", "step3p5", "poolside_v1", "holo2", "ernie45", "olmo3", "smollm3"}}

// Inline is reasoning in tags at the beginning of a text, as clients send it back that have no field for it.
type Inline struct {
	Reasoning, Text string // what the tags enclose and what follows them
	Open            bool   // nothing closes it
	Own             bool   // the tags are the family's
}

// Inline takes apart a text that begins with reasoning in the family's tags or in those that most families have; false if it does
// not, or if the family has no reasoning.
func (f *Family) Inline(text string) (k Inline, ok bool) {
	if f.Open == "" {
		return k, false
	}
	const breaks = "\r\n"
	text = strings.TrimLeft(text, blanks)
	for _, t := range []*Think{f.Think, thinkTags} {
		rest, ok := strings.CutPrefix(text, strings.TrimLeft(t.Open, " "))
		if !ok {
			continue
		}
		var closed bool
		k.Own = t.Open == f.Open
		k.Reasoning, k.Text, closed = strings.Cut(strings.TrimPrefix(rest, t.at.label), t.Close)
		k.Reasoning = strings.TrimLeft(k.Reasoning, breaks)
		if k.Open = !closed; k.Open {
			return k, true
		}
		k.Reasoning, k.Text = strings.TrimRight(k.Reasoning, breaks), strings.TrimLeft(k.Text, breaks)
		if k.Own && len(f.Resume) > 0 {
			k.Text = strings.TrimPrefix(k.Text, strings.Join(f.Resume[:min(len(f.Resume), 2)], ""))
		}
		return k, true
	}
	return k, false
}

const blanks = " \t\r\n"

// Opened tells whether a text ends in the family's opening tag of reasoning.
func (f *Family) Opened(text string) bool {
	_, ok := f.unopened(text)
	return ok
}

func (f *Family) unopened(text string) (string, bool) {
	return strings.CutSuffix(strings.TrimRight(text, blanks), strings.TrimLeft(f.Open, " ")+f.at.label)
}

// Unopen is a text without what it ends in: the family's opening tag of reasoning, a block with nothing in it, or the
// closing tag.
func (f *Family) Unopen(text string) string {
	if before, ok := f.unopened(text); ok {
		return before
	}
	before, ok := strings.CutSuffix(strings.TrimRight(text, blanks), f.Close)
	if !ok {
		return text
	}
	if opened, ok := f.unopened(before); ok {
		return opened
	}
	return before
}
