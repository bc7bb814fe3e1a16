package cli

import (
	"strings"
	"testing"
	"unicode"
)

// Descriptors are those that the variables give to this process, and named if each has a name.
func TestActivation(t *testing.T) {
	for _, tc := range []struct{ pid, fds, names, want string }{
		{"", "", "", ""},
		{"", "2", "", ""},
		{"7", "", "", ""},
		{"7", "0", "", ""},
		{"8", "2", "", ""},
		{"8", "many", "", ""}, // whoever it is for will say so
		{"7", "1", "", "descriptor 3, passed to hearth as LISTEN_FDS says, in the place of --host, --port and --listen"},
		{"7", "2", "hearth.socket:hearth.socket", "descriptors 3, 4 (hearth.socket), passed to hearth as LISTEN_FDS says"},
		{"7", "2", "web:unknown", "descriptors 3, 4 (web), passed"},
		{"7", "2", "web", "descriptors 3, 4, passed"},
		{"7", "1", "\x1b[2J", "descriptor 3 ("},
		{"seven", "1", "", `error environment variable LISTEN_PID="seven" is no number of a process`},
		{"-7", "1", "", `error environment variable LISTEN_PID="-7" is no number`},
		{"7", "one", "", `error environment variable LISTEN_FDS="one" is no number of sockets up to 1024`},
		{"7", "1024", "", "descriptors 3, 4, 5, 6"},
		{"7", "1025", "", `error environment variable LISTEN_FDS="1025" is no`},
		{"7", "99999999999999999999", "", `error environment variable LISTEN_FDS=`},
	} {
		all, err := activation(func(name string) (string, bool) {
			s := map[string]string{listenPID: tc.pid, listenFDs: tc.fds, listenFDNames: tc.names}[name]
			return s, s != ""
		}, 7)
		got := passing(all)
		if err != nil {
			got = "error " + err.Error()
		}
		if !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%q: %q", tc, got)
		}
	}
}

func FuzzActivation(f *testing.F) {
	f.Add("7", "2", "a:b")
	f.Add("7", "1024", ":")
	f.Add("+7", "0x1", "\x00")
	f.Fuzz(func(t *testing.T, pid, fds, names string) {
		all, err := activation(func(name string) (string, bool) {
			return map[string]string{listenPID: pid, listenFDs: fds, listenFDNames: names}[name], true
		}, 7)
		said := passing(all)
		if err != nil {
			said = err.Error()
		} else if len(all) > mostPassed || len(all) > 0 && strings.TrimLeft(pid, "0") != "7" {
			t.Errorf("%d descriptors", len(all))
		}
		for i, p := range all {
			if p.fd != 3+i {
				t.Errorf("descriptor %d is the %d. one", p.fd, i)
			}
			said += p.String()
		}
		if strings.ContainsFunc(said, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not printable: %q", said)
		}
	})
}
