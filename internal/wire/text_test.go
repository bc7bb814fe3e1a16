package wire_test

import (
	"testing"

	"hearth/internal/wire"
)

// FuzzAppendString: the short way to a JSON string writes what the long one does.
func FuzzAppendString(f *testing.F) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, s := range []string{"", "plain", "a \"b\" \\ </script> & \n\r\t\b\f\x00\x1f\x7f", "ü☺😀 \u2028\u2029\ufffd", "\xff\xc3a\xe2\x80", string(all)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := wire.AppendString([]byte("x"), s), "x"+string(wire.Marshal(s)); string(got) != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	})
}
