package retention

import (
	"math/rand/v2"
	"testing"
)

// TestVisit compares the table of sessions with a list in order of the last visits.
func TestVisit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rule := Rule{Sessions: 5}
	type seen struct {
		id     uint64
		visits int
	}
	var list []seen
	left := 0
	for range 2000 {
		id := uint64(1 + r.IntN(8))
		now := seen{id: id, visits: 1}
		for i, s := range list {
			if s.id == id {
				now.visits += s.visits
				list = append(list[:i], list[i+1:]...)
				break
			}
		}
		list = append(list, now)
		var want uint64
		if len(list) > rule.Sessions {
			want, list = list[0].id, list[1:]
			left++
		}
		if visits, gone := rule.Visit(id); visits != now.visits || gone != want || rule.Known() != len(list) {
			t.Fatalf("session %d: %d visits, %d gone, %d known; want %d, %d, %d", id, visits, gone, rule.Known(), now.visits, want, len(list))
		}
	}
	if left == 0 {
		t.Error("no session had to go: the test shows nothing")
	}
	rule.Clear()
	if visits, gone := rule.Visit(3); visits != 1 || gone != 0 {
		t.Errorf("after Clear: %d visits, %d gone", visits, gone)
	}
}

func TestZero(t *testing.T) {
	var all Rule
	some := Rule{TTL: 10, Sessions: 1}
	for range 3 {
		if visits, gone := all.Visit(7); visits != 0 || gone != 0 || all.Known() != 0 {
			t.Errorf("without a limit: %d visits, %d gone, %d known", visits, gone, all.Known())
		}
		if visits, gone := some.Visit(0); visits != 0 || gone != 0 || some.Known() != 0 {
			t.Errorf("nobody's: %d visits, %d gone, %d known", visits, gone, some.Known())
		}
	}
	if all.Expired(0, 1<<60) || some.Expired(5, 14) || !some.Expired(5, 15) {
		t.Error("the wrong things expire")
	}
}
