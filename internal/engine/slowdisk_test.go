package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/tier/tiertest"
)

// While the disk takes its time, the sequence that waits for it holds up nobody; it can leave, others wait with it, and
// when nothing comes in the end, it is computed.
func TestSlowDisk(t *testing.T) {
	dir := t.TempDir()
	var n tiertest.Notes
	p := Prompt{Tokens: prompt(300, 1), MaxTokens: 5, Logprobs: -1}
	e := start(t, &hooked{}, onDisk(dir, &n, nil))
	want := read(t, submit(t, e, p))
	closeNow(t, e)
	there := make(chan struct{})
	e = start(t, &hooked{}, onDisk(dir, &n, func(c *Config) { c.Disk.Reading = func(string) { <-there } }))
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.run"))
	if len(files) != 1 {
		t.Fatalf("%q", files)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	slow := submit(t, e, p)
	alike := p
	alike.Tokens = append(append([]int32(nil), p.Tokens[:200]...), prompt(50, 3)...)
	with := submit(t, e, alike)
	leaves := submit(t, e, p)
	other := submit(t, e, Prompt{Tokens: prompt(200, 2), MaxTokens: 20, Logprobs: -1})
	if got := read(t, other); len(got) != 20 {
		t.Errorf("%d tokens", len(got))
	}
	leaves.Close()
	if _, err := leaves.Next(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, s := range []*Stream{slow, with} {
		select {
		case <-s.Started():
			t.Fatal("a sequence did not wait for the disk")
		default:
		}
	}
	close(there)
	if got := read(t, slow); !cmp.Equal(got, want) || slow.Usage().Disk != 0 {
		t.Errorf("%d from disk: %s", slow.Usage().Disk, cmp.Diff(want, got))
	}
	if read(t, with); with.Usage().Cached < 192 {
		t.Errorf("%d cached of what the other one computed", with.Usage().Cached)
	}
	if lines := n.Take(); len(lines) != 1 {
		t.Errorf("%q", lines)
	}
}
