package server

import (
	"context"
	"sync"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// What a caller who is not the operator sees of the server is their own: the same paths and names, without all that would tell
// what others do. What only the engine knows of all of them together is left out.

// OwnStatus is Status for such a caller.
type OwnStatus struct {
	Status    string `json:"status"`
	Model     string `json:"model"`
	UptimeS   int64  `json:"uptime_s"`
	Operator  bool   `json:"operator"`    // not
	Running   int    `json:"num_running"` // requests
	Waiting   int    `json:"num_waiting"`
	Processed int64  `json:"total_requests_processed"`
	Prompt    int64  `json:"total_prompt_tokens"`
	Output    int64  `json:"total_completion_tokens"`

	Cache    OwnCache             `json:"cache"`
	Bounds   map[chat.Bound]int64 `json:"bounds_met,omitempty"`
	Requests []RequestStatus      `json:"requests"`
}

// OwnCache is Cache for such a caller. Nobody's part of a cache that all share can be told.
type OwnCache struct {
	Type     string   `json:"type"`
	Entries  *int     `json:"entries,omitempty"`
	HitRate  float64  `json:"hit_rate"` // of requests
	MemoryMB *float64 `json:"memory_mb,omitempty"`
}

// OwnCacheStats is CacheStats for such a caller.
type OwnCacheStats struct {
	Type        string        `json:"type"`
	Isolation   string        `json:"isolation"`
	Entries     *int          `json:"entries,omitempty"` // see OwnCache
	Bytes       *int64        `json:"bytes,omitempty"`
	TTL         int64         `json:"ttl_ms"`
	Queries     int64         `json:"queries"` // requests that began
	Hits        int64         `json:"hits"`
	HitRate     float64       `json:"hit_rate"`
	TokensSaved int64         `json:"tokens_saved"`
	Disk        *OwnDiskStats `json:"disk,omitempty"` // see OwnCache
}

// OwnDiskStats is DiskStats for such a caller.
type OwnDiskStats struct {
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
}

// Stored is what of the cache is under one salt.
type Stored struct {
	Entries     int
	Bytes       int64
	DiskEntries int
	DiskBytes   int64
}

// shares tells apart what callers do, where there are several: one entry for each that has called.
type shares struct {
	mu sync.Mutex
	of map[[16]byte]*share
}

// share is one caller's.
type share struct {
	running map[string]bool // ids of requests that have not been answered
	totals  totals
	bounds  bounds
	cache   cacheTotals
}

// cacheTotals are those of CacheStats, of requests.
type cacheTotals struct{ queries, hits, tokens int64 }

// enter notes a request of a caller, if there are several, leave its end.
func (s *shares) enter(info *wire.Info) {
	if info.Caller == ([16]byte{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[info.Caller]
	if x == nil {
		x = &share{running: map[string]bool{}}
		if s.of == nil {
			s.of = map[[16]byte]*share{}
		}
		s.of[info.Caller] = x
	}
	x.running[info.RequestID] = true
}

func (s *shares) leave(info *wire.Info) {
	if info.Caller == ([16]byte{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[info.Caller]
	delete(x.running, info.RequestID)
	x.totals.add(info)
	x.bounds.add(met(info))
	if u := info.Usage; u != nil && u.Hit != "" {
		x.cache.queries++
		x.cache.tokens += int64(u.Cached)
		x.cache.hits += int64(min(u.Cached, 1))
	}
}

// get is the share of who asks, who is one of those that entered.
func (s *shares) get(info *wire.Info) (_ *share, cache cacheTotals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[info.Caller]
	return x, x.cache
}

// own are those of list that are x's.
func (s *shares) own(x *share, list []RequestStatus) []RequestStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []RequestStatus{}
	for i := range list {
		if x.running[list[i].ID] {
			out = append(out, list[i])
		}
	}
	return out
}

func (c cacheTotals) rate() float64 {
	if c.queries == 0 {
		return 0
	}
	return float64(c.hits) / float64(c.queries)
}

// ownStatus is what of st the caller of info may see.
func (s *Server) ownStatus(st *Status, info *wire.Info) *OwnStatus {
	x, cache := s.shares.get(info)
	o := &OwnStatus{Status: st.Status, Model: st.Model, UptimeS: st.UptimeS, Processed: x.totals.requests.Load(), Prompt: x.totals.prompt.Load(),
		Output: x.totals.output.Load(), Cache: OwnCache{Type: st.Cache.Type, HitRate: cache.rate()}, Bounds: x.bounds.all(), Requests: s.shares.own(x, st.Requests)}
	for i := range o.Requests {
		if o.Requests[i].Phase == "queued" {
			o.Waiting++
		} else {
			o.Running++
		}
	}
	if info.Salt != ([16]byte{}) {
		mine := s.o.Monitor.Stored(info.Salt)
		mb := float64(mine.Bytes) / 1e6
		o.Cache.Entries, o.Cache.MemoryMB = &mine.Entries, &mb
	}
	return o
}

// ownCache is what of c the caller of info may see.
func (s *Server) ownCache(c *CacheStats, info *wire.Info) *OwnCacheStats {
	_, cache := s.shares.get(info)
	o := &OwnCacheStats{Type: c.Type, Isolation: c.Isolation, TTL: c.TTL, Queries: cache.queries, Hits: cache.hits, HitRate: cache.rate(), TokensSaved: cache.tokens}
	if info.Salt != ([16]byte{}) {
		mine := s.o.Monitor.Stored(info.Salt)
		o.Entries, o.Bytes = &mine.Entries, &mine.Bytes
		if c.Disk != nil {
			o.Disk = &OwnDiskStats{mine.DiskEntries, mine.DiskBytes}
		}
	}
	return o
}

// clear drops what the caller of info may drop.
func (s *Server) clear(ctx context.Context, info *wire.Info) (Cleared, error) {
	switch {
	case info.Operator:
		return s.o.Monitor.ClearCache(ctx)
	case info.Salt != ([16]byte{}):
		return s.o.Monitor.ClearStored(ctx, info.Salt)
	}
	return Cleared{}, &chat.Error{Kind: chat.Forbidden, Code: "operator_only", Msg: "all keys share the prompt cache, so only the operator's key may clear it"}
}
