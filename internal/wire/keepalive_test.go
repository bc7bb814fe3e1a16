package wire

import (
	"strings"
	"testing"
	"time"
)

func TestKeepAlive(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`0`: 0, `"0"`: 0, `-1`: -time.Second, `"-1"`: -time.Second, `-300`: -time.Second, `300`: 5 * time.Minute, `"300"`: 5 * time.Minute, `1.5`: 1500 * time.Millisecond,
		`"5m"`: 5 * time.Minute, `"24h"`: 24 * time.Hour, `"-1m"`: -time.Minute, `1e300`: mostKeepAlive, `"1e300"`: mostKeepAlive, `"Inf"`: mostKeepAlive,
	} {
		v, perr := Parse([]byte(`{"keep_alive": ` + text + `}`))
		d := &Decoder{}
		if perr != nil {
			t.Fatal(perr)
		}
		got := d.KeepAlive(v.Get("keep_alive"))
		if err := d.Err(); err != nil || got == nil || *got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{`null`, ``} {
		v, _ := Parse([]byte(`{"x": 1` + strings.Repeat(`, "keep_alive": `+text, min(len(text), 1)) + `}`))
		d := &Decoder{}
		if got := d.KeepAlive(v.Get("keep_alive")); got != nil || d.Err() != nil {
			t.Errorf("%q: %v, %v", text, got, d.Err())
		}
	}
	for _, text := range []string{`"soon"`, `""`, `true`, `[5]`, `{}`, `"NaN"`, `"5 m"`} {
		v, _ := Parse([]byte(`{"keep_alive": ` + text + `}`))
		d := &Decoder{}
		d.KeepAlive(v.Get("keep_alive"))
		if err := d.Err(); err == nil || err.Param != "keep_alive" {
			t.Errorf("%s: %v", text, err)
		}
	}
}
