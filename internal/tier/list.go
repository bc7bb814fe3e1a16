package tier

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hearth/internal/regular"
)

// Listed is a model's folder on disk, as people see it.
type Listed struct {
	Model  string // as its Options named it
	Dir    string
	Runs   int
	Bytes  int64 // of all its files
	Opened time.Time
	InUse  bool // a process has it open
}

// List gives the folders of all models in dir, by name and the last opened first. It opens no run. A dir that is not there
// has none.
func List(dir string) ([]Listed, error) {
	if _, err := os.ReadDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list prefix cache: %w", err)
	}
	locks, err := filepath.Glob(filepath.Join(escape(dir), "*", lockFile))
	if err != nil {
		return nil, err
	}
	var all []Listed
	for _, name := range locks {
		d := filepath.Dir(name)
		st, err := os.Lstat(name)
		if !ours(d) || err != nil {
			continue
		}
		runs, _ := filepath.Glob(filepath.Join(escape(d), "*"+suffix)) // the pattern is good
		all = append(all, Listed{Model: modelOf(d), Dir: d, Runs: len(runs), Bytes: sizeOf(d), Opened: st.ModTime(), InUse: inUse(name)})
	}
	slices.SortFunc(all, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), b.Opened.Compare(a.Opened))
	})
	return all, nil
}

// Remove removes a folder of List. The error is regular.ErrBusy where a process has it open.
func Remove(dir string) error {
	if !ours(dir) {
		return fmt.Errorf("%s is no folder of the prefix cache", dir)
	}
	switch {
	case removeFolder(dir):
		return nil
	case inUse(filepath.Join(dir, lockFile)):
		return regular.ErrBusy
	}
	return fmt.Errorf("%s cannot be removed", dir)
}

func inUse(lock string) bool {
	f, err := regular.OpenOwn(lock, os.O_RDWR)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(regular.Lock(f), regular.ErrBusy)
}

// modelOf is what the fingerprint calls the model, or what the folder's name has of that.
func modelOf(dir string) string {
	text, err := regular.Read(filepath.Join(dir, aboutFile), 1<<20)
	if rest, ok := strings.CutPrefix(string(text), "model "); err == nil && ok {
		if name, _, ok := strings.Cut(rest, " in "); ok {
			return regular.Clip(name)
		}
	}
	return strings.TrimSuffix(filepath.Base(nameOf(dir)), "-")
}

// escape is a path as a pattern of its own.
func escape(dir string) string {
	if os.PathSeparator == '\\' {
		return dir // there a backslash escapes nothing
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
