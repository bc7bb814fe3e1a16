package openai

import (
	"context"
	"iter"
	"math"
	"net/http"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// maxCompletions bounds the choices of one request over all its prompts.
const maxCompletions = 1024

// completionRequest is a decoded call of /v1/completions.
type completionRequest struct {
	request
	prompts  []chat.Prompt
	choices  int // sent per prompt
	bestOf   int // generated per prompt
	logprobs bool
	top      int
}

func (h handler) completions(w http.ResponseWriter, r *http.Request) {
	var req *completionRequest
	body := h.Read(w, r, h.WriteError, func(v wire.Value) (err *chat.Error) {
		if req, err = decodeCompletion(v); err == nil {
			err = h.complete(r, v, &req.request, 0)
		}
		return err
	})
	if body == nil {
		return
	}
	defer body.Close()
	h.Queued = body.Close
	rep := completionReply{
		reply: reply{id: h.NewID("cmpl-"), created: h.Now().Unix(), model: req.Model, fingerprint: "hearth-" + h.Version,
			choices: req.N, logprobs: req.logprobs},
		per: req.bestOf, keep: req.choices, top: req.top,
	}
	o := h.Options
	o.Models = batch{o.Models, req.prompts, req.bestOf}
	if req.stream {
		o.Stream(w, r, &req.Request, h.WriteError, pingFrame, func(s *wire.Stream) wire.StreamEncoder {
			return newCompletionStream(s, rep, req.includeUsage)
		})
		return
	}
	o.Collect(w, r, &req.Request, h.WriteError, newCompletionCollector(rep))
}

// decodeCompletion reads the body of /v1/completions: what chat has of limits and sampling, and a prompt.
func decodeCompletion(body wire.Value) (*completionRequest, *chat.Error) {
	d := &Decoder{}
	if !d.Want(body, wire.Object) {
		return nil, d.Err()
	}
	c := &completionRequest{request: *d.request(body)}
	r := &c.request
	d.prompts(c, body.Get("prompt"), maxCompletions, "prompts")
	none := d.limits(r, body)
	d.Sample(&r.Request, body)
	d.choices(c, body)
	v := body.Get("response_format")
	d.Format(&r.Request, v, v.Get("json_schema"))
	d.Guided(&r.Request, body)
	if n := d.Int(body.Get("logprobs"), 0, maxTop); n != nil {
		c.logprobs, c.top = true, *n
	}
	r.Logprobs, r.TopLogprobs = c.logprobs || c.bestOf > c.choices, c.top
	d.around(c, body, none)
	if err := d.Err(); err != nil {
		return nil, err
	}
	r.Prompt = &c.prompts[0] // the others follow, see batch
	return c, nil
}

// prompts reads a text, a list of texts, a list of token ids, or a list of such lists. There may be most of them, whose
// name is what.
func (d *Decoder) prompts(c *completionRequest, v wire.Value, most int, what string) {
	switch v.Kind() {
	case wire.String:
		c.prompts = []chat.Prompt{{Text: d.String(v), Path: v.Path()}}
		return
	case wire.Array:
	case wire.Missing:
		d.Fail(v, "is required and must be a string or an array")
	default:
		d.Fail(v, "expected a string or an array, got %s", v.Kind())
	}
	first := wire.Missing
	var ids []int32
	for i, e := range d.Items(v) {
		if i == 0 {
			first = e.Kind()
		}
		if e.Kind() != first {
			d.Fail(e, "expected %s like the first, got %s", first, e.Kind())
		}
		if first != wire.Number && i == most {
			d.Exceeds(chat.BoundInputs, v, "too many %s: at most %d", what, most)
			return
		}
		switch first {
		case wire.String:
			c.prompts = append(c.prompts, chat.Prompt{Text: d.String(e), Path: e.Path()})
		case wire.Number:
			ids = append(ids, d.token(e))
		case wire.Array:
			p := chat.Prompt{Tokens: []int32{}, Path: e.Path()}
			for _, t := range d.Items(e) {
				p.Tokens = append(p.Tokens, d.token(t))
			}
			c.prompts = append(c.prompts, p)
		default:
			d.Fail(e, "expected a string, a token id or an array of token ids, got %s", first)
		}
	}
	if ids != nil {
		c.prompts = []chat.Prompt{{Tokens: ids, Path: v.Path()}}
	}
	if len(c.prompts) == 0 {
		d.Fail(v, "must not be empty")
	}
}

func (d *Decoder) token(v wire.Value) int32 {
	if d.tokens++; d.tokens > wire.MaxTokenIDs {
		d.Exceeds(chat.BoundTokenIDs, v, "too many token ids: at most %d in one request", wire.MaxTokenIDs)
	}
	return int32(d.Number(v, 0, math.MaxInt32))
}

// choices reads how many completions a prompt gets and how many are generated to choose from.
func (d *Decoder) choices(c *completionRequest, f wire.Value) {
	c.choices = max(c.N, 1)
	c.bestOf = c.choices
	if v := f.Get("best_of"); !v.Absent() {
		n := d.Int(v, 1, maxChoices)
		switch {
		case n == nil:
		case *n < c.choices:
			d.Fail(v, "%d is less than n, which is %d", *n, c.choices)
		case *n > c.choices && c.stream:
			d.Fail(v, "the best cannot be chosen in a stream: send stream: false")
		default:
			c.bestOf = *n
		}
	}
	c.N = c.bestOf * len(c.prompts)
	if c.N > maxCompletions {
		d.Exceeds(chat.BoundInputs, f.Get("prompt"), "%d prompts with %d completions each are too many: at most %d completions", len(c.prompts), c.bestOf, maxCompletions)
	}
}

// around reads whether replies begin with their prompts, and what follows them. Only with echo may they be nothing but that,
// which none says if it is there.
func (d *Decoder) around(c *completionRequest, f, none wire.Value) {
	echo, only := d.Bool(f.Get("echo")), !none.Absent()
	if only && !echo {
		d.Fail(none, "0 needs echo to be true: nothing else would be left")
	}
	suffix := d.OptString(f.Get("suffix"))
	if echo && suffix != "" {
		d.Fail(f.Get("suffix"), "cannot be told with echo: the reply is what is between prompt and suffix")
	}
	for i := range c.prompts {
		c.prompts[i].Echo, c.prompts[i].Only, c.prompts[i].Suffix = echo, only, suffix
	}
}

// batch answers one request with the replies to several prompts, one prompt after the other in the choices' numbers.
type batch struct {
	chat.Models
	prompts []chat.Prompt
	per     int // choices of a prompt
}

// ahead is how many choices are under way beyond those of the prompt whose reply is being sent.
const ahead = 15

// Open implements chat.Models.
func (b batch) Open(ctx context.Context, name string) (chat.Generator, error) {
	g, err := b.Models.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return batchGenerator{g, b.prompts, b.per}, nil
}

type batchGenerator struct {
	chat.Generator
	prompts []chat.Prompt
	per     int
}

// Generate implements chat.Generator. Its usage counts the prompts of all replies so far.
func (b batchGenerator) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	ctx, cancel := context.WithCancel(ctx)
	var begun []iter.Seq2[chat.Event, error]
	begin := func() error {
		one := *r
		one.N, one.Prompt = b.per, &b.prompts[len(begun)]
		events, err := b.Generator.Generate(ctx, &one)
		begun = append(begun, events)
		return err
	}
	for range min(len(b.prompts), 1+ahead/b.per) {
		if err := begin(); err != nil {
			cancel()
			return nil, err
		}
	}
	return func(yield func(chat.Event, error) bool) {
		defer cancel()
		told := chat.Usage{} // of earlier prompts
		for i := range b.prompts {
			last := told
			for e, err := range begun[i] {
				e.Choice += i * b.per
				if e.Usage != nil {
					sum := *e.Usage
					sum.Prompt += told.Prompt
					sum.Cached += told.Cached
					sum.Added += told.Added
					if told.Limit > 0 && (sum.Limit == 0 || told.Limit < sum.Limit) {
						sum.Limit = told.Limit
					}
					e.Usage, last = &sum, sum
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
			told = last
			begun[i] = nil
			if len(begun) < len(b.prompts) {
				if err := begin(); err != nil {
					yield(chat.Event{}, err)
					return
				}
			}
		}
	}, nil
}
