package engine

import (
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"hearth/internal/sample"
)

// TestWatched: who watches a stream hears of its beginning, its tokens and its end, and takes all that it would have read; a
// stream that the same is applied to is read as the first is.
func TestWatched(t *testing.T) {
	var mu sync.Mutex
	var steps int
	ended := make(chan struct{}, 1000)
	e := start(t, &hooked{}, func(c *Config) {
		c.Trace = func(Step) {
			mu.Lock()
			steps++
			mu.Unlock()
		}
	})
	p := Prompt{Tokens: []int32{1, 2, 3}, MaxTokens: 9, Logprobs: 2, Sampling: sample.Params{Temperature: 1, Seed: 4}}
	s, err := e.Submit(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var want []Token
	for tok, err := s.Next(); err == nil; tok, err = s.Next() {
		want = append(want, tok)
	}
	heard := map[bool]int{}
	p.Watch = func(step bool) {
		mu.Lock()
		heard[step]++
		mu.Unlock()
		ended <- struct{}{}
	}
	if s, err = e.Submit(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	f := NewStream(t.Context(), 3, func() {})
	var got []Token
	for n := (Update{}); n.Reason == Running; {
		<-ended
		n = s.Take()
		got = append(got, n.Tokens...)
		f.Apply(n)
	}
	f.Apply(Update{Tokens: want, Reason: Error, Err: errors.New("after the end")})
	same := func(a, b Token) bool { return a.ID == b.ID && a.Logprob == b.Logprob && slices.Equal(a.Top, b.Top) }
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("took %v, want %v", got, want)
	}
	var read []Token
	for {
		tok, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, tok)
	}
	if !slices.EqualFunc(read, want, same) || f.Finish() != Length || f.Usage() != s.Usage() || f.StopID() != -1 {
		t.Errorf("fed %v, %v, %+v; want %v, %+v", read, f.Finish(), f.Usage(), want, s.Usage())
	}
	mu.Lock()
	defer mu.Unlock()
	if heard[false] != 2 || heard[true] < len(want) || steps == 0 {
		t.Errorf("heard %v in %d steps", heard, steps)
	}
}

// TestConstraints: what comes over the channel counts as what Constrain would return.
func TestConstraints(t *testing.T) {
	e := start(t, &hooked{}, nil)
	answer := func() func(int32) Constraint {
		n := 0
		return func(id int32) Constraint {
			switch n++; n % 4 {
			case 1:
				return Constraint{Forced: []int32{id % 7, 11}}
			case 3:
				return Constraint{Mask: sample.Set{1 << 20, 1 << (id % 33)}}
			}
			return Constraint{}
		}
	}
	tokens := func(p Prompt, each func(int32)) (ids []int32) {
		p.Tokens, p.MaxTokens, p.Logprobs = []int32{1, 2, 3}, 12, -1
		s, err := e.Submit(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for tok, err := s.Next(); err == nil; tok, err = s.Next() {
			ids = append(ids, tok.ID)
			each(tok.ID)
		}
		return ids
	}
	want := tokens(Prompt{Constrain: answer()}, func(int32) {})
	constrain, answers := answer(), make(chan Constraint, 1)
	got := tokens(Prompt{Constraints: answers}, func(id int32) { answers <- constrain(id) })
	if !slices.Equal(got, want) || len(want) != 12 {
		t.Errorf("over the channel %v, called %v", got, want)
	}
}
