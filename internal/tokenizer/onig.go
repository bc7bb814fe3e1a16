package tokenizer

import (
	"fmt"
	"strings"
)

// translate rewrites an expression of the reference's engine (Oniguruma with Ruby's
// syntax) for ours (.NET's), which lacks possessive repeats and operations on
// classes and means something else by some characters. What it does not know it
// passes on.
func translate(pattern string) (string, error) {
	t := translator{in: pattern}
	for t.at < len(t.in) {
		if err := t.item(); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

type translator struct {
	in     string
	at     int
	out    strings.Builder
	atom   int   // where the last atom begins in out
	groups []int // where the open groups begin in out
}

// put writes s as one atom.
func (t *translator) put(s string, consumed int) {
	t.atom = t.out.Len()
	t.out.WriteString(s)
	t.at += consumed
}

// item translates what begins at the read position.
func (t *translator) item() error {
	switch c := t.in[t.at]; c {
	case '\\':
		return t.escape()
	case '[':
		class, err := t.class(0)
		if err == nil {
			t.put(class, 0)
		}
		return err
	case '(':
		t.groups = append(t.groups, t.out.Len())
		t.put("(", 1)
		t.flags()
	case ')':
		t.put(")", 1)
		if n := len(t.groups); n > 0 {
			t.atom, t.groups = t.groups[n-1], t.groups[:n-1]
		}
	case '^':
		t.put("(?m:^)", 1)
	case '$':
		t.put("(?m:$)", 1)
	case '*', '+', '?', '{':
		t.repeat()
	default:
		n := 1
		for t.at+n < len(t.in) && t.in[t.at+n]&0xC0 == 0x80 {
			n++
		}
		t.put(t.in[t.at:t.at+n], n)
	}
	return nil
}

// flags turns the m of a group's options, for Ruby a dot that matches line breaks,
// into s.
func (t *translator) flags() {
	rest := t.in[t.at:]
	if end := strings.IndexAny(rest, ":)"); strings.HasPrefix(rest, "?") && end > 0 && strings.Trim(rest[1:end], "imx-") == "" {
		t.out.WriteString(strings.ReplaceAll(rest[:end], "m", "s"))
		t.at += end
	}
}

const wordClass = `\p{L}\p{M}\p{Nd}\p{Pc}`

func (t *translator) escape() error {
	if t.at+1 >= len(t.in) {
		return fmt.Errorf("it ends after a backslash")
	}
	switch t.in[t.at+1] {
	case 'h':
		t.put("[0-9a-fA-F]", 2)
	case 'H':
		t.put("[^0-9a-fA-F]", 2)
	case 'w':
		t.put("["+wordClass+"]", 2)
	case 'W':
		t.put("[^"+wordClass+"]", 2)
	case 'p', 'P':
		n := 2
		if end := strings.IndexByte(t.in[t.at:], '}'); end > 0 {
			n = end + 1
		}
		t.put(t.in[t.at:t.at+n], n)
	default:
		t.put(t.in[t.at:t.at+2], 2)
	}
	return nil
}

// repeat translates a quantifier. One with + after it is possessive, except {n,m}+,
// which repeats a repeat.
func (t *translator) repeat() {
	n := 1
	counted := t.in[t.at] == '{'
	if counted {
		end := strings.IndexByte(t.in[t.at:], '}')
		if end < 0 || end == 1 || strings.Trim(t.in[t.at+1:t.at+end], "0123456789,") != "" {
			t.put(`\{`, 1)
			return
		}
		n = end + 1
	}
	quantifier := t.in[t.at : t.at+n]
	if counted && quantifier[1] == ',' {
		quantifier = "{0" + quantifier[1:]
	}
	t.at += n
	if t.at < len(t.in) && t.in[t.at] == '+' {
		all := t.out.String()
		group := "(?>"
		if counted {
			group = "(?:"
		} else {
			t.at++
		}
		t.out.Reset()
		t.out.WriteString(all[:t.atom] + group + all[t.atom:] + quantifier + ")")
		return
	}
	t.out.WriteString(quantifier)
	if t.at < len(t.in) && t.in[t.at] == '?' {
		t.out.WriteByte('?')
		t.at++
	}
}

const maxClassDepth = 8

// class translates the bracketed class at the read position, with classes inside it
// and intersections by &&, to an expression that matches one character.
func (t *translator) class(depth int) (string, error) {
	if depth > maxClassDepth {
		return "", fmt.Errorf("its classes are nested more than %d deep", maxClassDepth)
	}
	t.at++
	negated := t.at < len(t.in) && t.in[t.at] == '^'
	if negated {
		t.at++
	}
	var all []string // operands of &&
	var inner []string
	var plain strings.Builder
	operand := func() {
		if plain.Len() > 0 {
			inner = append(inner, "["+plain.String()+"]")
			plain.Reset()
		}
		if len(inner) > 0 {
			all = append(all, alternatives(inner))
		}
		inner = nil
	}
	for first := true; t.at < len(t.in); first = false {
		rest := t.in[t.at:]
		switch {
		case rest[0] == ']' && !first:
			t.at++
			if negated && len(inner) == 0 && len(all) == 0 {
				return "[^" + plain.String() + "]", nil
			}
			operand()
			return intersection(all, negated), nil
		case strings.HasPrefix(rest, "[:"):
			return "", fmt.Errorf("its class has a POSIX bracket, which is not supported")
		case rest[0] == '[':
			sub, err := t.class(depth + 1)
			if err != nil {
				return "", err
			}
			inner = append(inner, sub)
		case strings.HasPrefix(rest, "&&"):
			operand()
			t.at += 2
		case rest[0] == '\\' && len(rest) > 1:
			plain.WriteString(classEscape(rest[:2]))
			t.at += 2
		default:
			plain.WriteByte(rest[0])
			t.at++
		}
	}
	return "", fmt.Errorf("a class is not closed")
}

func classEscape(s string) string {
	switch s {
	case `\h`:
		return "0-9a-fA-F"
	case `\w`:
		return wordClass
	}
	return s
}

func alternatives(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return "(?:" + strings.Join(list, "|") + ")"
}

// intersection matches one character that all operands match.
func intersection(operands []string, negated bool) string {
	if len(operands) == 0 {
		return "(?!)"
	}
	var b strings.Builder
	last := len(operands) - 1
	for _, o := range operands[:last] {
		b.WriteString("(?=" + o + ")")
	}
	b.WriteString(operands[last])
	switch {
	case negated:
		return `(?:(?!` + b.String() + `)[\s\S])`
	case last > 0:
		return "(?:" + b.String() + ")"
	}
	return b.String()
}
