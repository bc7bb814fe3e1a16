// Package model holds one file per architecture, their registry, the tagged-struct weight loader and the checkpoint
// reader. The engine and catalog call it. It never sees pages, masks, padding, threads or storage dtypes.
package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/regular"
)

// Model is a loaded architecture. Values are read-only after loading.
type Model interface {
	// States declares per-layer memory; StateIDs in layers index it.
	States() []B.StateSpec
	// Forward returns the final-normed hidden state of the rows in b.Out, in order.
	Forward(o B.Ops, b *B.Batch) B.Array
}

// Generator is a model with a vocabulary head. Rows of h are independent, so the engine may call it in slices.
type Generator interface {
	Model
	Logits(o B.Ops, h B.Array) B.Array // [rows, vocab]
	// Sizes are the rows of the vocabulary and the positions the config allows, 0 if it does not say.
	Sizes() (vocab, context int)
}

// declared are the answers of Sizes and States, for architectures to embed.
type declared struct {
	states         []B.StateSpec
	vocab, context int
}

// declared are the sizes of a and the states that the layers have asked for.
func (b *Build) declared(a *common) declared { return declared{b.states, a.Vocab, a.MaxPos} }

// Sizes implements Generator.
func (d *declared) Sizes() (vocab, context int) { return d.vocab, d.context }

// States implements Model.
func (d *declared) States() []B.StateSpec { return d.states }

// Build is what a constructor gets besides the config: the tensor-parallel geometry and a place to declare states.
type Build struct {
	World  int
	states []B.StateSpec
}

// Local divides a head or feature count among ranks.
func (b *Build) Local(n int) int { return n / max(b.World, 1) }

// LocalKV is Local for key/value heads: with fewer heads than ranks, ranks share copies. A loader derives the slice
// from shapes alone: rank r of a column split with local rows L and file rows F starts at ⌊r·F/(World·L)⌋·L.
func (b *Build) LocalKV(n int) int { return max(b.Local(n), 1) }

// KV declares attention memory for a layer.
func (b *Build) KV(layer, heads, kdim, vdim, window int) B.StateID {
	b.states = append(b.states, B.StateSpec{Name: fmt.Sprintf("%d.kv", layer), Kind: B.StateKV, Heads: heads, KDim: kdim, VDim: vdim, Window: window})
	return B.StateID(len(b.states) - 1)
}

// Recurrent declares a layer's recurrent state: one matrix per head, updated by every row.
func (b *Build) Recurrent(layer, heads, kdim, vdim int) B.StateID {
	b.states = append(b.states, B.StateSpec{Name: fmt.Sprintf("%d.recurrent", layer), Kind: B.StateRecurrent, Heads: heads, KDim: kdim, VDim: vdim})
	return B.StateID(len(b.states) - 1)
}

// Driven is Recurrent with that many gates (decays, rates) per head and row, where two are the rule.
func (b *Build) Driven(layer, heads, kdim, vdim, gates int) B.StateID {
	id := b.Recurrent(layer, heads, kdim, vdim)
	b.states[id].Gates = gates
	return id
}

// Conv declares the last rows that a convolution of kernel taps sees.
func (b *Build) Conv(layer, cols, kernel int) B.StateID {
	b.states = append(b.states, B.StateSpec{Name: fmt.Sprintf("%d.conv", layer), Kind: B.StateConv, Heads: 1, KDim: cols, VDim: kernel - 1})
	return B.StateID(len(b.states) - 1)
}

// Latent declares the memory of multi-head latent attention for a layer.
func (b *Build) Latent(layer, lora, rot int) B.StateID {
	b.states = append(b.states, B.StateSpec{Name: fmt.Sprintf("%d.mla", layer), Kind: B.StateLatent, Heads: 1, KDim: lora, VDim: rot})
	return B.StateID(len(b.states) - 1)
}

// maker reads config.json and declares every layer with its sizes.
type maker func(cfg *config, b *Build) (Generator, error)

var registry = map[string]maker{}

func register(name string, m maker) { registry[name] = m }

// New makes an unloaded model from config.json; Load fills it. World is the number of tensor-parallel ranks. What it did not
// understand of the config is in the Reading.
func New(modelType string, cfg []byte, world int) (Generator, *Reading, error) {
	if err := known(modelType); err != nil {
		return nil, nil, err
	}
	c, err := openConfig(modelType, cfg)
	if err != nil {
		return nil, nil, inConfig(err)
	}
	g, err := c.make(world)
	if err != nil {
		return nil, nil, inConfig(err)
	}
	if d, ok := g.(*decoder); ok {
		d.anyGate(c)
	}
	r, err := c.finish()
	if err != nil {
		return nil, nil, err
	}
	r.Windows = c.windowsOf(g.States())
	return g, r, nil
}

// known refuses a model type that generates no text here.
func known(modelType string) error {
	if encodes(modelType) {
		return &LoadError{File: configFile, Problem: fmt.Sprintf("architecture %s embeds or ranks texts and generates none", regular.Quote(modelType)),
			Hint: "serve it with --embedding-model or --rerank-model, or alone"}
	}
	if makerOf(modelType) != nil {
		return nil
	}
	if s, ok := strangers[underscored(modelType)]; ok {
		return &LoadError{File: configFile, Problem: fmt.Sprintf("architecture %s is not supported: %s", regular.Quote(modelType), s.what), Hint: s.do}
	}
	types := append(Types(), EncoderTypes()...)
	hint := "known architectures: " + list(types, len(types))
	if near := relative(modelType); near != "" {
		hint = "its nearest relative here is " + near + "; " + hint
	}
	return &LoadError{File: configFile, Problem: fmt.Sprintf("architecture %s is not supported", regular.Quote(modelType)), Hint: hint}
}

// make runs the constructor of the config's type.
func (c *config) make(world int) (Generator, error) {
	if err := known(c.typ); err != nil {
		return nil, err
	}
	g, err := makerOf(c.typ)(c, &Build{World: world})
	return g, cmp.Or(c.err, err)
}

// relative is the known type whose name begins most alike, the newest of a family where several do; "" if none has three
// letters in common.
func relative(modelType string) string {
	best, most := "", 3
	for _, t := range Types() {
		n := 0
		for n < min(len(t), len(modelType)) && t[n] == modelType[n] {
			n++
		}
		if n > most || n == most && (best == "" || len(t) <= len(best)) {
			best, most = t, n
		}
	}
	return best
}

// Types lists the values of model_type that New knows, aliases included, sorted.
func Types() []string {
	types := slices.AppendSeq(slices.Collect(maps.Keys(registry)), maps.Keys(aliases))
	slices.Sort(types)
	return slices.Compact(types)
}
