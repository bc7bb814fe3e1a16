package sysmem

import (
	"os"
	"path/filepath"
	"testing"
)

// write makes files below a folder, by their path.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestControlGroup(t *testing.T) {
	f := files{proc: t.TempDir(), group: t.TempDir()}
	write(t, f.proc, map[string]string{
		"meminfo":                   "MemTotal: 1000 kB\nMemAvailable: 800 kB\n",
		"pressure/memory":           "some avg10=1.50 avg60=0.30 avg300=0.00 total=1234\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=4\n",
		"self/status":               "VmRSS: 90 kB\nRssAnon: 70 kB\n",
		"self/task/11/children":     "21 22 ",
		"21/status":                 "RssAnon: 5 kB\n",
		"self/task/12/children":     "",
		"23/status":                 "RssAnon: 1000 kB\n",
		"self/task/13/not-children": "23",
	})
	if n := f.available(); n != 800<<10 {
		t.Errorf("%d are available, want 800 KiB", n)
	}
	if n := f.private(); n != 75<<10 {
		t.Errorf("%d are private, want 75 KiB", n)
	}
	if p := f.pressure(); p != (Pressure{Some: 0.015, Full: 0.005}) {
		t.Errorf("pressure %+v", p)
	}
	write(t, f.group, map[string]string{
		"memory.max": "600000\n", "memory.current": "500000\n", "memory.stat": "anon 1\ninactive_file 100000\n",
		"memory.pressure": "some avg10=20.00 avg60=0.30 avg300=0.00 total=1234\nfull avg10=oops\n",
		"memory.events":   "low 0\nhigh 3\nmax 4\noom 5\noom_kill 6\n",
	})
	if n := f.total(); n != 600000 {
		t.Errorf("%d in all, want the limit", n)
	}
	if n := f.available(); n != 200000 {
		t.Errorf("%d are available, want 200000", n)
	}
	if p := f.pressure(); p != (Pressure{Some: 0.2, Limits: 7, Kills: 5}) {
		t.Errorf("pressure %+v", p)
	}
}

// TestThisMachine: what the system says of itself goes together.
func TestThisMachine(t *testing.T) {
	if total, available := Total(), Available(); total <= 0 || available <= 0 || available > total {
		t.Errorf("%d of %d are available", available, total)
	}
	if n := Private(); n <= 0 || n > Total() {
		t.Errorf("%d are private", n)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte("some avg10=1.50 avg60=0.30 avg300=0.00 total=1234\nfull avg10=0.50"))
	f.Add([]byte("high 3\nmax 99999999999999999999\nsome avg10=NaN"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if some, full := stalls(b); !(some >= 0 && some <= 1 && full >= 0 && full <= 1) {
			t.Errorf("%g and %g are no parts", some, full)
		}
		fieldOf(b, "max")
	})
}
