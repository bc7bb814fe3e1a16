package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var ada, bob = Owner{1}, Owner{2}

// open makes a store whose clock stands, and which the test closes.
func open(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Mode == "" {
		o.Mode = Disk
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "data")
	}
	s := New(o)
	t.Cleanup(func() { s.Close() })
	return s
}

func items(texts ...string) []Item {
	var all []Item
	for _, t := range texts {
		all = append(all, Item{"i_" + t, []byte(`"` + t + `"`)})
	}
	return all
}

// add keeps a response from its beginning to its end.
func add(t *testing.T, s *Store, owner Owner, id, previous string) {
	t.Helper()
	r := &Response{ID: id, Owner: owner, Previous: previous, Body: []byte(`{"id":"` + id + `"}`), Input: items(id + "-in")}
	if err := s.Begin(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Status, r.Output = "completed", items(id+"-out", id+"-more")
	if err := s.Finish(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func bodies(items []Item) string {
	var all []string
	for _, i := range items {
		all = append(all, strings.Trim(string(i.Body), `"`))
	}
	return strings.Join(all, " ")
}

// TestChain: what a response builds on comes oldest first, in memory as on disk, and after another process has opened the file.
func TestChain(t *testing.T) {
	for _, mode := range []Mode{Disk, Memory} {
		o := Options{Mode: mode, Dir: filepath.Join(t.TempDir(), "data")}
		s := open(t, o)
		add(t, s, ada, "a", "")
		add(t, s, ada, "b", "a")
		add(t, s, ada, "c", "b")
		add(t, s, ada, "side", "a")
		if mode == Disk {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, o)
		}
		for id, want := range map[string]string{
			"a": "a-in a-out a-more", "c": "a-in a-out a-more b-in b-out b-more c-in c-out c-more", "side": "a-in a-out a-more side-in side-out side-more",
		} {
			got, err := s.Chain(t.Context(), ada, id, false)
			if err != nil || bodies(got) != want {
				t.Errorf("%s: %s: %s, %v", mode, id, bodies(got), err)
			}
		}
		if got, err := s.Chain(t.Context(), ada, "b", true); err != nil || bodies(got) != "a-in a-out a-more b-in" {
			t.Errorf("%s: the input of b: %s, %v", mode, bodies(got), err)
		}
		r, err := s.Get(t.Context(), ada, "b")
		if err != nil || r.Status != "completed" || r.Previous != "a" || string(r.Body) != `{"id":"b"}` {
			t.Errorf("%s: %+v, %v", mode, r, err)
		}
		if i, err := s.Item(t.Context(), ada, "i_b-out"); err != nil || string(i.Body) != `"b-out"` {
			t.Errorf("%s: %+v, %v", mode, i, err)
		}
	}
}

// TestOwners: nothing of one owner's is there for another, nor for who has no key.
func TestOwners(t *testing.T) {
	s := open(t, Options{})
	add(t, s, ada, "a", "")
	for _, other := range []Owner{bob, {}} {
		_, get := s.Get(t.Context(), other, "a")
		_, chain := s.Chain(t.Context(), other, "a", false)
		_, item := s.Item(t.Context(), other, "i_a-in")
		for what, err := range map[string]error{
			"get": get, "chain": chain, "item": item, "delete": s.Delete(t.Context(), other, "a"),
			"begin":  s.Begin(t.Context(), &Response{ID: "b", Owner: other, Previous: "a", Body: []byte("{}")}),
			"finish": s.Finish(t.Context(), &Response{ID: "a", Owner: other, Status: "completed", Body: []byte("{}")}),
		} {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%s by %v: %v", what, other[0], err)
			}
		}
	}
}

// TestDelete: a response goes with its items; what builds on it is no chain any more, and what was not finished yet stays away.
func TestDelete(t *testing.T) {
	s := open(t, Options{})
	add(t, s, ada, "a", "")
	add(t, s, ada, "b", "a")
	if err := s.Begin(t.Context(), &Response{ID: "c", Owner: ada, Previous: "b", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "c"} {
		if err := s.Delete(t.Context(), ada, id); err != nil {
			t.Fatal(err)
		}
	}
	_, again := s.Get(t.Context(), ada, "a")
	_, item := s.Item(t.Context(), ada, "i_a-in")
	_, chain := s.Chain(t.Context(), ada, "b", false)
	finish := s.Finish(t.Context(), &Response{ID: "c", Owner: ada, Status: "completed", Body: []byte("{}"), Output: items("late")})
	for what, err := range map[string]error{"get": again, "item": item, "chain": chain, "finish": finish, "delete": s.Delete(t.Context(), ada, "a")} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Get(t.Context(), ada, "b"); err != nil {
		t.Errorf("b: %v", err)
	}
}

// TestLongChain: a chain has an end.
func TestLongChain(t *testing.T) {
	s := open(t, Options{Mode: Memory})
	previous := ""
	for i := range MaxChain + 1 {
		id := fmt.Sprint("r", i)
		if err := s.Begin(t.Context(), &Response{ID: id, Owner: ada, Previous: previous, Body: []byte("{}"), Input: items(id)}); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		previous = id
	}
	if got, err := s.Chain(t.Context(), ada, previous, false); err != nil || len(got) != MaxChain+1 {
		t.Errorf("%d items, %v", len(got), err)
	}
	if err := s.Begin(t.Context(), &Response{ID: "x", Owner: ada, Previous: previous, Body: []byte("{}")}); !errors.Is(err, ErrLong) {
		t.Errorf("one more: %v", err)
	}
}

// TestLargeChain: what is read at once has an end, too.
func TestLargeChain(t *testing.T) {
	s := open(t, Options{Mode: Memory})
	large := func(id string) []Item { return []Item{{id, make([]byte, MaxConversation/2)}} }
	for i, previous := range []string{"", "r0", "r1"} {
		id := fmt.Sprint("r", i)
		if err := s.Begin(t.Context(), &Response{ID: id, Owner: ada, Previous: previous, Body: []byte("{}"), Input: large(id)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Chain(t.Context(), ada, id, false); errors.Is(err, ErrLong) != (i > 1) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestCycle: a database in which responses lead in a circle, which nothing here writes, is told of and not followed for ever.
func TestCycle(t *testing.T) {
	s := open(t, Options{})
	add(t, s, ada, "a", "")
	add(t, s, ada, "b", "a")
	if _, err := s.write.Exec("UPDATE responses SET previous = 'b' WHERE id = 'a'"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Chain(t.Context(), ada, "b", false); !errors.Is(err, ErrLong) {
		t.Errorf("%v", err)
	}
}

// TestInterrupted: what the last process was busy with has failed.
func TestInterrupted(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := open(t, o)
	add(t, s, ada, "done", "")
	if err := s.Begin(t.Context(), &Response{ID: "open", Owner: ada, Body: []byte(`{"a": 1}`)}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, o)
	for id, want := range map[string]string{"done": "completed", "open": Interrupted} {
		if r, err := s.Get(t.Context(), ada, id); err != nil || r.Status != want {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
}

// TestOpensLate: nothing is made on disk before something is kept, and who only looks is told that there is nothing.
func TestOpensLate(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "data")}
	s := open(t, o)
	if _, err := s.Get(t.Context(), ada, "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if err := s.Delete(t.Context(), ada, "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(o.Dir); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
	add(t, s, ada, "a", "")
	for _, path := range []string{o.Dir, filepath.Join(o.Dir, database), filepath.Join(o.Dir, database+"-wal"), filepath.Join(o.Dir, "lock")} {
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	}
}

// TestOff: nothing is kept.
func TestOff(t *testing.T) {
	s := open(t, Options{Mode: Off})
	if err := s.Begin(t.Context(), &Response{ID: "a"}); !errors.Is(err, ErrOff) || s.Keeps() {
		t.Errorf("%v, %t", err, s.Keeps())
	}
	if _, err := s.Get(t.Context(), ada, "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
}

// TestSecondProcess: a folder belongs to one; the second keeps in memory, says so, and leaves the file alone.
func TestSecondProcess(t *testing.T) {
	var notes []string
	o := Options{Dir: t.TempDir(), Note: func(text string) { notes = append(notes, text) }}
	s := open(t, o)
	add(t, s, ada, "a", "")
	other := open(t, o)
	add(t, other, ada, "b", "")
	if _, err := other.Get(t.Context(), ada, "b"); err != nil {
		t.Error(err)
	}
	if _, err := other.Get(t.Context(), ada, "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if _, err := s.Get(t.Context(), ada, "b"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], o.Dir) || !strings.Contains(notes[0], "in memory") {
		t.Errorf("%q", notes)
	}
}

// TestBroken: a file that is no database, or a newer one, is an error that says what to do, and stays as it is.
func TestBroken(t *testing.T) {
	newer := t.TempDir()
	s := open(t, Options{Dir: newer})
	add(t, s, ada, "a", "")
	if _, err := s.write.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	noise := t.TempDir()
	if err := os.WriteFile(filepath.Join(noise, database), []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{newer: "newer version of hearth", noise: "not a database"} {
		before, _ := os.ReadFile(filepath.Join(dir, database))
		for range 2 {
			err := open(t, Options{Dir: dir}).Begin(t.Context(), &Response{ID: "b", Body: []byte("{}")})
			if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--store memory") || !strings.Contains(err.Error(), dir) {
				t.Errorf("%v, want %q", err, says)
			}
		}
		if after, _ := os.ReadFile(filepath.Join(dir, database)); !slices.Equal(before, after) {
			t.Errorf("%s has changed", says)
		}
	}
}

// refuses checks that nothing can be kept, for a reason, and that the error says what to do.
func refuses(t *testing.T, s *Store, says string, body []byte) {
	t.Helper()
	err := s.Begin(t.Context(), &Response{ID: "b", Owner: ada, Body: body})
	if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--store memory") || !strings.Contains(err.Error(), s.o.Dir) {
		t.Errorf("%v, want %q", err, says)
	}
}

// TestDamaged: a database of which a part is overwritten is an error that says what to do, and stays as it is.
func TestDamaged(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := open(t, o)
	for i := range 100 {
		add(t, s, ada, fmt.Sprint("r", i), "")
	}
	s.Close()
	path := filepath.Join(o.Dir, database)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(before); i++ {
		before[i] ^= 0x5a
	}
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, open(t, o), "malformed", []byte("{}"))
	if after, _ := os.ReadFile(path); !slices.Equal(before, after) {
		t.Error("the file has changed")
	}
}

// TestLocked: a database that another program holds is an error that says what to do, before anything was kept and after, and
// goes on when it is free.
func TestLocked(t *testing.T) {
	t.Parallel() // it is waited for
	o := Options{Dir: t.TempDir()}
	s := open(t, o)
	add(t, s, ada, "a", "")
	holds := func() (free func()) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(o.Dir, database)+"?_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return func() { _ = tx.Rollback(); db.Close() }
	}
	free := holds()
	refuses(t, s, "locked", []byte("{}"))
	if _, err := s.Get(t.Context(), ada, "a"); err != nil {
		t.Errorf("it cannot be read meanwhile: %v", err)
	}
	free()
	add(t, s, ada, "b", "a")
	s.Close()
	free = holds()
	refuses(t, open(t, o), "locked", []byte("{}"))
	free()
	s = open(t, o)
	if got, err := s.Chain(t.Context(), ada, "b", false); err != nil || len(got) != 6 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestFull: where there is no place an error says what to do, nothing of the response is kept, and all else stays.
func TestFull(t *testing.T) {
	s := open(t, Options{})
	add(t, s, ada, "a", "")
	if _, err := s.write.Exec("PRAGMA max_page_count = 30"); err != nil {
		t.Fatal(err)
	}
	refuses(t, s, "full", make([]byte, 1<<20))
	if _, err := s.Get(t.Context(), ada, "b"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	add(t, s, ada, "c", "a")
	r := &Response{ID: "d", Owner: ada, Previous: "c", Body: []byte("{}")}
	if err := s.Begin(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Status, r.Output = "completed", []Item{{"i", make([]byte, 1<<20)}}
	if err := s.Finish(t.Context(), r); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("%v", err)
	}
	if got, err := s.Chain(t.Context(), ada, "c", false); err != nil || len(got) != 6 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestArchive: a chain that was idle is archived once, again after it has gone on, and its archive goes with a response of it.
func TestArchive(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	var mu sync.Mutex
	o := Options{Archive: filepath.Join(t.TempDir(), "logs"), Conversation: time.Hour, Responses: 24 * time.Hour,
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }}
	later := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	s := open(t, o)
	add(t, s, ada, "a", "")
	later(30 * time.Minute)
	add(t, s, ada, "b", "a")
	sweep := func() {
		t.Helper()
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(o.Archive, "a.json")
	later(45 * time.Minute)
	if sweep(); exists(path) {
		t.Error("it is archived 45 minutes after its last response")
	}
	later(15 * time.Minute)
	sweep()
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"a-in"`, `"a-more"`, `"b-out"`, `"completed"`} {
		if !strings.Contains(string(first), want) {
			t.Errorf("%s is not in\n%s", want, first)
		}
	}
	for p, want := range map[string]os.FileMode{path: 0o600, o.Archive: 0o700} {
		if st, err := os.Stat(p); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", p, st, err)
		}
	}
	if _, err := s.Get(t.Context(), ada, "a"); err != nil {
		t.Errorf("a response is gone with its archive: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if sweep(); exists(path) {
		t.Error("it is archived twice")
	}
	add(t, s, ada, "c", "b")
	later(time.Hour)
	if sweep(); !exists(path) {
		t.Error("it went on and is not archived")
	}
	if err := s.Delete(t.Context(), ada, "b"); err != nil || exists(path) {
		t.Errorf("after a response is deleted: %v, archived %t", err, exists(path))
	}
	later(24 * time.Hour)
	sweep()
	if _, err := s.Get(t.Context(), ada, "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("after a day: %v", err)
	}
	files, _ := os.ReadDir(o.Archive)
	for _, f := range files {
		if f.Name() != "a.json" {
			t.Errorf("%s is left", f.Name())
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestArchiveNames: an id leads nowhere else.
func TestArchiveNames(t *testing.T) {
	s := open(t, Options{Archive: t.TempDir()})
	for _, id := range []string{"../x", "a/b", "a.b", "", strings.Repeat("a", 200), "con\x00"} {
		if p := s.archive(id); filepath.Dir(p) != s.o.Archive || strings.ContainsAny(filepath.Base(p), "/\x00") {
			t.Errorf("%q: %s", id, p)
		}
	}
}

// TestTogether: many that keep and look at once lose nothing.
func TestTogether(t *testing.T) {
	for _, mode := range []Mode{Disk, Memory} {
		s := open(t, Options{Mode: mode})
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				previous := ""
				for i := range 10 {
					id := fmt.Sprintf("r%d-%d", n, i)
					r := &Response{ID: id, Owner: ada, Previous: previous, Body: []byte("{}"), Input: items(id)}
					err := s.Begin(context.Background(), r)
					if r.Status = "completed"; err == nil {
						err = s.Finish(context.Background(), r)
					}
					got, cerr := s.Chain(context.Background(), ada, id, false)
					if err != nil || cerr != nil || len(got) != i+1 {
						t.Errorf("%s: %v, %v, %d items", id, err, cerr, len(got))
					}
					previous = id
				}
			})
		}
		wg.Wait()
	}
}

// TestEvents: events of a response are found by number, by its owner alone, also by another process; they go with it.
func TestEvents(t *testing.T) {
	for _, mode := range []Mode{Disk, Memory} {
		o := Options{Mode: mode, Dir: filepath.Join(t.TempDir(), "data")}
		s := open(t, o)
		add(t, s, ada, "without", "")
		r := &Response{ID: "a", Owner: ada, Body: []byte("{}"), Events: &Events{0, []byte("zero")}}
		if err := s.Begin(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		err := s.AddEvents(t.Context(), ada, "a", &Events{2, []byte("two")})
		if r.Status, r.Events = "completed", (&Events{7, []byte("seven")}); err == nil {
			err = s.Finish(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		if mode == Disk {
			s.Close()
			s = open(t, o)
		}
		for n, want := range map[int]Events{0: {0, []byte("zero")}, 1: {0, []byte("zero")}, 2: {2, []byte("two")}, 6: {2, []byte("two")}, 7: {7, []byte("seven")}, 99: {7, []byte("seven")}} {
			if got, err := s.Events(t.Context(), ada, "a", n); err != nil || got.First != want.First || string(got.Body) != string(want.Body) {
				t.Errorf("%s: %d: %+v, %v", mode, n, got, err)
			}
		}
		_, none := s.Events(t.Context(), ada, "without", 0)
		if err := s.Delete(t.Context(), ada, "without"); err != nil {
			t.Fatal(err)
		}
		_, other := s.Events(t.Context(), bob, "a", 0)
		for what, err := range map[string]error{"another's": other, "none": none, "adding to another's": s.AddEvents(t.Context(), bob, "a", &Events{9, nil}),
			"adding to what is deleted": s.AddEvents(t.Context(), ada, "without", &Events{9, nil})} {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%s: %s: %v", mode, what, err)
			}
		}
		if err := s.Delete(t.Context(), ada, "a"); err != nil {
			t.Fatal(err)
		}
		left := -1
		if err := s.read.QueryRowContext(t.Context(), "SELECT count(*) FROM events").Scan(&left); err != nil || left != 0 {
			t.Errorf("%s: %d are left, %v", mode, left, err)
		}
	}
}

// TestClockJumps: a clock that is set back has nothing expire, and chains go on across it and when it is set forward again. What
// was stored meanwhile is then as old as it says, and expires as such.
func TestClockJumps(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	var mu sync.Mutex
	s := open(t, Options{Responses: 30 * 24 * time.Hour, Conversation: time.Hour, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	set := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	const year = 365 * 24 * time.Hour
	add(t, s, ada, "a", "")
	for i, d := range []time.Duration{-year, year + time.Minute} {
		set(d)
		id := []string{"b", "c"}[i]
		add(t, s, ada, id, []string{"a", "b"}[i])
		if i == 0 {
			if err := s.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Chain(t.Context(), ada, id, false); err != nil || len(got) != 3*(i+2) {
			t.Errorf("%s: %d items, %v", id, len(got), err)
		}
	}
}
