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

// Tree is the body of GET /v1/cache/tree: the prefix tree of every loaded model, with what is on disk.
type Tree struct {
	PageTokens int        `json:"page_tokens"` // of a page of the main model
	Nodes      []TreeNode `json:"nodes"`       // parents before children
	LeftOut    int        `json:"left_out"`    // nodes that are not among them
}

// TreeNode is a stretch of tokens that all below it begin with.
type TreeNode struct {
	ID           int64  `json:"id"`
	Parent       *int64 `json:"parent"`          // null: the stretch begins prompts
	Model        string `json:"model,omitempty"` // of those that begin prompts
	Tokens       int    `json:"tokens"`
	InMemory     bool   `json:"in_memory"`  // else it is on disk alone
	Bytes        int64  `json:"bytes"`      // in memory, with what is folded into it
	DiskBytes    int64  `json:"disk_bytes"` // of files, likewise
	Folded       int    `json:"folded_nodes"`
	FoldedTokens int    `json:"folded_tokens"`
	OnDisk       int    `json:"on_disk"` // of Tokens, those of whole pages that a file has
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
