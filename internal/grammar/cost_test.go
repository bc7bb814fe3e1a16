package grammar

import (
	"runtime"
	"testing"
)

// allocated is how many bytes f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// FuzzCost looks for schemas that cost more than they should: bytes for reading them, steps for a token.
func FuzzCost(f *testing.F) {
	f.Add(wide, `{"a": "x"}`)
	f.Add(doubling(17, `{"enum": ["a", "b"]}`), `{"x": "a`)
	f.Add(itself(30, `{"type": "integer"}`), `{"x": 1`)
	f.Add(`{"properties": {"aaaaaaaaaa": {}, "a\n\"b": {}}, "additionalProperties": {"anyOf": [{"$ref": "#"}, true]}}`, `{"aaaaaaaaab": [`)
	v := bytesCallVocab(words...)
	f.Fuzz(func(t *testing.T, schema, args string) {
		if len(schema) > 1<<16 {
			return
		}
		if n, most := allocated(func() { arguments(document(schema)) }), 1<<20+1000*len(schema); n > most {
			t.Errorf("reading %d bytes allocates %d", len(schema), n)
		}
		budget := NewBudget(1)
		m := v.Matcher(callOf(schema), budget)
		m.Accept([]byte(`{"name": "f", "arguments": `))
		steps := 0
		n := allocated(func() {
			for i := 0; i < len(args) && i < 100 && !budget.Spent(); i++ {
				before := budget.left
				if m.Accept([]byte(args[i : i+1])) {
					m.Allowed()
				}
				steps += before - budget.left
				budget.Token()
			}
		})
		if budget.left < -2*mostWays*mostWays-len(schema) {
			t.Errorf("%d steps too many", -budget.left)
		}
		if n > 1<<20+1000*steps {
			t.Errorf("%d steps allocate %d bytes", steps, n)
		}
	})
}
