package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token matched in the text itself, before the model sees it.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // not next to a word character
	LStrip     bool   `json:"lstrip"`      // takes white space on its left
	RStrip     bool   `json:"rstrip"`      // and on its right
	Normalized bool   `json:"normalized"`  // matched after normalisation
	Special    bool   `json:"special"`
}

// addedTokens is the set of them: raw holds those matched in the text as given,
// normalized those matched in normalised text.
type addedTokens struct {
	ids             map[string]int32
	raw, normalized matcher
}

// matcher finds added tokens leftmost, then longest. It walks a byte trie from
// each position, so its time is linear in the text with the longest token
// (at most maxAddedBytes) as the bound of the constant; in practice nearly every
// walk ends at the first byte.
type matcher struct {
	start [256]bool // bytes some token begins with
	nodes []trieNode
	next  map[trieEdge]int32
}

type trieNode struct {
	token *addedToken // nil when no token ends here
}

type trieEdge struct {
	node int32
	b    byte
}

// add registers tok under the pattern text it is matched by. A pattern that is
// there already keeps its first token.
func (m *matcher) add(pattern string, tok *addedToken) {
	if pattern == "" {
		return
	}
	if m.next == nil {
		m.next = map[trieEdge]int32{}
		m.nodes = make([]trieNode, 1)
	}
	m.start[pattern[0]] = true
	node := int32(0)
	for i := range len(pattern) {
		edge := trieEdge{node, pattern[i]}
		to, ok := m.next[edge]
		if !ok {
			to = int32(len(m.nodes))
			m.nodes = append(m.nodes, trieNode{})
			m.next[edge] = to
		}
		node = to
	}
	if m.nodes[node].token == nil {
		m.nodes[node].token = tok
	}
}

// longest returns the longest token at the start of s and its pattern's length.
func (m *matcher) longest(s string) (tok *addedToken, n int) {
	node := int32(0)
	for i := range len(s) {
		to, ok := m.next[trieEdge{node, s[i]}]
		if !ok {
			break
		}
		node = to
		if t := m.nodes[node].token; t != nil {
			tok, n = t, i+1
		}
	}
	return tok, n
}

// split calls token for each added token in s and text for the stretches between
// them, in order. With plainSpecial, special tokens are left in the text.
//
// As in the reference, a match that is not used (special in plain text, or inside
// a word) still covers its bytes: no other token is looked for inside it.
func (m *matcher) split(s string, plainSpecial bool, token func(int32), text func(string)) {
	done := 0 // everything before it has been handed out
	for i := 0; i < len(s) && len(m.nodes) > 0; {
		if !m.start[s[i]] {
			i++
			continue
		}
		tok, n := m.longest(s[i:])
		if tok == nil {
			i++
			continue
		}
		start, stop := i, i+n
		i = stop
		if plainSpecial && tok.Special {
			continue
		}
		if tok.SingleWord && (endsInWord(s[:start]) || startsWithWord(s[stop:])) {
			continue
		}
		if tok.LStrip {
			start = max(done, len(strings.TrimRightFunc(s[:start], unicode.IsSpace)))
		}
		if tok.RStrip {
			stop = len(s) - len(strings.TrimLeftFunc(s[stop:], unicode.IsSpace))
		}
		if done < start {
			text(s[done:start])
		}
		token(tok.ID)
		done = stop
	}
	if done < len(s) {
		text(s[done:])
	}
}

func endsInWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func startsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}

// isWord is \w of Unicode's annex 18: alphabetic, mark, decimal digit, connector
// punctuation or join control.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nl, unicode.Other_Alphabetic, unicode.Nd, unicode.Pc, unicode.Join_Control)
}
