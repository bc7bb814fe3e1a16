//go:build !linux

package cpu

import "time"

// doze sleeps for d, or for the least that the runtime's timers take.
func doze(d time.Duration) { time.Sleep(d) }
