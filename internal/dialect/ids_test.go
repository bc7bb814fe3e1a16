package dialect

import (
	"strings"
	"testing"
)

func TestIDs(t *testing.T) {
	const id = "toolu_0123456789abcdef01234567"
	if got := IDsNumbered.Write("", id, "read", 3); got != "functions.read:3" {
		t.Errorf("numbered: %s", got)
	}
	if got := IDsKept.Write("", id, "read", 3); got != id {
		t.Errorf("kept: %s", got)
	}
	seen := map[string]bool{}
	for _, id := range []string{id, "", "call_1", "call_2", "abc-efghi", "abcdefgh"} {
		got := nine(id)
		if len(got) != 9 || strings.IndexFunc(got, func(r rune) bool { return !alphanumeric(r) }) >= 0 || got != nine(id) || seen[got] {
			t.Errorf("%q became %q", id, got)
		}
		seen[got] = true
	}
	if got := nine("abcdefGH9"); got != "abcdefGH9" {
		t.Errorf("nine characters became %s", got)
	}
	for said, ids := range map[string]IDs{"functions.read:7": IDsNumbered, "abcdefGH9": IDsNine, "call_1": IDsKept} {
		if got := ids.Write(said, id, "read", 3); got != said {
			t.Errorf("%s, as the model said, became %s", said, got)
		}
	}
	if said := strings.Repeat("a", 65); IDsKept.Write(said, id, "read", 3) != id {
		t.Error("an id may be as long as the model likes")
	}
}
