package kv

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type thing struct {
	Place
	gone bool
}

// A heap gives back what a sorted list would, whatever comes, leaves and changes its rank meanwhile.
func TestHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h Heap[*thing]
	var all []*thing
	for range 3000 {
		switch k := r.IntN(6); {
		case k < 2 || len(all) == 0:
			x := &thing{Place: Place{Rank: r.Int64N(50)}}
			all = append(all, x)
			h.Push(x)
		case k == 2:
			least := slices.MinFunc(all, func(a, b *thing) int { return int(a.Rank - b.Rank) })
			x := h.Pop()
			if x.Rank != least.Rank || x.Listed() {
				t.Fatalf("popped rank %d, the least is %d", x.Rank, least.Rank)
			}
			x.gone = true
		case k == 3:
			x := all[r.IntN(len(all))]
			h.Remove(x)
			h.Remove(x)
			x.gone = true
		case k == 4:
			x := all[r.IntN(len(all))]
			x.Rank = r.Int64N(50)
			h.Moved(x)
		default:
			for _, x := range all {
				x.Rank = r.Int64N(50)
			}
			h.Reorder()
		}
		all = slices.DeleteFunc(all, func(x *thing) bool { return x.gone })
		if err := h.Check(); err != nil || len(h) != len(all) {
			t.Fatalf("%d things, want %d: %v", len(h), len(all), err)
		}
	}
	h.Moved(&thing{})
	if h[0].at = 7; h.Check() == nil {
		t.Error("a thing out of place is not found")
	}
}
