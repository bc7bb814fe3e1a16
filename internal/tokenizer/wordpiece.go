package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// wordPiece is the WordPiece model: from the front of the word the longest token
// each time, where tokens after the first are written with a prefix ("##ing"). A
// word that cannot be cut so, or is too long, is one unk.
type wordPiece struct {
	trie     *trie
	later    int32 // trie node of the prefix; 0: no token has it
	noPrefix bool  // the prefix is empty
	unk      int32
	maxChars int
	cache    wordCache
}

func (m *wordPiece) appendWord(dst []int32, w string, sc *wordScratch) []int32 {
	return m.cache.appendWord(dst, w, sc, (*wordPieces)(m))
}

// wordPieces is wordPiece without the cache.
type wordPieces wordPiece

func (m *wordPieces) appendWord(dst []int32, w string, _ *wordScratch) []int32 {
	if utf8.RuneCountInString(w) > m.maxChars {
		return append(dst, m.unk)
	}
	start := len(dst)
	for at := 0; at < len(w); {
		node := m.later
		if at == 0 {
			node = 0
		} else if node == 0 && !m.noPrefix {
			return append(dst[:start], m.unk)
		}
		id, end := int32(-1), at
		for i := at; i < len(w); i++ {
			if node = m.trie.step(node, w[i]); node == 0 {
				break
			}
			if t := m.trie.ids[node]; t >= 0 {
				id, end = t, i+1
			}
		}
		if id < 0 {
			return append(dst[:start], m.unk)
		}
		dst = append(dst, id)
		at = end
	}
	return dst
}

// newWordPiece makes the model of a vocabulary.
func newWordPiece(v *vocabulary, head *modelHead) (*wordPiece, error) {
	prefix, maxChars := "##", 100
	if head.Prefix != nil {
		prefix = *head.Prefix
	}
	if head.MaxChars != nil {
		maxChars = *head.MaxChars
	}
	unk, err := head.unknown(v, "[UNK]")
	if err != nil {
		return nil, err
	}
	trie, err := newTrie(v, nil)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	m := &wordPiece{trie: trie, noPrefix: prefix == "", unk: unk, maxChars: maxChars, cache: newWordCache()}
	m.later = m.trie.walk(prefix)
	return m, nil
}

// wordLevel is the WordLevel model: a word is a token or unk.
type wordLevel struct {
	index *tokenIndex
	unk   int32
}

func (m *wordLevel) appendWord(dst []int32, w string, _ *wordScratch) []int32 {
	if id, ok := m.index.find(w); ok {
		return append(dst, id)
	}
	return append(dst, m.unk)
}
