package openai

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// completionReply is what both encoders know about text completions.
type completionReply struct {
	reply
	per  int // choices generated for a prompt
	keep int // of those, sent
	top  int // alternatives per token
}

type textCompletion struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	Model       string       `json:"model"`
	Fingerprint string       `json:"system_fingerprint"`
	Choices     []textChoice `json:"choices"`
	Usage       *usage       `json:"usage,omitempty"`
}

type textChoice struct {
	Index        int           `json:"index"`
	Text         string        `json:"text"`
	Logprobs     *textLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

// textLogprobs has one entry per token in each list. The first token of an echoed prompt has no logprob.
type textLogprobs struct {
	Tokens  []string             `json:"tokens"`
	Token   []*float64           `json:"token_logprobs"`
	Top     []map[string]float64 `json:"top_logprobs"` // the token itself, and as many alternatives as are asked for
	Offsets []int                `json:"text_offset"`  // of tokens, in characters from the beginning of the choice's text
}

func (c *completionReply) body() textCompletion {
	return textCompletion{ID: c.id, Object: "text_completion", Created: c.created, Model: c.model, Fingerprint: c.fingerprint, Choices: []textChoice{}}
}

func newTextLogprobs() *textLogprobs {
	return &textLogprobs{Tokens: []string{}, Token: []*float64{}, Top: []map[string]float64{}, Offsets: []int{}}
}

// add appends tokens, the first of which begins at the character at; it returns where the next would.
func (l *textLogprobs) add(in []chat.Logprob, top int, at int) int {
	for i := range in {
		t := &in[i]
		name := tokenText(t)
		l.Tokens = append(l.Tokens, name)
		l.Offsets = append(l.Offsets, at)
		at += t.Runes
		if math.IsNaN(t.Logprob) {
			l.Token, l.Top = append(l.Token, nil), append(l.Top, nil)
			continue
		}
		p := finite(t.Logprob)
		l.Token = append(l.Token, &p)
		alt := map[string]float64{name: p} // always among them, if not among the likeliest
		if top > 0 {
			for j := range t.Top {
				alt[tokenText(&t.Top[j])] = finite(t.Top[j].Logprob)
			}
		}
		l.Top = append(l.Top, alt)
	}
	return at
}

// tokenText is a token as OpenAI spells it here: bytes that are not text by themselves in hexadecimal.
func tokenText(t *chat.Logprob) string {
	if len(t.Bytes) == 0 { // it begins the prompt's tokens and is not in its text
		return t.Token
	}
	if utf8.Valid(t.Bytes) {
		return string(t.Bytes)
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, c := range t.Bytes {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}

// completionCollector collects text completions.
type completionCollector struct {
	completionReply
	parts []textState
}

// textState is what is known of one choice so far.
type textState struct {
	text     strings.Builder
	logprobs []chat.Logprob
	echoed   int // of those, of the prompt
	finish   chat.Finish
}

func newCompletionCollector(r completionReply) *completionCollector {
	return &completionCollector{completionReply: r, parts: make([]textState, r.choices)}
}

func (f *completionCollector) Event(e *chat.Event) {
	switch e.Kind {
	case chat.EventStart:
		f.count(e.Usage)
		for i := range f.per {
			p := &f.parts[e.Choice+i]
			p.text.WriteString(e.Text)
			p.logprobs, p.echoed = slices.Clone(e.Logprobs), len(e.Logprobs)
		}
	case chat.EventText, chat.EventReasoning:
		p := &f.parts[e.Choice]
		p.text.WriteString(e.Text)
		p.logprobs = append(p.logprobs, e.Logprobs...)
	case chat.EventFinish:
		f.count(e.Usage)
		f.parts[e.Choice].finish = e.Finish
	}
}

func (f *completionCollector) Body() any {
	out := f.body()
	out.Usage = f.usageBody()
	for group := range slices.Chunk(f.parts, f.per) {
		if f.keep < f.per {
			group = slices.Clone(group)
			slices.SortStableFunc(group, func(a, b textState) int { return cmp.Compare(b.mean(), a.mean()) })
		}
		for i := range group[:f.keep] {
			p := &group[i]
			reason := finishReason(p.finish)
			c := textChoice{Index: len(out.Choices), Text: p.text.String(), FinishReason: &reason}
			if f.logprobs {
				l := newTextLogprobs()
				l.add(p.logprobs, f.top, 0)
				c.Logprobs = l
			}
			out.Choices = append(out.Choices, c)
		}
	}
	return out
}

// mean is the mean logprob of the generated tokens, by which the best choices are found.
func (p *textState) mean() float64 {
	own := p.logprobs[p.echoed:]
	if len(own) == 0 {
		return math.Inf(-1)
	}
	sum := 0.0
	for i := range own {
		sum += own[i].Logprob
	}
	return sum / float64(len(own))
}

// completionStream writes text completions as chunks: text as it comes, a finish reason per choice, the usage if it was
// asked for, and [DONE] whatever happened.
type completionStream struct {
	completionReply
	out          *wire.Stream
	includeUsage bool
	offsets      []int // per choice, characters sent so far
	short        short
}

// textUsageChunk is a chunk of a stream that was asked for usage: null but in the last.
type textUsageChunk struct {
	textCompletion
	Usage *usage `json:"usage"`
}

func newCompletionStream(out *wire.Stream, r completionReply, includeUsage bool) *completionStream {
	return &completionStream{completionReply: r, out: out, includeUsage: includeUsage, offsets: make([]int, r.choices)}
}

func (s *completionStream) Event(e *chat.Event) {
	switch e.Kind {
	case chat.EventStart:
		s.count(e.Usage)
		if e.Text != "" {
			for i := range s.per {
				s.send(e.Choice+i, e.Text, e.Logprobs, "")
			}
		}
	case chat.EventText, chat.EventReasoning:
		s.send(e.Choice, e.Text, e.Logprobs, "")
	case chat.EventFinish:
		s.count(e.Usage)
		s.send(e.Choice, "", e.Logprobs, finishReason(e.Finish))
	}
}

func (s *completionStream) send(index int, text string, lps []chat.Logprob, finish string) {
	if finish == "" && (!s.logprobs || len(lps) == 0) {
		s.fragment(index, text)
		return
	}
	c := textChoice{Index: index, Text: text}
	if s.logprobs && len(lps) > 0 {
		l := newTextLogprobs()
		s.offsets[index] = l.add(lps, s.top, s.offsets[index])
		c.Logprobs = l
	}
	if finish != "" {
		c.FinishReason = &finish
	}
	body := s.body()
	body.Choices = append(body.Choices, c)
	if s.includeUsage {
		s.out.Event("", wire.Marshal(textUsageChunk{textCompletion: body}))
		return
	}
	s.out.Event("", wire.Marshal(body))
}

// Done ends the stream.
func (s *completionStream) Done(e *chat.Error) {
	switch {
	case e != nil:
		s.out.Event("", wire.Marshal(errorBody{NewErrorDetail(e)}))
	case s.includeUsage:
		s.out.Event("", wire.Marshal(textUsageChunk{s.body(), s.usageBody()}))
	}
	s.out.Event("", []byte("[DONE]"))
}
