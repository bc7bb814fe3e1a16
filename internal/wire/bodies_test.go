package wire

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"hearth/internal/chat"
)

// allocated is how many bytes f takes from the heap, the least of three tries: others may take some meanwhile.
func allocated(f func()) uint64 {
	least := ^uint64(0)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// TestBodiesTogether: the sum is bounded, the last quarter is for the beginnings of bodies, one alone always fits, and what
// is let go of is there for others.
func TestBodiesTogether(t *testing.T) {
	const most = 64 * smallBody
	b := NewBodies(most)
	grow := func(from, to int64, want bool) {
		t.Helper()
		if got := b.grow(from*smallBody, to*smallBody); got != want {
			t.Fatalf("from %d to %d with %d held: %t, want %t", from, to, b.Held()/smallBody, got, want)
		}
	}
	grow(0, 1000, true) // alone
	b.release(1000 * smallBody)
	if b.Held() != 0 || b.large != 0 {
		t.Fatalf("%d and %d bytes are left", b.Held(), b.large)
	}
	grow(0, 30, true)
	grow(0, 19, true)   // 47 large: 29 and 18
	grow(19, 20, true)  // 48, three quarters
	grow(20, 21, false) // no more of those
	grow(0, 2, false)
	for range 14 {
		grow(0, 1, true) // but of small ones
	}
	grow(0, 1, false) // until all is taken
	b.release(30 * smallBody)
	grow(20, 49, true)
	if e := b.full(); e.Kind != chat.Overloaded || e.Bound != chat.BoundBodies || e.RetryAfter == 0 || !strings.Contains(e.Msg, "4 MiB") {
		t.Errorf("refused with %#v", e)
	}
}

// TestBodyGrows: a body takes memory as it comes, whatever was promised, and all that it takes counts.
func TestBodyGrows(t *testing.T) {
	const limit = 64 << 20
	for _, tc := range []struct {
		sent, promised, most int64
	}{
		{130, 60 << 20, 2 * firstBytes},
		{0, 60 << 20, 2 * firstBytes},
		{100 << 10, 60 << 20, 600 << 10},
		{100 << 10, 100 << 10, 130 << 10}, // all that was promised: little more than itself
		{100 << 10, -1, 600 << 10},
		{1 << 20, 1 << 20, 3 << 19},
	} {
		sent := bytes.Repeat([]byte{' '}, int(tc.sent))
		var held int64
		got := allocated(func() {
			b := &Body{of: NewBodies(256 << 20)}
			raw, err := b.read(io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(io.ErrUnexpectedEOF)), tc.promised, limit)
			if err != io.ErrUnexpectedEOF || raw != nil {
				t.Fatalf("%d bytes, %v", len(raw), err)
			}
			held = b.of.Held()
			if b.Close(); b.of.Held() != 0 {
				t.Errorf("%d bytes are left", b.of.Held())
			}
		})
		if got > uint64(tc.most)+2048 || held > tc.most || held < tc.sent {
			t.Errorf("%d bytes of %d take %d, and count as %d", tc.sent, tc.promised, got, held)
		}
	}
	for _, n := range []int{0, 1, firstBytes - 1, firstBytes, firstBytes + 1, 100_000, 1 << 20} {
		for _, promised := range []int64{int64(n), -1, 60 << 20} {
			want := bytes.Repeat([]byte("x"), n)
			b := &Body{of: NewBodies(256 << 20)}
			raw, err := b.read(iotest.HalfReader(bytes.NewReader(want)), promised, 1<<20)
			if err != nil || !bytes.Equal(raw, want) {
				t.Errorf("%d bytes, %d promised: %d, %v", n, promised, len(raw), err)
			}
		}
	}
	b := &Body{of: NewBodies(256 << 20)}
	if _, err := b.read(bytes.NewReader(make([]byte, 1<<20+1)), -1, 1<<20); err != errLarge {
		t.Errorf("a byte too many: %v", err)
	}
	b = &Body{of: NewBodies(100 << 10)}
	b.of.grow(0, 50<<10)
	if _, err := b.read(bytes.NewReader(make([]byte, 1<<20)), -1, 1<<20); err != errFull || b.bytes > 50<<10 {
		t.Errorf("with no room: %v, %d bytes", err, b.bytes)
	}
}

// TestUnknownFields: what no decoder asks for costs nothing, at any depth, and the last of a name counts.
func TestUnknownFields(t *testing.T) {
	body := func(n int) []byte {
		unknown := strings.Repeat(`"a":1,"é":{"b":[]},`, n)
		return []byte(`{` + unknown + `"x":{` + unknown + `"y":1,"\u0079":2},"z":3}`)
	}
	read := func(n int) uint64 {
		raw := body(n)
		return allocated(func() {
			v, err := Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			var d Decoder
			if y, z := d.Int(v.Get("x").Get("y"), 0, 9), d.Int(v.Get("z"), 0, 9); *y != 2 || *z != 3 || v.Get("nothing").Kind() != Missing {
				t.Errorf("%d %d", *y, *z)
			}
		})
	}
	if few, many := read(1), read(100_000); many > few+1024 {
		t.Errorf("a body without unknown fields takes %d bytes, with 400,000 of them %d", few, many)
	}
}

// TestNamesAreLearned: an object that was scanned before a name was first asked for has its field nevertheless.
func TestNamesAreLearned(t *testing.T) {
	v, err := Parse([]byte(`{"learned early":1,"learned late":2,"learned late":3}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for name, want := range map[string]string{"learned early": "1", "learned late": "3", "learned never": ""} {
			if f := v.Get(name); string(f.Raw()) != want || f.Path() != name {
				t.Errorf("%s = %s at %s", name, f.Raw(), f.Path())
			}
		}
	}
}

// TestAskedIsBounded: further names than decoders ask for are not learned, and their fields are found all the same.
func TestAskedIsBounded(t *testing.T) {
	was := asked.names.Load()
	defer asked.names.Store(was)
	for i := range 1100 {
		learn(fmt.Sprint("made up ", i))
	}
	if n := len(askedNames()); n != 1024 {
		t.Errorf("%d names are learned one by one", n)
	}
	asked.names.Store(was)
	many := []string{}
	for i := range 1100 {
		many = append(many, fmt.Sprint("made up ", i))
	}
	learn(many...)
	if n := len(askedNames()); n != 1024 {
		t.Errorf("%d names are learned at once", n)
	}
	v, err := Parse([]byte(`{"made up 1099":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if f := v.Get("made up 1099"); string(f.Raw()) != "1" {
		t.Errorf("the last name is %s", f.Raw())
	}
}

// TestLongNames: a key with escapes is looked at only where it may be a name that is asked for.
func TestLongNames(t *testing.T) {
	names := map[string]string{}
	for n := range 200 {
		names[strings.Repeat("n", n)] = "known"
	}
	for n, want := range map[int]string{64: "known", 65: ""} {
		key := `"` + strings.Repeat(`\u006e`, n) + `"`
		if got := nameIn(names, []byte(key)); got != want {
			t.Errorf("%d escaped characters are %q", n, got)
		}
	}
}

// TestPartsAreLinear: a text in many pieces takes a few times its bytes.
func TestPartsAreLinear(t *testing.T) {
	const n = 80_000
	text := strings.Repeat("x", 20)
	got := allocated(func() {
		var p Parts
		for range n {
			p.Text(text)
		}
		if all := p.All(); len(all) != 1 || len(all[0].Text) != n*21-1 {
			t.Errorf("%d parts", len(all))
		}
	})
	if got > 10*n*20 {
		t.Errorf("%d pieces of 20 bytes take %d bytes", n, got)
	}
}

// TestHugeBodies: of several huge bodies the first one and the last one are told of.
func TestHugeBodies(t *testing.T) {
	var told []bool
	b := NewBodies(64 * hugeBody)
	b.Huge = func(held bool) { told = append(told, held) }
	b.grow(0, hugeBody)
	b.grow(hugeBody, hugeBody+1)
	b.grow(0, 2*hugeBody)
	b.release(hugeBody + 1)
	if !slices.Equal(told, []bool{true}) {
		t.Errorf("told %v while one is held", told)
	}
	b.release(2 * hugeBody)
	if b.grow(0, 4*hugeBody); !slices.Equal(told, []bool{true, false, true}) {
		t.Errorf("told %v", told)
	}
}
