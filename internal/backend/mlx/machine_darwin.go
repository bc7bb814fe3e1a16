package mlx

import "golang.org/x/sys/unix"

// machine is what the GPU may use of the machine's memory, and all of that: what was set, or else what macOS takes.
func machine() (limit, total int64) {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, 0
	}
	total = int64(n)
	if mb, err := unix.SysctlUint32("iogpu.wired_limit_mb"); err == nil && mb > 0 {
		return int64(mb) << 20, total
	}
	if total > 36<<30 {
		return total / 4 * 3, total
	}
	return total / 3 * 2, total
}
