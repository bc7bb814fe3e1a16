package store

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzDatabase: a database whose file has been written over somewhere is used or refused in few words; no answer has what nobody
// stored, and nothing panics.
func FuzzDatabase(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "data")
	s := New(Options{Mode: Disk, Dir: dir})
	r := &Response{ID: "a", Owner: ada, Body: []byte(`{"id":"a"}`), Input: items("in")}
	for _, err := range []error{s.Begin(f.Context(), r), s.Finish(f.Context(), r), s.Close()} {
		if err != nil {
			f.Fatal(err)
		}
	}
	whole, err := os.ReadFile(filepath.Join(dir, database))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, []byte("SQLite format 4"))
	f.Add(16, []byte{0xff, 0xff})
	f.Add(100, []byte{0, 0, 0, 0})
	f.Add(len(whole)/2, []byte("CREATE TABLE"))
	f.Add(len(whole), []byte{})
	f.Add(-1, []byte{})
	f.Fuzz(func(t *testing.T, at int, over []byte) {
		b := append([]byte(nil), whole...)
		if at < 0 { // cut short
			b = b[:uint(-(at+1))%uint(len(b)+1)]
		} else {
			copy(b[at%(len(b)+1):], over)
		}
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, database), b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := New(Options{Mode: Disk, Dir: dir})
		defer s.Close()
		chain, err := s.Chain(t.Context(), ada, "a", false)
		if err != nil && len(err.Error()) > 2000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		_ = chain
		if err := s.Begin(t.Context(), &Response{ID: "b", Owner: bob, Previous: "a", Body: []byte("{}")}); err != nil && len(err.Error()) > 2000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}
