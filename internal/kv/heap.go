package kv

import "fmt"

// Place is what a thing in a Heap embeds: its rank, and where it is.
type Place struct {
	Rank int64
	at   int // in the heap, counted from 1; 0: in none
}

// Listed reports whether it is in a heap.
func (p *Place) Listed() bool { return p.at > 0 }

func (p *Place) place() *Place { return p }

// Heap holds things by rank, the least first. A thing is in one heap at most.
//
// Invariants (Check): everything knows its place, and ranks no lower than what is at half its place.
type Heap[T interface{ place() *Place }] []T

// Push puts x in.
func (h *Heap[T]) Push(x T) {
	*h = append(*h, x)
	h.set(len(*h)-1, x)
	h.up(len(*h) - 1)
}

// Pop takes out a thing of least rank. The heap must not be empty.
func (h *Heap[T]) Pop() T {
	x := (*h)[0]
	h.Remove(x)
	return x
}

// Remove takes x out, if it is in.
func (h *Heap[T]) Remove(x T) {
	i := x.place().at - 1
	if i < 0 {
		return
	}
	x.place().at = 0
	last := len(*h) - 1
	moved := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	if i < last {
		h.set(i, moved)
		h.Moved(moved)
	}
}

// Moved puts x, if it is in, where its new rank belongs.
func (h *Heap[T]) Moved(x T) {
	if i := x.place().at - 1; i >= 0 && !h.up(i) {
		h.down(i)
	}
}

// Reorder puts everything where it belongs after many ranks have changed.
func (h *Heap[T]) Reorder() {
	for i := len(*h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Check asserts the invariants.
func (h Heap[T]) Check() error {
	for i, x := range h {
		if x.place().at != i+1 || i > 0 && h.less(i, (i-1)/2) {
			return fmt.Errorf("check heap: thing %d of rank %d is out of place", i, x.place().Rank)
		}
	}
	return nil
}

func (h Heap[T]) less(i, j int) bool { return h[i].place().Rank < h[j].place().Rank }

func (h Heap[T]) set(i int, x T) {
	h[i] = x
	x.place().at = i + 1
}

func (h Heap[T]) swap(i, j int) {
	x := h[i]
	h.set(i, h[j])
	h.set(j, x)
}

// up reports whether i moved.
func (h Heap[T]) up(i int) bool {
	from := i
	for ; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		h.swap(i, (i-1)/2)
	}
	return i != from
}

func (h Heap[T]) down(i int) {
	for {
		least := i
		for _, c := range [...]int{2*i + 1, 2*i + 2} {
			if c < len(h) && h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
