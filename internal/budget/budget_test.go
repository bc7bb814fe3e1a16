package budget

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// TestScripts runs testdata/*.txt: blocks of command lines, ----, and what they print. Sizes are MiB.
//
//	machine total=N [reserve=N] [available=N] [private=N]
//	memory [available=N] [private=N]    what the machine says from now on
//	device NAME N     a device of that name can use N MiB
//	load NAME [weights=N] [state=N] [step=N] [pinned] [on=DEVICE] [apart] [used]
//	                  says yes, or why not; who has to wait is loaded as soon as it can be
//	cancel NAME       it does not want to be loaded any more
//	use NAME / end NAME   somebody uses it, and has done
//	grow NAME [state=N] [step=N] [most=N]
//	give NAME [state=N] [step=N]
//	spare NAME N      so much only its prompt cache holds
//	gone NAME         a model that was told to unload has done so
//	press LEVEL
//	state
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = replay(t, string(want)) })
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("output differs (-want +got):\n%s", d)
			}
		})
	}
}

func replay(t *testing.T, text string) string {
	sc := &script{t: t}
	defer func() { sc.stop() }()
	var out []string
	for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		commands, _, _ := strings.Cut(block, "\n----")
		sc.out = nil
		ran := false
		for _, line := range strings.Split(commands, "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			ran = true
			sc.do(strings.Fields(line))
			synctest.Wait()
			sc.check(line)
		}
		if ran {
			commands = strings.Join(append([]string{commands, "----"}, sc.out...), "\n")
		}
		out = append(out, commands)
	}
	return strings.Join(out, "\n\n") + "\n"
}

type script struct {
	t                         *testing.T
	m                         *Machine
	total, available, private int64
	shares                    map[string]*Share
	ends                      map[string][]func()
	cancel                    map[string]func()
	out                       []string
}

func (sc *script) stop() {
	for _, f := range sc.cancel {
		f()
	}
	synctest.Wait()
}

func (sc *script) print(format string, args ...any) {
	sc.out = append(sc.out, fmt.Sprintf(format, args...))
}

// check holds the machine to its invariants.
func (sc *script) check(line string) {
	if sc.m == nil {
		return
	}
	if n := sc.m.unpromised(""); n < 0 {
		sc.t.Fatalf("%s: %d MiB are promised above %d", line, -n>>20, sc.m.Capacity()>>20)
	}
	for d := range sc.m.devices {
		if n := sc.m.unpromised(d); n < 0 {
			sc.t.Fatalf("%s: %d MiB are promised above what %s has", line, -n>>20, d)
		}
	}
	for _, s := range sc.m.shares {
		if s.spare > s.use.State || s.asked > s.spare || s.users < 0 {
			sc.t.Fatalf("%s: %s has %+v, %d to spare, %d asked for, %d users", line, s.claim.Name, s.use, s.spare, s.asked, s.users)
		}
	}
}

func (sc *script) do(words []string) {
	arg := map[string]int64{}
	name, device := "", ""
	for i, w := range words[1:] {
		k, v, ok := strings.Cut(w, "=")
		n, err := strconv.ParseInt(v, 10, 64)
		switch {
		case k == "on":
			device = v
		case ok && err == nil:
			arg[k] = n << 20
		case ok:
			sc.t.Fatalf("%v: %v", words, err)
		case i == 0:
			name = w
		default:
			arg[w] = 1
		}
	}
	use := Use{Weights: arg["weights"], State: arg["state"], Scratch: arg["step"]}
	s := sc.shares[name]
	switch words[0] {
	case "machine":
		sc.machine(arg)
	case "memory":
		sc.available, sc.private = arg["available"], arg["private"]
	case "load":
		sc.load(Claim{Name: name, Use: use, Pinned: arg["pinned"] > 0, Device: device, Apart: arg["apart"] > 0}, arg["used"] > 0)
	case "device":
		sc.m.SetDevice(name, sc.mib(words[2]))
	case "cancel":
		sc.cancel[name]()
	case "use":
		end, ok := s.Begin()
		if !ok {
			sc.print("%s is on its way out", name)
			return
		}
		sc.ends[name] = append(sc.ends[name], end)
	case "end":
		last := len(sc.ends[name]) - 1
		sc.ends[name][last]()
		sc.ends[name] = sc.ends[name][:last]
	case "grow":
		most := use
		most.State = max(most.State, arg["most"])
		got, a := s.Grow(use, most)
		sc.print("%s %v %d", name, a, got.Sum()>>20)
		if a == Never {
			sc.print("%v; %s", s.Short(use), s.Short(use).Hint())
		}
	case "give":
		s.Give(use)
	case "spare":
		s.SetSpare(sc.mib(words[2]))
	case "gone":
		s.Close()
	case "press":
		i := slices.IndexFunc([]Level{Enough, Short, Critical}, func(l Level) bool { return l.String() == name })
		sc.m.Press(Level(i))
	case "state":
		sc.print("free %d of %d", sc.m.Free("")>>20, sc.m.Capacity()>>20)
		for _, d := range slices.Sorted(maps.Keys(sc.m.devices)) {
			sc.print("%s free %d of %d", d, sc.m.Free(d)>>20, sc.m.devices[d]>>20)
		}
		for _, h := range sc.m.Shares() {
			sc.print("%s %d+%d+%d spare %d users %d", h.Name, h.Weights>>20, h.State>>20, h.Scratch>>20, h.Spare>>20, h.Users)
		}
	default:
		sc.t.Fatalf("no command %q", words[0])
	}
}

func (sc *script) machine(arg map[string]int64) {
	sc.stop()
	sc.total, sc.available, sc.private = arg["total"], arg["available"], arg["private"]
	reserve, ok := arg["reserve"]
	if !ok {
		reserve = Reserve(sc.total)
	}
	sc.m = New(Readers{Total: func() int64 { return sc.total }, Available: func() int64 { return sc.available },
		Private: func() int64 { return sc.private }}, reserve)
	sc.m.run = func(f func()) { f() }
	sc.shares, sc.ends, sc.cancel = map[string]*Share{}, map[string][]func(){}, map[string]func(){}
}

// mib reads a number of MiB.
func (sc *script) mib(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		sc.t.Fatal(err)
	}
	return n << 20
}

func (sc *script) load(c Claim, used bool) {
	ctx, cancel := context.WithCancel(sc.t.Context())
	name := c.Name
	sc.cancel[name] = cancel
	c.Unload = func() { sc.print("unload %s", name) }
	c.Shrink = func(n int64) { sc.print("shrink %s by %d", name, n>>20) }
	c.Wake = func() { sc.print("wake %s", name) }
	done := false
	go func() {
		var s *Share
		var err error
		if used {
			var end func()
			if s, end, err = sc.m.AskToUse(ctx, c); err == nil {
				sc.ends[name] = append(sc.ends[name], end)
			}
		} else {
			s, err = sc.m.Ask(ctx, c)
		}
		var short *ShortError
		switch {
		case errors.As(err, &short):
			sc.print("%v; %s", err, short.Hint())
		case err != nil:
			sc.print("%s: %v", name, err)
		default:
			sc.shares[name] = s
			sc.print("%s is there", name)
		}
		done = true
	}()
	synctest.Wait()
	if !done {
		sc.print("%s waits", name)
	}
}

// TestUnknownMachine: a machine that does not tell its memory refuses nothing.
func TestUnknownMachine(t *testing.T) {
	m := New(Readers{}, 1)
	s, err := m.Ask(t.Context(), Claim{Name: "a", Use: Use{Weights: 1 << 50}})
	if err != nil {
		t.Fatal(err)
	}
	if got, a := s.Grow(Use{State: 1}, Use{State: 1 << 40}); a != Yes || got.State != 1<<40 {
		t.Errorf("%v, %+v", a, got)
	}
	s.Close()
	if m.Free("") != Unknown {
		t.Errorf("%d are free, want %d", m.Free(""), int64(Unknown))
	}
}
