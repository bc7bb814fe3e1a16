package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

type gemma3nArgs struct {
	common
	windows
	FFNs     ints    `json:"intermediate_size"`           // one, or one per layer
	Sparsity []float `json:"activation_sparsity_pattern"` // the share of a layer's gates that is closed
	Shared   int     `json:"num_kv_shared_layers"`
	PerLayer int     `json:"hidden_size_per_layer_input"`
	PerVocab int     `json:"vocab_size_per_layer_input"`
	Streams  int     `json:"altup_num_inputs"`
	Active   int     `json:"altup_active_idx"`
	Scaled   bool    `json:"altup_correct_scale"`
	Laurel   int     `json:"laurel_rank"`
	Cap      *float  `json:"final_logit_softcapping"`

	gate *B.GLU
}

func newGemma3n(cfg *config, b *Build) (Generator, error) {
	limit, yes := float(30), true
	a := gemma3nArgs{FFNs: ints{16384}, Shared: 15, PerLayer: 256, PerVocab: 262144, Streams: 4, Scaled: true, Laurel: 64, Cap: &limit,
		windows: windows{Window: 512},
		common:  common{D: 2048, Layers: 35, Heads: 8, KVHeads: 2, HeadDim: 256, Eps: 1e-6, Vocab: 262400, MaxPos: 32768, Tied: &yes}}
	cfg.into(&a)
	var beside struct {
		Tied *bool `json:"tie_word_embeddings"` // the folder tells
	}
	cfg.beside(&beside)
	if err := a.check(); err != nil {
		return nil, err
	}
	cfg.harmless("altup_coef_clip") // it is for training, and trained numbers are inside it; mlx-lm cuts others
	a.gate = &B.GLU{Act: cfg.act("hidden_activation", "gelu_pytorch_tanh")}
	cfg.harmless("sliding_window_pattern", "_sliding_window_pattern") // layer_types counts
	ropes := map[string]*B.Rope{}
	for _, r := range []rotation{{Kind: full, Base: 1e6, Apart: true, Fixed: true}, {Kind: slides, Base: 10000, BaseKey: "rope_local_base_freq", Plain: true, Apart: true, Fixed: true}} {
		r.Head = a.HeadDim
		ropes[r.Kind] = cfg.rope(r)
	}
	w := a.PerLayer
	m := &gemma3n{streams: a.Streams, narrow: a.Layers - a.Shared, Norm: *a.norm(), Head: nn.Lin(a.D, a.Vocab),
		Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D, Scale: float32(math.Sqrt(float64(a.D)))},
		Inputs: layerInputs{width: w, root: float32(1 / math.Sqrt(float64(a.D))),
			Table: nn.Embedding{Vocab: a.PerVocab, Dim: a.Layers * w, Scale: float32(math.Sqrt(float64(w)))},
			Proj:  nn.Lin(a.D, a.Layers*w), Norm: *nn.HeadRMS(w, float32(a.Eps))}}
	if m.Head.Tied = nn.TieFile; cfg.at == "" {
		m.Head.Tied = a.tie()
	}
	m.cap = capped(a.Cap)
	for range a.Streams - 1 {
		m.Spread, m.Gather = append(m.Spread, nn.Lin(a.D, a.D)), append(m.Gather, nn.Lin(a.D, a.D))
	}
	last := map[string]B.StateID{}
	for i := range a.Layers {
		m.Layers = append(m.Layers, a.layer(b, i, ropes[a.Types[i]], last))
	}
	m.declared = b.declared(&a.common)
	return m, nil
}

func (a *gemma3nArgs) layer(b *Build, i int, rope *B.Rope, last map[string]B.StateID) gemma3nLayer {
	kind, window, ffn, eps := a.Types[i], a.window(i), b.Local(a.FFNs[i]), float32(a.Eps)
	h, kv, hd, n := b.Local(a.Heads), b.LocalKV(a.KVHeads), a.HeadDim, a.Streams
	t := nn.Attention{QKV: nn.Lin(a.D, h*hd, kv*hd, kv*hd), O: nn.Lin(h*hd, a.D), Rope: rope,
		QNorm: nn.HeadRMS(hd, eps), KNorm: nn.HeadRMS(hd, eps), VNorm: &B.Norm{Eps: eps, Width: hd},
		Spec: B.Attn{Heads: h, KVHeads: kv, KDim: hd, VDim: hd, Scale: 1, Window: window}}
	if i >= a.Layers-a.Shared {
		t.QKV.Outs[1], t.QKV.Outs[2], t.KNorm = 0, 0, nil
		t.Spec.State = last[kind]
	} else {
		t.Spec.State = b.KV(i, kv, hd, hd, window)
		last[kind] = t.Spec.State
	}
	s := altUp{Scale: nn.Row{N: a.D}, Predict: nn.Lin(n, n*n), Correct: nn.Lin(n, n), Router: nn.Lin(a.D, n), Norm: *a.norm(),
		d: a.D, active: a.Active, scaled: a.Scaled, mix: B.Mix{In: n, Out: n}, spread: B.Mix{In: 1, Out: n, Plus: 1}}
	s.Router.Least = B.Float32
	l := gemma3nLayer{Attn: t, Streams: s, GateUp: nn.Lin(a.D, ffn, ffn), Down: nn.Lin(ffn, a.D),
		Laurel: laurel{Left: nn.Lin(a.D, a.Laurel), Right: nn.Lin(a.Laurel, a.D), Norm: *a.norm()},
		gate:   a.gate,
		Input:  layerInput{gate: a.gate, Gate: nn.Lin(a.D, a.PerLayer), Proj: nn.Lin(a.PerLayer, a.D), Norm: *a.norm()},
		InNorm: *a.norm(), AttnNorm: *a.norm(), PreNorm: *a.norm(), MLPNorm: *a.norm()}
	if len(a.Sparsity) > 0 && a.Sparsity[i] > 0 {
		l.sparse = &B.Activation{Kind: B.AboveMean, A: float32(math.Sqrt2 * math.Erfinv(2*float64(a.Sparsity[i])-1))}
	}
	return l
}

// check fills what may be left out and refuses what no model has.
func (a *gemma3nArgs) check() error {
	if len(a.FFNs) == 1 {
		a.FFNs = slices.Repeat(a.FFNs, min(max(a.Layers, 1), maxLayers))
	}
	if len(a.FFNs) != a.Layers {
		return fmt.Errorf("intermediate_size has %d entries for %d layers", len(a.FFNs), a.Layers)
	}
	for _, n := range a.FFNs {
		if a.FFN = n; n <= 0 || n > maxSize {
			return fmt.Errorf("intermediate_size %d is out of range", n)
		}
	}
	if err := a.common.check(); err != nil {
		return err
	}
	a.fill(a.Layers, func(i int) bool { return (i+1)%5 != 0 })
	if err := a.checkWindows(a.Layers); err != nil {
		return err
	}
	if len(a.Sparsity) == 0 && a.Layers > 10 {
		a.Sparsity = make([]float, a.Layers)
		for i := range 10 {
			a.Sparsity[i] = 0.95
		}
	}
	switch {
	case len(a.Sparsity) != 0 && len(a.Sparsity) != a.Layers:
		return fmt.Errorf("activation_sparsity_pattern has %d entries for %d layers", len(a.Sparsity), a.Layers)
	case slices.ContainsFunc(a.Sparsity, func(f float) bool { return !(f >= 0 && f < 1) }):
		return fmt.Errorf("activation_sparsity_pattern has a share that is not from 0 to below 1")
	case a.PerLayer <= 0 || a.PerLayer > maxSize/a.Layers:
		return fmt.Errorf("hidden_size_per_layer_input %d is missing or out of range for %d layers", a.PerLayer, a.Layers)
	case a.PerVocab <= 0 || a.PerVocab > maxSize:
		return fmt.Errorf("vocab_size_per_layer_input %d is missing or out of range", a.PerVocab)
	case a.Streams <= 0 || a.Streams > 16 || a.Active < 0 || a.Active >= a.Streams:
		return fmt.Errorf("altup_num_inputs %d or altup_active_idx %d is out of range", a.Streams, a.Active)
	case a.Laurel <= 0 || a.Laurel > maxSize:
		return fmt.Errorf("laurel_rank %d is missing or out of range", a.Laurel)
	}
	if err := checkCap("final_logit_softcapping", a.Cap); err != nil {
		return err
	}
	return checkShared(a.Types, a.Shared)
}

// Rename drops the parts of other kinds and the keys and values of layers that use others'.
func (m *gemma3n) Rename(name string) string {
	bare := strings.TrimPrefix(name, "model.")
	for _, p := range [...]string{"vision_tower", "audio_tower", "embed_audio", "embed_vision"} {
		if strings.HasPrefix(bare, p) {
			return ""
		}
	}
	if rest, ok := strings.CutPrefix(bare, "language_model."); ok {
		name = "model." + rest
	}
	if ofShared(name, m.narrow, len(m.Layers)) {
		return ""
	}
	return name
}
