package model_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/ref"
	"hearth/internal/backend/stub"
	"hearth/internal/golden"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// typeKeys are what the configs of some types must have as well.
var typeKeys = map[string]string{
	"qwen3_next": `"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "full_attention_interval": 2,
		"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_conv_kernel_dim": 4`,
	"qwen3_5": `"full_attention_interval": 2, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 24,
		"linear_conv_kernel_dim": 4, "head_dim": 32`,
	"qwen3_5_moe": `"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "full_attention_interval": 3,
		"linear_num_value_heads": 4, "linear_num_key_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_conv_kernel_dim": 2, "head_dim": 32`,
	"bailing_moe_linear": `"num_experts": 8, "num_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
		"use_qk_norm": true, "layer_group_size": 2, "group_norm_size": 2`,
	"kimi_linear": `"kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 16, "num_experts": 8, "num_experts_per_token": 3,
		"num_experts_per_tok": 3, "moe_intermediate_size": 32, "num_shared_experts": 1, "first_k_dense_replace": 1,
		"linear_attn_config": {"kda_layers": [1, 3], "num_heads": 4, "head_dim": 20, "short_conv_kernel_size": 4}`,
	"gpt2":        `"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 256, "layer_norm_epsilon": 1e-5`,
	"gpt_bigcode": `"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 256, "layer_norm_epsilon": 1e-5, "n_inner": 96`,
	"gptj":        `"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 256, "rotary_dim": 8, "tie_word_embeddings": false`,
	"mimo_v2_flash": `"hybrid_layer_pattern": [0, 1, 1], "moe_layer_freq": [0, 1, 1], "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32,
		"add_swa_attention_sink_bias": true, "sliding_window_size": 16, "layernorm_epsilon": 1e-5, "rope_theta": 10000, "swa_rope_theta": 300,
		"swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "head_dim": 32, "v_head_dim": 16, "swa_head_dim": 24, "swa_v_head_dim": 16,
		"partial_rotary_factor": 0.5, "attention_value_scale": 0.7, "norm_topk_prob": true, "tie_word_embeddings": false`,
	"step3p5": `"num_attention_groups": 2, "rope_theta": [500, 600, 700], "partial_rotary_factors": [0.5, 1, 1], "moe_num_experts": 8, "moe_top_k": 3,
		"num_experts_per_tok": 3, "moe_intermediate_size": 32, "share_expert_dim": 64, "swiglu_limits": [0, 0.5, 1], "tie_word_embeddings": false,
		"attention_other_setting": {"num_attention_heads": 4, "num_attention_groups": 2}, "head_dim": 32`,
	"mellum": `"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "head_dim": 32, "rope_parameters": {
		"full_attention": {"rope_theta": 500}, "sliding_attention": {"rope_theta": 300}}`,
	"laguna": `"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "head_dim": 32,
		"num_attention_heads_per_layer": [4, 8, 4]`,
	"lfm2":    `"norm_eps": 1e-5, "conv_L_cache": 3, "block_ff_dim": 96`,
	"lfm2-vl": `"norm_eps": 1e-5, "conv_L_cache": 3, "conv_bias": true`,
	"lfm2_moe": `"norm_eps": 1e-5, "conv_L_cache": 4, "num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "use_expert_bias": true,
		"norm_topk_prob": true, "num_dense_layers": 1`,
	"mamba2": `"num_heads": 4, "head_dim": 16, "state_size": 16, "n_groups": 2, "conv_kernel": 4, "layer_norm_epsilon": 1e-5`,
	"nemotron_h": `"hybrid_override_pattern": "M*E-M-", "mamba_num_heads": 4, "mamba_head_dim": 20, "ssm_state_size": 16, "n_groups": 2, "conv_kernel": 4,
		"layer_norm_epsilon": 1e-5, "use_conv_bias": true, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32,
		"moe_shared_expert_intermediate_size": 64, "norm_topk_prob": true, "tie_word_embeddings": false`,
	"granitemoehybrid": `"embedding_multiplier": 12, "attention_multiplier": 0.05, "residual_multiplier": 0.22, "logits_scaling": 8,
		"layer_types": ["mamba", "attention", "mamba"], "mamba_n_heads": 4, "mamba_d_head": 20, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4,
		"num_local_experts": 8, "num_experts_per_tok": 3, "shared_intermediate_size": 64`,
	"falcon_h1":    `"mamba_n_heads": 4, "mamba_d_head": 20, "mamba_d_state": 16, "mamba_n_groups": 2, "head_dim": 16, "mamba_rms_norm": true`,
	"mamba":        `"state_size": 16, "conv_kernel": 4, "use_conv_bias": true`,
	"falcon_mamba": `"state_size": 16, "conv_kernel": 4, "use_conv_bias": true, "intermediate_size": 72`,
	"jamba": `"attn_layer_offset": 1, "attn_layer_period": 2, "expert_layer_offset": 1, "expert_layer_period": 2, "mamba_d_conv": 4, "mamba_d_state": 16,
		"mamba_expand": 2, "num_experts": 4, "num_experts_per_tok": 2`,
	"plamo2": `"hidden_size_per_head": 24, "mamba_d_state": 16, "mamba_num_heads": 4`,
	"granitemoe": `"embedding_multiplier": 12, "attention_multiplier": 0.05, "residual_multiplier": 0.22, "logits_scaling": 8,
		"num_local_experts": 8, "num_experts_per_tok": 3`,
	"minicpm":      `"dim_model_base": 32, "scale_depth": 1.4, "scale_emb": 12`,
	"dots1":        `"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "n_group": 2, "first_k_dense_replace": 1`,
	"deepseek":     `"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "first_k_dense_replace": 1`,
	"bailing_moe":  `"num_experts": 8, "num_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "first_k_dense_replace": 1, "use_qk_norm": true`,
	"ernie4_5_moe": `"moe_num_experts": 8, "moe_k": 3, "moe_intermediate_size": 32, "moe_num_shared_experts": 1, "moe_layer_start_index": 1`,
	"exaone4":      `"sliding_window_pattern": "LLG"`,
	"cohere2":      `"sliding_window_pattern": 3`,
	"granite":      `"embedding_multiplier": 12, "attention_multiplier": 0.05, "residual_multiplier": 0.22, "logits_scaling": 8`,
	"qwen3_moe":    `"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "mlp_only_layers": [1], "norm_topk_prob": true`,
	"glm4_moe": `"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "n_group": 2, "first_k_dense_replace": 1,
		"use_qk_norm": true, "norm_topk_prob": true`,
	"minimax":      `"num_local_experts": 8, "num_experts_per_tok": 3, "rotary_dim": 8, "rope_theta": 10000`,
	"minimax_m2":   `"num_local_experts": 8, "num_experts_per_tok": 3, "rotary_dim": 8, "rope_theta": 10000`,
	"mixtral":      `"num_local_experts": 8, "num_experts_per_tok": 3`,
	"olmoe":        `"num_experts": 8, "num_experts_per_tok": 3`,
	"qwen2_moe":    `"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 64, "use_sliding_window": true`,
	"gpt_oss":      `"num_local_experts": 8, "num_experts_per_tok": 3`,
	"qwen3_vl_moe": `"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32`,
	"gemma4_text":  `"head_dim": 16, "global_head_dim": 32, "num_kv_shared_layers": 1, "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 50`,
	"gemma4": `"head_dim": 16, "global_head_dim": 32, "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0, "attention_k_eq_v": true,
		"num_global_key_value_heads": 1, "enable_moe_block": true, "num_experts": 8, "top_k_experts": 3, "moe_intermediate_size": 32`,
	"gemma3n": `"head_dim": 16, "num_kv_shared_layers": 1, "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 20, "altup_num_inputs": 4,
		"altup_active_idx": 0, "altup_coef_clip": 120, "altup_correct_scale": true, "laurel_rank": 32, "rope_local_base_freq": 300, "rope_theta": 10000,
		"activation_sparsity_pattern": [0.9, 0, 0]`,
	"gemma4_unified": `"head_dim": 16, "num_kv_shared_layers": 1, "hidden_size_per_layer_input": 0`,
	"ministral3":     `"rope_parameters": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "llama_4_scaling_beta": 0.1}`,
}

func init() {
	mla := `"kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 16`
	experts := `, "q_lora_rank": 32, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "first_k_dense_replace": 1`
	for _, typ := range []string{"deepseek_v3", "kimi_k2", "kimi_k25", "kimi_vl", "joyai_llm_flash", "glm4_moe_lite"} {
		typeKeys[typ] = mla + experts + `, "n_group": 2`
	}
	typeKeys["minicpm3"] = mla + `, "q_lora_rank": 32, "dim_model_base": 32, "scale_depth": 1.4, "scale_emb": 12`
	typeKeys["youtu_llm"] = mla
	typeKeys["afmoe"] = `"num_experts": 8, "num_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "num_dense_layers": 1`
	typeKeys["nemotron-nas"] = `"block_configs": [{"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 1.3}},
		{"attention": {"no_op": true}, "ffn": {"replace_with_linear": true}}, {"attention": {"replace_with_linear": true}, "ffn": {"no_op": true}}]`
	typeKeys["llama4"] = `"num_local_experts": 8, "num_experts_per_tok": 1, "attention_chunk_size": 16, "interleave_moe_layer_step": 2, "intermediate_size_mlp": 64,
		"use_qk_norm": true, "floor_scale": 8, "layer_types": ["chunked_attention", "full_attention", "chunked_attention"]`
	typeKeys["llama4_text"] = typeKeys["llama4"]
	typeKeys["mistral4"] = mla + experts + `, "rope_parameters": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "llama_4_scaling_beta": 0.1}`
	typeKeys["solar_open"] = typeKeys["glm4_moe"]
	typeKeys["exaone_moe"] = `"num_experts": 8, "num_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "is_moe_layer": [false, true, true]`
	typeKeys["deepseek_v2"] = mla + experts + `, "n_group": 4, "topk_group": 2, "topk_method": "group_limited_greedy"`
}

// configOf is a config that every registered type accepts, with layers of both kinds where it knows sliding ones.
func configOf(typ string) []byte {
	extra := typeKeys[typ]
	if extra != "" {
		extra = ", " + extra
	}
	return []byte(`{"model_type": "` + typ + `", "hidden_size": 64, "num_hidden_layers": 3, "intermediate_size": 96, "num_attention_heads": 4,
		"num_key_value_heads": 2, "rms_norm_eps": 1e-5, "vocab_size": 50, "max_position_embeddings": 256, "tie_word_embeddings": true,
		"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]` + extra + `}`)
}

// TestShapes runs every architecture on the shape checker: a step that decodes one sequence, verifies three drafts of
// another and prefills a third in two spans, alone and with two tensor-parallel ranks; a chunk that wants no rows;
// one that wants all.
func TestShapes(t *testing.T) {
	for _, typ := range model.Types() {
		testShapes(t, typ, 1)
		testShapes(t, typ, 2)
	}
}

func testShapes(t *testing.T, typ string, ranks int) {
	t.Run(fmt.Sprintf("%s/%d", typ, ranks), func(t *testing.T) {
		be := stub.New(ranks)
		m, err := model.Synthetic{Config: configOf(typ), Type: quant.F32}.Load(be, backend.Options{})
		if err != nil {
			t.Fatal(err)
		}
		store, err := be.NewStore(m.States(), backend.KVPolicy{MaxDraft: 3})
		if err != nil {
			t.Fatal(err)
		}
		tables := make([]kv.Table, 3)
		for i := range tables {
			for range store.Geometry().Groups {
				tables[i].Pages = append(tables[i].Pages, []kv.PageID{kv.PageID(4*i + 1), kv.PageID(4*i + 2), kv.PageID(4*i + 3)})
			}
		}
		tables[0].Len, tables[1].Len = 70, 20
		spans := []backend.Span{
			{Slot: 0, Row: 0, Len: 1, Start: 70, Table: &tables[0]},
			{Slot: 1, Row: 1, Len: 4, Start: 20, Table: &tables[1], Tentative: true},
			{Slot: 2, Row: 5, Len: 6, Start: 0, Table: &tables[2]},
			{Slot: 2, Row: 11, Len: 3, Start: 6, Table: &tables[2]},
		}
		for _, out := range [][]int32{{0, 1, 2, 3, 4, 13}, {}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}} {
			b := &backend.Batch{Tokens: make([]int32, 14), Spans: spans, Out: out}
			for _, s := range spans {
				for i := range s.Len {
					b.Pos[0] = append(b.Pos[0], int32(s.Start+i))
				}
			}
			before(t, be, store, m, spans)
			o := be.Begin(store, b)
			h := m.Forward(o, b)
			y := m.Logits(o, h)
			if h.Rows() != len(out) || h.Cols() != 64 || y.Rows() != len(out) || y.Cols() != m.Vocab {
				t.Errorf("%d rows wanted: hidden %d×%d, logits %d×%d", len(out), h.Rows(), h.Cols(), y.Rows(), y.Cols())
			}
			o.End()
		}
		if be.Peak > 32 {
			t.Errorf("%d arrays alive at once: a layer does not sweep", be.Peak)
		}
	})
}

// before runs the tokens before the first span of every slot: recurrent state has to be there.
func before(t *testing.T, be backend.Backend, store backend.Store, m model.Model, spans []backend.Span) {
	if !backend.Fixed(m.States()) {
		return
	}
	for i, s := range spans {
		if err := store.Open(s.Slot, kv.Match{}, nil); err != nil {
			t.Fatal(err)
		}
		if s.Start == 0 || i > 0 && spans[i-1].Slot == s.Slot {
			continue
		}
		b := &backend.Batch{Tokens: make([]int32, s.Start), Spans: []backend.Span{{Slot: s.Slot, Len: s.Start, Table: &kv.Table{Pages: s.Table.Pages}}}}
		b.Pos[0] = make([]int32, s.Start)
		o := be.Begin(store, b)
		m.Forward(o, b)
		o.End()
	}
}

// TestBatchEqualsAlone: on the cpu backend a step of two sequences, one that decodes and one that begins, gives each
// the bits it has alone, in every architecture.
func TestBatchEqualsAlone(t *testing.T) {
	for _, typ := range model.Types() {
		for _, opts := range []backend.Options{{Threads: 2, Precision: backend.Float32}, {Threads: 2, Precision: backend.Exact}, {Threads: 2}} {
			var c map[string]any
			if err := json.Unmarshal(configOf(typ), &c); err != nil {
				t.Fatal(err)
			}
			c["quantization"] = map[string]int{"bits": 4, "group_size": 32}
			js, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			be := cpu.New()
			m, err := model.Synthetic{Config: js, Seed: 9, Type: quant.BF16}.Load(be, opts)
			if err != nil {
				t.Fatal(err)
			}
			a, b := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, []int32{30, 31, 32, 33, 34, 35, 36, 37, 38}
			alone := golden.NewSequence(t, be, m, 32)
			alone.Step(a)
			want := alone.Step([]int32{21}, 0)
			want = append(want, golden.NewSequence(t, be, m, 32).Step(b, int32(len(b)-1))...)

			pair := golden.NewSequences(t, be, m, 2, 32)
			pair.Step([][]int32{a, nil})
			if got := pair.Step([][]int32{{21}, b}); !slices.Equal(got, want) {
				t.Errorf("%s, %+v: a batch of two gives other bits than each alone", typ, opts)
			}
			m.Close()
			if err := be.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestUnknownType(t *testing.T) {
	_, _, err := model.New("gear", nil, 1)
	if err == nil || !strings.Contains(err.Error(), `"gear" is not supported`) || !strings.Contains(err.Error(), "qwen3") {
		t.Errorf("error %v", err)
	}
	if !slices.IsSorted(model.Types()) {
		t.Errorf("types %v are not sorted", model.Types())
	}
}

// TestConfigSpellings: what is written in different ways means the same model.
func TestConfigSpellings(t *testing.T) {
	base := `{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 2, "rms_norm_eps": 1e-5, "vocab_size": 16, "tie_word_embeddings": true`
	for _, group := range [][]string{
		{`"rope_theta": 5000`, `"rope_parameters": {"rope_theta": 5000}`, `"rope_theta": 5000, "rope_scaling": null, "head_dim": null`,
			`"rope_parameters": {"rope_type": "default", "rope_theta": 5000}, "num_key_value_heads": 2`},
		{`"rope_scaling": {"type": "linear", "factor": 2}`, `"rope_scaling": {"rope_type": "linear", "factor": 2.0}`,
			`"rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 10000}`},
		{`"rope_scaling": {"type": "yarn", "factor": 4}`, `"rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 4096.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1}`,
			`"rope_scaling": {"type": "telechat3-yarn", "factor": 4}`},
		{`"rope_scaling": {"type": "llama3", "factor": 4}`, `"rope_scaling": {"type": "llama3", "factor": 4, "original_max_position_embeddings": 8192, "low_freq_factor": 1, "high_freq_factor": 4}`},
	} {
		var first []float32
		for i, s := range group {
			be := ref.New()
			m, err := model.Synthetic{Config: []byte(base + ", " + s + "}"), Type: quant.F32}.Load(be, backend.Options{})
			if err != nil {
				t.Errorf("%s: %v", s, err)
				continue
			}
			y := golden.NewSequence(t, be, m, 8).Step([]int32{1, 2, 3, 4, 5, 6, 7, 8}, 7)
			if i == 0 {
				first = y
			} else if !slices.Equal(y, first) {
				t.Errorf("%s and %s give different logits", group[0], s)
			}
		}
	}
}

// TestSyntheticQuantised: every width makes whole tensors that load, also where the codes of a matrix end inside a draw.
func TestSyntheticQuantised(t *testing.T) {
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64} {
			var c map[string]any
			if err := json.Unmarshal(configOf("qwen3"), &c); err != nil {
				t.Fatal(err)
			}
			c["vocab_size"] = 51
			c["quantization"] = map[string]int{"bits": bits, "group_size": group}
			js, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			be := ref.New()
			m, err := model.Synthetic{Config: js, Seed: 1, Type: quant.BF16}.Load(be, backend.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := golden.Diff(golden.NewSequence(t, be, m, 2).Step([]int32{1, 2}, 1), make([]float32, 51), []float32{0, 1}); !(d > 0.1 && d < 100) {
				t.Errorf("%d bits, group %d: largest logit %g", bits, group, d)
			}
		}
	}
}

// TestSyntheticSpeed: the benchmark's model must not take longer to make than to run.
func TestSyntheticSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a model of 0.6 billion parameters")
	}
	cfg := `{"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "intermediate_size": 3072, "num_attention_heads": 16,
		"num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6, "vocab_size": 151936, "max_position_embeddings": 40960,
		"rope_theta": 1000000, "tie_word_embeddings": true, "quantization": {"bits": 4, "group_size": 64}}`
	start := time.Now()
	m, err := model.Synthetic{Config: []byte(cfg), Type: quant.BF16}.Load(stub.New(1), backend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %d bytes in %v", m.Description, m.Bytes, time.Since(start))
	if m.Description != "qwen3, 596M parameters, 4 bits" {
		t.Errorf("description %q", m.Description)
	}
}

// FuzzFolder: no config, generation config or index makes the loader panic.
func FuzzFolder(f *testing.F) {
	_, good := tinyModel(f)
	for _, typ := range model.Types() {
		f.Add(configOf(typ), []byte(`{"eos_token_id": [1], "top_k": 20}`), []byte(`{"weight_map": {"lm_head.weight": "model.safetensors"}}`))
	}
	f.Add([]byte(tiny), []byte(`{"temperature": {"__float__": "Infinity"}}`), []byte(`{}`))
	f.Add([]byte(strings.Replace(tiny, `"rope_theta": 1e6`, `"rope_parameters": {"rope_type": "yarn", "factor": 4}`, 1)), []byte(`{}`), []byte(`{}`))
	f.Add([]byte(`{"model_type": "llama", "text_config": {"quantization_config": {"quant_method": "gptq"}}}`), []byte(`null`), []byte(`null`))
	f.Fuzz(func(t *testing.T, config, generation, index []byte) {
		folder := with(good, "config.json", text(string(config)), "generation_config.json", text(string(generation)),
			"model.safetensors.index.json", text(string(index)))
		if err := load(folder); err != nil && !strings.HasPrefix(err.Error(), "load model: m: ") {
			t.Errorf("error %q does not name the folder", err)
		}
	})
}
