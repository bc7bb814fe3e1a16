package engine

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/kv"
	"hearth/internal/sched"
	"hearth/internal/spec"
)

// Drafts are looked up in a sequence's own text and in what others under its salt have generated (package spec), and run as rows
// behind the token that the sequence generated last. Every row's token is drawn as if it had been alone: by the sequence's own
// sampler, in order, under the constraint after the tokens before it. A draft is accepted while it equals what is drawn, so an
// answer is the one without drafts, token for token, whatever was proposed. What follows the first that differs was never there:
// no prefix reaches into its rows, and recurrent state is committed up to them.
//
// A constraint is a second drafter (Prompt.Draft): behind what must follow it proposes tokens of text that others could spell. It
// leaves out looked up drafts that may not come, too. It works on the hook's goroutine, and what it finds is used if it is there
// when the next step is planned.
//
// What comes of it under one salt does not depend on what is said under others, only on who runs. Each salt has a history of its
// own, in a place whose bytes are its own; the places go by when requests begin. What indexes of running sequences may take
// beside those is divided among their salts. What is believed of drafts is a sequence's own, and how many run each salt finds as
// if the others had none. The times of steps are the machine's.

const (
	mostDrafts      = 15 // of a sequence in a step
	mostDraftsFixed = 7  // where recurrent state has to be logged for each
	mostBeside      = 7  // beside prompts
	// draftShare is the part of the budget that indexes have, between these.
	draftShare      = 128
	leastDraftBytes = 1 << 20
	mostDraftBytes  = 64 << 20
	moreDraftBytes  = 1 << 20 // asked of the machine at a time
	mostHistories   = 64      // salts whose generated tokens are remembered,
	fewHistories    = 8       // and those whose tokens are where there is little memory
	beforeAnswer    = 32      // tokens of a prompt that stand before an answer in a history
	hearShare       = 64      // the part of a step's time that the next may wait for constraints
)

// speculation is what an engine has for drafts. All of it but bytes belongs to the loop.
type speculation struct {
	on        bool
	most      int
	histories map[kv.Salt]*history // nil: nothing is remembered
	places    int                  // for histories,
	place     int64                // each of so many bytes
	begun     int64                // sequences
	running   map[kv.Salt]*salted
	costs     spec.Costs
	work      sync.WaitGroup // goroutines that build

	limit, held int64        // bytes of indexes: at most, and given by the machine
	bytes       atomic.Int64 // taken
	stats       SpeculationStats
}

// salted is what the running sequences of a salt have.
type salted struct {
	drafters int
	bytes    int64         // of their indexes
	rows     int           // theirs of the step,
	forced   bool          // of which some run what is forced, too
	options  []spec.Option // of the step,
	items    []*sched.Item // and whose they are
}

// SpeculationStats count drafts.
type SpeculationStats struct {
	Enabled  bool
	Steps    int64 // with drafts, since start like the rest
	Drafted  int64 // tokens proposed and run
	Accepted int64 // of those
	Bytes    int64 // of what drafts are looked up in
}

// addCounts adds what o has counted.
func (s *SpeculationStats) addCounts(o *SpeculationStats) {
	s.Steps += o.Steps
	s.Drafted += o.Drafted
	s.Accepted += o.Accepted
}

// history is one salt's.
type history struct {
	*spec.History
	bytes int64     // counted
	began int64     // its last sequence, by speculation.begun
	at    time.Time // it was used
}

// drafter is a sequence's.
type drafter struct {
	own     *salted
	built   atomic.Pointer[spec.Lookup] // once it is there
	lookup  *spec.Lookup                // likewise, with the first fed tokens of the sequence
	fed     int
	bytes   int64
	refused bool // there is no memory for it
	belief  spec.Belief
	at      int     // draft is behind so many tokens
	draft   []int32 // of the step
	looked  int     // of those, looked up;
	match   int     // behind so many that were alike
}

// DraftAll has all drafts run that there are, whatever they cost, from the first token on: for tests.
func (c *Config) DraftAll() { c.draftAll = true }

// canDraft reports whether the tokens of drafted rows are those of single ones, but for rounding on a backend that is not
// Invariant. Where the device is given steps ahead, recurrent state has the memory of one tentative row.
func canDraft(be backend.Backend, states []backend.StateSpec) bool {
	caps := be.Caps()
	return caps.World <= 1 && (caps.Invariant && !caps.LateTokens || caps.LateTokens && !backend.Fixed(states))
}

// newSpeculation takes its part of the budget.
func (e *Engine) newSpeculation(cfg *Config) {
	s := &e.spec
	if s.on = cfg.Speculate && canDraft(cfg.Backend, cfg.Model.States()); !s.on {
		return
	}
	s.stats.Enabled = true
	s.most = mostDrafts
	if backend.Fixed(cfg.Model.States()) {
		s.most = mostDraftsFixed
		cfg.KV.MaxDraft = max(cfg.KV.MaxDraft, s.most)
	}
	if !cfg.NoCache {
		s.histories = map[kv.Salt]*history{}
	}
	s.running = map[kv.Salt]*salted{}
	s.limit = min(max(cfg.Budget/draftShare, leastDraftBytes), mostDraftBytes, cfg.Budget/8)
	s.places = int(min(max(s.limit/2/spec.HistoryBytes, fewHistories), mostHistories))
	s.place = s.limit / 2 / int64(s.places)
}

// share is what the indexes of a salt's running sequences may take: places that are not taken are theirs.
func (s *speculation) share() int64 {
	return (s.limit - int64(len(s.histories))*s.place) / int64(max(len(s.running), 1))
}

// takeIndexBytes takes bytes for the index of a sequence, or reports that there are none.
func (e *Engine) takeIndexBytes(d *drafter, n int64) bool {
	if d.own.bytes+n > e.spec.share() || !e.takeDraftBytes(n) {
		return false
	}
	d.own.bytes, d.bytes = d.own.bytes+n, d.bytes+n
	return true
}

// refuse takes a sequence's index away.
func (s *speculation) refuse(d *drafter) {
	s.bytes.Add(-d.bytes)
	d.own.bytes -= d.bytes
	d.refused, d.lookup, d.bytes = true, nil, 0
}

// shrink takes indexes away from salts that have more than their share, those of their youngest sequences.
func (e *Engine) shrink() {
	for _, own := range e.spec.running {
		for own.bytes > e.spec.share() {
			var last *sequence
			for _, q := range e.seqs {
				if d := q.drafter; d != nil && d.own == own && d.bytes > 0 && (last == nil || q.ID > last.ID) {
					last = q
				}
			}
			e.spec.refuse(last.drafter)
		}
	}
}

// takeDraftBytes takes bytes, of those that a salt has for itself, or reports that the machine has none.
func (e *Engine) takeDraftBytes(n int64) bool {
	s := &e.spec
	if sum := s.bytes.Load() + n; e.memory.share != nil && sum > s.held {
		if more := (sum - s.held + moreDraftBytes - 1) / moreDraftBytes * moreDraftBytes; e.memory.drafts(min(more, s.limit-s.held)) {
			s.held += min(more, s.limit-s.held)
		} else {
			return false
		}
	}
	s.bytes.Add(n)
	return true
}

// drafts asks the share for bytes of indexes.
func (m *memory) drafts(bytes int64) bool {
	lack := budget.Use{Scratch: bytes}
	_, a := m.share.Grow(lack, lack)
	return a == budget.Yes
}

// forgetOldest forgets the history of the salt that began a sequence the longest ago.
func (s *speculation) forgetOldest() {
	var oldest kv.Salt
	for salt, h := range s.histories {
		if o := s.histories[oldest]; o == nil || h.began < o.began {
			oldest = salt
		}
	}
	s.forget(oldest)
}

// forget forgets the history of a salt.
func (s *speculation) forget(salt kv.Salt) {
	if h := s.histories[salt]; h != nil {
		s.bytes.Add(-h.bytes)
		delete(s.histories, salt)
	}
}

// forgetAll forgets all of them.
func (s *speculation) forgetAll() {
	for salt := range s.histories {
		s.forget(salt)
	}
}

// expire forgets the histories that were not used for so long.
func (s *speculation) expire(ttl time.Duration, now time.Time) {
	for salt, h := range s.histories {
		if ttl > 0 && now.Sub(h.at) > ttl {
			s.forget(salt)
		}
	}
}

// history is that of a salt, nil if there is none. A sequence that begins makes one, in the place of the oldest if all are taken.
func (s *speculation) history(salt kv.Salt, begins bool) *history {
	h := s.histories[salt]
	if h == nil && begins && s.histories != nil {
		if h = (&history{History: spec.NewHistory(s.place)}); h.History == nil {
			return nil
		}
		if len(s.histories) >= s.places {
			s.forgetOldest()
		}
		s.histories[salt] = h
	}
	if h != nil {
		h.at = time.Now()
	}
	if h != nil && begins {
		s.begun++
		h.began = s.begun
	}
	return h
}

// prepare reads the prompts of those who begin, beside the step.
func (e *Engine) prepare(p sched.Plan) {
	if !e.spec.on {
		return
	}
	for i := range p.Items {
		q := e.seqs[p.Items[i].Seq.ID]
		if p.Items[i].First && q.drafter == nil && q.Max > 1 {
			e.startDrafter(q)
		}
	}
}

// startDrafter reads a sequence's tokens on another goroutine.
func (e *Engine) startDrafter(q *sequence) {
	s := &e.spec
	s.history(q.salt, true)
	own := s.running[q.salt]
	if own == nil {
		own = &salted{}
		s.running[q.salt] = own
	}
	e.shrink()
	own.drafters++
	d := &drafter{own: own, fed: len(q.tokens)}
	q.drafter = d
	more := min(q.Max, 1024)
	if d.refused = !e.takeIndexBytes(d, spec.Bytes(len(q.prediction)+len(q.tokens)+more)); d.refused {
		return
	}
	tokens, prediction := q.tokens[:len(q.tokens):len(q.tokens)], q.prediction
	e.spec.work.Go(func() { d.built.Store(spec.NewLookup(prediction, tokens, more)) })
	if e.cfg.draftAll || e.cfg.fixedCosts {
		e.spec.work.Wait()
	}
}

// ready brings a drafter up to its sequence's last token, and reports whether it can draft.
func (e *Engine) ready(q *sequence) bool {
	d := q.drafter
	if d == nil || d.refused {
		return false
	}
	if d.lookup == nil {
		if d.lookup = d.built.Load(); d.lookup == nil {
			return false
		}
	}
	d.lookup.Append(q.tokens[d.fed:]...)
	d.fed = len(q.tokens)
	if more := d.lookup.Bytes() - d.bytes; more > 0 && !e.takeIndexBytes(d, more) {
		e.spec.refuse(d)
		return false
	}
	return true
}

// look looks up what may come behind a sequence's last token.
func (e *Engine) look(q *sequence) {
	d := q.drafter
	if d.at == len(q.tokens) {
		return
	}
	d.forget()
	if !e.ready(q) {
		return
	}
	var h *spec.History
	if own := e.spec.history(q.salt, false); own != nil {
		h = own.History
	}
	d.draft, d.match = d.lookup.Draft(d.draft, e.spec.most, h)
	if i := slices.IndexFunc(d.draft, func(id int32) bool { return slices.Contains(q.stop, id) }); i >= 0 {
		d.draft = d.draft[:i+1]
	}
	d.at, d.looked = len(q.tokens), len(d.draft)
}

// forget forgets the draft.
func (d *drafter) forget() { d.draft, d.at, d.looked = d.draft[:0], 0, 0 }

// tell tells the hook of what a step generated, with the draft that was looked up behind it.
func (e *Engine) tell(r *result) {
	q := r.seq
	if q.hook == nil || q.drafter == nil || r.reason != Running || q.Unscored > 0 || len(q.forced) > 0 {
		q.tell(nil, 0)
		return
	}
	e.look(q)
	q.tell(slices.Clone(q.drafter.draft), e.spec.most)
}

// hear takes the constraints that come before the next step is planned, so that what they force runs in that step, and drafts are
// of what may come. It waits no longer than a small part of a step: masks take microseconds, and one that takes longer is waited
// for where the token is drawn.
func (e *Engine) hear(out []result) {
	if !e.spec.on || e.cfg.Vocab == 0 { // ids are checked before they are run
		return
	}
	limit := time.Time{}
	for i := range out {
		q := out[i].seq
		if out[i].err != nil || out[i].reason != Running || q.drafter == nil || len(q.forced) > 0 {
			continue
		}
		for q.waits() && q.failed == nil {
			select {
			case c := <-q.constraints:
				q.failed = q.answer(c, e.cfg.Vocab)
				continue
			default:
			}
			if e.cfg.draftAll {
				q.failed = q.await(e.cfg.Vocab, e.run.waits)
			} else if now := time.Now(); limit.IsZero() {
				limit = now.Add(e.took / hearShare)
			} else if now.After(limit) {
				break
			}
			runtime.Gosched()
		}
	}
}

// constrained makes a draft one that the constraint allows, as far as that is known.
func (q *sequence) constrained() {
	d, likely := q.drafter, q.likely
	q.likely = nil
	switch {
	case len(q.forced) > 0:
		likely = slices.Concat(q.forced, likely)
	case q.mask != nil && len(d.draft) > 0 && !q.mask.Has(d.draft[0]):
		d.draft = d.draft[:0]
	}
	if likely == nil || q.hook == nil && len(behind(likely, d.draft)) > 0 { // another process was not told what was looked up
		return
	}
	same := 0
	for same < min(len(likely), len(d.draft)) && likely[same] == d.draft[same] {
		same++
	}
	d.draft, d.looked = append(d.draft[:0], likely...), same
}

// draft is sched.Config.Draft.
func (e *Engine) draft(items []sched.Item, prompts bool) {
	s := &e.spec
	for _, own := range s.running {
		clear(own.items)
		own.rows, own.forced, own.options, own.items = 0, false, own.options[:0], own.items[:0]
	}
	for i := range items {
		q := e.seqs[items[i].Seq.ID]
		most := min(items[i].Drafts, s.most+1-items[i].Tokens)
		items[i].Drafts = 0
		if q.drafter == nil {
			continue
		}
		d := q.drafter
		d.own.rows++
		d.own.forced = d.own.forced || items[i].Tokens > 1
		if most <= 0 || q.constraints != nil && q.hook == nil && q.tells == nil {
			d.forget()
			continue
		}
		e.look(q)
		if q.constraints != nil {
			q.constrained()
		}
		if d.draft = d.draft[:min(len(d.draft), most)]; len(d.draft) > 0 {
			d.own.options = append(d.own.options, spec.Option{Belief: &d.belief, Match: d.match, Looked: d.looked, Drafts: len(d.draft)})
			d.own.items = append(d.own.items, &items[i])
		}
	}
	plain := !prompts && s.costs.Plain()
	for _, own := range s.running {
		e.choose(own, len(items), prompts, plain)
		for k, it := range own.items {
			it.Drafts = own.options[k].Take
		}
	}
}

// choose finds how many drafts of a salt's sequences run in a step of so many.
func (e *Engine) choose(own *salted, sequences int, prompts, plain bool) {
	switch {
	case e.cfg.draftAll:
		for i := range own.options {
			own.options[i].Take = own.options[i].Drafts
		}
	case prompts || own.forced:
		spec.ChooseSure(own.options, mostBeside)
	case !plain:
		e.spec.costs.Choose(own.options, sequences, (spec.MostRows-sequences)*own.rows/sequences)
	}
}

// drafts are those that an item runs.
func (q *sequence) drafts(it *sched.Item) []int32 {
	if it.Drafts == 0 {
		return nil
	}
	return q.drafter.draft[:it.Drafts]
}

// goesOn reports whether the next row of a step is behind what was drawn last: the draft there was right, and does not end the
// sequence. Its constraint is asked for.
func (r *result) goesOn() bool {
	q, t := r.seq, r.tokens[len(r.tokens)-1].ID
	if r.kept == len(r.draft) || r.draft[r.kept] != t || slices.Contains(q.stop, t) || q.given()+len(r.tokens)-q.Prompt == q.Max {
		return false
	}
	r.kept++
	switch {
	case q.hook != nil:
		q.hook.Tell(t, nil, 0)
		q.ahead++
	case q.constraints != nil:
		q.tells(q.given()+len(r.tokens)-1-q.Prompt, t)
		q.ahead++
	}
	return true
}

// stopDrafts ends a span at a row that failed: without drafts, what came before would have been told before that.
func (r *result) stopDrafts(err error) error {
	if r.kept == 0 {
		return err
	}
	r.kept--
	r.seq.failed = err
	return nil
}

// commit ends the tentative spans of a step, also of one that failed.
func (r *runner) commit(p sched.Plan) {
	for i := range p.Items {
		if it := &p.Items[i]; len(r.out[i].draft) > 0 {
			n := 0
			if r.out[i].err == nil {
				n = it.Tokens + r.out[i].kept
			}
			r.store.Commit(it.Seq.Slot, n)
		}
	}
}

// learn learns from a step: how long it took, and which drafts were right, run or not.
func (e *Engine) learn(p sched.Plan, out []result) {
	s := &e.spec
	if !s.on {
		return
	}
	drafts, decodes := 0, len(p.Items) > 0
	for i := range p.Items {
		it, r := &p.Items[i], &out[i]
		drafts += it.Drafts
		decodes = decodes && it.Decode && !it.First && it.Tokens == 1 && r.err == nil
		d := r.seq.drafter
		if d == nil || len(d.draft) == 0 || len(r.tokens) == 0 {
			continue
		}
		s.stats.Drafted += int64(it.Drafts)
		s.stats.Accepted += int64(r.kept)
		for k := range r.kept {
			d.belief.Note(spec.MatchOf(d.match, d.looked, k), true)
		}
		if r.kept < len(d.draft) && r.kept < len(r.tokens) && (it.Drafts == 0 || r.kept < it.Drafts) {
			d.belief.Note(spec.MatchOf(d.match, d.looked, r.kept), d.draft[r.kept] == r.tokens[r.kept].ID)
		}
		d.forget()
		r.seq.stream.drafted(it.Drafts, r.kept)
	}
	if drafts > 0 {
		s.stats.Steps++
	}
	if decodes && !e.cfg.fixedCosts {
		s.costs.Observe(len(p.Items), drafts, float64(e.took.Microseconds()))
	}
}

// remember puts what a sequence generated into its salt's history, on another goroutine, and frees its index.
func (e *Engine) remember(q *sequence) {
	s := &e.spec
	if !s.on {
		return
	}
	if d := q.drafter; d != nil {
		s.refuse(d)
		if d.own.drafters--; d.own.drafters == 0 {
			delete(s.running, q.salt)
		}
		q.drafter = nil
	}
	from := max(0, q.Prompt-beforeAnswer)
	ids := q.tokens[from:q.given()]
	if s.histories == nil || q.given()-q.Prompt < spec.LeastMatch {
		return
	}
	h := s.history(q.salt, s.histories[q.salt] == nil) // it was forgotten meanwhile
	if h == nil {
		return
	}
	more := min(spec.Bytes(len(ids)), h.Most()-h.bytes)
	if !e.takeDraftBytes(more) {
		return
	}
	h.bytes += more
	s.work.Go(func() { h.Add(ids) })
	if e.cfg.fixedCosts {
		s.work.Wait()
	}
}
