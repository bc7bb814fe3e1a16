//go:build !linux

package bench

import (
	"runtime"
	"time"
)

// cpuClocks says whether processTime and threadTime are known.
const cpuClocks = false

func processTime() time.Duration { return 0 }
func threadTime() time.Duration  { return 0 }

// cpuName is all that is known of the processor.
func cpuName() string { return runtime.GOARCH }
