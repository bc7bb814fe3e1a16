package cli

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuClocks says whether processTime and threadTime are known.
const cpuClocks = true

// processTime is the processor time that the process has used.
func processTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// threadTime is what the calling thread has.
func threadTime() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
