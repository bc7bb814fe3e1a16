package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"hearth/internal/backend"
	"hearth/internal/engine"
	"hearth/internal/kv"
)

// restore asks for a few new tokens behind a long prompt that is known: from memory, and after a restart from disk, with its
// files still in the system's memory and without. The prompt's keys and values are not computed for it but copies of a page
// that was: it takes as long to keep, write and read them. What computing them would take is estimated from steps at depths.
func (b *engineBench) restore() ([]figure, error) {
	const rounds, more = 3, 16
	known := b.scaled(30000)
	var err error
	if b.disk, err = os.MkdirTemp("", "hearth-bench-"); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(b.disk) }()
	fresh, page, err := b.fresh(known)
	if err != nil {
		return nil, err
	}
	r := &restoring{b: b, known: known, rng: rand.New(rand.NewPCG(3, 4)), be: &filled{recorded: recorded{vocab: b.m.Vocab, answers: [][]int32{nil}, begins: []int{0},
		whole: true, slots: map[kv.SlotID]int{}}, page: page}}
	r.prompt = r.text(known)
	for _, data := range page {
		r.whole += int64(known / backend.PageTokens * len(data))
	}
	budget, err := b.need(known + 2*rounds*(more+backend.PageTokens) + 4*backend.PageTokens)
	if err != nil {
		return nil, err
	}
	b.quota = 2 * budget // also where that is more than a part of the free disk
	r.config = engine.Config{Backend: r.be, KV: b.f.policy(), Vocab: b.m.Vocab, Budget: budget, MaxContext: known + 2*more + 8,
		PrefillChunk: b.f.chunk, StepTarget: b.f.target}
	if err := r.open(); err != nil {
		return nil, err
	}
	defer func() { _ = r.e.Close() }()       // it was closed before, if nothing failed
	r.be.whole = backend.Fixed(b.m.States()) // which no page has
	if _, _, err := b.ask(r.e, r.prompt, 1); err != nil {
		return nil, err
	}
	if r.be.whole = true; r.be.err != nil {
		return nil, r.be.err
	}
	b.progress(fmt.Sprintf("%d tokens are in the cache", known))
	var memory, warm, cold, starts []float64
	for range rounds {
		ms, err := r.first(more, 0)
		if err != nil {
			return nil, err
		}
		memory = append(memory, ms)
	}
	wrote, err := r.written()
	if err != nil {
		return nil, err
	}
	for i := range 2 * rounds {
		if err := r.e.Close(); err != nil {
			return nil, err
		}
		into := &warm
		if i >= rounds {
			if !forgetFiles(b.disk) {
				break
			}
			into = &cold
		}
		if err := r.open(); err != nil {
			return nil, err
		}
		starts = append(starts, 1e3*r.started.Seconds())
		ms, err := r.first(more, known/2)
		if err != nil {
			return nil, err
		}
		*into = append(*into, ms)
	}
	state, err := b.need(known)
	if err != nil {
		return nil, err
	}
	all := []figure{
		{"known tokens", float64(known), "tokens", 0},
		{"their keys and values", float64(state) / 1e6, "MB", 0},
		{"first token, computed fresh, estimated", 1e3 * fresh, "ms", 0},
		{"first token, from memory", median(memory), "ms", 0},
		{"first token, from disk, files in the system's memory", median(warm), "ms", 0},
	}
	if len(cold) > 0 {
		all = append(all, figure{"first token, from disk, files read anew", median(cold), "ms", 0})
	}
	return append(all, figure{"start of the engine over them", median(starts), "ms", 0}, figure{"until an idle engine has written them", wrote, "s", 0},
		figure{"known tokens computed again, most", float64(r.missing), "tokens", backend.PageTokens}), nil
}

// restoring is an engine whose cache has a prompt.
type restoring struct {
	b       *engineBench
	be      *filled
	config  engine.Config
	e       *engine.Engine
	started time.Duration // what its start took
	rng     *rand.Rand
	known   int
	prompt  []int32
	whole   int64 // bytes of its whole pages
	missing int   // known tokens that were computed again, most
}

func (r *restoring) open() error {
	err := r.b.reload()
	if err != nil {
		return err
	}
	r.config.Model, r.be.Backend = recordedModel{r.b.m}, r.b.be
	start := time.Now()
	r.e, err = r.b.open(r.config)
	r.started = time.Since(start)
	return err
}

// written waits until the prompt's whole pages are on disk, and says how many seconds it took. An engine writes them beside its
// steps and when it is idle; at its end it would only write for some seconds.
func (r *restoring) written() (float64, error) {
	const every, patience = 20 * time.Millisecond, 30 * time.Second
	begun := time.Now()
	for last, at := int64(0), begun; ; {
		d := r.e.Stats().Cache.Disk
		switch {
		case d.Bytes >= r.whole && d.Writes >= int64(d.Entries):
			return time.Since(begun).Seconds(), nil
		case d.Errors > 0:
			return 0, fmt.Errorf("%d files could not be written into %s", d.Errors, r.b.disk)
		case d.Writes > last:
			last, at = d.Writes, time.Now()
		case time.Since(at) > patience:
			return 0, fmt.Errorf("nothing more is written into %s, where %d of %d bytes are", r.b.disk, d.Bytes, r.whole)
		}
		select {
		case <-time.After(every):
		case <-r.b.ctx.Done():
			return 0, r.b.ctx.Err()
		}
	}
}

// text is n random tokens without those that mark sequences.
func (r *restoring) text(n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = r.rng.Int32N(int32(r.b.m.Vocab - marks))
	}
	return t
}

// first is the milliseconds to the first token behind the prompt and some new tokens, of which so many at least come from disk.
func (r *restoring) first(more, disk int) (float64, error) {
	_, u, err := r.b.ask(r.e, append(slices.Clone(r.prompt), r.text(more)...), 1)
	if err != nil {
		return 0, err
	}
	if u.Disk < disk {
		return 0, fmt.Errorf("%d tokens came from disk, of %d that were left there", u.Disk, r.known)
	}
	r.missing = max(r.missing, r.known-u.Cached)
	ms := 1e3 * u.First.Sub(u.Submitted).Seconds()
	r.b.progress(fmt.Sprintf("first token after %.1f ms, %d tokens cached, %d from disk", ms, u.Cached, u.Disk))
	return ms, nil
}

// fresh is the seconds that computing a prompt would take, from steps at some depths, and a page of it as a store has it.
func (b *engineBench) fresh(tokens int) (seconds float64, page [][]byte, err error) {
	const places = 5
	raw, err := newBench(b.be, b.m, b.f.policy(), tokens+b.f.chunk, 1, 0)
	if err != nil {
		return 0, nil, err
	}
	if _, err := raw.run(b.ctx, 0, backend.PageTokens, b.f.chunk); err != nil {
		return 0, nil, err
	}
	for g, ids := range raw.tables[0].Pages {
		var data bytes.Buffer
		if err := raw.st.Export(&data, kv.Ref{Group: g, Page: ids[0]}); err != nil {
			return 0, nil, err
		}
		page = append(page, data.Bytes())
		for _, id := range ids[1:] {
			if err := raw.st.Import(bytes.NewReader(page[g]), kv.Ref{Group: g, Page: id}); err != nil {
				return 0, nil, err
			}
		}
	}
	step := min(b.f.chunk, tokens)
	rates := make([]float64, places) // seconds per token
	for i := range places {
		at := (tokens - step) * i / (places - 1)
		took, err := raw.run(b.ctx, max(at, 1), max(at, 1)+step, step)
		if err != nil {
			return 0, nil, err
		}
		rates[i] = took.Seconds() / float64(step)
		b.progress(fmt.Sprintf("%d tokens behind %d: %.0f tokens/s", step, at, 1/rates[i]))
	}
	for i := range places - 1 {
		seconds += float64(tokens) / (places - 1) * (rates[i] + rates[i+1]) / 2
	}
	return seconds, page, nil
}

// filled is recorded, but that pages of prompts that are not computed get what a page has that was.
type filled struct {
	recorded
	page [][]byte // of each group
	err  error    // of the first page that could not be written
}

func (f *filled) Begin(st backend.Store, b *backend.Batch) backend.Scope {
	for _, sp := range b.Spans {
		if f.whole || sp.Len == 1 || sp.Table == nil {
			continue
		}
		for g, ids := range sp.Table.Pages {
			for _, id := range ids[sp.Start/backend.PageTokens : (sp.Start+sp.Len-1)/backend.PageTokens+1] {
				if err := st.Import(bytes.NewReader(f.page[g]), kv.Ref{Group: g, Page: id}); err != nil && f.err == nil {
					f.err = err
				}
			}
		}
	}
	return f.recorded.Begin(st, b)
}
