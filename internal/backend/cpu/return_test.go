package cpu

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/kv"
)

// TestReturn: the memory of free pages goes back to the system, that of others stays, and a page that is handed out again works.
func TestReturn(t *testing.T) {
	be := New()
	defer be.Close()
	be.NewLoader(backend.Options{})
	s, err := be.NewStore([]backend.StateSpec{{Name: "kv", Kind: backend.StateKV, Heads: 4, KDim: 128, VDim: 128}}, backend.KVPolicy{DType: backend.BF16})
	if err != nil {
		t.Fatal(err)
	}
	const pages = 1000
	if err := s.Resize(kv.Capacity{Pages: []int{pages}, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	size := int(s.Geometry().Groups[0].PageBytes)
	text := bytes.Repeat([]byte{7}, size)
	for id := range kv.PageID(pages) {
		if err := s.Import(bytes.NewReader(text), kv.Ref{Page: id + 1}); err != nil {
			t.Fatal(err)
		}
	}
	var refs []kv.Ref
	for id := kv.PageID(1); id <= pages; id++ {
		if id != 500 && id != 501 {
			refs = append(refs, kv.Ref{Page: id})
		}
	}
	before := anonymous(t)
	s.(*Store).Return(refs)
	if gone := before - anonymous(t); gone < pages*size*9/10 {
		t.Errorf("%d bytes of %d are gone", gone, pages*size)
	}
	for _, id := range []kv.PageID{500, 501} {
		var b bytes.Buffer
		if err := s.Export(&b, kv.Ref{Page: id}); err != nil || !bytes.Equal(b.Bytes(), text) {
			t.Errorf("page %d is not what it was: %v", id, err)
		}
	}
	if err := s.Import(bytes.NewReader(text), kv.Ref{Page: 499}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Export(&b, kv.Ref{Page: 499}); err != nil || !bytes.Equal(b.Bytes(), text) {
		t.Errorf("page 499 is not what was written: %v", err)
	}
}

// anonymous is the memory in bytes that this process has beside its files.
func anonymous(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc here")
	}
	_, rest, _ := strings.Cut(string(b), "RssAnon:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
