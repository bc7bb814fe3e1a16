//go:build !linux && !darwin

package catalog

// machineMemory is not known here.
func machineMemory() int64 { return 0 }

// availableMemory is not known either.
func availableMemory() int64 { return 0 }
