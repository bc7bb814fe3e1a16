package tier

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hearth/internal/regular"
)

const (
	lockFile  = "lock"
	aboutFile = "about.txt" // the fingerprint in words, for people
)

// fingerprint also covers the form of the files: all of the geometry that they have to do with, spelled as it always was.
func fingerprint(o *Options) [32]byte {
	g := &o.Geometry
	form := fmt.Sprintf("{PageTokens:%d Groups:%+v FixedBytes:%d SnapBytes:%d SlotToken:%d}", g.PageTokens, g.Groups, g.FixedBytes, g.SnapBytes, g.SlotToken)
	return sha256.Sum256(fmt.Appendf(nil, "%d\n%s\n%s", version, form, o.Fingerprint))
}

// folder names a model's folder: readable, and different for different fingerprints.
func folder(name string, print [32]byte) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '-'
	}, name)
	return strings.TrimLeft(safe[:min(len(safe), 60)], ".") + "-" + hex.EncodeToString(print[:8])
}

// lockDir takes the folder for this process until the file is closed. It also marks it as used now.
func lockDir(dir string) (*os.File, error) {
	name := filepath.Join(dir, lockFile)
	f, err := regular.OpenOwn(name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := regular.Lock(f); err != nil {
		f.Close()
		return nil, err
	}
	now := time.Now()
	if err := os.Chtimes(name, now, now); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ours reports whether folder could have named a path.
func ours(dir string) bool {
	i := strings.LastIndexByte(dir, '-')
	b, err := hex.DecodeString(dir[i+1:])
	return i >= 0 && err == nil && len(b) == 8
}

// removeStale removes folders in dir that no process has open and nobody is likely to want: those not opened for staleDays (of
// models that were deleted), and of those with one name all but the last opened (of models that changed, and of other builds). It
// touches only folders that look like ours. It gives the rest except own, least recently opened first.
func removeStale(dir, own string) (rest []string) {
	locks, _ := filepath.Glob(filepath.Join(escape(dir), "*", lockFile)) // the pattern is good
	opened := map[string]time.Time{}
	var others []string
	for _, name := range locks {
		d := filepath.Dir(name)
		if st, err := os.Stat(name); d != own && ours(d) && err == nil {
			opened[d] = st.ModTime()
			others = append(others, d)
		}
	}
	slices.SortFunc(others, func(a, b string) int { return opened[a].Compare(opened[b]) })
	last := map[string]string{} // of those of one name
	for _, d := range others {
		last[nameOf(d)] = d
	}
	for _, d := range others {
		stale := time.Since(opened[d]) >= staleDays*24*time.Hour
		if !(stale || last[nameOf(d)] != d) || !removeFolder(d) {
			rest = append(rest, d)
		}
	}
	return rest
}

// shrink removes folders, in their order, until all of them and this tier, which has so many bytes, have at most 1/diskShare of
// what they and the free bytes of the disk are together, and no more than quota. Folders that are open stay. It gives the bytes
// that it made free, and those of folders that are left.
func shrink(folders []string, bytes, free, quota int64) (freed, left int64) {
	own := bytes
	sizes := make([]int64, len(folders))
	for i, d := range folders {
		sizes[i] = sizeOf(d)
		bytes += sizes[i]
	}
	most := min((free+bytes)/diskShare, quota)
	for i, d := range folders {
		if bytes-freed > most && removeFolder(d) {
			freed += sizes[i]
		}
	}
	return freed, bytes - freed - own
}

// nameOf is what names of folders of one model begin with.
func nameOf(dir string) string { return dir[:strings.LastIndexByte(dir, '-')+1] }

// sizeOf is the bytes of the files in dir.
func sizeOf(dir string) (bytes int64) {
	files, _ := os.ReadDir(dir) // what cannot be read counts nothing
	for _, f := range files {
		if st, err := f.Info(); err == nil {
			bytes += st.Size()
		}
	}
	return bytes
}

// removeFolder removes a folder unless a process has it open.
func removeFolder(dir string) bool {
	f, err := regular.OpenOwn(filepath.Join(dir, lockFile), os.O_RDWR)
	if err != nil {
		return false
	}
	defer f.Close()
	if regular.Lock(f) != nil {
		return false
	}
	for _, pattern := range []string{"*" + suffix, "*" + partSuffix, "*" + savedSuffix, aboutFile, lockFile} {
		files, _ := filepath.Glob(filepath.Join(escape(dir), pattern))
		for _, f := range files {
			_ = os.Remove(f)
		}
	}
	_ = os.Remove(dir) // if nothing else is in it
	return true
}
