package jsonschema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"hearth/internal/grammar"
	"hearth/internal/grammar/regex"
	"hearth/internal/schema"
)

// escapes are how the characters of ASCII are written that are not written as they are.
var escapes = func() (list [utf8.RuneSelf]string) {
	for c := range ' ' {
		list[c] = fmt.Sprintf(`\u%04x`, c)
	}
	for c, s := range map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`} {
		list[c] = s
	}
	return list
}()

// asTheyAre are the characters that are.
var asTheyAre = []grammar.RuneRange{{Lo: ' ', Hi: '"' - 1}, {Lo: '"' + 1, Hi: '\\' - 1}, {Lo: '\\' + 1, Hi: utf8.MaxRune}}

// chars is how a character of a set is written in a string: as it is, where JSON allows that, else in one way.
func chars(b *grammar.Builder, set []grammar.RuneRange) *grammar.Expr {
	var plain []grammar.RuneRange
	var escaped []string
	for _, r := range set {
		for _, p := range asTheyAre {
			if p.Lo, p.Hi = max(p.Lo, r.Lo), min(p.Hi, r.Hi); p.Lo <= p.Hi {
				plain = append(plain, p)
			}
		}
		for c := r.Lo; c <= min(r.Hi, '\\'); c++ {
			if escapes[c] != "" {
				escaped = append(escaped, escapes[c])
			}
		}
	}
	return b.Or(b.Runes(plain...), b.Choice(escaped...))
}

// spelled is a text within quotes, as chars writes it.
func spelled(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c < utf8.RuneSelf && escapes[c] != "" {
			b.WriteString(escapes[c])
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// Spelled is the texts of an expression as they are written within quotes.
func Spelled(b *grammar.Builder, e *grammar.Expr) *grammar.Expr {
	return b.Spelled(e, func(c byte) string {
		if c < utf8.RuneSelf && escapes[c] != "" {
			return escapes[c]
		}
		return string([]byte{c})
	})
}

// write writes a value with members in the order they have in it.
func (o Options) write(b *strings.Builder, v *schema.Node) {
	comma, colon := o.between()
	switch v.Kind() {
	case schema.Number:
		d, _ := newDecimal(v.Text)
		b.WriteString(d.String())
	case schema.String:
		b.WriteString(o.quoted(v.Text))
	case schema.Array:
		b.WriteByte('[')
		for i := range v.Items {
			if i > 0 {
				b.WriteString(comma)
			}
			o.write(b, &v.Items[i])
		}
		b.WriteByte(']')
	case schema.Object:
		b.WriteByte('{')
		for i, m := range v.Written() {
			if i > 0 {
				b.WriteString(comma)
			}
			b.WriteString(o.name(m.Key) + colon)
			o.write(b, m)
		}
		b.WriteByte('}')
	default:
		b.WriteString(o.word(v.Text))
	}
}

func (o Options) between() (comma, colon string) {
	if o.Compact {
		return ",", ":"
	}
	return ", ", ": "
}

// text is the strings of a form, without quotes.
func (c *compiler) text(f *form) *grammar.Expr {
	b := c.b
	e := c.repeat(c.char, f.count(characters))
	free := b.Repeat(c.char, 0, -1)
	hold := func(p pattern, is *grammar.Expr) {
		switch {
		case p.not: // once it is found free is what may follow it, so that nothing of both is left without a search
			e = b.Except(b.And(free, e), is)
		case e == free: // which a pattern is a part of
			e = is
		default:
			e = b.And(e, is)
		}
	}
	for _, s := range f.rules {
		for _, p := range s.text.patterns {
			if is := c.compiled(s, "pattern", p.text); is != nil {
				hold(p, is)
			}
		}
		for _, p := range s.text.formats {
			if is := c.format(p); is != nil {
				hold(p, is)
			} else {
				c.lacks(s.at, "format", p.text+" is no regular language")
			}
		}
	}
	return c.without(f, text, e)
}

// compiled is a pattern for what is within quotes. It is nil, and told, if it can't be held.
func (c *compiler) compiled(s *rule, keyword, p string) *grammar.Expr {
	if e, ok := c.patternExprs[p]; ok {
		return e
	}
	e, err := regex.Compile(c.b, p, regex.Options{Search: true, Chars: c.o.chars})
	switch err := err.(type) {
	case nil:
	case *regex.UnsupportedError:
		c.lacks(s.at, keyword, err.Error())
		return nil
	default:
		panic(stop{err})
	}
	c.patternExprs[p] = e
	return e
}

// without leaves out the values of some kinds that a form excludes.
func (c *compiler) without(f *form, of kinds, e *grammar.Expr) *grammar.Expr {
	var out []*grammar.Expr
	b, d := c.b, digits{c.b}
	for _, s := range f.rules {
		for _, v := range s.not {
			if kindOf(v)&of == 0 {
				continue
			}
			if of == text {
				out = append(out, b.Literal(c.o.spelled(v.Text)))
				continue
			}
			x, _ := newDecimal(v.Text)
			whole, frac := x.parts()
			zeros := b.Optional(b.Seq(b.Literal("."), d.class('0', '0'), d.zeros()))
			if frac != "" {
				zeros = b.Seq(b.Literal("."+frac), d.zeros())
			}
			sign := b.Empty()
			if x.neg {
				sign = b.Literal("-")
			}
			if x.digits == "" {
				sign = b.Optional(b.Literal("-"))
			}
			out = append(out, b.Seq(sign, b.Literal(whole), zeros))
		}
	}
	if len(out) == 0 {
		return e
	}
	if of == number { // which has other ways to write what is left out
		e = b.Except(e, b.Seq(b.Any(), b.Choice("e", "E"), b.Any()))
	}
	return b.Except(e, out...)
}

// names is the strings that rules take, without quotes.
func (c *compiler) names(rules []*rule) *grammar.Expr {
	var alts []*grammar.Expr
	for _, f := range c.forms(rules) {
		if values, ok := c.values(f); ok {
			var list []string
			for _, v := range values {
				if v.Kind() == schema.String {
					list = append(list, c.o.spelled(v.Text))
				}
			}
			alts = append(alts, c.b.Choice(list...))
		} else if f.kinds&text != 0 {
			alts = append(alts, c.text(f))
		}
	}
	return c.b.Or(alts...)
}

// everyChar is all characters.
var everyChar = []grammar.RuneRange{{Lo: 0, Hi: utf8.MaxRune}}
