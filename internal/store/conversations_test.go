package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// converse keeps a conversation.
func converse(t *testing.T, s *Store, owner Owner, id string, texts ...string) {
	t.Helper()
	if err := s.AddConversation(t.Context(), &Conversation{ID: id, Owner: owner, Metadata: []byte(`{"k":"v"}`)}, items(texts...)); err != nil {
		t.Fatal(err)
	}
}

// on makes a response on a conversation, from its beginning to its end.
func on(t *testing.T, s *Store, owner Owner, id, conversation string) {
	t.Helper()
	c, err := s.Conversation(t.Context(), owner, conversation)
	if err != nil {
		t.Fatal(err)
	}
	r := &Response{ID: id, Owner: owner, Conversation: conversation, At: c.Next, Body: []byte("{}"), Input: items(id + "-in")}
	release, err := s.Hold(t.Context(), owner, conversation, c.Next, r.Input)
	if err == nil {
		defer release()
		err = s.Begin(t.Context(), r)
	}
	if r.Status, r.Output, r.Joins = "completed", items(id+"-out"), true; err == nil {
		err = s.Finish(t.Context(), r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// inside are the items of a conversation in short.
func inside(t *testing.T, s *Store, owner Owner, id string) string {
	t.Helper()
	_, got, err := s.ConversationItems(t.Context(), owner, id)
	if err != nil {
		t.Fatal(err)
	}
	return bodies(got)
}

// TestConversation: items stand in the order in which they came, in memory as on disk, and after another process has opened the
// file; what is taken out leaves the others; a response builds on what there was when it was made.
func TestConversation(t *testing.T) {
	for _, mode := range []Mode{Disk, Memory} {
		o := Options{Mode: mode, Dir: filepath.Join(t.TempDir(), "data")}
		s := open(t, o)
		converse(t, s, ada, "c", "a", "b")
		on(t, s, ada, "r1", "c")
		if err := s.AddItems(t.Context(), ada, "c", items("d")); err != nil {
			t.Fatal(err)
		}
		on(t, s, ada, "r2", "c")
		if mode == Disk {
			s.Close()
			s = open(t, o)
		}
		if _, err := s.RemoveItem(t.Context(), ada, "c", "i_a"); err != nil {
			t.Fatal(err)
		}
		if got, want := inside(t, s, ada, "c"), "b r1-in r1-out d r2-in r2-out"; got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
		add(t, s, ada, "r3", "r1")
		for id, want := range map[string]string{"r1": "b r1-in r1-out", "r2": "b r1-in r1-out d r2-in r2-out", "r3": "b r1-in r1-out r3-in r3-out r3-more"} {
			if got, err := s.Chain(t.Context(), ada, id, false); err != nil || bodies(got) != want {
				t.Errorf("%s: %s: %s, %v, want %s", mode, id, bodies(got), err, want)
			}
		}
		if i, err := s.ConversationItem(t.Context(), ada, "c", "i_d"); err != nil || string(i.Body) != `"d"` {
			t.Errorf("%s: %+v, %v", mode, i, err)
		}
		if i, err := s.Item(t.Context(), ada, "i_d"); err != nil || string(i.Body) != `"d"` {
			t.Errorf("%s: %+v, %v", mode, i, err)
		}
		if c, err := s.SetMetadata(t.Context(), ada, "c", []byte(`{}`)); err != nil || string(c.Metadata) != `{}` || c.items != 6 {
			t.Errorf("%s: %+v, %v", mode, c, err)
		}
		if err := s.RemoveConversation(t.Context(), ada, "c"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), ada, "r1"); err != nil {
			t.Errorf("%s: the response went with its conversation: %v", mode, err)
		}
		if got, err := s.Chain(t.Context(), ada, "r1", true); err != nil || bodies(got) != "r1-in" {
			t.Errorf("%s: %s, %v", mode, bodies(got), err)
		}
		for what, f := range map[string]func() error{
			"chain":  func() error { _, err := s.Chain(t.Context(), ada, "r1", false); return err },
			"items":  func() error { _, _, err := s.ConversationItems(t.Context(), ada, "c"); return err },
			"item":   func() error { _, err := s.Item(t.Context(), ada, "i_d"); return err },
			"add":    func() error { return s.AddItems(t.Context(), ada, "c", items("e")) },
			"remove": func() error { return s.RemoveConversation(t.Context(), ada, "c") },
			"hold":   func() error { _, err := s.Hold(t.Context(), ada, "c", 0, nil); return err },
		} {
			if err := f(); !errors.Is(err, ErrUnknown) {
				t.Errorf("%s: %s of a conversation that is removed: %v", mode, what, err)
			}
		}
	}
}

// TestConversationOwners: nothing of one owner's conversation is there for another, nor for who has no key.
func TestConversationOwners(t *testing.T) {
	s := open(t, Options{})
	converse(t, s, ada, "c", "a")
	for _, other := range []Owner{bob, {}} {
		_, get := s.Conversation(t.Context(), other, "c")
		_, set := s.SetMetadata(t.Context(), other, "c", nil)
		_, item := s.ConversationItem(t.Context(), other, "c", "i_a")
		_, reference := s.Item(t.Context(), other, "i_a")
		_, removed := s.RemoveItem(t.Context(), other, "c", "i_a")
		_, hold := s.Hold(t.Context(), other, "c", 1, nil)
		for what, err := range map[string]error{
			"get": get, "set": set, "item": item, "reference": reference, "remove item": removed, "hold": hold,
			"add": s.AddItems(t.Context(), other, "c", items("b")), "remove": s.RemoveConversation(t.Context(), other, "c"),
		} {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%s by %v: %v", what, other[0], err)
			}
		}
		if err := s.Append(t.Context(), &Response{Owner: other, Conversation: "c", Input: items("b")}); err != nil || inside(t, s, ada, "c") != "a" {
			t.Errorf("%v, %s", err, inside(t, s, ada, "c"))
		}
	}
}

// TestHold: one response has a conversation, as it was read, until it is released.
func TestHold(t *testing.T) {
	s := open(t, Options{})
	converse(t, s, ada, "c", "a")
	if _, err := s.Hold(t.Context(), ada, "c", 0, nil); !errors.Is(err, ErrHeld) {
		t.Errorf("as it was before: %v", err)
	}
	release, err := s.Hold(t.Context(), ada, "c", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, again := s.Hold(t.Context(), ada, "c", 1, nil)
	_, removed := s.RemoveItem(t.Context(), ada, "c", "i_a")
	for what, err := range map[string]error{"hold": again, "remove": removed, "add": s.AddItems(t.Context(), ada, "c", items("b"))} {
		if !errors.Is(err, ErrHeld) {
			t.Errorf("%s: %v", what, err)
		}
	}
	release()
	// Of many at once one has it at a time, and each sees what those before have added.
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for added := false; !added; {
				c, got, err := s.ConversationItems(t.Context(), ada, "c")
				if err != nil {
					t.Error(err)
					return
				}
				release, err := s.Hold(t.Context(), ada, "c", c.Next, nil)
				if errors.Is(err, ErrHeld) {
					continue
				}
				text := fmt.Sprintf("%d-after-%d", n, len(got))
				if err = s.Append(t.Context(), &Response{Owner: ada, Conversation: "c", Input: items(text)}); err != nil {
					t.Error(err)
				}
				release()
				added = true
			}
		})
	}
	wg.Wait()
	for i, text := range strings.Fields(inside(t, s, ada, "c"))[1:] {
		if !strings.HasSuffix(text, fmt.Sprintf("-after-%d", i+1)) {
			t.Errorf("item %d is %s", i+1, text)
		}
	}
}

// TestFinishTogether: a response and the items that it adds are finished together or not at all.
func TestFinishTogether(t *testing.T) {
	s := open(t, Options{})
	converse(t, s, ada, "c", "a")
	r := &Response{ID: "r", Owner: ada, Conversation: "c", At: 1, Body: []byte("{}"), Input: items("in")}
	if err := s.Begin(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Status, r.Joins, r.Output = "completed", true, items("a")
	if err := s.Finish(t.Context(), r); !errors.Is(err, ErrTwice) {
		t.Errorf("%v", err)
	}
	if got, err := s.Get(t.Context(), ada, "r"); err != nil || got.Status != InProgress || inside(t, s, ada, "c") != "a" {
		t.Errorf("%+v, %v, %s", got, err, inside(t, s, ada, "c"))
	}
	r.Status, r.Joins, r.Output = "failed", false, items("out")
	if err := s.Finish(t.Context(), r); err != nil || inside(t, s, ada, "c") != "a" {
		t.Errorf("%v, %s", err, inside(t, s, ada, "c"))
	}
}

// TestConversationIsFull: a conversation is bounded in items and bytes, and what is taken out makes room.
func TestConversationIsFull(t *testing.T) {
	s := open(t, Options{})
	large := []Item{{"large", make([]byte, MaxConversation+1)}}
	if err := s.AddConversation(t.Context(), &Conversation{ID: "c", Owner: ada}, large); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	for column, full := range map[string]int{"items": MaxItems, "bytes": MaxConversation} {
		converse(t, s, ada, column, "a", "b")
		if _, err := s.write.Exec("UPDATE conversations SET "+column+" = ? WHERE id = ?", full, column); err != nil {
			t.Fatal(err)
		}
		_, hold := s.Hold(t.Context(), ada, column, 2, items("x"))
		if err := s.AddItems(t.Context(), ada, column, items("x")); !errors.Is(err, ErrFull) || !errors.Is(hold, ErrFull) {
			t.Errorf("%s: %v, %v", column, err, hold)
		}
		_, err := s.RemoveItem(t.Context(), ada, column, "i_a")
		if err == nil {
			err = s.AddItems(t.Context(), ada, column, items("x"))
		}
		if err != nil {
			t.Errorf("%s: %v", column, err)
		}
	}
}

// TestConversationExpires: a conversation that was idle ends with its archive, which goes when its owner removes it; one that a
// response holds stays; a response that was made on one is in no archive of its own.
func TestConversationExpires(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	var mu sync.Mutex
	o := Options{Archive: filepath.Join(t.TempDir(), "logs"), Conversation: time.Hour,
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }}
	later := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	s := open(t, o)
	sweep := func() {
		t.Helper()
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	converse(t, s, ada, "c", "a")
	later(45 * time.Minute)
	on(t, s, ada, "r", "c")
	later(45 * time.Minute)
	c, err := s.Conversation(t.Context(), ada, "c")
	if sweep(); err != nil || exists(o.Archive) {
		t.Fatalf("%v, archived %t", err, exists(o.Archive))
	}
	release, err := s.Hold(t.Context(), ada, "c", c.Next, nil)
	if err != nil {
		t.Fatal(err)
	}
	later(2 * time.Hour)
	if sweep(); exists(o.Archive) {
		t.Error("it is archived while a response holds it")
	}
	release()
	sweep()
	path := filepath.Join(o.Archive, "c.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id": "c"`, `"conversation.archive"`, `"created_at": 1800000000`, `"k": "v"`, `"a"`, `"r-in"`, `"r-out"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if files, _ := os.ReadDir(o.Archive); len(files) != 1 {
		t.Errorf("%v", files)
	}
	_, get := s.Conversation(t.Context(), ada, "c")
	_, item := s.ConversationItem(t.Context(), ada, "c", "i_a")
	_, set := s.SetMetadata(t.Context(), ada, "c", nil)
	for what, err := range map[string]error{"get": get, "item": item, "set": set, "other's remove": s.RemoveConversation(t.Context(), bob, "c")} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s of a conversation that has expired: %v", what, err)
		}
	}
	if _, err := s.Get(t.Context(), ada, "r"); err != nil {
		t.Errorf("the response is gone with its conversation: %v", err)
	}
	if err := s.RemoveConversation(t.Context(), ada, "c"); err != nil || exists(path) {
		t.Errorf("%v, archived %t", err, exists(path))
	}
	converse(t, s, ada, "gone", "a")
	later(time.Hour)
	s.o.Archive = ""
	if sweep(); errors.Is(s.RemoveConversation(t.Context(), ada, "gone"), nil) {
		t.Error("without archives something is left")
	}
}

// TestUpgrade: a database of the version before conversations goes on.
func TestUpgrade(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	all := migrations
	migrations = all[:1]
	s := open(t, o)
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write.Exec("INSERT INTO responses (id, owner, previous, root, depth, status, created, body) VALUES ('a', ?, '', 'a', 0, 'completed', 0, x'7b7d')", ada[:]); err != nil {
		t.Fatal(err)
	}
	s.Close()
	migrations = all
	s = open(t, o)
	if _, err := s.Get(t.Context(), ada, "a"); err != nil {
		t.Error(err)
	}
	converse(t, s, ada, "c", "x")
	on(t, s, ada, "r", "c")
}
