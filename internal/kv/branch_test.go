package kv

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show is a branch in a line: pages of group 0, of group 1, uses.
func show(b Branch) string {
	return fmt.Sprintf("%s %v %v", letters(b.Key), b.Pages, b.Uses)
}

func TestBranches(t *testing.T) {
	sc := prefixScript{}
	for _, words := range [][]string{{"new"}, {"put", "abcdefghijklmn"}, {"put", "abcdefghXYZW"}, {"put", "abcdefghijklmnopq"}, {"answer", "123456789"}} {
		sc.do(t, words)
	}
	if got, want := show(sc.p.Branch(elems("abcdefghXYxx"))), "abcdefgh [[1 2] [1 2]] [2 2]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var all []string
	sc.p.Branches(func(b Branch) bool {
		all = append(all, show(b))
		return len(all) < 3
	})
	want := []string{
		"abcdefghijklmnop [[1 2 3 6] [1 2 3 6]] [2 2 2 2]",
		"12345678 [[4 8] [0 8]] [0 0]",
		"abcdefghXYZW [[1 2 5] [1 2 5]] [2 2 0]",
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
	var seen []string
	sc.p.OnEvict(func(b Branch) bool { seen = append(seen, letters(b.Key)); return b.Key[0] == 'a' })
	held := &Table{}
	m := sc.p.Match(elems("abcdefghXYZW."))
	sc.a.Share(held, &m)
	// What is in use is not shown, what see has taken is not shown again.
	sc.p.Evict(1)
	sc.p.Evict(1)
	sc.p.Evict(40)
	sc.p.Evict(1)
	if d := cmp.Diff([]string{"12345678", "12345678", "1234", "abcdefghijklmnop"}, seen); d != "" {
		t.Error(d)
	}
	seen = nil
	sc.do(t, []string{"put", "abcdefghijklmnopqrs"}) // it grows
	sc.p.Evict(1)
	if d := cmp.Diff([]string{"abcdefghijklmnop"}, seen); d != "" {
		t.Error(d)
	}
	sc.p.OnEvict(nil)
	sc.a.Release(held)
	sc.check(t)
}

func TestInsertPage(t *testing.T) {
	sc := prefixScript{}
	sc.do(t, []string{"new"})
	sc.do(t, []string{"put", "abcdef"})
	every := func(int) bool { return true }
	filled := 0
	fill := func(int, PageID) error { filled++; return nil }
	insert := func(key string, index int, want func(int) bool, fill func(int, PageID) error) (bool, error) {
		t.Helper()
		ok, err := sc.p.InsertPage(elems(key), index, 3, want, fill)
		sc.check(t)
		return ok, err
	}
	key := "abcdefghijklmnop"
	if ok, _ := insert(key, 2, every, fill); ok || filled > 0 {
		t.Error("a page is inserted beyond the end")
	}
	if ok, _ := insert(key, 0, every, fill); !ok || filled > 0 {
		t.Error("a page that is there is filled again")
	}
	bad := errors.New("bad")
	if _, err := insert(key, 1, every, func(int, PageID) error { return bad }); err != bad {
		t.Error(err)
	}
	if m := sc.p.Match(elems(key)); m.Longer != 6 {
		t.Errorf("after a failure %d tokens are stored", m.Longer)
	}
	for i := 1; i < 4; i++ { // of the window's group only the last pages
		if ok, err := insert(key, i, func(g int) bool { return g == 0 || i > 1 }, fill); !ok || err != nil {
			t.Fatal(i, err)
		}
	}
	if filled != 5 {
		t.Errorf("%d pages filled", filled)
	}
	if m := sc.p.Match(elems(key + "!")); m.Tokens != 16 || m.Kind != Within {
		t.Errorf("%d tokens restored, %v", m.Tokens, m.Kind)
	}
	if b := sc.p.Branch(elems(key)); !cmp.Equal(b.Uses, []int{3, 3, 3, 3}) {
		t.Errorf("uses %v", b.Uses)
	}
	if ok, _ := insert(key, 1, every, fill); !ok || filled != 7 {
		t.Errorf("the window's page is not filled in: %d", filled)
	}

	// With no memory left, what is worth less makes room, and what is in use stays.
	sc.do(t, []string{"hold", "x", "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"})
	for n := 0; ; n++ {
		ok, err := insert("zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA", n, every, fill)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if n > 10 {
			t.Fatal("pages from nowhere")
		}
	}
	sc.do(t, []string{"drop", "x"})
	sc.check(t)

	// Where there can be more, that is asked for, and nothing is evicted.
	sc.do(t, []string{"new"})
	sc.do(t, []string{"put", "abcd"})
	asked := int64(0)
	sc.a.OnShort(sc.a.InUse(), func(least, most int64) int64 { asked += least; return least })
	if ok, err := insert("abcdefgh", 1, every, fill); !ok || err != nil || asked == 0 {
		t.Errorf("%v, %v: asked for %d bytes", ok, err, asked)
	}
	if m := sc.p.Match(elems("abcdefgh!")); m.Tokens != 8 {
		t.Errorf("%d tokens are there", m.Tokens)
	}
}
