package tokenizer

import (
	"bytes"
	"maps"
	"strings"
	"unicode/utf8"
)

const spaceMark = "▁" // stands for a space in SentencePiece-style vocabularies

// seam says where a text may be cut before a spaceMark without changing its ids:
// after every character but those that some merge puts before a mark. Such models
// make one word of the whole text; cut up, its pieces fit the word cache and the
// short merge.
type seam struct {
	cuts   bool // some cut is possible
	opaque bool // some merge has a part that is not the characters it stands for
	glued  map[rune]bool
}

// merge notes a merge of the model.
func (s *seam) merge(left, right []byte) {
	if bytes.HasPrefix(right, []byte(spaceMark)) {
		before, _ := utf8.DecodeLastRune(left)
		if s.glued == nil {
			s.glued = map[rune]bool{}
		}
		s.glued[before] = true
	}
	s.opaque = s.opaque || left[0] == '<' && isOpaque(left) || right[0] == '<' && isOpaque(right)
}

// join adds what another part of the merges has noted.
func (s *seam) join(o *seam) {
	s.opaque = s.opaque || o.opaque
	if s.glued == nil {
		s.glued = o.glued
		return
	}
	maps.Copy(s.glued, o.glued)
}

// isOpaque reports whether a token is not text: a byte, or any in angle brackets,
// which could be unk.
func isOpaque(token []byte) bool { return len(token) > 2 && token[len(token)-1] == '>' }

// enable allows cuts for a model that they suit, after all merges have been noted.
func (s *seam) enable(m *bpe) {
	_, marked := m.index.find(spaceMark)
	s.cuts = marked && !s.opaque && !m.byteLevel && !m.ignoreMerges && m.prefix == "" && m.suffix == ""
}

// next returns the length of the first piece of w, 0 when there is no cut in it.
func (s *seam) next(w string) int {
	for at := 1; at < len(w); {
		i := strings.Index(w[at:], spaceMark)
		if i < 0 {
			return 0
		}
		at += i
		if before, _ := utf8.DecodeLastRuneInString(w[:at]); before != '▁' && !s.glued[before] {
			return at
		}
		at += len(spaceMark)
	}
	return 0
}
