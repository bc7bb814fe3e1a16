package responses

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"hearth/internal/chat"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/openai"
)

const (
	// maxBackground bounds the responses that are made in the background at once, maxOfKey those of one key where there are keys.
	maxBackground = 256
	maxOfKey      = maxBackground / 2
	// runBytes is how many bytes of events are in memory before they are stored.
	runBytes = 64 << 10
)

// active are the responses that are in progress here.
type active struct {
	mu    sync.Mutex
	of    map[activeKey]*running
	jobs  int                 // responses in the background, from before they are queued
	byKey map[store.Owner]int // of those, by whose they are
}

type activeKey struct {
	owner store.Owner
	id    string
}

// running is a response that is in progress here.
type running struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed once how it ended is stored, or cannot be
	apart  bool          // it is made in the background
	begun  atomic.Bool   // it is not queued any more, in the background
	events *events       // nil: nobody can follow them
}

func newActive() *active {
	return &active{of: map[activeKey]*running{}, byKey: map[store.Owner]int{}}
}

// get finds what makes a response; nil: nothing does. Outside a server nothing is made.
func (a *active) get(key activeKey) *running {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[key]
}

func (a *active) add(key activeKey, run *running) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of[key] = run
}

func (a *active) remove(key activeKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, key)
}

// enter counts a response in the background until leave is called, if there may be one more.
func (a *active) enter(owner store.Owner) (leave func(), err *chat.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	most, whose := maxBackground, "responses are made in the background"
	if owner != (store.Owner{}) && a.byKey[owner] >= maxOfKey {
		most, whose = maxOfKey, "responses of this key are made in the background"
	} else if a.jobs < maxBackground {
		a.jobs++
		a.byKey[owner]++
		return func() { a.leave(owner) }, nil
	}
	return nil, &chat.Error{Kind: chat.RateLimited, RetryAfter: time.Second, Bound: chat.BoundBackground,
		Msg: fmt.Sprintf("%d %s, and there may be no more: try again when one has ended", most, whose)}
}

func (a *active) leave(owner store.Owner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jobs--
	if a.byKey[owner]--; a.byKey[owner] == 0 {
		delete(a.byKey, owner)
	}
}

// job is what the call that makes a response in the background is handed by the one that asked for it.
type job struct {
	req     *request
	body    *wire.Body
	session string
	taken   chan struct{} // closed once the response is queued and stored, or the call has ended
	// Set by then.
	run   *running
	as    store.Response // as it was queued
	reply *innerReply    // why it was not
}

type jobKey struct{}

// take tells that the response is queued and stored.
func (j *job) take(k *kept) {
	j.run, j.as = k.run, store.Response{ID: k.record.ID, Owner: k.record.Owner, Status: store.InProgress, Body: k.record.Body}
	close(j.taken)
}

// background has a response made by a call of its own, and answers once that is queued: with the response as it is then, or with
// its events as they come. What goes wrong before is the answer.
func (h handler) background(w http.ResponseWriter, r *http.Request, req *request, body *wire.Body) {
	info := wire.InfoFrom(r.Context())
	info.Model = req.Model
	leave, bad := h.active.enter(info.Owner)
	if bad != nil {
		body.Close()
		h.WriteError(w, r, bad)
		return
	}
	ctx, cancel := h.Server.Detach(r.Context())
	req.Patient = true // so that it is told to be queued for as long as it is
	j := &job{req: req, body: body, session: info.Session, taken: make(chan struct{})}
	go func() {
		defer leave()
		defer cancel(nil)
		defer body.Close()
		reply := h.inner(context.WithValue(ctx, jobKey{}, j), r, nil)
		if j.run == nil {
			j.reply = reply
			close(j.taken)
		} else if j.run.events != nil {
			j.run.events.end()
		}
	}()
	select {
	case <-j.taken:
	case <-r.Context().Done():
		if !ends(r.Context()) { // the client has left, and nobody knows of the response yet
			cancel(errCancelled)
		}
		<-j.taken
	}
	switch {
	case j.run == nil:
		j.reply.send(w)
	case req.stream:
		h.follow(w, r, &j.as, j.run, 0)
	default:
		wire.WriteJSON(w, http.StatusOK, json.RawMessage(j.as.Body))
	}
}

// work makes the response of a job, in the call that is there for it.
func (h handler) work(w http.ResponseWriter, r *http.Request, j *job) {
	info := wire.InfoFrom(r.Context())
	info.Session, j.req.Origin.ID = j.session, info.RequestID
	h.generate(w, r, j.req, j.body, j)
}

// cursor reads whether the events of a response are asked for, and after which; -1: from the first.
func cursor(query string) (after int, streams bool, bad *chat.Error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return 0, false, chat.Invalidf("query", "is not valid: %s", wire.Quote(query))
	}
	if v := q["stream"]; v != nil {
		if streams = v[0] == "true"; !streams && v[0] != "false" {
			return 0, false, chat.Invalidf("stream", "must be true or false, got %s", wire.Quote(v[0]))
		}
	}
	v := q["starting_after"]
	if v == nil {
		return -1, streams, nil
	}
	n, err := strconv.ParseUint(v[0], 10, 31)
	switch {
	case err != nil:
		return 0, false, chat.Invalidf("starting_after", "must be the sequence_number of an event, got %s", wire.Quote(v[0]))
	case !streams:
		return 0, false, chat.Invalidf("starting_after", "says where a stream goes on: send stream=true with it")
	}
	return int(n), true, nil
}

// events are those of a response in the background while it is made: the last ones here, those before in the store.
type events struct {
	keep func(*store.Events) bool

	mu      sync.Mutex
	first   int      // number of the first that is here
	list    [][]byte // from there on
	bytes   int      // of list
	closing bool     // what is here is stored with the response
	ended   bool
	changed chan struct{} // closed when there is more, or the end; nil: nobody waits
}

// add takes the next event. It is a wire.Options.Frame. What comes after the last is that once more.
func (e *events) add(b []byte) error {
	e.mu.Lock()
	if e.ended {
		e.mu.Unlock()
		return nil
	}
	e.list = append(e.list, b)
	e.bytes += len(b)
	full := e.bytes >= runBytes && !e.closing
	e.wake()
	e.mu.Unlock()
	if full {
		e.store()
	}
	return nil
}

// store moves what is here to the store. It stays if it cannot be stored: that ends the response.
func (e *events) store() {
	if !e.keep(pack(e.first, e.list)) { // nobody else adds
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.first += len(e.list)
	e.list, e.bytes = nil, 0
}

// rest are the events that are not stored yet, and the last one of all, which is told when it is stored.
func (e *events) rest(last []byte) *store.Events {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closing = true
	return pack(e.first, append(e.list[:len(e.list):len(e.list)], last))
}

// end tells that no more will come than last, if there is one.
func (e *events) end(last ...[]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		e.list, e.ended = append(e.list, last...), true
		e.wake()
	}
}

// wake is called with mu held.
func (e *events) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// from gives the events from number n on, or what is closed when there are some; neither: the store has them, or there are none.
func (e *events) from(n int) (list [][]byte, more <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case n < e.first:
	case n < e.first+len(e.list):
		return e.list[n-e.first:], nil
	case !e.ended:
		if e.changed == nil {
			e.changed = make(chan struct{})
		}
		return nil, e.changed
	}
	return nil, nil
}

// opening are the events of a response that is queued. They are stored with it, and say that its events are.
func (r *reply) opening() *store.Events {
	var list [][]byte
	for _, kind := range []string{"response.created", "response.queued"} {
		list = append(list, numbered(newEvent(kind, "response", &r.body), r.sequence))
		r.sequence++
	}
	r.kept.run.events.first = r.sequence
	return pack(0, list)
}

// closing is the event that ends those of a response.
func (r *reply) closing() []byte {
	if r.out != nil {
		r.out.Flush()
	}
	return numbered(newEvent(r.last(), "response", &r.body), r.sequence)
}

// keepEvents stores events while the response is made. If they cannot be, that ends it: nobody could follow it.
func (k *kept) keepEvents(s *store.Store, e *store.Events) bool {
	err := s.AddEvents(k.ctx, k.record.Owner, k.record.ID, e)
	if err == nil || errors.Is(err, store.ErrUnknown) { // deleted
		return true
	}
	k.run.cancel(storeError(err))
	return false
}

// pack makes a run of events: lines of JSON, which say much the same again and again.
func pack(first int, list [][]byte) *store.Events {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed) // no other level is an error, nor does a buffer give one
	for _, e := range list {
		_, _ = w.Write(e)
		_, _ = w.Write([]byte{'\n'})
	}
	_ = w.Close()
	return &store.Events{First: first, Body: b.Bytes()}
}

func unpack(e *store.Events) ([][]byte, error) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(e.Body)))
	if err != nil {
		return nil, err
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'}), nil
}

// follow tells the events of a response from number n on, as they come, to the one that ends them. run makes it; nil: it has
// ended.
func (h handler) follow(w http.ResponseWriter, r *http.Request, of *store.Response, run *running, n int) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := wire.NewStream(w, h.KeepAlive, keepAlive, cancel)
	defer s.Close()
	for {
		var list [][]byte
		var more <-chan struct{}
		if run != nil && run.events != nil {
			list, more = run.events.from(n)
		}
		if more != nil {
			select {
			case <-more:
				continue
			case <-ctx.Done():
			}
			if ends(ctx) && s.Err() == nil { // what makes it is told too
				<-more
				continue
			}
			wire.InfoFrom(ctx).Err = wire.ErrClientGone
			return
		}
		if list == nil {
			var err *chat.Error
			if list, err = h.storedEvents(context.WithoutCancel(ctx), of, n); err != nil {
				if s.Claim() {
					h.WriteError(w, r, err)
					return
				}
				wire.InfoFrom(ctx).Err = err
				d := openai.NewErrorDetail(err)
				list = [][]byte{numbered(newEvent("error", "code", d.Code, "message", d.Message, "param", d.Param), n)}
			}
		}
		for _, b := range list {
			kind := kindOf(b)
			s.Event(kind, b)
			if isLast(kind) {
				return
			}
		}
		n += len(list)
		s.Flush()
		if s.Err() != nil {
			wire.InfoFrom(ctx).Err = wire.ErrClientGone
			return
		}
	}
}

// ends tells whether a context has ended because the server does.
func ends(ctx context.Context) bool {
	var e *chat.Error
	return errors.As(context.Cause(ctx), &e)
}

// isLast tells the events that end a stream.
func isLast(kind string) bool {
	switch kind {
	case "response." + completed, "response." + unfinished, "response." + failed, "error":
		return true
	}
	return false
}

// storedEvents gives stored events of a response from number n on. Of one that did not end they have an end all the same.
func (h handler) storedEvents(ctx context.Context, of *store.Response, n int) ([][]byte, *chat.Error) {
	p := past{ctx: ctx, store: h.Store, owner: of.Owner}
	run, err := p.store.Events(ctx, of.Owner, of.ID, n)
	if err != nil {
		return nil, p.failed(err, chat.Invalidf("stream", "there are no events of response %s: it was not made with background and stream, or is deleted", wire.Quote(of.ID)))
	}
	list, err := unpack(run)
	if err != nil {
		return nil, p.failed(err, nil)
	}
	if from := n - run.First; from < len(list) {
		return list[from:], nil
	}
	now, _, err := h.look(ctx, of.Owner, of.ID)
	switch {
	case err != nil:
		return nil, p.failed(err, noResponse(of.ID))
	case now.Status != store.Interrupted:
		return nil, chat.Invalidf("starting_after", "the last event of the response has number %d", run.First+len(list)-1)
	}
	return [][]byte{numbered(newEvent("response."+failed, "response", json.RawMessage(now.Body)), n)}, nil
}
