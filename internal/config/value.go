package config

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"hearth/internal/regular"
)

// value is a pflag.Value over one field of a Config.
type value[T any] struct {
	p      *T
	kind   string // shown in help: int, float, duration, list, …
	parse  func(string) (T, error)
	format func(T) string
}

func (v *value[T]) String() string { return v.format(*v.p) }
func (v *value[T]) Type() string   { return v.kind }

func (v *value[T]) Set(s string) error {
	x, err := v.parse(s)
	if err != nil {
		return err
	}
	*v.p = x
	return nil
}

func text(p *string) *value[string] {
	return &value[string]{p, "string", func(s string) (string, error) { return s, nil }, func(s string) string { return s }}
}

func choice(p *string, of ...string) *value[string] {
	parse := func(s string) (string, error) {
		if !slices.Contains(of, s) {
			return "", fmt.Errorf("want one of %s", strings.Join(of, ", "))
		}
		return s, nil
	}
	return &value[string]{p, strings.Join(of, "|"), parse, func(s string) string { return s }}
}

// kvSpellings are what other programs call the types of keys and values. Bits that are not kept are the next that are, so that
// nothing is less precise than was asked for.
var kvSpellings = map[string]string{
	"float32": "f32", "fp32": "f32", "32": "f32", "bfloat16": "bf16", "float16": "f16", "fp16": "f16", "half": "f16", "16": "f16",
	"q8_0": "q8", "int8": "q8", "8bit": "q8", "8": "q8", "q4_0": "q4", "q4_1": "q4", "int4": "q4", "4bit": "q4", "4": "q4", "0": "auto",
	"2": "q4", "3": "q4", "5": "q8", "6": "q8",
}

// kvType is a choice with synonyms.
func kvType(p *string) *value[string] {
	v := choice(p, "auto", "f32", "bf16", "f16", "q8", "q4")
	v.parse = or(kvSpellings, v.parse)
	return v
}

// logSpellings are what other programs call the levels of a log.
var logSpellings = map[string]string{"debug": "debug", "info": "info", "warn": "warn", "warning": "warn", "error": "error", "critical": "error", "fatal": "error"}

// logLevel is a choice with synonyms.
func logLevel(p *string) *value[string] {
	v := choice(p, "debug", "info", "warn", "error")
	v.parse = or(logSpellings, v.parse)
	return v
}

// or is parse with further spellings, in small letters or capitals.
func or[T any](spellings map[string]T, parse func(string) (T, error)) func(string) (T, error) {
	return func(s string) (T, error) {
		if x, ok := spellings[strings.ToLower(s)]; ok {
			return x, nil
		}
		return parse(s)
	}
}

// list collects comma-separated and repeated values.
func list(p *[]string) *value[[]string] {
	parse := func(s string) ([]string, error) {
		out := slices.Clone(*p)
		for _, x := range strings.Split(s, ",") {
			if x = strings.TrimSpace(x); x != "" {
				out = append(out, x)
			}
		}
		return out, nil
	}
	return &value[[]string]{p, "list", parse, func(l []string) string { return strings.Join(l, ",") }}
}

// FDPrefix begins the name of a socket that was open when the program started: the number of its descriptor follows.
const FDPrefix = "fd:"

// socketList is a list of unix:PATH, ADDRESS:PORT and fd:NUMBER.
func socketList(p *[]string) *value[[]string] {
	v := list(p)
	plain := v.parse
	v.parse = func(s string) ([]string, error) {
		all, err := plain(s)
		for _, x := range all {
			if fd, ok := strings.CutPrefix(x, FDPrefix); ok {
				if n, err := strconv.ParseUint(fd, 10, 31); err != nil || n < 3 {
					return nil, fmt.Errorf("%s: want the number of a descriptor from 3, which is the first behind the standard streams", regular.Quote(x))
				}
				continue
			}
			path, unix := strings.CutPrefix(x, "unix:")
			_, port, err := net.SplitHostPort(x)
			n, notNumber := strconv.ParseUint(port, 10, 16)
			switch {
			case unix && (path == "" || strings.HasPrefix(path, "@")):
				return nil, fmt.Errorf("%s names no file: want unix:/run/hearth/hearth.sock", regular.Quote(x)) // abstract ones are everybody's
			case !unix && (err != nil || notNumber != nil || n > 65535):
				return nil, fmt.Errorf("%s: want unix:PATH or ADDRESS:PORT", regular.Quote(x))
			}
		}
		return all, err
	}
	return v
}

func parseInt(lo, hi int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("want a whole number")
		}
		switch {
		case lo <= n && n <= hi:
			return n, nil
		case hi == math.MaxInt:
			return 0, fmt.Errorf("want a whole number from %d", lo)
		}
		return 0, fmt.Errorf("want a whole number from %d to %d", lo, hi)
	}
}

func integer(p *int, lo, hi int) *value[int] {
	return &value[int]{p, "int", parseInt(lo, hi), strconv.Itoa}
}

// integerUpTo lowers what is above hi, a limit of the program that other programs do not have.
func integerUpTo(p *int, lo, hi int) *value[int] {
	v := integer(p, lo, math.MaxInt)
	plain := v.parse
	v.parse = func(s string) (int, error) {
		n, err := plain(s)
		return min(n, hi), err
	}
	return v
}

func boolean(p *bool) *value[bool] {
	return &value[bool]{p, "bool", parseBool, strconv.FormatBool}
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("want true or false")
}

func duration(p *time.Duration) *value[time.Duration] {
	parse := func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, fmt.Errorf("want a time such as 30s or 2m")
		}
		return d, nil
	}
	return &value[time.Duration]{p, "duration", parse, time.Duration.String}
}

func parseFloat(ok func(float64) bool, want string) func(string) (float64, error) {
	return func(s string) (float64, error) {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || !ok(x) { // a NaN fails every comparison in ok
			return 0, fmt.Errorf("want %s", want)
		}
		return x, nil
	}
}

// optional is a value that knows "not set".
func optional[T any](p **T, kind string, parse func(string) (T, error), format func(T) string) *value[*T] {
	return &value[*T]{p, kind,
		func(s string) (*T, error) {
			x, err := parse(s)
			return &x, err
		},
		func(x *T) string {
			if x == nil {
				return ""
			}
			return format(*x)
		}}
}

func parseSeed(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("want a whole number from 0")
	}
	return n, nil
}

// object is a JSON object.
func object(p *map[string]json.RawMessage) *value[map[string]json.RawMessage] {
	parse := func(s string) (map[string]json.RawMessage, error) {
		var o map[string]json.RawMessage
		if err := json.Unmarshal([]byte(s), &o); err != nil || o == nil {
			return nil, fmt.Errorf(`want a JSON object such as {"enable_thinking": false}`)
		}
		return o, nil
	}
	return &value[map[string]json.RawMessage]{p, "json", parse, func(o map[string]json.RawMessage) string {
		if len(o) == 0 {
			return ""
		}
		b, _ := json.Marshal(o) // of what was parsed
		return string(b)
	}}
}

func float(p *float64, ok func(float64) bool, want string) *value[float64] {
	return &value[float64]{p, "float", parseFloat(ok, want), func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }}
}

func optFloat(p **float64, ok func(float64) bool, want string) *value[*float64] {
	return optional(p, "float", parseFloat(ok, want), func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) })
}

// optWhole is a whole number; -1 is how some spell 0.
func optWhole(p **float64, most int) *value[*float64] {
	parse := or(map[string]int{"-1": 0}, parseInt(0, most))
	return optional(p, "int", func(s string) (float64, error) {
		n, err := parse(s)
		return float64(n), err
	}, func(x float64) string { return strconv.Itoa(int(x)) })
}

// address is a host and a port.
func address(p *string) *value[string] {
	v := text(p)
	v.parse = func(s string) (string, error) {
		host, port, err := net.SplitHostPort(s)
		if n, bad := strconv.Atoi(port); s != "" && (err != nil || bad != nil || n < 0 || n > 65535 || host == "") {
			return "", fmt.Errorf("want an address and a port, such as 127.0.0.1:9100")
		}
		return s, nil
	}
	return v
}
