package generate

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/tokenizer"
)

// raw makes a prompt of text or tokens that the model continues as they are: no template renders them, no history puts
// earlier tokens in their place, and nobody looks for calls in what comes.
func (g *Generator) raw(ctx context.Context, r *chat.Request) (*prompt, error) {
	p := &prompt{raw: true, salt: r.Origin.Salt, text: r.Prompt.Text, tokens: r.Prompt.Tokens}
	tok := g.cfg.Tokenizer
	if p.tokens == nil && r.Prompt.Suffix == "" {
		var err error
		if p.tokens, err = tok.EncodeContext(ctx, p.text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true}); err != nil {
			return nil, encodeError(err)
		}
	}
	for i, id := range r.Prompt.Tokens {
		if int(id) >= tok.Size() || id < 0 {
			return nil, chat.Invalidf(fmt.Sprintf("%s[%d]", r.Prompt.Path, i), "there is no token %d: the vocabulary has %d", id, tok.Size())
		}
	}
	if r.Prompt.Suffix != "" {
		return p, g.infill(ctx, p, r.Prompt.Suffix)
	}
	if r.Prompt.Tokens != nil {
		p.text = decodeWhole(tok, p.tokens)
	}
	if len(p.tokens) == 0 {
		return nil, chat.Invalidf(r.Prompt.Path, "must not be empty: the model has no token that begins a text")
	}
	return p, nil
}

// decodeWhole decodes tokens that others may follow: without the beginning of a character at their end.
func decodeWhole(tok *tokenizer.Tokenizer, ids []int32) string {
	var b strings.Builder
	d := tok.NewDecoder(false)
	for _, id := range ids {
		b.WriteString(d.Add(id))
	}
	b.WriteString(d.Cut())
	return b.String()
}

// prime readies a decoder for what follows a prompt, and gives the bytes of a character that the prompt begins.
func (g *Generator) prime(d *tokenizer.Decoder, ids []int32) []byte {
	from := max(0, len(ids)-utf8.UTFMax) // a token is a byte at least
	for from > 0 && len(g.cfg.Tokenizer.Bytes(ids[from])) == 1 {
		from-- // a run of bytes is decoded from its beginning
	}
	var raw []byte
	for _, id := range ids[from:] {
		d.Add(id)
		raw = append(raw, g.cfg.Tokenizer.Bytes(id)...)
	}
	d.Settle()
	return raw[len(raw)-min(d.Partial(), len(raw)):]
}

// scorer is an engine that tells what a model makes of a prompt.
type scorer interface {
	Score(ctx context.Context, tokens []int32, top int) ([]engine.Score, error)
}

// echo is what EventStart says of a raw prompt.
func (g *Generator) echo(ctx context.Context, r *chat.Request, p *prompt) (chat.Event, error) {
	e := chat.Event{Kind: chat.EventStart, Text: p.text}
	if !r.Logprobs {
		return e, nil
	}
	s, ok := g.cfg.Engine.(scorer)
	if !ok {
		return e, chat.Invalidf("logprobs", "logprobs of an echoed prompt need a model; this server answers from a script")
	}
	scores, err := s.Score(ctx, p.tokens, r.TopLogprobs)
	if err != nil {
		return e, g.engineError(err)
	}
	for i, id := range p.tokens {
		t := engine.Token{ID: id, Logprob: float32(math.NaN())}
		if i > 0 {
			t.Logprob, t.Top = scores[i-1].Logprob, scores[i-1].Top[:min(r.TopLogprobs, len(scores[i-1].Top))]
		}
		e.Logprobs = append(e.Logprobs, g.logprob(t))
	}
	g.place(e.Logprobs, p)
	return e, nil
}

// place tells the tokens of a prompt what of its text each is. Those that begin a text and are not in it have nothing there.
func (g *Generator) place(lps []chat.Logprob, p *prompt) {
	d, t := g.cfg.Tokenizer.NewDecoder(false), newTape(nil)
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

// plainParser takes all output for text.
type plainParser struct{}

func (plainParser) Feed(dst []dialect.Piece, output string) []dialect.Piece {
	return append(dst, dialect.Piece{Kind: dialect.Text, Text: output})
}
func (plainParser) Finish(dst []dialect.Piece) []dialect.Piece { return dst }
func (plainParser) Cut()                                       {}
func (plainParser) InReasoning() bool                          { return false }
