//go:build darwin || dragonfly || freebsd || linux

package regular

import "golang.org/x/sys/unix"

// Free is how many bytes this user can still write to the disk of dir.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
