package backend

import "fmt"

// Memory is what a backend holds in its device's memory, in bytes.
type Memory struct {
	Active int64 // of arrays
	Peak   int64 // the most there were at once
	Cache  int64 // freed, and kept for the next array
	Limit  int64 // what all of it may be; 0: not known
}

// Device is optional: a backend whose arrays are in a device's memory, of which it must not use too much.
type Device interface {
	// Memory gives the figures of the last step. Any goroutine may call it, and it waits for nothing.
	Memory() Memory
	// Room is how many bytes of state fit beside the weights and a step of so many rows. Where none do, the error is a
	// *MemoryError. A device without a limit has room for anything.
	Room(weights int64, rows int) (int64, error)
	// Idle is called between steps when nothing is to run: memory that was let go of is freed now.
	Idle()
}

// MemoryError refuses what would not fit a device's memory.
type MemoryError struct {
	What              string // "weights", "a step of 512 rows"
	Need, Used, Limit int64  // bytes; Used is what others have of Limit
	Hint              string // what to set or choose
}

func (e *MemoryError) Error() string {
	used := ""
	if e.Used > 1<<28 {
		used = fmt.Sprintf(", of which %.1f are in use", float64(e.Used)/(1<<30))
	}
	return fmt.Sprintf("not enough memory on the GPU: %s need %.1f GiB of %.1f%s; %s",
		e.What, float64(e.Need)/(1<<30), float64(e.Limit)/(1<<30), used, e.Hint)
}
