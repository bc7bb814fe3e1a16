//go:build !linux && !darwin

package cli

// peakMemory is not known here.
func peakMemory() int64 { return 0 }

// residentMemory is not known here.
func residentMemory() int64 { return 0 }
