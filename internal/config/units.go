package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"hearth/internal/regular"
)

// byteUnits are suffixes of sizes, longest first.
var byteUnits = []struct {
	suffix string
	factor float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}, {"b", 1},
}

func parseBytes(s string) (int64, error) {
	number, factor := strings.ToLower(strings.TrimSpace(s)), 1.0
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x >= 0 && x*factor < math.MaxInt64/2) { // not NaN either
		return 0, fmt.Errorf("want a number of bytes, or a size such as 512MB or 2GiB")
	}
	return int64(x * factor), nil
}

// Bytes is a flag of a size in bytes, which may be given with a unit.
func Bytes(p *int64) pflag.Value { return byteSize(p) }

// byteSize is a number of bytes.
func byteSize(p *int64) *value[int64] {
	return &value[int64]{p, "bytes", parseBytes, func(n int64) string { return strconv.FormatInt(n, 10) }}
}

func checkBytes(s string) error {
	_, err := parseBytes(s)
	return err
}

func parseMillis(s string) (time.Duration, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(time.Millisecond) {
		return 0, fmt.Errorf("want a whole number of milliseconds")
	}
	return time.Duration(n) * time.Millisecond, nil
}

// millis is a time in milliseconds.
func millis(p *time.Duration) *value[time.Duration] {
	return &value[time.Duration]{p, "int", parseMillis, func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }}
}

func checkMillis(s string) error {
	_, err := parseMillis(s)
	return err
}

func checkSessions(s string) error {
	_, err := parseInt(1, mostSessions)(s)
	return err
}

// lines is a file whose lines are appended to a list. What is not there cannot be read later, so it is read at once.
func lines(name *string, to *[]string) *value[string] {
	parse := func(s string) (string, error) {
		b, err := regular.ReadStream(s, maxFile)
		if err != nil {
			return "", err
		}
		n := len(*to)
		for _, line := range strings.Split(string(b), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				*to = append(*to, line)
			}
		}
		if len(*to) == n {
			return "", fmt.Errorf("%s has no lines", s)
		}
		return s, nil
	}
	return &value[string]{name, "string", parse, func(s string) string { return s }}
}
