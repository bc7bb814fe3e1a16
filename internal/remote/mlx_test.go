//go:build darwin || linux

package remote

import (
	"errors"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/dl"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/engine"
)

func init() {
	openMLX = func(path string) (backend.Backend, error) {
		return mlx.Open(mlx.Config{Path: path, Device: "cpu", Link: testshim.Link})
	}
	abort = func(path string) {
		l, err := dl.Open(path) // which has the C library's
		if err != nil {
			panic(err)
		}
		f, ok := l.Symbol("abort")
		if !ok {
			panic("there is no abort")
		}
		l.Call(f)
	}
}

// TestMLX: a worker process that runs MLX answers as it does in this process; when it calls abort in the middle of a reply, as
// MLX does where the GPU fails, or is killed, the stream ends with an error and another worker process answers the same again.
func TestMLX(t *testing.T) {
	path := testshim.Library(t, testshim.Newest)
	here := local(t, spec{MLX: path})
	s, err := here.Submit(t.Context(), prompt(60, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := ids(read(s))
	const rounds = 6
	e, c := open(t, spec{MLX: path, Abort: 200}, nil)
	for round := range rounds {
		if got := ids(read(mustSubmit(t, e, prompt(60, 1)))); got != want {
			t.Errorf("round %d: %s, here %s", round, got, want)
		}
		p := prompt(60, 2)
		p.MaxTokens = 1000
		s := mustSubmit(t, e, p)
		if round%2 == 1 {
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
			c.current().Kill()
		}
		r := read(s)
		var lost *engine.LostError
		how := [...]string{"exit status 2: SIGABRT: abort", "signal: killed"}[round%2]
		if !errors.As(r.Err, &lost) || !lost.Began || !strings.Contains(r.Err.Error(), how) {
			t.Errorf("round %d: it ends with %v", round, r.Err)
		}
	}
	if _, loaded := e.Worker(); loaded < rounds {
		t.Errorf("%d workers in %d rounds", loaded, rounds)
	}
}

func ids(r reply) string {
	var b strings.Builder
	for _, t := range r.Tokens {
		b.WriteString(" ")
		b.WriteString(string(rune('A' + t.ID)))
	}
	if r.Err != nil {
		b.WriteString(" " + r.Err.Error())
	}
	return b.String()
}
