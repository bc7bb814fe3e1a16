package bench

import (
	"context"
	"errors"
	"fmt"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/regular"
)

// formSchema has keys that say more than their values.
const formSchema = `{"type": "object", "properties": {"first_name": {"type": "string", "maxLength": 12}, "last_name": {"type": "string", "maxLength": 12},
	"email_verified": {"type": "boolean"}, "years_of_experience": {"type": "integer", "minimum": 0, "maximum": 60}, "preferred_language": {"enum": ["English", "French", "German"]},
	"address": {"type": "object", "properties": {"street": {"type": "string", "maxLength": 16}, "city": {"type": "string", "maxLength": 12}, "postal_code": {"type": "string", "pattern": "^[0-9]{5}$"}},
		"required": ["street", "city", "postal_code"], "additionalProperties": false},
	"subscription_level": {"enum": ["free", "premium"]}, "account_is_active": {"type": "boolean"}},
	"required": ["first_name", "last_name", "email_verified", "years_of_experience", "preferred_language", "address", "subscription_level", "account_is_active"], "additionalProperties": false}`

// forms has a model write JSON of fixed keys, with what has to follow given at once, token by token, and at once with drafts, by
// turns with as many tokens of its own.
func (b *engineBench) forms() ([]figure, error) {
	rounds := b.scaled(15)
	if b.f.folder == "" {
		return nil, errors.New("forms needs a model that writes: --folder DIR")
	}
	text, err := generate.Load(regular.Dir(b.f.folder), "")
	if err != nil {
		return nil, err
	}
	e, err := b.engine(1024, 0, nil)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	ahead, err := b.drafting(1024)
	if err != nil {
		return nil, err
	}
	defer ahead.Close()
	tap := &tap{Tokens: e}
	text.Engine = generate.Over(tap)
	g, err := generate.New(text)
	if err != nil {
		return nil, err
	}
	r := formRequest("Tell me about a customer, in JSON.")
	steps := map[*engine.Engine]int64{}
	held := func(on *engine.Engine, oneByOne bool) (float64, error) {
		tap.Tokens, tap.oneByOne, tap.forced = on, oneByOne, 0
		before := on.Stats().Steps
		events, err := g.Generate(b.ctx, r)
		if err != nil {
			return 0, err
		}
		for _, err := range events {
			if err != nil {
				return 0, err
			}
		}
		steps[on] = on.Stats().Steps - before
		return rate(tap.stream), nil
	}
	free := func() (float64, error) {
		p := tap.prompt
		p.Constrain, p.Mask, p.StopIDs, p.MaxTokens = nil, nil, nil, tap.stream.Usage().Generated
		s, err := e.Submit(b.ctx, p)
		if err != nil {
			return 0, err
		}
		_, err = read(s)
		return rate(s), err
	}
	var freely, once, slow, drafted, ratios, slowRatios, draftRatios []float64
	for i := range rounds {
		s, err := held(e, true)
		if err != nil {
			return nil, err
		}
		d, err := held(ahead, false)
		if err != nil {
			return nil, err
		}
		h, err := held(e, false)
		if err != nil {
			return nil, err
		}
		f, err := free()
		if err != nil {
			return nil, err
		}
		freely, once, slow, ratios, slowRatios = append(freely, f), append(once, h), append(slow, s), append(ratios, h/f), append(slowRatios, s/f)
		drafted, draftRatios = append(drafted, d), append(draftRatios, d/h)
		b.progress(fmt.Sprintf("round %d of %d: %.0f tokens a second free, %.0f of JSON", i+1, rounds, f, h))
	}
	return []figure{
		{"tokens of the JSON", float64(tap.stream.Usage().Generated), "", 0}, {"of these forced", float64(tap.forced), "", 0},
		{"free", median(freely), "tok/s", 0}, {"JSON", median(once), "tok/s", 0}, {"JSON, against free", median(ratios), "times", 0},
		{"JSON, token by token", median(slow), "tok/s", 0}, {"JSON, token by token, against free", median(slowRatios), "times", 0},
		{"JSON, with drafts", median(drafted), "tok/s", 0}, {"JSON, with drafts, against without", median(draftRatios), "times", 0},
		{"steps", float64(steps[e]), "", 0}, {"steps with drafts", float64(steps[ahead]), "", 0},
	}, nil
}

// formRequest asks for JSON of fixed keys.
func formRequest(prompt string) *chat.Request {
	return &chat.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: prompt}}}}, MaxTokens: 500, Thinking: chat.Thinking{Mode: chat.Off},
		Sampling: chat.Sampling{Temperature: new(0.0)}, Form: &chat.Form{Kind: chat.FormSchema, Strict: true, Source: formSchema}}
}

// rate is the tokens a second behind a stream's first.
func rate(s *engine.Stream) float64 {
	u := s.Usage()
	return float64(u.Generated-1) / u.Ended.Sub(u.First).Seconds()
}

// tap keeps the last prompt of an engine with its stream, and counts what was forced.
type tap struct {
	generate.Tokens
	prompt   engine.Prompt
	stream   *engine.Stream
	forced   int
	oneByOne bool // each token that is forced has a step of its own
}

func (t *tap) Submit(ctx context.Context, p engine.Prompt) (s *engine.Stream, err error) {
	t.prompt = p
	next := p.Constrain
	var coming []int32
	p.Constrain = func(id int32) engine.Constraint {
		c := next(id)
		t.forced += len(c.Forced)
		if !t.oneByOne {
			return c
		}
		if coming = append(coming, c.Forced...); len(coming) > 0 {
			c.Forced, coming = coming[:1], coming[1:]
		}
		return c
	}
	t.stream, err = t.Tokens.Submit(ctx, p)
	return t.stream, err
}
