// Package gbnf makes grammars out of texts in GBNF, the notation of llama.cpp, and in the EBNF that other servers take, which is
// nearly the same:
//
//	root ::= "yes" | "no, " reason{1,3}
//	reason ::= [^\n]+ "\n" # a comment
//
// A text follows the rule root. A line's end is a blank wherever it stands: a rule ends where the next one begins. Assertions
// about what follows a rule and the functions of some dialects (TagDispatch and others) are refused.
package gbnf

import (
	"context"
	"slices"

	"hearth/internal/grammar"
	"hearth/internal/grammar/notation"
)

// Options of a grammar.
type Options struct {
	// Token gives the text by which a token is matched that is asked for as <name> or <[id]>, or whether there is none:
	// grammar.Mark of a token that is no text. Nil refuses tokens.
	Token func(name string) (text string, ok bool)
}

// Compile makes a grammar out of a text. Its errors are a notation.Error that names the place, a grammar.LimitError,
// grammar.ErrNothing, or the cause of ctx's end.
func Compile(ctx context.Context, text string, o Options) (*grammar.Grammar, error) {
	p := &parser{b: grammar.NewBuilder(), token: o.Token, rules: map[string]*rule{}}
	err := notation.Read(ctx, text, p.read)
	if err != nil {
		return nil, err
	}
	return p.b.Compile(p.rules["root"].r)
}

type rule struct {
	r       *grammar.Rule
	used    int // byte where it is first asked for
	defined bool
}

type parser struct {
	*notation.Reader
	b     *grammar.Builder
	token func(string) (string, bool)
	rules map[string]*rule
	order []string // of the names as they came up
}

func (p *parser) read(r *notation.Reader) {
	p.Reader = r
	for p.blanks(); p.More(); p.blanks() {
		p.rule()
	}
	for _, name := range p.order {
		if rule := p.rules[name]; !rule.defined {
			p.Fail(rule.used, "the rule %s is not defined; add %s ::= …", name, name)
		}
	}
	if p.rules["root"] == nil {
		p.Fail(0, "there is no rule root, which whole texts follow; add root ::= …")
	}
}

// blanks takes blanks, lines' ends and comments.
func (p *parser) blanks() { p.Blanks("#") }

func wordByte(c byte) bool { return notation.Letter(c) || notation.Digit(c) || c == '-' || c == '_' }

func (p *parser) named(name string, at int) *rule {
	r := p.rules[name]
	if r == nil {
		r = &rule{r: p.b.Rule(name), used: at}
		p.rules[name] = r
		p.order = append(p.order, name)
	}
	return r
}

func (p *parser) rule() {
	at := p.At
	name := p.While(wordByte)
	if name == "" {
		p.Fail(at, "a rule's name is expected, not %s", p.Next())
	}
	p.blanks()
	if !p.Take("::=") {
		p.Fail(p.At, "::= is expected after the name %s, not %s", name, p.Next())
	}
	rule := p.named(name, at)
	if rule.defined {
		p.Fail(at, "the rule %s is defined twice; join its alternatives with |", name)
	}
	rule.defined = true
	p.blanks()
	p.b.Define(rule.r, p.alternatives())
	switch {
	case p.Is("(="):
		p.Fail(p.At, "what must follow a rule is not held; leave (=…) out, and write what follows where the rule is asked for")
	case p.Peek() == ')':
		p.Fail(p.At, "the ) closes nothing")
	case p.More() && !wordByte(p.Peek()):
		p.Fail(p.At, "%s is not expected here; a rule is made of \"texts\", [classes], names, groups, | and * + ? {m,n}", p.Next())
	}
}

func (p *parser) alternatives() *grammar.Expr {
	alts := []*grammar.Expr{p.sequence()}
	for p.Take("|") {
		p.blanks()
		alts = append(alts, p.sequence())
	}
	return p.b.Or(alts...)
}

func (p *parser) sequence() *grammar.Expr {
	var parts []*grammar.Expr
	for {
		e := p.item()
		if e == nil {
			return p.b.Seq(parts...)
		}
		p.blanks()
		for {
			at := p.At
			least, most, ok := p.times()
			if !ok {
				break
			}
			if most >= 0 && most < least {
				p.Fail(at, "it repeats at least %d and at most %d times", least, most)
			}
			e = p.b.Repeat(e, least, most)
			p.blanks()
		}
		parts = append(parts, e)
	}
}

// times takes what says how often something comes.
func (p *parser) times() (least, most int, ok bool) {
	at := p.At
	if least, most, ok = p.Often(); ok || !p.Take("{") {
		return least, most, ok
	}
	p.blanks()
	least, from := p.Count()
	p.blanks()
	most = least
	to := from
	if p.Take(",") {
		p.blanks()
		if most, to = p.Count(); !to {
			most = -1
		}
		p.blanks()
	}
	if !from && !to || !p.Take("}") {
		p.Fail(at, "a number of repetitions is {m}, {m,} or {m,n}")
	}
	return least, most, true
}

// functions are those of some dialects, called in place of a name.
var functions = []string{"TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken"}

// item takes what may be repeated, and gives nil where none comes.
func (p *parser) item() (e *grammar.Expr) {
	at := p.At
	switch c := p.Peek(); {
	case p.Is("(="):
		return nil
	case p.Take("("):
		p.Nested(func() {
			p.blanks()
			e = p.alternatives()
		})
		if !p.Take(")") {
			if p.Is("(=") {
				p.Fail(p.At, "what must follow is not held; leave (=…) out")
			}
			p.Fail(p.At, "a ) is expected, not %s", p.Next())
		}
		return e
	case p.Take(`"`):
		var text []rune
		for !p.Take(`"`) {
			if !p.More() {
				p.Fail(at, "the text is not closed by a \"")
			}
			text = append(text, p.char())
		}
		return p.b.Literal(string(text))
	case p.Take("["):
		return p.class(at)
	case p.Take("."):
		return p.b.Runes(grammar.OtherRanges()...)
	case c == '<' || c == '!':
		return p.special()
	case c == '*' || c == '+' || c == '?' || c == '{':
		p.Fail(at, "%s repeats nothing; write it after a \"text\", a [class], a name or a group", p.Next())
	case wordByte(c):
		name := p.While(wordByte)
		if p.Is("(") && slices.Contains(functions, name) {
			p.Fail(at, "%s(…) is not held; write rules, and tokens as <name>", name)
		}
		if p.blanks(); p.Is("::=") { // the next rule
			p.At = at
			return nil
		}
		return p.b.Ref(p.named(name, at).r)
	}
	return nil
}

func (p *parser) class(at int) *grammar.Expr {
	not := p.Take("^")
	var set []grammar.RuneRange
	for !p.Take("]") {
		if !p.More() {
			p.Fail(at, "the class is not closed by a ]")
		}
		from := p.At
		c := grammar.RuneRange{}
		c.Lo = p.char()
		c.Hi = c.Lo
		if p.Is("-") && !p.Is("-]") {
			p.At++
			if !p.More() {
				p.Fail(at, "the class is not closed by a ]")
			}
			if c.Hi = p.char(); c.Hi < c.Lo {
				p.Fail(from, "the range ends before it begins")
			}
		}
		set = append(set, c)
	}
	switch {
	case len(set) == 0:
		p.Fail(at, "the class is empty; any character is a dot, and a bracket in a class is \\]")
	case not:
		set = grammar.OtherRanges(set...)
	}
	return p.b.Runes(set...)
}

// escapes are those of one letter.
var escapes = map[rune]rune{'t': '\t', 'r': '\r', 'n': '\n', 'a': '\a', 'b': '\b', 'f': '\f', 'v': '\v', 'e': 0x1b, '0': 0}

// char takes a character of a text or a class.
func (p *parser) char() rune {
	at := p.At
	p.Step()
	c := p.Rune()
	if c != '\\' {
		return c
	}
	if !p.More() {
		p.Fail(at, "the text ends in a \\")
	}
	switch c = p.Rune(); c {
	case 'x':
		return p.Hex(at, 2)
	case 'u':
		if p.Take("{") {
			return p.HexBraces(at)
		}
		return p.Hex(at, 4)
	case 'U':
		return p.Hex(at, 8)
	}
	if e, ok := escapes[c]; ok {
		return e
	}
	if c < ' ' || c > '~' || wordByte(byte(c)) && c != '-' {
		p.Fail(at, "the escape \\%c does not exist; there are \\n \\t \\r \\xHH \\uHHHH \\UHHHHHHHH, and \\ before punctuation", c)
	}
	return c
}

// special takes a token: <name> or <[id]>.
func (p *parser) special() *grammar.Expr {
	at := p.At
	if p.Take("!") {
		p.Fail(at, "any token but one is not held; write what may come as characters, such as [^<]*")
	}
	name := p.While(func(c byte) bool { return c != '>' && c != '\n' })
	if !p.Take(">") {
		p.Fail(at, "the token is not closed by a >; a < that is text is \"<\"")
	}
	name += ">"
	if p.token == nil {
		p.Fail(at, "tokens such as %s are not held here; write text as \"text\"", name)
	}
	text, ok := p.token(name)
	if !ok {
		p.Fail(at, "the model has no token %s; write text as \"text\"", name)
	}
	return p.b.Literal(text)
}
