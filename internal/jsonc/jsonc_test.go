package jsonc

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestUnmarshal(t *testing.T) {
	for _, c := range []struct{ name, in, want, fault, err string }{
		{"plain", `{"a": [1, 2]}`, `{"a": [1, 2]}`, "", ""},
		{"white space around", " \n{}\r\n\t", `{}`, "", ""},
		{"byte order mark", "\xef\xbb\xbf{\"a\": 1}", `{"a": 1}`, "", ""},
		{"byte order mark and a comma", "\xef\xbb\xbf[1,]", `[1]`, "a comma too many at byte 6, line 1", ""},
		{"comma in an object", "{\"a\": 1,\n}", `{"a": 1}`, "a comma too many at byte 8, line 1", ""},
		{"comma in a list", `[1, 2 , ]`, `[1, 2]`, "a comma too many at byte 7, line 1", ""},
		{"commas in both", `{"a": [1,], "b": {"c": 2,},}`, `{"a": [1], "b": {"c": 2}}`, "a comma too many at byte 9, line 1", ""},
		{"line comment", "{\n  // the end, \"of\" a turn\n  \"a\": 1 // one\n}", `{"a": 1}`, "a comment at byte 5, line 2", ""},
		{"comment at the end", "{} // done", `{}`, "a comment at byte 4, line 1", ""},
		{"block comment", "/* {\n * } */ {\"a\": /**/ 1}", `{"a": 1}`, "a comment at byte 1, line 1", ""},
		{"comment behind a comma", "{\"a\": 1, // x\n}", `{"a": 1}`, "a comma too many at byte 8, line 1", ""},
		{"comment before a comma", "{\"a\": 1 /* x */,}", `{"a": 1}`, "a comment at byte 9, line 1", ""},
		{"in strings", `{"a": "// no, /* no */ ,}", "b": "\\", "c": "\",]"}`, `{"a": "// no, /* no */ ,}", "b": "\\", "c": "\",]"}`, "", ""},
		{"in strings, with a comma", `{"a": "// no,}", "b": "NaN\"",}`, `{"a": "// no,}", "b": "NaN\""}`, "a comma too many at byte 30, line 1", ""},
		{"numbers of Python", `[NaN, Infinity, -Infinity, "NaN"]`, `[{"__float__": "NaN"}, {"__float__": "Infinity"}, {"__float__": "-Infinity"}, "NaN"]`, "", ""},
		{"numbers and a comma", `{"a": NaN,}`, `{"a": {"__float__": "NaN"}}`, "a comma too many at byte 10, line 1", ""},
		{"a comma alone", `{,}`, "", "", "byte 2, line 1"},
		{"two commas", `[1,,]`, "", "", "byte 4, line 1"},
		{"no value", `{"a":,}`, "", "", "byte 6, line 1"},
		{"cut", "{\n\"a\": ", "", "", "byte 7, line 2: unexpected end"},
		{"cut in a string", `{"a": "b`, "", "", "unexpected end"},
		{"cut behind a backslash", `{"a": "b\`, "", "", "byte 9, line 1"},
		{"open comment", `{} /* `, "", "", "byte 4, line 1"},
		{"more behind", "{}\n}", "", "", "byte 4, line 2"},
		{"place behind a number of Python", `{"a": NaN, "b": x}`, "", "", "byte 17, line 1"},
		{"no name of a number", `{"a": NaNa}`, "", "", "byte 10, line 1"},
		{"single quotes", `{'a': 1}`, "", "", "byte 2, line 1"},
		{"empty", " \n", "", "", "is empty"},
		{"null", "null\n", "", "", "is null"},
		{"nothing", "", "", "", "is empty"},
		{"a mark alone", "\xef\xbb\xbf", "", "", "is empty"},
		{"not UTF-8", "{\"a\": \"\xff\"}", `{"a": "\ufffd"}`, "", ""},
		{"UTF-16", "\xff\xfe{\x00}\x00", "", "", "byte 1, line 1"},
	} {
		var got, want any
		fault, err := Unmarshal([]byte(c.in), &got)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q in it", c.name, err, c.err)
			}
			continue
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if err != nil || fault != c.fault || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, fault %q, error %v; want %v, fault %q", c.name, got, fault, err, want, c.fault)
		}
	}
}

// TestLinear: texts full of what is read over, as long as files are; looking for an end again and again would take hours.
func TestLinear(t *testing.T) {
	for _, unit := range []string{"//", "//\n", "/**/", "/*", "/* ", "[1,],", `"\`, "NaN,", ",,,}", `"`} {
		in := []byte("[" + strings.Repeat(unit, (4<<20)/len(unit)))
		if _, _, err := Plain(in); err == nil || !strings.Contains(err.Error(), "is no valid JSON at byte") {
			t.Errorf("%q: error %v", unit, err)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`{"a": 1,}`, "[1, // x\n2,]", `{"a": NaN, /* b */ "c": "\"//"}`, "\xef\xbb\xbf[]", `[,]`, `"\`, `{"__float__": Infinity}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := string(in)
		var want any
		plainErr := json.Unmarshal(WithoutBOM(in), &want)
		plain, fault, err := Plain(in)
		if string(in) != before {
			t.Fatal("the text was changed")
		}
		if plainErr == nil {
			var got any
			if err != nil || fault != "" || json.Unmarshal(plain, &got) != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("valid JSON: %v, fault %q, error %v", got, fault, err)
			}
			return
		}
		if err == nil && !json.Valid(plain) {
			t.Fatalf("%q is no JSON", plain)
		}
		if err != nil && !strings.Contains(err.Error(), "byte") && err.Error() != "is empty" {
			t.Fatalf("the error has no place: %v", err)
		}
	})
}
