package grammar

// anyJSON is a rule for any value of JSON, as models write it.
func anyJSON(b *Builder) *Rule {
	value, text := b.Rule("json"), jsonText(b, 0, -1)
	var list = func(open, close string, element *Expr) *Expr {
		return b.Seq(b.Literal(open), b.Optional(b.Seq(element, b.Repeat(b.Seq(b.Literal(", "), element), 0, -1))), b.Literal(close))
	}
	var digit, first Set
	digit.Add('0', '9')
	first.Add('1', '9')
	digits := b.Repeat(b.Byte(digit), 1, -1)
	number := b.Seq(b.Optional(b.Literal("-")), b.Or(b.Literal("0"), b.Seq(b.Byte(first), b.Repeat(b.Byte(digit), 0, -1))),
		b.Optional(b.Seq(b.Literal("."), digits)), b.Optional(b.Seq(b.Choice("e", "E"), b.Optional(b.Choice("+", "-")), digits)))
	array, object := b.Rule("array"), b.Rule("object")
	b.Define(array, list("[", "]", b.Ref(value)))
	b.Define(object, list("{", "}", b.Seq(b.Ref(text), b.Literal(": "), b.Ref(value))))
	b.Define(value, b.Or(b.Ref(text), number, b.Ref(array), b.Ref(object), b.Choice("true", "false", "null")))
	return value
}

// jsonText is a rule for strings of so many characters.
func jsonText(b *Builder, least, most int) *Rule {
	r := b.Rule("string")
	b.Define(r, b.Seq(b.Literal(`"`), b.Repeat(jsonChar(b), least, most), b.Literal(`"`)))
	return r
}

func jsonChar(b *Builder) *Expr {
	var hex Set
	hex.Add('0', '9')
	hex.Add('a', 'f')
	plain := b.Runes(OtherRanges(RuneRange{0, 0x1F}, RuneRange{'"', '"'}, RuneRange{'\\', '\\'})...)
	return b.Or(plain, b.Seq(b.Literal(`\`), b.Or(b.Choice(`"`, `\`, "b", "f", "n", "r", "t"), b.Seq(b.Literal("u"), b.Repeat(b.Byte(hex), 4, 4)))))
}
