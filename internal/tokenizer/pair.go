package tokenizer

// PairPiece is one part of what a model reads when it reads two texts side by side: a
// text, 1 or 2, or a token of the tokenizer's own. Type is that of its tokens, which some
// models have a table for.
type PairPiece struct {
	Text int // 0: ID
	ID   int32
	Type int32
}

// Around returns the ids that the post-processor puts before and after those of a text.
// The slices are shared: do not write to them.
func (t *Tokenizer) Around() (before, after []int32) { return t.post.before, t.post.after }

// Pair returns the parts of two texts that are read side by side, nil where the
// tokenizer does not say what they are. The slice is shared: do not write to it.
func (t *Tokenizer) Pair() []PairPiece { return t.pair }

// pair is what the post_processor section makes of two texts; nil if nothing.
func (c *component) pair() []PairPiece {
	switch c.Type {
	case "BertProcessing", "RobertaProcessing":
		if c.Sep == nil || c.Cls == nil {
			return nil
		}
		sep := PairPiece{ID: int32(*c.Sep)}
		pair := []PairPiece{{ID: int32(*c.Cls)}, {Text: 1}, sep}
		if c.Type == "RobertaProcessing" {
			return append(pair, sep, PairPiece{Text: 2}, sep)
		}
		sep.Type = 1
		return append(pair, PairPiece{Text: 2, Type: 1}, sep)
	case "TemplateProcessing":
		return c.pairTemplate()
	case "Sequence":
		for i := range c.Processors {
			if p := c.Processors[i].pair(); p != nil {
				return p
			}
		}
	}
	return nil
}

func (c *component) pairTemplate() []PairPiece {
	var pair []PairPiece
	seen := [3]int{}
	for _, piece := range c.Pairs {
		switch {
		case piece.Sequence != nil:
			text := 1
			if piece.Sequence.ID == "B" {
				text = 2
			}
			seen[text]++
			pair = append(pair, PairPiece{Text: text, Type: piece.Sequence.Type})
		case piece.SpecialToken != nil:
			for _, id := range c.Tokens[piece.SpecialToken.ID].IDs {
				pair = append(pair, PairPiece{ID: id, Type: piece.SpecialToken.Type})
			}
		}
		if len(pair) > maxAround {
			return nil
		}
	}
	if seen != [3]int{0, 1, 1} {
		return nil
	}
	return pair
}
