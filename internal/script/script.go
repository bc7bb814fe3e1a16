// Package script answers requests from a file instead of a model, for people who test clients. A script's lines say
// what a model would have said, in the syntax of a model family; everything else is the real thing: package generate
// renders and counts the prompt, decodes the tokens, parses them and finds stop strings. Only the engine below it is
// replaced, by one that plays a line's tokens. Package catalog makes a Generator where --script is set; nothing here
// touches a backend, the network or the clock of a reply without a pace or a fault.
//
// docs/script.md describes the format.
package script

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"

	"hearth/internal/generate"
	"hearth/internal/regular"
)

// Script is a parsed file. Its methods are safe for concurrent use.
type Script struct {
	rules []*rule

	mu   sync.Mutex
	left []int // uses left of each rule, -1 for any number
}

// rule is one line.
type rule struct {
	line         int
	last, tool   *regexp.Regexp // nil: any
	turn         int            // 0: any
	raw          *template.Template
	family       string // "" is the model's own
	tokensPerSec float64
	fault        *fault
}

// fault breaks a reply off after so many tokens.
type fault struct {
	after int
	kind  faultKind
}

type faultKind string

const (
	cut         faultKind = "cut"          // the connection closes
	failure     faultKind = "error"        // an internal error
	stall       faultKind = "stall"        // nothing more, until the client leaves
	overloaded  faultKind = "overloaded"   // the error of a full queue
	rateLimited faultKind = "rate_limited" // the error of too many requests
)

var faultKinds = []faultKind{cut, failure, stall, overloaded, rateLimited}

const (
	maxLine = 16 << 20  // bounds a line of a script
	maxFile = 256 << 20 // and all of them
)

// Open reads the script in the file called name.
func Open(name string) (*Script, error) {
	text, err := regular.ReadStream(name, maxFile)
	if err != nil {
		return nil, fmt.Errorf("open script: %w", err)
	}
	s, err := Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", name, regular.Short(err))
	}
	return s, nil
}

// Parse reads a script. Errors name the line and the field.
func Parse(r io.Reader) (*Script, error) {
	s := &Script{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		rule, times, err := parseRule(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		rule.line = n
		s.rules = append(s.rules, rule)
		s.left = append(s.left, times)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n, err)
	}
	if len(s.rules) == 0 {
		return nil, fmt.Errorf("has no lines; one that answers everything is %s", `{"raw": "Hello."}`)
	}
	return s, nil
}

func parseRule(text []byte) (*rule, int, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, 0, fmt.Errorf("is not a JSON object: %w", err)
	}
	r, times := &rule{}, -1
	hasRaw := false
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v, err := fields[name], error(nil)
		switch name {
		case "if_last":
			r.last, err = pattern(v)
		case "if_tool":
			r.tool, err = pattern(v)
		case "turn":
			err = positive(v, &r.turn)
		case "times":
			err = positive(v, &times)
		case "raw":
			hasRaw = true
			r.raw, err = rawTemplate(v)
		case "family":
			if err = decode(v, "a string", &r.family); err == nil {
				err = generate.CheckParsers(r.family, "")
			}
		case "tokens_per_s":
			if err = decode(v, "a number", &r.tokensPerSec); err == nil && (r.tokensPerSec < 0 || math.IsInf(r.tokensPerSec, 0)) {
				err = fmt.Errorf("must not be negative")
			}
		case "fault":
			r.fault, err = parseFault(v)
		default:
			err = fmt.Errorf("unknown field; there are if_last, if_tool, turn, raw, family, tokens_per_s, fault and times")
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	if !hasRaw {
		if r.fault == nil {
			return nil, 0, fmt.Errorf("raw: is required, except beside a fault")
		}
		r.raw = template.New("raw")
	}
	return r, times, nil
}

func parseFault(v json.RawMessage) (*fault, error) {
	fields := map[string]json.RawMessage{}
	if err := decode(v, "an object", &fields); err != nil {
		return nil, err
	}
	f := &fault{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var err error
		switch name {
		case "after_tokens":
			if err = decode(fields[name], "a whole number", &f.after); err == nil && f.after < 0 {
				err = fmt.Errorf("must not be negative")
			}
		case "kind":
			if err = decode(fields[name], "a string", &f.kind); err == nil && !slices.Contains(faultKinds, f.kind) {
				err = fmt.Errorf("unknown kind %q; there are %s, %s, %s, %s and %s", f.kind, cut, failure, stall, overloaded, rateLimited)
			}
		default:
			err = fmt.Errorf("unknown field; there are after_tokens and kind")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if f.kind == "" {
		return nil, fmt.Errorf("kind: is required")
	}
	return f, nil
}

func decode(v json.RawMessage, want string, into any) error {
	if string(v) == "null" || json.Unmarshal(v, into) != nil {
		return fmt.Errorf("must be %s", want)
	}
	return nil
}

func positive(v json.RawMessage, n *int) error {
	if err := decode(v, "a whole number from 1", n); err != nil {
		return err
	}
	if *n < 1 {
		return fmt.Errorf("must be a whole number from 1")
	}
	return nil
}

func pattern(v json.RawMessage) (*regexp.Regexp, error) {
	var s string
	if err := decode(v, "a string", &s); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("is not a regular expression: %w", err)
	}
	return re, nil
}

func rawTemplate(v json.RawMessage) (*template.Template, error) {
	var s string
	if err := decode(v, "a string", &s); err != nil {
		return nil, err
	}
	t, err := template.New("raw").Funcs(funcs).Option("missingkey=error").Parse(s)
	if err != nil {
		return nil, fmt.Errorf("is not a template: %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	return t, nil
}

// funcs are what a raw text may call besides the functions of text/template.
var funcs = template.FuncMap{
	// json spells a value as JSON, for arguments of calls.
	"json": func(v any) (string, error) {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err := enc.Encode(v)
		return strings.TrimSuffix(b.String(), "\n"), err
	},
	// find returns the first group of the first match of a regular expression, or the match if it has no groups.
	"find": func(expr, text string) (string, error) {
		re, err := regexp.Compile(expr)
		if err != nil {
			return "", err
		}
		m := re.FindStringSubmatch(text)
		switch {
		case m == nil:
			return "", fmt.Errorf("%q is not in the text", expr)
		case len(m) > 1:
			return m[1], nil
		}
		return m[0], nil
	},
	"repeat": func(n int, text string) (string, error) {
		const most = 1 << 24
		if n < 0 || n*len(text) > most {
			return "", fmt.Errorf("repeat makes at most %d bytes", most)
		}
		return strings.Repeat(text, n), nil
	},
}
