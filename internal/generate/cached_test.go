package generate

import (
	"testing"
	"time"

	"hearth/internal/chat"
)

// What the engine knows about the prompt's start is in the first event and in the last ones, once per request however
// many choices there are; the choices are one client to the engine, two requests are two.
func TestCached(t *testing.T) {
	g, s := newTest(t, "hello")
	s.cached = 11
	r := &chat.Request{N: 2, Messages: []chat.Message{text(chat.User, "Hi")}}
	for range 2 {
		seq, err := g.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for e, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if u := e.Usage; u != nil {
				n++
				if u.Cached != 11 || u.Common != 12 || u.Hit != "lcp" || u.Queued != 1 || u.Prefill != 2*time.Nanosecond || u.Decode != 4 {
					t.Errorf("event %v: usage %+v", e.Kind, u)
				}
			}
		}
		if n != 3 {
			t.Errorf("%d events with usage, want 3", n)
		}
	}
	c := s.prompts
	if len(c) != 4 || c[0].Client == 0 || c[0].Client != c[1].Client || c[0].Client == c[2].Client {
		t.Errorf("clients of %d prompts: %d %d %d", len(c), c[0].Client, c[1].Client, c[2].Client)
	}
}
