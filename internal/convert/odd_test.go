//go:build unix

package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/regular"
	"hearth/internal/regular/regulartest"
)

// What is beside the weights is copied if it is a file. A folder is walked, links to folders are left out.
func TestOddRest(t *testing.T) {
	for kind, put := range regulartest.Kinds {
		t.Run(kind, func(t *testing.T) {
			src := t.TempDir()
			says := put(t, filepath.Join(src, "tokenizer.json"))
			to, err := create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer to.abandon()
			err = copyRest(t.Context(), to, regular.Dir(src))
			if kind == "folder" && err == nil {
				return
			}
			if err == nil || !strings.Contains(err.Error(), "tokenizer.json") || !strings.Contains(err.Error(), says) {
				t.Errorf("the error is %v, want one that names the file and says %q", err, says)
			}
		})
	}
	src := t.TempDir()
	regulartest.Large(t, filepath.Join(src, "notes.txt"))
	if err := os.Truncate(filepath.Join(src, "notes.txt"), maxRest+1); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(src, "tokenizer.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	to, err := create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.abandon()
	if err := copyRest(t.Context(), to, regular.Dir(src)); err == nil || !strings.Contains(err.Error(), "notes.txt: has ") {
		t.Errorf("a huge file: %v", err)
	}
}
