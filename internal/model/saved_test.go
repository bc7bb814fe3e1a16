package model_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/safetensors"
)

// saved is a golden of tools/golden/saved.py: a folder that transformers saved, and what it says to it.
type saved struct {
	Config    json.RawMessage `json:"config"`
	Seed      uint64          `json:"seed"`
	Tensors   []filled        `json:"tensors"`
	Tokens    []int32         `json:"tokens"`
	Rows      []int32         `json:"rows"`
	Logits    golden.Floats   `json:"logits"`
	Range     float64         `json:"range"`
	Moves     float64         `json:"moves"` // what the reference moves when its weights change by 1e-7, as a share of the range
	Picks     int             `json:"picks"` // how many logits a mutation has; 0: all
	Mutations []mutation      `json:"mutations"`
}

// filled is a tensor by formula: name, shape, base and amplitude.
type filled struct {
	name      string
	shape     []int
	base, amp float64
}

func (f *filled) UnmarshalJSON(b []byte) error {
	var parts [4]json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for i, to := range []any{&f.name, &f.shape, &f.base, &f.amp} {
		if err := json.Unmarshal(parts[i], to); err != nil {
			return err
		}
	}
	return nil
}

// mutation is a config with other values, and what the reference makes of it.
type mutation struct {
	Key    string                     `json:"key"`
	Value  json.RawMessage            `json:"value"`
	Config map[string]json.RawMessage `json:"config"` // in place of Key and Value: keys that are set
	Drop   []string                   `json:"drop"`   // and keys that are removed
	Logits golden.Floats              `json:"logits"` // of the last row
	Error  string                     `json:"error"`
	Moves  float64                    `json:"moves"` // as of the golden, where the mutation makes the numbers less certain
}

func (m *mutation) String() string {
	if m.Key != "" {
		return fmt.Sprintf("%s=%s", m.Key, m.Value)
	}
	js, _ := json.Marshal(m.Config)
	return fmt.Sprintf("%s without %v", js, m.Drop)
}

// keys are the last words of the paths that a mutation changes.
func (m *mutation) keys() []string {
	paths := []string{m.Key}
	if m.Key == "" {
		paths = append(slices.Collect(maps.Keys(m.Config)), m.Drop...)
	}
	for i, p := range paths {
		paths[i] = p[strings.LastIndexByte(p, '.')+1:]
	}
	return paths
}

// apply is the config after a mutation.
func (m *mutation) apply(t *testing.T, config json.RawMessage) []byte {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(config, &all); err != nil {
		t.Fatal(err)
	}
	set := m.Config
	if m.Key != "" {
		set = map[string]json.RawMessage{m.Key: m.Value}
	}
	at := func(path string) (map[string]any, string) {
		in := all
		parts := strings.Split(path, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := in[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				in[p] = next
			}
			in = next
		}
		return in, parts[len(parts)-1]
	}
	for _, path := range m.Drop {
		in, key := at(path)
		delete(in, key)
	}
	for _, path := range slices.Sorted(maps.Keys(set)) {
		in, key := at(path)
		var v any
		if err := json.Unmarshal(set[path], &v); err != nil {
			t.Fatal(err)
		}
		in[key] = v
	}
	js, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// folder is the saved folder, but for its config.
func (g *saved) folder(t *testing.T) fstest.MapFS {
	t.Helper()
	var tensors []safetensors.Tensor
	for _, f := range g.Tensors {
		n := 1
		for _, k := range f.shape {
			n *= k
		}
		tensors = append(tensors, safetensors.Tensor{Name: f.name, DType: "F32", Shape: f.shape, Bytes: model.Fill(f.name, g.Seed, n, f.base, f.amp)})
	}
	return fstest.MapFS{"model.safetensors": pack(t, tensors)}
}

// run loads the folder with a config and gives the logits of rows.
func (g *saved) run(t *testing.T, folder fstest.MapFS, config []byte, be backend.Backend, rows []int32) (logits []float32, m *model.Loaded, err error) {
	t.Helper()
	c, err := model.OpenCheckpoint(with(folder, "config.json", text(string(config))), "saved")
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	if m, err = c.Load(be, backend.Options{Precision: backend.Float32, Threads: 1}); err != nil {
		return nil, nil, err
	}
	defer m.Close()
	return golden.NewSequence(t, be, m, len(g.Tokens)).Step(g.Tokens, rows...), m, nil
}

// bound is the largest difference allowed, as a share of the range of logits.
func (g *saved) bound() float64 { return max(1e-4, 3*g.Moves) }

func (g *saved) diff(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	worst := 0.0
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); d > worst || math.IsNaN(d) {
			worst = d
		}
	}
	return worst / g.Range
}

// savedGoldens are the names of the goldens of saved folders.
func savedGoldens(t *testing.T) []string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("testdata", "saved", "*.json"))
	var names []string
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".json"); name != "left_out" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatal("no goldens of saved folders")
	}
	return names
}

func loadSaved(t *testing.T, name string) *saved {
	t.Helper()
	var g saved
	golden.Load(t, filepath.Join("testdata", "saved", name+".json"), &g)
	return &g
}

// TestSavedFolders compares logits with those of transformers, of folders that it saved itself: every key is in its newest
// spelling, and none is left out.
func TestSavedFolders(t *testing.T) {
	for _, name := range savedGoldens(t) {
		t.Run(name, func(t *testing.T) { loadSaved(t, name).compare(t, cpu.New()) })
	}
}

func (g *saved) compare(t *testing.T, be backend.Backend) {
	defer be.Close()
	got, m, err := g.run(t, g.folder(t), g.Config, be, g.Rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range m.Warnings {
		t.Errorf("warning: %s", w)
	}
	d := g.diff(got, g.Logits)
	t.Logf("%.2g of the logit range (bound %.1g, the reference itself moves %.1g)", d, g.bound(), g.Moves)
	if !(d <= g.bound()) {
		t.Errorf("differs by %.3g of the logit range, bound %g", d, g.bound())
	}
}

var mutationTable = flag.Bool("mutations", false, "print how every mutation of a configuration ends")

// TestMutations changes every key of the configs that transformers saves. What a key means must be in the numbers, or be refused
// or told of by name: the reference says what it means.
func TestMutations(t *testing.T) {
	for _, name := range savedGoldens(t) {
		g := loadSaved(t, name)
		if len(g.Mutations) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) { g.mutate(t) })
	}
}

func (g *saved) mutate(t *testing.T) {
	folder, last := g.folder(t), []int32{int32(len(g.Tokens) - 1)}
	be := cpu.New()
	defer be.Close()
	base, _, err := g.run(t, folder, g.Config, be, last)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i, m := range g.Mutations {
		if testing.Short() && i%5 != 0 {
			continue
		}
		got, loaded, err := g.run(t, folder, m.apply(t, g.Config), be, last)
		end, fault := g.judge(&m, base, got, loaded, err)
		if *mutationTable {
			t.Logf("%-10s %s", end, m.String())
		}
		count[end]++
		if fault != "" {
			t.Errorf("%s: %s", m.String(), fault)
		}
	}
	t.Logf("%v", count)
}

// judge says how a mutation ended, and what is wrong with that.
func (g *saved) judge(m *mutation, base, got []float32, loaded *model.Loaded, err error) (end, fault string) {
	n := len(base)
	if g.Picks > 0 {
		n = g.Picks
	}
	bound := max(g.bound(), 3*m.Moves)
	if err != nil {
		if m.Error != "" {
			return "refused", ""
		}
		var bad *model.LoadError
		named := slices.ContainsFunc(m.keys(), func(k string) bool { return strings.Contains(err.Error(), k) })
		if !named && !(errors.As(err, &bad) && bad.Tensor != "") { // which tensors do not fit says which sizes are meant
			return "refused", fmt.Sprintf("refused without naming the key: %v", err)
		}
		return "refused", ""
	}
	warned := slices.ContainsFunc(loaded.Warnings, func(w string) bool {
		return slices.ContainsFunc(m.keys(), func(k string) bool { return strings.Contains(w, k) })
	})
	same := g.diff(got[:n], base[:n]) == 0
	switch {
	case slices.Contains(m.keys(), "rope_traditional"):
		return "changes", "" // a key of mlx-lm, which transformers does not know
	case loaded.Context > 0 && loaded.Context < len(g.Tokens):
		return "refused", "" // the text is longer than such a model takes, which the engine refuses
	case warned:
		return "warned", ""
	case m.Error != "" && same:
		return "harmless", "" // the folder says more than the key
	case m.Error != "":
		return "changes", ""
	case g.diff(got[:n], m.Logits) <= bound && same:
		return "harmless", ""
	case g.diff(got[:n], m.Logits) <= bound:
		return "changes", ""
	case same:
		return "unread", fmt.Sprintf("changes nothing here, and the reference by %.2g of the logit range", g.diff(base[:n], m.Logits))
	}
	return "wrong", fmt.Sprintf("differs from the reference by %.2g of the logit range, the reference from before by %.2g", g.diff(got[:n], m.Logits), g.diff(base[:n], m.Logits))
}

// TestRopeTraditional turns neighbours where mlx-lm does so for this key of its own, and tells of the key where nobody reads it.
func TestRopeTraditional(t *testing.T) {
	for name, read := range map[string]bool{
		"gemma": true, "gemma2": true, "llama": true, "mixtral": true, "olmoe": true, "qwen2": true,
		"exaone4": false, "granite": false, "hunyuan_v1_dense": false, "lfm2": false, "ministral3": false, "nanochat": false, "nemotron": false, "olmo3": false, "phi": false,
		"qwen3": false, "qwen3_5_text": false, "qwen3_next": false, "starcoder2": false,
	} {
		t.Run(name, func(t *testing.T) {
			g, be := loadSaved(t, name), cpu.New()
			defer be.Close()
			m := mutation{Key: "rope_traditional", Value: json.RawMessage("true")}
			base, _, err := g.run(t, g.folder(t), g.Config, be, g.Rows)
			if err != nil {
				t.Fatal(err)
			}
			got, loaded, err := g.run(t, g.folder(t), m.apply(t, g.Config), be, g.Rows)
			if err != nil {
				t.Fatal(err)
			}
			told := slices.ContainsFunc(loaded.Warnings, func(w string) bool { return strings.Contains(w, "rope_traditional") })
			if changes := g.diff(got, base) != 0; changes != read || told == read {
				t.Errorf("changes the logits: %v, told of: %v; mlx-lm reads it: %v", changes, told, read)
			}
		})
	}
}

// TestPublishedKeys gives every architecture the keys that published configs of any have: each is read, harmless,
// refused or told of.
func TestPublishedKeys(t *testing.T) {
	union := map[string]json.RawMessage{}
	for _, p := range publishedConfigs(t) {
		for _, keys := range languageKeys(t, p.Config) {
			for k, v := range keys {
				if _, ok := union[k]; !ok && string(v) != "null" {
					union[k] = v
				}
			}
		}
	}
	for _, k := range []string{"model_type", "text_config", "quantization", "quantization_config"} {
		delete(union, k)
	}
	for n, name := range savedGoldens(t) {
		g := loadSaved(t, name)
		if len(g.Mutations) == 0 || testing.Short() && n%6 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) { g.foreign(t, union) })
	}
}

// languageKeys are the keys of a config, and of the language model's part of it.
func languageKeys(t *testing.T, config []byte) []map[string]json.RawMessage {
	t.Helper()
	var top, text map[string]json.RawMessage
	if err := json.Unmarshal(config, &top); err != nil {
		t.Fatal(err)
	}
	if raw, ok := top["text_config"]; ok {
		if err := json.Unmarshal(raw, &text); err != nil {
			t.Fatal(err)
		}
	}
	return []map[string]json.RawMessage{top, text}
}

// foreign adds each key that the golden's config has not.
func (g *saved) foreign(t *testing.T, union map[string]json.RawMessage) {
	folder, last, be := g.folder(t), []int32{int32(len(g.Tokens) - 1)}, cpu.New()
	defer be.Close()
	base, _, err := g.run(t, folder, g.Config, be, last)
	if err != nil {
		t.Fatal(err)
	}
	own := languageKeys(t, g.Config)
	at, has := "", own[0]
	if own[1] != nil {
		at, has = "text_config.", own[1]
	}
	count := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(union)) {
		if _, ok := has[key]; ok {
			continue
		}
		m := mutation{Key: at + key, Value: union[key]}
		config := m.apply(t, g.Config)
		r, err := reading(t, string(config))
		end := "the same" // a value that the architecture has anyway, or one that another key overrules
		switch {
		case err != nil:
			end = "refused"
		case slices.ContainsFunc(r.Unread, func(u model.Unread) bool { return u.Key == at+key || strings.HasPrefix(u.Key, at+key+".") }):
			end = "warned"
		case model.IsHarmless(key):
			end = "harmless"
		default:
			got, _, err := g.run(t, folder, config, be, last)
			switch {
			case err != nil:
				end = "refused"
			case g.diff(got, base) != 0:
				end = "changes"
			}
		}
		if count[end]++; *mutationTable && end != "warned" && end != "harmless" {
			t.Logf("%-10s %s=%s", end, key, union[key])
		}
	}
	t.Logf("%v", count)
}
