//go:build !linux && !darwin

package catalog

// machineMemory is not known here.
func machineMemory() int64 { return 0 }
