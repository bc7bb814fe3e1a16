package wire

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"hearth/internal/chat"
)

// ErrorWriter answers a request with an error in a protocol's shape.
type ErrorWriter func(http.ResponseWriter, *http.Request, *chat.Error)

// Encoder takes the events of one reply in order. Streaming encoders write frames to the Stream they were made with,
// collecting ones make a document.
type Encoder interface {
	// Begin is called once before the first event, with the model that answers.
	Begin(m chat.Model)
	Event(e *chat.Event)
}

// StreamEncoder is an Encoder that writes frames.
type StreamEncoder interface {
	Encoder
	// Done ends the stream after its last event: nil after the last EventFinish, else what broke it off.
	Done(e *chat.Error)
}

// CollectEncoder is an Encoder that collects.
type CollectEncoder interface {
	Encoder
	// Body is the reply after its last event.
	Body() any
}

// Keeper is a CollectEncoder that has to keep the reply before the client gets it.
type Keeper interface {
	// Keep is called after the last event. With an error, that is the answer.
	Keep() *chat.Error
}

// ErrClientGone is what Info.Err has of calls whose client closed the connection, or its half of it, or reads nothing. Such a
// call writes no more; whoever serves it closes the connection, so that what there is of a reply is not taken for all of it.
var ErrClientGone = errors.New("the client closed the connection")

// Stream answers r with the events of req as SSE. An error before the first event keeps its own status, unless a
// keep-alive went out before; later ones end the stream by Done.
func (o Options) Stream(w http.ResponseWriter, r *http.Request, req *chat.Request, fail ErrorWriter, ping string,
	newEncoder func(*Stream) StreamEncoder,
) {
	o.See(r, req)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := o.newStream(w, ping, cancel)
	defer s.Close()
	enc := newEncoder(s)
	defer func() { // a client that saw the beginning is told of the end, even of this one
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler && !s.Claim() {
				enc.Done(&chat.Error{Kind: chat.Internal, Msg: "internal error"})
				s.Flush()
			}
			panic(p)
		}
	}()
	g := coalescer{most: o.Interval, send: enc.Event}
	err := o.feed(ctx, req, enc, func(e *chat.Event) bool {
		if e.Kind == chat.EventStart {
			for i, value := range promptHeaders(e.Usage) {
				s.header(PromptHeaders[i], value)
			}
			s.header(TimingHeader, InfoFrom(ctx).timing(false))
		}
		g.event(e)
		s.Flush()
		return s.Err() == nil
	})
	g.release()
	switch {
	case err == nil:
		enc.Done(nil)
		setOutcome(w.Header(), http.TrailerPrefix, InfoFrom(ctx).Usage)
		w.Header().Set(http.TrailerPrefix+TimingHeader, InfoFrom(ctx).timing(true))
	case s.Err() != nil || gone(r.Context()):
		InfoFrom(ctx).Err = ErrClientGone
	case errors.Is(err, chat.ErrCut):
		abort(r, err)
	case s.Claim():
		fail(w, r, err)
	default:
		InfoFrom(ctx).Err = err
		enc.Done(err)
	}
}

// Collect answers r with the events of req as one document.
func (o Options) Collect(w http.ResponseWriter, r *http.Request, req *chat.Request, fail ErrorWriter, enc CollectEncoder) {
	o.See(r, req)
	err := o.feed(r.Context(), req, enc, func(e *chat.Event) bool { enc.Event(e); return true })
	if k, ok := enc.(Keeper); ok && err == nil {
		err = k.Keep()
	}
	switch {
	case err == nil:
		for i, value := range promptHeaders(InfoFrom(r.Context()).Usage) {
			if value != "" {
				w.Header().Set(PromptHeaders[i], value)
			}
		}
		setOutcome(w.Header(), "", InfoFrom(r.Context()).Usage)
		w.Header().Set(TimingHeader, InfoFrom(r.Context()).timing(true))
		WriteJSON(w, http.StatusOK, enc.Body())
	case gone(r.Context()):
		InfoFrom(r.Context()).Err = ErrClientGone
	case errors.Is(err, chat.ErrCut):
		abort(r, err)
	default:
		fail(w, r, err)
	}
}

// Count answers r with what body makes of the number of tokens in the prompt of req.
func (o Options) Count(w http.ResponseWriter, r *http.Request, req *chat.Request, fail ErrorWriter, body func(n int) any) {
	InfoFrom(r.Context()).Model = req.Model
	o.See(r, req)
	n := 0
	gen, err := o.Models.Open(chat.WithKeepAlive(r.Context(), req.KeepAlive), req.Model)
	if err == nil {
		m := gen.Model()
		InfoFrom(r.Context()).Served = m.ID
		images, bad := o.files(r.Context(), m, req)
		defer images.forget()
		if bad != nil {
			fail(w, r, bad)
			return
		}
		n, err = gen.Count(r.Context(), req)
	}
	if err != nil {
		fail(w, r, asError(r.Context(), err))
		return
	}
	WriteJSON(w, http.StatusOK, body(n))
}

// abort closes the connection of r without finishing the reply.
func abort(r *http.Request, err error) {
	InfoFrom(r.Context()).Err = err
	panic(http.ErrAbortHandler)
}

// SchemaHeader says what became of the form that was asked for: chat.Enforced at once, the others behind the reply.
const SchemaHeader = "X-Hearth-Schema"

// setOutcome sets the SchemaHeader of a reply that has ended, unless that was told before; prefix is http.TrailerPrefix where the
// headers are out.
func setOutcome(h http.Header, prefix string, u *chat.Usage) {
	if u != nil && u.Form != "" && h.Get(SchemaHeader) == "" {
		h.Set(prefix+SchemaHeader, string(u.Form))
	}
}

// PromptHeaders are the headers that say what became of a prompt.
var PromptHeaders = [...]string{"X-Hearth-Cache", "X-Hearth-Parting", HistoryHeader, "X-Hearth-Max-Tokens", "X-Hearth-Truncation", SchemaHeader}

// promptHeaders are the values of PromptHeaders, where they are known before the headers go out, which never wait for them. An
// empty one is not sent.
func promptHeaders(u *chat.Usage) (values [len(PromptHeaders)]string) {
	if u == nil {
		return values
	}
	cache, history, most, dropped, schema := "", "", "", "", ""
	if u.Hit != "" {
		cache = fmt.Sprintf("%s; cached=%d; computed=%d; common=%d", u.Hit, u.Cached, u.Prompt-u.Cached, u.Common)
		if u.Parted > 0 {
			cache += fmt.Sprintf("; message=%d", u.Parted-1)
		}
		if u.Disk > 0 {
			cache += fmt.Sprintf("; disk=%d", u.Disk)
		}
	}
	if u.Spliced > 0 || u.Replayed > 0 { // the prompt depends on what was generated before
		history = fmt.Sprintf("exact; spliced=%d", u.Spliced)
		if u.Replayed > 0 {
			history += fmt.Sprintf("; reasoning=%d", u.Replayed)
		}
	}
	if u.Limit > 0 { // fewer tokens than the request asked for
		most = strconv.Itoa(u.Limit)
	}
	if u.Dropped > 0 {
		dropped = "dropped=" + strconv.Itoa(u.Dropped)
	}
	if u.Form == chat.Enforced {
		schema = string(u.Form)
	}
	return [...]string{cache, PartingText(u), history, most, dropped, schema}
}

// PartingText is the text before and after the place where a prompt parted from what its caller left before, as two strings in
// quotes, in ASCII and escaped as in Go; "" if it is not the caller's to see, or nothing parted.
func PartingText(u *chat.Usage) string {
	if u == nil || u.Around == [2]string{} {
		return ""
	}
	return strconv.QuoteToASCII(u.Around[0]) + " " + strconv.QuoteToASCII(u.Around[1])
}

// gone reports whether ctx ended because the client left, rather than by a cause the server gave.
func gone(ctx context.Context) bool {
	var e *chat.Error
	return ctx.Err() != nil && !errors.As(context.Cause(ctx), &e)
}

// feed generates req and hands its events to yield until the last EventFinish, an error, or false. What was generated is counted
// whichever it is.
func (o Options) feed(ctx context.Context, req *chat.Request, enc Encoder, yield func(*chat.Event) bool) *chat.Error {
	info := InfoFrom(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	info.Model = req.Model
	began, loaded := time.Now(), info.Loading()
	gen, err := o.Models.Open(chat.WithKeepAlive(ctx, req.KeepAlive), req.Model)
	loaded()
	if err != nil {
		return asError(ctx, err)
	}
	info.Advance()
	m := gen.Model()
	if info.Served = m.ID; info.Model == "" {
		info.Model = m.ID
	}
	enc.Begin(m)
	images, bad := o.files(ctx, m, req)
	defer images.forget()
	if bad != nil {
		return bad
	}
	events, err := gen.Generate(ctx, req)
	info.Prompt = time.Since(began) - info.Load
	if again := o.Again || req.MCP != nil; err != nil || !again || len(images.all) == 0 {
		images.forget()
		if o.Queued != nil {
			o.Queued()
		}
	}
	if err != nil {
		return asError(ctx, err)
	}
	open := max(req.N, 1)
	usage := &chat.Usage{}
	info.Usage = usage
	var check *formCheck
	left := false // nobody reads on: the rest is only counted
	for e, err := range guard(events) {
		if err != nil {
			addUsage(usage, e.Usage)
			info.Finish = e.Finish
			return asError(ctx, err)
		}
		if e.Kind == chat.EventStart {
			check = check.begin(ctx, req, e.Usage)
		}
		check.event(&e)
		info.Advance()
		switch e.Kind {
		case chat.EventStart:
			addUsage(usage, e.Usage)
			if o.Decided != nil && e.Usage != nil && e.Usage.Decisions != nil {
				o.Decided(ctx, e.Usage)
			}
		case chat.EventToolStart:
			info.ToolCalls++
		case chat.EventFinish:
			addUsage(usage, e.Usage)
			info.Finish = e.Finish
			open--
		}
		if e.Kind != chat.EventStart && info.First.IsZero() {
			info.First = time.Now()
		}
		if !left && !yield(&e) {
			left = true
			cancel()
		}
		switch {
		case open > 0:
		case left:
			return asError(ctx, context.Canceled)
		default:
			return nil
		}
	}
	return asError(ctx, errors.New("the reply ended without its finish event"))
}

// addUsage adds what one choice generated; the prompt is the same for all of them.
func addUsage(sum, u *chat.Usage) {
	if u == nil {
		return
	}
	if u.Images != nil {
		sum.Images = u.Images
	}
	sum.Disk, sum.Added, sum.Limit, sum.Dropped = u.Disk, u.Added, u.Limit, u.Dropped
	sum.Prompt, sum.Cached, sum.Hit, sum.Common, sum.Parted, sum.Spliced = u.Prompt, u.Cached, u.Hit, u.Common, u.Parted, u.Spliced
	sum.Around, sum.Instead, sum.Replayed, sum.Form = u.Around, u.Instead, u.Replayed, u.Form
	for _, b := range u.Bounds {
		if !slices.Contains(sum.Bounds, b) {
			sum.Bounds = append(sum.Bounds, b)
		}
	}
	for _, name := range u.Loose {
		if !slices.Contains(sum.Loose, name) {
			sum.Loose = append(sum.Loose, name)
		}
	}
	sum.Mended = append(sum.Mended, u.Mended...)
	sum.Waited = u.Waited
	sum.Tokenized, sum.Queued, sum.Matched, sum.Prefill, sum.Decode = u.Tokenized, u.Queued, u.Matched, u.Prefill, max(sum.Decode, u.Decode)
	sum.Output += u.Output
	sum.Drafted += u.Drafted
	sum.Accepted += u.Accepted
	if u.Prediction != nil {
		sum.Prediction = u.Prediction
	}
	sum.Reasoning += u.Reasoning
}

// asError prefers the cause of a cancelled context (the server is shutting down) over the cancellation itself.
func asError(ctx context.Context, err error) *chat.Error {
	if ctx.Err() != nil {
		var cause *chat.Error
		if errors.As(context.Cause(ctx), &cause) {
			return cause
		}
	}
	return chat.AsError(err)
}

// guard turns a panic of the generator into an error of this one call; a panic of the consumer passes.
func guard(events iter.Seq2[chat.Event, error]) iter.Seq2[chat.Event, error] {
	return func(yield func(chat.Event, error) bool) {
		inYield := false
		defer func() {
			if inYield {
				return
			}
			if p := recover(); p != nil {
				yield(chat.Event{}, &chat.Error{Kind: chat.Internal, Msg: "internal error while generating",
					Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())})
			}
		}()
		for e, err := range events {
			inYield = true
			if !yield(e, err) {
				inYield = false
				return
			}
			inYield = false
		}
	}
}
