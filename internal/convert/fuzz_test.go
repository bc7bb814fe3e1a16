package convert

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// FuzzConfig: a config.json of anything is spelled both ways without losing a key, the second time as the first, and is JSON
// afterwards.
func FuzzConfig(f *testing.F) {
	types := slices.Sorted(maps.Keys(ropes))
	for typ := range derived {
		if !slices.Contains(types, typ) {
			types = append(types, typ)
		}
	}
	slices.Sort(types)
	for i := range types {
		f.Add(i, `{"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8, "partial_rotary_factor": 0.5}, "head_dim": 128, "hidden_size": 64, "num_hidden_layers": 4,
			"layer_types": ["sliding_attention", "full_attention"], "mlp_layer_types": ["dense", "sparse"], "sliding_window_pattern": 2}`)
	}
	for _, s := range []string{`{"text_config": {"model_type": "gemma3_text", "rope_theta": 1e6, "rope_local_base_freq": 1e4}}`, `{"text_config": []}`, `{"rope_scaling": "x", "rope_theta": {}}`,
		`{"sliding_window_pattern": 1e9, "num_hidden_layers": 1000000000}`, `{"sliding_window_pattern": 1e9000, "num_hidden_layers": 1000000000}`, `{"head_dim": 1e-320, "rotary_dim": 1e300, "rope_theta": 1}`, `{"head_dim": 1e308, "rope_parameters": {"partial_rotary_factor": 1e308}}`,
		`{"head_dim": -1, "rotary_dim": 1e300, "rope_parameters": {}}`, `{"rope_parameters": {"full_attention": 1, "sliding_attention": {}}}`,
		`{"time_step_limit": [0, {"__float__": "Infinity"}], "torch_dtype": "float16"}`} {
		for _, typ := range []string{"exaone4", "llama", "minimax_m2"} {
			f.Add(max(slices.Index(types, typ), 0), s)
		}
	}
	f.Fuzz(func(t *testing.T, at int, text string) {
		typ := types[uint(at)%uint(len(types))]
		var p conversion
		if p.readConfig([]byte(text)) != nil || p.config == nil {
			return
		}
		before := maps.Clone(p.config)
		spellBoth(p.config, typ, at%2 == 0)
		once := marshal(p.config)
		for key := range before {
			if _, ok := p.config[key]; !ok {
				t.Errorf("%s: %s: %s is gone", typ, text, key)
			}
		}
		if !json.Valid(once) || len(once) > 8*len(text)+4000 {
			t.Errorf("%s: %s became %d bytes", typ, text, len(once))
		}
		spellBoth(p.config, typ, at%2 == 0)
		if !reflect.DeepEqual(plainText(t, marshal(p.config)), plainText(t, once)) {
			t.Errorf("%s: %s became %s, then %s", typ, text, once, marshal(p.config))
		}
	})
}

// plainText reads JSON, whose numbers may be larger than any float64.
func plainText(t *testing.T, b []byte) (v map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
