package regex

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"hearth/internal/grammar"
)

// class is characters that have an escape, as \d, and those that have the capital one.
type class struct{ in, out []grammar.RuneRange }

func newClass(in ...grammar.RuneRange) class {
	return class{grammar.Ranges(in...), grammar.OtherRanges(in...)}
}

// The classes of ECMA-262.
var (
	digits      = newClass(grammar.RuneRange{Lo: '0', Hi: '9'})
	words       = newClass(posix["word"]...)
	spaces      = newClass(append(ranges(unicode.Zs), grammar.RuneRange{Lo: '\t', Hi: '\r'}, grammar.RuneRange{Lo: 0x2028, Hi: 0x2029}, grammar.RuneRange{Lo: 0xFEFF, Hi: 0xFEFF})...)
	asciiSpaces = newClass(posix["space"]...)
	lineEnds    = []grammar.RuneRange{{Lo: '\n', Hi: '\n'}, {Lo: '\r', Hi: '\r'}, {Lo: 0x2028, Hi: 0x2029}}
	lineFeed    = []grammar.RuneRange{{Lo: '\n', Hi: '\n'}}
)

// python are the classes of Python's re.
var python = sync.OnceValue(func() (c struct{ digits, words, spaces class }) {
	c.digits = newClass(ranges(unicode.Nd)...)
	c.words = newClass(append(append(ranges(unicode.L), ranges(unicode.N)...), grammar.RuneRange{Lo: '_', Hi: '_'})...)
	c.spaces = newClass(append(ranges(unicode.Z), grammar.RuneRange{Lo: '\t', Hi: '\r'}, grammar.RuneRange{Lo: 0x1c, Hi: 0x1f},
		grammar.RuneRange{Lo: 0x85, Hi: 0x85})...)
	return c
})

// posix are the classes that have names within classes, which are of ASCII.
var posix = map[string][]grammar.RuneRange{
	"alnum": {{Lo: '0', Hi: '9'}, {Lo: 'A', Hi: 'Z'}, {Lo: 'a', Hi: 'z'}}, "alpha": {{Lo: 'A', Hi: 'Z'}, {Lo: 'a', Hi: 'z'}},
	"ascii": {{Lo: 0, Hi: 0x7f}}, "blank": {{Lo: '\t', Hi: '\t'}, {Lo: ' ', Hi: ' '}}, "cntrl": {{Lo: 0, Hi: 0x1f}, {Lo: 0x7f, Hi: 0x7f}},
	"digit": {{Lo: '0', Hi: '9'}}, "graph": {{Lo: '!', Hi: '~'}}, "lower": {{Lo: 'a', Hi: 'z'}}, "print": {{Lo: ' ', Hi: '~'}},
	"punct": {{Lo: '!', Hi: '/'}, {Lo: ':', Hi: '@'}, {Lo: '[', Hi: '`'}, {Lo: '{', Hi: '~'}}, "space": {{Lo: '\t', Hi: '\r'}, {Lo: ' ', Hi: ' '}},
	"upper": {{Lo: 'A', Hi: 'Z'}}, "word": {{Lo: '0', Hi: '9'}, {Lo: 'A', Hi: 'Z'}, {Lo: '_', Hi: '_'}, {Lo: 'a', Hi: 'z'}}, "xdigit": {{Lo: '0', Hi: '9'}, {Lo: 'A', Hi: 'F'}, {Lo: 'a', Hi: 'f'}},
}

func ranges(t *unicode.RangeTable) (out []grammar.RuneRange) {
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, grammar.RuneRange{Lo: lo, Hi: hi})
			return
		}
		for c := lo; c <= hi; c += stride {
			out = append(out, grammar.RuneRange{Lo: c, Hi: c})
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return out
}

// categories are the long names of Unicode's general categories.
var categories = map[string]string{
	"Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm", "Other_Letter": "Lo",
	"Mark": "M", "Combining_Mark": "M", "Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc", "Enclosing_Mark": "Me",
	"Number": "N", "Decimal_Number": "Nd", "digit": "Nd", "Letter_Number": "Nl", "Other_Number": "No",
	"Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps", "Close_Punctuation": "Pe",
	"Initial_Punctuation": "Pi", "Final_Punctuation": "Pf", "Other_Punctuation": "Po",
	"Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Other_Symbol": "So",
	"Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp",
	"Other": "C", "Control": "Cc", "cntrl": "Cc", "Format": "Cf", "Surrogate": "Cs", "Private_Use": "Co",
}

// properties keeps the characters of those that were asked for, of which Unicode has some hundreds.
var properties sync.Map // of propertyName to []grammar.RuneRange

type propertyName struct {
	name string
	not  bool
}

// property is the characters of \p{name}, or those of \P{name}.
func property(name string, not bool) ([]grammar.RuneRange, bool) {
	if set, ok := properties.Load(propertyName{name, not}); ok {
		return set.([]grammar.RuneRange), true
	}
	set, ok := readProperty(name)
	if !ok {
		return nil, false
	}
	if not {
		set = grammar.OtherRanges(set...)
	}
	properties.Store(propertyName{strings.Clone(name), not}, set)
	return set, true
}

func readProperty(name string) ([]grammar.RuneRange, bool) {
	key, value, named := strings.Cut(name, "=")
	if named {
		switch key {
		case "Script", "sc", "Script_Extensions", "scx":
			t, ok := unicode.Scripts[value]
			if !ok {
				return nil, false
			}
			return ranges(t), true
		case "General_Category", "gc":
			name = value
		default:
			return nil, false
		}
	}
	if short, ok := categories[name]; ok {
		name = short
	}
	if t, ok := unicode.Categories[name]; ok {
		return ranges(t), true
	}
	if named {
		return nil, false
	}
	join := func(tables ...*unicode.RangeTable) (all []grammar.RuneRange) {
		for _, t := range tables {
			all = append(all, ranges(t)...)
		}
		return grammar.Ranges(all...)
	}
	switch name {
	case "LC":
		return join(unicode.Lu, unicode.Ll, unicode.Lt), true
	case "Any":
		return []grammar.RuneRange{{Lo: 0, Hi: utf8.MaxRune}}, true
	case "ASCII":
		return []grammar.RuneRange{{Lo: 0, Hi: 0x7F}}, true
	case "Alphabetic", "Alpha":
		return join(unicode.L, unicode.Nl, unicode.Other_Alphabetic), true
	case "Uppercase", "Upper":
		return join(unicode.Lu, unicode.Other_Uppercase), true
	case "Lowercase", "Lower":
		return join(unicode.Ll, unicode.Other_Lowercase), true
	}
	if t, ok := unicode.Properties[name]; ok {
		return ranges(t), true
	}
	return nil, false
}

// cased are the characters that have others for the case that they are not in.
var cased = sync.OnceValue(func() (all []rune) {
	for _, r := range unicode.CaseRanges {
		for c := rune(r.Lo); c <= rune(r.Hi); c++ {
			if unicode.SimpleFold(c) != c {
				all = append(all, c)
			}
		}
	}
	return all
})

// fold is a set with the other cases of its characters.
type fold struct {
	set    []grammar.RuneRange
	ranges int // before they were joined
}

// folded adds the other cases of characters, of a set that comes again only once: it takes longer than all else.
func (p *parser) folded(set []grammar.RuneRange) []grammar.RuneRange {
	var key []byte
	for _, r := range set {
		key = binary.LittleEndian.AppendUint64(key, uint64(r.Lo)<<32|uint64(r.Hi))
	}
	if f, ok := p.folds[string(key)]; ok {
		p.count(f.ranges)
		return f.set
	}
	out := slices.Clone(set)
	for _, r := range set {
		all := cased()
		i, _ := slices.BinarySearch(all, r.Lo)
		for ; i < len(all) && all[i] <= r.Hi; i++ {
			for c := unicode.SimpleFold(all[i]); c != all[i]; c = unicode.SimpleFold(c) {
				out = append(out, grammar.RuneRange{Lo: c, Hi: c})
			}
		}
	}
	p.count(len(out))
	f := fold{grammar.Ranges(out...), len(out)}
	if p.folds == nil {
		p.folds = map[string]fold{}
	}
	p.folds[string(key)] = f
	return f.set
}
