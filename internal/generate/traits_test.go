package generate

import (
	"strings"
	"testing"
)

// TestTraits: every trait has a row, in its place, under a name of its own, and stricter forms have fewer of them.
func TestTraits(t *testing.T) {
	if last := traits(1) << (len(traitTable) - 1); last != imagesInResults {
		t.Fatalf("traitTable has %d rows, its last trait is %q", len(traitTable), imagesInResults)
	}
	all := traits(1<<len(traitTable)) - 1
	names := strings.Fields(all.String())
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] || traitTable[i][1] == "" || name != traitTable[i][0] {
			t.Errorf("row %d is %+v, printed as %q", i, traitTable[i], name)
		}
		seen[name] = true
	}
	const shapes = "takes_inline takes_inline_by_calls content_is_list content_is_null reasoning_is_part arguments_are_text tools_are_empty_list images_printed images_in_system images_in_results"
	want := []string{
		"system_first system_stays tools_declared tools_in_system calls_printed calls_with_text calls_after_text calls_with_id reasoning_by_calls answers_end_reasoning tool_results " + shapes,
		"system_stays tools_declared tools_in_system calls_printed calls_with_text calls_after_text calls_with_id reasoning_by_calls answers_end_reasoning tool_results " + shapes,
		"system_stays tools_declared tools_in_system calls_with_text calls_after_text calls_with_id reasoning_by_calls answers_end_reasoning " + shapes,
	}
	for i, f := range (form{traits: all}).stricter() {
		if got := f.String(); got != want[i] {
			t.Errorf("stricter form %d has\n%s\nwant\n%s", i, got, want[i])
		}
	}
	var s traits
	s.set(usersInRow|systemAlone, true)
	if !s.has(systemAlone) || s.has(systemAlone|systemLater) {
		t.Errorf("the set of two is %q", s)
	}
	if s.set(systemAlone, false); s != usersInRow {
		t.Errorf("without one it is %q", s)
	}
}
