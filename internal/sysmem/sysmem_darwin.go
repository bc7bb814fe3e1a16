package sysmem

import "golang.org/x/sys/unix"

// Total is the machine's memory in bytes, 0 if unknown.
func Total() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}

// Available is all of it: what programs have that they could do without is not known here.
func Available() int64 { return Total() }

// Private is not known here.
func Private() int64 { return 0 }

// ReadPressure asks for the level that the system's own notifications are made of.
func ReadPressure() Pressure {
	n, err := unix.SysctlUint32("kern.memorystatus_vm_pressure_level")
	if err != nil {
		return Pressure{}
	}
	return Pressure{Level: int(n)}
}
