package server

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Traces is the body of GET /v1/requests.
type Traces struct {
	Requests []Trace `json:"requests"` // newest first
}

// Trace is a request that waits, runs or has ended lately, and where its time went. What is not known yet is zero.
type Trace struct {
	ID        string  `json:"request_id"`
	Model     string  `json:"model"`
	API       string  `json:"api"` // the path that it came to
	Session   string  `json:"session"`
	Began     float64 `json:"began"` // seconds since 1970
	State     string  `json:"state"` // queued, prefill, generation, done, failed or cancelled
	Prompt    int     `json:"prompt_tokens"`
	Cached    int     `json:"cached_tokens"`
	Disk      int     `json:"disk_tokens"`   // of Cached, restored for it
	Common    int     `json:"common_tokens"` // with what was cached: Cached, and those that could not be used
	Output    int     `json:"output_tokens"`
	HitType   string  `json:"cache_hit_type"`
	Finish    string  `json:"finish"`
	Error     string  `json:"error"`          // of others' requests its kind alone
	Parted    *int    `json:"parted_message"` // from 0, with the first token beyond Common; null: none, or not known
	Phases    Phases  `json:"phases"`
	TTFT      float64 `json:"ttft_s"` // from Began to the first event of the reply
	Wall      float64 `json:"wall_s"` // from Began until now or the end
	PerSecond float64 `json:"tokens_per_second"`

	// Parting is of one request alone, and of the caller's own.
	Parting *Parting `json:"parting,omitempty"`
}

// Phases are seconds, one after the other: together they are no more than Trace.Wall.
type Phases struct {
	Load     float64 `json:"load_s"`     // waiting for the model
	Tokenize float64 `json:"tokenize_s"` // the prompt's text and its tokens
	Queue    float64 `json:"queue_s"`    // without Match
	Match    float64 `json:"match_s"`    // what the cache has was looked up, and read from disk
	Prefill  float64 `json:"prefill_s"`
	Decode   float64 `json:"decode_s"`
}

// Parting is the prompt's text on both sides of the place where it parted from what was cached, as chat.Usage.Around has it.
type Parting struct {
	Before string `json:"before"`
	After  string `json:"after"`
	Stored string `json:"stored,omitempty"` // what was cached in the place of After, see chat.Usage.Instead
}

// ended is a request that has, with what is not for everybody who sees its trace.
type ended struct {
	Trace
	owner   [16]byte
	err     string   // what its client was told; Trace.Error is the kind
	parting *Parting // of the text; nil: it did not part, or that is for nobody
}

// mostEnded bounds the requests that are remembered.
const mostEnded = 256

// longestTold is the bytes of an error in a trace.
const longestTold = 500

// seen notes of a request what is known once it is decoded: a wire.Options.Seen.
func (q *requests) seen(info *wire.Info, model string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if x := q.of[info.RequestID]; x != nil {
		x.seen, x.model, x.session = true, model, info.Session
	}
}

// encodes is seen for a request for vectors or scores.
func (q *requests) encodes(info *wire.Info, model string) {
	q.seen(info, model)
	q.mu.Lock()
	defer q.mu.Unlock()
	if x := q.of[info.RequestID]; x != nil {
		x.encodes = true
	}
}

// session is that of a request that waits or runs. Called with mu held.
func (q *requests) session(id string) string {
	if x := q.of[id]; x != nil {
		return x.session
	}
	return ""
}

// nameSessions fills in the sessions of requests.
func (q *requests) nameSessions(list []RequestStatus) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range list {
		list[i].Session = q.session(list[i].ID)
	}
}

// end forgets a request, and remembers how it went if it was one for a model.
func (q *requests) end(info *wire.Info, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	x := q.of[info.RequestID]
	if x == nil {
		return
	}
	delete(q.of, info.RequestID)
	if info.Usage == nil && (info.Err == nil || !x.ofModel) { // it asked for no answer, such as a count of tokens
		return
	}
	e := &ended{Trace: traceOf(info, took), owner: x.owner}
	e.API = x.api
	if u := info.Usage; u != nil && u.Around != [2]string{} {
		e.parting = &Parting{u.Around[0], u.Around[1], u.Instead}
	}
	if info.Err != nil {
		e.State, e.Error, e.err = outcome(info)
	}
	if len(q.ended) < mostEnded {
		q.ended = append(q.ended, e)
		return
	}
	q.ended[q.next] = e
	q.next = (q.next + 1) % mostEnded
}

// outcome is what became of a request with an error: its state, the kind of the error for those whose it is not, and what its
// client was told.
func outcome(info *wire.Info) (state, kind, told string) {
	var e *chat.Error
	switch {
	case errors.Is(info.Err, wire.ErrClientGone):
		return "cancelled", "client_gone", info.Err.Error()
	case !errors.As(info.Err, &e):
		return "failed", "internal", "internal error"
	case e.Code == errCancelled.Code:
		state = "cancelled"
	default:
		state = "failed"
	}
	return state, cmp.Or(e.Code, refusal(info), "internal"), wire.Clip(e.Error(), longestTold)
}

// traceOf is the trace of a request that has ended without an error.
func traceOf(info *wire.Info, took time.Duration) Trace {
	t := Trace{ID: info.RequestID, Model: cmp.Or(info.Served, wire.Clip(info.Model, 200)), Session: info.Session, Began: unix(info.Began), State: "done", Wall: took.Seconds(),
		Finish: string(info.Finish)}
	t.Phases.Load = info.Load.Seconds()
	if !info.First.IsZero() {
		t.TTFT = info.First.Sub(info.Began).Seconds()
	}
	u := info.Usage
	if u == nil {
		return t
	}
	t.Prompt, t.Cached, t.Disk, t.Common, t.Output, t.HitType = u.Prompt, u.Cached, u.Disk, u.Common, u.Output, u.Hit
	if u.Parted > 0 {
		parted := u.Parted - 1
		t.Parted = &parted
	}
	t.PerSecond = rate(u.Output-1, u.Decode)
	t.Phases.Tokenize, t.Phases.Queue, t.Phases.Match = u.Tokenized.Seconds(), (u.Queued - u.Matched).Seconds(), u.Matched.Seconds()
	t.Phases.Prefill, t.Phases.Decode = u.Prefill.Seconds(), u.Decode.Seconds()
	return t
}

// trace is that of a request that waits or runs, of which its engine says live; nil: it is not, or no more, in one.
func (x *running) trace(id string, live *Trace, now time.Time) Trace {
	const before = 2 // it was decoded, its model was there
	t := Trace{Model: wire.Clip(x.model, 200), State: "queued"}
	switch n := x.info.Advanced(); {
	case live != nil:
		t = *live
	case n > before:
		t.State = "generation"
	case n == before && x.encodes:
		t.State = "prefill"
	}
	t.Phases.Load = x.info.Loaded(now).Seconds()
	t.ID, t.API, t.Session, t.Began, t.Wall = id, x.api, x.session, unix(x.began), now.Sub(x.began).Seconds()
	return t
}

// traces lists those that the caller of info may see.
func (q *requests) traces(info *wire.Info, live []Trace, now time.Time) []Trace {
	of := make(map[string]*Trace, len(live))
	for i := range live {
		of[live[i].ID] = &live[i]
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	out := []Trace{}
	for id, x := range q.of {
		if x.seen && mayReach(x.owner, info) {
			out = append(out, x.trace(id, of[id], now))
		}
	}
	for _, e := range q.ended {
		if mayReach(e.owner, info) {
			out = append(out, e.to(info))
		}
	}
	slices.SortFunc(out, func(a, b Trace) int { return cmp.Or(cmp.Compare(b.Began, a.Began), cmp.Compare(a.ID, b.ID)) })
	return out
}

// trace is the one of a request, if the caller of info may see it, and of their own with the text around where it parted from
// what was cached.
func (q *requests) trace(id string, info *wire.Info, live []Trace, now time.Time) (t Trace, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if x := q.of[id]; x != nil && x.seen && mayReach(x.owner, info) {
		i := slices.IndexFunc(live, func(t Trace) bool { return t.ID == id })
		if i < 0 {
			return x.trace(id, nil, now), true
		}
		return x.trace(id, &live[i], now), true
	}
	i := slices.IndexFunc(q.ended, func(e *ended) bool { return e.ID == id && mayReach(e.owner, info) })
	if i < 0 {
		return Trace{}, false
	}
	e := q.ended[i]
	if t = e.to(info); e.owner == info.Owner {
		t.Parting = e.parting
	}
	return t, true
}

// to is what of it the caller of info may see, who may see it.
func (e *ended) to(info *wire.Info) Trace {
	t := e.Trace
	if e.owner == info.Owner {
		t.Error = e.err
	}
	return t
}

func (s *Server) listRequests(_ http.ResponseWriter, r *http.Request) (any, error) {
	return Traces{s.requests.traces(wire.InfoFrom(r.Context()), s.o.Monitor.Live(), time.Now())}, nil
}

func (s *Server) showRequest(_ http.ResponseWriter, r *http.Request) (any, error) {
	id, info := r.PathValue("id"), wire.InfoFrom(r.Context())
	t, ok := s.requests.trace(id, info, s.o.Monitor.Live(), time.Now())
	if !ok {
		return nil, &chat.Error{Kind: chat.NotFound, Code: "request_not_found",
			Msg: "no request of yours with the id " + wire.Quote(id) + " waits, runs or has ended lately; GET /v1/requests lists those"}
	}
	return t, nil
}

// unix is t in seconds since 1970, with their fraction.
func unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
