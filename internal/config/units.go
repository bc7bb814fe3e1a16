package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
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

// byteSizeFrom is a number of bytes that is not less than least, a whole number of MiB.
func byteSizeFrom(p *int64, least int64) *value[int64] {
	v := byteSize(p)
	v.parse = func(s string) (int64, error) {
		n, err := parseBytes(s)
		if err == nil && n < least {
			err = fmt.Errorf("want at least %dMiB", least>>20)
		}
		return n, err
	}
	return v
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
