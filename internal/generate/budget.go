package generate

import (
	"unicode/utf8"

	"hearth/internal/dialect"
	"hearth/internal/tokenizer"
)

// budget ends reasoning that has reached its limit: it has the engine continue with the ids that close the block, as if
// the model had written them. It sees what the reply's parser will see, token by token, and depends on nothing else.
type budget struct {
	out     *output
	dec     *tokenizer.Decoder
	parser  dialect.Parser
	pieces  []dialect.Piece
	left    int // tokens of reasoning
	close   []int32
	closing int // of close, those still on their way
}

// newBudget gives the part of a choice's hook that limits reasoning, nil where there is nothing to limit.
func (m *prompter) newBudget(p *prompt) func(int32) []int32 {
	if p.budget <= 0 || m.family.Open == "" {
		return nil
	}
	b := &budget{out: &m.output, dec: m.tok.NewDecoder(false), parser: m.family.New(p.options), left: p.budget}
	end, answer := afterReasoning(m.family)
	b.close = m.guard.Plain(end + answer)
	if p.forced != "" {
		b.feed(p.forced)
	}
	return b.next
}

// next takes note of a token and returns what has to follow it.
func (b *budget) next(id int32) []int32 {
	before := b.parser.InReasoning()
	text := b.out.heard(b.dec, id)
	b.feed(text)
	inside := b.parser.InReasoning()
	switch {
	case b.closing > 0:
		b.closing--
		return nil
	case !before && !inside:
		return nil
	}
	b.left--
	if b.left > 0 || !inside || text == "" && b.left > -utf8.UTFMax { // a character may be incomplete
		return nil
	}
	b.closing = len(b.close)
	return b.close
}

func (b *budget) feed(text string) {
	if text != "" {
		b.pieces = b.parser.Feed(b.pieces[:0], text)
	}
}
