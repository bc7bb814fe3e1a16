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
// Nothing of it is shared between salts: each has a history of its own, and what is believed of drafts is a sequence's own. The
// times of steps are the machine's.

const (
	mostDrafts      = 15 // of a sequence in a step
	mostDraftsFixed = 7  // where recurrent state has to be logged for each
	mostBeside      = 7  // beside prompts
	// draftShare is the part of the budget that indexes have, between these.
	draftShare      = 128
	leastDraftBytes = 1 << 20
	mostDraftBytes  = 64 << 20
	moreDraftBytes  = 1 << 20 // asked of the machine at a time
	mostHistories   = 64      // salts whose generated tokens are remembered
	beforeAnswer    = 32      // tokens of a prompt that stand before an answer in a history
	hearShare       = 64      // the part of a step's time that the next may wait for constraints
)

// speculation is what an engine has for drafts. All of it but bytes belongs to the loop.
type speculation struct {
	on        bool
	most      int
	histories map[kv.Salt]*history // nil: nothing is remembered
	uses      int64
	costs     spec.Costs
	options   []spec.Option
	items     []int
	work      sync.WaitGroup // goroutines that build

	limit, held int64        // bytes of indexes: at most, and given by the machine
	bytes       atomic.Int64 // taken
	stats       SpeculationStats
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
	spec.History
	bytes int64 // counted
	used  int64 // when, by speculation.uses
	at    time.Time
}

// drafter is a sequence's.
type drafter struct {
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

// canDraft reports whether the tokens of drafted rows are those of single ones, and each step's are known before the next.
func canDraft(be backend.Backend) bool {
	caps := be.Caps()
	return caps.Invariant && caps.World <= 1 && !caps.LateTokens
}

// newSpeculation takes its part of the budget.
func (e *Engine) newSpeculation(cfg *Config) {
	s := &e.spec
	if s.on = cfg.Speculate && canDraft(cfg.Backend); !s.on {
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
	s.limit = min(max(cfg.Budget/draftShare, leastDraftBytes), mostDraftBytes, cfg.Budget/8)
}

// takeDraftBytes takes bytes for an index, or reports that there are none.
func (e *Engine) takeDraftBytes(n int64) bool {
	s := &e.spec
	for s.bytes.Load()+n > s.limit {
		if !s.forgetOldest() {
			return false
		}
	}
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

// forgetOldest forgets the history that was not used for longest.
func (s *speculation) forgetOldest() bool {
	var oldest *kv.Salt
	for salt, h := range s.histories {
		if oldest == nil || h.used < s.histories[*oldest].used {
			oldest = &salt
		}
	}
	if oldest == nil {
		return false
	}
	s.forget(*oldest)
	return true
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

// history is that of a salt, nil if there is none.
func (s *speculation) history(salt kv.Salt) *history {
	h := s.histories[salt]
	if h != nil {
		s.uses++
		h.used, h.at = s.uses, time.Now()
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
	d := &drafter{fed: len(q.tokens)}
	q.drafter = d
	more := min(q.Max, 1024)
	d.bytes = spec.Bytes(len(q.prediction) + len(q.tokens) + more)
	if d.refused = !e.takeDraftBytes(d.bytes); d.refused {
		d.bytes = 0
		return
	}
	tokens, prediction := q.tokens[:len(q.tokens):len(q.tokens)], q.prediction
	e.spec.work.Go(func() { d.built.Store(spec.NewLookup(prediction, tokens, more)) })
	if e.cfg.draftAll {
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
	if more := d.lookup.Bytes() - d.bytes; more > 0 {
		if !e.takeDraftBytes(more) {
			d.refused, d.lookup = true, nil
			e.spec.bytes.Add(-d.bytes)
			d.bytes = 0
			return false
		}
		d.bytes += more
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
	if own := e.spec.history(q.salt); own != nil {
		h = &own.History
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
	s.options, s.items = s.options[:0], s.items[:0]
	rows := 0
	for i := range items {
		q := e.seqs[items[i].Seq.ID]
		most := min(items[i].Drafts, s.most+1-items[i].Tokens)
		items[i].Drafts = 0
		rows += items[i].Tokens
		if q.drafter == nil {
			continue
		}
		if most <= 0 || q.constraints != nil && q.hook == nil { // constraints of another process come with the step's end
			q.drafter.forget()
			continue
		}
		e.look(q)
		if q.constraints != nil {
			q.constrained()
		}
		d := q.drafter
		if d.draft = d.draft[:min(len(d.draft), most)]; len(d.draft) > 0 {
			s.options = append(s.options, spec.Option{Belief: &d.belief, Match: d.match, Looked: d.looked, Drafts: len(d.draft)})
			s.items = append(s.items, i)
		}
	}
	if e.cfg.draftAll {
		for i := range s.options {
			s.options[i].Take = s.options[i].Drafts
		}
	} else if prompts || rows > len(items) { // or what is forced
		spec.ChooseSure(s.options, mostBeside)
	} else {
		s.costs.Choose(s.options, len(items))
	}
	for k, i := range s.items {
		items[i].Drafts = s.options[k].Take
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
	if q.hook != nil {
		q.hook.Tell(t, nil, 0)
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
	if decodes {
		if drafts > 0 {
			s.stats.Steps++
		}
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
		s.bytes.Add(-d.bytes)
		q.drafter = nil
	}
	from := max(0, q.Prompt-beforeAnswer)
	ids := q.tokens[from:q.given()]
	if s.histories == nil || q.given()-q.Prompt < spec.LeastMatch {
		return
	}
	h := s.history(q.salt)
	if h == nil {
		if len(s.histories) >= mostHistories {
			s.forgetOldest()
		}
		h = &history{}
		s.histories[q.salt] = h
		s.history(q.salt)
	}
	more := min(spec.Bytes(len(ids)), spec.HistoryBytes-h.bytes)
	if !e.takeDraftBytes(more) {
		return
	}
	if s.histories[q.salt] != h { // it was the oldest
		s.bytes.Add(-more)
		return
	}
	h.bytes += more
	s.work.Go(func() { h.Add(ids) })
}
