//go:build !linux && !darwin

package console

// PeakMemory is not known here.
func PeakMemory() int64 { return 0 }

// ResidentMemory is not known here.
func ResidentMemory() int64 { return 0 }
