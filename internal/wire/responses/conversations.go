package responses

import (
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/store"
	"hearth/internal/wire"
)

// Bounds of a conversation, as OpenAI has them.
const (
	maxAdded         = 20 // items that are added at once
	maxMetadata      = 16 // pairs
	maxMetadataKey   = 64 // characters
	maxMetadataValue = 512
)

// mountConversations registers the routes of conversations.
func (h handler) mountConversations(mux wire.Mux, base string) {
	type methods = map[string]http.HandlerFunc
	for path, by := range map[string]methods{
		"/conversations":                   {http.MethodPost: h.createConversation},
		"/conversations/{id}":              {http.MethodGet: h.retrieveConversation, http.MethodPost: h.updateConversation, http.MethodDelete: h.removeConversation},
		"/conversations/{id}/items":        {http.MethodGet: h.listItems, http.MethodPost: h.addItems},
		"/conversations/{id}/items/{item}": {http.MethodGet: h.retrieveItem, http.MethodDelete: h.removeItem},
	} {
		wire.Handle(mux, base, path, wire.Methods(h.WriteError, by))
	}
}

// conversationObject is the conversation object.
type conversationObject struct {
	ID        string          `json:"id"`
	Object    string          `json:"object"`
	CreatedAt int64           `json:"created_at"`
	Metadata  json.RawMessage `json:"metadata"`
}

func noConversation(id, param string) *chat.Error {
	return &chat.Error{Kind: chat.NotFound, Param: param, Code: "conversation_not_found",
		Msg: "there is no conversation " + wire.Quote(id) + " here: it is deleted or expired, or never was"}
}

func noItem(id string) *chat.Error {
	return &chat.Error{Kind: chat.NotFound, Code: "item_not_found", Msg: "the conversation has no item " + wire.Quote(id)}
}

// answerConversation answers with a conversation, or with why there is none.
func (h handler) answerConversation(w http.ResponseWriter, r *http.Request, c *store.Conversation, err error, unknown *chat.Error) {
	if err != nil {
		h.WriteError(w, r, h.past(r).failed(err, unknown))
		return
	}
	wire.WriteJSON(w, http.StatusOK, conversationObject{c.ID, "conversation", c.Created.Unix(), c.Metadata})
}

func (h handler) createConversation(w http.ResponseWriter, r *http.Request) {
	p := h.past(r)
	c := &store.Conversation{Owner: p.owner}
	var items []store.Item
	body := h.Read(w, r, h.WriteError, func(v wire.Value) *chat.Error {
		if !h.Store.Keeps() {
			return &chat.Error{Kind: chat.Invalid, Msg: store.ErrOff.Error()}
		}
		d := h.adder(r)
		if d.Want(v, wire.Object) {
			c.Metadata = d.metadata(v.Get("metadata"))
			items = d.added(v.Get("items"))
		}
		return d.Err()
	})
	if body == nil {
		return
	}
	defer body.Close()
	c.ID = h.NewID("conv_")
	err := h.Store.AddConversation(r.Context(), c, items)
	h.answerConversation(w, r, c, err, nil)
}

func (h handler) retrieveConversation(w http.ResponseWriter, r *http.Request) {
	p, id := h.past(r), r.PathValue("id")
	c, err := p.store.Conversation(p.ctx, p.owner, id)
	h.answerConversation(w, r, c, err, noConversation(id, ""))
}

func (h handler) updateConversation(w http.ResponseWriter, r *http.Request) {
	var metadata json.RawMessage
	body := h.Read(w, r, h.WriteError, func(v wire.Value) *chat.Error {
		d := h.adder(r)
		if d.Want(v, wire.Object) {
			if v = v.Get("metadata"); v.Kind() == wire.Missing {
				d.Fail(v, "is required: it takes the place of what there is")
			}
			metadata = d.metadata(v)
		}
		return d.Err()
	})
	if body == nil {
		return
	}
	defer body.Close()
	p, id := h.past(r), r.PathValue("id")
	c, err := p.store.SetMetadata(p.ctx, p.owner, id, metadata)
	h.answerConversation(w, r, c, err, noConversation(id, ""))
}

func (h handler) removeConversation(w http.ResponseWriter, r *http.Request) {
	p, id := h.past(r), r.PathValue("id")
	if err := p.store.RemoveConversation(p.ctx, p.owner, id); err != nil {
		h.WriteError(w, r, p.failed(err, noConversation(id, "")))
		return
	}
	wire.WriteJSON(w, http.StatusOK, deletion{id, "conversation.deleted", true})
}

// addItems adds items, and answers with them.
func (h handler) addItems(w http.ResponseWriter, r *http.Request) {
	var items []store.Item
	body := h.Read(w, r, h.WriteError, func(v wire.Value) *chat.Error {
		d := h.adder(r)
		if d.Want(v, wire.Object) {
			if v = v.Get("items"); d.Want(v, wire.Array) {
				items = d.added(v)
			}
		}
		return d.Err()
	})
	if body == nil {
		return
	}
	defer body.Close()
	p, id := h.past(r), r.PathValue("id")
	if err := p.store.AddItems(p.ctx, p.owner, id, items); err != nil {
		h.WriteError(w, r, p.failed(err, noConversation(id, "")))
		return
	}
	writePage(w, items, len(items))
}

func (h handler) listItems(w http.ResponseWriter, r *http.Request) {
	p, id := h.past(r), r.PathValue("id")
	_, items, err := p.store.ConversationItems(p.ctx, p.owner, id)
	if err != nil {
		h.WriteError(w, r, p.failed(err, noConversation(id, "")))
		return
	}
	h.page(w, r, items)
}

func (h handler) retrieveItem(w http.ResponseWriter, r *http.Request) {
	p, id := h.past(r), r.PathValue("item")
	i, err := p.store.ConversationItem(p.ctx, p.owner, r.PathValue("id"), id)
	if err != nil {
		h.WriteError(w, r, p.failed(err, noItem(id)))
		return
	}
	wire.WriteJSON(w, http.StatusOK, json.RawMessage(i.Body))
}

// removeItem takes an item out, and answers with the conversation.
func (h handler) removeItem(w http.ResponseWriter, r *http.Request) {
	p, id := h.past(r), r.PathValue("item")
	c, err := p.store.RemoveItem(p.ctx, p.owner, r.PathValue("id"), id)
	h.answerConversation(w, r, c, err, noItem(id))
}

// adder makes a decoder for items that are added to a conversation: they are read as those of a request that is stored.
func (h handler) adder(r *http.Request) *decoder {
	d := h.decoder(r)
	d.r = &request{tools: map[string]tool{}, store: true}
	d.known = map[string]bool{}
	return d
}

// added reads items.
func (d *decoder) added(v wire.Value) []store.Item {
	for _, item := range d.ItemsWithin(v, chat.BoundAdded, maxAdded, "items") {
		if !d.Want(item, wire.Object) {
			break
		}
		d.item(item)
		d.keepItem(item)
	}
	return d.r.input
}

// metadata reads what a conversation is labelled with.
func (d *decoder) metadata(v wire.Value) json.RawMessage {
	for key, value := range d.FieldsWithin(v, chat.BoundMetadata, maxMetadata, "pairs") {
		if n := utf8.RuneCountInString(key); n > maxMetadataKey {
			d.Exceeds(chat.BoundMetadata, v, "a key may have at most %d characters, %s has %d", maxMetadataKey, wire.Quote(key), n)
		}
		if n := utf8.RuneCountInString(d.String(value)); n > maxMetadataValue {
			d.Exceeds(chat.BoundMetadata, value, "a value may have at most %d characters, this has %d", maxMetadataValue, n)
		}
	}
	if v.Absent() || d.Err() != nil {
		return json.RawMessage("{}")
	}
	return raw(v)
}

// conversation adds the items of the conversation that the response is made on, given by its id or as an object that has it.
func (d *decoder) conversation(v wire.Value) {
	if v.Absent() {
		return
	}
	named := v
	if v.Kind() == wire.Object {
		named = v.Get("id")
	}
	id := d.String(named)
	if d.r.previous != "" {
		d.FailWith(&chat.Error{Kind: chat.Invalid, Param: v.Path(), Code: "mutually_exclusive_parameters",
			Msg: "a response is made on a conversation or builds on a previous response: leave out conversation or previous_response_id"})
	}
	if d.Err() != nil {
		return
	}
	c, items, err := d.past.store.ConversationItems(d.past.ctx, d.past.owner, id)
	if err != nil {
		d.FailWith(d.past.failed(err, noConversation(id, v.Path())))
		return
	}
	d.r.conversation, d.r.at, d.r.kept = id, c.Next, true
	d.known = map[string]bool{}
	for _, i := range items {
		d.known[i.ID] = true
		d.stored(i, v)
	}
	d.endTurn()
	d.r.body.Conversation = &conversationID{id}
}

// conversationID is what a response says of the conversation that it was made on.
type conversationID struct {
	ID string `json:"id"`
}

// hold keeps others from the conversation of a request until its response has ended.
func (h handler) hold(r *http.Request, req *request) (release func(), refused *chat.Error) {
	if req.conversation == "" {
		return func() {}, nil
	}
	p := h.past(r)
	release, err := p.store.Hold(p.ctx, p.owner, req.conversation, req.at, req.input)
	if err != nil {
		return nil, p.failed(err, noConversation(req.conversation, "conversation"))
	}
	return release, nil
}

// joining is records that keep a response's items in its conversation alone.
type joining struct{ *store.Store }

// Begin implements records.
func (joining) Begin(context.Context, *store.Response) error { return nil }

// Finish implements records.
func (j joining) Finish(ctx context.Context, r *store.Response) error {
	if !r.Joins {
		return nil
	}
	return j.Append(ctx, r)
}

// joins tells whether the items of a response that has ended are added to its conversation.
func (r *reply) joins() bool {
	return r.req.conversation != "" && !r.req.warm && (r.body.Status == completed || r.body.Status == unfinished)
}
