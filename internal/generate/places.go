package generate

import (
	"slices"
	"strings"

	"hearth/internal/tokenizer"
	"hearth/internal/vision"
)

// missingTokens names the tokens that a vocabulary has not.
func missingTokens(s *vision.Places, tok *tokenizer.Tokenizer) []string {
	return slices.DeleteFunc(append([]string{s.Mark, s.Soft}, s.Needs...), func(name string) bool { _, ok := tok.ID(name); return ok })
}

// tilePlace is where a tile is among the tokens of a part.
type tilePlace struct {
	tile int
	at   int
	line int // see vision.Piece
}

// partTokens are those of a part of an image, with the places of its tiles.
func partTokens(s *vision.Places, tok *tokenizer.Tokenizer, part []vision.Piece) (ids []int32, tiles []tilePlace) {
	n := 0
	for _, p := range part {
		n += p.Rows + 4
	}
	ids = make([]int32, 0, n)
	soft, _ := tok.ID(s.Soft)
	for _, p := range part {
		if p.Rows == 0 {
			ids = append(ids, textTokens(s, tok, p.Text)...)
			continue
		}
		tiles = append(tiles, tilePlace{tile: p.Tile, at: len(ids), line: p.Line})
		var behind []int32
		if p.Line > 0 {
			behind = textTokens(s, tok, p.Text)
		}
		for i := range p.Rows {
			if ids = append(ids, soft); p.Line > 0 && (i+1)%p.Line == 0 && i+1 < p.Rows {
				ids = append(ids, behind...)
			}
		}
	}
	return ids, tiles
}

// textTokens gives the ids of a text between two tokens of their own.
func textTokens(s *vision.Places, tok *tokenizer.Tokenizer, text string) []int32 {
	if text == "" {
		return nil
	}
	if !strings.HasPrefix(text, "\n") {
		return tok.Encode(text, tokenizer.EncodeOptions{ParseSpecial: true})
	}
	return tok.Encode(s.Soft+text, tokenizer.EncodeOptions{ParseSpecial: true})[1:]
}
