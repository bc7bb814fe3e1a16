//go:build linux

// Package hostile gives a running hearth the inputs whose cost others decide, each at a size and at twice that size: `make
// hostile`. What a bound is for shows from outside: processor time and memory grow no faster than the input, another client
// is answered meanwhile, an error is one sentence of the caller's protocol, and work ends when its client has left. It is only
// a test, run by hand; docs/security.md has the bounds, docs/hostile.md the latest table.
package hostile

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	enabled = flag.Bool("hostile", false, "run; without it the tests are skipped")
	hearth  = flag.String("hearth", "", "the hearth binary under test")
	table   = flag.String("table", "", "file to write the table to, as Markdown")
	limit   = flag.Duration("limit", 20*time.Second, "processor time after which a row has failed, or patience times as long by the clock")
)

// row is an input whose cost others decide.
type row struct {
	name string
	n    int // the smaller size; the larger one is twice that
	send func(n int) []request
	// open is in send's place for what is no request: it goes on until ctx ends, and calls begun when all of it is under way.
	open   func(ctx context.Context, s *server, n int, begun func())
	server []string // further arguments

	bounded bool          // n is as many as there may be: 2n must be refused by a bound's name, and n must not
	refused bool          // no size of it can be answered well
	most    time.Duration // of processor time at any size; 0: only growth is looked at
	memory  int64         // bytes at any size; 0: 8 times the bodies and 64 MB
	plain   bool          // replies of no protocol are fine
	step    time.Duration // of processor time that one step of the model takes: one that has begun is ended
	away    bool          // the input keeps the server from being idle: what it costs after leaving is not looked at
}

func one(f func(n int) request) func(int) []request {
	return func(n int) []request { return []request{f(n)} }
}

// result is what a row came to at one size.
type result struct {
	cpu     time.Duration
	peak    int64 // bytes above what was resident before
	bodies  int64
	code    string
	message string
	bounds  []string
	steps   int64 // of the engine, from a Hello's submission to its first token, beyond what it takes alone; -1: not answered
	hellos  int
	faults  []string
	stuck   bool // no reply, or the server is gone: there is nothing more to see
}

func (r *result) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// Margins: of growth beyond the input's, of what is too small to compare, and of what a client's leaving may still cost. All
// are of processor time or bytes; no clock is looked at but to give up.
const (
	growth    = 1.4
	floorCPU  = 150 * time.Millisecond
	floorPeak = 64 << 20
	afterCPU  = 100 * time.Millisecond
	afterMore = 50 * time.Millisecond // what measuring and a collection that had begun may add
	helloMost = 3                     // steps
	patience  = 6
	bodyTimes = 8
	// garbage is how many times its limit memory may be: a collection waits until as much again has been set aside as is in use.
	garbage = 2
	tries   = 3 // at leaving: what a collection adds to one of them is no work for the client
)

// begin sends a row's input and tells when all of it has been answered, or is open.
func (r *row) begin(ctx context.Context, s *server, n int) (done chan struct{}, replies *[]reply, bodies int64) {
	done, replies = make(chan struct{}), new([]reply)
	if r.open != nil {
		go r.open(ctx, s, n, func() { close(done) })
		return done, replies, 0
	}
	requests := r.send(n)
	*replies = make([]reply, len(requests))
	var wg sync.WaitGroup
	for i, q := range requests {
		bodies += int64(len(q.body))
		wg.Go(func() { (*replies)[i] = q.send(ctx, s.url) })
	}
	go func() { wg.Wait(); close(done) }()
	return done, replies, bodies
}

// measure sends a row's input beside Hellos.
func (r *row) measure(s *server, n int) (out result) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.resetPeak()
	before, resident := s.cpu(), s.memory("VmRSS")
	done, replies, bodies := r.begin(ctx, s, n)
	out.bodies, out.steps = bodies, 1<<20
	go func() {
		for began := time.Now(); ctx.Err() == nil; time.Sleep(sample) {
			if s.cpu()-before > *limit || time.Since(began) > patience**limit {
				cancel()
			}
		}
	}()
	for going := true; going; {
		select {
		case <-ctx.Done():
			going = false
		case <-done:
			going = false
		case <-time.After(50 * time.Millisecond):
			if out.hellos < 6 {
				out.meet(ctx, s)
			}
		}
		if s.gone() {
			out.fault("the server ended: %v", s.err)
			out.stuck = true
			return out
		}
	}
	if ctx.Err() != nil {
		out.stuck = true
		out.fault("no reply after %s of processor time", show(s.cpu()-before))
		out.cpu, out.peak = s.cpu()-before, max(0, s.memory("VmHWM")-resident)
		s.kill()
		return out
	}
	out.meet(ctx, s) // what is open stays so; behind the others it shows that the server lives
	if out.steps > helloMost {
		out.fault("a Hello beside it took %d steps more than alone", out.steps)
	}
	now, err := s.settle(patience * *limit)
	if err != nil && !r.away {
		out.fault("%v", err)
	}
	out.cpu, out.peak = now-before, max(0, s.memory("VmHWM")-resident)
	if r.most != 0 && out.cpu > r.most {
		out.fault("%v of processor time, of which it may take %v", out.cpu.Round(time.Millisecond), r.most)
	}
	most := r.memory
	if most == 0 {
		most = bodyTimes*bodies + floorPeak
	}
	if out.peak > garbage*most {
		out.fault("%d MB of memory, of which it may take %d", out.peak>>20, most>>20)
	}
	if st, err := s.status(ctx); err == nil {
		for name := range st.Bounds {
			out.bounds = append(out.bounds, name)
		}
		slices.Sort(out.bounds)
	}
	select {
	case <-done:
		r.look(&out, n, *replies)
	default:
	}
	return out
}

// meet has another client say Hello.
func (r *result) meet(ctx context.Context, s *server) {
	if r.steps < 0 {
		return
	}
	n, err := s.hello(ctx)
	if err != nil {
		if !s.gone() {
			r.fault("a Hello beside it is not answered: %v", err)
		}
		r.steps = -1
		return
	}
	r.hellos++
	r.steps = min(r.steps, max(0, n-s.alone)) // asking for the count takes steps too: the least of several is the Hello's
}

// look judges the replies.
func (r *row) look(out *result, n int, replies []reply) {
	codes := map[int]int{}
	for i, p := range replies {
		codes[p.code]++
		a := openai
		if r.send != nil {
			a = r.api()
		}
		if err := p.check(a); err != nil && !r.plain {
			if len(out.faults) < 4 {
				out.fault("reply %d: %v", i+1, err)
			}
			continue
		}
		if p.code >= 400 && out.message == "" {
			out.message, _ = p.message(a)
		}
		if r.refused && (p.code < 400 || p.code > 499) {
			out.fault("status %d, where only an error of the caller's would do", p.code)
		}
	}
	var list []string
	for c, k := range codes {
		if len(replies) > 1 {
			list = append(list, fmt.Sprintf("%d×%d", k, c))
		} else {
			list = append(list, fmt.Sprint(c))
		}
	}
	slices.Sort(list)
	out.code = strings.Join(list, " ")
	switch met := len(out.bounds) > 0; {
	case !r.bounded:
	case n == r.n && met:
		out.fault("at the bound it is met already: %s", strings.Join(out.bounds, " "))
	case n > r.n && !met:
		out.fault("nothing says that a bound was met at %d", n)
	case n > r.n && codes[200] > 0:
		out.fault("beyond the bound it is answered")
	}
}

func (r *row) api() api {
	for _, a := range both {
		if strings.HasPrefix(r.name, a.name+" ") {
			return a
		}
	}
	return openai
}

// leave sends a row's input and closes the connections half way through its work. It gives the processor time after that.
func (r *row) leave(s *server, n int, cost time.Duration) (after time.Duration, left bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := s.cpu()
	done, _, _ := r.begin(ctx, s, n)
	for end := time.Now().Add(patience * *limit); s.cpu()-before < cost/2 && time.Now().Before(end); {
		select {
		case <-done:
			if r.open == nil {
				return 0, false, nil
			}
		default:
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	at := s.cpu()
	now, err := s.settle(patience * *limit)
	if err == nil {
		_, err = s.hello(context.Background())
	}
	return now - at, true, err
}

// cacheMB keeps what is stored for prompts from counting as growth.
const (
	cacheMB    = "512"
	cacheBytes = 512 << 20
)

// title stands above the table.
const title = `# Hostile inputs, measured

Written by "make hostile TABLE=docs/hostile.md"; [security.md](security.md) has the bounds. Every input is given at a size n and at
2n, each to a fresh server: CPU is the processor time of all of the server until it is idle again, Hellos beside it included; memory
is what it had resident at most, beyond what it had before. Growth is the CPU at 2n over that at n. Hello is how many steps of the
model more than alone another client's first token takes. The CPU after leaving is what the server still uses when the client closes
its connection half way; a dash: the reply had come by then. A row fails where CPU or memory more than double, where memory is
beyond 8 times the body and 64 MB (twice that, as a collector waits for as much again), a Hello takes more than 3 steps more or is
not answered, a reply is neither success nor one sentence of error in the protocol, or work goes on for more than 100 ms; what
measuring adds is allowed for.
`

// lines of the table, in the order of the rows.
var lines []string

func record(format string, args ...any) {
	lines = append(lines, fmt.Sprintf(format, args...))
	fmt.Println(lines[len(lines)-1])
}

func TestMain(m *testing.M) {
	if kind := os.Getenv(asServer); kind != "" {
		mcpServer(kind)
		return
	}
	flag.Parse()
	code := m.Run()
	if *table != "" && *enabled {
		if err := os.WriteFile(*table, []byte(title+strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func skipUnlessAsked(t *testing.T) {
	t.Helper()
	if !*enabled {
		t.Skip("run by hand: make hostile")
	}
	if *hearth == "" {
		t.Fatal("-hearth must name the binary under test")
	}
	path, err := filepath.Abs(*hearth)
	if err != nil {
		t.Fatal(err)
	}
	*hearth = path
}

// TestRequests is the table of what comes through a socket.
func TestRequests(t *testing.T) {
	skipUnlessAsked(t)
	record("\n| input | n | CPU at n | at 2n | growth | memory at n | at 2n | replies | Hello, steps | CPU after leaving | bounds | |")
	record("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows(t) {
		t.Run(r.name, func(t *testing.T) { r.run(t) })
	}
}

// run measures at both sizes, each on a fresh server, and then what leaving costs.
func (r *row) run(t *testing.T) {
	var faults []string
	try := func(what string, f func(s *server) []string) {
		s, err := serve(t.TempDir(), nil, append(r.server, "--prefix-cache-dir", "off", "--cache-memory-mb", cacheMB)...)
		if err == nil {
			if err = s.warm(); err == nil {
				for _, fault := range f(s) {
					faults = append(faults, what+": "+fault)
				}
			}
			if e := s.stop(os.Interrupt); err == nil {
				err = e
			}
		}
		if err != nil {
			faults = append(faults, what+": "+err.Error())
		}
	}
	var at, twice result
	try("n", func(s *server) []string { at = r.measure(s, r.n); return at.faults })
	if !at.stuck {
		try("2n", func(s *server) []string { twice = r.measure(s, 2*r.n); return twice.faults })
	}
	if limit := time.Duration(2*growth*float64(at.cpu)) + floorCPU; twice.cpu > limit {
		faults = append(faults, fmt.Sprintf("%v of processor time at twice the size, %v before", twice.cpu.Round(time.Millisecond), at.cpu.Round(time.Millisecond)))
	}
	if limit := int64(2*growth*float64(at.peak)) + floorPeak; twice.peak > limit {
		faults = append(faults, fmt.Sprintf("%d MB at twice the size, %d before", twice.peak>>20, at.peak>>20))
	}
	after := "–"
	if n, cost := 2*r.n, twice.cpu; !r.away && !at.stuck && !twice.stuck {
		if at.cpu > cost { // refused at once
			n, cost = r.n, at.cpu
		}
		try("leaving", func(s *server) []string {
			cpu, left, err := r.leave(s, n, cost)
			for i := 1; i < tries && err == nil && left && cpu > afterCPU+r.step; i++ {
				again, still, e := r.leave(s, n, cost)
				if still {
					cpu = min(cpu, again)
				}
				err = e
			}
			if left {
				after = show(cpu)
			}
			switch {
			case err != nil:
				return []string{err.Error()}
			case cpu > afterCPU+afterMore+r.step:
				return []string{fmt.Sprintf("%v of processor time after the client left", cpu.Round(time.Millisecond))}
			}
			return nil
		})
	}
	verdict := "ok"
	if len(faults) > 0 {
		verdict = "**failed**: " + strings.ReplaceAll(strings.Join(faults, "; "), "|", "¦")
		t.Error(strings.Join(faults, "\n"))
	}
	ratio := "–"
	if at.cpu > 20*time.Millisecond {
		ratio = fmt.Sprintf("%.1f", float64(twice.cpu)/float64(at.cpu))
	}
	record("| %s | %d | %s | %s | %s | %d MB | %d MB | %s / %s | %s / %s | %s | %s | %s |", r.name, r.n, show(at.cpu), show(twice.cpu), ratio, at.peak>>20, twice.peak>>20,
		at.code, twice.code, at.answered(), twice.answered(), after, strings.Join(twice.bounds, " "), verdict)
	if m := cmp.Or(twice.message, at.message); m != "" {
		t.Log(m)
	}
}

func (r *result) answered() string {
	if r.steps < 0 || r.hellos == 0 {
		return "none"
	}
	return fmt.Sprint(r.steps)
}

func show(d time.Duration) string {
	if d >= 10*time.Second {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	if d >= time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
