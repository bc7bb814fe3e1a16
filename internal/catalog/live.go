package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"hearth/internal/engine"
	"hearth/internal/kv"
	"hearth/internal/timeline"
)

// Stats gives the sums of all engines' figures; those that count since the start have also what models did that have gone.
func (c *Catalog) Stats() engine.Stats {
	c.mu.Lock()
	defer c.mu.Unlock() // none goes meanwhile, and is missed or counted twice
	sum := c.Main().Stats()
	for _, e := range slices.Concat(c.entries[1:], c.found) {
		s := e.Stats()
		sum.Add(&s)
		sum.AddCounts(&e.past)
	}
	return sum
}

// Figures are those of one model.
type Figures struct {
	*Entry
	Stats         engine.Stats // counts are of all times that it was loaded
	Loads, Failed int
	Waiting       time.Time // since when the first of those waits that have not begun; zero: none does
}

// Figures gives those of every model of the command line, and of those that have been loaded since.
func (c *Catalog) Figures() []Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Figures
	for _, e := range slices.Concat(c.entries, c.found) {
		f := Figures{Entry: e, Stats: e.Stats(), Loads: e.count, Failed: e.fails}
		f.Stats.AddCounts(&e.past)
		if e.Role != OnDemand {
			f.Loads, f.Failed = ended(e)
		} else if f.Loads+f.Failed == 0 {
			continue
		}
		for _, l := range e.loaded().live() {
			if l.Started.IsZero() && (f.Waiting.IsZero() || l.Submitted.Before(f.Waiting)) {
				f.Waiting = l.Submitted
			}
		}
		all = append(all, f)
	}
	return all
}

// ended counts the one load of a model that stays.
func ended(e *Entry) (loads, failed int) {
	switch {
	case e.Ready():
		return 1, 0
	case e.failure() != nil:
		return 0, 1
	}
	return 0, 0
}

// Loaded counts the parts of models that have been loaded. While a process of its own loads one, which is watched there, it goes
// on by itself.
func (c *Catalog) Loaded() int64 {
	n := c.loads.parts.Load()
	if c.loads.away.Load() > 0 {
		n += int64(c.now().Sub(c.made))
	}
	return n
}

// Encoders are the models that embed or rank and are loaded.
func (c *Catalog) Encoders() []*Encoder {
	var all []*Encoder
	for _, e := range c.every() {
		if x := e.Encoder(); x != nil {
			all = append(all, x)
		}
	}
	return all
}

// Live is a sequence that waits or runs.
type Live struct {
	Model string // its id
	engine.Live
}

// Live lists what waits and runs, model after model.
func (c *Catalog) Live() []Live {
	var all []Live
	for _, e := range c.every() {
		for _, l := range e.loaded().live() {
			all = append(all, Live{e.ID(), l})
		}
	}
	return all
}

// Hour is what the models did in each second of the last hour.
func (c *Catalog) Hour() *timeline.Hour { return &c.hour }

// WeightBytes is the size of the loaded weights of models that generate, and of the main one whatever it does.
func (c *Catalog) WeightBytes() int64 {
	var sum int64
	for _, e := range c.every() {
		if m := e.loaded(); m != nil && (m.enc == nil || e.Role == Main) {
			sum += m.bytes()
		}
	}
	return sum
}

// Stored is what is stored under one salt.
func (c *Catalog) Stored(salt kv.Salt) engine.Stored {
	var sum engine.Stored
	for _, e := range c.every() {
		if w := e.Weights(); w != nil {
			sum = sum.Plus(w.Engine.Stored(salt))
		}
	}
	return sum
}

// Tree is the prefix tree of one model.
type Tree struct {
	Model string // its id
	engine.Tree
	Labels []string // of Nodes: the first words of its text, where the query asks for them; "": none
}

// Trees shows the prefix trees of the models that are loaded, which share the query's bound. Texts of a model whose reasoning
// nobody is to see are not shown: reasoning is among them.
func (c *Catalog) Trees(ctx context.Context, q engine.TreeQuery) (all []Tree, err error) {
	var loaded []*Entry
	for _, e := range c.every() {
		if m := e.loaded(); m != nil && m.weights != nil {
			loaded = append(loaded, e)
		}
	}
	q.Most = max(q.Most/max(len(loaded), 1), 1)
	for _, e := range loaded {
		m := e.loaded()
		if m == nil || m.weights == nil { // it went meanwhile
			continue
		}
		g, speaks := m.gen.(interface{ Words(ids []int32) string })
		own := q
		own.First = q.First && speaks && !(e.Model().Thinking && e.cfg.HideThinking())
		t, err := m.weights.Engine.Tree(ctx, own)
		if err != nil {
			return nil, err
		}
		labels := make([]string, len(t.Nodes))
		for i := range t.Nodes {
			if ids := t.Nodes[i].First; len(ids) > 0 {
				labels[i] = g.Words(ids)
			}
		}
		all = append(all, Tree{e.ID(), t, labels})
	}
	return all, nil
}

// DropCache forgets everything stored that nobody uses, and which ids earlier answers were made of.
func (c *Catalog) DropCache(ctx context.Context) (engine.Stored, error) {
	return c.drop(func(m *resident) (engine.Stored, error) {
		if g, ok := m.gen.(interface{ Forget() }); ok {
			g.Forget()
		}
		return m.weights.Engine.DropCache(ctx)
	})
}

// DropSalt is DropCache for what is stored under one salt alone.
func (c *Catalog) DropSalt(ctx context.Context, salt kv.Salt) (engine.Stored, error) {
	return c.drop(func(m *resident) (engine.Stored, error) {
		if g, ok := m.gen.(interface{ ForgetSalt(salt [16]byte) }); ok {
			g.ForgetSalt(salt)
		}
		return m.weights.Engine.DropSalt(ctx, salt)
	})
}

// drop sums what of gives for every model with an engine.
func (c *Catalog) drop(of func(*resident) (engine.Stored, error)) (engine.Stored, error) {
	var sum engine.Stored
	var errs []error
	for _, e := range c.every() {
		if m := e.loaded(); m != nil && m.weights != nil {
			s, err := of(m)
			sum, errs = sum.Plus(s), append(errs, err)
		}
	}
	return sum, errors.Join(errs...)
}
