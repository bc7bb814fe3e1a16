package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"hearth/internal/backend"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/engine"
	"hearth/internal/kv"
	"hearth/internal/server"
	"hearth/internal/timeline"
)

// monitor gives the server its figures: those of all models together.
type monitor struct {
	cfg    *config.Config
	models *catalog.Catalog
}

func (m monitor) Status() server.Status {
	s, live, main := m.models.Stats(), m.models.Live(), m.models.Main()
	st := server.Status{Status: "running", Model: main.ID(), Steps: s.Steps, Running: s.Running, Waiting: s.Waiting,
		Memory: server.Memory{Weights: m.models.WeightBytes(), State: s.Used, Cache: s.Cache.Idle, Budget: s.Budget, Resident: console.ResidentMemory(), Peak: console.PeakMemory()},
		Cache: server.Cache{Type: cacheType(s.Cache), Entries: s.Cache.Entries, HitRate: hitRate(s.Cache),
			MemoryMB: float64(s.Cache.Bytes) / 1e6},
		Requests: requests(live, time.Now()),
	}
	switch state := readiness(main); {
	case s.Stuck > 0:
		st.Status = string(server.Stuck)
	case state != server.OK:
		st.Status = string(state)
	}
	st.Repairs = main.Repairs()
	if d := s.Speculation; d.Enabled {
		st.Speculation = &server.Speculation{Steps: d.Steps, Drafted: d.Drafted, Accepted: d.Accepted, Bytes: d.Bytes}
	}
	decoded := int64(0)
	for _, entry := range m.models.Entries() {
		decoded += entry.Decoded()
	}
	if i := s.Images; i != (engine.ImageStats{}) || decoded > 0 {
		st.Images = &server.ImageStatus{Decoded: decoded, Encoded: i.Encoded, Reused: i.Reused, Bytes: i.Bytes}
	}
	if w := main.Weights(); w != nil {
		st.Precision = precisionOf(w.Runs)
		if pid, starts := w.Process(); starts > 0 {
			st.Process = &server.Process{PID: pid, Starts: starts}
		}
	}
	for _, entry := range m.models.Entries() {
		if e := entry.Encoder(); e != nil {
			s, d := e.Stats(), e.Model()
			st.Encoders = append(st.Encoders, server.EncoderStatus{Model: d.ID, Kind: string(d.Kind), Requests: s.Requests, Waiting: s.Waiting, Texts: s.Texts,
				Tokens: s.Tokens, Truncated: s.Truncated, Steps: s.Steps, Weights: e.Bytes(), Precision: *precisionOf(e.Runs())})
		}
	}
	const gb = 1e9
	st.Metal = server.Metal{Active: float64(st.Memory.Weights+s.Used) / gb, Peak: float64(st.Memory.Peak) / gb, Cache: float64(s.Cache.Idle) / gb}
	if d := s.Device; d != (backend.Memory{}) {
		st.Metal = server.Metal{Active: float64(d.Active) / gb, Peak: float64(d.Peak) / gb, Cache: float64(d.Cache) / gb}
	}
	return st
}

// Live implements server.Monitor.
func (m monitor) Live() []server.Trace { return traces(m.models.Live(), time.Now()) }

// traces makes one entry of the sequences of a request: times are those of the first one.
func traces(live []catalog.Live, now time.Time) (out []server.Trace) {
	until := func(from, to time.Time) float64 {
		if to.IsZero() {
			to = now
		}
		return to.Sub(from).Seconds()
	}
	rows := requests(live, now)
	for i, at := 0, 0; i < len(rows); i++ {
		l, r := &live[at], &rows[i]
		for at++; at < len(live) && live[at].Request == l.Request && l.Request != ""; at++ {
		}
		t := server.Trace{ID: r.ID, Model: r.Model, State: r.Phase, Prompt: l.Prompt, Cached: r.Cached, Disk: l.Disk, Output: r.Generated, HitType: r.HitType, PerSecond: r.TokensPerSec, TTFT: r.TTFT}
		t.Phases.Tokenize = l.Made.Seconds()
		t.Phases.Queue, t.Phases.Match = until(l.Submitted, l.Started)-l.Matched.Seconds(), l.Matched.Seconds()
		if !l.Started.IsZero() {
			t.Common, t.Phases.Prefill = l.Longer, until(l.Started, l.First)
		}
		if !l.First.IsZero() {
			t.Phases.Decode = until(l.First, l.Ended)
		}
		out = append(out, t)
	}
	return out
}

// History implements server.Monitor.
func (m monitor) History(since int64) server.History {
	now := time.Now()
	seconds, first := m.models.Hour().Since(now, since, nil)
	h := server.History{Now: now.Unix(), First: first, Step: 1}
	n := len(seconds)
	counts := make([]int64, n*13) // all of them, one behind the other
	column := func(of func(s *timeline.Second) int64) []int64 {
		c := counts[:n:n]
		counts = counts[n:]
		for i := range seconds {
			c[i] = of(&seconds[i])
		}
		return c
	}
	hits := func(k kv.Kind) []int64 { return column(func(s *timeline.Second) int64 { return s.Hits[k] }) }
	h.Columns = server.Columns{
		Prompt:   column(func(s *timeline.Second) int64 { return s.Prompt }),
		Cached:   column(func(s *timeline.Second) int64 { return s.Cached }),
		Output:   column(func(s *timeline.Second) int64 { return s.Output }),
		Requests: column(func(s *timeline.Second) int64 { return s.Requests }),
		Running:  column(func(s *timeline.Second) int64 { return s.Most.Running }),
		Waiting:  column(func(s *timeline.Second) int64 { return s.Most.Waiting }),
		State:    column(func(s *timeline.Second) int64 { return s.Most.State }),
		Cache:    column(func(s *timeline.Second) int64 { return s.Most.Cache }),
		Hits:     server.Hits{Exact: hits(kv.Exact), Prefix: hits(kv.Within), Supersequence: hits(kv.Supersequence), LCP: hits(kv.LCP), Miss: hits(kv.Miss)},
		Batch:    make([]float64, n),
	}
	for i := range seconds {
		h.Columns.Batch[i] = math.Round(100*float64(seconds[i].Sequences)/float64(max(seconds[i].Steps, 1))) / 100
	}
	return h
}

// Tree implements server.Monitor.
func (m monitor) Tree(ctx context.Context, q server.TreeQuery) (server.Tree, error) {
	trees, err := m.models.Trees(ctx, engine.TreeQuery{Salt: q.Salt, All: q.All, First: q.Labels, Most: q.Most})
	out := server.Tree{Nodes: []server.TreeNode{}}
	for i := range trees {
		t := &trees[i]
		if out.LeftOut += t.LeftOut; i == 0 {
			out.PageTokens = t.PageTokens
		}
		id := func(n int64) int64 { return n*modelIDs + int64(i) } // ids are one model's own
		for k := range t.Nodes {
			n := &t.Nodes[k]
			x := server.TreeNode{ID: id(n.ID), Tokens: n.Tokens, InMemory: n.InMemory, Bytes: n.Bytes, DiskBytes: n.DiskBytes, Folded: n.Folded, FoldedTokens: n.FoldedTokens, OnDisk: n.OnDisk,
				InUse: n.InUse, Ends: n.Ends, Sessions: n.Sessions, Used: int64(n.Unused.Seconds()), Label: t.Labels[k]}
			if n.Parent != 0 {
				parent := id(n.Parent)
				x.Parent = &parent
			} else {
				x.Model = t.Model
			}
			out.Nodes = append(out.Nodes, x)
		}
	}
	return out, err
}

// modelIDs is more than are ever loaded at once.
const modelIDs = 1 << 10

// Progress implements server.Monitor.
func (m monitor) Progress() server.Progress {
	p := server.Progress{Requests: map[string]server.RequestProgress{}, Loading: m.models.Loaded()}
	live := m.models.Live()
	for i := range live {
		l := &live[i]
		r, some := p.Requests[l.Request]
		r.Queued = (r.Queued || !some) && l.Started.IsZero()
		r.Steps += int64(l.Ran + l.Generated)
		p.Requests[l.Request] = r
	}
	for _, e := range m.models.Encoders() {
		p.Encoding += e.Stats().Steps
	}
	return p
}

func precisionOf(r catalog.Runs) *server.Precision {
	return &server.Precision{Name: r.Precision.String(), Rounding: r.Rounding}
}

func cacheType(c engine.CacheStats) string {
	if c.Enabled {
		return "prefix_tree"
	}
	return "off"
}

func hitRate(c engine.CacheStats) float64 {
	if c.Queries == 0 {
		return 0
	}
	return float64(c.Hits) / float64(c.Queries)
}

// requests makes one entry of the sequences of a request, which are its choices.
func requests(live []catalog.Live, now time.Time) []server.RequestStatus {
	out := []server.RequestStatus{}
	for i := range live {
		l := &live[i]
		if n := len(out); n == 0 || out[n-1].ID != l.Request || l.Request == "" {
			out = append(out, server.RequestStatus{ID: l.Request, Model: l.Model, Age: now.Sub(l.Submitted).Seconds(), Phase: "queued", Prompt: l.Prompt, MaxTokens: l.Max})
		}
		r := &out[len(out)-1]
		if l.Started.IsZero() {
			continue
		}
		if r.HitType == "" {
			r.HitType, r.Cached = l.Hit.String(), l.Cached
		}
		if l.Ran < l.Prompt {
			if r.Phase == "queued" {
				r.Phase, r.Progress = "prefill", float64(l.Ran)/float64(l.Prompt)
			}
			continue
		}
		if r.Phase != "generation" {
			r.Phase, r.Progress = "generation", 0
		}
		if l.First.IsZero() {
			continue
		}
		if r.TTFT == 0 {
			r.TTFT = l.First.Sub(l.Submitted).Seconds()
		}
		r.Generated += l.Generated
		r.Progress = max(r.Progress, float64(l.Generated)/float64(l.Max))
		if took := now.Sub(l.First); l.Generated > 1 && took > 0 {
			r.TokensPerSec += float64(l.Generated-1) / took.Seconds()
		}
	}
	return out
}

func (m monitor) CacheStats() server.CacheStats {
	s := m.models.Stats()
	var disk *server.DiskStats
	if d := s.Cache.Disk; d.Dir != "" {
		disk = &server.DiskStats{Dir: d.Dir, Entries: d.Entries, Bytes: d.Bytes, Max: d.Quota, Hits: d.Hits, TokensSaved: d.Tokens,
			Writes: d.Writes, Refused: d.Refused, Dropped: d.Dropped, Errors: d.Errors}
	}
	return server.CacheStats{Disk: disk, Type: cacheType(s.Cache), Entries: s.Cache.Entries,
		Sessions: s.Cache.Sessions, MaxSessions: m.cfg.ContextSessions,
		Bytes: s.Cache.Bytes, Idle: s.Cache.Idle, MaxIdle: m.cfg.PromptCacheMax, Budget: s.Budget, TTL: m.cfg.ContextTTL.Milliseconds(),
		Queries: s.Cache.Queries, Hits: s.Cache.Hits, HitRate: hitRate(s.Cache), TokensSaved: s.Cache.Tokens}
}

func (m monitor) ClearCache(ctx context.Context) (server.Cleared, error) {
	d, err := m.models.DropCache(ctx)
	return server.Cleared(d), err
}

func (m monitor) Stored(salt [16]byte) server.Stored { return server.Stored(m.models.Stored(salt)) }

func (m monitor) ClearStored(ctx context.Context, salt [16]byte) (server.Cleared, error) {
	d, err := m.models.DropSalt(ctx, salt)
	return server.Cleared(d), err
}

// printConfig writes the [config] line: what a benchmark has to know about the server it measures.
func printConfig(w io.Writer, cfg *config.Config, models *catalog.Catalog) {
	v, c := buildVersion()
	main, own := models.Main(), models.Settings()
	weights, s := main.Weights(), main.Stats()
	if weights == nil {
		fmt.Fprintf(w, "[config] version=%s commit=%s model=%q script=%q unprotected=%q\n", v, c, models.ID(), cfg.Script, unprotected(cfg))
		return
	}
	isolation := "none"
	if cfg.Isolated() {
		isolation = "key"
	}
	fmt.Fprintf(w, "[config] version=%s commit=%s model=%q type=%s quantization=%q backend=%s precision=%s rounding=%q kv_type=%v context=%d cache_bytes=%d prompt_cache=%t "+
		"prompt_cache_bytes=%d cache_isolation=%s context_ttl_ms=%d context_max_sessions=%d max_sequences=%d max_queue=%d "+
		"prefill_step_size=%d step_target_ms=%d disk_cache_bytes=%d disk_cache_dir=%q "+
		"max_tokens=%d max_tokens_cap=%d thinking=%s unprotected=%q\n",
		v, c, models.ID(), weights.Model.Type, weights.Model.Width, weights.Backend, weights.Precision, weights.Rounding, weights.Engine.KV(), s.Context, s.Budget, s.Cache.Enabled,
		cfg.PromptCacheMax, isolation, cfg.ContextTTL.Milliseconds(), cfg.ContextSessions, cfg.MaxSequences, cfg.MaxQueue,
		cfg.PrefillStepSize, cfg.StepTarget.Milliseconds(), s.Cache.Disk.Quota, s.Cache.Disk.Dir,
		own.MaxTokens, own.MaxTokensCap, thinkingMode(own), unprotected(cfg))
}

// thinkingMode is what is set of it, in a word: template, on, default_off, off. Of the last, requests can change nothing.
func thinkingMode(cfg *config.Config) string {
	switch on := cfg.Thinking(); {
	case on == nil:
		return "template"
	case *on:
		return "on"
	case cfg.NoThinking():
		return "off"
	}
	return "default_off"
}

// unprotected lists the settings that would protect something and do not yet.
func unprotected(cfg *config.Config) string {
	var all []string
	for _, r := range cfg.Replies() {
		if r.Answer == config.Unprotected {
			all = append(all, r.Given())
		}
	}
	return strings.Join(all, ", ")
}
