//go:build linux || darwin

package console

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// PeakMemory is the most bytes the process has had resident, 0 if unknown.
func PeakMemory() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "linux" {
		return int64(u.Maxrss) << 10 // KiB there, bytes on darwin
	}
	return int64(u.Maxrss)
}

// ResidentMemory is the bytes that the process has resident now; where the system does not say, the most it has had.
func ResidentMemory() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if f := strings.Fields(string(statm)); err == nil && len(f) > 1 {
		if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	return PeakMemory()
}
