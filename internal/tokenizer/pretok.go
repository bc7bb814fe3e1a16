package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stage is one pre-tokenizer: it cuts s, never empty, into pieces and calls emit
// for each in order. atStart tells that nothing precedes s in the text. What takes more
// than a scan of s tells on.
type stage interface {
	split(s string, atStart bool, on *watch, emit func(string)) error
}

// stages flattens the pre_tokenizer section.
func (c *component) stages() ([]stage, error) {
	one := func(s stage) ([]stage, error) { return []stage{s}, nil }
	switch c.Type {
	case "":
		return nil, nil
	case "ByteLevel":
		// Absent fields have the reference's defaults.
		return one(byteLevel{
			prefixSpace: c.PrefixSpace == nil || *c.PrefixSpace,
			words:       c.UseRegex == nil || *c.UseRegex,
		})
	case "BertPreTokenizer":
		return []stage{runeSplit{unicode.IsSpace, removed}, runeSplit{isPunct, isolated}}, nil
	case "Punctuation":
		how, err := c.behavior("Punctuation")
		return []stage{runeSplit{isPunct, how}}, err
	case "WhitespaceSplit":
		return one(runeSplit{unicode.IsSpace, removed})
	case "Whitespace":
		return one(wordsAndSigns{})
	case "CharDelimiterSplit":
		r, n := utf8.DecodeRuneInString(c.Delimiter)
		if n == 0 || n != len(c.Delimiter) {
			return nil, fmt.Errorf("pre_tokenizer: CharDelimiterSplit delimiter %s is not one character", quoted(c.Delimiter))
		}
		return one(runeSplit{func(x rune) bool { return x == r }, removed})
	case "Digits":
		if c.EachDigit {
			return one(runeSplit{unicode.IsNumber, isolated})
		}
		return one(runeSplit{unicode.IsNumber, contiguous})
	case "FixedLength":
		n := 5
		if c.Length != nil {
			n = *c.Length
		}
		if n <= 0 {
			return nil, fmt.Errorf("pre_tokenizer: FixedLength of %d", n)
		}
		return one(fixedLength(n))
	case "Metaspace":
		m, err := c.metaspace("pre_tokenizer")
		return []stage{m}, err
	case "Split":
		s, err := c.splitStage()
		return []stage{s}, err
	case "Sequence":
		return c.sequence()
	}
	return nil, unsupported("pre_tokenizer", c.Type)
}

func (c *component) sequence() (all []stage, err error) {
	for i := range c.Pretokenizers {
		s, err := c.Pretokenizers[i].stages()
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	if len(all) > maxSteps {
		return nil, unsupported("pre_tokenizer", fmt.Sprintf("a Sequence of %d", len(all)))
	}
	return all, nil
}

// metaspace reads Metaspace, which is a pre-tokenizer and a decoder.
func (c *component) metaspace(section string) (metaspace, error) {
	m := metaspace{mark: c.Replacement, words: c.CutWords == nil || *c.CutWords}
	if utf8.RuneCountInString(m.mark) != 1 {
		return m, fmt.Errorf("%s: Metaspace replacement %s is not one character", section, quoted(m.mark))
	}
	switch c.Scheme {
	case "always":
		m.always = true
	case "first":
		m.first = true
	case "never":
	case "": // files from before there were schemes
		m.always = c.PrefixSpace == nil || *c.PrefixSpace
	default:
		return m, unsupported(section, "Metaspace with prepend_scheme "+quoted(c.Scheme))
	}
	return m, nil
}

// byteLevel is the ByteLevel pre-tokenizer. When it is the last one, its rewriting
// of bytes to printable runes is left to the model, which looks bytes up directly.
type byteLevel struct {
	prefixSpace bool
	words       bool // cut by GPT-2's expression
	rewrite     bool
}

func (b byteLevel) split(s string, atStart bool, on *watch, emit func(string)) error {
	if b.prefixSpace && s[0] != ' ' {
		s = " " + s
	}
	if b.rewrite {
		last := emit
		emit = func(w string) { last(string(appendByteRunes(nil, w))) }
	}
	if b.words {
		return scanStage(scanGPT2).split(s, atStart, on, emit)
	}
	emit(s)
	return nil
}

// scanStage is a Split by a known expression; every piece is kept.
type scanStage scanFunc

func (f scanStage) split(s string, _ bool, _ *watch, emit func(string)) error {
	for i := 0; i < len(s); {
		j := f(s, i)
		emit(s[i:j])
		i = j
	}
	return nil
}

// runeSplit cuts at runes of a kind, one of isolated, removed, contiguous and the
// two merging behaviours.
type runeSplit struct {
	is  func(rune) bool
	how behavior
}

func (p runeSplit) split(s string, _ bool, _ *watch, emit func(string)) error {
	from := 0
	cut := func(to int) {
		if to > from {
			emit(s[from:to])
			from = to
		}
	}
	was := false // whether the rune before was of the kind
	for i, r := range s {
		is := p.is(r)
		end := i + utf8.RuneLen(r)
		switch {
		case p.how == contiguous:
			if is != was {
				cut(i)
			}
		case p.how == mergedWithPrevious && is && !was:
			cut(end)
		case is && p.how == removed:
			cut(i)
			from = end
		case is:
			cut(i)
			if p.how != mergedWithNext {
				cut(end)
			}
		}
		was = is
	}
	cut(len(s))
	return nil
}

// isPunct is ASCII punctuation and the reference's Unicode punctuation.
func isPunct(r rune) bool {
	if r < utf8.RuneSelf {
		return isASCIIPunct(byte(r))
	}
	return oldPunct.has(r)
}

// wordsAndSigns is the Whitespace pre-tokenizer: `\w+|[^\w\s]+`.
type wordsAndSigns struct{}

func (wordsAndSigns) split(s string, _ bool, _ *watch, emit func(string)) error {
	const space, word, sign = 0, 1, 2
	from, was := 0, space
	for i, r := range s {
		kind := sign
		if isWord(r) {
			kind = word
		} else if unicode.IsSpace(r) {
			kind = space
		}
		if kind != was {
			if was != space {
				emit(s[from:i])
			}
			from, was = i, kind
		}
	}
	if was != space {
		emit(s[from:])
	}
	return nil
}

// fixedLength cuts every so many runes.
type fixedLength int

func (n fixedLength) split(s string, _ bool, _ *watch, emit func(string)) error {
	from, count := 0, 0
	for i := range s {
		if count == int(n) {
			emit(s[from:i])
			from, count = i, 0
		}
		count++
	}
	emit(s[from:])
	return nil
}

// metaspace is the Metaspace pre-tokenizer: spaces become a mark, one is put before
// the text, and with words the text is cut before each.
type metaspace struct {
	mark          string
	always, first bool // where a mark is put before the text: everywhere, at its start
	words         bool
}

func (m metaspace) split(s string, atStart bool, _ *watch, emit func(string)) error {
	s = strings.ReplaceAll(s, " ", m.mark)
	if (m.always || m.first && atStart) && !strings.HasPrefix(s, m.mark) {
		s = m.mark + s
	}
	for m.words {
		// A mark at the very start opens the first word.
		i := strings.Index(s[1:], m.mark)
		if i < 0 {
			break
		}
		emit(s[:i+1])
		s = s[i+1:]
	}
	emit(s)
	return nil
}
