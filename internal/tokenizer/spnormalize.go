package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// spNormalizer is the normalisation of a SentencePiece model. It is a stage and not
// a normalizer because it needs to know where a text begins.
type spNormalizer struct {
	chars  *charsMap
	user   matcher // user-defined pieces, which pass as they are
	dummy  bool    // a space is put before the text
	suffix bool    // or after it
	trim   bool    // spaces at the ends go, runs of them become one
	mark   bool    // spaces become U+2581
}

func (n *spNormalizer) read(msg []byte) error {
	return protoFields(msg, func(f protoField) (err error) {
		switch f.number {
		case 2:
			n.chars, err = newCharsMap(f.data)
		case 3:
			n.dummy = f.value != 0
		case 4:
			n.trim = f.value != 0
		case 5:
			n.mark = f.value != 0
		}
		return err
	})
}

// split normalises s into one word. A text that is all spaces gives none.
func (n *spNormalizer) split(s string, atStart bool, _ *watch, emit func(string)) error {
	whole := n.user.finder(s)
	next := func(s string) (string, int) { return n.next(&whole, s) }
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	for n.trim && s != "" {
		text, size := next(s)
		if text != " " {
			break
		}
		s = s[size:]
	}
	if s == "" {
		return nil
	}
	space := " "
	if n.mark {
		space = spaceMark
	}
	if n.dummy && !n.suffix && atStart {
		b.WriteString(space)
	}
	afterSpace := n.trim
	for s != "" {
		if b.Len() > grown(len(whole.s)) {
			emit(whole.s)
			return errGrown
		}
		text, size := next(s)
		s = s[size:]
		if afterSpace {
			text = strings.TrimLeft(text, " ")
		}
		if text != "" {
			afterSpace = n.trim && strings.HasSuffix(text, " ")
			if n.mark && strings.Contains(text, " ") {
				text = strings.ReplaceAll(text, " ", space)
			}
			b.WriteString(text)
		}
	}
	out := b.String()
	for n.trim && strings.HasSuffix(out, space) {
		out = out[:len(out)-len(space)]
	}
	if n.dummy && n.suffix {
		out += space
	}
	if out != "" {
		emit(out)
	}
	return nil
}

// next returns what the start of s becomes, the rest of the whole text, and the length of that start.
func (n *spNormalizer) next(whole *finder, s string) (text string, size int) {
	if len(n.user.nodes) > 0 && n.user.start[s[0]] {
		if tok, size := whole.longest(len(whole.s) - len(s)); tok != nil {
			return s[:size], size
		}
	}
	if to, size := n.chars.lookup(s, true); size > 0 {
		return string(to), size
	}
	_, size = utf8.DecodeRuneInString(s)
	return s[:size], size
}
