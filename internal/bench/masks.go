package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"hearth/internal/engine"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
)

// masks decodes 16 sequences, by turns free and with each held to a schema: every token of each needs a set over the whole
// vocabulary, which is made while the next step runs.
func (b *engineBench) masks() ([]figure, error) {
	const sequences, rounds = 16, 5
	prompt, tokens := b.scaled(64), max(b.scaled(100), 8)
	var mu sync.Mutex
	var steps []float64
	e, err := b.engine(2*sequences*(prompt+tokens), 0, func(s engine.Step) {
		if s.Decodes == sequences && s.Prompt == 0 {
			mu.Lock()
			steps = append(steps, s.Run.Seconds())
			mu.Unlock()
		}
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	vocab := benchVocab(b.m.Vocab)
	jsonschema.Warm(vocab)
	var followed time.Duration // by all sequences
	var made int
	round := func(held bool) (float64, error) {
		mu.Lock()
		steps = steps[:0]
		mu.Unlock()
		var streams []*engine.Stream
		for i := range sequences {
			p := engine.Prompt{Tokens: b.text(prompt), MaxTokens: tokens, Logprobs: -1}
			if held {
				next, err := benchMatcher(vocab, i)
				if err != nil {
					return 0, err
				}
				p.Mask = next(-1)
				p.Constrain = func(id int32) engine.Constraint {
					mask, took := timed(func() []uint64 { return next(id) })
					mu.Lock()
					defer mu.Unlock()
					followed += took
					made++
					return engine.Constraint{Mask: mask}
				}
			}
			s, err := e.Submit(b.ctx, p)
			if err != nil {
				return 0, err
			}
			streams = append(streams, s)
		}
		for _, s := range streams {
			if _, err := read(s); err != nil {
				return 0, err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		return median(slices.Clone(steps)), nil
	}
	var free, held, ratio []float64
	for i := range rounds {
		f, err := round(false)
		if err != nil {
			return nil, err
		}
		h, err := round(true)
		if err != nil {
			return nil, err
		}
		free, held, ratio = append(free, f), append(held, h), append(ratio, h/f)
		b.progress(fmt.Sprintf("round %d of %d: a step takes %.1f ms, with sets %.1f ms", i+1, rounds, f*1e3, h*1e3))
	}
	one := followed.Seconds() / float64(max(made, 1))
	return []figure{
		{"a token and the set behind it", one * 1e6, "us", 0},
		{"step of 16 sequences, free", median(free) * 1e3, "ms", 0},
		{"step of 16 sequences, each held", median(held) * 1e3, "ms", 0},
		{"ratio", median(ratio), "", 0},
		{"16 sets of a free step", 100 * sequences * one / median(free), "%", 0},
	}, nil
}

// timed tells the processor time that making a set takes, the time where that is not known.
func timed(set func() []uint64) (mask []uint64, took time.Duration) {
	if !cpuClocks {
		start := time.Now()
		mask = set()
		return mask, time.Since(start)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	mask = set()
	return mask, threadTime() - start
}

// benchSchemas are as those of requests.
var benchSchemas = []string{
	`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 30}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
	  "email": {"type": "string", "format": "email"}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["name", "age"]}`,
	`{"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}, "days": {"type": "integer"}},
	  "required": ["city", "unit"], "additionalProperties": false}`,
	`{"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}, {"type": "object", "properties": {"at": {"type": "string",
	  "format": "date-time"}, "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"}}, "required": ["at", "id"]}]}}`,
	`{"type": "object"}`,
}

// benchMatcher follows texts under one of the schemas: it takes a token, none if it is negative, and gives the set of those that
// may come next. Where a text is complete the next one begins.
func benchMatcher(v *grammar.Vocab, i int) (next func(id int32) []uint64, err error) {
	root, err := schema.Parse([]byte(benchSchemas[i%len(benchSchemas)]))
	if err != nil {
		return nil, err
	}
	s, err := jsonschema.Read(context.Background(), root)
	if err != nil {
		return nil, err
	}
	g, _, err := s.Grammar(context.Background(), jsonschema.Options{})
	if err != nil {
		return nil, err
	}
	budget := grammar.NewBudget(1)
	m := v.Matcher(g, budget)
	return func(id int32) []uint64 {
		if budget.Token(); id >= 0 {
			m.Accept(id)
		}
		may := m.Allowed()
		if may == nil {
			m = v.Matcher(g, budget)
			may = m.Allowed()
		}
		return may
	}, nil
}

// benchVocab has so many tokens, as those of today: words, with a blank before some and what JSON is made of around others.
func benchVocab(size int) *grammar.Vocab {
	r := rand.New(rand.NewPCG(3, 4))
	edges := []string{"", "", "", " ", " ", " ", `"`, `",`, `":`, "{"}
	texts := make([][]byte, size)
	for i := range texts {
		if i < 256 {
			texts[i] = []byte{byte(i)}
			continue
		}
		var word strings.Builder
		word.WriteString(edges[r.IntN(len(edges))])
		for range 1 + r.IntN(9) {
			word.WriteByte(byte('a' + r.IntN(26)))
		}
		texts[i] = []byte(word.String())
	}
	return grammar.NewVocab(size, func(id int32) []byte { return texts[id] })
}
