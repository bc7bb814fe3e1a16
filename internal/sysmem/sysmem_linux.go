package sysmem

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Total is the memory this process may use in bytes: that of the machine, or of its control group if less. 0 if unknown.
func Total() int64 { return system.total() }

// Available is what of it programs can still have without anything being written to the disk: what is free and what only caches
// files, as the system estimates it, and no more than the control group leaves. 0 if unknown.
func Available() int64 { return system.available() }

// Private is the memory in bytes that this process and those it has started have taken for themselves, not counting mapped files.
// 0 if unknown.
func Private() int64 { return system.private() }

// ReadPressure gives the pressure on the control group where it says, else on the machine.
func ReadPressure() Pressure { return system.pressure() }

// system is where this system tells.
var system = files{proc: "/proc", group: "/sys/fs/cgroup"}

// files are two folders: of processes, and of the control group.
type files struct{ proc, group string }

func (f files) total() int64 {
	var total int64
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) == nil {
		total = int64(uint64(si.Totalram) * uint64(si.Unit))
	}
	for _, name := range []string{"memory.max", "memory/memory.limit_in_bytes"} {
		if n := number(f.group, name); n > 0 && (total == 0 || n < total) {
			total = n
		}
	}
	return total
}

func (f files) available() int64 {
	free := field(f.proc, "meminfo", "MemAvailable:") << 10
	if most := number(f.group, "memory.max"); most > 0 {
		used := number(f.group, "memory.current") - field(f.group, "memory.stat", "inactive_file")
		if left := max(most-used, 1); free == 0 || left < free {
			free = left
		}
	}
	return free
}

func (f files) private() int64 {
	self := filepath.Join(f.proc, "self")
	n := field(self, "status", "RssAnon:") << 10
	lists, err := filepath.Glob(filepath.Join(self, "task", "*", "children"))
	if n == 0 || err != nil {
		return n
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(b)) {
			n += field(filepath.Join(f.proc, pid), "status", "RssAnon:") << 10
		}
	}
	return n
}

func (f files) pressure() (p Pressure) {
	b, err := os.ReadFile(filepath.Join(f.group, "memory.pressure"))
	if err != nil {
		b, err = os.ReadFile(filepath.Join(f.proc, "pressure", "memory"))
	}
	if err == nil {
		p.Some, p.Full = stalls(b)
	}
	p.Limits = field(f.group, "memory.events", "high") + field(f.group, "memory.events", "max")
	p.Kills = field(f.group, "memory.events", "oom")
	return p
}

// stalls reads two lines such as "some avg10=1.50 avg60=0.30 avg300=0.00 total=1234": percentages of time.
func stalls(b []byte) (some, full float64) {
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) < 2 {
			continue
		}
		percent, ok := strings.CutPrefix(f[1], "avg10=")
		x, err := strconv.ParseFloat(percent, 64)
		if !ok || err != nil || !(x >= 0 && x <= 100) {
			continue
		}
		switch f[0] {
		case "some":
			some = x / 100
		case "full":
			full = x / 100
		}
	}
	return some, full
}

// number is the number that a file holds, 0 if there is none.
func number(folder, name string) int64 {
	b, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// field is the number behind a name in a file of lines with a name and a number, 0 if there is none.
func field(folder, file, name string) int64 {
	b, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		return 0
	}
	return fieldOf(b, name)
}

func fieldOf(b []byte, name string) int64 {
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) > 1 && f[0] == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
