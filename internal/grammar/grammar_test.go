package grammar

import (
	"runtime"
	"strings"
	"testing"
)

// bytesVocab has a token for every byte, and some longer ones.
func bytesVocab(more ...string) *Vocab {
	texts := make([][]byte, 0, 256+len(more))
	for i := range 256 {
		texts = append(texts, []byte{byte(i)})
	}
	for _, s := range more {
		texts = append(texts, []byte(s))
	}
	return NewVocab(len(texts)+1, func(id int32) []byte { // the last id is no text
		if int(id) < len(texts) {
			return texts[id]
		}
		return nil
	})
}

// words are tokens that end, begin or cross what a form is made of.
var words = []string{`{"`, `":`, `": "`, `"}`, `"}}`, `"name": "f`, `", "`, "\n", "</", "</tool_call>", "</tool_call>\n", "tool", "arguments", `\"`, `\\`, "\\u00", "12", "-1.", "e5", "true", "tru", "false"[1:], "null,", "[]", "[{", "ab", "a\"b", "é", "\xc3", " ", "  {", "kids", "red"}

// allocated is how many bytes f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestLongTokens: a token that is longer than any that is known is never allowed.
func TestLongTokens(t *testing.T) {
	m := bytesVocab(strings.Repeat("a", 1<<10), strings.Repeat("a", 1<<10+1)).Matcher(compiled(t, anyJSON), NewBudget(1))
	if !m.AcceptBytes([]byte(`{"a": "`)) {
		t.Fatal("the head is not accepted")
	}
	if got := m.Allowed()[256/64] & 3; got != 1 {
		t.Errorf("of tokens of 1024 and 1025 bytes %02b are allowed", got)
	}
}

// TestBudgetIsEnough: where any value may begin, each token costs less than it brings, and what is spent stays spent.
func TestBudgetIsEnough(t *testing.T) {
	budget := NewBudget(1)
	m := wideVocab().Matcher(compiled(t, anyJSON), budget)
	for i := range 200 {
		m.AcceptBytes([]byte("["))
		before := budget.left
		m.Allowed()
		if cost := before - budget.left; cost > perToken {
			t.Fatalf("token %d costs %d steps", i, cost)
		}
		budget.Token()
	}
	budget.left = 0
	if budget.Token(); !budget.Spent() || m.AcceptBytes([]byte("[")) {
		t.Error("what was spent has come back")
	}
}
