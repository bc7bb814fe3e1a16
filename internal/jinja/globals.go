package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxRange is the sandbox's limit on the length of a range.
const maxRange = 100000

var globals map[string]Value

func init() {
	globals = map[string]Value{}
	for name, f := range map[string]func(r *renderer, a *args) Value{
		"raise_exception": func(r *renderer, a *args) Value {
			r.throw(Raised, "%s", r.str(a.need(r, 0, "message")))
			return nil
		},
		"strftime_now": func(r *renderer, a *args) Value {
			format := r.str(a.need(r, 0, "format"))
			r.spend(8 * len(format)) // a letter of it may print a whole date
			s := strftime(r.now(), format)
			r.made(len(s))
			return s
		},
		"range":     rangeGlobal,
		"dict":      func(r *renderer, a *args) Value { return r.newDict(a) },
		"namespace": namespaceGlobal,
		"cycler": func(r *renderer, a *args) Value {
			if len(a.pos) == 0 {
				r.fail("at least one item has to be provided")
			}
			return &cycler{items: a.pos}
		},
		"joiner": func(r *renderer, a *args) Value {
			sep, used := r.str(a.get(0, "sep", ", ")), false
			return &function{"joiner", func(*renderer, *args) Value {
				if !used {
					used = true
					return ""
				}
				return sep
			}}
		},
	} {
		globals[name] = &function{name, f}
	}
}

func rangeGlobal(r *renderer, a *args) Value {
	a.atMost(r, 3)
	v := []int64{0, 0, 1}
	for i, p := range a.pos {
		n := r.integer(p)
		if n < -1<<60 || n > 1<<60 {
			r.fail("range too big, the sandbox blocks ranges larger than %d", maxRange)
		}
		v[i] = n
	}
	switch {
	case len(a.pos) == 0:
		r.fail("range expected at least 1 argument, got 0")
	case len(a.pos) == 1:
		v[0], v[1] = 0, v[0]
	case v[2] == 0:
		r.fail("range() arg 3 must not be zero")
	}
	rv := rangeValue{v[0], v[1], v[2]}
	if rv.len() > maxRange {
		r.fail("range too big, the sandbox blocks ranges larger than %d", maxRange)
	}
	return rv
}

// newDict is dict(mapping or pairs, **keywords).
func (r *renderer) newDict(a *args) *Dict {
	d := NewDict()
	if len(a.pos) > 1 {
		r.fail("dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		if src, ok := a.pos[0].(*Dict); ok {
			r.spend(entrySteps * src.Len())
			d = src.Clone()
		} else {
			for _, p := range r.iterate(a.pos[0]) {
				kv := r.iterate(p)
				if len(kv) != 2 {
					r.fail("dictionary update sequence element has length %d; 2 is required", len(kv))
				}
				r.setKey(d, kv[0], kv[1])
			}
		}
	}
	for _, k := range a.named {
		r.setKey(d, k.name, k.val)
	}
	return d
}

func namespaceGlobal(r *renderer, a *args) Value {
	d := r.newDict(a)
	r.made(16 * d.Len())
	for _, k := range d.Keys() {
		if strings.HasPrefix(k, "_") {
			r.fail("cannot store the attribute '%s' on a namespace: names that begin with an underscore are refused", k)
		}
	}
	return &namespace{d}
}

// cycler is the object of the cycler global.
type cycler struct {
	items []Value
	at    int
}

func (c *cycler) attr(name string) (Value, bool) {
	switch name {
	case "current":
		return c.items[c.at], true
	case "next":
		return &function{name, func(*renderer, *args) Value {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}}, true
	case "reset":
		return &function{name, func(*renderer, *args) Value { c.at = 0; return nil }}, true
	}
	return nil, false
}

// strftimeLayouts are the directives that a Go layout covers.
var strftimeLayouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'm': "01", 'y': "06", 'Y': "2006",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'z': "", 'Z': "", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
	'R': "15:04", 'r': "03:04:05 PM", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// strftime formats t as datetime.now().strftime does in the C locale; the reference's time has no zone, so %z and %Z
// print nothing. A "-" after the percent sign drops leading zeros.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		from := i
		i++
		strip := format[i] == '-' && i+1 < len(format)
		if strip {
			i++
		}
		s, ok := strftimeField(t, format[i])
		if !ok {
			b.WriteString(format[from : i+1])
			continue
		}
		if strip {
			if s = strings.TrimLeft(s, "0 "); s == "" {
				s = "0"
			}
		}
		b.WriteString(s)
	}
	return b.String()
}

func strftimeField(t time.Time, c byte) (string, bool) {
	if layout, ok := strftimeLayouts[c]; ok {
		return t.Format(layout), true
	}
	isoYear, isoWeek := t.ISOWeek()
	switch c {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'w':
		return strconv.Itoa(int(t.Weekday())), true
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1), true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'G':
		return strconv.Itoa(isoYear), true
	case 'V':
		return fmt.Sprintf("%02d", isoWeek), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1), true
	}
	return "", false
}
