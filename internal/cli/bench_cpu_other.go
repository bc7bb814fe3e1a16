//go:build !linux

package cli

import "time"

// cpuClocks says whether processTime and threadTime are known.
const cpuClocks = false

func processTime() time.Duration { return 0 }
func threadTime() time.Duration  { return 0 }
