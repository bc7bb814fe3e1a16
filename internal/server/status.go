package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Status is the body of GET /v1/status: the state of the model, for people and scripts who watch it. The fields are
// those that other servers of MLX models have under this path.
type Status struct {
	Status    string `json:"status"` // running, at rest too, or loading, stuck, draining
	Model     string `json:"model"`
	UptimeS   int64  `json:"uptime_s"`
	Operator  bool   `json:"operator"` // who asks is the operator, and may ask for what others may not
	Steps     int64  `json:"steps_executed"`
	Running   int    `json:"num_running"`
	Waiting   int    `json:"num_waiting"`
	Processed int64  `json:"total_requests_processed"` // that reached the model
	Prompt    int64  `json:"total_prompt_tokens"`      // of those, cached ones included
	Output    int64  `json:"total_completion_tokens"`
	// Process is that of the main model, where it is not the server's.
	Process *Process `json:"model_process,omitempty"`
	// Precision is that of the main model; none where it embeds or ranks, or a script answers.
	Precision *Precision `json:"precision,omitempty"`
	Metal     Metal      `json:"metal"`
	Memory    Memory     `json:"memory"`
	Cache     Cache      `json:"cache"`
	// Speculation counts drafts; none where they are off or cannot be.
	Speculation *Speculation `json:"speculation,omitempty"`
	// Bounds counts requests that met a bound, refused or not, by its name: docs/security.md lists them.
	Bounds map[chat.Bound]int64 `json:"bounds_met,omitempty"`
	// Repairs counts what was put right in tool calls, by kind.
	Repairs map[string]int64 `json:"tool_call_repairs,omitempty"`

	// Images are those of all models that see; nil: there was none.
	Images *ImageStatus `json:"images,omitempty"`

	Requests []RequestStatus `json:"requests"` // that wait or run, in order of arrival
	Encoders []EncoderStatus `json:"embedding,omitempty"`
}

// Speculation is what was run ahead of answers, since the start.
type Speculation struct {
	Steps    int64 `json:"steps"` // that ran drafts
	Drafted  int64 `json:"drafted_tokens"`
	Accepted int64 `json:"accepted_tokens"` // of those
	Bytes    int64 `json:"bytes"`           // of what drafts are looked up in
}

// Process is one that a model has for itself.
type Process struct {
	PID    int `json:"pid"`    // 0: it has ended, or is loading
	Starts int `json:"starts"` // that loaded the model, this one included
}

// Precision is how far a model rounds activations.
type Precision struct {
	Name     string `json:"name"`
	Rounding string `json:"rounding,omitempty"` // what it costs, in a phrase
}

// ImageStatus counts images.
type ImageStatus struct {
	Prepared int64            `json:"total_prepared"` // in prompts that began
	Decoded  int64            `json:"total_decoded"`  // files: of what is known no pixels are made
	Encoded  int64            `json:"total_encoded"`  // that a tower ran over
	Reused   int64            `json:"total_reused"`   // steps that needed what a tower had made before
	Bytes    int64            `json:"cache_bytes"`    // of what towers made and is kept
	Refused  map[string]int64 `json:"refused,omitempty"`
}

// EncoderStatus is a model that embeds or ranks.
type EncoderStatus struct {
	Model     string `json:"model"`
	Kind      string `json:"kind"` // embedding or rerank
	Requests  int64  `json:"total_requests"`
	Waiting   int    `json:"num_waiting"`
	Texts     int64  `json:"total_texts"`
	Tokens    int64  `json:"total_tokens"`
	Truncated int64  `json:"total_truncated"` // texts that were cut
	Steps     int64  `json:"steps_executed"`
	Weights   int64  `json:"weights_bytes"`

	Precision Precision `json:"precision"`
}

// Metal has the figures of MLX where models run on it, else those of Memory under the same names, in GB of 1e9 bytes.
type Metal struct {
	Active float64 `json:"active_memory_gb"` // weights and the state of running sequences
	Peak   float64 `json:"peak_memory_gb"`   // of the whole process
	Cache  float64 `json:"cache_memory_gb"`  // state that no running sequence uses
}

// Memory is where the bytes are.
type Memory struct {
	Weights  int64 `json:"weights_bytes"`
	State    int64 `json:"state_bytes"`  // of running sequences
	Cache    int64 `json:"cache_bytes"`  // stored, and used by no running sequence
	Budget   int64 `json:"budget_bytes"` // for state and cache together
	Resident int64 `json:"resident_bytes"`
	Peak     int64 `json:"peak_resident_bytes"`
}

// Cache is the prefix cache in short.
type Cache struct {
	Type     string  `json:"type"` // prefix_tree or off
	Entries  int     `json:"entries"`
	HitRate  float64 `json:"hit_rate"` // of the prompts so far, those that found something
	MemoryMB float64 `json:"memory_mb"`
}

// RequestStatus is a request that waits or runs.
type RequestStatus struct {
	ID           string  `json:"request_id"`
	Model        string  `json:"model"`
	Session      string  `json:"session"` // "" where it is not known
	Age          float64 `json:"age_s"`   // since it came to its model
	Phase        string  `json:"phase"`   // queued, prefill or generation
	TokensPerSec float64 `json:"tokens_per_second"`
	TTFT         float64 `json:"ttft_s"`   // 0 before the first token
	Progress     float64 `json:"progress"` // from 0 to 1, of the prompt while in prefill, then of max_tokens
	HitType      string  `json:"cache_hit_type"`
	Prompt       int     `json:"prompt_tokens"`
	Cached       int     `json:"cached_tokens"`
	Generated    int     `json:"generated_tokens"`
	MaxTokens    int     `json:"max_tokens"`
}

// CacheStats is the body of GET /v1/cache/stats.
type CacheStats struct {
	Type        string     `json:"type"`
	Isolation   string     `json:"isolation"` // none, or key: each key has a cache of its own
	Entries     int        `json:"entries"`   // ends of stored prompts and answers
	Sessions    int        `json:"sessions"`
	MaxSessions int        `json:"max_sessions"`
	Bytes       int64      `json:"bytes"`      // of all that is stored
	Idle        int64      `json:"idle_bytes"` // of those, used by no running sequence
	MaxIdle     int64      `json:"max_idle_bytes"`
	Budget      int64      `json:"budget_bytes"` // for running sequences and the cache together
	TTL         int64      `json:"ttl_ms"`
	Queries     int64      `json:"queries"` // prompts that began
	Hits        int64      `json:"hits"`    // of those, that found something
	HitRate     float64    `json:"hit_rate"`
	TokensSaved int64      `json:"tokens_saved"` // prompt tokens that need not run
	Disk        *DiskStats `json:"disk"`         // null: there is no tier on disk
}

// DiskStats is the part of the cache that is on disk.
type DiskStats struct {
	Dir         string `json:"dir"`
	Entries     int    `json:"entries"` // runs of pages, a file each
	Bytes       int64  `json:"bytes"`
	Max         int64  `json:"max_bytes"`
	Hits        int64  `json:"hits"`         // prompts that got something from there, since start like the rest
	TokensSaved int64  `json:"tokens_saved"` // prompt tokens that came from there
	Writes      int64  `json:"writes"`
	Refused     int64  `json:"refused"` // not worth their place
	Dropped     int64  `json:"dropped"` // lost because writing is slow
	Errors      int64  `json:"errors"`  // that could not be written or read
}

// Cleared is the body of the answer to DELETE /v1/cache.
type Cleared struct {
	Entries     int   `json:"dropped_entries"`
	Bytes       int64 `json:"dropped_bytes"`
	DiskEntries int   `json:"dropped_disk_entries"`
	DiskBytes   int64 `json:"dropped_disk_bytes"`
}

// Monitor is where the figures come from.
type Monitor interface {
	// Status is the state now; the totals of requests are filled in by the server.
	Status() Status
	CacheStats() CacheStats // Isolation is filled in by the server
	// Progress is how far all that is done has come.
	Progress() Progress
	// Live is as much of the traces of requests that wait or run as their models know.
	Live() []Trace
	// History is what happened in the seconds after since, as far as that is remembered.
	History(since int64) History
	// Tree is what q asks for of the prefix trees.
	Tree(ctx context.Context, q TreeQuery) (Tree, error)
	// ClearCache drops what no running sequence uses.
	ClearCache(ctx context.Context) (Cleared, error)
	// Stored is what of the cache is under one salt, and ClearStored drops of that what no running sequence uses.
	Stored(salt [16]byte) Stored
	ClearStored(ctx context.Context, salt [16]byte) (Cleared, error)
}

// totals counts requests that reached a model.
type totals struct{ requests, prompt, output, images atomic.Int64 }

func (t *totals) add(info *wire.Info) {
	if u := info.Usage; u != nil {
		t.requests.Add(1)
		t.prompt.Add(int64(u.Prompt))
		t.output.Add(int64(u.Output))
		t.images.Add(int64(len(u.Images)))
	}
}

// bounds counts requests by the bounds they met, images by what was wrong with them.
type bounds struct {
	mu     sync.Mutex
	counts map[chat.Bound]int64
	images map[string]int64
}

// addImage counts an image that was refused; "" is none.
func (b *bounds) addImage(cause string) {
	if cause == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.images == nil {
		b.images = map[string]int64{}
	}
	b.images[cause]++
}

// refusedImages are those counts.
func (b *bounds) refusedImages() map[string]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.images)
}

// imageStatus is what there is to tell of images; of is what the engines count, nil if that is nothing.
func (s *Server) imageStatus(of *ImageStatus) *ImageStatus {
	out := ImageStatus{Prepared: s.totals.images.Load(), Refused: s.bounds.refusedImages()}
	if of != nil {
		out.Decoded, out.Encoded, out.Reused, out.Bytes = of.Decoded, of.Encoded, of.Reused, of.Bytes
	} else if out.Prepared == 0 && out.Refused == nil {
		return nil
	}
	return &out
}

// met are the bounds of a call, each once.
func met(info *wire.Info) []chat.Bound {
	var out []chat.Bound
	if info.Usage != nil {
		out = slices.Clone(info.Usage.Bounds)
	}
	var e *chat.Error
	if errors.As(info.Err, &e) && e.Bound != "" && !slices.Contains(out, e.Bound) {
		out = append(out, e.Bound)
	}
	return out
}

func (b *bounds) add(list []chat.Bound) {
	if len(list) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = map[chat.Bound]int64{}
	}
	for _, name := range list {
		b.counts[name]++
	}
}

func (b *bounds) all() map[chat.Bound]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counts)
}

// mountMonitor registers the routes of the monitor.
func (s *Server) mountMonitor(mux wire.Mux) {
	m := s.o.Monitor
	s.mountLive(mux)
	wire.Handle(mux, "", "/status", wire.Method(s.fail, http.MethodGet, func(w http.ResponseWriter, r *http.Request) {
		st := m.Status()
		st.UptimeS = int64(time.Since(s.began).Seconds())
		if s.isDraining() {
			st.Status = "draining"
		}
		s.requests.nameSessions(st.Requests)
		if info := wire.InfoFrom(r.Context()); !info.Operator {
			wire.WriteJSON(w, http.StatusOK, s.ownStatus(&st, info))
			return
		}
		st.Operator, st.Bounds, st.Images = true, s.bounds.all(), s.imageStatus(st.Images)
		st.Processed, st.Prompt, st.Output = s.totals.requests.Load(), s.totals.prompt.Load(), s.totals.output.Load()
		if st.Requests == nil {
			st.Requests = []RequestStatus{}
		}
		wire.WriteJSON(w, http.StatusOK, st)
	}))
	wire.Handle(mux, "", "/cache/stats", wire.Method(s.fail, http.MethodGet, func(w http.ResponseWriter, r *http.Request) {
		c := s.cacheStats()
		if info := wire.InfoFrom(r.Context()); !info.Operator {
			wire.WriteJSON(w, http.StatusOK, s.ownCache(&c, info))
			return
		}
		wire.WriteJSON(w, http.StatusOK, c)
	}))
	wire.Handle(mux, "", "/cache", wire.Method(s.fail, http.MethodDelete, func(w http.ResponseWriter, r *http.Request) {
		c, err := s.clear(r.Context(), wire.InfoFrom(r.Context()))
		if err = uncleared(err); err != nil {
			s.fail(w, r, chat.AsError(err))
			return
		}
		wire.WriteJSON(w, http.StatusOK, c)
	}))
}

// cacheStats are those of the monitor, and whether caches are apart.
func (s *Server) cacheStats() CacheStats {
	c := s.o.Monitor.CacheStats()
	if c.Isolation = "none"; s.keys.Isolated(s.o.Isolation) {
		c.Isolation = "key"
	}
	return c
}

// uncleared is err as clients get it.
func uncleared(err error) error {
	var e *chat.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &chat.Error{Kind: chat.Overloaded, Msg: "the cache cannot be cleared now: " + err.Error(), Err: err}
}
