package server

import (
	"net/http"
	"strconv"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// What the page's live view is made of besides the status: the last hour, requests with where their time went, the prefix tree.

// History is the body of GET /v1/status/history: what happened in each second. Lists have an entry for each step from First on,
// all the same number.
type History struct {
	Now     int64   `json:"now"`   // the server's clock, seconds since 1970: that second is not over, and may come again
	First   int64   `json:"first"` // second of the first entries
	Step    int64   `json:"step_s"`
	Columns Columns `json:"columns"`
}

// Columns are the figures of History. Running, Waiting and the bytes are the most that there were in a second.
type Columns struct {
	Prompt   []int64   `json:"prompt_tokens"` // that steps ran
	Cached   []int64   `json:"cached_tokens"` // prompt tokens that prompts which began had in the cache
	Output   []int64   `json:"output_tokens"`
	Requests []int64   `json:"requests"` // sequences that came: a request has as many as it wants answers
	Running  []int64   `json:"running"`  // sequences
	Waiting  []int64   `json:"waiting"`
	Batch    []float64 `json:"batch"`       // sequences of a step, on average
	State    []int64   `json:"state_bytes"` // as in Memory
	Cache    []int64   `json:"cache_bytes"`
	Hits     Hits      `json:"hits"`
}

// Hits are prompts that began, by how they relate to what was cached.
type Hits struct {
	Exact         []int64 `json:"exact"`
	Prefix        []int64 `json:"prefix"`
	Supersequence []int64 `json:"supersequence"`
	LCP           []int64 `json:"lcp"`
	Miss          []int64 `json:"miss"`
}

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
	State     string  `json:"state"` // queued, prefill, generation, done, failed, cancelled
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
	Load     float64 `json:"load_s"`     // until the model was there, the time in which the body came included
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
}

// Tree is the body of GET /v1/cache/tree: the prefix tree of every loaded model, in memory.
type Tree struct {
	PageTokens int        `json:"page_tokens"` // of a page of the main model
	Nodes      []TreeNode `json:"nodes"`       // parents before children
	LeftOut    int        `json:"left_out"`    // nodes that are not among them
}

// TreeNode is a stretch of tokens that all below it begin with.
type TreeNode struct {
	ID           int    `json:"id"`
	Parent       *int   `json:"parent"`          // null: the stretch begins prompts
	Model        string `json:"model,omitempty"` // of those that begin prompts
	Tokens       int    `json:"tokens"`
	Bytes        int64  `json:"bytes"` // with what is folded into it
	Folded       int    `json:"folded_nodes"`
	FoldedTokens int    `json:"folded_tokens"`
	OnDisk       int    `json:"on_disk"` // of Tokens, those that a file has too
	InUse        int    `json:"in_use"`  // running sequences that use it
	Ends         int    `json:"ends"`    // conversations that end in it or below
	Sessions     int    `json:"sessions"`
	Used         int64  `json:"used_s"` // seconds since a sequence used it last
	// Label is the first words of its text, of what the caller alone has left.
	Label string `json:"label,omitempty"`
}

// Bounds of the tree's nodes in an answer.
const (
	usualNodes = 200
	mostNodes  = 1000
)

// mountLive registers these routes.
func (s *Server) mountLive(mux wire.Mux) {
	get := func(path string, h handler) {
		wire.Handle(mux, "", path, wire.Method(s.fail, http.MethodGet, s.answer(h)))
	}
	wire.Handle(mux, "", "/status/history", s.checkOperator(wire.Method(s.fail, http.MethodGet, s.answer(s.history))))
	get("/requests", s.listRequests)
	get("/cache/tree", s.cacheTree)
}

// answer makes a handler of h.
func (s *Server) answer(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := h(w, r)
		if err != nil {
			s.fail(w, r, chat.AsError(err))
			return
		}
		wire.WriteJSON(w, http.StatusOK, body)
	}
}

func (s *Server) history(_ http.ResponseWriter, r *http.Request) (any, error) {
	since, err := number(r, "since", 0, 0, 1<<53)
	if err != nil {
		return nil, err
	}
	return s.o.Monitor.History(since), nil
}

func (s *Server) listRequests(_ http.ResponseWriter, r *http.Request) (any, error) {
	return Traces{Requests: []Trace{}}, nil
}

func (s *Server) showRequest(_ http.ResponseWriter, r *http.Request) (any, error) {
	return nil, noRequest(r.PathValue("id"))
}

// cacheTree answers with what the caller may see of the tree.
func (s *Server) cacheTree(_ http.ResponseWriter, r *http.Request) (any, error) {
	most, err := number(r, "most", usualNodes, 1, mostNodes)
	if err != nil {
		return nil, err
	}
	info := wire.InfoFrom(r.Context())
	if !info.Operator && info.Salt == ([16]byte{}) {
		return nil, &chat.Error{Kind: chat.Forbidden, Code: "operator_only", Msg: "all keys share the prompt cache, so only the operator's key may see it"}
	}
	// Text is for who left it: where several callers share one cache, that is not known.
	return s.o.Monitor.Tree(r.Context(), TreeQuery{Salt: info.Salt, All: info.Operator, Labels: info.Salt != [16]byte{} || info.Caller == [16]byte{}, Most: int(most)})
}

// TreeQuery is what somebody wants to see of the prefix tree.
type TreeQuery struct {
	Salt   [16]byte // of the caller
	All    bool     // what is under other salts, too
	Labels bool     // with texts of what is under Salt
	Most   int      // nodes
}

// number is a whole number of a request's query from least to most; without it def.
func number(r *http.Request, name string, def, least, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, chat.Invalidf(name, "%s in the query must be a whole number from %d to %d, not %s", name, least, most, wire.Quote(wire.Clip(text, 40)))
	}
	return n, nil
}

// noRequest is what is said of others' requests, and of those that there are not.
func noRequest(id string) error {
	return &chat.Error{Kind: chat.NotFound, Code: "request_not_found", Msg: "no request of yours with the id " + wire.Quote(id) + " waits, runs or has ended lately; GET /v1/requests lists those"}
}
