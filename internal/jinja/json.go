package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON reads one JSON value as Python's json.loads does: objects become Dicts in the order of their keys (the last
// of a repeated key wins, at the place of the first), numbers without fraction or exponent become ints of any size, all
// others floats.
func FromJSON(data []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decode(d, 0)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return v, nil
}

func decode(d *json.Decoder, depth int) (Value, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxValueDepth)
	}
	t, err := d.Token()
	if err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch x := t.(type) {
	case json.Delim:
		if x == '[' {
			return decodeArray(d, depth)
		}
		return decodeObject(d, depth)
	case json.Number:
		return number(string(x))
	}
	return t, nil // nil, bool or string
}

func decodeArray(d *json.Decoder, depth int) (Value, error) {
	l := new(List)
	for d.More() {
		v, err := decode(d, depth+1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := d.Token()
	return l, err
}

func decodeObject(d *json.Decoder, depth int) (Value, error) {
	m := NewDict()
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := decode(d, depth+1)
		if err != nil {
			return nil, err
		}
		m.Set(k.(string), v)
	}
	_, err := d.Token()
	return m, err
}

func number(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !math.IsInf(f, 0) { // out of range is ±Inf, as in Python
			return nil, err
		}
		return f, nil
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("integer with more than %d digits", maxDigits)
	}
	z, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("bad number %q", s)
	}
	return z, nil
}

// dumper writes JSON as Python's json.dumps does.
type dumper struct {
	r             *renderer
	b             strings.Builder
	ascii, sort   bool
	indent        string
	pretty        bool
	itemSep, kSep string
}

// newline starts a line at a level when indenting.
func (d *dumper) newline(level int) {
	if d.pretty {
		n := 1 + level*len(d.indent)
		d.r.checkSize(d.b.Len() + n)
		d.r.spend(n>>5 + level>>3)
		d.b.WriteByte('\n')
		for range level {
			d.b.WriteString(d.indent)
		}
	}
}

func (d *dumper) dump(v Value, level int) {
	if level > maxValueDepth {
		tooDeep()
	}
	d.r.step()
	d.r.checkSize(d.b.Len())
	switch x := v.(type) {
	case string:
		d.string(x)
	case Markup:
		d.string(string(x))
	case *List, Tuple:
		items, _ := sequence(x)
		d.array(items, level)
	case *Dict:
		d.object(x, level)
	case nil, bool, int64, *big.Int, float64:
		d.b.WriteString(d.r.jsonScalar(v))
	default:
		d.r.fail("Object of type %s is not JSON serializable", typeName(v))
	}
}

// jsonScalar is the JSON of a value that is neither string nor container.
func (r *renderer) jsonScalar(v Value) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(x)
	case float64:
		switch {
		case math.IsNaN(x):
			return "NaN"
		case math.IsInf(x, 1):
			return "Infinity"
		case math.IsInf(x, -1):
			return "-Infinity"
		}
	}
	return r.repr(v)
}

func (d *dumper) array(items []Value, level int) {
	if len(items) == 0 {
		d.b.WriteString("[]")
		return
	}
	d.b.WriteByte('[')
	for i, e := range items {
		if i > 0 {
			d.separator(d.itemSep)
		}
		d.newline(level + 1)
		d.dump(e, level+1)
	}
	d.newline(level)
	d.b.WriteByte(']')
}

func (d *dumper) object(m *Dict, level int) {
	if m.Len() == 0 {
		d.b.WriteString("{}")
		return
	}
	entries := m.entries
	if d.sort {
		d.r.spend(entrySteps * len(entries))
		entries = append([]entry(nil), entries...)
		d.r.sortBy(len(entries), func(i int) Value { return entries[i].key }, func(order []int) {
			for i, j := range order {
				entries[i] = m.entries[j]
			}
		})
	}
	d.b.WriteByte('{')
	for i, e := range entries {
		if i > 0 {
			d.separator(d.itemSep)
		}
		d.newline(level + 1)
		switch k := e.key.(type) {
		case string:
			d.string(k)
		case Markup:
			d.string(string(k))
		case nil, bool, int64, *big.Int, float64:
			d.string(d.r.jsonScalar(k))
		default:
			d.r.fail("keys must be str, int, float, bool or None, not %s", typeName(k))
		}
		d.separator(d.kSep)
		d.dump(e.val, level+1)
	}
	d.newline(level)
	d.b.WriteByte('}')
}

func (d *dumper) separator(s string) {
	d.r.checkSize(d.b.Len() + len(s))
	d.r.spend(1 + len(s)>>5)
	d.b.WriteString(s)
}

func (d *dumper) string(s string) {
	b := &d.b
	d.r.mapped(len(s))
	b.WriteByte('"')
	start := 0
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		if esc := jsonEscape(r, d.ascii); esc != "" {
			d.r.step()
			b.WriteString(s[start:i])
			b.WriteString(esc)
			start = i + n
		}
		i += n
	}
	b.WriteString(s[start:])
	b.WriteByte('"')
}

// jsonEscape returns the escape of r inside a JSON string, "" if it stands for itself.
func jsonEscape(r rune, ascii bool) string {
	switch r {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	}
	switch {
	case r < 0x20, ascii && r > 0x7e && r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	case ascii && r >= 0x10000:
		hi, lo := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
	}
	return ""
}
