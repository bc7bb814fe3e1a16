package model_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/model"
)

// TestKeyDocs holds the list of harmless keys in docs/model-configs.md against the reader's; -update writes it.
func TestKeyDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString("A star stands for any letters. Families name more, which are harmless to them alone (`cfg.harmless` in their files).\n\n| keys | why |\n|---|---|\n")
	for _, h := range model.HarmlessKeys {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(h.Keys, "`, `"), h.Reason)
	}
	b.WriteString("\nKeys that would change numbers and that most families do in one way only; where a family does not read them, other values are refused:\n\n| key | value |\n|---|---|\n")
	for _, k := range model.Expected() {
		values := "none but null"
		if v := model.ExpectedValues(k); len(v) > 0 {
			values = "`" + strings.Join(v, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", k, values)
	}
	compareDoc(t, filepath.FromSlash("../../docs/model-configs.md"), b.String())
}

// TestHarmlessKeys: a star is for any letters, and no key is in two groups.
func TestHarmlessKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"use_cache": true, "attention_dropout": true, "resid_pdrop": true, "initializer_range": true, "vision_config": true, "eos_token_id": true, "text_config.use_cache": true,
		"hidden_size": false, "rope_theta": false, "dropout": true, "sliding_window": false, "use_cached": false, "base_model_tp_plan": true, "vision_end_token": true, "moe_router_bias": false, "layer_types": false,
	} {
		if got := model.IsHarmless(key); got != want {
			t.Errorf("%s: harmless %v, want %v", key, got, want)
		}
	}
	in := map[string]string{}
	for _, h := range model.HarmlessKeys {
		for _, k := range h.Keys {
			if other, twice := in[k]; twice {
				t.Errorf("%s is in %q and in %q", k, other, h.Reason)
			}
			in[k] = h.Reason
		}
	}
}
