// Package embed runs local models that turn texts into vectors or scores: it encodes the texts of requests, packs those
// of all requests that wait into steps without padding, and hands every row to whom it belongs. It implements
// chat.Embedder and chat.Ranker; package catalog makes one Service per loaded model.
//
// One goroutine per Service touches the model. A text is in one step as a whole, so what it becomes depends on nothing
// that others asked for. The package never sees JSON and keeps nothing of a request.
package embed

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/model"
	"hearth/internal/tokenizer"
)

// Config is what a Service is made of.
type Config struct {
	Info      chat.Model // ID, Path, Created, Description; the rest New fills in
	Model     *model.Encoder
	Backend   backend.Backend
	Tokenizer *tokenizer.Tokenizer
	// Memory is of the steps here; nil: nobody counts it.
	Memory *Memory
	// Away runs a batch where the model is, if that is another process: Model then has its facts only and Backend is nil.
	Away func(context.Context, *backend.Batch) (rows []float32, err error)

	// MaxTokens of a text, own tokens included; 0: what the model's folder says, or its positions.
	MaxTokens int
	// Truncate cuts longer texts of requests that do not say; else they are refused.
	Truncate bool
	// StepRows is from how many tokens on a step is full; a text that has more has a step of its own.
	StepRows int
	// Stuck, if set, is called once for a step here that does not end, with how long that has been; it must not wait.
	Stuck func(time.Duration)
	// MaxWaiting requests wait at most; more are told to come back later.
	MaxWaiting int
}

// StepRows is a good value for Config's: enough to share the reading of weights, few enough for what a layer makes of them to
// stay in a processor's cache.
const StepRows = 512

// Service is one model that embeds or ranks, safe for concurrent use.
type Service struct {
	cfg      Config
	limit    int                   // tokens of a text
	around   [2][]int32            // the tokenizer's own ids before and after a text
	pair     []tokenizer.PairPiece // of a query and a text; nil: both follow each other
	reranker *generativeReranker   // how a model that answers yes or no is asked; nil: it reads a pair
	queue    queue
	counts   struct {
		requests, texts, tokens, truncated, steps atomic.Int64
	}
}

var (
	_ chat.Embedder = (*Service)(nil)
	_ chat.Ranker   = (*Service)(nil)
)

// leastRoom is how many tokens a text must be able to have besides the tokenizer's own.
const leastRoom = 1

// New starts a Service. Close ends it before the model is closed.
func New(cfg Config) (*Service, error) {
	s := &Service{cfg: cfg}
	s.around[0], s.around[1] = cfg.Tokenizer.Around()
	s.pair = cfg.Tokenizer.Pair()
	m := cfg.Model
	var err error
	if s.limit, err = Limit(m, cfg.MaxTokens); err != nil {
		return nil, err
	}
	if own := len(s.around[0]) + len(s.around[1]); s.limit < own+leastRoom {
		return nil, fmt.Errorf("texts of %d tokens leave no room beside the %d of the tokenizer", s.limit, own)
	}
	if m.Pooling.Kind == model.Ranks {
		s.reranker = newGenerativeReranker(m, cfg.Tokenizer)
	}
	if n := cfg.Tokenizer.Size(); n > m.Vocab {
		return nil, fmt.Errorf("the tokenizer has %d tokens, the model %d", n, m.Vocab)
	}
	s.cfg.Info.Context = s.limit
	s.cfg.Info.Kind = chat.Embeds
	if m.Pooling.Kind == model.Ranks {
		s.cfg.Info.Kind = chat.Ranks
	}
	s.queue.start(s)
	return s, nil
}

// Limit is how many tokens a text of the model may have, its own ones included, if asked, unless that is 0.
func Limit(m *model.Encoder, asked int) (int, error) {
	limit := m.Context
	if m.Pooling.MaxTokens > 0 && (limit == 0 || m.Pooling.MaxTokens < limit) {
		limit = m.Pooling.MaxTokens
	}
	switch {
	case asked > 0 && m.Context > 0 && asked > m.Context:
		return 0, fmt.Errorf("texts of %d tokens were asked for, the model has %d positions", asked, m.Context)
	case asked > 0:
		return asked, nil
	case limit == 0:
		return defaultLimit, nil
	}
	return limit, nil
}

// defaultLimit is assumed where neither the folder nor the user says how long a text may be.
const defaultLimit = 512

// Model implements chat.Embedder and chat.Ranker.
func (s *Service) Model() chat.Model { return s.cfg.Info }

// Embed implements chat.Embedder.
func (s *Service) Embed(ctx context.Context, r *chat.EmbedRequest) (*chat.Embeddings, error) {
	n, most := r.Dimensions, s.cfg.Model.Width
	switch {
	case n == 0:
		n = most
	case n < 1 || n > most:
		return nil, chat.Invalidf("dimensions", "%d is out of range: vectors of this model have %d numbers, of which the first ones can be kept", n, most)
	}
	limit, err := s.room(&r.Overflow)
	if err != nil {
		return nil, err
	}
	q := &request{ctx: ctx, width: n, came: time.Now()}
	for i := range r.Inputs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		in := &r.Inputs[i]
		ids, err := s.text(ctx, in, limit, s.truncates(&r.Overflow))
		if err == nil {
			err = q.add(ids, nil, in.Path)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.run(q); err != nil {
		return nil, err
	}
	out := &chat.Embeddings{Tokens: q.tokens, Vectors: make([][]float32, len(q.texts)), EncodeTimes: q.took}
	for i := range out.Vectors {
		out.Vectors[i] = q.out[i*n:][:n:n]
	}
	return out, nil
}

// room is how many tokens a text of a request may have.
func (s *Service) room(o *chat.Overflow) (int, error) {
	least := len(s.around[0]) + len(s.around[1]) + leastRoom
	switch {
	case o.Limit == 0:
		return s.limit, nil
	case o.Limit < least || o.Limit > s.limit:
		return 0, chat.Invalidf("truncate_prompt_tokens", "%d is out of range: must be between %d and %d", o.Limit, least, s.limit)
	}
	return o.Limit, nil
}

func (s *Service) truncates(o *chat.Overflow) bool {
	return o.Mode == chat.On || o.Limit > 0 || o.Mode == chat.Default && s.cfg.Truncate
}

// text is the ids of an input. The tokenizer's own around a text stay when it is cut.
func (s *Service) text(ctx context.Context, in *chat.Input, limit int, cut bool) ([]int32, error) {
	ids, after := in.Tokens, []int32(nil)
	for i, id := range ids {
		if id < 0 || int(id) >= s.cfg.Model.Vocab {
			return nil, chat.Invalidf(fmt.Sprintf("%s[%d]", in.Path, i), "%d is no token of the model, which has %d", id, s.cfg.Model.Vocab)
		}
	}
	if ids == nil {
		var err error
		if ids, err = s.cfg.Tokenizer.EncodeContext(ctx, in.Text, tokenizer.EncodeOptions{AddSpecial: true}); err != nil {
			return nil, encodeError(ctx, in.Path, err)
		}
		after = s.around[1]
	}
	switch {
	case len(ids) == 0 && in.Tokens != nil:
		return nil, chat.Invalidf(in.Path, "must not be empty")
	case len(ids) == 0:
		return nil, chat.Invalidf(in.Path, "the text has no tokens")
	case len(ids) <= limit:
		return ids, nil
	case !cut:
		return nil, s.tooLong(in.Path, len(ids), limit)
	}
	s.counts.truncated.Add(1)
	return append(ids[:limit-len(after)], after...), nil
}

// encodeError is that of a text that could not be encoded.
func encodeError(ctx context.Context, path string, err error) error {
	var whole *tokenizer.WholeError
	if errors.As(err, &whole) {
		return chat.Boundf(chat.BoundWhole, path, "the text cannot be encoded: %v", whole)
	}
	return context.Cause(ctx)
}

func (s *Service) tooLong(path string, tokens, limit int) error {
	e := chat.Invalidf(path, "the text has %d tokens and the model reads %d: send a shorter one, or truncate: true to have it cut", tokens, limit)
	e.Code, e.Tokens, e.Limit = "context_length_exceeded", tokens, limit
	return e
}

// run waits until all texts of the request are done.
func (s *Service) run(q *request) error {
	s.counts.requests.Add(1)
	if len(q.texts) == 0 {
		return nil
	}
	q.out = make([]float32, len(q.texts)*q.width)
	q.left, q.done = len(q.texts), make(chan struct{})
	queued := time.Now()
	if err := s.queue.put(q, s.cfg.MaxWaiting); err != nil {
		return err
	}
	select {
	case <-q.done:
	case <-q.ctx.Done():
		s.queue.drop(q)
		<-q.done // its step, if it is in one, has let go of it
	}
	switch {
	case q.ctx.Err() != nil && q.err != nil:
		return context.Cause(q.ctx)
	case q.err != nil:
		return asError(q.err)
	case q.broken:
		return asError(errors.New("the model gave numbers that are not finite"))
	}
	q.took = chat.EncodeTimes{Tokenized: queued.Sub(q.came), Queued: q.began.Sub(queued), Ran: time.Since(q.began)}
	return nil
}

func asError(err error) error {
	var e *chat.Error
	var short *budget.ShortError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &short):
		return &chat.Error{Kind: chat.Overloaded, RetryAfter: 5 * time.Second, Msg: fmt.Sprintf("not enough memory: %v; %s", short, short.Hint()), Err: err}
	}
	return &chat.Error{Kind: chat.Internal, Msg: "the model failed; see the server's log", Err: err}
}

// Stats are what a Service has done so far.
type Stats struct {
	Requests, Texts, Tokens, Truncated, Steps int64
	Waiting                                   int // requests
}

// Stats may be called at any time.
func (s *Service) Stats() Stats {
	c := &s.counts
	return Stats{c.requests.Load(), c.texts.Load(), c.tokens.Load(), c.truncated.Load(), c.steps.Load(), s.queue.waiting()}
}

// Close ends the Service; what waits fails.
func (s *Service) Close() error {
	s.queue.close()
	return nil
}

// request is what the loop needs of a call.
type request struct {
	ctx    context.Context
	texts  []text
	tokens int
	width  int       // numbers to keep of every row
	out    []float32 // texts × width
	came   time.Time
	took   chat.EncodeTimes // set at the end

	// Of the queue.
	broken bool      // the loop's while left > 0: some number is none
	next   int       // first text that is in no step yet
	left   int       // texts that are not done
	began  time.Time // the first step that has some of it
	err    error
	done   chan struct{}
}

// text is a span to be.
type text struct {
	ids   []int32
	types []int32 // nil: all 0
}

// mostTokens bounds the tokens of a request: what stands in every text, as a ranker's query does, makes many of few bytes.
const mostTokens = 1 << 22

// add takes in a text, which came from path.
func (q *request) add(ids, types []int32, path string) error {
	q.texts = append(q.texts, text{ids, types})
	if q.tokens += len(ids); q.tokens > mostTokens {
		return chat.Boundf(chat.BoundTokens, path, "the texts up to this one have more than %d tokens, with what stands around each; send fewer at once", mostTokens)
	}
	return nil
}
