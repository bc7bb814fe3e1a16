package responses

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hearth/internal/store"
)

// finish has a session keep a response of an item of so many bytes.
func finish(s *session, id, previous string, bytes int) {
	_ = s.Finish(context.Background(), &store.Response{ID: id, Previous: previous, Status: completed,
		Input: []store.Item{{Body: []byte(id)}}, Output: []store.Item{{Body: []byte(strings.Repeat("x", bytes-len(id)))}}})
}

// TestSession: the oldest responses of a connection are forgotten first, what others build on is held with them, and nothing is
// counted that is not held.
func TestSession(t *testing.T) {
	all := &sockets{most: 300}
	a, b := &session{of: all, most: 200}, &session{of: all, most: 200}
	kept := func(what string, want int64, is ...bool) {
		t.Helper()
		if all.kept.Load() != want || a.bytes+b.bytes != want {
			t.Errorf("%s: %d and %d bytes of %d are held, want %d", what, a.bytes, b.bytes, all.kept.Load(), want)
		}
		for i, l := range []*link{a.find("1"), a.find("2"), b.find("3"), b.find("4")} {
			if (l != nil) != is[i] {
				t.Errorf("%s: response %d is there: %t", what, i+1, l != nil)
			}
		}
	}
	finish(a, "1", "resp_0", 80)
	finish(a, "2", "1", 80)
	kept("two", 160, true, true, false, false)
	if items, root := a.find("2").chain(); len(items) != 4 || root != "resp_0" || string(items[0].Body) != "1" || string(items[2].Body) != "2" {
		t.Errorf("%s builds on %s", items, root)
	}
	finish(b, "3", "", 100)
	finish(b, "4", "3", 100)
	kept("more than all may have", 160, true, true, false, false)
	a.evict(a.find("1"))
	a.evict(nil)
	kept("evicted, and built on", 160, false, true, false, false)
	finish(b, "4", "", 140)
	kept("another's", 300, false, true, false, true)
	a.drop()
	kept("closed", 140, false, false, false, true)
	finish(b, "3", "", 201)
	kept("too large for one", 0, false, false, false, false)
	_ = b.Finish(t.Context(), &store.Response{ID: "3", Status: failed})
	kept("failed", 0, false, false, false, false)

	previous := ""
	for i := range store.MaxChain + 2 {
		id := fmt.Sprint("r", i)
		if on := a.find(previous); on != nil {
			if _, err := (past{}).chain(previous, on); errors.Is(err, store.ErrLong) != (i > store.MaxChain) {
				t.Fatalf("%d: %v", i, err)
			}
		}
		a.most, all.most = 1<<20, 1<<20
		finish(a, id, previous, len(id))
		previous = id
	}
	if len(a.links) != maxLinks || a.find(previous) == nil || a.find("r0") != nil {
		t.Errorf("%d responses can be built on", len(a.links))
	}
	a.drop()
	kept("dropped", 0, false, false, false, false)
}
