package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Manager is what the routes under /hearth/ are about. Errors that are no *chat.Error are the server's fault.
type Manager interface {
	// Models are all that the server knows of: loaded ones, and those on the disk, whole or not. With a context, in tokens, each
	// that is on the disk tells the memory it would take with that, or with its own if that is less; 0: none does.
	Models(ctx context.Context, context int) (ManagedList, error)
	// Load loads a model and comes back when it is loaded. keep is how long it stays without being used, as
	// chat.WithKeepAlive has it; nil: as others do.
	Load(ctx context.Context, model string, keep *time.Duration) error
	// Unload has a model go as soon as nobody uses it.
	Unload(ctx context.Context, model string) error
	// Pull fetches a model, or what is missing of it. tell is called with events, objects with a text "event", by one goroutine
	// at a time; what was said with the last one is that it is done.
	Pull(ctx context.Context, model, revision string, tell func(event string, body any) error) error
	// Remove removes a model from the disk; revision may be "".
	Remove(ctx context.Context, model, revision string) (Removed, error)
	Aliases(ctx context.Context) ([]Alias, error)
	SetAlias(ctx context.Context, a Alias) error
	RemoveAlias(ctx context.Context, name string) error
}

// ManagedList is the answer to GET /hearth/models.
type ManagedList struct {
	Models []Managed `json:"models"`
	Memory *Room     `json:"memory,omitempty"` // none: the machine does not tell
}

// Room is the memory that models share, in bytes.
type Room struct {
	Capacity int64 `json:"capacity_bytes"` // that they may have together
	Held     int64 `json:"held_bytes"`     // that loaded ones have been promised: weights, what requests and the cache hold, steps
	Free     int64 `json:"free_bytes"`     // that another one could have now
}

// Need is the memory that a model on the disk would take.
type Need struct {
	Context int   `json:"context,omitempty"` // tokens; 0 where it plays no part
	Bytes   int64 `json:"bytes"`             // with the weights, one sequence of so many tokens and a step
	Fits    bool  `json:"fits"`              // into what models may have together
	Beside  bool  `json:"beside"`            // and beside those that are loaded, with none that goes
	Mapped  bool  `json:"low_memory,omitempty"`
}

// Managed is a model of GET /hearth/models.
type Managed struct {
	ID    string   `json:"id"`
	Names []string `json:"names,omitempty"` // that mean it besides
	Kind  string   `json:"kind"`            // chat, completion, embedding, rerank
	// Status is whether requests get it: loaded, loading, on_disk; "" where they do not.
	Status    string   `json:"status"`
	Pinned    bool     `json:"pinned,omitempty"`  // it was named when the server started, and stays
	Default   bool     `json:"default,omitempty"` // of those, the one that is meant by default
	Context   int      `json:"context,omitempty"` // tokens; of one that has never been loaded what its folder allows
	Requests  int      `json:"requests,omitempty"`
	Waiting   int      `json:"waiting,omitempty"` // for it to be loaded
	LastUse   string   `json:"last_use,omitempty"`
	Until     string   `json:"until,omitempty"`   // when it goes if nobody uses it
	Problem   string   `json:"problem,omitempty"` // why it could not be loaded last
	State     string   `json:"state"`             // of its files: whole, half-downloaded, unusable
	Reason    string   `json:"reason,omitempty"`  // of a state that is not whole
	Missing   []string `json:"missing,omitempty"` // files
	Folder    string   `json:"folder,omitempty"`  // "" for the embedded one
	Revision  string   `json:"revision,omitempty"`
	ModelType string   `json:"model_type,omitempty"`
	Bits      int      `json:"bits,omitempty"`
	Bytes     int64    `json:"bytes,omitempty"`      // of weights
	Held      int64    `json:"held_bytes,omitempty"` // of memory, where it is loaded
	Memory    *Need    `json:"memory,omitempty"`     // where a context was asked for; none: not known
}

// Removed is the answer to DELETE /hearth/models.
type Removed struct {
	ID       string   `json:"id"`
	Revision string   `json:"revision,omitempty"`
	Bytes    int64    `json:"freed_bytes"`
	Kept     int      `json:"kept_files"`      // that something else links
	Left     []string `json:"other_revisions"` // that stay
}

// Alias is a further name of a model.
type Alias struct {
	Name    string `json:"name"`
	Model   string `json:"model"`
	Builtin bool   `json:"builtin"`
}

// handler answers a request with what is written as JSON.
type handler func(w http.ResponseWriter, r *http.Request) (any, error)

// mountManage registers the routes of the manager.
func (s *Server) mountManage(mux wire.Mux) {
	m := s.o.Manager
	handle := func(path string, handlers map[string]handler) {
		all := map[string]http.HandlerFunc{}
		for method, h := range handlers {
			all[method] = func(w http.ResponseWriter, r *http.Request) {
				rc := http.NewResponseController(w)
				_ = rc.SetWriteDeadline(time.Time{}) // a load takes its time; a test recorder has no deadlines
				body, err := h(w, r)
				_ = rc.SetWriteDeadline(time.Now().Add(wire.WriteTimeout))
				if err != nil {
					s.fail(w, r, chat.AsError(err))
					return
				}
				wire.WriteJSON(w, http.StatusOK, body)
			}
		}
		mux.Handle(managePrefix+path, s.checkOperator(wire.Methods(s.fail, all)))
	}
	handle("models", map[string]handler{
		http.MethodGet: func(_ http.ResponseWriter, r *http.Request) (any, error) {
			n, err := contextOf(r.URL.Query())
			if err != nil {
				return nil, err
			}
			list, err := m.Models(r.Context(), n)
			list.Models = nonNil(list.Models)
			return list, err
		},
		http.MethodDelete: func(w http.ResponseWriter, r *http.Request) (any, error) {
			var q struct{ Model, Revision string }
			if err := readManage(w, r, &q, "model"); err != nil {
				return nil, err
			}
			return m.Remove(r.Context(), q.Model, q.Revision)
		},
	})
	handle("models/load", map[string]handler{
		http.MethodPost: func(w http.ResponseWriter, r *http.Request) (any, error) {
			var q struct {
				Model string
				Keep  json.RawMessage `json:"keep_alive"`
			}
			if err := readManage(w, r, &q, "model"); err != nil {
				return nil, err
			}
			keep, err := readKeep(q.Keep)
			if err != nil {
				return nil, err
			}
			return map[string]any{"model": q.Model, "status": "loaded"}, m.Load(r.Context(), q.Model, keep)
		},
	})
	handle("models/unload", map[string]handler{
		http.MethodPost: func(w http.ResponseWriter, r *http.Request) (any, error) {
			var q struct{ Model string }
			if err := readManage(w, r, &q, "model"); err != nil {
				return nil, err
			}
			return map[string]any{"model": q.Model}, m.Unload(r.Context(), q.Model)
		},
	})
	mux.Handle(managePrefix+"models/pull", s.checkOperator(wire.Method(s.fail, http.MethodPost, s.pull)))
	aliases := func(_ http.ResponseWriter, r *http.Request) (any, error) {
		list, err := m.Aliases(r.Context())
		return map[string]any{"aliases": nonNil(list)}, err
	}
	handle("aliases", map[string]handler{
		http.MethodGet: aliases,
		http.MethodPut: func(w http.ResponseWriter, r *http.Request) (any, error) {
			var q struct{ Name, Model string }
			if err := readManage(w, r, &q, "name", "model"); err != nil {
				return nil, err
			}
			if err := m.SetAlias(r.Context(), Alias{Name: q.Name, Model: q.Model}); err != nil {
				return nil, err
			}
			return aliases(w, r)
		},
		http.MethodDelete: func(w http.ResponseWriter, r *http.Request) (any, error) {
			var q struct{ Name string }
			if err := readManage(w, r, &q, "name"); err != nil {
				return nil, err
			}
			if err := m.RemoveAlias(r.Context(), q.Name); err != nil {
				return nil, err
			}
			return aliases(w, r)
		},
	})
	if s.o.Monitor != nil {
		handle("cache", map[string]handler{
			http.MethodGet: func(http.ResponseWriter, *http.Request) (any, error) { return s.cacheStats(), nil },
			http.MethodDelete: func(_ http.ResponseWriter, r *http.Request) (any, error) {
				c, err := s.o.Monitor.ClearCache(r.Context())
				return c, uncleared(err)
			},
		})
	}
}

// contextOf is the context of a query, in tokens; 0: it names none.
func contextOf(q url.Values) (int, error) {
	switch text := q.Get("context"); {
	case !q.Has("context"):
		return 0, nil
	case text == "max":
		return math.MaxInt, nil
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return 0, chat.Invalidf("context", `expected a number of tokens from 1 on, or "max" for as many as each model reads, not %s`, wire.Quote(wire.Clip(text, 40)))
		}
		return n, nil
	}
}

// pull fetches a model, with events for as long as that takes. What is refused before the first one is an answer as others are.
func (s *Server) pull(w http.ResponseWriter, r *http.Request) {
	var q struct{ Model, Revision string }
	if err := readManage(w, r, &q, "model"); err != nil {
		s.fail(w, r, chat.AsError(err))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	stream := wire.NewStream(w, wire.DefaultKeepAlive, ": keep-alive\n\n", cancel)
	err := s.o.Manager.Pull(ctx, q.Model, q.Revision, func(event string, body any) error {
		stream.Event(event, wire.Marshal(body))
		stream.Flush()
		return stream.Err()
	})
	switch {
	case err == nil:
	case stream.Claim():
		h.Del("Cache-Control")
		s.fail(w, r, chat.AsError(err))
		return
	default:
		stream.Event("error", wire.Marshal(map[string]string{"event": "error", "message": chat.AsError(err).Error()}))
	}
	stream.Close()
}

// readKeep reads keep_alive as requests have it.
func readKeep(text json.RawMessage) (*time.Duration, error) {
	if text == nil {
		return nil, nil
	}
	v, err := wire.Parse(slices.Concat([]byte(`{"keep_alive":`), text, []byte("}")))
	if err != nil {
		return nil, err
	}
	var d wire.Decoder
	keep := d.KeepAlive(v.Get("keep_alive"))
	if err := d.Err(); err != nil {
		return nil, err
	}
	return keep, nil
}

// nonNil is list, which JSON writes as an array even where it is empty.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// maxManage bounds the body of a request for these routes, in bytes.
const maxManage = 64 << 10

var errLarge = errors.New("larger than the limit")

// readSmall reads a body of a few bytes.
func readSmall(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	text, err := wire.ReadBody(w, func() ([]byte, error) {
		text, err := io.ReadAll(io.LimitReader(r.Body, most+1))
		if err == nil && int64(len(text)) > most {
			err = errLarge
		}
		return text, err
	})
	switch {
	case err == errLarge:
		wire.LeaveBody(w)
		return nil, &chat.Error{Kind: chat.TooLarge, Msg: fmt.Sprintf("the body is larger than %d bytes", most)}
	case err != nil:
		return nil, wire.Unread(err)
	}
	return text, nil
}

// readManage reads a JSON object of strings into q. Fields that q does not have are refused, and so is one of need that is empty.
func readManage(w http.ResponseWriter, r *http.Request, q any, need ...string) error {
	text, err := readSmall(w, r, maxManage)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return chat.Invalidf("", "the body must be a JSON object with %s", wire.Quote(need[0]))
	}
	for _, name := range need {
		var s string
		if json.Unmarshal(fields[name], &s) != nil || s == "" {
			return chat.Invalidf(name, "a text is needed here")
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var wrong *json.UnmarshalTypeError
	switch err := d.Decode(q); {
	case errors.As(err, &wrong):
		return chat.Invalidf(wrong.Field, "this must be a text, not %s", wrong.Value)
	case err != nil:
		return chat.Invalidf("", "%s", wire.Clip(err.Error(), 200))
	}
	return nil
}
