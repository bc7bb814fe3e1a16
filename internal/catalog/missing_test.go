package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/hub"
)

func TestMissing(t *testing.T) {
	have := []string{"mlx-community/Qwen3-0.6B-4bit", "org/a", "org/b", "org/c"}
	const rest = "on this disk are mlx-community/Qwen3-0.6B-4bit, org/a, org/b and 1 more (hearth ls)"
	for _, tt := range []struct {
		name, target string
		have         []string
		want         string
	}{
		{"mlx-comunity/Qwen3-0.6B-4bit", "", have, "did you mean mlx-community/Qwen3-0.6B-4bit?; to download it: hearth pull mlx-comunity/Qwen3-0.6B-4bit; " + rest},
		{"qwen3-0.6b-4bits", "", have, "did you mean mlx-community/Qwen3-0.6B-4bit?; " + rest},
		{"other/thing@v1", "", have[1:2], "to download it: hearth pull other/thing@v1; on this disk: org/a"},
		{"qwen3", "mlx-community/Qwen3-8B-4bit", nil, "to download it: hearth pull mlx-community/Qwen3-8B-4bit"},
		{"nothing like it", "", nil, "MODEL is a folder, an id such as mlx-community/Qwen3-0.6B-4bit, an alias (hearth alias lists them), or demo"},
		{"gema3", "", nil, "did you mean gemma3?"},
	} {
		if got := Missing(&hub.NotFoundError{ID: tt.name, Target: tt.target, Have: tt.have, Aliases: []string{"gemma3", "mistral"}}); got != tt.want {
			t.Errorf("%s: %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// What is half there is said to be that, with what is missing and how it comes.
func TestFindHalf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models--org--m", "snapshots", "c1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.json": `{"model_type":"llama"}`, "tokenizer.json": "{}", "model-1.safetensors": "",
		"model.safetensors.index.json": `{"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
	_, err := Find("org/m", hub.NewRoots(hub.Root{Dir: root}))
	var half *HalfError
	if !errors.As(err, &half) || !strings.Contains(err.Error(), "half-downloaded in "+dir+": model-2.safetensors is missing") ||
		half.Hint() != "hearth pull org/m goes on where the download ended" {
		t.Errorf("%v", err)
	}
}

// TestJudge: what models are for is told by their small files alone.
func TestJudge(t *testing.T) {
	for config, want := range map[string]string{
		`{"model_type": "llama"}`: "chat",
		`{"model_type": "bert"}`:  "embedding",
		`{"model_type": "bert", "architectures": ["BertForSequenceClassification"], "num_labels": 1}`: "rerank",
		`{"model_type": "llama", "architectures": ["LlamaModel"]}`:                                    "embedding",
		`{"model_type": "wombat"}`: `config.json: architecture "wombat" is not supported`,
		`{"model_type"`:            "config.json: is no valid JSON at byte 13: unexpected end of JSON input",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		kind, problem := Judge(dir)
		if kind == "" && problem == "" {
			kind = "chat"
		}
		if got := fmt.Sprint(kind, problem); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}
