package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/hub"
	"hearth/internal/model"
)

// Found is a model on disk that can be loaded.
type Found struct {
	*Source
	Kind chat.ModelKind // what its folder says it is for
}

// Disk knows the models that are on disk. Its methods are called from any goroutine; List for lists and every now and then, Find
// for names that are nobody's otherwise.
type Disk interface {
	// Find is the model of a name. The error is a *hub.NotFoundError where there is none, else a *chat.Error that says what is
	// wrong with what is there.
	Find(name string) (*Found, error)
	// Named reports a name that somebody has given a model here. It means that one, whatever else such names mean.
	Named(name string) bool
	List(ctx context.Context) []Found
}

// What a model is taken to need beside its weights before it has been loaded once.
const (
	firstState = 64 << 20
	firstStep  = 64 << 20
)

// retryAfter is how long what was wrong with a load is told to those who ask again, before it is tried again.
const retryAfter = 5 * time.Second

// onDemand is what there is of a model that is loaded on demand, beyond its entry. All of it is under Catalog.mu, which nobody
// holds while a model is loaded or freed.
type onDemand struct {
	table   *sync.Mutex // Catalog.mu
	phase   phase
	need    int64 // bytes that it takes when it is loaded, as far as is known
	state   int64 // of those, beside its weights
	step    int64
	users   int
	waiting []*waiter // the one that has waited longest first
	loaded  time.Time
	until   time.Time // when it goes if nobody uses it; zero: when its memory is needed
	promise time.Time // until when a request asked for it to stay
	forever bool      // one asked for it to stay for good
	drains  bool
	cancel  context.CancelFunc // of its load
	failed  error              // how its last load ended
	when    time.Time          // when that was
	share   *budget.Share
	ended   func()       // of its share's use
	last    chat.Model   // what is known of it while it is not loaded
	glanced glances      // of the folder that this is of
	count   int          // how often it was
	fails   int          // how often that failed
	past    engine.Stats // of the times before
}

// asleep describes the model while it is not loaded.
func (e *Entry) asleep() chat.Model {
	e.table.Lock()
	defer e.table.Unlock()
	m := e.last
	if m.State = chat.OnDisk; e.phase == loads {
		m.State = chat.Loading
	}
	return m
}

// waiter is a request that waits for a model.
type waiter struct {
	since time.Time
	done  chan error // has one when the model is there, and in use for this request, or will not be
}

// stand is how the model stands for the policy, with what its share has where it is loaded.
func (e *Entry) stand(h budget.Held) standing {
	s := standing{need: e.need, phase: e.phase, users: e.users, waiting: len(e.waiting), loaded: e.onDemand.loaded, used: e.used(),
		until: e.until, drains: e.drains}
	if e.phase == resides {
		s.need, s.spare = h.Sum(), h.Spare
	}
	if len(e.waiting) > 0 {
		s.first = e.waiting[0].since
	}
	return s
}

// AddDisk makes what disk knows servable: it is loaded when a request names it. idle is after how long without a request it goes
// again; 0: when its memory is needed. It is called before Load.
func (c *Catalog) AddDisk(disk Disk, idle time.Duration) {
	c.disk, c.idle = disk, idle
}

// acquire is the model of an entry for as long as ctx lasts. It is loaded first if it has to be. Errors are ctx's, and a
// *chat.Error where it cannot be.
func (c *Catalog) acquire(ctx context.Context, e *Entry) (*resident, error) {
	if e.Role != OnDemand {
		m, err := e.wait(ctx)
		if err == nil {
			e.lastUse.Store(c.now().UnixNano())
		}
		return m, err
	}
	if err := c.enter(ctx, e); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { c.leave(ctx, e) })
	return e.current.Load(), nil
}

// enter makes a request one of the model's users, as soon as that is loaded.
func (c *Catalog) enter(ctx context.Context, e *Entry) error {
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return errClosed
	case e.use():
		c.mu.Unlock()
		return nil
	case e.phase == absent && e.failed != nil && c.now().Sub(e.when) < retryAfter:
		err := e.refusal(e.failed)
		c.mu.Unlock()
		return err
	}
	w := &waiter{since: c.now(), done: make(chan error, 1)}
	e.waiting = append(e.waiting, w)
	c.step()
	c.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(e.waiting, w); i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
		if len(e.waiting) == 0 && e.phase == loads {
			e.cancel()
		}
	} else if <-w.done == nil { // it had just come
		e.release(c.now(), c.now().Add(c.idle))
	}
	c.step()
	return ctx.Err()
}

var errClosed = &chat.Error{Kind: chat.Overloaded, Code: "shutting_down", Msg: "the server is shutting down"}

// use counts one more user, if there can be one now.
func (e *Entry) use() bool {
	if e.phase != resides || e.drains {
		return false
	}
	if e.users == 0 {
		end, ok := e.share.Begin()
		if !ok {
			return false // it is on its way out
		}
		e.ended = end
	}
	e.users++
	return true
}

// leave ends what acquire began.
func (c *Catalog) leave(ctx context.Context, e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	keep, told := chat.KeepAlive(ctx)
	if told {
		e.forever, e.promise = keep < 0, now.Add(max(keep, 0))
	}
	e.release(now, now.Add(c.idle))
	c.step()
}

// release counts one user less. Nobody uses the model then until usual, or until it was asked to stay.
func (e *Entry) release(now, usual time.Time) {
	e.users--
	e.lastUse.Store(now.UnixNano())
	switch {
	case e.forever:
		e.until = time.Time{}
	case e.promise.After(usual), e.promise.Equal(now): // what a request said last
		e.until = e.promise
	case usual.Equal(now) && e.promise.Before(now): // none is unloaded for being idle
		e.until = time.Time{}
	case usual.Equal(now):
		e.until = e.promise
	default:
		e.until = usual
	}
	if e.users == 0 && e.ended != nil {
		e.ended()
		e.ended = nil
	}
}

// step does what the policy decides; mu is held.
func (c *Catalog) step() {
	if !c.open || c.closed {
		return
	}
	for again := true; again; {
		again = c.decided()
	}
}

// decided does it once, and reports whether there may be more.
func (c *Catalog) decided() (again bool) {
	held, spare := map[string]budget.Held{}, int64(0)
	for _, h := range c.bs.Memory.Shares() {
		if h.Pinned {
			spare += h.Spare
		} else {
			held[h.Name] = h
		}
	}
	all, free := make([]standing, len(c.found)), map[string]int64{}
	for i, e := range c.found {
		on := c.bs.device(e.cfg.Backend)
		if _, ok := free[on]; !ok {
			free[on] = c.bs.Memory.Free(on)
		}
		all[i] = e.stand(held[e.src.ID])
		all[i].free = free[on]
	}
	now := c.now()
	d := decide(all, spare, c.switched, now)
	for _, i := range d.never {
		e := c.found[i]
		e.tell(&chat.Error{Kind: chat.Overloaded, Param: "model", Code: "model_does_not_fit", Msg: e.ID() + " does not fit: " + c.beside(e)})
	}
	for i, e := range c.found {
		e.drains = slices.Contains(d.drains, i)
		if e.phase == resides && !e.drains && len(e.waiting) > 0 && !slices.Contains(d.unload, i) {
			e.admit()
		}
	}
	for _, i := range d.unload {
		c.dismiss(c.found[i])
	}
	if d.parts {
		c.switched = now
	}
	if d.load >= 0 {
		e := c.found[d.load]
		ctx, cancel := context.WithCancel(context.Background())
		e.phase, e.cancel, e.failed = loads, cancel, nil
		c.going.Go(func() { c.loadOne(ctx, e) })
	}
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if !d.wake.IsZero() {
		c.timer = time.AfterFunc(d.wake.Sub(now), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.step()
		})
	}
	return len(d.never) > 0
}

// beside says what keeps a model from being loaded.
func (c *Catalog) beside(e *Entry) string {
	short := c.bs.Memory.Lacks("it", c.bs.device(e.cfg.Backend), e.need)
	short.Others = slices.DeleteFunc(short.Others, func(h budget.Held) bool { return !h.Pinned })
	return short.Error()
}

// admit makes those who wait users; mu is held.
func (e *Entry) admit() {
	for len(e.waiting) > 0 && e.use() {
		e.waiting[0].done <- nil
		e.waiting = e.waiting[1:]
	}
}

// tell ends the waiting with an error; mu is held.
func (e *Entry) tell(err error) {
	for _, w := range e.waiting {
		w.done <- err
	}
	e.waiting = nil
}

// refusal is what clients are told of a load that failed.
func (e *Entry) refusal(err error) error {
	var short *budget.ShortError
	if errors.As(err, &short) {
		return &chat.Error{Kind: chat.Overloaded, Param: "model", Code: "model_does_not_fit", Msg: short.Error() + "; " + short.Hint(), Err: err}
	}
	return &chat.Error{Kind: chat.Internal, Param: "model", Code: "model_load_failed",
		Msg: fmt.Sprintf("the model %s could not be loaded: %v; it is tried again when it is asked for %v later", e.ID(), err, retryAfter), Err: err, RetryAfter: retryAfter}
}

// loadOne loads a model that nobody else may load or free meanwhile.
func (c *Catalog) loadOne(ctx context.Context, e *Entry) {
	c.mu.Lock()
	bs, disk, d := c.bs, c.DiskCache, &demand{ctx: ctx, state: e.state, step: e.step, unload: func() { c.evict(e) }}
	c.mu.Unlock()
	bs.demand = d
	glanced := glancesOf(e.src.FS)
	m, err := e.open(ctx, bs, disk)
	c.mu.Lock()
	defer c.mu.Unlock()
	left := ctx.Err() != nil // all who waited
	e.cancel()
	e.cancel = nil
	now := c.now()
	var short *budget.ShortError
	switch {
	case err == nil:
		e.phase, e.share, e.onDemand.loaded, e.until = resides, m.share(), now, time.Time{}
		if use := e.share.Use(); use.Sum() > 0 {
			e.need, e.state, e.step = use.Sum(), use.State, use.Scratch
		}
		e.last, e.glanced = m.Model(), glanced
		e.current.Store(m)
		e.lastUse.Store(now.UnixNano())
		e.count++
		if c.idle > 0 {
			e.until = now.Add(c.idle)
		}
		e.admit()
	case left, errors.Is(err, errNoRoom): // who waits has it tried anew
		e.phase = absent
	case errors.As(err, &short) && short.Need.Sum() > 0 && d.end != nil: // it needs more than was known
		e.phase, e.state, e.step = absent, e.state+short.Need.State, e.step+short.Need.Scratch
		e.need += short.Need.Sum()
	default:
		e.phase, e.failed, e.when = absent, err, now
		e.fails++
		if c.Note != nil {
			c.Note(fmt.Sprintf("%s could not be loaded: %v", e.ID(), err))
		}
		e.tell(e.refusal(err))
	}
	if d.end != nil {
		d.end()
	}
	c.step()
}

// share is what the model has of the machine's memory.
func (m *resident) share() *budget.Share {
	if m.enc != nil {
		return m.enc.holding.share
	}
	return m.weights.holding.share
}

// held is the share in bytes, 0 where there is none.
func (m *resident) held() int64 {
	if m == nil || m.enc == nil && m.weights == nil || m.share() == nil {
		return 0
	}
	return m.share().Use().Sum()
}

// Memory is the memory that the models share; nil: nobody divides it.
func (c *Catalog) Memory() *budget.Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bs.Memory
}

// evict unloads a model whose memory is needed, and that the budget has seen without users. By the time it is called that may
// have gone for another reason, and be back.
func (c *Catalog) evict(e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.phase == resides && !c.closed && e.share.Going() {
		c.dismiss(e)
	}
}

// dismiss has a model go that nobody uses; mu is held.
func (c *Catalog) dismiss(e *Entry) {
	e.phase = leaves
	c.going.Go(func() { c.unload(e) })
}

// unload frees a model that nobody uses.
func (c *Catalog) unload(e *Entry) {
	err := c.free(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	e.phase, e.until, e.promise, e.forever, e.drains = absent, time.Time{}, time.Time{}, false, false
	if err != nil && c.Note != nil {
		c.Note(fmt.Sprintf("%s has not ended as it should: %v", e.ID(), err))
	}
	c.step()
}

// free ends what runs the model. Its figures stay in the sums.
func (c *Catalog) free(e *Entry) error {
	c.mu.Lock()
	past := e.Stats()
	e.past.AddCounts(&past)
	m := e.current.Swap(nil)
	e.share = nil
	c.mu.Unlock()
	err := m.close()
	debug.FreeOSMemory() // what it had, for whoever is loaded next
	return err
}

// closeOnDemand ends all loads and frees what they brought.
func (c *Catalog) closeOnDemand() error {
	c.mu.Lock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	for _, e := range c.found {
		e.tell(errClosed)
		if e.cancel != nil {
			e.cancel()
		}
	}
	found := c.found
	c.mu.Unlock()
	c.going.Wait()
	var errs []error
	for _, e := range found {
		if e.current.Load() != nil {
			errs = append(errs, c.free(e))
		}
	}
	return errors.Join(errs...)
}

// LoadModel loads the model of a name, if it is not loaded, and leaves it to what ctx says of how long it stays: see
// chat.WithKeepAlive.
func (c *Catalog) LoadModel(ctx context.Context, name string) error {
	e, err := c.named(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err = c.acquire(ctx, e)
	return err
}

// UnloadModel has the model of a name go as soon as nobody uses it. One of the command line stays: that is an error.
func (c *Catalog) UnloadModel(ctx context.Context, name string) error {
	e, err := c.named(ctx, name)
	if err != nil {
		return err
	}
	if e.Role != OnDemand {
		return &chat.Error{Kind: chat.Invalid, Param: "model", Code: "model_pinned",
			Msg: fmt.Sprintf("%s stays loaded while the server runs: it was started with it", e.ID())}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.forever, e.promise, e.until = false, time.Time{}, c.now()
	if e.users > 0 {
		e.promise = c.now() // in the past when the last one leaves
	}
	c.step()
	return nil
}

// named is the entry of a name, whatever its model does.
func (c *Catalog) named(ctx context.Context, name string) (*Entry, error) {
	for _, e := range c.entries {
		if e.names.is(name) {
			return e, nil
		}
	}
	if e, err := c.onDisk(ctx, name, true); e != nil || wrong(err) {
		return e, err
	}
	return c.find(ctx, name)
}

// Row is how a model stands, for lists.
type Row struct {
	Model   chat.Model
	Names   []string
	Pinned  bool // it never goes
	State   string
	Bytes   int64     // of its weights, where it is loaded
	Held    int64     // that it has been promised of the machine's memory
	LastUse time.Time // zero: never
	Until   time.Time // when it goes if nobody uses it; zero: when its memory is needed, or never
	Users   int       // requests that use it; of a pinned one it is not counted
	Waiting int       // requests that wait for it to be loaded
	Loads   int       // how often it was loaded on demand
	Problem string    // why it could not be loaded last
}

// Rows are all models that can be served, the main one first, then the others of the command line, then those on disk.
func (c *Catalog) Rows(ctx context.Context) []Row {
	c.look(ctx, listAge)
	c.glance()
	c.mu.Lock()
	found := slices.Clone(c.listed)
	c.mu.Unlock()
	var rows []Row
	for _, e := range slices.Concat(c.entries, found) {
		m := e.loaded()
		r := Row{Model: e.Model(), Names: slices.Clone(e.names.exact), Pinned: e.Role != OnDemand, Bytes: m.bytes(), Held: m.held(), LastUse: e.used()}
		if e.Role == OnDemand {
			c.mu.Lock()
			r.Until, r.Users, r.Waiting, r.Loads = e.until, e.users, len(e.waiting), e.count
			if e.failed != nil {
				r.Problem = e.failed.Error()
			}
			c.mu.Unlock()
		} else if m == nil && e.failure() != nil {
			r.Problem = e.failure().Error()
		}
		r.State = string(r.Model.State)
		rows = append(rows, r)
	}
	return rows
}

const (
	// listAge is how old what is known of the disk may be in a list, and findAge, when names are looked up in it, before somebody
	// looks again meanwhile.
	listAge = time.Second
	findAge = 10 * time.Second
)

// look brings what is known of the disk up to date if it is older than that.
func (c *Catalog) look(ctx context.Context, age time.Duration) {
	if c.disk == nil {
		return
	}
	c.looking.Lock()
	defer c.looking.Unlock()
	c.mu.Lock()
	fresh := !c.looked.IsZero() && c.now().Sub(c.looked) < age
	c.mu.Unlock()
	if fresh {
		return
	}
	list := c.disk.List(ctx)
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed = nil
	for i := range list {
		if e := c.note(&list[i]); e.Role == OnDemand {
			c.listed = append(c.listed, e)
		}
	}
	c.byName = map[string]*Entry{}
	for _, e := range c.listed {
		for _, name := range e.names.exact {
			if c.byName[name] == nil {
				c.byName[name] = e
			}
		}
	}
	c.looked = c.now()
}

// note is the entry of a model on disk, a new one if there is none; mu is held.
func (c *Catalog) note(f *Found) *Entry {
	for _, e := range slices.Concat(c.entries, c.found) {
		if e.src.Path == f.Path && (f.Path != "" || e.src.Demo()) {
			return e
		}
	}
	own := *c.cfg
	own.ServedModelName, own.AnyModel, own.AdapterPath, own.ChatTemplate, own.Script = nil, false, "", "", ""
	own.ContextLength = 0
	e := newEntry(OnDemand, f.Source, Settings(f.Source, &own), model.Generates)
	e.table = &c.mu
	e.last = chat.Model{ID: e.ID(), Path: f.Path, Created: f.Created, Kind: f.Kind}
	e.state, e.step = firstState, firstStep
	e.need = WeightBytes(e.src.FS) + e.state + e.step
	c.found = append(c.found, e)
	return e
}

// wrong reports an error about what is on disk, and not that nothing is.
func wrong(err error) bool { return err != nil && !errors.As(err, new(*hub.NotFoundError)) }

// onDisk is the model on disk that is called so, nil if there is none. What is known of the disk may be some seconds old; with
// far it is asked itself if it is not in there, and the error is that of Disk.Find.
func (c *Catalog) onDisk(ctx context.Context, name string, far bool) (*Entry, error) {
	if c.disk == nil || name == "" {
		return nil, nil
	}
	c.mu.Lock()
	e, age := c.byName[name], c.now().Sub(c.looked)
	first := c.looked.IsZero()
	c.mu.Unlock()
	switch {
	case first: // names with claude in them are known from lists alone
		c.look(ctx, findAge)
		c.mu.Lock()
		e = c.byName[name]
		c.mu.Unlock()
	case age > findAge && c.looking.TryLock():
		c.looking.Unlock()
		c.going.Go(func() { c.look(context.Background(), findAge) })
	}
	if e != nil || !far {
		return e, nil
	}
	f, err := c.disk.Find(name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.note(f), nil
}
