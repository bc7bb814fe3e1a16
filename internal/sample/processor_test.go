package sample

import (
	"slices"
	"testing"
)

// TestProcessors: no two edits or filters have the same place, each number has a name of its own and room, and each processor
// is off where nothing is asked for.
func TestProcessors(t *testing.T) {
	places := map[[2]bool][]int{}
	for _, pr := range processors {
		kind := [2]bool{pr.edit != nil, pr.filter != nil}
		if kind[0] == kind[1] || slices.Contains(places[kind], pr.place) {
			t.Errorf("place %d: edit %t, filter %t, taken %v", pr.place, kind[0], kind[1], places[kind])
		}
		places[kind] = append(places[kind], pr.place)
		if pr.on(&Params{}) {
			t.Errorf("place %d, edit %t: on where nothing is asked for", pr.place, kind[0])
		}
	}
	var p Params
	if len(numbers) > len(p.Numbers) {
		t.Fatalf("%d numbers, room in Params for %d", len(numbers), len(p.Numbers))
	}
	for i, name := range numbers {
		if !p.Set(name, float64(i+1)) || p.Numbers[i] != float32(i+1) {
			t.Errorf("%s: set %v", name, p.Numbers)
		}
	}
	if p.Set("no such", 1) {
		t.Error("a parameter that there is not can be set")
	}
}
