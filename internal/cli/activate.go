package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/regular"
)

// passed is a descriptor of a socket that whoever started this program has opened for it.
type passed struct {
	fd   int
	name string // that systemd gave it: the socket's unit, or FileDescriptorName= there; "" if it has none
	from string // the setting that says so, which is one for all: listenFDs, or as Config.Origin has it
}

// The variables of systemd's protocol, sd_listen_fds(3).
const (
	listenPID     = "LISTEN_PID"
	listenFDs     = "LISTEN_FDS"
	listenFDNames = "LISTEN_FDNAMES"
	listenPIDFD   = "LISTEN_PIDFDID" // what distinguishes processes that have had one number, which we need not
)

// firstPassed is the first descriptor behind the standard streams, with which those that are passed begin.
const firstPassed = 3

// takeActivation is activation of this process. The variables are gone then, so that programs that it starts do not take them for
// theirs.
func takeActivation() ([]passed, error) {
	all, err := activation(config.Environ, os.Getpid())
	for _, name := range []string{listenPID, listenFDs, listenFDNames, listenPIDFD} {
		_ = os.Unsetenv(name) // which fails for names that cannot be
	}
	return all, err
}

// activation are the sockets with which systemd, or who does as it does, has started the process pid. What the environment says
// to another process is not for this one.
func activation(env config.Env, pid int) ([]passed, error) {
	text, _ := env(listenPID)
	if text == "" {
		return nil, nil
	}
	to, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, badActivation(listenPID, text, "is no number of a process")
	}
	count, _ := env(listenFDs)
	if to != uint64(pid) || count == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(count, 10, 31)
	if err != nil || n > mostPassed {
		return nil, badActivation(listenFDs, count, fmt.Sprintf("is no number of sockets up to %d", mostPassed))
	}
	joined, _ := env(listenFDNames)
	names := strings.Split(joined, ":")
	all := make([]passed, n)
	for i := range all {
		all[i] = passed{fd: firstPassed + i, from: listenFDs}
		if len(names) == len(all) && names[i] != "unknown" { // so systemd calls what it has no name for
			all[i].name = names[i]
		}
	}
	return all, nil
}

// mostPassed bounds what one variable makes us look at. systemd starts services with 1024 descriptors at first.
const mostPassed = 1024

func badActivation(variable, value, why string) error {
	return console.Hintf(fmt.Errorf("environment variable %s=%s %s", variable, regular.Quote(value), why),
		"systemd sets it for a service with a .socket unit; without one, unset it")
}

// String names p in errors.
func (p *passed) String() string {
	s := "descriptor " + strconv.Itoa(p.fd)
	if p.name != "" {
		s += " (" + regular.Clip(p.name) + ")"
	}
	return s + " of " + p.from
}

// refused is why p is not served on, and what to do.
func (p *passed) refused(why error) error {
	hint := "it has to be a TCP or Unix socket that listens, and open in the process that starts hearth"
	switch {
	case errors.Is(why, errNoPassing):
		hint = "use --host and --port"
	case p.from == listenFDs:
		hint = "a .socket unit of hearth has ListenStream= lines alone, and no Accept=yes"
	}
	return console.Hintf(fmt.Errorf("%s %w", p, why), "%s", hint)
}

// errNotPassed is said of numbers that stand for nothing, or for what this process has opened itself.
var errNotPassed = errors.New("is not open, or was not passed to hearth")

// errNoPassing is said where systems have no such sockets.
var errNoPassing = errors.New("cannot be taken over: sockets are not passed to programs on this system")

// takeAll listens on passed sockets, all or none.
func takeAll(all []passed) (ls []net.Listener, err error) {
	for i := range all {
		l, err := takeOver(all[i].fd)
		if err != nil {
			closeAll(ls)
			return nil, all[i].refused(err)
		}
		ls = append(ls, l)
	}
	return ls, nil
}

func closeAll(ls []net.Listener) {
	for _, l := range ls {
		l.Close()
	}
}

// passing says which sockets others have opened; "" if none.
func passing(all []passed) string {
	if len(all) == 0 {
		return ""
	}
	var fds, names []string
	named := map[string]bool{"": true}
	for _, p := range all {
		fds = append(fds, strconv.Itoa(p.fd))
		if !named[p.name] {
			named[p.name] = true
			names = append(names, regular.Clip(p.name))
		}
	}
	s := "descriptor "
	if len(fds) > 1 {
		s = "descriptors "
	}
	s += strings.Join(fds, ", ")
	if len(names) > 0 {
		s += " (" + strings.Join(names, ", ") + ")"
	}
	s += ", passed to hearth as " + all[0].from + " says"
	if all[0].from == listenFDs {
		s += ", in the place of --host, --port and --listen"
	}
	return s
}
