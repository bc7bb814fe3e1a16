package engine

import (
	"math/rand/v2"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/ref"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// Models in which some layers see only the last positions, with a window inside a page, and over more than one. The second has
// experts and sinks, in the third most layers read what others keep.
const (
	tinyGemma = `{"model_type":"gemma3_text","hidden_size":32,"num_hidden_layers":3,"intermediate_size":32,"num_attention_heads":2,
"num_key_value_heads":1,"head_dim":16,"vocab_size":97,"max_position_embeddings":4096,"sliding_window":20,"sliding_window_pattern":3}`
	tinyOSS = `{"model_type":"gpt_oss","hidden_size":64,"num_hidden_layers":2,"intermediate_size":32,"num_attention_heads":4,
"num_key_value_heads":2,"head_dim":32,"vocab_size":97,"max_position_embeddings":4096,"sliding_window":70,"num_local_experts":6,
"num_experts_per_tok":2,"quantization":{"group_size":32,"bits":4}}`
	tinyShared = `{"model_type":"gemma4_text","hidden_size":64,"num_hidden_layers":5,"intermediate_size":32,"num_attention_heads":2,
"num_key_value_heads":1,"head_dim":16,"global_head_dim":32,"vocab_size":97,"max_position_embeddings":4096,"sliding_window":20,"num_kv_shared_layers":3,
"layer_types":["sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention"],"hidden_size_per_layer_input":32,
"vocab_size_per_layer_input":97,"final_logit_softcapping":null}`
)

func windowed() map[string]func() *hooked {
	return map[string]func() *hooked{
		"ref, window of 20": func() *hooked { return &hooked{config: tinyGemma, kv: backend.KVPolicy{DType: backend.F32}} },
		"cpu, shared keys and values": func() *hooked {
			return &hooked{Backend: cpu.New(), config: tinyShared, kv: backend.KVPolicy{DType: backend.F32}}
		},
		"cpu, window of 70": func() *hooked {
			return &hooked{Backend: cpu.New(), config: tinyOSS, kv: backend.KVPolicy{DType: backend.F32}}
		},
	}
}

// TestWindows: pages that fall out of a window are given back, and nobody sees it: not in the answer of one sequence alone,
// compared with a table that keeps every page, nor after prefixes that were cached, in little memory, beside others.
func TestWindows(t *testing.T) {
	for name, h := range windowed() {
		t.Run(name, func(t *testing.T) {
			alone := start(t, h(), func(c *Config) { c.MaxSequences, c.NoCache = 1, true })
			keepsAll(t, h(), alone)
			all := conversations(t, alone)
			want := make([][]Token, len(all))
			for i, p := range all {
				want[i] = read(t, submit(t, alone, p))
			}
			var pages int64
			for _, g := range alone.alloc.Geometry().Groups {
				pages += g.PageBytes
			}
			hits := uint64(0)
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, 19))
				e := start(t, h(), func(c *Config) {
					c.MaxSequences, c.PrefillChunk, c.Budget = 1+r.IntN(6), 5+r.IntN(200), int64(7+r.IntN(30))*pages
				})
				disturb(t, e, r, all, want)
				hits += uint64(e.Stats().Cache.Hits)
			}
			if hits == 0 {
				t.Error("nothing was ever cached")
			}
		})
	}
}

// keepsAll compares greedy answers with those of a sequence that keeps all of its pages.
func keepsAll(t *testing.T, h *hooked, e *Engine) {
	t.Helper()
	if h.Backend == nil {
		h.Backend = ref.New()
	}
	m, err := model.Synthetic{Config: []byte(h.config), Seed: 3, Type: quant.F32}.Load(h.Backend, backend.Options{Precision: h.precision, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	ids := prompt(150, 4)
	got := read(t, submit(t, e, Prompt{Tokens: ids, MaxTokens: 150, Logprobs: -1}))
	s := golden.NewSequence(t, h.Backend, m, 300)
	logits := s.Step(ids, int32(len(ids)-1))
	for i, tok := range got {
		best := 0
		for k, v := range logits {
			if v > logits[best] {
				best = k
			}
		}
		if int(tok.ID) != best {
			t.Fatalf("token %d is %d, with all pages it is %d", i, tok.ID, best)
		}
		logits = s.Step([]int32{tok.ID}, 0)
	}
	if len(got) != 150 {
		t.Errorf("%d tokens", len(got))
	}
}
