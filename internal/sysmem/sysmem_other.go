//go:build !linux && !darwin

package sysmem

// Total is not known here.
func Total() int64 { return 0 }

// Available is not known either.
func Available() int64 { return 0 }

// Private is not known either.
func Private() int64 { return 0 }

// ReadPressure knows of none.
func ReadPressure() Pressure { return Pressure{} }
