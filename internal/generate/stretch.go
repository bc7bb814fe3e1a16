package generate

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"hearth/internal/engine"
	"hearth/internal/grammar"
	"hearth/internal/tokenizer"
)

// stretcher finds the tokens of what has to follow in a text that is held to a form: those that the tokenizer gives for the whole
// text, up to the first one that depends on what comes behind.
type stretcher struct {
	tok  *tokenizer.Tokenizer
	lead string // before a text whose first token would be another at the beginning of all
	tail []byte // the end of what was written
}

const (
	longestStretch = 4 * engine.LongestSpan // bytes
	longestTail    = 64                     // bytes, sometimes four times as much; words end before, or have ends that are cut alike
)

// newStretcher begins behind what the prompt has of the text.
func newStretcher(tok *tokenizer.Tokenizer, begun string) stretcher {
	s := stretcher{tok: tok}
	if ids := tok.Encode("{", tokenizer.EncodeOptions{}); len(ids) != 1 || string(tok.Bytes(ids[0])) != "{" {
		s.lead = "\n"
	}
	for rest, marked := []byte(begun), true; marked; {
		s.tail, _, rest, marked = grammar.CutMark(rest)
	}
	s.shorten()
	return s
}

// note takes note of a token.
func (s *stretcher) note(id int32) {
	if s.tok.Special(id) { // nothing joins with it
		s.tail = s.tail[:0]
		return
	}
	s.tail = append(s.tail, s.tok.Bytes(id)...)
	s.shorten()
}

func (s *stretcher) shorten() {
	if len(s.tail) > 4*longestTail {
		s.tail = s.tail[:copy(s.tail, s.tail[len(s.tail)-longestTail:])]
		for len(s.tail) > 0 && !utf8.RuneStart(s.tail[0]) {
			s.tail = s.tail[1:]
		}
	}
}

// next are the tokens that have to follow where a matcher is.
func (s *stretcher) next(m *grammar.Matcher) (ids []int32) {
	forced := m.Forced(nil, longestStretch)
	if len(forced) < 2 { // a mask is cheaper
		return nil
	}
	for tail, rest := s.tail, forced; len(rest) > 0; tail = nil {
		text, mark, after, marked := grammar.CutMark(rest)
		if !marked {
			text = text[:wholeRunes(text)]
			if m.AcceptBytes(forced[:len(forced)-len(rest)+len(text)]) { // else the budget is spent
				more, _ := s.tokens(tail, text, m)
				ids = append(ids, more...)
				m.Rollback(1)
			}
			break
		}
		more, all := s.tokens(tail, text, nil)
		if ids = append(ids, more...); !all || mark < 0 {
			break
		}
		ids, rest = append(ids, mark), after
	}
	return ids[:m.Prefix(ids)]
}

// longestLikely is the bytes of text that has to follow of which a draft is made.
const longestLikely = 64

// likely are tokens of the text that has to follow where a matcher is, which is behind some tokens more: those of it as a whole,
// and where none begins there those of it alone. What comes behind it may change them.
func (s *stretcher) likely(m *grammar.Matcher, behind []int32) (ids []int32) {
	text, mark, _, marked := grammar.CutMark(m.Forced(nil, longestLikely))
	if text = text[:wholeRunes(text)]; len(text) > 0 {
		at := stretcher{tok: s.tok, lead: s.lead, tail: slices.Clone(s.tail)}
		for _, id := range behind {
			at.note(id)
		}
		if ids, _ = at.tokens(at.tail, text, nil); ids == nil {
			ids, _ = at.tokens(nil, text, nil)
		}
	}
	if marked && mark >= 0 {
		ids = append(ids, mark)
	}
	return ids[:m.Prefix(ids)]
}

// wholeRunes is the length of a text without the beginning of a character at its end.
func wholeRunes(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// tokens gives the tokens of a text behind its tail, if one begins there. Where a matcher is at its end they are those that what
// follows leaves as they are, which need not be all.
func (s *stretcher) tokens(tail, text []byte, end *grammar.Matcher) (ids []int32, all bool) {
	if len(text) == 0 {
		return nil, true
	}
	whole := slices.Concat(tail, text)
	ids, ends := s.cut(whole)
	kept := len(ids)
	if end != nil {
		kept = s.settled(end, whole, ids, ends)
	}
	from := slices.Index(ends, len(tail)) + 1
	if kept <= from || from == 0 && (len(tail) > 0 || s.lead != "") {
		return nil, false
	}
	return ids[from:kept], kept == len(ids)
}

// kinds are the characters that expressions cut text by: from each so many are tried.
var kinds = []struct {
	chars string
	most  int
}{{"abcdefghijklmnopqrstuvwxyz", 1}, {"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1}, {"0123456789", 1}, {" ", 1}, {"\n", 1}, {"\"\\<{}[],.:-_(/!#$%&')*+;=>?@^|~`", 4}, {"é東", 1}}

// settled is how many of the tokens of a text are the same whatever follows. Where a token may begin that goes on beyond the text
// is known, and before such a place it is cut as if it ended there. A word that goes on may be cut otherwise besides.
func (s *stretcher) settled(m *grammar.Matcher, text []byte, ids []int32, ends []int) int {
	kept := len(ids)
	keep := func(text []byte) {
		other, _ := s.cut(text)
		for i, id := range ids[:kept] {
			if i == len(other) || other[i] != id {
				kept = i
				return
			}
		}
	}
	for _, p := range m.Joins(nil, text) {
		for p > 0 && !utf8.RuneStart(text[p]) {
			p--
		}
		for kept > 0 && ends[kept-1] > p {
			kept--
		}
		if kept == 0 || ends[kept-1] < p {
			keep(text[:p])
		}
	}
	for _, kind := range kinds {
		n := 0
		for _, c := range kind.chars {
			if next := string(c); n < kind.most && m.AcceptBytes([]byte(next)) {
				m.Rollback(1)
				keep(append(slices.Clip(text), next...))
				n++
			}
		}
	}
	return kept
}

// cut gives the tokens of a text and where in it each ends, none where they do not mean the text.
func (s *stretcher) cut(text []byte) (ids []int32, ends []int) {
	ids, err := s.tok.AppendEncode(nil, s.lead+string(text), tokenizer.EncodeOptions{})
	var said []byte
	for _, id := range ids {
		said = append(said, s.tok.Bytes(id)...)
		ends = append(ends, len(said))
	}
	if err != nil || !bytes.HasSuffix(said, text) {
		return nil, nil
	}
	for i := range ends {
		ends[i] -= len(said) - len(text)
	}
	return ids, ends
}
