package budget

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// graph is a step made as backends make them: arrays of so many columns, swept together, some of a bounded number of rows, in two
// arenas that hold the larger of what lies in them in turn.
type graph struct {
	layers [][]array
	vocab  int64
	depth  int64
}

type array struct {
	cols  int64
	bound int // rows at most; 0: all
}

func (g *graph) bytes(st Step) int64 {
	var arenas [2]int64
	for i, l := range g.layers {
		n := int64(0)
		for _, a := range l {
			rows := st.Rows
			if a.bound > 0 {
				rows = min(rows, a.bound)
			}
			n += int64(rows) * a.cols * 4
		}
		arenas[i%2] = max(arenas[i%2], n)
	}
	arenas[0] = max(arenas[0], int64(min(st.Outs, 64))*g.vocab*4)
	return arenas[0] + arenas[1] + int64(st.Outs)*64 + g.depth*int64(st.Depth)
}

// TestFit: no step takes more than was fitted from others, and the fit is close.
func TestFit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		g := graph{vocab: r.Int64N(200_000), depth: r.Int64N(2) * r.Int64N(500)}
		for range 1 + r.IntN(3) {
			var l []array
			for range 1 + r.IntN(12) {
				a := array{cols: 64 * (1 + r.Int64N(100))}
				if r.IntN(6) == 0 {
					a.bound = 512 // of experts
				}
				l = append(l, a)
			}
			g.layers = append(g.layers, l)
		}
		most := Step{Rows: 1 + r.IntN(4096), Depth: r.IntN(200_000)}
		most.Outs = most.Rows
		calls := 0
		s, err := Fit(most, func(st Step) (int64, error) {
			calls++
			return g.bytes(st), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if calls > 60 {
			t.Errorf("%d measurements", calls)
		}
		for range 200 {
			st := Step{Rows: 1 + r.IntN(most.Rows), Depth: r.IntN(most.Depth + 1)}
			st.Outs = 1 + r.IntN(st.Rows)
			got, want := s.Of(st), g.bytes(st)
			if got < want-want/1000-64 {
				t.Errorf("%+v: %d bytes fitted, %d taken", st, got, want)
			}
			if one := g.bytes(Step{st.Rows, st.Depth, 1}); st.Outs == 1 && float64(got) > 1.2*float64(one)+1e6 {
				t.Errorf("%+v: %d bytes fitted, %d taken", st, got, one)
			}
			n := s.MostRows(got, st, most.Rows)
			if st.Rows > n && s.Of(Step{n + 1, st.Depth, st.Outs}) <= got {
				t.Errorf("%+v: %d rows fit its %d bytes", st, n, got)
			}
		}
	}
	bad := errors.New("no")
	if _, err := Fit(Step{Rows: 10, Outs: 1}, func(Step) (int64, error) { return 0, bad }); !errors.Is(err, bad) {
		t.Error(err)
	}
}
