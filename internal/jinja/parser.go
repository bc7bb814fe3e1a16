package jinja

import "slices"

// maxNesting bounds how deep statements and expressions may nest, so that parsing and evaluating never outgrow the stack.
const maxNesting = 250

// parser is a recursive-descent parser with the grammar of Jinja 3.1.
type parser struct {
	toks   []token
	at     int
	depth  int
	macros []*macroNode // enclosing macros and call blocks, innermost last
	loops  int          // enclosing for loops within the innermost macro
	syms   map[string]int
	seen   int // macros and call blocks so far
}

// Variables that statements bind without naming them.
const (
	symLoop = iota
	symCaller
	symVarargs
	symKwargs
)

func newParser(toks []token) *parser {
	return &parser{toks: toks, syms: map[string]int{"loop": symLoop, "caller": symCaller, "varargs": symVarargs, "kwargs": symKwargs}}
}

// sym numbers the variables of the template.
func (p *parser) sym(name string) int {
	n, ok := p.syms[name]
	if !ok {
		n = len(p.syms)
		p.syms[name] = n
	}
	return n
}

func (p *parser) cur() token  { return p.toks[p.at] }
func (p *parser) peek() token { return p.toks[min(p.at+1, len(p.toks)-1)] }

func (p *parser) take() token {
	t := p.toks[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

func (p *parser) fail(format string, args ...any) { syntaxError(p.cur().line, format, args...) }

func (p *parser) isOp(op string) bool  { t := p.cur(); return t.kind == tokOp && t.text == op }
func (p *parser) isWord(w string) bool { t := p.cur(); return t.kind == tokName && t.text == w }
func (p *parser) is(k tokenKind) bool  { return p.cur().kind == k }
func (p *parser) line() pos            { return pos(p.cur().line) }

func (p *parser) skipOp(op string) bool {
	if p.isOp(op) {
		p.at++
		return true
	}
	return false
}

func (p *parser) skipWord(w string) bool {
	if p.isWord(w) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expectOp(op string) {
	if !p.skipOp(op) {
		p.fail("expected '%s', got %s", op, p.cur().describe())
	}
}

func (p *parser) expectWord(w string) {
	if !p.skipWord(w) {
		p.fail("expected '%s', got %s", w, p.cur().describe())
	}
}

func (p *parser) expectName() string {
	if !p.is(tokName) {
		p.fail("expected a name, got %s", p.cur().describe())
	}
	return p.take().text
}

func (p *parser) expect(k tokenKind) {
	if !p.is(k) {
		p.fail("expected %s, got %s", token{kind: k}.describe(), p.cur().describe())
	}
	p.at++
}

// enter counts a level of nesting; call the result to leave it.
func (p *parser) enter() func() {
	if p.depth++; p.depth > maxNesting {
		p.fail("nested deeper than %d levels", maxNesting)
	}
	return func() { p.depth-- }
}

func (p *parser) parseTemplate() []node {
	body, _ := p.body()
	return body
}

// body parses until one of the ending words opens a tag, and returns that word, its tag still open. Without ends it
// parses to the end of the template.
func (p *parser) body(ends ...string) ([]node, string) {
	defer p.enter()()
	var out []node
	for {
		t := p.take()
		switch t.kind {
		case tokEOF:
			if len(ends) > 0 {
				p.fail("unexpected end of template, looking for '%s'", ends[len(ends)-1])
			}
			return out, ""
		case tokData:
			out = append(out, &textNode{pos(t.line), t.text})
		case tokVarBegin:
			out = append(out, &outputNode{pos(t.line), p.tuple(true)})
			p.expect(tokVarEnd)
		case tokBlockBegin:
			if p.is(tokName) && slices.Contains(ends, p.cur().text) {
				return out, p.take().text
			}
			out = append(out, p.statement()...)
			p.expect(tokBlockEnd)
		}
	}
}

// block parses the body of a statement whose opening tag is still open.
func (p *parser) block(ends ...string) ([]node, string) {
	p.skipOp(":")
	p.expect(tokBlockEnd)
	return p.body(ends...)
}

// statement parses a tag's inside; its closing mark is left to the caller.
func (p *parser) statement() []node {
	line := p.line()
	switch word := p.expectName(); word {
	case "if":
		return []node{p.ifStatement(line)}
	case "for":
		return []node{p.forStatement(line)}
	case "set":
		return []node{p.setStatement(line)}
	case "macro":
		m := &macroNode{pos: line, name: p.expectName()}
		m.sym = p.sym(m.name)
		p.signature(m)
		p.macroBody(m, "endmacro")
		return []node{m}
	case "call":
		return []node{p.callStatement(line)}
	case "filter":
		f := p.filter(nil)
		fs := append([]*filterExpr{f}, p.filters()...)
		body, _ := p.block("endfilter")
		return []node{&filterBlockNode{line, fs, body}}
	case "generation":
		body, _ := p.block("endgeneration")
		return []node{&scopeNode{line, body}}
	case "block":
		name := p.expectName()
		p.skipWord("scoped")
		p.skipWord("required")
		body, _ := p.block("endblock")
		p.skipWord(name)
		return []node{&scopeNode{line, body}}
	case "with":
		return []node{p.withStatement(line)}
	case "print":
		var out []node
		for !p.is(tokBlockEnd) {
			if out != nil {
				p.expectOp(",")
			}
			out = append(out, &outputNode{line, p.expression()})
		}
		return out
	case "break", "continue":
		if p.loops == 0 {
			p.fail("'%s' outside a loop", word)
		}
		if word == "break" {
			return []node{&breakNode{line}}
		}
		return []node{&continueNode{line}}
	case "extends", "include", "import", "from":
		p.fail("'%s' needs other templates, a chat template stands alone", word)
	default:
		p.fail("unknown tag '%s'", word)
	}
	return nil
}

func (p *parser) ifStatement(line pos) node {
	n := &ifNode{pos: line}
	for {
		n.conds = append(n.conds, p.tuple(false))
		body, end := p.block("elif", "else", "endif")
		n.bodies = append(n.bodies, body)
		if end == "elif" {
			continue
		}
		if end == "else" {
			n.orElse, _ = p.block("endif")
		}
		return n
	}
}

func (p *parser) forStatement(line pos) node {
	n := &forNode{pos: line, target: p.target("in")}
	p.expectWord("in")
	n.iter = p.tuple(false, "recursive")
	if p.skipWord("if") {
		n.filter = p.expression()
	}
	n.recursive = p.skipWord("recursive")
	p.loops++
	seen := p.seen
	body, end := p.block("else", "endfor")
	p.loops--
	n.body, n.captured = body, p.seen > seen
	if end == "else" {
		n.orElse, _ = p.block("endfor")
	}
	return n
}

func (p *parser) setStatement(line pos) node {
	t := p.target("")
	if p.skipOp("=") {
		return &setNode{line, t, p.tuple(true)}
	}
	fs := p.filters()
	body, _ := p.block("endset")
	return &setBlockNode{line, t, fs, body}
}

func (p *parser) withStatement(line pos) node {
	n := &withNode{pos: line}
	for !p.is(tokBlockEnd) {
		if n.targets != nil {
			p.expectOp(",")
		}
		n.targets = append(n.targets, p.target(""))
		p.expectOp("=")
		n.values = append(n.values, p.expression())
	}
	n.body, _ = p.block("endwith")
	return n
}

func (p *parser) callStatement(line pos) node {
	m := &macroNode{pos: line, name: "caller"}
	if p.isOp("(") {
		p.signature(m)
	}
	call, ok := p.expression().(*callExpr)
	if !ok {
		p.fail("expected a call")
	}
	p.macroBody(m, "endcall")
	return &callNode{line, m, call}
}

func (p *parser) macroBody(m *macroNode, end string) {
	p.macros = append(p.macros, m)
	p.seen++
	loops := p.loops
	p.loops = 0
	m.body, _ = p.block(end)
	p.loops = loops
	p.macros = p.macros[:len(p.macros)-1]
}

func (p *parser) signature(m *macroNode) {
	p.expectOp("(")
	for !p.isOp(")") {
		if m.params != nil {
			p.expectOp(",")
		}
		name := p.expectName()
		m.params, m.syms = append(m.params, name), append(m.syms, p.sym(name))
		if p.skipOp("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if m.defaults != nil {
			p.fail("parameter without a default after one with a default")
		}
	}
	p.expectOp(")")
}

// target parses what is assigned to; end is the word that follows a tuple of targets, if any.
func (p *parser) target(end string) target {
	first := p.targetItem()
	if !p.isOp(",") {
		return first
	}
	t := target{isTuple: true, tuple: []target{first}}
	for p.skipOp(",") {
		if end != "" && p.isWord(end) || p.isOp("=") || p.is(tokBlockEnd) || p.isOp(")") {
			break
		}
		t.tuple = append(t.tuple, p.targetItem())
	}
	return t
}

func (p *parser) targetItem() target {
	defer p.enter()()
	if p.skipOp("(") {
		t := p.target("")
		p.expectOp(")")
		return t
	}
	t := target{name: p.expectName()}
	if _, ok := constants[t.name]; ok {
		p.fail("cannot assign to '%s'", t.name)
	}
	t.sym = p.sym(t.name)
	if p.skipOp(".") {
		t.attr = p.expectName()
	}
	return t
}
