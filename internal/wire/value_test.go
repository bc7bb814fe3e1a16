package wire

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestValuePaths(t *testing.T) {
	v, err := Parse([]byte(` { "a" : [ 1 , {"b\n":"x\"}y"} , [] , "s" ] , "c":{"d":null}, "a2":true } `))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var walk func(Value)
	walk = func(v Value) {
		got = append(got, v.Path()+" "+v.Kind().String()+" "+string(v.Raw()))
		for _, f := range v.Fields() {
			walk(f)
		}
		for _, e := range v.Items() {
			walk(e)
		}
	}
	for _, f := range v.Fields() {
		walk(f)
	}
	want := []string{
		`a an array [ 1 , {"b\n":"x\"}y"} , [] , "s" ]`,
		`a[0] a number 1`,
		`a[1] an object {"b\n":"x\"}y"}`,
		"a[1].b\n a string " + `"x\"}y"`,
		`a[2] an array []`,
		`a[3] a string "s"`,
		`c an object {"d":null}`,
		`c.d null null`,
		`a2 a boolean true`,
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	if p := v.Get("c").Get("nope").Path(); p != "c.nope" {
		t.Errorf("path of a missing field = %q", p)
	}
	if k := v.Get("zz"); k.Kind() != Missing || k.Path() != "zz" {
		t.Errorf("missing field = %v at %q", k.Kind(), k.Path())
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{"", "is empty"},
		{" \n", "is empty"},
		{`{"a":}`, "not valid JSON: invalid character '}'"},
		{`{"a":1} x`, "not valid JSON"},
		{`"unterminated`, "not valid JSON"},
		{`"\`, "not valid JSON"},
		{strings.Repeat("[", 300) + strings.Repeat("]", 300), "deeper than 256"},
		{strings.Repeat("[", 1<<20), "deeper than 256"},
	} {
		_, err := Parse([]byte(tc.body))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Parse(%.20q) = %v, want %q", tc.body, err, tc.want)
		}
	}
	if _, err := Parse([]byte(strings.Repeat("[", 256) + strings.Repeat("]", 256))); err != nil {
		t.Errorf("256 levels: %v", err)
	}
}

func TestDecoderNumbers(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want int
		err  string
	}{
		{"7", 7, ""}, {"8.0", 8, ""}, {"1e2", 100, ""}, {"1.5", 0, "expected an integer, got 1.5"},
		{"-1", 0, "-1 is out of range: must be at least 1"}, {"1e400", 0, "expected an integer"},
		{"99999999999999999999", 0, "expected an integer"}, {`"7"`, 0, "expected a number, got a string"},
		{"true", 0, "expected a number, got a boolean"},
	} {
		v, _ := Parse([]byte(`{"n":` + tc.in + `}`))
		var d Decoder
		n := d.Int(v.Get("n"), 1, math.MaxInt)
		switch {
		case tc.err == "" && (d.Err() != nil || n == nil || *n != tc.want):
			t.Errorf("Int(%s) = %v, %v", tc.in, n, d.Err())
		case tc.err != "" && (d.Err() == nil || d.Err().Param != "n" || !strings.Contains(d.Err().Msg, tc.err)):
			t.Errorf("Int(%s) error = %v, want %q", tc.in, d.Err(), tc.err)
		}
	}
}

func TestLimit(t *testing.T) {
	for in, want := range map[string]int{"-1": -1, "9007199254740992": mostTokens, "9007199254740994": mostTokens, "1e300": mostTokens, "1e400": mostTokens} {
		v, _ := Parse([]byte(`{"n":` + in + `}`))
		var d Decoder
		if n := d.Limit(v.Get("n"), 1); n == nil || *n != want || d.Err() != nil {
			t.Errorf("Limit(%s) = %v, %v, want %d", in, n, d.Err(), want)
		}
	}
}

func TestDecoderKeepsFirstError(t *testing.T) {
	v, _ := Parse([]byte(`{"a":1,"b":2}`))
	var d Decoder
	d.String(v.Get("a"))
	d.String(v.Get("b"))
	for range d.Fields(v) {
		t.Error("iterated after an error")
	}
	if d.Err() == nil || d.Err().Param != "a" {
		t.Errorf("error = %v, want the one about a", d.Err())
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		`"a\u00e9\n"`: "aé\n", `"\ud83d\ude00"`: "😀", `"\ud800"`: "\uFFFD", "\"\xff\"": "\uFFFD", `""`: "",
	} {
		if got := unquote([]byte(in)); got != want {
			t.Errorf("unquote(%s) = %q, want %q", in, got, want)
		}
	}
}

// FuzzParse compares the scanner with encoding/json: same verdict on validity, same fields and elements.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,"x\\",{"b":null}],"a":2}`, `[[],{},""]`, `"\\\""`, `{"":{"":0}}`, `-1e5`, `{"a" :1 , "b": [ ] }`, "\"\\"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := Parse(body)
		if err != nil {
			if _, tooDeep := isJSON(t.Context(), body, maxDepth); json.Valid(body) && !tooDeep {
				t.Fatalf("refused valid JSON: %v", err)
			}
			return
		}
		compare(t, v)
	})
}

func compare(t *testing.T, v Value) {
	switch v.Kind() {
	case Object:
		var want map[string]json.RawMessage
		if err := json.Unmarshal(v.Raw(), &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]Value{}
		for k, e := range v.Fields() {
			got[k] = e
			compare(t, e)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d keys, want %d", v.Raw(), len(got), len(want))
		}
		for k, w := range want {
			if string(got[k].Raw()) != string(w) {
				t.Fatalf("%s: field %q = %s, want %s", v.Raw(), k, got[k].Raw(), w)
			}
		}
	case Array:
		var want []json.RawMessage
		if err := json.Unmarshal(v.Raw(), &want); err != nil {
			t.Fatal(err)
		}
		n := 0
		for i, e := range v.Items() {
			if i >= len(want) || string(e.Raw()) != string(want[i]) {
				t.Fatalf("%s: element %d = %s", v.Raw(), i, e.Raw())
			}
			compare(t, e)
			n++
		}
		if n != len(want) {
			t.Fatalf("%s: %d elements, want %d", v.Raw(), n, len(want))
		}
	case String:
		var want string
		if err := json.Unmarshal(v.Raw(), &want); err != nil || unquote(v.Raw()) != want {
			t.Fatalf("unquote(%s) = %q, want %q, %v", v.Raw(), unquote(v.Raw()), want, err)
		}
	}
}

// TestMissing: a field that a scanned object does not have costs no memory, and knows its path.
func TestMissing(t *testing.T) {
	v, err := Parse([]byte(`{"a": {"user": "x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	a := v.Get("a")
	if a.Get("user").Kind() != String {
		t.Fatal("a field is not found")
	}
	var missing Value
	if n := testing.AllocsPerRun(20, func() { missing = a.Get("metadata") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if missing.Kind() != Missing || missing.Path() != "a.metadata" || missing.Get("user").Path() != "a.metadata.user" {
		t.Errorf("%v at %s", missing.Kind(), missing.Path())
	}
}
