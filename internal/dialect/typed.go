package dialect

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// typed turns the text of a parameter into JSON of one of the types, and what is in it into what its schema says. Text that fits
// none of them is a string: a call must not fail over a wrong type, the tool's answer tells the model.
func (s *toolset) typed(text string, ts types, of *argType) string {
	v, kind := typedText(text, ts)
	if kind == "" || s.repair(kind) {
		if fit, ok := s.fitWithin(v, of, 1); ok {
			return fit
		}
		return v
	}
	if t := strings.TrimSpace(text); kind == RepairNumber && json.Valid([]byte(t)) {
		return t
	}
	return JSONString(text)
}

// yesOrNo is what else models write for a boolean. It counts only where there can be nothing else.
var yesOrNo = map[string]string{"yes": "true", "1": "true", "no": "false", "0": "false"}

// typedText also tells what kind of repair the text needed, "" for none.
func typedText(text string, ts types) (string, Repair) {
	s := strings.TrimSpace(text)
	if ts == 0 { // nothing declared: only what can hardly be meant as text is taken as JSON
		ts = typeString | typeArray | typeObject
	}
	if ts&typeNull != 0 && (s == "null" || s == "None") {
		return "null", ""
	}
	if ts&typeBoolean != 0 && (strings.EqualFold(s, "true") || strings.EqualFold(s, "false")) {
		if low := strings.ToLower(s); low != s {
			return low, RepairBoolean
		}
		return s, ""
	}
	if ts == typeBoolean {
		if v := yesOrNo[strings.ToLower(s)]; v != "" {
			return v, RepairBoolean
		}
	}
	if ts&(typeInteger|typeNumber) != 0 {
		if n, ok := number(s, ts&typeNumber == 0); ok {
			if n != s {
				return n, RepairNumber
			}
			return n, ""
		}
	}
	if v, kind, ok := container(s, ts); ok {
		return v, kind
	}
	if ts&typeString == 0 {
		var inner string // the value as a string in quotes
		if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &inner) == nil {
			if v, _ := typedText(inner, ts); !strings.HasPrefix(v, `"`) {
				return v, RepairEncoded
			}
			return s, ""
		}
	}
	return JSONString(text), ""
}

// number returns s as JSON. Whole is for integers, which models also write as 5.0.
func number(s string, whole bool) (string, bool) {
	if s == "" || !json.Valid([]byte(s)) || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return "", false
	}
	if whole && strings.ContainsAny(s, ".eE") {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return "", false
		}
		return strconv.FormatInt(int64(x), 10), true
	}
	return s, true
}

// container returns an array or object written as JSON or as a Python literal, or as JSON in which signs are missing or too
// many, where it can be nothing else.
func container(s string, ts types) (string, Repair, bool) {
	if !(strings.HasPrefix(s, "[") && ts&typeArray != 0 || strings.HasPrefix(s, "{") && ts&typeObject != 0) {
		return "", "", false
	}
	if json.Valid([]byte(s)) {
		return s, "", true
	}
	p := pyParser{s: s}
	if v, ok := p.value(0); ok && p.atEnd() {
		return v, RepairLiteral, true
	}
	if ts&typeString != 0 {
		return "", "", false
	}
	return looseJSON(s)
}

// looseJSON returns JSON as the scanner of arguments mends it, and what was mended first.
func looseJSON(s string) (string, Repair, bool) {
	var scan jsonScanner
	var out []byte
	var first Repair
	for i := range len(s) {
		for again := true; again; again = scan.again {
			text, ev := scan.step(s[i])
			out = append(out, text...)
			if first == "" {
				first = scan.mended
			}
			switch ev {
			case scanBad:
				return "", "", false
			case scanDone:
				return string(out), first, i == len(s)-1
			}
		}
	}
	return "", "", false
}

// fit corrects a JSON value, and those in it, whose types the schema does not allow, where it is certain what is meant. Depth
// is how many lists and objects it stands in.
func (s *toolset) fit(v string, of *argType, depth int) string {
	noted := len(s.pending)
	fitted, kind := fitted(v, of.types())
	if kind != "" && !s.repair(kind) {
		return v
	}
	if fit, ok := s.fitWithin(fitted, of, depth); ok {
		return fit
	}
	s.pending = s.pending[:noted]
	return v
}

// fitWithin corrects the values in a list or an object. It reports false where the nesting is too deep.
func (s *toolset) fitWithin(v string, of *argType, depth int) (string, bool) {
	if s.strict || v[0] != '{' && v[0] != '[' {
		return v, true
	}
	noted := len(s.pending)
	var out joiner
	a := argsReader{ts: s, of: of, depth: depth}
	a.json.outer = depth
	for i := range len(v) {
		if a.step(v[i], &out) == broken {
			s.pending = s.pending[:noted]
			return v, false
		}
	}
	return out.take()[0].Text, true
}

func fitted(v string, ts types) (string, Repair) {
	is := kindOf(v)
	switch {
	case ts == 0 || is&ts != 0:
	case is == typeString:
		var inner string
		if json.Unmarshal([]byte(v), &inner) != nil {
			break
		}
		t, _ := typedText(inner, ts)
		switch kindOf(t) {
		case typeString:
		case typeBoolean:
			return t, RepairBoolean
		case typeNumber, typeNumber | typeInteger:
			return t, RepairNumber
		default:
			return t, RepairEncoded
		}
	case is&typeNumber != 0 && ts&typeInteger != 0:
		if n, ok := number(v, true); ok {
			return n, RepairNumber
		}
	case is&typeNumber != 0 && ts == typeBoolean:
		if b := yesOrNo[v]; b != "" {
			return b, RepairBoolean
		}
	case is != typeNull && ts&typeString != 0:
		return JSONString(v), RepairString
	}
	return v, ""
}

// kindOf tells the types that a JSON value is of.
func kindOf(v string) types {
	switch v[0] {
	case '"':
		return typeString
	case '{':
		return typeObject
	case '[':
		return typeArray
	case 't', 'f':
		return typeBoolean
	case 'n':
		return typeNull
	}
	if strings.ContainsAny(v, ".eE") {
		return typeNumber
	}
	return typeNumber | typeInteger
}

// JSONString is a text as a string of JSON, with no escape that need not be, as models write it.
func JSONString(text string) string { return string(appendQuoted(nil, text)) }

// appendQuoted appends s as a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		dst = appendEscaped(dst, s[i])
	}
	return append(dst, '"')
}

// appendEscaped appends a byte as it stands in a JSON string.
func appendEscaped(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c == '\n':
		return append(dst, `\n`...)
	case c == '\r':
		return append(dst, `\r`...)
	case c == '\t':
		return append(dst, `\t`...)
	case c < 0x20:
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return append(dst, c)
}
