package schema

import (
	"reflect"
	"strings"
	"testing"
)

// The examples of RFC 6901, sections 5 and 6, and what generators of schemas write.
func TestLocal(t *testing.T) {
	root, err := Parse([]byte(`{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8,
		"$defs": {"List[int]": 9, "~1": 10, "none": null, "01": {"deep": [[11], [12, {"x": 13}]]}, "100%": 14, "ü": 15}}`))
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]any{
		"#": plain(root), "#/foo": []any{"bar", "baz"}, "#/foo/0": "bar", "#/foo/1": "baz", "#/": 0.0, "#/a~1b": 1.0, "#/c%25d": 2.0, "#/e%5Ef": 3.0, "#/g%7Ch": 4.0, "#/i%5Cj": 5.0,
		"#/k%22l": 6.0, "#/%20": 7.0, "#/m~0n": 8.0, "#/$defs/List%5Bint%5D": 9.0, "#/$defs/List[int]": 9.0, "#/%24defs/~01": 10.0, "#/$defs/none": nil,
		"#/$defs/01/deep/0/0": 11.0, "#/$defs/01/deep/1/1/x": 13.0, "#/$defs/100%": 14.0, "#/$defs/%C3%BC": 15.0, "#/$defs/ü": 15.0,
	} {
		if got := root.Local(ref); got == nil || !reflect.DeepEqual(plain(got), want) {
			t.Errorf("%s: %v", ref, got)
		}
	}
	for _, ref := range []string{"", "/foo", "foo", "other.json#/foo", "https://example.com/s.json", "#foo", "#/bar", "#/foo/2", "#/foo/00", "#/foo/01", "#/foo/-", "#/foo/-1", "#/foo/+1",
		"#/foo/1.0", "#/foo/99999999999999999999", "#/foo/", "#/foo/0/0", "#/$defs/none/x", "#//foo", "#/foo/length"} {
		if got := root.Local(ref); got != nil {
			t.Errorf("%q leads to %v", ref, got)
		}
	}
}

func FuzzLocal(f *testing.F) {
	for _, s := range []string{"#", "#/a/0/~1", "#/%zz", "#/a//", "##"} {
		f.Add(`{"a": [{"/": 1}]}`, s)
	}
	f.Fuzz(func(t *testing.T, doc, ref string) {
		root, err := Parse([]byte(doc))
		if err != nil {
			return
		}
		if to := root.Local(ref); to != nil && to != root && !strings.HasPrefix(ref, "#/") {
			t.Errorf("%q leads to %v", ref, to)
		}
	})
}
