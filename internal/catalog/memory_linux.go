package catalog

import (
	"bufio"
	"bytes"
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
		if n := number(file); n > 0 && (total == 0 || n < total) {
			total = n
		}
	}
	return total
}

// availableMemory is what of it programs can still have without anything being written to the disk: what is free and what only
// caches files, as the system estimates it, and no more than the control group leaves. 0 if unknown.
func availableMemory() int64 {
	free := field("/proc/meminfo", "MemAvailable:") << 10
	if most := number("/sys/fs/cgroup/memory.max"); most > 0 {
		used := number("/sys/fs/cgroup/memory.current") - field("/sys/fs/cgroup/memory.stat", "inactive_file")
		if left := max(most-used, 1); free == 0 || left < free {
			free = left
		}
	}
	return free
}

// number is the number that a file holds, 0 if there is none.
func number(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// field is the number behind a name in a file of lines with a name and a number, 0 if there is none.
func field(file, name string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}
