package transcript

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// check fails if the books on reasonings are wrong.
func (m *reasonings) check(t *testing.T) {
	t.Helper()
	size := 0
	for e := m.used.Front(); e != nil; e = e.Next() {
		r := e.Value.(*reasoning)
		if size += r.bytes(); m.of[r.reasoningKey] != e || r.text == "" {
			t.Errorf("%q is not found under its key", r.text)
		}
	}
	if size != m.size || len(m.of) != m.used.Len() || size > maxReasoning {
		t.Errorf("%d bytes of %d in %d, said to be %d in %d", size, maxReasoning, m.used.Len(), m.size, len(m.of))
	}
}

// What was thought is found under its salt and conversation alone; the latest counts, and nothing if there was none.
func TestReasoning(t *testing.T) {
	h := demoHistory(t, true)
	mine, theirs := Salt{1}, Salt{2}
	h.RememberReasoning(mine, 0, Digest{1}, "old")
	h.RememberReasoning(mine, 0, Digest{1}, "new")
	h.RememberReasoning(theirs, 0, Digest{2}, "theirs")
	h.RememberReasoning(mine, 0, Digest{3}, "gone")
	h.RememberReasoning(mine, 0, Digest{3}, "")
	for _, c := range []struct {
		salt Salt
		said Digest
		want string
	}{{mine, Digest{1}, "new"}, {theirs, Digest{1}, ""}, {theirs, Digest{2}, "theirs"}, {mine, Digest{2}, ""}, {mine, Digest{3}, ""}} {
		if got := h.Reasoning(c.salt, 0, c.said); got != c.want {
			t.Errorf("salt %d, conversation %d: %q, want %q", c.salt[0], c.said[0], got, c.want)
		}
	}
	h.reasonings.check(t)
	if h.ForgetSalt(mine); h.Reasoning(mine, 0, Digest{1}) != "" || h.Reasoning(theirs, 0, Digest{2}) == "" {
		t.Error("the wrong ones are dropped with a salt")
	}
	if h.Forget(); h.Reasoning(theirs, 0, Digest{2}) != "" {
		t.Error("something is left")
	}
	h.reasonings.check(t)
	plain := demoHistory(t, false)
	if plain.RememberReasoning(mine, 0, Digest{1}, "x"); plain.Reasoning(mine, 0, Digest{1}) != "" {
		t.Error("it is remembered where answers are not")
	}
}

// TestReasoningBounded: of too much reasoning what was used last is remembered, and too long a one not at all.
func TestReasoningBounded(t *testing.T) {
	h := demoHistory(t, true)
	text := strings.Repeat("hm ", 20_000)
	said := func(i int) Digest { return Digest{byte(i), byte(i >> 8)} }
	n := maxReasoning/(len(text)+reasoningBytes) + 10
	for i := range n {
		h.RememberReasoning(Salt{}, 0, said(i), text)
		h.Reasoning(Salt{}, 0, said(0))
	}
	h.reasonings.check(t)
	for i, want := range map[int]bool{0: true, 1: false, 10: false, 11: true, n - 1: true} {
		if got := h.Reasoning(Salt{}, 0, said(i)) != ""; got != want {
			t.Errorf("%d of %d: remembered %t", i, n, got)
		}
	}
	h.RememberReasoning(Salt{}, 0, said(0), strings.Repeat("x", maxReasoning/4))
	h.reasonings.check(t)
	if h.Reasoning(Salt{}, 0, said(0)) != "" {
		t.Error("what takes a quarter of the room is remembered, or what it came in place of")
	}
}

// Reasoning goes with what else was not used for long, and with what else a session left.
func TestReasoningRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(demoGuard(t), Terms{Exact: true, TTL: time.Hour, Sessions: 2})
		h.RememberReasoning(Salt{}, 1, Digest{1}, "first")
		h.RememberReasoning(Salt{}, 1, Digest{2}, "second")
		time.Sleep(40 * time.Minute)
		h.Reasoning(Salt{}, 1, Digest{1})
		time.Sleep(40 * time.Minute)
		if a, b := h.Reasoning(Salt{}, 1, Digest{1}), h.Reasoning(Salt{}, 1, Digest{2}); a != "first" || b != "" {
			t.Errorf("%q and %q, want the one that was used", a, b)
		}
		h.RememberReasoning(Salt{}, 0, Digest{3}, "nobody's")
		for session := range uint64(3) {
			h.mustEncode(Salt{}, &Draft{Text: "<|im_start|>user\nHi", Session: session + 1})
		}
		if a, b := h.Reasoning(Salt{}, 0, Digest{1}), h.Reasoning(Salt{}, 0, Digest{3}); a != "" || b == "" {
			t.Errorf("%q and %q, want what no session left", a, b)
		}
		time.Sleep(2 * time.Hour)
		h.mustEncode(Salt{}, &Draft{Text: "<|im_start|>user\nHi"})
		if h.reasonings.size != 0 {
			t.Error("what nobody asks for stays")
		}
		h.reasonings.check(t)
	})
}

// Reasoning is saved and loaded, as old as it was and in the order of its use.
func TestReasoningFile(t *testing.T) {
	h, _ := told(t)
	for i := range 20 {
		h.RememberReasoning(Salt{byte(i % 3)}, 0, Digest{byte(i)}, fmt.Sprint("thought ", i))
	}
	saved := h.Save()
	again := New(h.guard, Terms{Exact: true})
	if err := again.Load(saved); err != nil {
		t.Fatal(err)
	}
	again.reasonings.check(t)
	for e, f := h.reasonings.used.Front(), again.reasonings.used.Front(); e != nil || f != nil; e, f = e.Next(), f.Next() {
		if e == nil || f == nil {
			t.Fatalf("%d are loaded of %d", again.reasonings.used.Len(), h.reasonings.used.Len())
		}
		if a, b := e.Value.(*reasoning), f.Value.(*reasoning); a.reasoningKey != b.reasoningKey || a.text != b.text {
			t.Errorf("%q is loaded in the place of %q", b.text, a.text)
		}
	}
	for n := len(saved) - 20*60; n < len(saved); n += 7 {
		if none := New(h.guard, Terms{Exact: true}); none.Load(saved[:n]) == nil || none.reasonings.size > 0 {
			t.Fatalf("the first %d bytes of %d were taken", n, len(saved))
		}
	}
}
