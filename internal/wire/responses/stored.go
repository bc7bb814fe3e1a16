package responses

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"

	"hearth/internal/chat"
	"hearth/internal/store"
	"hearth/internal/wire"
)

// past reads what is stored for a request: what it builds on, and items that it refers to.
type past struct {
	ctx      context.Context
	store    *store.Store
	owner    store.Owner
	active   *active
	exchange *exchange // by which the request came; nil: it came by itself
}

func (h handler) past(r *http.Request) past {
	return past{r.Context(), h.Store, wire.InfoFrom(r.Context()).Owner, h.active, exchangeOf(r.Context())}
}

// failed is what a client is told of an error of the store's.
func (p past) failed(err error, unknown *chat.Error) *chat.Error {
	refused := refusal(err, unknown)
	switch {
	case refused != nil:
		return refused
	case p.ctx.Err() != nil:
		return chat.AsError(p.ctx.Err())
	}
	return &chat.Error{Kind: chat.Internal, Msg: "what is stored cannot be read or changed: " + err.Error(), Err: err}
}

// refusal is what a request did wrong by which the store gave an error; nil if the error is the store's own.
func refusal(err error, unknown *chat.Error) *chat.Error {
	switch {
	case errors.Is(err, store.ErrUnknown):
		return unknown
	case errors.Is(err, store.ErrLong):
		return &chat.Error{Kind: chat.Invalid, Param: unknown.Param, Bound: chat.BoundChain, Msg: err.Error() + ": send the conversation as input"}
	case errors.Is(err, store.ErrFull):
		return &chat.Error{Kind: chat.Invalid, Bound: chat.BoundConversation, Msg: err.Error() + ": begin another one"}
	case errors.Is(err, store.ErrTwice):
		return &chat.Error{Kind: chat.Invalid, Param: "items", Code: "duplicate_item", Msg: err.Error()}
	case errors.Is(err, store.ErrHeld):
		return &chat.Error{Kind: chat.Invalid, Param: unknown.Param, Code: "conversation_locked", Msg: err.Error() + ": try again when it has ended"}
	}
	return nil
}

// unfinished tells whether a response is still made. One whose end is stored is not, also while that is still to be told.
func (p past) unfinished(id string) bool {
	if p.active.get(activeKey{p.owner, id}) == nil {
		return false
	}
	got, err := p.store.Get(p.ctx, p.owner, id)
	return err == nil && got.Status == store.InProgress
}

// previous adds the inputs and outputs of a response and of all before it.
func (d *decoder) previous(v wire.Value) {
	id := d.OptString(v)
	if id == "" || d.Err() != nil {
		return
	}
	if d.past.unfinished(id) {
		d.Fail(v, "the response %s is not finished yet: go on from it when it has ended", wire.Quote(id))
		return
	}
	d.r.link = d.past.exchange.find(id)
	items, err := d.past.chain(id, d.r.link)
	if err != nil {
		d.FailWith(d.past.failed(err, &chat.Error{Kind: chat.Invalid, Param: v.Path(), Code: "previous_response_not_found",
			Msg: "there is no response " + wire.Quote(id) + " here: it was not stored, or is deleted or expired; send the whole conversation as input"}))
		return
	}
	d.r.previous = id
	for _, i := range items {
		d.stored(i, v)
	}
	d.endTurn()
}

// reference adds an item that is stored.
func (d *decoder) reference(v wire.Value) {
	id := d.String(v)
	if d.Err() != nil {
		return
	}
	i, err := d.past.store.Item(d.past.ctx, d.past.owner, id)
	if err != nil {
		d.FailWith(d.past.failed(err, &chat.Error{Kind: chat.NotFound, Param: v.Path(), Code: "item_not_found",
			Msg: "there is no item " + wire.Quote(id) + " here: it was not stored, or is deleted or expired; send the item itself"}))
		return
	}
	d.referred = i
	d.stored(*i, v)
}

// stored reads an item that was stored. It was read once before.
func (d *decoder) stored(i store.Item, at wire.Value) {
	item, err := wire.Parse(i.Body)
	if err != nil {
		d.FailWith(&chat.Error{Kind: chat.Internal, Msg: "a stored item is not valid JSON", Err: err})
		return
	}
	d.item(item.At(at))
	if d.compact {
		d.r.input = append(d.r.input, i)
	}
}

// maxItem bounds the bytes of an item that is stored.
const maxItem = 16 << 20

// keepItem notes an item of the input as it is kept: with an id, a type and a status, its text in parts, as it is listed later.
func (d *decoder) keepItem(item wire.Value) {
	if d.Err() != nil {
		return
	}
	kind := d.OptString(item.Get("type"))
	if kind == "item_reference" {
		if !d.compact { // then stored has it already
			d.note(*d.referred, item)
		}
		return
	}
	id := d.OptString(item.Get("id"))
	if id == "" {
		id = d.newID(prefixOf(kind))
	}
	b := []byte(`{"id":`)
	b = wire.AppendString(b, id)
	if kind == "" {
		kind = "message"
		b = append(b, `,"type":"message"`...)
	}
	if slices.Contains(withStatus, kind) && item.Get("status").Absent() {
		b = append(b, `,"status":"completed"`...)
	}
	for key, v := range item.Fields() {
		switch {
		case key == "id", (key == "type" || key == "status") && v.Absent():
			continue
		case key == "content" && v.Kind() == wire.String:
			part := "input_text"
			if d.OptString(item.Get("role")) == "assistant" {
				part = "output_text"
			}
			b = append(append(append(b, `,"content":[{"type":"`...), part...), `","text":`...)
			b = append(append(b, v.Raw()...), `}]`...)
		default:
			b = append(wire.AppendString(append(b, ','), key), ':')
			b = append(b, raw(v)...)
		}
	}
	d.note(store.Item{ID: id, Body: append(b, '}')}, item)
}

// note adds an item to those that are stored.
func (d *decoder) note(i store.Item, at wire.Value) {
	switch {
	case len(i.Body) > maxItem && (d.r.store || d.known != nil):
		d.FailWith(&chat.Error{Kind: chat.TooLarge, Param: at.Path(), Bound: chat.BoundItem,
			Msg: "an item that is stored may have at most 16 MiB; store: false without a conversation stores none"})
	case d.known[i.ID]:
		d.FailWith(&chat.Error{Kind: chat.Invalid, Param: at.Path(), Code: "duplicate_item",
			Msg: "the conversation has an item " + wire.Quote(i.ID) + " already: send only what is new"})
	case d.known != nil:
		d.known[i.ID] = true
	}
	d.r.input = append(d.r.input, i)
}

// withStatus are items that always tell of one where they are listed.
var withStatus = []string{"message", "function_call", "function_call_output"}

// keepText is keepItem for an input that is one text.
func (d *decoder) keepText(v wire.Value) {
	id := d.newID("msg_")
	d.r.input = append(d.r.input, store.Item{ID: id, Body: wire.Marshal(messageItem{id, "message", completed, "user", []any{plainPart{"input_text", d.String(v)}}})})
}

// prefixOf begins the ids of items of a kind.
func prefixOf(kind string) string {
	if i := slices.Index(itemTypes[:], kind); i >= 0 {
		return itemPrefixes[i]
	}
	switch kind {
	case "function_call_output":
		return "fco_"
	case "custom_tool_call_output":
		return "ctco_"
	}
	return "msg_"
}

// keeping is chat.Models whose replies are stored as being in progress before their first event, or at once when they are queued.
type keeping struct {
	chat.Models
	begin  func() *chat.Error
	atOnce bool
}

func (k keeping) Open(ctx context.Context, name string) (chat.Generator, error) {
	g, err := k.Models.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return keepingOne{g, k.begin, k.atOnce}, nil
}

type keepingOne struct {
	chat.Generator
	begin  func() *chat.Error
	atOnce bool
}

func (k keepingOne) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	events, err := k.Generator.Generate(ctx, r)
	if err != nil {
		return nil, err
	}
	return func(yield func(chat.Event, error) bool) {
		begun := false
		begin := func() bool {
			begun = true
			err := k.begin()
			if err != nil {
				yield(chat.Event{Finish: chat.FinishError}, err)
			}
			return err == nil
		}
		if k.atOnce && !begin() {
			return
		}
		for e, err := range events {
			if !begun && err == nil && !begin() {
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}, nil
}

// kept is the store's side of a response: it is stored when it begins and again when it ends, and can be cancelled in between.
type kept struct {
	store  records
	ctx    context.Context // which the client's leaving does not end
	record store.Response
	state  keptState
	run    *running
	active *active
	job    *job // nil: its client waits for it
	// release lets others have its conversation, before its client is told that it has ended: that one may go on at once.
	release func()
}

// records is where responses are kept.
type records interface {
	Begin(ctx context.Context, r *store.Response) error
	Finish(ctx context.Context, r *store.Response) error
}

type keptState uint8

const (
	notBegun keptState = iota
	begun
	settled
)

// errCancelled is why a response ends that its owner cancels.
var errCancelled = &chat.Error{Kind: chat.Invalid, Code: "response_cancelled", Msg: "the response was cancelled"}

func (k *kept) key() activeKey { return activeKey{k.record.Owner, k.record.ID} }

// keep has the response kept. The store knows nothing of what only the connection has, so that becomes input of the response.
func (r *reply) keep(h handler, req *http.Request, cancel context.CancelCauseFunc, j *job) {
	r.body.Store = r.req.store
	k := &kept{store: h.Store, ctx: context.WithoutCancel(req.Context()), active: h.active, job: j,
		record: store.Response{ID: r.body.ID, Owner: wire.InfoFrom(req.Context()).Owner, Previous: r.req.previous, Input: r.req.input,
			Conversation: r.req.conversation, At: r.req.at}}
	k.run = &running{cancel: cancel, done: make(chan struct{}), apart: j != nil}
	switch {
	case !r.req.store && r.req.conversation != "":
		k.store = joining{h.Store}
	case !r.req.store:
		k.store, k.active = exchangeOf(req.Context()).socket.session, newActive() // where nobody else finds it
	case r.req.link != nil:
		own, root := r.req.link.chain()
		k.record.Previous, k.record.Input = root, append(own, r.req.input...)
	}
	if j != nil && r.req.stream {
		k.run.events = &events{keep: func(e *store.Events) bool { return k.keepEvents(h.Store, e) }}
	}
	r.kept = k
}

// abandon stores a response that has begun and did not end: its client has left, which cancels it, or what served it has failed.
func (r *reply) abandon() {
	if r.kept.state != begun {
		return
	}
	r.out = nil // the stream is closed already
	err := errCancelled
	if r.kept.job != nil {
		err = &chat.Error{Kind: chat.Internal, Msg: "internal error"}
	}
	r.fail(err)
	_ = r.settle() // nobody is there to be told
}

// failing has a response that was not streamed answer that it was cancelled, and other errors stored before they are answered.
func (r *reply) failing(fail wire.ErrorWriter) wire.ErrorWriter {
	return func(w http.ResponseWriter, req *http.Request, err *chat.Error) {
		begun := r.kept.state == begun
		if begun {
			r.fail(err)
			_ = r.settle() // it is an error already
		}
		r.kept.release()
		if begun && err.Code == errCancelled.Code {
			wire.WriteJSON(w, http.StatusOK, &r.body)
			return
		}
		fail(w, req, err)
	}
}

// enter stores that the response is in progress.
func (r *reply) enter() *chat.Error {
	k := r.kept
	k.record.Body = wire.Marshal(&r.body)
	if k.run.events != nil {
		k.record.Events = r.opening()
	}
	k.active.add(k.key(), k.run) // before it is stored, so that what is in progress and not here never will end
	if err := k.store.Begin(k.ctx, &k.record); err != nil {
		k.active.remove(k.key())
		return storeError(err)
	}
	k.state = begun
	if k.job != nil {
		k.job.take(k)
	}
	return nil
}

// storeError is what a client is told where a response cannot be stored.
func storeError(err error) *chat.Error {
	gone := &chat.Error{Kind: chat.Invalid, Param: "previous_response_id", Code: "previous_response_not_found", Msg: "the previous response is not there any more"}
	if refused := refusal(err, gone); refused != nil {
		return refused
	}
	return &chat.Error{Kind: chat.Internal, Msg: "the response cannot be stored: " + err.Error() + "; store: false does without", Err: err}
}

// settle stores how the response ended. What its client has deleted meanwhile stays deleted.
func (r *reply) settle() *chat.Error {
	k := r.kept
	if k == nil {
		return nil
	}
	if k.state != begun {
		k.release()
		return nil
	}
	k.state = settled
	defer close(k.run.done)
	defer k.active.remove(k.key())
	k.record.Status, k.record.Body = r.body.Status, wire.Marshal(&r.body)
	var last []byte
	if k.run.events != nil {
		last = r.closing()
		k.record.Events = k.run.events.rest(last)
	}
	for _, i := range r.items {
		k.record.Output = append(k.record.Output, store.Item{ID: i.id, Body: wire.Marshal(r.toStore(i))})
	}
	k.record.Joins = r.joins()
	err := k.store.Finish(k.ctx, &k.record)
	k.release()
	if err != nil && !errors.Is(err, store.ErrUnknown) {
		return storeError(err)
	}
	if last != nil {
		k.run.events.end(last)
	}
	return nil
}

// toStore is an item of the output as it is stored: reasoning that the client does not get is what the next response builds on.
func (r *reply) toStore(i *item) any {
	o, ok := r.body.Output[i.index].(reasoningItem)
	if !ok || r.shown || o.Encrypted != nil {
		return r.body.Output[i.index]
	}
	text := encrypted(sealed, i.text.String())
	o.Encrypted = &text
	return o
}

// find finds a stored response as it is now, and what makes it; nil: it has ended. Without a response the error was answered.
func (h handler) find(w http.ResponseWriter, r *http.Request) (*store.Response, *running) {
	p, id := h.past(r), r.PathValue("id")
	got, run, err := h.look(p.ctx, p.owner, id)
	if err != nil {
		h.WriteError(w, r, p.failed(err, noResponse(id)))
	}
	return got, run
}

// look is find without a request. What did not end has the status store.Interrupted, and a body that says so.
func (h handler) look(ctx context.Context, owner store.Owner, id string) (*store.Response, *running, error) {
	key := activeKey{owner, id}
	run := h.active.get(key)
	got, err := h.Store.Get(ctx, owner, id)
	if err == nil && run == nil && got.Status == store.InProgress { // it has begun meanwhile, or ended, or cannot any more
		if run = h.active.get(key); run == nil {
			got, err = h.Store.Get(ctx, owner, id)
		}
	}
	switch {
	case err != nil:
		return nil, nil, err
	case got.Status == store.Interrupted:
		broken(got, "the server ended before the response was complete")
	case got.Status == store.InProgress && run == nil:
		broken(got, "how the response ended could not be stored")
	case got.Status == store.InProgress && run.begun.Load():
		change(got, func(b *response) { b.Status = inProgress })
	}
	return got, run, nil
}

func noResponse(id string) *chat.Error {
	return &chat.Error{Kind: chat.NotFound, Code: "not_found", Msg: "there is no response " + wire.Quote(id) + " here: it was not stored, or is deleted or expired"}
}

// retrieve answers with a stored response.
func (h handler) retrieve(w http.ResponseWriter, r *http.Request) {
	after, streams, bad := cursor(r.URL.RawQuery)
	if bad != nil {
		h.WriteError(w, r, bad)
		return
	}
	got, run := h.find(w, r)
	switch {
	case got == nil:
	case streams:
		h.follow(w, r, got, run, after+1)
	default:
		wire.WriteJSON(w, http.StatusOK, json.RawMessage(got.Body))
	}
}

// broken makes a response that did not end one that has failed.
func broken(r *store.Response, why string) {
	r.Status = store.Interrupted
	change(r, func(b *response) { b.Status, b.Error = failed, &failure{"server_error", why} })
}

// change changes a stored response's object.
func change(r *store.Response, f func(*response)) {
	var b response
	if json.Unmarshal(r.Body, &b) == nil {
		f(&b)
		r.Body = wire.Marshal(&b)
	}
}

// remove deletes a stored response.
func (h handler) remove(w http.ResponseWriter, r *http.Request) {
	p, id := h.past(r), r.PathValue("id")
	if err := p.store.Delete(p.ctx, p.owner, id); err != nil {
		h.WriteError(w, r, p.failed(err, noResponse(id)))
		return
	}
	if run := h.active.get(activeKey{p.owner, id}); run != nil && run.apart {
		run.cancel(errCancelled)
	}
	wire.WriteJSON(w, http.StatusOK, deletion{id, "response", true})
}

// deletion says that something was deleted.
type deletion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// cancelOne ends a response that is in progress, and answers with it once it has ended. One in the background may be cancelled
// again, or too late: then it is what it was.
func (h handler) cancelOne(w http.ResponseWriter, r *http.Request) {
	got, run := h.find(w, r)
	if run != nil {
		run.cancel(errCancelled)
		select {
		case <-run.done:
		case <-r.Context().Done():
		}
		got, _ = h.find(w, r)
	}
	if got == nil {
		return
	}
	var body response
	if err := json.Unmarshal(got.Body, &body); run == nil && (err != nil || !body.Background) {
		h.WriteError(w, r, &chat.Error{Kind: chat.Invalid, Msg: "the response is not in progress: it is " + body.Status})
		return
	}
	wire.WriteJSON(w, http.StatusOK, json.RawMessage(got.Body))
}

const (
	maxPage     = 100 // items of a page
	defaultPage = 20
)

// inputItems answers with a page of what went into a response, all that it builds on included.
func (h handler) inputItems(w http.ResponseWriter, r *http.Request) {
	p, id := h.past(r), r.PathValue("id")
	items, err := p.store.Chain(p.ctx, p.owner, id, true)
	if err != nil {
		h.WriteError(w, r, p.failed(err, noResponse(id)))
		return
	}
	h.page(w, r, items)
}

// page answers with those of the items, the oldest of which comes first, that the query asks for.
func (h handler) page(w http.ResponseWriter, r *http.Request, items []store.Item) {
	limit, order, bad := pageOf(r.URL.Query().Get("limit"), r.URL.Query().Get("order"))
	if bad != nil {
		h.WriteError(w, r, bad)
		return
	}
	if order != "asc" {
		slices.Reverse(items)
	}
	find := func(param string) (int, bool) {
		want := r.URL.Query().Get(param)
		if want == "" {
			return -1, true
		}
		i := slices.IndexFunc(items, func(i store.Item) bool { return i.ID == want })
		return i, i >= 0
	}
	after, ok := find("after")
	before, ok2 := find("before")
	if !ok || !ok2 {
		h.WriteError(w, r, &chat.Error{Kind: chat.Invalid, Param: "after", Msg: "after and before are ids of items that are listed"})
		return
	}
	if before >= 0 {
		items = items[:before]
	}
	writePage(w, items[min(after+1, len(items)):], limit)
}

// writePage answers with the first of the items.
func writePage(w http.ResponseWriter, items []store.Item, limit int) {
	page := struct {
		Object  string            `json:"object"`
		Data    []json.RawMessage `json:"data"`
		FirstID *string           `json:"first_id"`
		LastID  *string           `json:"last_id"`
		HasMore bool              `json:"has_more"`
	}{Object: "list", Data: []json.RawMessage{}, HasMore: len(items) > limit}
	items = items[:min(limit, len(items))]
	for i := range items {
		page.Data = append(page.Data, items[i].Body)
	}
	if n := len(items); n > 0 {
		page.FirstID, page.LastID = &items[0].ID, &items[n-1].ID
	}
	wire.WriteJSON(w, http.StatusOK, page)
}

// pageOf reads how many items a page has, and in which order.
func pageOf(limit, order string) (int, string, *chat.Error) {
	n := defaultPage
	if limit != "" {
		var err error
		if n, err = strconv.Atoi(limit); err != nil || n < 1 || n > maxPage {
			return 0, "", chat.Invalidf("limit", "must be between 1 and %d, got %s", maxPage, wire.Quote(limit))
		}
	}
	if order != "" && order != "asc" && order != "desc" {
		return 0, "", chat.Invalidf("order", "must be asc or desc, got %s", wire.Quote(order))
	}
	return n, order, nil
}
