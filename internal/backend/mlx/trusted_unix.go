//go:build unix

package mlx

import (
	"os"
	"path/filepath"
	"syscall"
)

// trusted reports whether a file and its folder are the user's or root's, and no one else may write to them.
func trusted(path string) bool {
	for _, p := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(p)
		if err != nil {
			return false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || info.Mode().Perm()&0o022 != 0 || st.Uid != 0 && int(st.Uid) != os.Getuid() {
			return false
		}
	}
	return true
}
