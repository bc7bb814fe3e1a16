package wire

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

var jsonSeeds = []string{
	`{}`, ` [1, -0.5e+3, 0, 01, 1., .5, -, 1e, "a\u00e9\ud83d\ude00\ud83d\n"] `, `{"a": {"b": [true, false, null, nul]}}`, `"\x"`, `"\u12"`,
	"\"a\x01\"", `"unended`, `{"a" 1}`, `{"a": 1,}`, `[1,]`, `[`, ``, ` `, `{} {}`, `"\ud800\u0041 \udc00 \ud800\ud800"`, "\"\xff\xc3\x28 \\n \xed\xa0\x80\"",
	strings.Repeat("[", 20) + strings.Repeat("]", 20), `{"k":"` + strings.Repeat("x", 100) + `\""}`, "\ufeff{}", `"` + "\x7f\u2028" + `"`, `-`, `1e5`, `"\/\b\f"`,
}

// isJSON and unescape agree with encoding/json on everything.
func FuzzScan(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want := json.Valid(b)
		got, tooDeep := isJSON(t.Context(), b, 10000) // the limit of encoding/json
		if got != want || tooDeep {
			t.Fatalf("%q: JSON %t (too deep %t), want %t", b, got, tooDeep, want)
		}
		var s string
		if want && json.Unmarshal(b, &s) == nil && strings.HasPrefix(strings.TrimSpace(string(b)), `"`) {
			if got := unquote([]byte(strings.TrimSpace(string(b)))); got != s {
				t.Errorf("%q reads %q, want %q", b, got, s)
			}
		}
	})
}

func TestDepth(t *testing.T) {
	for n, deep := range map[int]bool{3: false, 4: true} {
		body := strings.Repeat(`{"a":[`, n/2) + strings.Repeat("[", n%2) + strings.Repeat("]", n%2) + strings.Repeat("]}", n/2)
		if ok, tooDeep := isJSON(t.Context(), []byte(body), 3); tooDeep != deep || ok == deep {
			t.Errorf("%s: JSON %t, too deep %t", body, ok, tooDeep)
		}
	}
}

// TestScanLeaves: nobody scans a body to its end for a client who has left.
func TestScanLeaves(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, body := range []string{"[" + strings.Repeat("1,", 1<<17) + "x", `{` + strings.Repeat(`"a":1,`, 1<<17) + "x"} {
		s := scanner{b: []byte(body), deepest: 3, ctx: ctx}
		if i := s.value(0, 0); i != broken || s.n != 1<<16 {
			t.Errorf("%.5q: %d after %d elements", body, i, s.n)
		}
	}
	if _, err := parse(ctx, []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
