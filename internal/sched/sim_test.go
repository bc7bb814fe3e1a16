package sched

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hearth/internal/kv"
)

// TestSimulation runs random traffic over random geometries to the end and checks after every step what must always
// hold: the invariants, first-in first-out starts, chunk and slot limits, decodes in every step, tables that cover
// what runs; and at the end that every sequence got its due and everything is free again.
func TestSimulation(t *testing.T) {
	seeds := uint64(120)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		if err := simulate(rand.New(rand.NewPCG(seed, 6))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

type sim struct {
	r     *rand.Rand
	s     *Scheduler
	a     *kv.Alloc
	chunk int
	made  int         // sequences submitted
	last  ID          // last one started
	live  map[ID]*Seq // submitted, not left
	ends  map[ID]int  // tokens after which it stops by itself
}

func simulate(r *rand.Rand) error {
	g := kv.Geometry{PageTokens: 4 << r.IntN(5), FixedBytes: int64(r.IntN(3) * 50), Groups: []kv.Group{{PageBytes: 10}}}
	if r.IntN(2) == 0 {
		g.Groups = append(g.Groups, kv.Group{Window: 1 + r.IntN(200), PageBytes: 7})
	}
	chunk := 1 + r.IntN(300)
	a, err := kv.NewAlloc(g, kv.Limits{Bytes: g.Need(500+r.IntN(3000), chunk), Slots: 1 + r.IntN(8), Tokens: 1000, Span: chunk})
	if err != nil {
		return err
	}
	m := &sim{r: r, a: a, s: New(Config{Chunk: chunk}, a), chunk: chunk, live: map[ID]*Seq{}, ends: map[ID]int{}}
	for m.made < 40 || len(m.live) > 0 {
		m.arrive()
		if err := m.step(); err != nil {
			return err
		}
		if err := m.s.Check(); err != nil {
			return err
		}
	}
	if a.InUse() != 0 || a.PagesInUse() != 0 || m.s.reserved != 0 {
		return fmt.Errorf("at the end %d bytes, %d pages in use, %d reserved", a.InUse(), a.PagesInUse(), m.s.reserved)
	}
	return nil
}

func (m *sim) arrive() {
	for m.made < 40 && m.r.IntN(3) == 0 {
		m.made++
		q := &Seq{ID: ID(m.made), Score: m.r.IntN(8) == 0}
		q.Prompt = 1 + m.r.IntN(m.a.Limits().Tokens-1)
		if !q.Score {
			q.Max = 1 + m.r.IntN(min(40, m.a.Limits().Tokens-q.Prompt))
		}
		m.live[q.ID], m.ends[q.ID] = q, m.r.IntN(60)
		m.s.Submit(q)
	}
	if m.made > 0 && m.r.IntN(20) == 0 {
		id := ID(1 + m.r.IntN(m.made))
		if q := m.live[id]; q != nil {
			m.s.Cancel(q)
			delete(m.live, id)
		}
	}
}

func (m *sim) step() error {
	decoding := 0
	for _, q := range m.s.running {
		if q.Known > q.Prompt {
			decoding++
		}
	}
	p := m.s.Next()
	if len(p.Items) == 0 && len(m.live) > 0 {
		return fmt.Errorf("nothing planned for %d sequences", len(m.live))
	}
	out := make([]Outcome, len(p.Items))
	prompt := 0
	for i, it := range p.Items {
		q := it.Seq
		if it.First {
			if q.ID < m.last {
				return fmt.Errorf("%d starts after %d", q.ID, m.last)
			}
			m.last = q.ID
		}
		if q.Known > q.Prompt {
			decoding--
		} else {
			prompt += it.Tokens
		}
		if err := covered(m.a.Geometry(), q, it.Tokens); err != nil {
			return err
		}
		switch end := q.Table.Len + it.Tokens; {
		case it.Want == WantLast:
			out[i].New = 1
			made := q.Known + 1 - q.Prompt
			out[i].End = made == q.Max || made > m.ends[q.ID]
		case q.Score:
			out[i].End = end == q.Prompt
		}
		if out[i].End {
			delete(m.live, q.ID)
		}
	}
	if decoding != 0 || prompt > m.chunk {
		return fmt.Errorf("%d decodes left out, %d prompt tokens in a step of %d", decoding, prompt, m.chunk)
	}
	m.s.Done(p, out)
	return nil
}

// covered: every position the step writes or reads has a page.
func covered(g kv.Geometry, q *Seq, n int) error {
	for i, grp := range g.Groups {
		from := 0
		if grp.Window > 0 {
			from = max(0, q.Table.Len-grp.Window+1)
		}
		for pos := from; pos < q.Table.Len+n; pos++ {
			if at := pos / g.PageTokens; at >= len(q.Table.Pages[i]) || q.Table.Pages[i][at] == 0 {
				return fmt.Errorf("sequence %d: position %d of group %d has no page", q.ID, pos, i)
			}
		}
	}
	return nil
}
