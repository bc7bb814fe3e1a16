package generate

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/tokenizer"
)

// raw makes a prompt of text or tokens that the model continues as they are: no template renders them, no history puts
// earlier tokens in their place, and nobody looks for calls in what comes.
func (m *prompter) raw(ctx context.Context, r *chat.Request) (*prompt, error) {
	p := &prompt{raw: true, account: account{salt: r.Origin.Salt}, text: r.Prompt.Text, tokens: r.Prompt.Tokens, stopIDs: m.stopIDs}
	if p.tokens == nil && r.Prompt.Suffix == "" {
		var err error
		if p.tokens, err = m.tok.EncodeContext(ctx, p.text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true}); err != nil {
			return nil, encodeError(err)
		}
	}
	for i, id := range r.Prompt.Tokens {
		if int(id) >= m.tok.Size() || id < 0 {
			return nil, chat.Invalidf(fmt.Sprintf("%s[%d]", r.Prompt.Path, i), "there is no token %d: the vocabulary has %d", id, m.tok.Size())
		}
	}
	if r.Prompt.Suffix != "" {
		return p, m.infill(ctx, p, r.Prompt.Suffix)
	}
	if r.Prompt.Tokens != nil {
		p.text = decodeWhole(m.tok, p.tokens)
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
func (o *output) prime(d *tokenizer.Decoder, ids []int32) []byte {
	from := max(0, len(ids)-utf8.UTFMax) // a token is a byte at least
	for from > 0 && len(o.tok.Bytes(ids[from])) == 1 {
		from-- // a run of bytes is decoded from its beginning
	}
	var raw []byte
	for _, id := range ids[from:] {
		d.Add(id)
		raw = append(raw, o.tok.Bytes(id)...)
	}
	d.Settle()
	return raw[len(raw)-min(d.Partial(), len(raw)):]
}

// plainParser takes all output for text.
type plainParser struct{}

func (plainParser) Feed(dst []dialect.Piece, output string) []dialect.Piece {
	return append(dst, dialect.Piece{Kind: dialect.Text, Text: output})
}
func (plainParser) Finish(dst []dialect.Piece) []dialect.Piece { return dst }
func (plainParser) Cut()                                       {}
func (plainParser) InReasoning() bool                          { return false }
