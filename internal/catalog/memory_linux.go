package catalog

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory is the memory this process may use in bytes: that of the machine, or of its control group if less. 0 if
// unknown.
func machineMemory() int64 {
	var total int64
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) == nil {
		total = int64(uint64(si.Totalram) * uint64(si.Unit))
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && (total == 0 || n < total) {
			total = n
		}
	}
	return total
}
