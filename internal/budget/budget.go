// Package budget divides a machine's memory among the models that run on it: whoever takes memory asks for it first, by a
// number, and gives it back. catalog asks before it loads a model, an engine as its state grows. Where memory is short, what is
// idle goes before anything is refused. Package budget knows bytes and names only; what the machine has is read by functions
// that are given to it, so that every decision is tested as text (testdata).
//
// The order in which memory is found: what is free; models that nobody uses, the least recently used first; what only prompt
// caches hold, of the model least recently used first; then the one who asked waits. Nothing is given up for somebody whom all
// of it would not serve.
package budget

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Use is memory in bytes, by what it is for.
type Use struct {
	Weights int64 // in memory of their own
	State   int64 // keys and values, recurrent state, snapshots: of sequences and of the prompt cache
	Scratch int64 // arrays of a step
}

// Sum is all of it.
func (u Use) Sum() int64 { return u.Weights + u.State + u.Scratch }

func (u Use) plus(v Use) Use {
	return Use{u.Weights + v.Weights, u.State + v.State, u.Scratch + v.Scratch}
}

// minus is never below zero.
func (u Use) minus(v Use) Use {
	return Use{max(u.Weights-v.Weights, 0), max(u.State-v.State, 0), max(u.Scratch-v.Scratch, 0)}
}

// Readers tell what the machine has, in bytes; 0: not known. A nil one knows nothing. They are called often, from any goroutine,
// and must not wait.
type Readers struct {
	Total     func() int64 // memory of the machine, or of the control group if that is less
	Available func() int64 // what programs can still have of it
	Private   func() int64 // what this program has taken for itself, not counting files that are mapped
}

func read(f func() int64) int64 {
	if f == nil {
		return 0
	}
	return f()
}

// Unknown is the capacity of a machine that does not tell: more than any has.
const Unknown = 1 << 60

// Reserve is what is left to the system of so much memory, unless somebody asks for another number: a sixteenth, up to 4 GiB.
func Reserve(total int64) int64 { return min(total/16, 4<<30) }

// Machine is a machine's memory, and who has what of it. Methods may be called from any goroutine.
//
// Invariants: the shares' sum never grows beyond the capacity, nor that of a device's beyond its own; nobody's callback is called
// with the lock held; a share that has been told to unload is told once.
type Machine struct {
	read    Readers
	reserve int64
	run     func(func()) // runs a callback, outside the lock

	mu      sync.Mutex
	shares  []*Share         // in order of their last use, the least recent first
	devices map[string]int64 // bytes that all with Claim.Device may have together
	changed chan struct{}
	asking  int // calls of Ask that wait
}

// New makes a machine of which reserve bytes are left to the system; see Reserve.
func New(r Readers, reserve int64) *Machine {
	return &Machine{read: r, reserve: reserve, devices: map[string]int64{}, changed: make(chan struct{}), run: func(f func()) { go f() }}
}

// SetDevice says how many bytes of the machine's memory a device can use, such as a GPU by its wired limit: those with that
// Claim.Device never have more together. 0: it is not known, and only the machine's memory counts.
func (m *Machine) SetDevice(name string, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.devices[name] = bytes; bytes <= 0 {
		delete(m.devices, name)
	}
}

// Capacity is what all models may have together, Unknown where the machine does not tell its memory.
func (m *Machine) Capacity() int64 {
	if total := read(m.read.Total); total > 0 {
		return max(total-m.reserve, 0)
	}
	return Unknown
}

// Room is what all have been promised together, and what somebody new could have at once, with nobody who goes.
func (m *Machine) Room() (held, free int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.promised(func(*Share) bool { return true }), m.free()
}

// Claim is what a model asks for.
type Claim struct {
	Name string // in errors and lists
	Use
	Pinned bool   // it never goes
	Device string // whose memory all of it is as well; see Machine.SetDevice
	Apart  bool   // another process has the memory: Readers.Private does not count it
	// Unload ends a model that nobody uses and closes its share. It is called once, on a goroutine of its own; Share.Begin is
	// refused from then on. nil: as Pinned.
	Unload func()
	// Shrink asks for so many bytes of Share.SetSpare. It must not wait: whoever can give them does so with Share.Give. nil:
	// nothing is ever asked for.
	Shrink func(bytes int64)
	// Wake is called when a Share.Grow that was told to Wait may be tried again. It must not wait.
	Wake func()
}

// Holding is a Share as the model sees that has it, in this process or in another one.
type Holding interface {
	Use() Use
	Grow(least, most Use) (Use, Answer)
	Give(u Use)
	SetSpare(bytes int64)
	Short(u Use) *ShortError
	Listen(shrink func(bytes int64), wake func())
}

var _ Holding = (*Share)(nil)

// Share is what one model has.
type Share struct {
	m     *Machine
	claim Claim
	use   Use
	spare int64 // of use.State
	asked int64 // of spare, by Shrink
	users int
	gone  bool // told to unload, or closed
	waits bool // told to Wait
}

// Ask gives a share that nobody uses yet, as soon as there is memory for it. Errors: *ShortError where there never will be,
// ctx's.
func (m *Machine) Ask(ctx context.Context, c Claim) (*Share, error) {
	return m.ask(ctx, &Share{m: m, claim: c, use: c.Use})
}

// AskToUse is Ask and Share.Begin in one: between the two the share would be idle, and others could have it go.
func (m *Machine) AskToUse(ctx context.Context, c Claim) (s *Share, end func(), err error) {
	if s, err = m.ask(ctx, &Share{m: m, claim: c, use: c.Use, users: 1}); err != nil {
		return nil, nil, err
	}
	return s, s.end, nil
}

func (m *Machine) ask(ctx context.Context, s *Share) (*Share, error) {
	c := &s.claim
	for waiting := false; ; waiting = true {
		m.mu.Lock()
		if waiting {
			m.asking--
		}
		a, relief := m.find(nil, c.Device, c.Sum())
		if a == Yes {
			m.shares = append(m.shares, s)
			m.mu.Unlock()
			return s, nil
		}
		if a == Never {
			err := m.short(s, c.Use)
			m.mu.Unlock()
			return nil, err
		}
		m.asking++
		changed := m.changed
		m.mu.Unlock()
		m.do(relief)
		select {
		case <-changed:
		case <-ctx.Done():
			m.mu.Lock()
			m.asking--
			m.mu.Unlock()
			return nil, ctx.Err()
		}
	}
}

// Answer is what becomes of a wish for memory.
type Answer uint8

const (
	Yes   Answer = iota
	Wait         // until others have given theirs back
	Never        // what cannot go leaves too little
)

func (a Answer) String() string { return [...]string{"yes", "wait", "never"}[a] }

// find looks for n bytes for s, nil for somebody new, who has a device or none, and says what has to happen before they are
// there. The lock is held. What other programs have taken counts for somebody new alone: who runs was promised more than it has,
// and is told of pressure.
func (m *Machine) find(s *Share, device string, n int64) (Answer, []func()) {
	free := m.unpromised("")
	if s == nil {
		free = m.free()
	}
	answer, lacks := m.look(s, "", free, n)
	if _, ok := m.devices[device]; !ok || answer == Never {
		return answer, m.relief(s, "", lacks)
	}
	a, lacksThere := m.look(s, device, m.unpromised(device), n)
	if answer = max(answer, a); a == Never {
		return Never, nil
	}
	calls := m.relief(s, device, lacksThere)
	if _, lacks = m.look(s, "", free, n); answer == Wait { // what goes from the device goes from the machine as well
		calls = append(calls, m.relief(s, "", lacks)...)
	}
	return answer, calls
}

// look is find in the machine's memory, or that of a device, of which so many bytes are free. lacks is what has to go first, 0
// where nothing would help, or enough is on its way.
func (m *Machine) look(s *Share, device string, free, n int64) (a Answer, lacks int64) {
	if n <= free {
		return Yes, 0
	}
	most, now, pending := free, free, int64(0)
	for _, o := range m.shares {
		switch {
		case o == s || !o.in(device):
		case o.gone:
			most, pending = most+o.use.Sum(), pending+o.use.Sum()
		case o.stays():
			most, now = most+o.spare, now+o.spare-o.asked
			pending += o.asked
		case o.users > 0:
			most, now = most+o.use.Sum(), now+o.spare-o.asked
			pending += o.asked
		default:
			most, now = most+o.use.Sum(), now+o.use.Sum()
		}
	}
	switch {
	case n > most:
		return Never, 0
	case n <= free+pending || n > now+pending:
		return Wait, 0
	}
	return Wait, n - free - pending
}

// in reports whether a share has memory of a device; all have of the machine.
func (s *Share) in(device string) bool { return device == "" || s.claim.Device == device }

// relief tells idle models to go, and then prompt caches to shrink, until they will have given n bytes of a device, or of the
// machine.
func (m *Machine) relief(s *Share, device string, n int64) (calls []func()) {
	for _, o := range m.shares {
		if n > 0 && o != s && o.in(device) && !o.gone && !o.stays() && o.users == 0 {
			n -= o.use.Sum() - o.asked
			o.gone = true
			calls = append(calls, o.claim.Unload)
		}
	}
	for _, o := range m.shares {
		if n > 0 && o != s && o.in(device) && !o.gone {
			calls = append(calls, o.shrink(&n))
		}
	}
	return slices.DeleteFunc(calls, func(f func()) bool { return f == nil })
}

// shrink asks a share for up to n bytes that only its prompt cache holds.
func (s *Share) shrink(n *int64) func() {
	give := min(s.spare-s.asked, *n)
	if give <= 0 || s.claim.Shrink == nil {
		return nil
	}
	*n -= give
	s.asked += give
	return func() { s.claim.Shrink(give) }
}

// stays says that a share never goes.
func (s *Share) stays() bool { return s.claim.Pinned || s.claim.Unload == nil }

// free is what nobody has been promised, and the machine has: what is available to programs now, less what was promised here and
// has not been touched yet. What was promised to other processes counts as touched.
func (m *Machine) free() int64 {
	free := m.unpromised("")
	if available := read(m.read.Available); available > 0 {
		if private := read(m.read.Private); private > 0 {
			available -= max(m.promised(func(s *Share) bool { return !s.claim.Apart })-private, 0)
		}
		free = min(free, available)
	}
	return max(free, 0)
}

// unpromised is what nobody has been promised of a device, or of the machine.
func (m *Machine) unpromised(device string) int64 {
	most := m.Capacity()
	if device != "" {
		most = m.devices[device]
	}
	return most - m.promised(func(s *Share) bool { return s.in(device) })
}

func (m *Machine) promised(which func(*Share) bool) (n int64) {
	for _, s := range m.shares {
		if which(s) {
			n += s.use.Sum()
		}
	}
	return n
}

// room is what nobody has been promised for who runs, of the machine and its device.
func (s *Share) room() int64 {
	n := s.m.unpromised("")
	if _, ok := s.m.devices[s.claim.Device]; ok {
		n = min(n, s.m.unpromised(s.claim.Device))
	}
	return n
}

// do runs callbacks.
func (m *Machine) do(calls []func()) {
	for _, f := range calls {
		m.run(f)
	}
}

// notify tells those who wait that memory has come back. The lock is held; the calls are for do.
func (m *Machine) notify() (calls []func()) {
	if m.asking > 0 {
		close(m.changed)
		m.changed = make(chan struct{})
	}
	for _, s := range m.shares {
		if s.waits && s.claim.Wake != nil {
			calls = append(calls, s.claim.Wake)
		}
		s.waits = false
	}
	return calls
}

// change changes a share and tells those who wait.
func (s *Share) change(f func()) {
	s.m.mu.Lock()
	f()
	calls := s.m.notify()
	s.m.mu.Unlock()
	s.m.do(calls)
}

// Grow asks for least bytes more, for keys and values or a step, and takes up to most where that many are free. It does not
// wait: it gives what it got, all or nothing, and after Wait calls Claim.Wake.
func (s *Share) Grow(least, most Use) (Use, Answer) {
	s.m.mu.Lock()
	if n := most.Sum(); n > least.Sum() && n <= s.room() && s.m.asking == 0 {
		least = most
	}
	a, calls := s.m.find(s, s.claim.Device, least.Sum())
	switch a {
	case Yes:
		s.use = s.use.plus(least)
	case Wait:
		s.waits = true
	}
	s.m.mu.Unlock()
	s.m.do(calls)
	if a != Yes {
		least = Use{}
	}
	return least, a
}

// Listen sets Claim.Shrink and Claim.Wake.
func (s *Share) Listen(shrink func(bytes int64), wake func()) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.claim.Shrink, s.claim.Wake = shrink, wake
}

// Give gives memory back. It answers Claim.Shrink, with however much it gives.
func (s *Share) Give(u Use) {
	s.change(func() {
		s.use = s.use.minus(u)
		s.asked, s.spare = 0, max(s.spare-u.State, 0)
	})
}

// SetSpare tells how much of the state only the prompt cache holds: it can be had by Claim.Shrink.
func (s *Share) SetSpare(bytes int64) {
	s.m.mu.Lock()
	more := bytes > s.spare
	s.spare = min(bytes, s.use.State)
	s.asked = min(s.asked, s.spare)
	var calls []func()
	if more {
		calls = s.m.notify()
	}
	s.m.mu.Unlock()
	s.m.do(calls)
}

// Use is what the share has.
func (s *Share) Use() Use {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.use
}

// Begin says that somebody uses the model until end is called, once. False: it is on its way out.
func (s *Share) Begin() (end func(), ok bool) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.gone {
		return nil, false
	}
	s.users++
	s.touch()
	return s.end, true
}

func (s *Share) end() {
	s.change(func() {
		s.users--
		s.touch()
	})
}

// Going reports that the model has been told to unload, or has gone.
func (s *Share) Going() bool {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.gone
}

// touch makes s the one used last.
func (s *Share) touch() {
	if i := slices.Index(s.m.shares, s); i >= 0 {
		s.m.shares = append(slices.Delete(s.m.shares, i, i+1), s)
	}
}

// Short says that s lacks so much, for whoever was told Never.
func (s *Share) Short(u Use) *ShortError {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.m.short(s, u)
}

// Close gives back everything. It may be called again.
func (s *Share) Close() {
	s.change(func() {
		s.gone, s.use, s.spare, s.asked = true, Use{}, 0, 0
		s.m.shares = slices.DeleteFunc(s.m.shares, func(o *Share) bool { return o == s })
	})
}

// Level is how short of memory the system says it is.
type Level uint8

const (
	Enough   Level = iota
	Short          // programs wait for memory now and then
	Critical       // the system is about to end programs
)

func (l Level) String() string { return [...]string{"enough", "short", "critical"}[l] }

// Watch presses at every tick at which the system is short of memory, until ctx ends.
func (m *Machine) Watch(ctx context.Context, tick <-chan time.Time, level func() Level) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			m.Press(level())
		}
	}
}

// Press makes caches shrink, because the system is short of memory: by half of what only they hold, or by all of it where that is
// critical, and then models that nobody uses go as well.
func (m *Machine) Press(l Level) {
	if l == Enough {
		return
	}
	var calls []func()
	m.mu.Lock()
	for _, s := range m.shares {
		switch {
		case s.gone:
		case l == Critical && !s.stays() && s.users == 0:
			s.gone = true
			calls = append(calls, s.claim.Unload)
		default:
			n := s.spare - s.asked
			if l == Short {
				n = s.spare/2 - s.asked
			}
			if f := s.shrink(&n); f != nil {
				calls = append(calls, f)
			}
		}
	}
	m.mu.Unlock()
	m.do(calls)
}

// Held is what one share has, for lists.
type Held struct {
	Name   string
	Device string
	Use
	Spare  int64 // of State: only the prompt cache holds it
	Users  int
	Pinned bool
}

// Shares lists who has what, the largest first.
func (m *Machine) Shares() []Held {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held(nil)
}

func (m *Machine) held(but *Share) (all []Held) {
	for _, s := range m.shares {
		if s != but {
			all = append(all, Held{s.claim.Name, s.claim.Device, s.use, s.spare, s.users, s.stays()})
		}
	}
	slices.SortStableFunc(all, func(a, b Held) int { return cmp.Compare(b.Sum(), a.Sum()) })
	return all
}

// Free is what nobody has been promised, and somebody new with such a device, "" for none, could have.
func (m *Machine) Free(device string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	free := m.free()
	if _, ok := m.devices[device]; ok {
		free = max(min(free, m.unpromised(device)), 0)
	}
	return free
}
