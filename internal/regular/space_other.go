//go:build !(darwin || dragonfly || freebsd || linux || windows)

package regular

import "errors"

// Free is how many bytes this user can still write to the disk of dir.
func Free(string) (int64, error) {
	return 0, errors.New("not known on this system; set a quota")
}
