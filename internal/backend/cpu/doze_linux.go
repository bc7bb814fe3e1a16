package cpu

import (
	"time"

	"golang.org/x/sys/unix"
)

// doze sleeps for d and as long as the system takes to come back, 50 to 100 microseconds; the thread sleeps with it. time.Sleep
// takes a millisecond where no other goroutine runs: that is the least that the runtime's poller waits.
func doze(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal may end it early
}
