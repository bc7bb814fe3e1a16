package generate

import (
	"unicode/utf8"

	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/tokenizer"
)

// constrain sets the engine's hook for a choice, and what its first token must be of: a budget of reasoning, and a reply that is
// held to a form or has calls that are. There is no hook where there is neither, as it keeps the engine from working ahead.
func constrain(p *engine.Prompt, limit func(id int32, held bool) []int32, text *answer) (err error) {
	p.Constrain, p.Draft, p.Mask = nil, nil, nil
	switch {
	case text != nil:
		if p.Mask, err = text.first(); err != nil {
			return err
		}
		p.Draft = text.draft
	case limit == nil:
		return nil
	}
	coming := 0 // forced tokens that are on their way
	p.Constrain = func(id int32) (c engine.Constraint) {
		coming = max(coming-1, 0)
		held := false
		if text != nil {
			if c.Err = text.accept(id); c.Err != nil {
				return c
			}
			held = text.within()
		}
		var closing []int32
		if limit != nil {
			closing = limit(id, held)
		}
		if text != nil && coming+len(closing) == 0 {
			c = text.follow()
		}
		if len(closing) > 0 {
			c.Forced = closing
		}
		coming += len(c.Forced)
		return c
	}
	return nil
}

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
func (m *prompter) newBudget(p *prompt) func(id int32, held bool) []int32 {
	if p.budget <= 0 || m.family.Open == "" {
		return nil
	}
	b := &budget{out: &m.output, dec: m.tok.NewDecoder(false), parser: m.family.New(p.options), left: p.budget}
	end, answer := m.family.LeaveReasoning()
	b.close = m.guard.Plain(end + answer)
	if p.forced != "" {
		b.feed(p.forced)
	}
	return b.next
}

// next takes note of a token and returns what has to follow it. A call that is held goes on to its end.
func (b *budget) next(id int32, held bool) []int32 {
	before := b.parser.InReasoning()
	text := "" // none of special tokens that are no markup
	if b.out.visible(id) {
		text = b.dec.Add(id)
	}
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
	if b.left > 0 || !inside || held || text == "" && b.left > -utf8.UTFMax { // a character may be incomplete
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
