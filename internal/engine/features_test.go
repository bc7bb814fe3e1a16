package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/nn"
	"hearth/internal/quant"
)

// tower is what stands before a model that sees: patches attend to those of their window in its first layer, and to all of
// their image in the second.
type tower struct {
	be     backend.Backend
	layers [2]nn.Attention
}

// towerHead is the width of its one head, which is that of what comes out.
const towerHead = 64

func newTower(t *testing.T, be backend.Backend) *tower {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 9))
	ld := be.NewLoader(backend.Options{Precision: backend.Float32, Threads: 2})
	load := func(outs ...int) nn.Linear {
		l := nn.Lin(towerHead, outs...)
		spec := backend.WeightSpec{Name: "tower", Use: backend.UseLinear, Out: outs, In: towerHead, Count: 1}
		for _, n := range outs {
			spec.Parts = append(spec.Parts, backend.Part{Weight: floats(r, n, towerHead)})
		}
		w, err := ld.Load(spec)
		if err != nil {
			t.Fatal(err)
		}
		l.W = w
		return l
	}
	v := &tower{be: be}
	for i := range v.layers {
		v.layers[i] = nn.Attention{QKV: load(towerHead, towerHead, towerHead), O: load(towerHead),
			Spec: backend.Attn{State: backend.NoState, Heads: 1, KVHeads: 1, KDim: towerHead, VDim: towerHead, Scale: 0.125, Both: true}}
	}
	return v
}

// floats is a tensor of random numbers.
func floats(r *rand.Rand, rows, cols int) *backend.Tensor {
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(r.NormFloat64()) / 8
	}
	t := &backend.Tensor{Name: "w", DType: string(quant.F32), Shape: []int{rows, cols}, Bytes: make([]byte, 4*len(x))}
	quant.PutFloats(t.Bytes, quant.F32, x)
	return t
}

// run gives what layers make of patches, pinned and as numbers, in a step of those spans.
func (v *tower) run(t *testing.T, patches []float32, spans, alt []backend.Span, layers ...*nn.Attention) (backend.Array, []float32) {
	t.Helper()
	n := len(patches) / towerHead
	b := &backend.Batch{Spans: spans, Alt: alt}
	b.Pos[0] = make([]int32, n)
	o := v.be.Begin(nil, b)
	defer o.End()
	h := o.Upload(patches, n, towerHead)
	for _, l := range layers {
		h = o.Add(h, l.Forward(o, h))
		o.Sweep(h)
	}
	f, err := o.Floats(o.Pin(h))
	if err != nil {
		t.Fatal(err)
	}
	return h, slices.Clone(f)
}

// image is features for the tokens of a prompt from index at on.
type image struct {
	at       int
	features backend.Array
	numbers  []float32
}

func (m *image) len() int { return len(m.numbers) / towerHead }

// see gives the features of n random patches in windows of five. Windows beside whole images are the same as windows that are
// steps of their own.
func (v *tower) see(t *testing.T, r *rand.Rand, at, n int) image {
	t.Helper()
	patches := make([]float32, n*towerHead)
	for i := range patches {
		patches[i] = float32(r.NormFloat64())
	}
	var windows []backend.Span
	for row := 0; row < n; row += 5 {
		windows = append(windows, backend.Span{Slot: -1, Row: row, Len: min(5, n-row)})
	}
	whole := []backend.Span{{Slot: -1, Len: n}}
	first := v.layers[0]
	first.Spec.Alt = true
	m := image{at: at}
	m.features, m.numbers = v.run(t, patches, whole, windows, &first, &v.layers[1])
	one, x := v.run(t, patches, windows, nil, &v.layers[0])
	two, x := v.run(t, x, whole, nil, &v.layers[1])
	v.be.Unpin(one)
	v.be.Unpin(two)
	if !slices.Equal(x, m.numbers) {
		t.Error("windows beside whole images differ from windows alone")
	}
	return m
}

// TestFeatures: features in the place of tokens are as if the table had had them as rows, wherever the prompt is cut, whatever is
// beside it and however the model scales what it embeds.
func TestFeatures(t *testing.T) {
	const placeholder, own = 96, 60 // own: the first id whose row is a feature
	for name, tc := range map[string]struct {
		config string
		scale  float32
	}{
		"attention": {`{"model_type":"qwen3","hidden_size":64,"num_hidden_layers":2,"intermediate_size":128,"num_attention_heads":4,
			"num_key_value_heads":2,"head_dim":32,"rms_norm_eps":1e-6,"vocab_size":97,"max_position_embeddings":4096,"tie_word_embeddings":true}`, 1},
		"windows, scaled": {`{"model_type":"gemma3_text","hidden_size":64,"num_hidden_layers":3,"intermediate_size":32,"num_attention_heads":2,
			"num_key_value_heads":1,"head_dim":32,"vocab_size":97,"max_position_embeddings":4096,"sliding_window":20,"sliding_window_pattern":3}`, 8},
		"hybrid": {hybrid, 1},
	} {
		for _, chunk := range []int{7, 2048} {
			t.Run(fmt.Sprintf("%s, chunks of %d", name, chunk), func(t *testing.T) {
				be, r := cpu.New(), rand.New(rand.NewPCG(4, 4))
				v := newTower(t, be)
				images := []image{v.see(t, r, 20, 13), v.see(t, r, 50, 23)}
				h := &hooked{Backend: be, config: tc.config}
				h.weight = func(s *backend.WeightSpec) {
					if s.Use != backend.UseTable {
						return
					}
					table := floats(r, vocab, towerHead)
					to := table.Bytes[own*towerHead*4:]
					for _, m := range images {
						for _, f := range m.numbers {
							quant.PutFloats(to, quant.F32, []float32{f / tc.scale})
							to = to[4:]
						}
					}
					s.Parts = []backend.Part{{Weight: table}}
				}
				h.begin = func(b *backend.Batch) {
					b.Media = nil
					for _, sp := range b.Spans {
						for _, m := range images {
							in := backend.Insert{Features: m.features, From: max(sp.Start-m.at, 0)}
							for i := m.at + in.From; i < min(m.at+m.len(), sp.Start+sp.Len); i++ {
								if row := sp.Row + i - sp.Start; b.Tokens[row] == placeholder {
									in.Rows = append(in.Rows, int32(row))
								}
							}
							if len(in.Rows) > 0 {
								b.Media = append(b.Media, in)
							}
						}
					}
				}
				e := start(t, h, func(c *Config) { c.NoCache, c.PrefillChunk = true, chunk })
				p := Prompt{Tokens: prompt(100, 5), MaxTokens: 30, Logprobs: 2}
				rows, id := slices.Clone(p.Tokens), int32(own)
				for _, m := range images {
					for i := range m.len() {
						p.Tokens[m.at+i], rows[m.at+i] = placeholder, id
						id++
					}
				}
				beside := submit(t, e, Prompt{Tokens: prompt(40, 6), MaxTokens: 60, Logprobs: -1})
				got := read(t, submit(t, e, p))
				p.Tokens = rows
				if d := cmp.Diff(read(t, submit(t, e, p)), got); d != "" {
					t.Error(d)
				}
				read(t, beside)
				for _, m := range images {
					between(e, func() { be.Unpin(m.features) })
				}
			})
		}
	}
}
