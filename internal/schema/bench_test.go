package schema

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkParse: the values of large documents.
func BenchmarkParse(b *testing.B) {
	list := func(one func(i int) string) string {
		var s strings.Builder
		for i := range 100_000 {
			if i > 0 {
				s.WriteString(", ")
			}
			s.WriteString(one(i))
		}
		return s.String()
	}
	for name, text := range map[string]string{
		"numbers": "[" + list(func(int) string { return "1" }) + "]",
		"strings": "[" + list(func(i int) string { return fmt.Sprintf(`"s%d"`, i) }) + "]",
		"members": "{" + list(func(i int) string { return fmt.Sprintf(`"%d": true`, i*7919%100_000) }) + "}",
		"nested":  "[" + list(func(i int) string { return `{"type": "string", "enum": ["a", "b"], "of": {}}` }) + "]",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Parse([]byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
