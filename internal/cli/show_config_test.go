package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runShow gives what the command prints.
func runShow(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := newShowCmd()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

// TestShowConfig: of a config.json alone show says what would run, what is in force and whence, and what is not understood.
func TestShowConfig(t *testing.T) {
	const qwen = `{"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "intermediate_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 8,
		"head_dim": 128, "rms_norm_eps": 1e-6, "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": true, "hidden_act": "silu",
		"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "rope_theta": 1000000}%s}`
	for _, c := range []struct {
		name, config string
		want         []string // lines, their words
		refuse       string
	}{
		{"yarn", strings.Replace(qwen, "%s", `, "moon_phase": 3`, 1), []string{
			"architecture qwen3", "parameters 596,049,920", "context 40,960 tokens",
			"rope base 1,000,000 (rope_parameters.rope_theta), 128 columns of each head, yarn by 4 from 32,768 tokens (rope_parameters)",
			"window none: every layer that attends sees everything", "not understood moon_phase 3", "for 32,768 tokens: weights 1,192,", "embeddings BF16,"}, ""},
		{"window", strings.Replace(qwen, "%s", `, "use_sliding_window": true, "sliding_window": 4096, "max_window_layers": 20`, 1), []string{
			"window none in 20 layers", "window 4,096 tokens in 8 layers (sliding_window)", "not understood nothing"}, ""},
		{"quantised", strings.Replace(qwen, "%s", `, "quantization": {"bits": 4, "group_size": 64}`, 1), []string{"attention affine 4 bits, group 64,"}, ""},
		{"short", strings.NewReplacer("%s", "", "40960", "2048", `"yarn"`, `"default"`).Replace(qwen), []string{"context 2,048 tokens", "for 2,048 tokens: weights"}, ""},
		{"another method", strings.Replace(qwen, "%s", `, "quantization_config": {"quant_method": "later"}`, 1), []string{"attention BF16,", "later", "counted as bfloat16"}, ""},
		{"encoder", `{"model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536, "num_attention_heads": 12, "vocab_size": 30522,
			"max_position_embeddings": 512}`, []string{"architecture bert", "parameters 22,5", "context 512 tokens"}, ""},
		{"unknown", `{"model_type": "moon"}`, nil, `architecture "moon" is not supported`},
		{"activation", strings.Replace(qwen, "%s", `, "hidden_act": "moon"`, 1), nil, "hidden_act"},
		{"wide", strings.NewReplacer("%s", "", `"hidden_size": 1024`, `"hidden_size": 16777216`, "151936", "16777216").Replace(qwen), nil, "numbers are more than 8589934592"},
		{"experts", `{"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 4096, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2,
			"rms_norm_eps": 1e-6, "vocab_size": 64, "max_position_embeddings": 64, "num_local_experts": 512, "num_experts_per_tok": 2}`, nil, "more than 524288 experts"},
		{"no JSON", `{"model_type": `, nil, "valid JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(path, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := runShow(path)
			if c.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), c.refuse) || !strings.Contains(err.Error(), "config.json") {
					t.Fatalf("error %v, want %q in it", err, c.refuse)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			words := strings.Join(strings.Fields(out), " ")
			for _, w := range c.want {
				if !strings.Contains(words, w) {
					t.Errorf("%q is not in:\n%s", w, out)
				}
			}
			js, err := runShow("--json", path)
			if err != nil {
				t.Fatal(err)
			}
			var s shown
			if err := json.Unmarshal([]byte(js), &s); err != nil {
				t.Fatal(err)
			}
			if s.Parameters == 0 || s.Unread == nil || c.name == "yarn" && (len(s.Unread) != 1 || s.Unread[0].Key != "moon_phase" || s.Ropes[0].Type != "yarn") {
				t.Errorf("%+v", s)
			}
		})
	}
}
