package tokenizer

import (
	"strings"
	"sync"
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
// each position; nearly every walk ends at the first byte. In a text where walks
// are long, see finder.
type matcher struct {
	start [256]bool // bytes some token begins with
	nodes []trieNode
	next  map[trieEdge]int32
	all   []addedPattern
	back  func() *automaton // of all, read from their ends; made when it is first needed
}

// addedPattern is what a token is matched by.
type addedPattern struct {
	text  string
	token *addedToken
}

// finder looks for tokens at places of one text. When its walks together are
// longer than the text by far, it reads the text once from its end, which finds
// the longest token at every place: so its time is linear, whatever the tokens.
type finder struct {
	m     *matcher
	s     string
	steps int
	at    []int32 // by place, the number of the pattern that begins there or -1; nil: not read yet
}

// walkSteps is how many steps of walks a finder does for a byte of text.
const walkSteps = 16

func (m *matcher) finder(s string) finder { return finder{m: m, s: s} }

// longest returns the longest token at place i and its pattern's length.
func (f *finder) longest(i int) (tok *addedToken, n int) {
	if f.at == nil {
		var steps int
		tok, n, steps = f.m.walk(f.s[i:])
		if f.steps += steps; f.steps > walkSteps*len(f.s)+maxAddedBytes {
			f.read()
		}
		return tok, n
	}
	if k := f.at[i]; k >= 0 {
		return f.m.all[k].token, len(f.m.all[k].text)
	}
	return nil, 0
}

func (f *finder) read() {
	b := f.m.back()
	f.at = make([]int32, len(f.s))
	node := int32(0)
	for i := len(f.s) - 1; i >= 0; i-- {
		node = b.step(node, f.s[i])
		f.at[i] = b.ends[node]
	}
}

func (m *matcher) readBack() *automaton {
	b := newAutomaton()
	for k, p := range m.all {
		b.add(len(p.text), func(i int) byte { return p.text[len(p.text)-1-i] }, int32(k))
	}
	b.link()
	return b
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
		m.back = sync.OnceValue(m.readBack)
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
		m.all = append(m.all, addedPattern{pattern, tok})
	}
}

// longest returns the longest token at the start of s and its pattern's length.
func (m *matcher) longest(s string) (tok *addedToken, n int) {
	tok, n, _ = m.walk(s)
	return tok, n
}

// walk is longest; steps is how far it looked.
func (m *matcher) walk(s string) (tok *addedToken, n, steps int) {
	node := int32(0)
	for i := range len(s) {
		to, ok := m.next[trieEdge{node, s[i]}]
		steps++
		if !ok {
			break
		}
		node = to
		if t := m.nodes[node].token; t != nil {
			tok, n = t, i+1
		}
	}
	return tok, n, steps
}

// split calls token for each added token in s and text for the stretches between
// them, in order. With plainSpecial, special tokens are left in the text.
//
// As in the reference, a match that is not used (special in plain text, or inside
// a word) still covers its bytes: no other token is looked for inside it.
func (m *matcher) split(s string, plainSpecial bool, token func(int32), text func(string)) {
	done := 0     // everything before it has been handed out
	spaceEnd := 0 // the end of the white space that a token took last
	f := m.finder(s)
	for i := 0; i < len(s) && len(m.nodes) > 0; {
		if !m.start[s[i]] {
			i++
			continue
		}
		tok, n := f.longest(i)
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
			from := min(done, start) // no further back: all before is handed out
			start = max(done, from+len(strings.TrimRightFunc(s[from:start], unicode.IsSpace)))
		}
		if tok.RStrip {
			if stop < spaceEnd { // inside what one before took
				stop = spaceEnd
			} else {
				stop = len(s) - len(strings.TrimLeftFunc(s[stop:], unicode.IsSpace))
				spaceEnd = stop
			}
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
