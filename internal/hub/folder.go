package hub

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Kind is what a folder's files are.
type Kind string

const (
	Safetensors Kind = "safetensors" // what we load; MLX and float checkpoints alike
	GGUF        Kind = "gguf"
	PyTorch     Kind = "pytorch"
	Adapter     Kind = "adapter" // LoRA weights without their base model
	Other       Kind = "other"
)

// Folder describes a model folder by its file names and config.json.
type Folder struct {
	Kind      Kind
	ModelType string // model_type of config.json, "" if there is none
	MLX       bool   // config.json has MLX quantisation
	Bits      int    // of that, 0 for float weights
	Bytes     int64  // of the weight files
	Tokenizer bool   // a tokenizer file is there
	Missing   string // a shard the index names that is not there, "" if whole
}

// Inspect looks at a folder without opening weights. The error is about the folder itself; odd contents are not an error.
func Inspect(dir string) (Folder, error) {
	des, err := os.ReadDir(dir)
	if err != nil {
		return Folder{}, fmt.Errorf("read folder: %w", err)
	}
	f := Folder{Kind: Other}
	rank := 0
	for _, de := range des {
		name := de.Name()
		switch name {
		case "tokenizer.json", "tokenizer.model", "tiktoken.model":
			f.Tokenizer = true
		}
		k, r := kindOf(name)
		if r == 0 {
			continue
		}
		if r > rank {
			rank, f.Kind, f.Bytes = r, k, 0
		}
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && r == rank {
			f.Bytes += st.Size()
		} else if err != nil && k == Safetensors {
			f.Missing = name // a link whose target was never downloaded
		}
	}
	f.config(dir)
	f.shards(dir)
	return f, nil
}

// kindOf tells a weight file by its name; the higher rank wins where a folder has several kinds.
func kindOf(name string) (Kind, int) {
	switch ext := strings.ToLower(filepath.Ext(name)); {
	case strings.HasPrefix(name, "adapter") && (ext == ".safetensors" || ext == ".npz" || ext == ".bin"):
		return Adapter, 1
	case ext == ".safetensors":
		return Safetensors, 4
	case ext == ".gguf":
		return GGUF, 3
	case ext == ".pt", ext == ".pth", ext == ".bin" && strings.HasPrefix(name, "pytorch_model"):
		return PyTorch, 2
	}
	return Other, 0
}

func (f *Folder) config(dir string) {
	b, err := readSmall(filepath.Join(dir, "config.json"))
	if err != nil {
		return
	}
	var c struct {
		Type  string          `json:"model_type"`
		Quant json.RawMessage `json:"quantization"`
	}
	if json.Unmarshal(b, &c) != nil {
		return
	}
	f.ModelType = c.Type
	var q struct {
		Bits int `json:"bits"`
	}
	if json.Unmarshal(c.Quant, &q) == nil && q.Bits > 0 {
		f.MLX, f.Bits = true, q.Bits
	}
}

// shards checks that every file of a sharded checkpoint is there.
func (f *Folder) shards(dir string) {
	if f.Kind != Safetensors || f.Missing != "" {
		return
	}
	b, err := readSmall(filepath.Join(dir, "model.safetensors.index.json"))
	if err != nil {
		return
	}
	var ix struct {
		Map map[string]string `json:"weight_map"`
	}
	if json.Unmarshal(b, &ix) != nil {
		return
	}
	seen := map[string]bool{}
	for _, name := range ix.Map {
		if seen[name] {
			continue
		}
		seen[name] = true
		if _, err := os.Stat(filepath.Join(dir, filepath.Base(name))); err != nil && (f.Missing == "" || name < f.Missing) {
			f.Missing = name
		}
	}
}

// Whole reports whether every file that loading needs is there.
func (f Folder) Whole() bool {
	return f.Kind == Safetensors && f.ModelType != "" && f.Tokenizer && f.Missing == ""
}
