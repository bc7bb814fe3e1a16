package wiretest

import (
	"bytes"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
)

// Bound is a limit on how much of something a request may have, and requests that have it.
type Bound struct {
	Name  chat.Bound
	Most  int
	Param string // of the error
	Says  string // in the error
	// Body has n of what is bounded.
	Body func(n int) string
}

// Limit makes a Bound.
func Limit(name chat.Bound, most int, param, says string, body func(n int) string) Bound {
	return Bound{Name: name, Most: most, Param: param, Says: says, Body: body}
}

// Check tries a bound: as much as is allowed passes decode, one more is refused by name, and much more costs no more than
// that.
func (b Bound) Check(t *testing.T, decode func(body []byte) *chat.Error) {
	t.Helper()
	if err := decode([]byte(b.Body(b.Most))); err != nil {
		t.Fatalf("%d are refused: %v", b.Most, err)
	}
	body, more := []byte(b.Body(b.Most+1)), []byte(b.Body(2*b.Most+2))
	refuse := func(body []byte) func() {
		return func() {
			err := decode(body)
			if err == nil || err.Kind != chat.Invalid || err.Bound != b.Name || err.Param != b.Param || !strings.Contains(err.Msg, b.Says) {
				t.Fatalf("error %#v, want bound %s at %s with %q", err, b.Name, b.Param, b.Says)
			}
		}
	}
	const perByte = 3 // a string of them is copied before it is looked at
	one := Allocated(refuse(body))
	if many := within(one+one/4+4096+perByte*uint64(len(more)-len(body)), refuse(more)); many > 0 {
		t.Errorf("one too many takes %d bytes, twice as many %d", one, many)
	}
}

// Allocated is how many bytes f takes from the heap.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// within tries whether f takes at most so many bytes from the heap, several times: others may take some meanwhile. It
// gives 0, or what f takes.
func within(most uint64, f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 3 {
		if least = min(least, Allocated(f)); least <= most {
			return 0
		}
	}
	return least
}

// Costs fails if f takes more of the heap than a body of so many bytes may: what hostile bodies are made for.
func Costs(t *testing.T, body []byte, f func()) {
	t.Helper()
	const perByte, always = 64, 128 << 10
	if got := within(perByte*uint64(len(body))+always, f); got > 0 {
		t.Errorf("%d bytes take %d, %d for each: %.300q", len(body), got, got/uint64(len(body)), body)
	}
}

// Repeated is a body in which unit stands many times: what a few bytes cost shows where there are many of them.
func Repeated(before, unit, after []byte) []byte {
	const size = 64 << 10
	times := max(1, size/max(1, len(unit)))
	return slices.Concat(before, bytes.Repeat(unit, times), after)
}
