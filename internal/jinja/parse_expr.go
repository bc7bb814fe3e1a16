package jinja

import (
	"slices"
	"strings"
)

// tuple parses one expression, or several separated by commas as a tuple. cond allows inline conditionals; ends are
// words that end a tuple after a trailing comma.
func (p *parser) tuple(cond bool, ends ...string) expr {
	parse := p.expression
	if !cond {
		parse = p.or
	}
	line := p.line()
	first := parse()
	if !p.isOp(",") {
		return first
	}
	t := &listExpr{pos: line, items: []expr{first}, tuple: true}
	for p.skipOp(",") {
		if p.is(tokVarEnd) || p.is(tokBlockEnd) || p.isOp(")") || p.is(tokName) && slices.Contains(ends, p.cur().text) {
			break
		}
		t.items = append(t.items, parse())
	}
	return t
}

func (p *parser) expression() expr {
	defer p.enter()()
	line := p.line()
	e := p.or()
	for p.skipWord("if") {
		c := &condExpr{pos: line, then: e, cond: p.or()}
		if p.skipWord("else") {
			c.orElse = p.expression()
		}
		e = c
	}
	return e
}

func (p *parser) or() expr {
	e := p.and()
	for p.isWord("or") {
		line := pos(p.take().line)
		e = &logicExpr{line, false, e, p.and()}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	for p.isWord("and") {
		line := pos(p.take().line)
		e = &logicExpr{line, true, e, p.not()}
	}
	return e
}

func (p *parser) not() expr {
	defer p.enter()()
	if p.isWord("not") {
		line := pos(p.take().line)
		return &unaryExpr{line, '!', p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	line := p.line()
	first := p.additive()
	var c *compareExpr
	for {
		op := ""
		switch t := p.cur(); {
		case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text):
			op = t.text
		case p.isWord("in"):
			op = "in"
		case p.isWord("not") && p.peek().kind == tokName && p.peek().text == "in":
			op = "not in"
			p.at++
		}
		if op == "" {
			break
		}
		p.at++
		if c == nil {
			c = &compareExpr{pos: line, first: first}
		}
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.additive())
	}
	if c == nil {
		return first
	}
	return c
}

// binary parses a left-associative chain of the given operators over operands parsed by next.
func (p *parser) binary(next func() expr, ops ...string) expr {
	e := next()
	for p.is(tokOp) && slices.Contains(ops, p.cur().text) {
		t := p.take()
		e = &binExpr{pos(t.line), t.text, e, next()}
	}
	return e
}

// additive keeps a chain of additions together, so that strings are joined once.
func (p *parser) additive() expr {
	e := p.concat()
	for p.isOp("+") || p.isOp("-") {
		t := p.take()
		next := p.concat()
		if t.text == "-" {
			e = &binExpr{pos(t.line), "-", e, next}
			continue
		}
		if s, ok := e.(*sumExpr); ok && !s.closed {
			s.items = append(s.items, next)
			continue
		}
		e = &sumExpr{pos: pos(t.line), items: []expr{e, next}}
	}
	if s, ok := e.(*sumExpr); ok {
		s.closed = true
	}
	return e
}

func (p *parser) concat() expr {
	line := p.line()
	e := p.multiplicative()
	if !p.isOp("~") {
		return e
	}
	c := &concatExpr{line, []expr{e}}
	for p.skipOp("~") {
		c.items = append(c.items, p.multiplicative())
	}
	return c
}

func (p *parser) multiplicative() expr { return p.binary(p.power, "*", "/", "//", "%") }

// power is left-associative in Jinja, unlike Python.
func (p *parser) power() expr { return p.binary(func() expr { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) expr {
	defer p.enter()()
	var e expr
	if p.isOp("-") || p.isOp("+") {
		t := p.take()
		e = &unaryExpr{pos(t.line), t.text[0], p.unary(false)}
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	for filters {
		switch {
		case p.skipOp("|"):
			e = p.filter(e)
		case p.isWord("is"):
			e = p.test(e)
		case p.isOp("("):
			e = p.call(e)
		default:
			return e
		}
	}
	return e
}

// constants are names that stand for values and cannot be assigned to.
var constants = map[string]Value{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary() expr {
	t := p.cur()
	line := pos(t.line)
	switch {
	case t.kind == tokName:
		p.at++
		if c, ok := constants[t.text]; ok {
			return &constExpr{line, c}
		}
		for _, m := range p.macros {
			m.usesCaller = m.usesCaller || t.text == "caller"
			m.usesVarargs = m.usesVarargs || t.text == "varargs"
			m.usesKwargs = m.usesKwargs || t.text == "kwargs"
		}
		if g, ok := globals[t.text]; ok {
			return &nameExpr{line, p.sym(t.text), g}
		}
		return &nameExpr{line, p.sym(t.text), undefined{"'" + t.text + "' is undefined"}}
	case t.kind == tokString:
		var s strings.Builder
		for p.is(tokString) {
			s.WriteString(p.take().text)
		}
		return &constExpr{line, s.String()}
	case t.kind == tokNumber:
		p.at++
		return &constExpr{line, t.num}
	case p.skipOp("("):
		if p.skipOp(")") {
			return &listExpr{pos: line, tuple: true}
		}
		e := p.tuple(true)
		p.expectOp(")")
		return e
	case p.skipOp("["):
		return p.list(line)
	case p.skipOp("{"):
		return p.dict(line)
	}
	p.fail("unexpected %s", t.describe())
	return nil
}

func (p *parser) list(line pos) expr {
	l := &listExpr{pos: line}
	p.listed("]", func() { l.items = append(l.items, p.expression()) })
	return l
}

func (p *parser) dict(line pos) expr {
	d := &dictExpr{pos: line}
	p.listed("}", func() {
		d.keys = append(d.keys, p.expression())
		p.expectOp(":")
		d.values = append(d.values, p.expression())
	})
	return d
}

// listed parses items up to end, with commas between them and perhaps one behind them.
func (p *parser) listed(end string, item func()) {
	for first := true; !p.isOp(end); first = false {
		if !first {
			p.expectOp(",")
			if p.isOp(end) {
				break
			}
		}
		item()
	}
	p.expectOp(end)
}

// postfix parses attributes, subscripts and calls.
func (p *parser) postfix(e expr) expr {
	for {
		line := p.line()
		switch {
		case p.skipOp("."):
			switch t := p.take(); {
			case t.kind == tokName:
				e = &attrExpr{line, e, newMember(t.text)}
			case t.kind == tokNumber:
				e = &itemExpr{pos: line, obj: e, key: &constExpr{line, t.num}}
			default:
				p.fail("expected a name or number after '.'")
			}
		case p.skipOp("["):
			e = newItem(line, e, p.subscripts(line))
		case p.isOp("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

func newItem(line pos, obj, key expr) expr {
	e := &itemExpr{pos: line, obj: obj, key: key}
	if c, ok := key.(*constExpr); ok {
		if name, ok := c.value.(string); ok {
			m := newMember(name)
			e.member = &m
		}
	}
	return e
}

func (p *parser) subscripts(line pos) expr {
	var keys []expr
	for !p.isOp("]") {
		if keys != nil {
			p.expectOp(",")
		}
		keys = append(keys, p.subscript())
	}
	p.expectOp("]")
	if len(keys) == 1 {
		return keys[0]
	}
	return &listExpr{pos: line, items: keys, tuple: true}
}

func (p *parser) subscript() expr {
	s := &sliceExpr{pos: p.line()}
	if !p.isOp(":") {
		e := p.expression()
		if !p.isOp(":") {
			return e
		}
		s.start = e
	}
	p.expectOp(":")
	if !p.isOp(":") && !p.isOp("]") && !p.isOp(",") {
		s.stop = p.expression()
	}
	if p.skipOp(":") && !p.isOp("]") && !p.isOp(",") {
		s.step = p.expression()
	}
	return s
}

func (p *parser) call(fn expr) expr {
	line := p.line()
	return &callExpr{line, fn, p.args()}
}

func (p *parser) args() argExprs {
	var a argExprs
	var named map[string]bool
	p.expectOp("(")
	p.listed(")", func() {
		switch {
		case p.isOp("*"):
			if a.star != nil || a.star2 != nil {
				p.fail("invalid syntax in call")
			}
			p.at++
			a.star = p.expression()
		case p.isOp("**"):
			if a.star2 != nil {
				p.fail("invalid syntax in call")
			}
			p.at++
			a.star2 = p.expression()
		case p.is(tokName) && p.peek().kind == tokOp && p.peek().text == "=":
			if a.star2 != nil {
				p.fail("invalid syntax in call")
			}
			name := p.take().text
			if named[name] {
				p.fail("keyword argument repeated: %s", name)
			}
			if named == nil {
				named = map[string]bool{}
			}
			named[name] = true
			p.at++
			a.names = append(a.names, name)
			a.values = append(a.values, p.expression())
		default:
			if a.star != nil || a.star2 != nil || a.names != nil {
				p.fail("positional argument after keyword argument")
			}
			a.list = append(a.list, p.expression())
		}
	})
	return a
}

// filter parses a filter's name and arguments, after the "|".
func (p *parser) filter(obj expr) *filterExpr {
	f := &filterExpr{pos: p.line(), obj: obj, fn: filterNamed(p.dottedName())}
	if p.isOp("(") {
		f.args = p.args()
	}
	return f
}

func (p *parser) filters() []*filterExpr {
	var fs []*filterExpr
	for p.skipOp("|") {
		fs = append(fs, p.filter(nil))
	}
	return fs
}

func (p *parser) dottedName() string {
	name := []string{p.expectName()}
	for p.skipOp(".") {
		name = append(name, p.expectName())
	}
	return strings.Join(name, ".")
}

func (p *parser) test(obj expr) expr {
	line := pos(p.take().line)
	negated := p.skipWord("not")
	t := &testExpr{pos: line, obj: obj, fn: testNamed(p.dottedName())}
	switch c := p.cur(); {
	case p.isOp("("):
		t.args = p.args()
	case c.kind == tokString, c.kind == tokNumber, p.isOp("["), p.isOp("{"),
		c.kind == tokName && c.text != "else" && c.text != "or" && c.text != "and":
		if c.kind == tokName && c.text == "is" {
			p.fail("tests cannot be chained with 'is'")
		}
		t.args.list = []expr{p.postfix(p.primary())}
	}
	if negated {
		return &unaryExpr{line, '!', t}
	}
	return t
}
