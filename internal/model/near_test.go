package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// TestHyphens: a type is known by its name with "-" for "_", and the other way round, and means the same.
func TestHyphens(t *testing.T) {
	plain := func(s string) string { return strings.ReplaceAll(s, "-", "_") }
	known := map[string]string{}
	for _, typ := range slices.Concat(model.Types(), model.NearTypes(), model.EncoderTypes(), model.NearEncoderTypes()) {
		if other := known[plain(typ)]; other != "" && model.Named(other) == model.Named(typ) {
			t.Errorf("%s and %s are spelled alike", other, typ)
		}
		known[plain(typ)] = typ
		for _, other := range []string{plain(typ), strings.ReplaceAll(typ, "_", "-"), strings.Replace(typ, "_", "-", 1)} {
			if got := plain(model.Named(other)); got != plain(typ) {
				t.Errorf("%s is %s", other, got)
			}
		}
	}
	for _, typ := range []string{"solar_open", "gpt_oss", "falcon_mamba", "nemotron-nas", "gemma4_unified", "step3p5"} {
		_, want, err := model.New(typ, configOf(typ), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{plain(typ), strings.ReplaceAll(typ, "_", "-")} {
			if _, got, err := model.New(other, configOf(typ), 1); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, %v, want %v", other, got, err, want)
			}
		}
	}
	for _, typ := range []string{"xlm_roberta", "llama-bidirec", "qwen3-embedding", "lfm2-embedding", "lfm2_bidirectional"} {
		if _, _, err := model.New(typ, configOf("llama"), 1); err == nil || !strings.Contains(err.Error(), "embeds or ranks texts and generates none") {
			t.Errorf("%s generates: %v", typ, err)
		}
	}
}

// TestNearEncoders: an encoder under a name with "_" is the same, and a decoder that cannot embed says why.
func TestNearEncoders(t *testing.T) {
	roberta := strings.Replace(tinyBert, `"model_type": "bert", "architectures": ["BertModel"]`, `"model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"]`, 1)
	folder := encoderFolder(t, roberta, meanPooling)
	other := with(folder, "config.json", text(strings.Replace(roberta, "xlm-roberta", "xlm_roberta", 1)))
	if !slices.Equal(loadFolder(t, other, nil), loadFolder(t, folder, nil)) {
		t.Error("xlm_roberta: other rows")
	}
	for _, typ := range []string{"deepseek_v3", "kimi_linear", "falcon_h1"} {
		_, err := (model.Synthetic{Config: configOf(typ), Type: quant.F32}).LoadEncoder(cpu.New(), backend.Options{}, meanPooling)
		if err == nil || !strings.Contains(err.Error(), `architecture "`+typ+`" cannot embed or rank texts here: its layers keep latents or recurrent states`) {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// TestNested: whichever names a model of text and images has for its language model, the logits have the same bits.
func TestNested(t *testing.T) {
	for name, root := range map[string]string{
		"internvl": "language_model.model.", "glm4v": "language_model.model.", "glm4v_moe": "language_model.model.", "exaone4_5": "language_model.model.",
		"llava_next": "model.language_model.", "llava_onevision": "language_model.model.", "aya_vision": "language_model.model.",
		"smolvlm": "language_model.", "idefics3": "language_model.model.",
	} {
		g := loadSaved(t, name)
		folder := with(g.folder(t), "config.json", text(string(g.Config)))
		left := []string{"model.vision_tower.a", "model.connector.b", "image_newline.c", "mtp.layers.0.d"}
		if name == "glm4v_moe" {
			left = append(left, "model.language_model.layers.3.eh_proj.weight") // of a layer that predicts further tokens
		}
		other := renamed(t, folder, func(name string) string {
			for _, p := range []string{"model.language_model.", "model.text_model.", "language_model.model."} {
				if rest, ok := strings.CutPrefix(name, p); ok {
					return root + rest
				}
			}
			if name == "lm_head.weight" {
				return "language_model.lm_head.weight"
			}
			return name
		})
		sameLogits(t, name, map[string]fstest.MapFS{"transformers": folder, "other": beside(t, other, left...)})
	}
}

// TestNestedTypes: a language model that is not supported is named, with those that are.
func TestNestedTypes(t *testing.T) {
	for typ, inner := range map[string]string{"internvl": "later", "llava_next": "mamba", "smolvlm": "gemma4_text", "lighton_ocr": "vit"} {
		_, _, err := model.New(typ, []byte(`{"text_config": {"model_type": "`+inner+`"}}`), 1)
		if err == nil || !strings.Contains(err.Error(), `text_config.model_type "`+inner+`" is not supported in "`+typ+`"; these are: `) || !strings.Contains(err.Error(), "qwen3_moe") {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// TestTextDefaults: what text_config leaves out is as in transformers' class of that type.
func TestTextDefaults(t *testing.T) {
	for _, c := range []struct {
		typ, text      string
		vocab, context int
		columns        int // that turn
	}{
		{"internvl", `{}`, 151936, 32768, 128}, {"internvl", `{"model_type": "qwen3"}`, 151936, 32768, 128}, {"idefics3", `{"vocab_size": 100}`, 100, 2048, 128},
		{"internvl", `{"model_type": "qwen3_moe", "num_local_experts": 16, "num_hidden_layers": 2}`, 151936, 32768, 64},
		{"internvl", `{"model_type": "gpt-oss", "num_hidden_layers": 2}`, 201088, 131072, 64},
		{"llava_next", `{"model_type": "mistral"}`, 32000, 131072, 128}, {"llava_next", `{"model_type": "granite"}`, 32000, 2048, 128},
		{"exaone4_5", `{"model_type": "exaone4_5_text"}`, 102400, 2048, 128}, {"aya_vision", `{}`, 256000, 8192, 128},
		{"glm4v", `{}`, 151552, 32768, 128}, {"glm4v", `{"head_dim": 32, "partial_rotary_factor": 0.5}`, 151552, 32768, 64}, {"glm46v", `{"model_type": "glm4v_text"}`, 151552, 32768, 128},
		{"glm4v_moe", `{"num_hidden_layers": 2, "head_dim": 128}`, 151424, 65536, 64},
	} {
		g, r, err := model.New(c.typ, []byte(`{"text_config": `+c.text+`}`), 1)
		if err != nil {
			t.Errorf("%s, %s: %v", c.typ, c.text, err)
			continue
		}
		if vocab, context := g.Sizes(); vocab != c.vocab || context != c.context || r.Rotations[0].Columns != c.columns || len(r.Unread) > 0 {
			t.Errorf("%s, %s: vocabulary %d, context %d, %+v", c.typ, c.text, vocab, context, r)
		}
	}
}

// TestNoConfig: a file that holds nothing is a model of defaults, or refused, whatever the type.
func TestNoConfig(t *testing.T) {
	for _, typ := range slices.Concat(model.Types(), model.NearTypes()) {
		for _, cfg := range []string{`null`, `{}`, `{"text_config": null}`, `{"text_config": []}`} {
			var bad *model.LoadError
			if _, _, err := model.New(typ, []byte(cfg), 1); err != nil && !errors.As(err, &bad) {
				t.Errorf("%s, %s: %T %v", typ, cfg, err, err)
			}
		}
	}
}

// TestPhi3V: the part for images below phi3's embedding is left out.
func TestPhi3V(t *testing.T) {
	alone := formulaFolder(t, "phi3", `"head_dim": 32`)
	cfg := strings.Replace(string(alone["config.json"].Data), `"phi3"`, `"phi3_v", "img_processor": {"name": "clip"}, "embd_layer": {"embedding_cls": "image"}`, 1)
	sameLogits(t, "phi3_v", map[string]fstest.MapFS{"phi3": alone,
		"phi3_v": with(beside(t, alone, "model.vision_embed_tokens.glb_GN", "model.vision_embed_tokens.img_processor.a"), "config.json", text(cfg))})
}

// TestStrangers: near names of other things say what they are and what to do.
func TestStrangers(t *testing.T) {
	for typ, want := range map[string]string{
		"internvl_chat": "internvl", "deci": "nemotron-nas", "phi4mm": "phi3", "qwen3-omni-moe": "qwen3_vl_moe", "deepseek_v32": "deepseek_v3",
	} {
		_, _, err := model.New(typ, []byte(`{}`), 1)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "hearth serve") {
			t.Errorf("%s: %v, want something about %s", typ, err, want)
		}
	}
}

// TestBidirec: what the name says of a decoder counts, not what its config leaves out.
func TestBidirec(t *testing.T) {
	cfg := func(typ, more string) string {
		return `{"model_type": "` + typ + `", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2, "rms_norm_eps": 1e-6,
			"vocab_size": 32, "max_position_embeddings": 64, "tie_word_embeddings": true` + more + `}`
	}
	mean := model.Pooling{Kind: model.Embeds, Rows: backend.PoolMean, Normalize: true}
	folder := encoderFolder(t, cfg("llama", ""), mean)
	as := func(config string) fstest.MapFS { return with(folder, "config.json", text(config)) }
	both, causal := loadFolder(t, as(cfg("llama", `, "is_causal": false`)), &mean), loadFolder(t, as(cfg("llama", "")), &mean)
	if slices.Equal(both, causal) {
		t.Fatal("rows that see ahead are the same")
	}
	bare := renamed(t, as(cfg("llama_bidirec", "")), func(s string) string { return strings.TrimPrefix(s, "model.") })
	for name, f := range map[string]fstest.MapFS{
		"as it is": as(cfg("llama_bidirec", "")), "without prefix": bare, "with a head": alsoHas(t, bare, "lm_head.weight"),
		"of another prefix": renamed(t, bare, func(s string) string { return "language_model." + s }),
	} {
		if got := loadFolder(t, f, nil); !slices.Equal(got, both) {
			t.Errorf("%s: other rows than llama's that see both ways", name)
		}
	}
	last := model.Pooling{Kind: model.Embeds, Rows: backend.PoolLast, Normalize: true}
	if got := loadFolder(t, as(cfg("llama_bidirec", `, "pooling": "last"`)), nil); !slices.Equal(got, loadFolder(t, as(cfg("llama", `, "is_causal": false`)), &last)) {
		t.Error("pooling last: other rows")
	}
	for more, want := range map[string]string{`, "pooling": "weighted_avg"`: `pooling is "weighted_avg"; avg, cls and last are supported`, `, "temperature": 0`: "temperature 0 is out of range"} {
		c, err := model.OpenCheckpoint(as(cfg("llama_bidirec", more)), "m")
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Pooling()
		if err == nil {
			_, err = c.LoadEncoder(cpu.New(), backend.Options{}, p)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", more, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLFM2Embedding: what embeds is known by the class that config.json names, or by its type, and sees both ways
// then; a folder of lfm2 that names another class does not.
func TestLFM2Embedding(t *testing.T) {
	cfg := func(typ, more string) string {
		return `{"model_type": "` + typ + `", "hidden_size": 64, "num_hidden_layers": 3, "block_ff_dim": 96, "block_multiple_of": 16, "num_attention_heads": 2, "num_key_value_heads": 1,
			"norm_eps": 1e-5, "conv_L_cache": 3, "layer_types": ["conv", "full_attention", "conv"], "vocab_size": 32, "max_position_embeddings": 64, "tie_word_embeddings": true` + more + `}`
	}
	const class = `, "architectures": ["Lfm2BidirectionalModel"], "auto_map": {"AutoModel": "modeling_lfm2_bidirectional.Lfm2BidirectionalModel"}`
	first := model.Pooling{Kind: model.Embeds, Rows: backend.PoolFirst, Normalize: true}
	folder := encoderFolder(t, cfg("lfm2", class), first)
	as := func(config string, more ...any) fstest.MapFS {
		return with(with(folder, "config.json", text(config)), more...)
	}
	want := loadFolder(t, folder, nil)
	if err := openEncoder(as(cfg("lfm2", ""), "1_Pooling/config.json", text(`{"pooling_mode": "cls"}`))); err == nil || !strings.Contains(err.Error(), "all texts would be alike") {
		t.Errorf("the first token of a causal model: %v", err)
	}
	if slices.Equal(loadFolder(t, folder, &meanPooling), loadFolder(t, as(cfg("lfm2", "")), &meanPooling)) {
		t.Fatal("rows that see ahead are the same")
	}
	bare := renamed(t, as(cfg("lfm2", class)), func(s string) string {
		return strings.NewReplacer("model.norm", "embedding_norm", "model.", "", "input_layernorm", "operator_norm", "post_attention_layernorm", "ffn_norm", ".mixer.", ".conv.", ".mlp.", ".feed_forward.",
			".gate_proj", ".w1", ".down_proj", ".w2", ".up_proj", ".w3", ".q_norm", ".q_layernorm", ".k_norm", ".k_layernorm", ".o_proj", ".out_proj").Replace(s)
	})
	around := func(prefix string) fstest.MapFS {
		return renamed(t, bare, func(s string) string { return prefix + s })
	}
	masked := strings.Replace(class, "Model\"]", "ForMaskedLM\"]", 1)
	for name, f := range map[string]fstest.MapFS{
		"by its code": as(cfg("lfm2", class[strings.Index(class, "],")+1:])), "lfm2_embedding": as(cfg("lfm2_embedding", "")), "with hyphens": as(cfg("lfm2-embedding", "")), "lfm2_bidirectional": as(cfg("lfm2_bidirectional", "")),
		"without prefix": bare, "prefixed": around("model."), "with a head": alsoHas(t, bare, "lm_head.weight"),
		"of a masked model": with(alsoHas(t, around("lfm2."), "lm_head.weight"), "config.json", text(cfg("lfm2", masked))),
	} {
		if got := loadFolder(t, f, nil); !slices.Equal(got, want) {
			t.Errorf("%s: other rows", name)
		}
	}

	pooling := func(modules string, more ...any) fstest.MapFS {
		return as(cfg("lfm2", class), append([]any{"modules.json", text(modules)}, more...)...)
	}
	const pooled = `[{"path": "", "type": "sentence_transformers.models.Transformer"}, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`
	mean := text(`{"pooling_mode_mean_tokens": true}`)
	for name, c := range map[string]struct {
		folder fstest.MapFS
		want   model.Pooling
	}{
		"nothing said": {folder, first}, "of its pooling": {pooling(pooled, "1_Pooling/config.json", text(`{"pooling_mode_cls_token": true}`)), first},
		"of the mean":    {pooling(pooled, "1_Pooling/config.json", mean), meanPooling},
		"a decoder's":    {as(cfg("lfm2", `, "architectures": ["Lfm2ForCausalLM"]`)), model.Pooling{Rows: backend.PoolLast, Normalize: true}},
		"a causal model": {as(cfg("lfm2", `, "architectures": ["Lfm2Model"]`), "modules.json", text(pooled), "1_Pooling/config.json", mean), model.Pooling{Kind: model.Embeds, Rows: backend.PoolMean}},
	} {
		k, err := model.OpenCheckpoint(c.folder, "m")
		if err != nil {
			t.Fatal(err)
		}
		p, err := k.Pooling()
		if k.Close(); err != nil || p.Kind != c.want.Kind || p.Rows != c.want.Rows || p.Normalize != c.want.Normalize {
			t.Errorf("%s: %+v, %v, want %+v", name, p, err, c.want)
		}
	}
	colbert := pooling(`[{"path": "", "type": "pylate.models.Transformer"}, {"path": "1_Dense", "type": "pylate.models.Dense.Dense"}]`, "1_Dense/config.json", text(`{"in_features": 64, "out_features": 8, "bias": false}`))
	if err := openEncoder(colbert); err == nil || !strings.Contains(err.Error(), "a vector per token") {
		t.Errorf("ColBERT: %v", err)
	}
	if _, _, err := model.New("lfm2", []byte(cfg("lfm2", class)), 1); err == nil || !strings.Contains(err.Error(), `"lfm2_embedding" embeds or ranks texts and generates none`) {
		t.Errorf("generates: %v", err)
	}
	for _, classes := range []string{`"Lfm2BidirectionalModel"`, `null`, `[3]`, `[]`, `["Lfm2ForCausalLM"]`} {
		if _, _, err := model.New("lfm2", []byte(cfg("lfm2", `, "architectures": `+classes)), 1); err != nil {
			t.Errorf("architectures %s: %v", classes, err)
		}
	}
}

// TestTextTowers: the language model of a model of text and images, saved alone and without a head, embeds like the whole.
func TestTextTowers(t *testing.T) {
	last := model.Pooling{Kind: model.Embeds, Rows: backend.PoolLast, Normalize: true}
	for _, name := range []string{"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"} {
		g := loadSaved(t, name)
		var c struct {
			Text map[string]any `json:"text_config"`
		}
		if err := json.Unmarshal(g.Config, &c); err != nil {
			t.Fatal(err)
		}
		c.Text["model_type"], c.Text["architectures"] = name+"_text", []string{"TextModel"}
		cfg, err := json.Marshal(c.Text)
		if err != nil {
			t.Fatal(err)
		}
		whole := with(g.folder(t), "config.json", text(string(g.Config)))
		tower := tensorsAs(t, with(whole, "config.json", text(string(cfg))), func(x safetensors.Tensor) []safetensors.Tensor {
			rest, ok := strings.CutPrefix(strings.Replace(x.Name, "model.language_model.", "model.", 1), "model.")
			if x.Name = rest; !ok || strings.HasPrefix(rest, "visual.") {
				return nil
			}
			return []safetensors.Tensor{x}
		})
		if !slices.Equal(loadFolder(t, tower, nil), loadFolder(t, whole, &last)) {
			t.Errorf("%s: other rows", name)
		}
	}
}

// TestPuzzle: a nemotron_h with the sizes of every layer spelled out has the bits of one without, and sizes may differ.
func TestPuzzle(t *testing.T) {
	const mamba = `"mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 2, "conv_kernel": 4, "layer_norm_epsilon": 1e-5`
	alike := formulaFolder(t, "nemotron_h", mamba+`, "hybrid_override_pattern": "E*M", "ssm_state_size": 16, "n_routed_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
		"n_shared_experts": 1, "moe_shared_expert_intermediate_size": 48`)
	blocks := `[{"block_type": "moe", "n_routed_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 48, "sliding_window": null},
		{"block_type": "attention"}, {"block_type": "mamba", "ssm_state_size": 16}]`
	puzzle := func(blocks, more string) string {
		return `{"model_type": "nemotron_h_puzzle", "hidden_size": 64, "num_hidden_layers": null, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
			"vocab_size": 32, "max_position_embeddings": 64, "tie_word_embeddings": false, "n_shared_experts": 1, "mtp_block_configs": [], ` + mamba + more + `, "block_configs": ` + blocks + `}`
	}
	published := renamed(t, apart(t, alike), func(s string) string { return strings.Replace(s, "backbone.", "model.", 1) })
	sameLogits(t, "puzzle", map[string]fstest.MapFS{"nemotron_h": alike, "puzzle": with(published, "config.json", text(puzzle(blocks, `, "n_routed_experts": 7`)))})

	cfg := puzzle(`[{"block_type": "moe", "n_routed_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 48}, {"block_type": "attention", "sliding_window": 8},
		{"block_type": "moe", "n_routed_experts": 5, "num_experts_per_tok": 1, "moe_intermediate_size": 16, "moe_latent_size": 24, "moe_shared_expert_intermediate_size": 24},
		{"block_type": "mamba", "ssm_state_size": 16}, {"block_type": "mamba", "ssm_state_size": 32}]`, "")
	shapes := map[string][]int{}
	for _, x := range tensorsOf(t, model.Synthetic{Config: []byte(cfg), Type: quant.F32}) {
		shapes[x.Name] = x.Shape
	}
	for name, want := range map[string][]int{"0.mixer.switch_mlp.up_proj.weight": {3, 32, 64}, "2.mixer.switch_mlp.up_proj.weight": {5, 16, 24}, "2.mixer.shared_experts.up_proj.weight": {24, 64},
		"3.mixer.in_proj.weight": {64 + 64 + 64 + 4, 64}, "4.mixer.in_proj.weight": {64 + 64 + 128 + 4, 64}} {
		if got := shapes["backbone.layers."+name]; !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	_, r, err := model.New("nemotron_h_puzzle", []byte(cfg), 1)
	if err != nil || len(r.Unread) > 0 || len(r.Windows) != 1 || r.Windows[0].Positions != 8 {
		t.Errorf("%+v, %v, want nothing unread and a window of 8", r, err)
	}
	for blocks, want := range map[string]string{
		`[{"block_type": "moe"}]`: `block_configs[0], "moe": n_routed_experts 0`, `[{"ssm_state_size": 8}]`: "block_configs[0].block_type is missing", `[]`: "0 entries",
		`[{"block_type": "attention", "q_indexer_heads": 2}]`: "block_configs[0].q_indexer_heads is 2", `[{"block_type": "attention", "hidden_size": 32}]`: "those of the whole",
		`null`: "block_configs is missing",
	} {
		if _, _, err := model.New("nemotron_h_puzzle", []byte(puzzle(blocks, "")), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %s", blocks, err, want)
		}
	}
	_, r, err = model.New("nemotron_h_puzzle", []byte(puzzle(`[{"block_type": "attention", "later": 3}]`, "")), 1)
	if err != nil || len(r.Unread) != 1 || r.Unread[0].Key != "block_configs[0].later" {
		t.Errorf("%+v, %v, want one unread key", r, err)
	}
}

// TestFusedQKV: MiMo-V2.5's queries, keys and values in one tensor, shard by shard, have the bits of those apart.
func TestFusedQKV(t *testing.T) {
	const keys = `"head_dim": 32, "v_head_dim": 16, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "n_routed_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
		"hybrid_layer_pattern": [0, 1, 1], "moe_layer_freq": [0, 1, 1], "partial_rotary_factor": 0.5, "layernorm_epsilon": 1e-6, "sliding_window": 8`
	split := formulaFolder(t, "mimo_v2", strings.Replace(keys, `"swa_num_key`, `"num_attention_heads": 4, "num_key_value_heads": 2, "swa_num_key`, 1))
	const shards = 2
	parts := map[string]safetensors.Tensor{}
	fused := tensorsAs(t, split, func(x safetensors.Tensor) []safetensors.Tensor {
		at, part, ok := strings.Cut(x.Name, ".self_attn.")
		if !ok || !strings.HasPrefix(part, "q_proj") && !strings.HasPrefix(part, "k_proj") && !strings.HasPrefix(part, "v_proj") {
			return []safetensors.Tensor{x}
		}
		if parts[at+part[:1]] = x; len(parts)%3 != 0 {
			return nil
		}
		x.Name, x.Shape, x.Bytes = at+".self_attn.qkv_proj.weight", []int{0, x.Shape[1]}, nil
		for s := range shards {
			for _, p := range []string{"q", "k", "v"} {
				m := parts[at+p]
				n := len(m.Bytes) / shards
				x.Bytes = append(x.Bytes, m.Bytes[s*n:][:n]...)
				x.Shape[0] += m.Shape[0] / shards
			}
		}
		return []safetensors.Tensor{x}
	})
	cfg := string(split["config.json"].Data)
	laid := strings.Replace(cfg, `"head_dim"`, `"attention_projection_layout": "fused_qkv", "head_dim"`, 1)
	sameLogits(t, "mimo_v2", map[string]fstest.MapFS{"split": split, "fused": with(fused, "config.json", text(laid))})
	for more, want := range map[string]string{
		`"attention_projection_layout": "fused_qkv", "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}`: "attention_projection_layout is fused_qkv with weights in fp8",
		`"attention_projection_layout": "fused_kv"`: `attention_projection_layout is "fused_kv"`,
	} {
		if _, _, err := model.New("mimo_v2", []byte(strings.Replace(cfg, `"head_dim"`, more+`, "head_dim"`, 1)), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", more, err)
		}
	}
	flat := strings.Replace(cfg, `"head_dim"`, `"rope_parameters": {"rope_type": "default", "rope_theta": 5000, "partial_rotary_factor": 0.25}, "swa_rope_theta": 300, "head_dim"`, 1)
	if _, r, err := model.New("mimo_v2", []byte(flat), 1); err != nil || len(r.Unread) > 0 || len(r.Rotations) != 2 || r.Rotations[0].Base != 5000 || r.Rotations[1].Base != 300 || r.Rotations[1].Columns != 8 {
		t.Errorf("%+v, %v: flat rope_parameters and swa_rope_theta", r, err)
	}
	every := strings.Replace(cfg, `"moe_layer_freq": [0, 1, 1]`, `"moe_layer_freq": 2, "routed_scaling_factor": null, "n_group": null, "n_shared_experts": null`, 1)
	names := func(cfg string) (all []string) {
		for _, x := range tensorsOf(t, model.Synthetic{Config: []byte(cfg), Type: quant.F32}) {
			all = append(all, x.Name)
		}
		return all
	}
	if got, want := names(every), names(strings.Replace(cfg, `[0, 1, 1], "partial`, `[1, 0, 1], "partial`, 1)); !slices.Equal(got, want) {
		t.Errorf("every second layer has experts: %v, want %v", got, want)
	}
	if _, r, err := model.New("mimo_v2", []byte(cfg), 1); err != nil || len(r.Rotations) != 2 || r.Rotations[1].Base != r.Rotations[0].Base {
		t.Errorf("%+v, %v: without swa_rope_theta both bases should be one", r, err)
	}
}

// TestLarge3: a conversion of Mistral Large 3 runs as mistral4 does, and says what its config has no word of.
func TestLarge3(t *testing.T) {
	plain := `"n_group": 1, "topk_group": 1, ` + latentKeys
	cfg := func(typ, more string) string { return fmt.Sprintf(`{"model_type": %q, %s%s}`, typ, plain, more) }
	flat := cfg("mistral4", `, "norm_topk_prob": true, "rope_parameters": {"rope_type": "default", "rope_theta": 10000, "llama_4_scaling_beta": 0, "original_max_position_embeddings": 64}`)
	own := fstest.MapFS{"config.json": text(flat), "model.safetensors": pack(t, tensorsOf(t, model.Synthetic{Config: []byte(flat), Seed: 6, Type: quant.F32}))}
	nested := `{"model_type": "mistral_large3", "text_config": ` + cfg("mistral_large3", `, "rope_theta": 10000`) + `, "vision_config": {"model_type": "pixtral"}}`
	large := beside(t, prefixedAs(t, own, "language_model."), "vision_tower.a", "language_model.model.layers.1.mlp.gate.e_score_correction_bias")
	sameLogits(t, "mistral_large3", map[string]fstest.MapFS{"mistral4": own, "large": with(large, "config.json", text(nested))})
	_, r, err := model.New("mistral_large3", []byte(nested), 1)
	if err != nil || len(r.Unread) > 0 || len(r.Warnings()) != 1 || !strings.Contains(r.Warnings()[0], "params.json") {
		t.Errorf("%+v, %v, want one warning about params.json", r, err)
	}
	whole := strings.Replace(nested, `"rope_theta": 10000`, `"rope_parameters": {"rope_type": "yarn", "factor": 36, "original_max_position_embeddings": 8192, "llama_4_scaling_beta": 0.1}`, 1)
	if _, r, err := model.New("mistral_large3", []byte(whole), 1); err != nil || len(r.Warnings()) != 0 || r.Rotations[0].Factor != 36 {
		t.Errorf("%+v, %v, want yarn and no warning", r, err)
	}
}

// TestNearDocs holds the list of near names in docs/models.md against the code.
func TestNearDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, is := range maps.All(model.Near()) {
		if line := fmt.Sprintf("| %s | %s |", name, is); !strings.Contains(string(doc), line) {
			t.Errorf("docs/models.md has no line %s", line)
		}
	}
	for _, name := range model.NearEncoderTypes() {
		if line := "\n| " + name + " | "; !strings.Contains(string(doc), line) {
			t.Errorf("docs/models.md has no line of %s", name)
		}
	}
}
