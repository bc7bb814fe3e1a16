// Package jsonc reads JSON that people have edited by hand: with a byte order mark, comments, commas before a closing
// bracket, and the numbers that Python's JSON has beyond the standard (NaN and the infinities). What it reads over it tells,
// with its place, so that whoever reads an optional file of a model folder can warn and go on.
//
// Packages that read such files call it; it knows nothing of what is in them.
package jsonc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// bom is the byte order mark that some editors put before a text.
var bom = []byte("\xef\xbb\xbf")

// WithoutBOM is data without a byte order mark.
func WithoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, bom) }

// Unmarshal decodes the one value of a file into v. Fault is what in it is no JSON and was read over, with its place; "" for
// none. The error says what is wrong and where. Time and memory are linear in data, which is not changed.
func Unmarshal(data []byte, v any) (fault string, err error) {
	plain, fault, err := Plain(data)
	if err != nil {
		return "", err
	}
	if string(bytes.TrimSpace(plain)) == "null" {
		return "", errors.New("is null")
	}
	return fault, json.Unmarshal(plain, v)
}

// Mistyped words an error of Unmarshal about a value of the wrong kind without Go's types; others stay as they are.
func Mistyped(err error) error {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		return fmt.Errorf("a JSON %s is not what should be here", t.Value)
	}
	return err
}

// ReadOver is a sentence about a file in which Unmarshal found a fault.
func ReadOver(fault string) string {
	return "has " + fault + ", which JSON does not allow; it is read without"
}

// Plain is data as standard JSON. Fault and error are those of Unmarshal. NaN and the infinities become what Tagged says,
// which is how some exporters write them.
func Plain(data []byte) (plain []byte, fault string, err error) {
	skipped := len(data) - len(WithoutBOM(data))
	body := data[skipped:]
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, "", errors.New("is empty")
	}
	if json.Valid(body) {
		return body, "", nil
	}
	blank, first := blanked(body)
	if err := check(quoted(blank)); err != nil {
		at := len(body)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = max(int(syntax.Offset)-1, 0)
		}
		return nil, "", fmt.Errorf("is no valid JSON at %s: %v", place(data, skipped+at), err)
	}
	if first.what != "" {
		fault = first.what + " at " + place(data, skipped+first.at)
	}
	return Tagged(blank), fault, nil
}

// check is the error of text that is no JSON.
func check(text []byte) error {
	var any json.RawMessage
	return json.Unmarshal(text, &any)
}

// place is where a byte is, as people count.
func place(data []byte, at int) string {
	return fmt.Sprintf("byte %d, line %d", at+1, 1+bytes.Count(data[:min(at, len(data))], []byte("\n")))
}

// oddity is the first thing that was read over.
type oddity struct {
	what string
	at   int
}

// blanked is a copy of data with spaces in the place of comments and of commas before a closing bracket, so that every other
// byte keeps its place.
func blanked(data []byte) ([]byte, oddity) {
	out := bytes.Clone(data)
	var first oddity
	note := func(what string, at int) {
		if first.what == "" || at < first.at {
			first = oddity{what, at}
		}
	}
	last, before := -1, -1 // the last two bytes that say something
	see := func(i int) { before, last = last, i }
	open := false // a comment that does not end was seen: no other does
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == ' ', c == '\t', c == '\n', c == '\r':
			i++
		case c == '"':
			see(i)
			i = endOfString(data, i)
		case c == '/' && !open:
			end := commentEnd(data, i)
			if open = end == i && bytes.HasPrefix(data[i:], []byte("/*")); end == i {
				see(i)
				i++
				continue
			}
			note("a comment", i)
			for ; i < end; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
		case c == '}' || c == ']':
			if last >= 0 && data[last] == ',' && before >= 0 && !bytes.ContainsRune([]byte("{[,:"), rune(data[before])) {
				note("a comma too many", last)
				out[last] = ' '
			}
			see(i)
			i++
		default:
			see(i)
			i++
		}
	}
	return out, first
}

// endOfString is the place after the string that begins at i, or the end.
func endOfString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// commentEnd is the place after the comment that begins at i; i if there is none.
func commentEnd(data []byte, i int) int {
	switch {
	case bytes.HasPrefix(data[i:], []byte("//")):
		if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
			return i + n
		}
		return len(data)
	case bytes.HasPrefix(data[i:], []byte("/*")):
		if n := bytes.Index(data[i+2:], []byte("*/")); n >= 0 {
			return i + 2 + n + 2
		}
	}
	return i
}

// words are the numbers that are no JSON.
var words = []string{"-Infinity", "Infinity", "NaN"}

// eachWord calls with for every one of them outside of strings, and other for the text between.
func eachWord(data []byte, with, other func(text []byte)) {
	from := 0
	for i := 0; i < len(data); {
		if data[i] == '"' {
			i = endOfString(data, i)
			continue
		}
		n := 0
		for _, w := range words {
			if data[i] == w[0] && bytes.HasPrefix(data[i:], []byte(w)) {
				n = len(w)
				break
			}
		}
		if n == 0 {
			i++
			continue
		}
		other(data[from:i])
		with(data[i : i+n])
		i += n
		from = i
	}
	other(data[from:])
}

// quoted is data with a text of the same length in the place of each word, to find the places of errors.
func quoted(data []byte) []byte {
	out := make([]byte, 0, len(data))
	eachWord(data, func(w []byte) { out = append(out, `""       `[:len(w)]...) }, func(s []byte) { out = append(out, s...) })
	return out
}

// Tagged is data with NaN and the infinities as objects like {"__float__": "NaN"}.
func Tagged(data []byte) []byte {
	if !bytes.Contains(data, []byte("Infinity")) && !bytes.Contains(data, []byte("NaN")) {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	eachWord(data, func(w []byte) { out = append(append(append(out, `{"__float__": "`...), w...), `"}`...) }, func(s []byte) { out = append(out, s...) })
	return out
}
