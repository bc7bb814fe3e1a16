// Package model holds one file per architecture, their registry and the tagged-struct weight loader. The engine
// and catalog call it. It never sees pages, masks, padding, threads or storage dtypes.
package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
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
}

// Build is what a constructor gets: parsed config and the tensor-parallel geometry.
type Build struct {
	World  int
	states []B.StateSpec
}

// Local divides a head or feature count among ranks.
func (b *Build) Local(n int) int { return n / max(b.World, 1) }

func (b *Build) state(s B.StateSpec) B.StateID {
	b.states = append(b.states, s)
	return B.StateID(len(b.states) - 1)
}

// LocalKV is Local for key/value heads: with fewer heads than ranks, ranks share copies. A loader derives the slice
// from shapes alone: rank r of a column split with local rows L and file rows F starts at ⌊r·F/(World·L)⌋·L.
func (b *Build) LocalKV(n int) int { return max(b.Local(n), 1) }

// KV declares attention memory for a layer.
func (b *Build) KV(layer, heads, kdim, vdim, window int) B.StateID {
	return b.state(B.StateSpec{Name: fmt.Sprintf("%d.kv", layer), Kind: B.StateKV, Heads: heads, KDim: kdim, VDim: vdim, Window: window})
}

// tokens is the part all decoders share: declared states and logits.
type tokens struct {
	states []B.StateSpec
	cap    B.Activation
	scale  float32
}

func (t *tokens) States() []B.StateSpec { return t.states }
func (t *tokens) logits(o B.Ops, h B.Array, head *nn.Linear) B.Array {
	y := head.Forward(o, h)
	if t.scale != 0 {
		y = o.Scale(y, t.scale)
	}
	if t.cap.A != 0 {
		y = o.Act(y, &t.cap)
	}
	return y
}

type maker func(cfg []byte, b *Build) (Model, error)

var registry = map[string]maker{}

func register(name string, m maker) { registry[name] = m }

// New makes an unloaded model; Load fills it.
func New(modelType string, cfg []byte, world int) (Model, error) {
	m, ok := registry[modelType]
	if !ok {
		return nil, fmt.Errorf("load model: architecture %q is not supported", modelType)
	}
	return m(cfg, &Build{World: world})
}

// Types lists registered architectures.
func Types() []string {
	var s []string
	for k := range registry {
		s = append(s, k)
	}
	return s
}
