package lark

import (
	"context"
	"strings"
	"sync"

	"hearth/internal/grammar/notation"
)

// node is a part of a rule or of a terminal.
type node struct {
	op          op
	at          int // byte
	parts       []*node
	least, most int    // of a repetition; most < 0: no end
	text        string // of a string, a pattern or a name; the first character of a range
	last        string // that of a range
	flags       string
	lexeme      int // of opLexeme
}

type op uint8

const (
	opSeq op = iota
	opAlt
	opRepeat
	opString
	opPattern
	opRange
	opRule     // by its name
	opTerminal // likewise
	opLexeme   // what stands in rules for a string, a pattern, a range or a terminal
)

// terminal is what is defined in capitals.
type terminal struct {
	body     *node
	at       int
	priority int
	scope    map[string]*terminal // what its names mean
}

// parser reads a grammar. A line's end is a blank, but for what says how often something comes, which stands in its line: so the
// ? before a name is told from the one behind something.
type parser struct {
	*notation.Reader
	rules     map[string]*node
	order     []string // names of rules
	terminals map[string]*terminal
	named     []string // names of terminals
	ignored   []*node
	common    map[string]*terminal // what can be imported
}

func (p *parser) read(r *notation.Reader) {
	p.Reader = r
	for p.blanks(); p.More(); p.blanks() {
		if p.Peek() == '%' {
			p.statement()
		} else {
			p.definition()
		}
	}
}

// blanks takes blanks, lines' ends and comments.
func (p *parser) blanks() { p.Blanks("#", "//") }

// inline takes blanks within a line.
func (p *parser) inline() { p.While(func(c byte) bool { return c == ' ' || c == '\t' }) }

func nameByte(c byte) bool { return notation.Letter(c) || notation.Digit(c) || c == '_' }

// isTerminal tells terminals' names from those of rules: by the first letter.
func isTerminal(name string) bool {
	for i := range len(name) {
		if c := name[i]; c != '_' {
			return c >= 'A' && c <= 'Z'
		}
	}
	return false
}

// head takes the beginning of a definition, and tells whether there was one; if not, nothing was taken.
func (p *parser) head() (name string, at, priority int, ok bool) {
	start := p.At
	p.While(func(c byte) bool { return c == '!' || c == '?' })
	at = p.At
	if name = p.While(nameByte); name == "" || notation.Digit(name[0]) {
		p.At = start
		return "", at, 0, false
	}
	switch {
	case p.Is("{"):
		end := p.At
		p.While(func(c byte) bool { return c != '}' && c != '\n' })
		if p.Take("}"); p.Peek() == ':' || p.Peek() == '.' {
			p.Fail(at, "%s is a template, which is not held; write a rule for each use of it", name)
		}
		p.At = end
	case p.Is("["):
		end := p.At
		p.While(func(c byte) bool { return c != ']' && c != '\n' })
		if p.Take("]") && p.Peek() == ':' {
			p.Fail(at, "attributes in brackets after a name, here %s, are not held; leave them out", name)
		}
		p.At = end
	}
	p.inline()
	if p.Is(".") && !p.Is("..") {
		p.At++
		minus := p.Take("-")
		var digits bool
		if priority, digits = p.Count(); minus {
			priority = -priority
		}
		if !digits {
			p.Fail(at, "after %s. a number is expected, which is the priority of what is defined", name)
		}
		p.inline()
	}
	if !p.Take(":") {
		p.At = start
		return "", at, 0, false
	}
	return name, at, priority, true
}

// defines tells whether a definition comes next.
func (p *parser) defines() bool {
	start := p.At
	_, _, _, ok := p.head()
	p.At = start
	return ok
}

func (p *parser) definition() {
	name, at, priority, ok := p.head()
	if !ok {
		p.Fail(p.At, "a definition is expected, such as name: … or NAME: …, not %s", p.Next())
	}
	p.blanks()
	body := p.alternatives()
	p.end()
	switch {
	case isTerminal(name):
		if p.terminals[name] != nil {
			p.Fail(at, "the terminal %s is defined twice; join its alternatives with |", name)
		}
		p.define(&terminal{body: body, at: at, priority: priority, scope: p.terminals}, name)
	case p.rules[name] != nil:
		p.Fail(at, "the rule %s is defined twice; join its alternatives with |", name)
	default:
		p.rules[name] = body
		p.order = append(p.order, name)
	}
}

func (p *parser) define(t *terminal, name string) {
	p.terminals[name] = t
	p.named = append(p.named, name)
}

// end wants that the next definition or statement follows.
func (p *parser) end() {
	if p.defines() || !p.More() || p.Peek() == '%' {
		return
	}
	switch c := p.Peek(); {
	case c == ')' || c == ']':
		p.Fail(p.At, "the %c closes nothing", c)
	case c == '&':
		p.Fail(p.At, "& is not held; write one expression for what matches both")
	case c == '~':
		p.Fail(p.At, "~ is not held as a complement, and how often something comes is behind it: X ~ 2..3")
	case c == '<':
		p.Fail(p.At, "tokens such as <name> are not held; write text as \"text\"")
	case c == '@':
		p.Fail(p.At, "references to other grammars are not held; write their rules here")
	case c == '\'':
		p.Fail(p.At, "strings are written in double quotes")
	case c == '?' || c == '*' || c == '+':
		p.Fail(p.At, "the %c repeats nothing; write it behind something, in the same line", c)
	}
	p.Fail(p.At, "%s is not expected here; what is defined is made of names, \"strings\", /patterns/, groups, | and * + ? ~", p.Next())
}

func (p *parser) statement() {
	at := p.At
	p.At++
	switch word := p.While(nameByte); word {
	case "ignore":
		p.blanks()
		what := p.alternatives()
		if p.end(); what.op == opSeq && len(what.parts) == 0 {
			p.Fail(at, "%%ignore lacks what is ignored")
		}
		p.ignored = append(p.ignored, what)
	case "import":
		p.imports()
	case "declare":
		p.Fail(at, "%%declare is not held: there is nobody who could give such terminals; define them")
	default:
		p.Fail(at, "%%%s is not held; there are %%ignore and %%import common.NAME", word)
	}
}

// imports takes what follows %import.
func (p *parser) imports() {
	p.inline()
	at := p.At
	name := p.While(nameByte)
	if name != "common" || !p.Is(".") && !p.Is(" ") && !p.Is("(") {
		p.Fail(at, "only terminals of common can be imported: %%import common.NAME")
	}
	take := func() (from string, at int) {
		at = p.At
		return p.While(nameByte), at
	}
	bring := func(from, to string, at int) {
		t := p.common[from]
		switch {
		case t == nil && (from == "_STRING_INNER" || from == "_STRING_ESC_INNER"):
			p.Fail(at, "common.%s is not held, because where it ends depends on what follows; import ESCAPED_STRING", from)
		case t == nil:
			p.Fail(at, "there is no common.%s", from)
		case p.terminals[to] != nil && p.terminals[to].body != t.body:
			p.Fail(at, "the terminal %s is defined twice", to)
		case p.terminals[to] == nil:
			p.define(t, to)
		}
	}
	if p.Take(".") {
		from, at := take()
		p.inline()
		to := from
		if p.Take("->") {
			p.inline()
			if to, _ = take(); !isTerminal(to) {
				p.Fail(at, "a terminal's name is expected behind ->, in capitals")
			}
		}
		bring(from, to, at)
		return
	}
	p.inline()
	if !p.Take("(") {
		p.Fail(p.At, "a ( is expected, not %s: %%import common (NAME, NAME)", p.Next())
	}
	for {
		p.blanks()
		from, at := take()
		bring(from, from, at)
		p.blanks()
		if !p.Take(",") {
			break
		}
	}
	if !p.Take(")") {
		p.Fail(p.At, "a ) is expected, not %s", p.Next())
	}
}

func (p *parser) alternatives() *node {
	n := &node{op: opAlt, at: p.At, parts: []*node{p.sequence()}}
	for p.Take("|") {
		p.blanks()
		n.parts = append(n.parts, p.sequence())
	}
	if len(n.parts) == 1 {
		return n.parts[0]
	}
	return n
}

func (p *parser) sequence() *node {
	n := &node{op: opSeq, at: p.At}
	for {
		part := p.item()
		if part == nil {
			break
		}
		n.parts = append(n.parts, p.repeated(part))
		p.blanks()
	}
	if p.Take("->") { // an alias names what was parsed, and changes no text
		p.inline()
		if at := p.At; p.While(nameByte) == "" {
			p.Fail(at, "a name is expected behind ->, not %s", p.Next())
		}
		p.blanks()
	}
	if len(n.parts) == 1 {
		return n.parts[0]
	}
	return n
}

// repeated takes what says how often something comes.
func (p *parser) repeated(n *node) *node {
	for {
		p.inline()
		r := &node{op: opRepeat, at: p.At, parts: []*node{n}}
		var ok bool
		if r.least, r.most, ok = p.Often(); !ok {
			if !p.Take("~") {
				return n
			}
			p.inline()
			if r.least, ok = p.Count(); !ok {
				p.Fail(r.at, "how often something comes is ~ n or ~ n..m")
			}
			r.most = r.least
			p.inline()
			if p.Take("..") {
				p.inline()
				if r.most, ok = p.Count(); !ok || r.most < r.least {
					p.Fail(r.at, "how often something comes is ~ n..m, where m is n or more")
				}
			}
		}
		n = r
	}
}

// item takes what may be repeated, and gives nil where none comes.
func (p *parser) item() *node {
	n := &node{at: p.At}
	switch c := p.Peek(); {
	case p.Take("("):
		return p.group(")")
	case p.Take("["):
		return &node{op: opRepeat, at: n.at, most: 1, parts: []*node{p.group("]")}}
	case c == '"':
		n.op, n.text = opString, p.quoted()
		if p.Peek() == 'i' {
			n.flags = "i"
			p.At++
		}
		p.inline()
		if p.Take("..") {
			p.inline()
			if p.Peek() != '"' {
				p.Fail(p.At, "a range is two characters: \"a\"..\"z\"")
			}
			n.op, n.last = opRange, p.quoted()
			if lo, hi := []rune(n.text), []rune(n.last); len(lo) != 1 || len(hi) != 1 || lo[0] > hi[0] {
				p.Fail(n.at, "a range is two characters, the second not before the first: \"a\"..\"z\"")
			}
		}
		return n
	case c == '/':
		n.op = opPattern
		p.pattern(n)
		return n
	case nameByte(c) && !notation.Digit(c):
		if p.defines() {
			return nil
		}
		n.text = p.While(nameByte)
		n.op = opRule
		if isTerminal(n.text) {
			n.op = opTerminal
		}
		if p.Is("{") {
			p.Fail(n.at, "%s{…} uses a template, which is not held; write a rule for each use of it", n.text)
		}
		return n
	}
	return nil
}

func (p *parser) group(end string) (n *node) {
	p.Nested(func() {
		p.blanks()
		n = p.alternatives()
	})
	if !p.Take(end) {
		if p.More() && p.Peek() != ')' && p.Peek() != ']' {
			p.end()
		}
		p.Fail(p.At, "a %s is expected, not %s", end, p.Next())
	}
	return n
}

// quoted takes a string, without flags.
func (p *parser) quoted() string {
	start := p.At
	p.At++
	var text []rune
	for !p.Take(`"`) {
		if !p.More() || p.Peek() == '\n' {
			p.Fail(start, "the string is not closed by a \" in its line; a line's end is \\n")
		}
		at := p.At
		c := p.Rune()
		if c == '\\' && p.More() {
			switch c = p.Rune(); c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			case 'f':
				c = '\f'
			case 'x':
				c = p.Hex(at, 2)
			case 'u':
				c = p.Hex(at, 4)
			case 'U':
				c = p.Hex(at, 8)
			case '\\', '"':
			default:
				p.Fail(at, "the escape \\%c does not exist in strings; there are \\n \\t \\r \\f \\xHH \\uHHHH \\UHHHHHHHH \\\" and \\\\", c)
			}
		}
		text = append(text, c)
	}
	return string(text)
}

// pattern takes a regular expression with its flags.
func (p *parser) pattern(n *node) {
	p.At++
	start := p.At
	for !p.Is("/") {
		if !p.More() {
			p.Fail(n.at, "the pattern is not closed by a /; a / in it is \\/")
		}
		if p.Rune() == '\\' && p.More() {
			p.Rune()
		}
	}
	n.text = p.Text[start:p.At]
	p.At++
	n.flags = p.While(func(c byte) bool { return c >= 'a' && c <= 'z' })
	for i := range len(n.text) {
		if n.text[i] == '\n' && !strings.Contains(n.flags, "x") {
			p.Fail(n.at, "a pattern has no line's end in it, unless it has the flag x; write \\n")
		}
	}
}

// common are the terminals that can be imported. They match what Lark's do: those that Lark takes up to the first end of are
// written without what is within.
var common = sync.OnceValue(func() map[string]*terminal {
	p := &parser{terminals: map[string]*terminal{}, rules: map[string]*node{}}
	if err := notation.Read(context.Background(), commonText, p.read); err != nil {
		panic(err) // the text is a constant
	}
	return p.terminals
})

const commonText = `
DIGIT: "0".."9"
HEXDIGIT: /[0-9a-fA-F]/
INT: /[0-9]+/
SIGNED_INT: /[+-]?[0-9]+/
DECIMAL: /[0-9]+\.[0-9]*/ | /\.[0-9]+/
_EXP: /[eE][+-]?[0-9]+/
FLOAT: INT _EXP | DECIMAL _EXP?
SIGNED_FLOAT: /[+-]?/ FLOAT
NUMBER: FLOAT | INT
SIGNED_NUMBER: /[+-]?/ NUMBER
ESCAPED_STRING: /"([^"\\\n]|\\[^\n])*"/
LCASE_LETTER: "a".."z"
UCASE_LETTER: "A".."Z"
LETTER: /[a-zA-Z]/
WORD: /[a-zA-Z]+/
CNAME: /[a-zA-Z_][a-zA-Z_0-9]*/
WS_INLINE: /[ \t]+/
WS: /[ \t\f\r\n]+/
CR: "\r"
LF: "\n"
NEWLINE: /(\r?\n)+/
SH_COMMENT: /#[^\n]*/
CPP_COMMENT: /\/\/[^\n]*/
C_COMMENT: /\/\*([^*]|\*+[^*\/])*\*+\//
SQL_COMMENT: /--[^\n]*/
`
