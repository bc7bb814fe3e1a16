package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/config"
	"hearth/internal/model"
	"hearth/internal/sysmem"
)

// NewMachine is the memory of this machine, for all models that are loaded here, as cfg divides it.
func NewMachine(cfg *config.Config) *budget.Machine {
	return budget.New(budget.Readers{Total: sysmem.Total, Available: sysmem.Available, Private: sysmem.Private}, reserveOf(cfg, sysmem.Total()))
}

const (
	// leastContext is the shortest context worth starting for, unless the user or the model asks for less.
	leastContext = 256
	// unknownMemory is assumed to be the cache's where the machine does not tell how much memory it has.
	unknownMemory = 2 << 30
)

// cacheBudget is the memory for keys and values in bytes, of running replies and the prefix cache together: what was
// asked for, or else the share of the machine's memory, machine, that was, but no more than is left beside the weights and, of
// 15 % of these (activations, tables, the program itself) and what is the system's, the larger.
func cacheBudget(cfg *config.Config, weights, machine int64) (int64, error) {
	switch {
	case cfg.CacheMemoryMB > 0:
		return int64(cfg.CacheMemoryMB) << 20, nil
	case machine <= 0:
		return unknownMemory, nil
	}
	reserve := reserveOf(cfg, machine)
	most := min(int64(float64(machine)*cfg.CacheMemoryPart), machine-weights-max(weights*15/100, reserve))
	if most <= 0 {
		return 0, fmt.Errorf("divide memory: %s of weights leave nothing of %s for keys and values, of which %s are the system's; choose a smaller model, or set --cache-memory-mb or --os-reserve",
			size(weights), size(machine), size(reserve))
	}
	return most, nil
}

// demand is what is different where a model is loaded because a request asks for it.
type demand struct {
	ctx    context.Context // of the load
	state  int64           // what it needs beside its weights, as far as that is known before it is loaded
	step   int64
	unload func() // has the model go
	end    func() // ends the use of its share by the load; set with the share
}

// errNoRoom says that there is no memory now, although there was, as it seemed.
var errNoRoom = errors.New("there is no memory for it now")

// askTime is how long a load on demand waits for memory that others are giving up, before it is decided anew.
const askTime = 5 * time.Second

// holding is what a model here has of the machine's memory.
type holding struct {
	budget.Holding               // nil: it is not counted
	share          *budget.Share // where it is of this process's Machine
}

func (h *holding) close() {
	if h.share != nil {
		h.share.Close()
	}
}

// take takes a share of the machine's memory for the model of src on be, in which state and steps grow as they need. In the
// process of a model it is the parent's, who has asked for it already.
func (h *holding) take(b Backends, src *Source, be backend.Backend, weights int64) (err error) {
	if away := b.away; away != nil {
		h.Holding = away
		return h.grow(src, weights-away.Use().Weights)
	}
	c := budget.Claim{Use: budget.Use{Weights: weights}}
	if d, ok := be.(backend.Device); ok && b.Memory != nil {
		c.Device = be.Name()
		b.Memory.SetDevice(c.Device, d.Memory().Limit)
	}
	if h.share, err = b.ask(src, c); h.share != nil {
		h.Holding = h.share
	}
	return err
}

// settle makes a share that of the weights as they were loaded: repacked they may take more than they did in their files. Mapped
// says that they stayed there: what the files have of memory is the system's to take back, but they are read in every step.
func (h *holding) settle(src *Source, be backend.Backend, mapped bool) error {
	b, ok := be.(interface{ Held() int64 })
	if h.Holding == nil || !ok {
		return nil
	}
	has, held := h.Use().Weights, b.Held()
	if mapped {
		held = max(held, has)
	}
	h.Give(budget.Use{Weights: has - min(has, held)})
	return h.grow(src, held-has)
}

// grow asks for more bytes for weights.
func (h *holding) grow(src *Source, bytes int64) error {
	more := budget.Use{Weights: max(bytes, 0)}
	if _, a := h.Grow(more, more); a != budget.Yes {
		return tooLarge(src, h.Short(more))
	}
	return nil
}

// tooLarge is what a model lacks.
func tooLarge(src *Source, short *budget.ShortError) error {
	return &model.LoadError{Where: src.Where, Hint: short.Hint(), Err: short}
}

// ask takes a share for the model of src, nil without an error where nobody divides memory.
func (b Backends) ask(src *Source, c budget.Claim) (*budget.Share, error) {
	if b.Memory == nil {
		return nil, nil
	}
	c.Name = src.ID
	d := b.demand
	if d == nil {
		c.Pinned = true
		share, err := b.Memory.Ask(context.Background(), c)
		if short := (*budget.ShortError)(nil); errors.As(err, &short) {
			return nil, tooLarge(src, short)
		}
		return share, err
	}
	ctx, cancel := context.WithTimeout(d.ctx, askTime)
	defer cancel()
	c.State, c.Scratch, c.Unload = max(c.State, d.state), max(c.Scratch, d.step), d.unload
	share, end, err := b.Memory.AskToUse(ctx, c) // it is not idle while it is loaded
	switch {
	case err == nil:
		d.end = end
	case d.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		err = errNoRoom
	}
	return share, err
}

// askApart is ask for a model in a process of its own, on such a backend. One that stays and does not fit as it lies in its files
// has an empty share: its process finds out whether it can be read from them.
func (b Backends) askApart(src *Source, name string) (*budget.Share, error) {
	if limit := b.Limits[name]; limit != nil && b.Memory != nil {
		b.Memory.SetDevice(name, limit())
	}
	c := budget.Claim{Use: budget.Use{Weights: WeightBytes(src.FS)}, Device: b.device(name), Apart: true}
	share, err := b.ask(src, c)
	if err != nil && b.demand == nil {
		c.Use = budget.Use{}
		share, err = b.ask(src, c)
	}
	return share, err
}

// device is that of a backend by its name, or of what auto means first; "": it has none.
func (b Backends) device(name string) string {
	if name == "auto" && len(b.Auto) > 0 {
		name = b.Auto[0]
	}
	if b.Limits[name] == nil {
		return ""
	}
	return name
}

// WatchMemory makes prompt caches shrink and idle models go while the system is short of memory, until ctx ends.
func WatchMemory(ctx context.Context, m *budget.Machine) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	before := sysmem.ReadPressure()
	m.Watch(ctx, t.C, func() budget.Level {
		now := sysmem.ReadPressure()
		l := pressureLevel(&before, &now)
		before = now
		return l
	})
}

// lookEvery is how often the system is asked: as often as its own averages change.
const lookEvery = 2 * time.Second

// Parts of the last ten seconds that programs waited for memory. A tenth is felt; where all of them wait for a fifth, systemd's
// and others' daemons begin to end programs.
const (
	someWait = 0.1
	allWait  = 0.2
)

// pressureLevel is how short of memory the system is now.
func pressureLevel(before, now *sysmem.Pressure) budget.Level {
	switch {
	case now.Full >= allWait || now.Kills > before.Kills || now.Level >= 4:
		return budget.Critical
	case now.Some >= someWait || now.Limits > before.Limits || now.Level >= 2:
		return budget.Short
	}
	return budget.Enough
}

// reserveOf is what of so much memory is the system's.
func reserveOf(cfg *config.Config, machine int64) int64 {
	if cfg.OSReserve != nil {
		return *cfg.OSReserve
	}
	return budget.Reserve(machine)
}

// size spells bytes for people.
func size(n int64) string { return budget.Size(n) }
