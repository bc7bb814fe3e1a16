//go:build linux || darwin

package cli

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// peakMemory is the most bytes the process has had resident, 0 if unknown.
func peakMemory() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "linux" {
		return int64(u.Maxrss) << 10 // KiB there, bytes on darwin
	}
	return int64(u.Maxrss)
}
