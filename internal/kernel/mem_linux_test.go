package kernel

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// resident is the anonymous memory that this process has, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no RssAnon")
	return 0
}

// TestDiscard: what is given back is not resident any more, reads as zeros, and what lies beside it stays.
func TestDiscard(t *testing.T) {
	var m Memory
	defer m.Free()
	const size = 256 << 20
	b := m.Bytes(size)
	for i := range b {
		b[i] = 7
	}
	before := resident(t)
	Discard(b[100 : size-100])
	if gone := before - resident(t); gone < size*9/10 {
		t.Errorf("%d bytes of %d are gone", gone, size)
	}
	if b[99] != 7 || b[size-100] != 7 || b[size/2] != 0 {
		t.Errorf("around it %d and %d, within %d", b[99], b[size-100], b[size/2])
	}
	Discard(b[:100]) // less than a page: nothing
	if b[0] != 7 {
		t.Error("a part of a page is gone")
	}
}
