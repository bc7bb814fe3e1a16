package catalog

import "golang.org/x/sys/unix"

// machineMemory is the machine's memory in bytes, 0 if unknown.
func machineMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}

// availableMemory is all of it: what programs have that they could do without is not known here.
func availableMemory() int64 { return machineMemory() }
