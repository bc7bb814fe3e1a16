package catalog

import (
	"context"
	"errors"

	"hearth/internal/engine"
	"hearth/internal/kv"
	"hearth/internal/script"
)

// Live lists what waits and runs, nothing until Ready.
func (c *Catalog) Live() []engine.Live {
	if w := c.Weights(); w != nil {
		return w.Engine.Live()
	}
	if s := c.scripted(); s != nil {
		return s.Live()
	}
	return nil
}

// scripted is what answers in the model's place, nil if nothing does and until Ready.
func (c *Catalog) scripted() *script.Generator {
	if !c.Ready() {
		return nil
	}
	s, _ := c.gen.(*script.Generator)
	return s
}

// WeightBytes is the size of the loaded weights.
func (c *Catalog) WeightBytes() int64 {
	if w := c.Weights(); w != nil {
		return w.Model.Bytes
	}
	if e := c.Encoder(); e != nil {
		return e.Bytes()
	}
	return 0
}

// DropCache forgets everything stored that nobody uses, and which ids earlier answers were made of.
func (c *Catalog) DropCache(ctx context.Context) (engine.Stored, error) {
	w := c.Weights()
	if w == nil {
		return engine.Stored{}, nil
	}
	if g, ok := c.gen.(interface{ Forget() }); ok {
		g.Forget()
	}
	return w.Engine.DropCache(ctx)
}

// Stored is what is stored under one salt, nothing until Ready.
func (c *Catalog) Stored(salt kv.Salt) engine.Stored {
	if w := c.Weights(); w != nil {
		return w.Engine.Stored(salt)
	}
	return engine.Stored{}
}

// DropSalt is DropCache for what is stored under one salt alone.
func (c *Catalog) DropSalt(ctx context.Context, salt kv.Salt) (engine.Stored, error) {
	w := c.Weights()
	if w == nil {
		return engine.Stored{}, nil
	}
	if g, ok := c.gen.(interface{ ForgetSalt(salt [16]byte) }); ok {
		g.ForgetSalt(salt)
	}
	return w.Engine.DropSalt(ctx, salt)
}

// Live lists what waits and runs on the main model, then on the small one.
func (s *Small) Live() []engine.Live { return append(s.main.Live(), s.small.Live()...) }

// WeightBytes is the size of the loaded weights of both.
func (s *Small) WeightBytes() int64 { return s.main.WeightBytes() + s.small.WeightBytes() }

// Stats gives the sums of both engines' figures; those about context and disk are the main one's.
func (s *Small) Stats() engine.Stats {
	sum, b := s.main.Stats(), s.small.Stats()
	sum.AddCounts(&b)
	sum.Running += b.Running
	sum.Waiting += b.Waiting
	sum.PagesUsed += b.PagesUsed
	sum.Used += b.Used
	sum.Budget += b.Budget
	sum.Cache.Entries += b.Cache.Entries
	sum.Cache.Bytes += b.Cache.Bytes
	sum.Cache.Idle += b.Cache.Idle
	sum.Cache.Sessions += b.Cache.Sessions
	sum.Stuck = max(sum.Stuck, b.Stuck)
	sum.Device.Active += b.Device.Active // they run in processes of their own
	sum.Device.Peak += b.Device.Peak
	sum.Device.Cache += b.Device.Cache
	return sum
}

// Stored gives the sums of both.
func (s *Small) Stored(salt kv.Salt) engine.Stored {
	return s.main.Stored(salt).Plus(s.small.Stored(salt))
}

// DropCache forgets what nobody uses of either.
func (s *Small) DropCache(ctx context.Context) (engine.Stored, error) {
	return s.drop(func(c *Catalog) (engine.Stored, error) { return c.DropCache(ctx) })
}

// DropSalt forgets what nobody uses of either under one salt.
func (s *Small) DropSalt(ctx context.Context, salt kv.Salt) (engine.Stored, error) {
	return s.drop(func(c *Catalog) (engine.Stored, error) { return c.DropSalt(ctx, salt) })
}

func (s *Small) drop(of func(*Catalog) (engine.Stored, error)) (engine.Stored, error) {
	main, err := of(s.main)
	small, err2 := of(s.small)
	return main.Plus(small), errors.Join(err, err2)
}
