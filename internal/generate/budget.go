package generate

import (
	"slices"
	"strings"
	"unicode/utf8"

	"hearth/internal/dialect"
	"hearth/internal/tokenizer"
)

// budget ends reasoning that has reached its limit: it has the engine continue with the ids that close the block, as if
// the model had written them. It sees what the reply's parser will see, token by token, and depends on nothing else.
type budget struct {
	g       *Generator
	dec     *tokenizer.Decoder
	parser  dialect.Parser
	pieces  []dialect.Piece
	left    int // tokens of reasoning
	close   []int32
	closing int // of close, those still on their way
}

// newBudget gives the part of a choice's hook that limits reasoning, nil where there is nothing to limit.
func (g *Generator) newBudget(p *prompt) func(int32) []int32 {
	if p.budget <= 0 || g.family.Open == "" {
		return nil
	}
	b := &budget{g: g, dec: g.cfg.Tokenizer.NewDecoder(false), parser: g.family.New(p.options), left: p.budget}
	end, answer := afterReasoning(g.family)
	b.close = g.guard.Plain(end + answer)
	if p.forced != "" {
		b.feed(p.forced)
	}
	return b.next
}

// next takes note of a token and returns what has to follow it.
func (b *budget) next(id int32) []int32 {
	before := b.parser.InReasoning()
	text := b.g.heard(b.dec, id)
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

// heard is the text of a token as far as it concerns the parser, "" for special tokens that are no markup.
func (g *Generator) heard(dec *tokenizer.Decoder, id int32) string {
	if !g.visible(id) {
		return ""
	}
	return dec.Add(id)
}

// visible tells whether a token is part of the text: special tokens are not, except those that mark reasoning and calls.
func (g *Generator) visible(id int32) bool {
	if !g.cfg.Tokenizer.Special(id) {
		return true
	}
	name, _ := g.cfg.Tokenizer.Token(id)
	return slices.Contains(g.family.Markers, name)
}

// afterReasoning is what closes an open block of reasoning, and what then begins the answer where that has a beginning of
// its own.
func afterReasoning(f *dialect.Family) (end, answer string) {
	switch {
	case f.Name == "harmony":
		return f.Close + "<|start|>assistant", "<|channel|>final<|message|>"
	case f.Name == "solar":
		return f.Close + "<|begin|>assistant", "<|content|>"
	case f.Name == "muse":
		return f.Close + "<|start|>assistant", "<|message|>"
	case f.Name == "kimi_k3": // what opens its calls also closes the answer
		return f.Close + "<|open|>response<|sep|>", ""
	case strings.HasPrefix(f.Close, "</"):
		return "\n" + f.Close + "\n\n", ""
	}
	return f.Close, ""
}
