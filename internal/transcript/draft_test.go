package transcript

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEqualJSON(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a": 1, "b": [true, null]}`, `{"b":[true,null],"a":1}`, true},
		{`1.0`, `1`, true},
		{`1e2`, `100`, true},
		{`12345678901234567890`, `12345678901234567890`, true},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`"\u00e9"`, `"é"`, true},
		{`1`, `"1"`, false},
		{`null`, `false`, false},
		{`[]`, `{}`, false},
		{`{"a": 1}`, `{"a": 1, "b": null}`, false},
		{`[1, 2]`, `[2, 1]`, false},
	} {
		a, b := decoded(t, c.a), decoded(t, c.b)
		if equalJSON(a, b) != c.want || equalJSON(b, a) != c.want {
			t.Errorf("%s and %s equal: %v, want %v", c.a, c.b, !c.want, c.want)
		}
	}
}

// decoded is a call's arguments as a Statement has them.
func decoded(t testing.TB, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
