package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"hearth/internal/engine"
	"hearth/internal/grammar"
)

// masks decodes 16 sequences, by turns free and with each held to a form at a place where any value may begin, which costs
// most: every token of each needs a set over the whole vocabulary.
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
	alone := benchMatcher(vocab)
	var mask []float64
	for range 100 {
		start := time.Now()
		alone()
		mask = append(mask, time.Since(start).Seconds())
	}
	round := func(held bool) (float64, error) {
		mu.Lock()
		steps = steps[:0]
		mu.Unlock()
		var streams []*engine.Stream
		for range sequences {
			p := engine.Prompt{Tokens: b.text(prompt), MaxTokens: tokens, Logprobs: -1}
			if held {
				next := benchMatcher(vocab)
				p.Constrain = func(int32) engine.Constraint { return engine.Constraint{Mask: next()} }
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
	return []figure{
		{"a set by itself", median(mask) * 1e3, "ms", 0},
		{"step of 16 sequences, free", median(free) * 1e3, "ms", 0},
		{"step of 16 sequences, each held", median(held) * 1e3, "ms", 0},
		{"ratio", median(ratio), "", 0},
	}, nil
}

// benchMatcher gives a set per call, each where any value may begin.
func benchMatcher(v *grammar.CallVocab) func() []uint64 {
	form := grammar.Call([]grammar.Tool{{Name: "f"}}, "")
	budget := grammar.NewBudget(1)
	begin := func() *grammar.CallMatcher {
		m := v.Matcher(&form.CallGrammar, budget)
		m.Accept([]byte(`{"name": "f", "arguments": {"a": `))
		return m
	}
	m, depth := begin(), 0
	return func() []uint64 {
		if depth++; depth == 100 {
			m, depth = begin(), 0
		}
		budget.Token()
		m.Accept([]byte("["))
		return m.Allowed()
	}
}

// benchVocab has so many tokens, as those of today: words, with a blank before some and what JSON is made of around others.
func benchVocab(size int) *grammar.CallVocab {
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
	return grammar.NewCallVocab(size, func(id int32) []byte { return texts[id] })
}
