package jsonschema

import (
	"cmp"
	"fmt"
	"strings"

	"hearth/internal/grammar"
	"hearth/internal/grammar/regex"
)

// Parts of formats: names, digits and addresses as the RFCs have them.
const (
	days31    = `(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])`
	days30    = `(?:0[469]|11)-(?:0[1-9]|[12]\d|30)`
	days28    = `02-(?:0[1-9]|1\d|2[0-8])`
	leapYears = `(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)`
	date      = `(?:\d{4}-(?:` + days31 + `|` + days30 + `|` + days28 + `)|` + leapYears + `-02-29)`
	offset    = `(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
	clock     = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,30})?` + offset
	hms       = `T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)`
	ymd       = `(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)`

	label = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	host  = `(?=.{1,253}$)` + label + `(?:\.` + label + `)*`
	octet = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	ipv4  = octet + `(?:\.` + octet + `){3}`
	h16   = `[0-9A-Fa-f]{1,4}`
	ls32  = `(?:` + h16 + `:` + h16 + `|` + ipv4 + `)`
	ipv6  = `(?:(?:` + h16 + `:){6}` + ls32 +
		`|::(?:` + h16 + `:){5}` + ls32 +
		`|(?:` + h16 + `)?::(?:` + h16 + `:){4}` + ls32 +
		`|(?:(?:` + h16 + `:){0,1}` + h16 + `)?::(?:` + h16 + `:){3}` + ls32 +
		`|(?:(?:` + h16 + `:){0,2}` + h16 + `)?::(?:` + h16 + `:){2}` + ls32 +
		`|(?:(?:` + h16 + `:){0,3}` + h16 + `)?::` + h16 + `:` + ls32 +
		`|(?:(?:` + h16 + `:){0,4}` + h16 + `)?::` + ls32 +
		`|(?:(?:` + h16 + `:){0,5}` + h16 + `)?::` + h16 +
		`|(?:(?:` + h16 + `:){0,6}` + h16 + `)?::)`
	atom   = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
	quoted = `"(?:[ !#-\[\]-~]|\\[ -~])*"`

	hexes   = `%[0-9A-Fa-f]{2}`
	ascii   = `A-Za-z0-9._~\-`
	beyond  = `\u{a0}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{ffef}\u{10000}-\u{1fffd}\u{20000}-\u{2fffd}\u{30000}-\u{3fffd}\u{e1000}-\u{efffd}`
	pointer = `(?:/(?:[^/~]|~[01])*)*`
)

// address is a URI's parts after its scheme, or a reference, of characters that stand for themselves.
func address(unreserved string, reference bool) string {
	char := func(more string) string { return `(?:[` + unreserved + `!$&'()*+,;=` + more + `]|` + hexes + `)` }
	pchar := char(":@")
	authority := `//(?:` + char(":") + `*@)?(?:\[(?:` + ipv6 + `|[vV][0-9A-Fa-f]+\.[` + unreserved + `!$&'()*+,;=:]+)\]|` + char("") + `*)(?::\d*)?`
	path := `(?:` + authority + `(?:/` + pchar + `*)*|/(?:` + pchar + `+(?:/` + pchar + `*)*)?|` + pchar + `+(?:/` + pchar + `*)*|)`
	query := `[/?]`
	if unreserved != ascii {
		query = `[/?\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}]`
	}
	tail := `(?:\?(?:` + pchar + `|` + query + `)*)?(?:#(?:` + pchar + `|[/?])*)?`
	scheme := `[A-Za-z][A-Za-z0-9+.-]*:`
	if !reference {
		return scheme + path + tail
	}
	relative := `(?:` + authority + `(?:/` + pchar + `*)*|/(?:` + pchar + `+(?:/` + pchar + `*)*)?|` + char("@") + `+(?:/` + pchar + `*)*|)`
	return `(?:` + scheme + path + `|` + relative + `)` + tail
}

// leapSecond is the second that some days have more, at 23:59:60 UTC, in offsets of whole and half hours.
func leapSecond() string {
	alts := []string{`23:59:60(?:\.\d{1,30})?[zZ]`}
	for _, minute := range []int{0, 30} {
		for at := minute - 24*60; at < 24*60; at += 60 {
			if at == -24*60 {
				continue
			}
			sign, ahead, local := "+", at, (23*60+59+at+24*60)%(24*60)
			if at < 0 {
				sign, ahead = "-", -at
			}
			alts = append(alts, fmt.Sprintf(`%02d:%02d:60(?:\.\d{1,30})?\%s%02d:%02d`, local/60, local%60, sign, ahead/60, ahead%60))
		}
	}
	return strings.Join(alts, "|")
}

// formats are those that are kept to, each as a regular expression for the whole text. Of an empty one it is known that there is
// none; others are annotations.
var formats = map[string]string{
	"date":                  date,
	"time":                  clock + `|` + leapSecond(),
	"date-time":             date + `[tT](?:` + clock + `|` + leapSecond() + `)`,
	"duration":              `P(?:\d+W|` + ymd + `(?:` + hms + `)?|` + hms + `)`,
	"hostname":              host,
	"ipv4":                  ipv4,
	"ipv6":                  ipv6,
	"email":                 `(?:` + atom + `(?:\.` + atom + `)*|` + quoted + `)@(?:` + host + `|\[(?:` + ipv4 + `|IPv6:` + ipv6 + `)\])`,
	"idn-email":             `(?:[^\s@"(),:;<>\[\]\\]+|"[^"\\\x00-\x1f]*")@[^\s@"(),:;<>\[\]\\]+`,
	"uuid":                  `[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`,
	"uri":                   address(ascii, false),
	"uri-reference":         address(ascii, true),
	"iri":                   address(ascii+beyond, false),
	"iri-reference":         address(ascii+beyond, true),
	"uri-template":          `(?:[^\x00-\x20"<>\\^` + "`" + `{|}%\x7f]|` + hexes + `|\{[+#./;?&=,!@|]?` + variable + `(?:,` + variable + `)*\})*`,
	"json-pointer":          pointer,
	"relative-json-pointer": `(?:0|[1-9]\d*)(?:#|` + pointer + `)`,
	"regex":                 "",
	"idn-hostname":          "",
}

const variable = `(?:[A-Za-z0-9_]|` + hexes + `)(?:\.?(?:[A-Za-z0-9_]|` + hexes + `))*(?::[1-9]\d{0,3}|\*)?`

// written are formats of which a model writes less than there is: what programs that read them take, which know no year 0, no
// second 60 and only so long a time; and host names without labels in which a computer spells others, as it takes more to tell
// which of these there are.
var written = map[string]string{
	"date":      plainDate,
	"time":      plainClock,
	"date-time": plainDate + `T` + plainClock,
	"duration":  strings.ReplaceAll(formats["duration"], `\d+`, `\d{1,6}`),
	"hostname":  `(?=.{1,253}$)(?!..--|.*\...--)` + label + `(?:\.` + label + `)*`,
}

const (
	plainDate  = `(?!0000)` + date
	plainClock = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
)

// format is the texts of a format, within quotes; nil if there is no expression of them.
func (c *compiler) format(p pattern) *grammar.Expr {
	if e, ok := c.formatExprs[p]; ok {
		return e
	}
	is := formats[p.text]
	if !p.not { // what is not of a format is of nothing that it has
		is = cmp.Or(written[p.text], is)
	}
	e := formatExpr(c.b, is, c.o.chars)
	c.formatExprs[p] = e
	return e
}

func formatExpr(b *grammar.Builder, is string, chars func(*grammar.Builder, []grammar.RuneRange) *grammar.Expr) *grammar.Expr {
	if is == "" {
		return nil
	}
	e, err := regex.Compile(b, is, regex.Options{Flags: "s", Chars: chars})
	if err != nil {
		panic(stop{err})
	}
	return e
}

// ofFormat tells whether a text is of a format.
func (c *Checker) ofFormat(name, text string) bool {
	switch name {
	case "regex":
		c.need(4 + len(text))
		_, bad := regex.Check(text).(*regex.SyntaxError)
		return !bad
	case "idn-hostname":
		c.need(4 + len(text))
		return text != "" && !strings.ContainsAny(text, " \t\n/@")
	}
	k := "\xff" + name // no pattern
	e, ok := c.exprs[k]
	if !ok {
		c.work(func(b *grammar.Builder) { e = formatExpr(b, formats[name], nil) })
		c.exprs[k] = e
	}
	return c.tries(e, text)
}
