package tier

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	lockFile  = "lock"
	aboutFile = "about.txt" // the fingerprint in words, for people
)

// fingerprint also covers the form of the files.
func fingerprint(o *Options) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d\n%+v\n%s", version, o.Geometry, o.Fingerprint))
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
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
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

// sweepStale removes the folders in dir that no process has opened for staleDays: models that were deleted, or changed.
// It touches only folders that look like ours.
func sweepStale(dir, own string) {
	locks, _ := filepath.Glob(filepath.Join(dir, "*", lockFile)) // the pattern is good
	for _, name := range locks {
		d := filepath.Dir(name)
		st, err := os.Stat(name)
		if d == own || !ours(d) || err != nil || time.Since(st.ModTime()) < staleDays*24*time.Hour {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lock(f) == nil {
			for _, pattern := range []string{"*" + suffix, "*" + partSuffix, "*" + asideSuffix, aboutFile, lockFile} {
				files, _ := filepath.Glob(filepath.Join(d, pattern))
				for _, f := range files {
					_ = os.Remove(f)
				}
			}
			_ = os.Remove(d) // if nothing else is in it
		}
		f.Close()
	}
}
