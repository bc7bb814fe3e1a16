package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/stub"
	"hearth/internal/golden"
	"hearth/internal/model"
)

// reading is what the type in a config makes of it.
func reading(t *testing.T, config string) (*model.Reading, error) {
	t.Helper()
	var head struct {
		Type string `json:"model_type"`
	}
	if err := json.Unmarshal([]byte(config), &head); err != nil {
		t.Fatal(err)
	}
	_, r, err := model.New(head.Type, []byte(config), 1)
	return r, err
}

// everyCase are keys that tools/golden/model.py gives its cases whether the architecture has them or not.
var everyCase = []string{"rope_theta", "tie_word_embeddings", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "intermediate_size", "num_experts_per_tok",
	"layer_types", "n_group"} // the last two where mlx-lm follows them and transformers does not, which is told of

// TestGoldenConfigs: nothing of the configs that goldens have is left unread.
func TestGoldenConfigs(t *testing.T) {
	for _, typ := range model.Types() {
		files, _ := filepath.Glob(filepath.Join("testdata", typ, "*.json"))
		for _, file := range files {
			var g logits
			golden.Load(t, file, &g)
			_, r, err := model.New(typ, g.Config, 1)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			for _, u := range r.Unread {
				if key := strings.TrimPrefix(u.Key, "text_config."); !slices.Contains(everyCase, key) {
					t.Errorf("%s: %s is not read", file, u.Key)
				}
			}
		}
	}
}

// keyed is the smallest config of the type llama, with more keys.
func keyed(more string) string {
	return `{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "num_attention_heads": 4,
		"rms_norm_eps": 1e-6, "vocab_size": 32, "max_position_embeddings": 64, ` + more + `}`
}

// TestUnreadKeys: a key that nobody reads is told of by its path, and one that is known to change numbers is refused.
func TestUnreadKeys(t *testing.T) {
	for _, c := range []struct {
		more   string
		unread string // keys with a space between
		refuse string // in the error
	}{
		{`"rope_theta": 500.0`, "", ""},
		{`"use_cache": false, "attention_dropout": 0.5, "bos_token_id": 3, "architectures": ["X"], "vision_config": {"depth": 3}`, "", ""},
		{`"moon_phase": 3`, "moon_phase", ""},
		{`"moon_phase": null`, "", ""},
		{`"moon_phase": false`, "moon_phase", ""},
		{`"Hidden_Size": 3`, "Hidden_Size", ""},
		{`"moon": {"phase": 3, "size": 4}`, "moon", ""},
		{`"rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "moon_phase": 3}`, "rope_parameters.moon_phase", ""},
		{`"rope_scaling": {"rope_type": "linear", "factor": 2.0, "moon_phase": 3}`, "rope_scaling.moon_phase", ""},
		{`"hidden_act": "silu"`, "", ""},
		{`"hidden_act": "moon"`, "", `hidden_act is "moon"`},
		{`"alibi": true`, "", `alibi is true, which architecture "llama" does not do here; alibi can be false`},
		{`"text_config": ` + keyed(`"moon_phase": 3`), "text_config.moon_phase", ""},
		{`"text_config": ` + keyed(`"hidden_act": "moon"`), "", `text_config.hidden_act is "moon"`},
		{`"text_config": ` + keyed(`"rope_parameters": {"moon_phase": 3}`), "text_config.rope_parameters.moon_phase", ""},
	} {
		r, err := reading(t, keyed(c.more))
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%s: error %v, want %q in it", c.more, err, c.refuse)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.more, err)
			continue
		}
		var keys []string
		for i, u := range r.Unread {
			keys = append(keys, u.Key)
			if w := r.Warnings()[i]; !strings.Contains(w, u.Key) || !strings.Contains(w, u.Value) {
				t.Errorf("%s: warning %q names not %s", c.more, w, u.Key)
			}
		}
		if got := strings.Join(keys, " "); got != c.unread {
			t.Errorf("%s: unread %q, want %q", c.more, got, c.unread)
		}
	}
}

// TestManyUnreadKeys: warnings are few however many keys there are.
func TestManyUnreadKeys(t *testing.T) {
	var more []string
	for i := range 1000 {
		more = append(more, fmt.Sprintf(`"moon_%03d": %d`, i, i))
	}
	r, err := reading(t, keyed(strings.Join(more, ", ")))
	if err != nil {
		t.Fatal(err)
	}
	if w := r.Warnings(); len(r.Unread) != 1000 || len(w) != 13 || !strings.HasSuffix(w[12], "and 988 more keys that are not understood") {
		t.Errorf("%d keys, %d warnings, the last %q", len(r.Unread), len(w), w[len(w)-1])
	}
}

// TestRotations: which spelling counts, and what is said of it.
func TestRotations(t *testing.T) {
	for _, c := range []struct {
		more   string
		base   float64
		whence string
		typ    string
	}{
		{`"use_cache": true`, 10000, "the architecture's default", "default"},
		{`"rope_theta": 500`, 500, "rope_theta", "default"},
		{`"rope_theta": 500, "rope_parameters": {"rope_theta": 700.0}`, 700, "rope_parameters.rope_theta", "default"},
		{`"rope_theta": 500, "rope_parameters": {"rope_type": "linear", "factor": 2}`, 500, "rope_theta", "linear"},
		{`"rope_theta": 500, "rope_scaling": {"type": "linear", "factor": 2}`, 500, "rope_theta", "linear"},
		{`"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2, "rope_theta": 700}}`, 10000, "the architecture's default", "default"},
		{`"text_config": ` + keyed(`"rope_parameters": {"rope_theta": 700.0}`), 700, "text_config.rope_parameters.rope_theta", "default"},
	} {
		r, err := reading(t, keyed(c.more))
		if err != nil {
			t.Errorf("%s: %v", c.more, err)
			continue
		}
		if len(r.Rotations) != 1 || r.Rotations[0].Base != c.base || r.Rotations[0].Whence != c.whence || r.Rotations[0].Type != c.typ {
			t.Errorf("%s: %+v, want base %g from %s, type %s", c.more, r.Rotations, c.base, c.whence, c.typ)
		}
	}
}

// FuzzConfig: no config.json makes a model type panic, and what is refused is a LoadError.
func FuzzConfig(f *testing.F) {
	for _, more := range []string{`"rope_theta": 500`, `"rope_parameters": {"full_attention": {"rope_theta": 1}}`, `"rope_scaling": {"type": "yarn", "factor": 4}`,
		`"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8`, `"text_config": {"model_type": "llama"}`, `"quantization": {"bits": 4, "group_size": 32}`} {
		for i := range model.Types() {
			f.Add(uint16(i), keyed(more))
		}
	}
	types := slices.Concat(model.Types(), model.EncoderTypes(), model.NearTypes())
	f.Fuzz(func(t *testing.T, pick uint16, config string) {
		if len(config) > 1<<16 {
			return
		}
		typ := types[int(pick)%len(types)]
		var bad *model.LoadError
		g, r, err := model.New(typ, []byte(config), 1)
		if err != nil {
			if !errors.As(err, &bad) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		r.Warnings()
		if st, err := stub.New(1).NewStore(g.States(), backend.KVPolicy{DType: backend.F32}); err == nil {
			_ = st.Geometry()
		}
	})
}

// TestTextsInNests: every type that a model of text and images may have as its language model can be one.
func TestTextsInNests(t *testing.T) {
	saved := savedGoldens(t)
	for _, typ := range model.TextTypes() {
		if !slices.Contains(saved, typ) {
			continue
		}
		var nested struct {
			Type string          `json:"model_type"`
			Text json.RawMessage `json:"text_config"`
		}
		nested.Type, nested.Text = "llava", loadSaved(t, typ).Config
		config, err := json.Marshal(nested)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reading(t, string(config)); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
}
