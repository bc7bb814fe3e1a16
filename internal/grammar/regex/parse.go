package regex

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hearth/internal/grammar"
	"hearth/internal/grammar/notation"
)

// node is a part of a pattern.
type node struct {
	op       op
	set      []grammar.RuneRange // of a character
	parts    []*node
	min, max int  // of a repetition; max < 0: no end
	asserts  bool // there are assertions in it: what it matches depends on what is around
}

type op uint8

const (
	opSet       op = iota // one character of set
	opSeq                 // parts, one after the other
	opAlt                 // any of the parts
	opRepeat              // of the one part
	opStart               // the beginning of the text
	opEnd                 // its end
	opLastEnd             // its end, also before a last line's end
	opLineStart           // the beginning of a line
	opLineEnd             // its end
	opWord                // \b
	opNoWord              // \B
	opAhead               // (?=part)
	opNoAhead             // (?!part)
)

func newNode(op op, parts ...*node) *node {
	n := &node{op: op, parts: parts, asserts: op >= opStart}
	for _, p := range parts {
		n.asserts = n.asserts || p.asserts
	}
	return n
}

// parser reads a pattern by the grammar of ECMA-262 with the u flag, and beyond it what many patterns have: a \ before any
// punctuation, braces and closing brackets that stand for themselves, (?P<name>…) and flags. With python it reads by Python's
// grammar, and what only Rust's regex knows.
type parser struct {
	notation.Reader
	from   int // where the atom at hand begins
	level  int
	ranges int // of characters, in all sets
	python bool
	part   bool
	check  bool            // no sets are made
	folds  map[string]fold // by the ranges of a set
	flags
}

// flags are those that are on.
type flags struct {
	fold    bool // i
	dotAll  bool // s
	lines   bool // m
	verbose bool // x
	ascii   bool // a
}

// fail makes an error of the place that was reached.
func (p *parser) fail(format string, args ...any) {
	p.Stop(&SyntaxError{Pattern: p.Text, At: p.At, What: fmt.Sprintf(format, args...)})
}

func (p *parser) lacks(what string) {
	p.Stop(&UnsupportedError{Pattern: p.Text, At: p.from, What: what})
}

// parse reads the whole pattern.
func parse(text string, o Options, check bool) (n *node, words []grammar.RuneRange, err error) {
	p := &parser{Reader: notation.Reader{Text: text}, python: o.Python, part: o.Part, check: check}
	err = notation.Caught(func() {
		switch {
		case len(text) > maxPattern:
			p.Stop(&grammar.LimitError{What: "bytes of a regular expression", Limit: maxPattern})
		case !utf8.ValidString(text):
			p.fail("is not UTF-8")
		}
		for _, f := range o.Flags {
			p.flag(f, true)
		}
		if n = p.alternatives(); p.More() {
			p.fail("has a ) that closes nothing")
		}
	})
	return n, p.words().in, err
}

// flag sets one of a pattern or a group.
func (p *parser) flag(f rune, on bool) {
	switch {
	case f == 'i':
		p.fold = on
	case f == 's':
		p.dotAll = on
	case f == 'm' && p.python:
		p.lines = on
	case f == 'x' && p.python:
		p.verbose = on
	case f == 'a' && p.python:
		p.ascii = on
	case f == 'u' && p.python:
		p.ascii = !on
	case f == 'u' || f == 'v':
	case strings.ContainsRune("mxlL", f):
		p.lacks("the flag " + string(f))
	default:
		p.fail("has the flag %q, which does not exist", f)
	}
}

// blanks takes what the flag x passes over.
func (p *parser) blanks() {
	for p.verbose && p.More() {
		switch c := p.Text[p.At]; {
		case c == '#':
			p.While(func(c byte) bool { return c != '\n' })
		case c == ' ' || c >= '\t' && c <= '\r':
			p.At++
		default:
			return
		}
	}
}

func (p *parser) alternatives() *node {
	if p.level++; p.level > maxLevels {
		p.Stop(&grammar.LimitError{What: "groups of a regular expression within each other", Limit: maxLevels})
	}
	defer func() { p.level-- }()
	alts := []*node{p.sequence()}
	for p.Take("|") {
		alts = append(alts, p.sequence())
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return newNode(opAlt, alts...)
}

func (p *parser) sequence() *node {
	var parts []*node
	for p.blanks(); p.More() && p.Text[p.At] != '|' && p.Text[p.At] != ')'; p.blanks() {
		parts = append(parts, p.repeated())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return newNode(opSeq, parts...)
}

// repeated reads an atom or an assertion, and its quantifier.
func (p *parser) repeated() *node {
	p.from = p.At
	n := p.atom()
	p.blanks()
	p.from = p.At
	least, most, ok := p.quantifier()
	if !ok {
		return n
	}
	if n.op >= opStart && n.op < opAhead {
		p.fail("repeats an assertion")
	}
	switch {
	case p.Take("?") && p.part: // else one that takes as little as it can matches the same texts
		p.lacks("a quantifier that takes as little as it can (write what may come before the end, such as [^;]*;)")
	case p.python && p.Take("+"):
		p.lacks("a quantifier that gives nothing back")
	}
	if _, _, again := p.quantifier(); again {
		p.fail("has a quantifier after a quantifier")
	}
	r := newNode(opRepeat, n)
	r.min, r.max = least, most
	return r
}

func (p *parser) quantifier() (least, most int, ok bool) {
	if least, most, ok = p.Often(); ok {
		return least, most, ok
	}
	start := p.At
	if p.Take("{") {
		if least, ok = p.Count(); ok || p.python && p.Is(",") && !p.Is(",}") {
			most = least
			if p.Take(",") {
				if most, ok = p.Count(); !ok {
					most = -1
				}
			}
			if p.Take("}") {
				if most >= 0 && most < least {
					p.fail("repeats at least %d and at most %d times", least, most)
				}
				return least, most, true
			}
		}
	}
	p.At = start
	return 0, 0, false
}

func (p *parser) char(c rune) *node { return p.set([]grammar.RuneRange{{Lo: c, Hi: c}}) }

func (p *parser) set(set []grammar.RuneRange) *node {
	n := newNode(opSet)
	if p.check {
		return n
	}
	p.count(len(set))
	if n.set = grammar.Ranges(set...); p.fold {
		n.set = p.folded(n.set)
	}
	return n
}

// count bounds what sets of many ranges cost, such as Python's \w.
func (p *parser) count(ranges int) {
	if p.ranges += ranges; p.ranges > mostRanges {
		p.Stop(&grammar.LimitError{What: "ranges of characters in a regular expression", Limit: mostRanges})
	}
}

func (p *parser) atom() *node {
	switch c := p.Rune(); c {
	case '^':
		if p.lines {
			return p.assertion(opLineStart)
		}
		return p.assertion(opStart)
	case '$':
		switch {
		case p.lines:
			return p.assertion(opLineEnd)
		case p.python:
			return p.assertion(opLastEnd)
		}
		return p.assertion(opEnd)
	case '(':
		return p.group()
	case '[':
		return p.class()
	case '.':
		if p.dotAll {
			return p.set([]grammar.RuneRange{{Lo: 0, Hi: utf8.MaxRune}})
		}
		if p.python {
			return p.set(grammar.OtherRanges(lineFeed...))
		}
		return p.set(grammar.OtherRanges(lineEnds...))
	case '*', '+', '?':
		p.At--
		p.fail("has a quantifier %c that repeats nothing", c)
		return nil
	case '\\':
		switch {
		case p.Take("b"):
			return p.assertion(opWord)
		case p.Take("B"):
			return p.assertion(opNoWord)
		case p.python && p.Take("A"):
			return p.assertion(opStart)
		case p.python && (p.Take("Z") || p.Take("z")):
			return p.assertion(opEnd)
		case p.More() && p.Text[p.At] >= '1' && p.Text[p.At] <= '9' && (!p.python || len(p.octal()) < 3), !p.python && p.Take("k<"):
			p.lacks("a reference back to a group")
		}
		set, _ := p.escape(false)
		return p.set(set)
	default:
		if c == '{' {
			p.At--
			if _, _, ok := p.quantifier(); ok {
				p.fail("has a quantifier that repeats nothing")
			}
			p.At++
		}
		return p.char(c)
	}
}

// assertion is one of what is around a place.
func (p *parser) assertion(op op, parts ...*node) *node {
	if p.part {
		p.lacks("an assertion about what is around (^, $, \\b, a look ahead)")
	}
	return newNode(op, parts...)
}

// group reads what follows a parenthesis.
func (p *parser) group() *node {
	op, before := opSeq, p.flags
	if p.Take("?") {
		switch {
		case p.Take(":"):
		case p.Take("="):
			op = opAhead
		case p.Take("!"):
			op = opNoAhead
		case p.Take("<="), p.Take("<!"):
			p.lacks("a look behind")
		case p.Take("P<"), p.Take("<"):
			end := strings.IndexByte(p.Text[p.At:], '>')
			if end <= 0 || strings.IndexFunc(p.Text[p.At:p.At+end], func(c rune) bool { return !word(c) && c != '$' }) >= 0 {
				p.fail("has a group without a proper name")
			}
			p.At += end + 1
		case p.python && p.Take("P="):
			p.lacks("a reference back to a group")
		case p.python && p.Take("("):
			p.lacks("a condition")
		case p.python && p.Take(">"):
			p.lacks("a group that gives nothing back")
		case p.python && p.Take("#"):
			if end := strings.IndexByte(p.Text[p.At:], ')'); end >= 0 {
				p.At += end + 1
				return newNode(opSeq)
			}
			p.fail("has a comment that is not closed")
		case p.flagged():
			return newNode(opSeq)
		}
	}
	if op != opSeq {
		p.assertion(op)
	}
	n := p.alternatives()
	if !p.Take(")") {
		p.fail("has a group that is not closed")
	}
	p.flags = before
	if op != opSeq {
		n = newNode(op, n)
	}
	return n
}

// flagged reads the flags of a group, as in (?i-s:…), and tells whether they are those of all that follows around it, as in (?i).
func (p *parser) flagged() bool {
	on := true
	for ; p.More(); p.At++ {
		switch c := p.Text[p.At]; {
		case c == '-' && on:
			on = false
		case c == ':' || c == ')':
			p.At++
			return c == ')'
		case c >= utf8.RuneSelf || !word(rune(c)):
			p.fail("has a group (? of an unknown kind")
		default:
			p.flag(rune(c), on)
		}
	}
	p.fail("has a group that is not closed")
	return false
}

// class reads what follows a bracket.
func (p *parser) class() *node {
	not := p.Take("^")
	var all []grammar.RuneRange
	for first := true; first && p.python || !p.Take("]"); first = false { // one that comes first is itself to Python
		switch {
		case !p.More():
			p.fail("has a class that is not closed")
		case p.python && (p.Take("&&") || p.Take("~~")):
			p.lacks("&& or ~~ in a class")
		}
		set, single := p.member()
		if single && p.Is("-") && !p.Is("-]") {
			at := p.At
			p.At++
			if !p.More() {
				p.fail("has a class that is not closed")
			}
			if to, one := p.member(); !one {
				p.At = at // [a-\d] is a, - and digits
			} else if set[0].Hi = to[0].Hi; set[0].Hi < set[0].Lo {
				p.At = at
				p.fail("has a range that ends before it begins")
			}
		}
		if !p.check {
			p.count(len(set))
			all = append(all, set...)
		}
	}
	if p.check {
		return newNode(opSet)
	}
	if all = grammar.Ranges(all...); p.fold {
		all = p.folded(all)
	}
	if not {
		all = grammar.OtherRanges(all...)
	}
	n := newNode(opSet)
	n.set = all
	return n
}

// member reads a character of a class, or an escape for several.
func (p *parser) member() (set []grammar.RuneRange, single bool) {
	if p.python && p.Take("[:") {
		return p.posix(), false
	}
	c := p.Rune()
	if c == '\\' {
		return p.escape(true)
	}
	return []grammar.RuneRange{{Lo: c, Hi: c}}, true
}

// escape reads what follows a \, and tells whether it is one character.
func (p *parser) escape(inClass bool) (set []grammar.RuneRange, single bool) {
	if !p.More() {
		p.fail("ends in a \\")
	}
	one := func(c rune) ([]grammar.RuneRange, bool) { return []grammar.RuneRange{{Lo: c, Hi: c}}, true }
	c := p.Rune()
	switch c {
	case 'd':
		return p.digits().in, false
	case 'D':
		return p.digits().out, false
	case 'w':
		return p.words().in, false
	case 'W':
		return p.words().out, false
	case 's':
		return p.spaces().in, false
	case 'S':
		return p.spaces().out, false
	case 't':
		return one('\t')
	case 'n':
		return one('\n')
	case 'v':
		return one('\v')
	case 'f':
		return one('\f')
	case 'r':
		return one('\r')
	case 'x':
		if p.python && p.Is("{") {
			return one(p.unicode())
		}
		return one(p.hex(2))
	case 'u':
		return one(p.unicode())
	case 'p', 'P':
		return p.property(c == 'P'), false
	case 'c':
		if p.More() && !p.python {
			if l := p.Text[p.At] | 0x20; l >= 'a' && l <= 'z' {
				p.At++
				return one(rune(l & 0x1f))
			}
		}
		p.fail("has a \\c without a letter")
	case '0', '1', '2', '3', '4', '5', '6', '7':
		if p.python {
			p.At--
			digits := p.octal()
			p.At += len(digits)
			x, _ := strconv.ParseUint(digits, 8, 32)
			return one(rune(x))
		}
		if c != '0' {
			break
		}
		if p.More() && p.Text[p.At] >= '0' && p.Text[p.At] <= '9' {
			p.fail("has an octal escape")
		}
		return one(0)
	case 'b':
		if inClass {
			return one('\b')
		}
	}
	if p.python {
		switch {
		case c == 'a':
			return one('\a')
		case c == 'U':
			return one(p.hex(8))
		case c == 'N':
			p.lacks("a character by its name")
		}
	}
	if c < utf8.RuneSelf && (word(c) && c != '_') {
		hint := ""
		switch c {
		case 'A':
			hint = "; ^ is the beginning"
		case 'Z', 'z':
			hint = "; $ is the end"
		}
		p.fail("has the escape \\%c, which does not exist%s", c, hint)
	}
	return one(c)
}

func (p *parser) hex(n int) rune {
	if p.At+n <= len(p.Text) {
		if x, err := strconv.ParseUint(p.Text[p.At:p.At+n], 16, 32); err == nil {
			if p.At += n; x > utf8.MaxRune {
				p.fail("has an escape for no character")
			}
			return rune(x)
		}
	}
	p.fail("has an escape that lacks hexadecimal digits")
	return 0
}

// unicode reads what follows \u. Two surrogates are one character.
func (p *parser) unicode() rune {
	if p.Take("{") {
		end := strings.IndexByte(p.Text[p.At:], '}')
		if end > 0 {
			if x, err := strconv.ParseUint(p.Text[p.At:p.At+end], 16, 32); err == nil && x <= utf8.MaxRune {
				p.At += end + 1
				return rune(x)
			}
		}
		p.fail("has a \\u{ without a character's number")
	}
	c := p.hex(4)
	at := p.At
	if c >= 0xD800 && c < 0xDC00 && p.Take("\\u") && !p.Is("{") {
		if low := p.hex(4); low >= 0xDC00 && low < 0xE000 {
			return 0x10000 + (c-0xD800)<<10 + low - 0xDC00
		}
	}
	p.At = at
	return c
}

// octal is the octal digits that come next, three at most.
func (p *parser) octal() string {
	next := p.Text[p.At:min(p.At+3, len(p.Text))]
	return next[:len(next)-len(strings.TrimLeft(next, "01234567"))]
}

// posix reads the name of a class such as [:alpha:], of which the beginning was read.
func (p *parser) posix() []grammar.RuneRange {
	name, _, ok := strings.Cut(p.Text[p.At:], ":]")
	set, known := posix[strings.TrimPrefix(name, "^")]
	if !ok || !known {
		p.fail("has a [: in a class without the name of a class and :]")
	}
	p.At += len(name) + len(":]")
	if strings.HasPrefix(name, "^") {
		return grammar.OtherRanges(set...)
	}
	return set
}

// property reads the braces of \p{…}.
func (p *parser) property(not bool) []grammar.RuneRange {
	if p.python && p.More() && p.Text[p.At] != '{' { // \pL
		if set, ok := property(p.Text[p.At:p.At+1], not); ok {
			p.At++
			return set
		}
	}
	if p.Take("{") {
		if end := strings.IndexByte(p.Text[p.At:], '}'); end > 0 {
			name := p.Text[p.At : p.At+end]
			if _, ok := unicode.Scripts[name]; ok && p.python {
				name = "sc=" + name
			}
			if set, ok := property(name, not); ok {
				p.At += end + 1
				return set
			}
			p.fail("asks for the property %q, which is not known", name)
		}
	}
	p.fail("has a \\p without a property in braces")
	return nil
}

// digits, words and spaces are the classes \d, \w and \s.
func (p *parser) digits() class {
	if p.python && !p.ascii {
		return python().digits
	}
	return digits
}

func (p *parser) words() class {
	if p.python && !p.ascii {
		return python().words
	}
	return words
}

func (p *parser) spaces() class {
	switch {
	case !p.python:
		return spaces
	case p.ascii:
		return asciiSpaces
	}
	return python().spaces
}

func word(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf && unicode.IsLetter(c)
}
