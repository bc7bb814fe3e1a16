//go:build unix

package catalog

import (
	"os"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/demo"
	"hearth/internal/model"
)

// A file that is cut short between being opened and being read is an error that says so, with one thread and with several.
func TestCutWhileLoading(t *testing.T) {
	for _, threads := range []int{1, 2} {
		dir := t.TempDir() + "/little"
		if err := os.CopyFS(dir, demo.FS()); err != nil {
			t.Fatal(err)
		}
		file := dir + "/model.safetensors"
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := model.OpenCheckpoint(os.DirFS(dir), dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, 1<<20); err != nil {
			t.Fatal(err)
		}
		be := cpu.New()
		if m, err := c.Load(be, backend.Options{Precision: backend.Float32, Threads: threads}); err == nil || !strings.Contains(err.Error(), "can no longer be read") {
			t.Errorf("%d threads: %v, %v", threads, m, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	}
}
