package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/safetensors"
)

// TestAdapter: a model is loaded with the adapter it is given, and what is kept on disk for it is not what is kept without.
func TestAdapter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tuned")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	const module = "model.layers.4.self_attn.q_proj"
	if err := safetensors.Write(&b, []safetensors.Tensor{
		{Name: module + ".lora_a", DType: "F32", Shape: []int{256, 1}, Bytes: make([]byte, 4*256)},
		{Name: module + ".lora_b", DType: "F32", Shape: []int{1, 256}, Bytes: make([]byte, 4*256)},
	}, nil); err != nil {
		t.Fatal(err)
	}
	write("adapters.safetensors", []byte(b.String()))
	write("adapter_config.json", []byte(`{"lora_parameters": {"rank": 1, "scale": 20}}`))

	src, err := Find("", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	print := func() string {
		t.Helper()
		s, err := identity(src, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	plain := print()
	cfg.AdapterPath = dir
	adapted := print()
	write("adapter_config.json", []byte(`{"lora_parameters": {"rank": 1, "scale": 10}}`))
	if other := print(); plain == adapted || other == adapted {
		t.Errorf("the same fingerprint for another adapter: %q", other)
	}
	w, err := OpenWeights(src, cfg, backends())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.Summary(), ", adapter tuned, ") {
		t.Errorf("summary %q", w.Summary())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	write("adapter_config.json", []byte(`{"fine_tune_type": "dora"}`))
	if _, err := OpenWeights(src, cfg, backends()); err == nil || !strings.Contains(err.Error(), "load adapter: "+dir+": adapter_config.json: fine_tune_type \"dora\"") {
		t.Errorf("error %v", err)
	}
}
