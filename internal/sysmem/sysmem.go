// Package sysmem reads what the operating system says of memory: how much the machine has, what programs can still have of it,
// what this program has taken, and whether the system is short of it. It decides nothing.
package sysmem

// Pressure is how long programs have had to wait for memory, and how often a control group met its limit.
type Pressure struct {
	// Some and Full are the parts, from 0 to 1, of the last ten seconds in which some of the programs, or all of them, waited.
	Some, Full float64
	// Limits and Kills count since the control group began: how often it was at its limit, and how often a program of it was
	// ended, or about to be.
	Limits, Kills int64
	// Level is what the system calls it where it does: 1 normal, 2 short, 4 critical; 0: it does not.
	Level int
}
