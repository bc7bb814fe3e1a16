package spec

import "testing"

// machine is a step's microseconds.
func (c *Costs) run(t *testing.T, machine func(rows int) float64, b *Belief, match, drafts, steps int, right func(i int) bool) (depth float64, gain float64) {
	t.Helper()
	i, tokens, took := 0, 0, 0.0
	for range steps {
		o := []Option{{Belief: b, Match: match, Looked: drafts, Drafts: drafts}}
		if !c.Plain() {
			c.Choose(o, 1, MostRows-1)
		}
		n := 0
		for n < o[0].Take && right(i+n) {
			b.Note(match+n, true)
			n++
		}
		if n < o[0].Take || o[0].Take == 0 {
			b.Note(match+n, right(i+n))
		}
		i, tokens = i+n+1, tokens+n+1
		us := machine(1 + o[0].Take)
		c.Observe(1, o[0].Take, us)
		took += us
		depth += float64(o[0].Take)
	}
	return depth / float64(steps), float64(tokens) * machine(1) / took
}

// TestGate: drafts that are right are run where rows are cheap, none where rows are dear or drafts are wrong, and a change is
// noticed.
func TestGate(t *testing.T) {
	cheap := func(rows int) float64 { return 1000 + 100*float64(rows) }
	dear := func(rows int) float64 { return 1000 * float64(rows) }
	always, never, half := func(int) bool { return true }, func(int) bool { return false }, func(i int) bool { return i%2 == 0 }
	var c Costs
	var b Belief
	if depth, gain := c.run(t, cheap, &b, 20, 15, 200, always); depth < 10 || gain < 4 {
		t.Errorf("right drafts of cheap rows: %v at once, %v times as fast", depth, gain)
	}
	if depth, gain := c.run(t, cheap, &b, 20, 15, 500, never); depth > 1 || gain < 0.95 {
		t.Errorf("they are wrong: %v at once, %v times as fast", depth, gain)
	}
	if depth, gain := c.run(t, cheap, &b, 20, 15, 500, always); depth < 8 || gain < 3 {
		t.Errorf("they are right again: %v at once, %v times as fast", depth, gain)
	}
	c.run(t, dear, &b, 20, 15, 500, half) // it is noticed
	if depth, gain := c.run(t, dear, &b, 20, 15, 500, half); depth > 1.1 || gain < 0.97 {
		t.Errorf("rows are dear: %v at once, %v times as fast", depth, gain)
	}
	if depth, gain := c.run(t, cheap, &b, 20, 15, 2000, always); depth < 1.5 || gain < 2 {
		t.Errorf("rows are cheap again: %v at once, %v times as fast", depth, gain)
	}
	c, b = Costs{}, Belief{}
	if depth, gain := c.run(t, dear, &b, 20, 15, 100, half); depth > 1.5 || gain < 0.78 {
		t.Errorf("rows are dear from the first: %v at once, %v times as fast", depth, gain)
	}
	if _, gain := c.run(t, cheap, &Belief{}, 3, 15, 1000, func(i int) bool { return i%20 == 0 }); gain < 0.98 {
		t.Errorf("prose: %v times as fast", gain)
	}
}

// TestShare: rows go to the sequences whose drafts are likelier.
func TestShare(t *testing.T) {
	good, bad := &Belief{}, &Belief{}
	for range 50 {
		good.Note(20, true)
		bad.Note(20, false)
	}
	var c Costs
	for drafts := range 20 {
		c.Observe(2, drafts, 1000+100*float64(2+drafts))
	}
	o := []Option{{Belief: bad, Match: 20, Looked: 8, Drafts: 8}, {Belief: good, Match: 20, Looked: 8, Drafts: 8}}
	if c.Choose(o, 2, 90); o[0].Take != 0 || o[1].Take < 7 {
		t.Errorf("%d and %d", o[0].Take, o[1].Take)
	}
	if c.Choose(o, 2, 3); o[0].Take != 0 || o[1].Take != 3 {
		t.Errorf("%d and %d of 3", o[0].Take, o[1].Take)
	}
	if ChooseSure(o, 4); o[0].Take != 0 || o[1].Take != 4 {
		t.Errorf("%d and %d", o[0].Take, o[1].Take)
	}
}

// TestWritten: what a grammar proposes is believed apart from what was looked up, behind which it stands.
func TestWritten(t *testing.T) {
	var b Belief
	for range 50 {
		b.Note(MatchOf(20, 2, 1), true)
		b.Note(MatchOf(20, 2, 2), false)
	}
	if looked, written := b.Of(21), b.Of(Written); looked < 0.9 || written > 0.2 {
		t.Errorf("looked up %v, written %v", looked, written)
	}
	o := []Option{{Belief: &b, Match: 20, Looked: 2, Drafts: 9}}
	if ChooseSure(o, 7); o[0].Take != 2 {
		t.Errorf("%d are taken", o[0].Take)
	}
}
