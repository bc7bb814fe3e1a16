// Package engine runs one loaded model: it takes prompts of token ids and streams tokens back. generate and the debug commands
// call it. One goroutine per engine, and no other, touches the model, the backend and the store. Callers reach it through a
// queue (Submit) and a buffer (Stream), and neither ever blocks it. What a caller decides between tokens (Prompt.Constrain) runs
// on another goroutine, and the engine waits for it, but not without end. Prompts start from what the prefix cache has of them
// (docs/cache.md); on a backend whose Caps say Invariant that never changes an answer. The package never sees text or a
// concrete backend, and it does not log.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/sample"
	"hearth/internal/sched"
	"hearth/internal/tier"
	"hearth/internal/timeline"
	"hearth/internal/watchdog"
)

// Config is fixed for the life of an engine. Zero numbers mean the default in brackets.
type Config struct {
	Model   model.Generator // loaded
	Backend backend.Backend // which loaded it; the engine becomes its only user
	KV      backend.KVPolicy
	Tower   *model.Tower    // for prompts with images: its weights are loaded for the first of them; nil: the model cannot see
	Seeing  backend.Options // to load it with
	// Sights is how many bytes of what the tower made of images are kept for later prompts.
	Sights int64
	Vocab  int // rows of the logits: prompts with other ids are refused; 0: not known, not checked

	Budget int64 // bytes for the state of all sequences and the prefix cache; required
	// Share, if set, is of the machine's memory, with the weights in it: of Budget only what it gives is used. Its Shrink and
	// Wake become the engine's. nil: all of Budget is the engine's, and what steps take beside it.
	Share        budget.Holding
	MaxContext   int // prompt and generated tokens of one sequence, the model's limit; required
	MinContext   int // a Budget for less is refused [one page]
	MaxSequences int // running at once [32]
	MaxQueue     int // waiting beyond those [256]
	PrefillChunk int // prompt tokens per step [2048]

	StepTarget time.Duration // of a step while sequences decode: prompt chunks shrink to keep it; 0: they do not
	NoCache    bool          // nothing is reused from one prompt to the next
	NoOverlap  bool          // no overlap scheduling, whatever the backend can do
	Speculate  bool          // drafts are run where the backend gives their rows the bits of single ones
	draftAll   bool          // all there are, whatever they cost, from the first token on: for tests
	fixedCosts bool          // steps teach nothing of what they cost, and indexes are there at once: for tests

	CacheTTL      time.Duration  // what is stored and not used for so long is forgotten; 0: never
	CacheSessions int            // sessions whose prompts are remembered [500]
	CacheBytes    int64          // of what is stored and no sequence uses; 0: as much as there is
	Disk          *tier.Options  // where pages go that leave memory; Geometry and Ready are the engine's; nil: nowhere
	Timings       bool           // Stats have them
	Hour          *timeline.Hour // is told what happens; nil: nobody is
	Trace         func(Step)     // called after every step, on the engine's goroutine: it must not wait; nil: nobody listens
	// Stuck, if set, is called once for a step that does not end, with how long that has been, from any goroutine: it must not
	// wait. Stats tell it, too.
	Stuck func(time.Duration)
}

// Engine is a running model. All methods may be called from any goroutine.
//
// Invariants: at most MaxSequences+MaxQueue sequences are live; a live one is in inbox or in seqs, and in seqs exactly
// if the scheduler has it; a sequence's slot is open in the store only while it runs; a stream that ends by itself
// learns of it after what its sequence held is free.
type Engine struct {
	cfg     Config
	context int // MaxContext or what the budget allows one sequence, whichever is less
	wake    chan struct{}
	done    chan struct{} // the loop has ended

	mu    sync.Mutex
	inbox []*sequence // submitted, not yet seen by the loop
	leave []*sequence // cancelled, not yet seen by the loop
	calls []func()    // to run between two steps

	numbers numbers // of images
	live    int     // sequences submitted and not ended
	// current are those in inbox or in seqs, for Live.
	current map[sched.ID]*sequence
	nextID  sched.ID
	closed  bool
	stats   Stats
	stored  map[kv.Tag]kv.Stored // of the prefix tree
	meter   *timeline.Meter
	trees   trees

	// Of the loop alone.
	sched    *sched.Scheduler
	alloc    *kv.Alloc
	memory   *memory
	run      *runner
	spec     speculation
	disk     *disk // nil: there is none; set before the loop starts
	failed   error // of closing it
	trace    trace
	watchdog *watchdog.Timer
	seqs     map[sched.ID]*sequence // waiting and running
	lacked   [lacks]time.Time       // when somebody waited last for what
	took     time.Duration          // of the last step
	happened timeline.Counts        // that meter has yet to be told
	outcomes []sched.Outcome        // reused
	left     []kv.SlotID            // reused
}

// ErrClosed is what Submit gives after Close, and what streams end with when Close cuts them off.
var ErrClosed = errors.New("engine: shutting down")

// QueueFullError refuses a prompt because as many sequences as allowed are running or waiting.
type QueueFullError struct{ Running, Waiting int }

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("engine: queue full: %d sequences run and %d wait; try again later", e.Running, e.Waiting)
}

// ClientFullError refuses a prompt because its client has as many sequences as one may, which is half of all there may
// be.
type ClientFullError struct{ Live int }

func (e *ClientFullError) Error() string {
	return fmt.Sprintf("engine: %d sequences of one client run or wait, half of all there may be; try again later", e.Live)
}

// TooLongError refuses a prompt that leaves no room for an answer in the context.
type TooLongError struct {
	Tokens int // of the prompt
	Max    int // longest prompt accepted
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("prompt is too long: %d tokens > %d maximum", e.Tokens, e.Max)
}

// New makes the store, divides the budget and starts the loop. A budget too small for one sequence is an error with
// the numbers. End an engine with Close.
func New(cfg Config) (*Engine, error) {
	if cfg.MaxSequences <= 0 {
		cfg.MaxSequences = 32
	}
	if cfg.MaxQueue <= 0 {
		cfg.MaxQueue = 256
	}
	if cfg.PrefillChunk <= 0 {
		cfg.PrefillChunk = 2048
	}
	if cfg.CacheSessions <= 0 {
		cfg.CacheSessions = 500
	}
	var ahead overlap
	if !cfg.NoOverlap {
		ahead = newOverlap(cfg.Backend, cfg.Model.States())
	}
	if ahead.fixed {
		cfg.KV.MaxDraft = max(cfg.KV.MaxDraft, 1) // the spans of a step in flight are tentative
	}
	e := &Engine{}
	e.newSpeculation(&cfg)
	store, err := cfg.Backend.NewStore(cfg.Model.States(), cfg.KV)
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	geo := store.Geometry()
	if ahead.fixed {
		geo = geo.Drafting()
	}
	limits := kv.Limits{Bytes: cfg.Budget - e.spec.limit, Slots: cfg.MaxSequences, Tokens: cfg.MaxContext, Least: cfg.MinContext, Span: cfg.PrefillChunk}
	alloc, err := kv.NewAlloc(geo, limits)
	if err != nil && e.spec.on { // a context that was asked for comes before drafts
		e.spec, limits.Bytes = speculation{}, cfg.Budget
		alloc, err = kv.NewAlloc(geo, limits)
	}
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	if err := store.Resize(alloc.Capacity()); err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	_, device := cfg.Backend.(backend.Device)
	if device {
		alloc.OnFree(store.Drop)
	}
	mem, err := newMemory(&cfg, store, alloc)
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	policy := cfg.policy()
	if mem.share != nil && mem.scratch != nil {
		policy.Room = mem.room
	}
	e.cfg, e.context, e.alloc, e.memory = cfg, alloc.Limits().Tokens, alloc, mem
	e.wake, e.done = make(chan struct{}, 1), make(chan struct{})
	e.seqs, e.current, e.stored = map[sched.ID]*sequence{}, map[sched.ID]*sequence{}, map[kv.Tag]kv.Stored{}
	if e.spec.on {
		policy.Draft = e.draft
	}
	if cfg.Tower != nil {
		policy.Shorten = func(q *sched.Seq, end int, beside bool) int {
			target := cfg.StepTarget
			if !beside {
				target = 0
			}
			return e.run.sights.shorten(e.seqs[q.ID], end, target)
		}
	}
	policy.Ask = func(q *sched.Seq, cached int) bool {
		asked := e.disk.ask(q, cached)
		if asked {
			e.seqs[q.ID].asked = time.Now()
		}
		return asked
	}
	e.sched = sched.New(policy, alloc)
	e.trace.listen = cfg.Trace
	e.watchdog = watchdog.New(device, cfg.Stuck)
	e.run = &runner{be: cfg.Backend, store: store, model: cfg.Model, seqs: e.seqs, lost: e.sched.Lost, sights: sights{tower: cfg.Tower, be: cfg.Backend, opts: cfg.Seeing, limit: cfg.Sights, memory: mem, openings: openings{signal: e.signal}}, overlap: ahead, waits: answerWaits}
	e.stats = Stats{Context: e.context, Budget: cfg.Budget, Speculation: e.spec.stats, PageTokens: geo.PageTokens, Page: geo.Need(geo.PageTokens, geo.PageTokens) - geo.FixedBytes, Step: mem.of(cfg.PrefillChunk+cfg.MaxSequences, e.context, cfg.MaxSequences)}
	if mem.share != nil {
		mem.share.Listen(func(n int64) {
			mem.asked(n)
			e.signal()
		}, e.signal)
	}
	e.stats.Cache.Enabled = e.sched.Prefix() != nil
	e.meter = cfg.Hour.Meter()
	if cfg.Timings {
		e.stats.Timings = &Timings{}
	}
	e.openDisk()
	go e.loop()
	return e, nil
}

// longestStep is how long a step without decodes may take, except the last step of a prompt (sched.ChunkBudget). Prompts that
// arrive or are cancelled during a step wait for its end.
const longestStep = time.Second

// SnapshotEvery is how many tokens lie between snapshots of recurrent state, besides those at Prompt.Marks. A snapshot takes as
// much memory as some thousand tokens.
const SnapshotEvery = 8192

// policy is the scheduler's configuration. Without StepTarget prompt chunks never shrink, beside decodes or alone.
func (c *Config) policy() sched.Config {
	s := sched.Config{Chunk: c.PrefillChunk, NoCache: c.NoCache, SnapEvery: SnapshotEvery,
		Terms: kv.Terms{TTL: c.CacheTTL.Milliseconds(), Sessions: c.CacheSessions, Idle: c.CacheBytes}}
	if c.StepTarget > 0 {
		s.Target, s.Longest = c.StepTarget.Microseconds(), max(c.StepTarget, longestStep).Microseconds()
	}
	return s
}

// Context is the most tokens, prompt and answer together, that one sequence can have.
func (e *Engine) Context() int { return e.context }

// Drafts is how many tokens a sequence may have drafted in a step, 0 where none are.
func (e *Engine) Drafts() int { return e.spec.most }

// KV is how keys and values are kept.
func (e *Engine) KV() backend.KVPolicy { return e.run.store.Policy() }

// Constraint says what may come after a token. The zero Constraint allows everything.
type Constraint struct {
	// Forced tokens come next, whatever the model says. Several run as one span, and then it is the last one's Constraint that
	// says what follows; Err after one before it may come too late to keep back the rest.
	Forced []int32
	// Mask, if not nil, is the set of tokens that the next one is drawn from; stop ids are allowed only if they are in it. It
	// is for that one token, is not used beside Forced, and must not change until Constrain is called again.
	Mask  sample.Set
	Ahead []int32 // what Prompt.Draft gave; nil: it was not asked
	Err   error   // ends the sequence, because nothing may follow; the other fields are not used then
}

// Prompt is one sequence to generate.
type Prompt struct {
	Tokens    []int32       // at least one; copied
	Images    []Image       // in the order of their places among Tokens
	MaxTokens int           // tokens to generate at most; 0 or less, or more than fits: the room left in the context
	StopIDs   []int32       // any of these ends the sequence
	Sampling  sample.Params // LogitBias is not copied
	Logprobs  int           // -1: none; n >= 0: every token's logprob and the n most likely alternatives
	Mask      sample.Set    // if not nil, the set that the first token is drawn from; copied
	Client    uint64        // prompts of one client share its part of the engine's time; 0: a client of its own
	// Constrain, if set, is called with every generated token, forced ones too, unless the sequence ends with it, and says what
	// may come next. The calls come in order, on a goroutine of its own while the next step runs. It must bound its own work
	// and depend on the tokens alone. The step waits for the result; a sequence that gets none ends with ConstraintError.
	Constrain func(id int32) Constraint
	// Draft, if set, is called behind Constrain, on the same goroutine, where tokens are drafted: after the token and those that
	// are forced behind it. It gives what is likely to come then, at most so many tokens: of looked, which what was said before
	// proposes, as many as may come, and tokens of what has to follow. Nothing that Constrain says later may depend on it.
	Draft func(forced, looked []int32, most int) []int32
	// Constraints, if set in place of Constrain, brings its results in order: for a caller in another process.
	Constraints <-chan Constraint
	// Told, if set beside Constraints, is told at once of a draft that was right, the answer's token at, so that its Constraint
	// comes while the step waits for it. It must not wait; without it nothing is drafted.
	Told func(at int, id int32)
	// Prediction is what the answer is expected to say: drafts are looked up there too. Not copied; one with ids that the model
	// does not have, or of more than the context, is not used.
	Prediction []int32
	// Watch, if set, is called when the stream has something new, see Stream.Take; it must not wait. With step true that came
	// from a step, and Config.Trace is called at the end of it.
	Watch func(step bool)

	Request    string        // names it in Live
	Made       time.Duration // what it took to make this of a text, told there
	Background bool          // others go first
	Salt       kv.Salt       // prompts under different salts do not find each other's beginnings
	Session    uint64        // prompts of one conversation or agent, for eviction; 0: none
	Party      uint64        // prompts of one client, which may learn where they part from each other, see Usage.Own; 0: none
	Marked     bool          // the client asked for it to be cached: evicted later

	// Marks are numbers of tokens, ascending, after which other prompts are likely to go on differently, such as ends of
	// messages. Snapshots of recurrent state are taken there.
	Marks []int
}

// LostError ends the streams of an engine in a worker process when that has ended, and refuses prompts until the next one has
// loaded.
type LostError struct {
	Err   error         // how it ended
	Began bool          // the prompt was running there; else it was never taken
	After time.Duration // when to try again, about
	Times int           // it has ended in a row
}

func (e *LostError) Error() string {
	if e.Began {
		return "the process that ran the model has ended: " + e.Err.Error()
	}
	return "the process that runs the model is not there: " + e.Err.Error()
}

func (e *LostError) Unwrap() error { return e.Err }

// Submit queues a prompt and returns at once. Errors: *TooLongError, *ImageError, *QueueFullError, *ClientFullError, ErrClosed,
// ctx's. When ctx ends or the stream is closed the sequence leaves before the next step, waiting or running; what it
// computed stays in the prefix cache.
func (e *Engine) Submit(ctx context.Context, p Prompt) (*Stream, error) {
	if err := Check(p.Tokens, e.cfg.Vocab, e.context-1); err != nil {
		return nil, err
	}
	images, err := place(e.cfg.Tower, p.Images, len(p.Tokens), e.cfg.PrefillChunk)
	if err != nil {
		return nil, err
	}
	room := e.context - len(p.Tokens)
	if p.MaxTokens <= 0 || p.MaxTokens > room {
		p.MaxTokens = room
	}
	q := &sequence{
		Seq: sched.Seq{Prompt: len(p.Tokens), Max: p.MaxTokens, Client: p.Client, Background: p.Background, Marks: slices.Clone(p.Marks),
			Owner: kv.Owner{Session: p.Session, Party: p.Party, Marked: p.Marked}, Key: key(p.Tokens, p.MaxTokens, &p.Salt)},
		request: p.Request, made: p.Made, salt: p.Salt,
		tokens: append([]int32(nil), p.Tokens...), stop: append([]int32(nil), p.StopIDs...),
		sampler: sample.New(p.Sampling, p.Tokens), top: p.Logprobs, constraints: p.Constraints, tells: p.Told, watch: p.Watch,
		mask: slices.Clone(p.Mask), images: images, prediction: p.Prediction,
	}
	e.numbers.mark(q.Key, &p.Salt, images)
	if e.cfg.Tower != nil && e.cfg.Tower.Together {
		for i := range images {
			q.Whole = append(q.Whole, [2]int{images[i].At, images[i].At + images[i].rows})
		}
	}
	if Check(p.Prediction, e.cfg.Vocab, e.context) != nil {
		q.prediction = nil
	}
	if p.Constrain != nil {
		constraints := make(chan Constraint, LongestSpan) // they are read before the next token is drawn
		q.constraints = constraints
		q.hook = NewHook(&p, func(c Constraint) {
			select {
			case constraints <- c:
			default: // a sequence that has ended reads no more
			}
		})
	}
	if err := e.submit(ctx, q); err != nil {
		return nil, err
	}
	return q.stream, nil
}

// key is what the prefix tree compares, with room for some generated tokens.
func key(tokens []int32, more int, salt *kv.Salt) []kv.Elem {
	k := make([]kv.Elem, len(tokens), len(tokens)+min(more, 256))
	for i, id := range tokens {
		k[i] = salt.Elem(i, kv.Elem(id))
	}
	return k
}

// Check refuses a prompt that would fail a step, and with it the step's other sequences. A vocab of 0 is not known.
func Check(tokens []int32, vocab, longest int) error {
	if len(tokens) == 0 {
		return errors.New("prompt has no tokens")
	}
	if len(tokens) > longest {
		return &TooLongError{Tokens: len(tokens), Max: longest}
	}
	for i, id := range tokens {
		if id < 0 || vocab > 0 && int(id) >= vocab {
			return fmt.Errorf("prompt token %d: id %d is not in the vocabulary", i, id)
		}
	}
	return nil
}

func (e *Engine) submit(ctx context.Context, q *sequence) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.stream = newStream(ctx, len(q.tokens))
	q.stream.watch = q.watch
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	if e.live >= e.cfg.MaxSequences+e.cfg.MaxQueue {
		return &QueueFullError{Running: e.stats.Running, Waiting: e.live - e.stats.Running}
	}
	if n := e.ofClient(q.Client); n >= (e.cfg.MaxSequences+e.cfg.MaxQueue+1)/2 {
		return &ClientFullError{Live: n}
	}
	e.live++
	e.nextID++
	q.ID = e.nextID
	e.current[q.ID] = q
	if q.Client == 0 {
		q.Client = 1<<63 | uint64(q.ID)
	}
	q.stream.cancel = func() { e.cancel(q) }
	q.unwatch = context.AfterFunc(ctx, q.stream.cancel)
	e.inbox = append(e.inbox, q)
	e.note(&timeline.Counts{Requests: 1})
	e.signal()
	return nil
}

// note tells the meter what has happened, and what there is now. Called with mu held.
func (e *Engine) note(c *timeline.Counts) {
	if e.meter != nil {
		e.meter.Note(time.Now(), c, timeline.Levels{Running: int64(e.stats.Running), Waiting: int64(e.live - e.stats.Running), State: e.stats.Used, Cache: e.stats.Cache.Idle})
	}
}

// cancel asks the loop to take q out.
func (e *Engine) cancel(q *sequence) {
	e.mu.Lock()
	e.leave = append(e.leave, q)
	e.mu.Unlock()
	e.signal()
}

// signal wakes the loop; one signal is remembered.
func (e *Engine) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Close ends every sequence with ErrClosed after the step in progress and stops the loop. What memory holds goes to disk,
// if there is one, for some seconds at most. It may be called again.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.signal()
	<-e.done
	return e.failed
}

// publish updates the gauges of Stats and counts out sequences that have left the scheduler.
func (e *Engine) publish(gone int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Running, _ = e.sched.Counts()
	e.stats.Lack = e.lack()
	e.stats.Ahead = e.run.overlap.used
	e.stats.Speculation = e.spec.stats
	e.stats.Speculation.Bytes = e.spec.bytes.Load()
	e.stats.Images = ImageStats{Encoded: e.run.sights.encoded, Reused: e.run.sights.reused, Bytes: e.run.sights.bytes}
	all, idle := e.alloc.PagesInUse()
	e.stats.PagesUsed, e.stats.Used = all-idle, e.alloc.InUse()-e.alloc.Idle()
	if p := e.sched.Prefix(); p != nil {
		c := &e.stats.Cache
		c.Entries, c.Bytes, c.Idle, c.Sessions = p.Entries(), p.Bytes(), e.alloc.Idle(), p.Sessions()
		c.Evicted = Evicted(p.Evicted())
		p.Stored(e.stored)
	}
	e.memory.tell()
	e.live -= gone
	e.note(&e.happened)
	e.happened = timeline.Counts{}
}

// countStep counts a step.
func (e *Engine) countStep(p *sched.Plan, prompt, generated int64, starts CacheStats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.stats.Timings; t != nil && len(p.Items) > 0 {
		t.step(p.Items, e.took)
	}
	e.stats.Preempted += int64(len(p.Preempted))
	e.stats.Cache.Queries += starts.Queries
	e.stats.Cache.Hits += starts.Hits
	e.stats.Cache.Tokens += starts.Tokens
	e.stats.Steps++
	e.stats.PromptTokens += prompt
	e.stats.GeneratedTokens += generated
	h := &e.happened
	h.Prompt, h.Output, h.Cached = h.Prompt+prompt, h.Output+generated, h.Cached+starts.Tokens
	h.Steps, h.Sequences = h.Steps+int64(min(len(p.Items), 1)), h.Sequences+int64(len(p.Items))
}

// Stats is a snapshot between two steps.
type Stats struct {
	Running, Waiting int
	Steps            int64 // since start, like the token counts
	Ahead            int64 // of those, given to the device before the tokens of the one before were read
	PromptTokens     int64 // run
	GeneratedTokens  int64
	Preempted        int64 // sequences that gave their memory to an older one
	Context          int   // see Engine.Context
	PagesUsed        int   // by sequences, over all groups; what only the cache holds is not used
	Used, Budget     int64 // bytes of state: used by sequences, and all there may be with the cache
	Step             int64 // bytes that the arrays of the largest step take; 0: not known
	Cache            CacheStats
	Images           ImageStats
	Speculation      SpeculationStats
	Stuck            time.Duration  // for how long a step runs that does not end, 0: none
	Lack             Lack           // what the first of those who wait lacks, if it is more than a step
	PageTokens       int            // positions of a page
	Page             int64          // bytes that so many positions take, recurrent state aside
	Timings          *Timings       // since start, a copy; nil: they are not kept
	Device           backend.Memory // of the backend, zero where it has none of its own
}

// AddCounts adds what o has counted since it began; the figures of the moment stay s's.
func (s *Stats) AddCounts(o *Stats) {
	s.Steps += o.Steps
	s.Ahead += o.Ahead
	s.PromptTokens += o.PromptTokens
	s.GeneratedTokens += o.GeneratedTokens
	s.Preempted += o.Preempted
	s.Images.Encoded += o.Images.Encoded
	s.Images.Reused += o.Images.Reused
	s.Speculation.addCounts(&o.Speculation)
	s.Timings = s.Timings.plus(o.Timings)
	c, d := &s.Cache, &o.Cache
	c.Queries += d.Queries
	c.Hits += d.Hits
	c.Tokens += d.Tokens
	c.Evicted = c.Evicted.plus(d.Evicted)
	c.Disk.AddCounts(&d.Disk)
}

// Add adds the figures of o, of another engine, to s. Those that are no amounts, the context and where the disk's tier is, stay
// s's, and of steps that do not end the longest counts.
func (s *Stats) Add(o *Stats) {
	s.AddCounts(o)
	s.Running += o.Running
	s.Waiting += o.Waiting
	s.PagesUsed += o.PagesUsed
	s.Used += o.Used
	s.Images.Bytes += o.Images.Bytes
	s.Speculation.Enabled = s.Speculation.Enabled || o.Speculation.Enabled
	s.Speculation.Bytes += o.Speculation.Bytes
	s.Budget += o.Budget
	s.Step += o.Step
	s.Stuck = max(s.Stuck, o.Stuck)
	s.Lack = max(s.Lack, o.Lack)
	s.Device.Active += o.Device.Active
	s.Device.Peak += o.Device.Peak
	s.Device.Cache += o.Device.Cache
	c, d := &s.Cache, &o.Cache
	c.Enabled = c.Enabled || d.Enabled
	c.Entries += d.Entries
	c.Bytes += d.Bytes
	c.Idle += d.Idle
	c.Sessions += d.Sessions
	c.Disk.Entries += d.Disk.Entries
	c.Disk.Bytes += d.Disk.Bytes
}

// ImageStats count what the tower did.
type ImageStats struct {
	Encoded int64 // images that it ran over, since start
	Reused  int64 // steps that needed an image again
	Bytes   int64 // of what it made and is kept
}

// CacheStats describes the prefix cache.
type CacheStats struct {
	Enabled bool
	Entries int   // ends of stored prompts and answers
	Bytes   int64 // of all pages it knows; sequences share some
	Idle    int64 // of those, bytes that no sequence uses

	Sessions int   // of which something may be stored
	Queries  int64 // prompts started, since start like the rest
	Hits     int64 // of those, with something cached
	Tokens   int64 // prompt tokens that were cached
	Evicted  Evicted
	Disk     tier.Stats
}

// Stuck is for how long a step runs that does not end, 0: none does. It waits for nothing.
func (e *Engine) Stuck() time.Duration { return e.watchdog.Stuck() }

// Evicted is the bytes of state that left the prefix cache, by why.
type Evicted kv.Evicted

func (e Evicted) plus(o Evicted) Evicted {
	return Evicted{e.Memory + o.Memory, e.Limit + o.Limit, e.Expired + o.Expired, e.Cleared + o.Cleared}
}

// Stats gives the figures for health and status pages.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Waiting = e.live - s.Running
	s.Stuck, s.Timings = e.Stuck(), s.Timings.plus(nil)
	if e.disk != nil {
		s.Cache.Disk = e.disk.tier.Stats()
	}
	if d, ok := e.cfg.Backend.(backend.Device); ok {
		s.Device = d.Memory()
	}
	return s
}
