package cli

import (
	"net"
	"time"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/metrics"
	"hearth/internal/server"
)

// newMetrics is nil where nobody can ask for them.
func newMetrics(cfg *config.Config, models *catalog.Catalog) *metrics.Metrics {
	if !cfg.Measured() {
		return nil
	}
	v, c := buildVersion()
	return metrics.New(metrics.Options{Version: v, Commit: c, Reasons: server.Refusals(), VLLM: cfg.MetricsVLLM, Models: func() []metrics.Model {
		var all []metrics.Model
		for _, f := range models.Figures() {
			all = append(all, measured(&f, time.Now()))
		}
		return all
	}})
}

// listenMetrics opens the address that only metrics are served on, nil where there is none.
func listenMetrics(cfg *config.Config) (net.Listener, error) {
	if cfg.MetricsAddr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", cfg.MetricsAddr)
	if err != nil {
		return nil, console.Hintf(err, "--metrics-listen takes an address of this machine and a free port, such as 127.0.0.1:9100")
	}
	return l, nil
}

// measured is the figures of a model as metrics have them.
func measured(f *catalog.Figures, now time.Time) metrics.Model {
	s := &f.Stats
	c := &s.Cache
	m := metrics.Model{Name: f.ID(), Loaded: f.Ready(), Running: s.Running, Waiting: s.Waiting, WaitingFor: s.Lack.String(), Stuck: s.Stuck.Seconds(), Context: s.Context,
		Computed: s.PromptTokens, Cached: c.Tokens, Restored: c.Disk.Tokens, Generated: s.GeneratedTokens, Preempted: s.Preempted,
		ImagesDecoded: f.Decoded(), ImagesEncoded: s.Images.Encoded, ImagesReused: s.Images.Reused, ImageBytes: s.Images.Bytes, Queries: c.Queries, Hits: c.Hits,
		Used: s.Used, Cache: c.Idle, Budget: s.Budget, PageTokens: s.PageTokens, Caches: c.Enabled, Entries: c.Entries, Sessions: c.Sessions,
		Evicted: map[string]int64{"memory": c.Evicted.Memory, "limit": c.Evicted.Limit, "expired": c.Evicted.Expired, "cleared": c.Evicted.Cleared},
		Loads:   int64(f.Loads), Failed: int64(f.Failed), LoadTime: f.Took().Seconds()}
	if s.Page > 0 {
		m.Pages = s.Budget / s.Page
	}
	if !f.Waiting.IsZero() {
		m.OldestWait = now.Sub(f.Waiting).Seconds()
	}
	if d := c.Disk; d.Dir != "" {
		m.Disk = &metrics.Disk{Entries: d.Entries, Bytes: d.Bytes, Max: d.Quota, Hits: d.Hits, Writes: d.Writes, Refused: d.Refused, Dropped: d.Dropped, Errors: d.Errors}
	}
	if w := f.Weights(); w != nil {
		m.Weights, m.Repairs = w.Model.Bytes, map[string]int64{}
		counted := f.Repairs()
		for _, kind := range dialect.Repairs {
			m.Repairs[string(kind)] = counted[string(kind)]
		}
		if _, starts := w.Process(); starts > 1 {
			m.Restarts = int64(starts - 1)
		}
	}
	if e := f.Encoder(); e != nil {
		n := e.Stats()
		m.Waiting, m.Weights = n.Waiting, e.Bytes()
		m.Encoder = &metrics.Encoder{Requests: n.Requests, Texts: n.Texts, Tokens: n.Tokens, Truncated: n.Truncated, Steps: n.Steps}
	}
	if t := s.Timings; t != nil {
		m.Steps = map[string]metrics.Histogram{
			"decode": times(&t.Steps[engine.DecodeStep]), "prompt": times(&t.Steps[engine.PromptStep]), "mixed": times(&t.Steps[engine.MixedStep]),
		}
		batch, tokens := histogram(&t.Batch, engine.BatchBounds[:], 1), times(&t.Token)
		m.Batch, m.Tokens = &batch, &tokens
	}
	return m
}

// times is a histogram of nanoseconds in seconds.
func times(h *engine.Histogram) metrics.Histogram {
	return histogram(h, engine.TimeBounds[:], 1e9)
}

// histogram is one whose unit is so many of h's.
func histogram(h *engine.Histogram, bounds []int64, per float64) metrics.Histogram {
	out := metrics.Histogram{Sum: float64(h.Sum) / per, Over: uint64(h.Counts[len(bounds)])}
	for i, b := range bounds {
		out.Bounds = append(out.Bounds, float64(b)/per)
		out.Counts = append(out.Counts, uint64(h.Counts[i]))
	}
	return out
}
