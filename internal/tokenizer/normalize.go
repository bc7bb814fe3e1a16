package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// normalizer is the list of rewritings applied to text between added tokens.
type normalizer []func(string) string

// apply rewrites s. It gives s as it is, and an error, if that makes it longer by
// far than any real file does.
func (n normalizer) apply(s string) (string, error) {
	out := s
	for _, f := range n {
		if out = f(out); len(out) > grown(len(s)) {
			return s, errGrown
		}
	}
	return out, nil
}

// grown is what a text of n bytes may become: the longest that one is known to
// grow is 33 bytes for the three of U+FDFA.
func grown(n int) int { return 16*n + 4*maxMapped }

var errGrown = fmt.Errorf("the normalizer makes the text more than %d times as long", grown(1)-grown(0))

const (
	// Bounds on what a hostile file can make of a short text, besides grown: steps
	// of a section, and how many times longer one Replace or Prepend makes it, in
	// bytes. Real files turn a space into U+2581 and a quotation mark into two.
	maxSteps       = 16
	maxReplacement = 8
	maxGrowing     = 4 // steps that can make the text longer
)

// normalizers flattens the normalizer section.
func (c *component) normalizers() (normalizer, error) {
	growing := 0
	return c.flatten(&growing)
}

func (c *component) flatten(growing *int) (normalizer, error) {
	switch c.Type {
	case "":
		return nil, nil
	case "NFC":
		return normalizer{canonical.composed}, nil
	case "NFD":
		return normalizer{canonical.decomposed}, nil
	case "NFKC":
		return normalizer{compatible.composed}, nil
	case "NFKD":
		return normalizer{compatible.decomposed}, nil
	case "Lowercase":
		return normalizer{lowercase}, nil
	case "Strip":
		return normalizer{c.strip}, nil
	case "StripAccents":
		return normalizer{stripAccents}, nil
	case "Nmt":
		return normalizer{nmt}, nil
	case "BertNormalizer":
		return c.bert(), nil
	case "Precompiled":
		m, err := newCharsMap(c.Charsmap)
		if err != nil {
			return nil, fmt.Errorf("normalizer: Precompiled: %w", err)
		}
		return normalizer{m.rewriteGraphemes}, nil
	case "ByteLevel":
		return normalizer{func(s string) string { return string(appendByteRunes(nil, s)) }}, nil
	case "Prepend":
		*growing++
		if len(c.Prepend) > maxReplacement {
			return nil, unsupported("normalizer", "Prepend of "+quoted(c.Prepend))
		}
		return normalizer{prepend(c.Prepend)}, nil
	case "Replace":
		if len(c.Content) > 1 {
			*growing++
		}
		f, err := c.replacer("normalizer")
		return normalizer{f}, err
	case "Sequence":
		var all normalizer
		for i := range c.Normalizers {
			n, err := c.Normalizers[i].flatten(growing)
			if err != nil {
				return nil, err
			}
			if all = append(all, n...); len(all) > maxSteps || *growing > maxGrowing {
				return nil, unsupported("normalizer", fmt.Sprintf("a Sequence of more than %d steps, or than %d that lengthen the text,", maxSteps, maxGrowing))
			}
		}
		return all, nil
	}
	return nil, unsupported("normalizer", c.Type)
}

// replacer is Replace, as a normalizer or decoder.
func (c *component) replacer(section string) (func(string) string, error) {
	if len(c.Content) > maxReplacement {
		return nil, unsupported(section, "Replace by "+quoted(c.Content))
	}
	to := c.Content
	switch {
	case c.Pattern.String != nil && *c.Pattern.String != "":
		from := *c.Pattern.String
		return func(s string) string { return strings.ReplaceAll(s, from, to) }, nil
	case c.Pattern.Regex == nil || *c.Pattern.Regex == "":
		return nil, fmt.Errorf("%s: Replace without a pattern", section)
	}
	find, err := newRegexFinder(*c.Pattern.Regex)
	if err != nil {
		return nil, fmt.Errorf("%s: Replace expression %s: %w", section, quoted(*c.Pattern.Regex), err)
	}
	return func(s string) string {
		var b strings.Builder
		at := 0
		// When the expression gives up, the rest of the text stays as it is.
		_ = find(s, nil, func(from, end int) {
			b.WriteString(s[at:from])
			b.WriteString(to)
			at = end
		})
		if b.Len() == 0 && at == 0 {
			return s
		}
		b.WriteString(s[at:])
		return b.String()
	}, nil
}

// prepend is the Prepend normaliser: empty text stays empty.
func prepend(prefix string) func(string) string {
	return func(s string) string {
		if s == "" {
			return s
		}
		return prefix + s
	}
}

// strip is the Strip normaliser.
func (c *component) strip(s string) string {
	if c.StripLeft {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
	}
	if c.StripRight {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
	}
	return s
}

// lowercase maps rune by rune, so that a final sigma is an ordinary one.
func lowercase(s string) string {
	return strings.Map(unicode.ToLower, strings.ReplaceAll(s, "İ", "i\u0307"))
}

func stripAccents(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x300 && oldMarks.has(r) {
			return -1
		}
		return r
	}, s)
}

// nmt removes control characters and makes other separators spaces.
func nmt(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 1 && r <= 8, r == 0x0B, r >= 0x0E && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
			return -1
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200B && r <= 0x200F,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == utf8.RuneError:
			return ' '
		}
		return r
	}, s)
}

// bert is the BertNormalizer, a sequence of four steps that can each be off.
func (c *component) bert() (n normalizer) {
	lower := c.Lowercase == nil || *c.Lowercase
	if c.CleanText == nil || *c.CleanText {
		n = append(n, cleanText)
	}
	if c.Chinese == nil || *c.Chinese {
		n = append(n, spaceHan)
	}
	if c.StripAccent == nil && lower || c.StripAccent != nil && *c.StripAccent {
		n = append(n, func(s string) string {
			return strings.Map(func(r rune) rune {
				if r >= 0x300 && oldNonspacing.has(r) {
					return -1
				}
				return r
			}, canonical.decomposed(s))
		})
	}
	if lower {
		n = append(n, lowercase)
	}
	return n
}

// cleanText removes control characters and makes white space spaces.
func cleanText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r >= ' ' && r < 0x7F:
			return r
		case r == utf8.RuneError || oldControl.has(r):
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, s)
}

// hanRanges are what BertNormalizer takes for Chinese characters.
var hanRanges = [][2]rune{
	{0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
	{0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF}, {0x2F800, 0x2FA1F},
}

func isHan(r rune) bool {
	return r >= 0x3400 && slices.ContainsFunc(hanRanges, func(x [2]rune) bool { return r >= x[0] && r <= x[1] })
}

// spaceHan puts spaces around Chinese characters.
func spaceHan(s string) string {
	if strings.IndexFunc(s, isHan) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isHan(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
