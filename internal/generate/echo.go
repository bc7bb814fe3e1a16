package generate

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/engine"
)

func (o *output) logprob(t engine.Token) chat.Logprob {
	lp := o.oneLogprob(t.ID, t.Logprob)
	for _, alt := range t.Top {
		lp.Top = append(lp.Top, o.oneLogprob(alt.ID, alt.Logprob))
	}
	return lp
}

func (o *output) oneLogprob(id int32, p float32) chat.Logprob {
	b := o.tok.Bytes(id)
	return chat.Logprob{Token: strings.ToValidUTF8(string(b), "\uFFFD"), ID: id, Bytes: slices.Clone(b), Logprob: float64(p)}
}

// echo is what EventStart says of a raw prompt.
func (o *output) echo(ctx context.Context, e Engine, r *chat.Request, p *prompt) (chat.Event, error) {
	start := chat.Event{Kind: chat.EventStart, Text: p.text}
	if !r.Logprobs {
		return start, nil
	}
	s, ok := e.(scorer)
	if !ok {
		return start, chat.Invalidf("logprobs", "logprobs of an echoed prompt need a model; this server answers from a script")
	}
	scores, err := s.Score(ctx, p.tokens, r.TopLogprobs)
	if err != nil {
		return start, engineError(err)
	}
	for i, id := range p.tokens {
		t := engine.Token{ID: id, Logprob: float32(math.NaN())}
		if i > 0 {
			t.Logprob, t.Top = scores[i-1].Logprob, scores[i-1].Top[:min(r.TopLogprobs, len(scores[i-1].Top))]
		}
		start.Logprobs = append(start.Logprobs, o.logprob(t))
	}
	o.place(start.Logprobs, p)
	return start, nil
}

// place gives each token of a prompt its part of the prompt's text: none to those that only begin a text.
func (o *output) place(lps []chat.Logprob, p *prompt) {
	d, t := o.tok.NewDecoder(false), &tape{}
	for i := range lps {
		lps[i].Runes = utf8.RuneCount(lps[i].Bytes)
		t.add(lps[i], lps[i].Bytes, d.Add(lps[i].ID))
	}
	left := d.Partial() // bytes of a character that the prompt begins
	t.decoded(d.Cut())
	if !strings.HasSuffix(string(t.text), p.text) {
		return // the tokenizer spells it in its own way
	}
	t.drop(len(t.text) - len(p.text))
	left = min(left, len(t.raw))
	at := 0
	for i := range lps {
		l := &lps[i]
		whole := len(l.Bytes)
		l.Bytes, l.Runes = nil, 0
		for ; at < len(t.read) && t.read[at].token == i; at++ {
			if b := &t.read[at]; !b.none {
				l.Bytes = append(l.Bytes, b.raw)
			}
			if t.read[at].text&0xC0 != 0x80 {
				l.Runes++
			}
		}
		for left > 0 && t.raw[len(t.raw)-left].token == i && len(l.Bytes) < whole {
			l.Bytes = append(l.Bytes, t.raw[len(t.raw)-left].raw)
			left--
		}
		if len(l.Bytes) > 0 {
			l.Token = strings.ToValidUTF8(string(l.Bytes), "\uFFFD")
		}
	}
}

// echoed is the reply that generates nothing.
func echoed(start chat.Event, n int) iter.Seq2[chat.Event, error] {
	return func(yield func(chat.Event, error) bool) {
		if !yield(start, nil) {
			return
		}
		for i := range n {
			if !yield(chat.Event{Kind: chat.EventFinish, Choice: i, Finish: chat.FinishLength, Usage: start.Usage}, nil) {
				return
			}
		}
	}
}
