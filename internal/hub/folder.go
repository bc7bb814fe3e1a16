package hub

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Format is what a folder's weight files are.
type Format string

const (
	Safetensors Format = "safetensors" // what we load; MLX and float checkpoints alike
	GGUF        Format = "gguf"
	PyTorch     Format = "pytorch"
	Adapter     Format = "adapter" // LoRA weights without their base model
	Other       Format = "other"   // none that is known, or no weights at all
)

// Folder describes a model folder by its file names and config.json.
type Folder struct {
	Format    Format
	ModelType string // model_type of config.json, "" if there is none
	MLX       bool   // config.json has MLX quantisation
	Bits      int    // of that, 0 for float weights
	Bytes     int64  // of the weight files
	Tokenizer bool   // a tokenizer file is there
	// Missing are files that loading needs and that are not there: shards that the index names, links without what they lead
	// to, config.json beside weights. Sorted.
	Missing []string
	// Outside is the first file that is a link to a place where nothing is read, "" if there is none.
	Outside string
	// config reports that config.json is there.
	config bool
}

// Whole reports whether every file that loading needs is there.
func (f *Folder) Whole() bool {
	return f.Format == Safetensors && f.ModelType != "" && f.Tokenizer && len(f.Missing) == 0
}

// Inspect looks at a folder without opening weights; links are followed wherever they lead. The error is about the folder itself;
// odd contents are not an error.
func Inspect(dir string) (Folder, error) {
	return inspect(dir, func(string) bool { return true })
}

// inspect is Inspect that reads nothing of a link for which inside is false. It is asked with the link's own path.
func inspect(dir string, inside func(path string) bool) (Folder, error) {
	des, err := os.ReadDir(dir)
	if err != nil {
		return Folder{}, fmt.Errorf("read folder: %w", err)
	}
	f := Folder{Format: Other}
	rank, read := 0, map[string]bool{}
	for _, de := range des {
		name := de.Name()
		path := filepath.Join(dir, name)
		if de.Type()&fs.ModeSymlink != 0 && !inside(path) {
			f.Outside = cmp.Or(f.Outside, name)
			continue
		}
		k, r := formatOf(name)
		if r == 0 && !small(name) {
			continue
		}
		st, err := os.Stat(path)
		switch {
		case err != nil && r == 0, err != nil && k == Safetensors: // a link whose target was never downloaded
			f.Missing = append(f.Missing, name)
		case err == nil:
			read[name] = true
		}
		switch name {
		case "tokenizer.json", "tokenizer.model", "tiktoken.model":
			f.Tokenizer = f.Tokenizer || err == nil
		}
		if r > rank {
			rank, f.Format, f.Bytes = r, k, 0
		}
		if r > 0 && r == rank && err == nil {
			f.Bytes += st.Size()
		}
	}
	if read[configName] {
		f.readConfig(dir)
	}
	if read[indexName] {
		f.readIndex(dir, inside)
	}
	slices.Sort(f.Missing)
	f.Missing = slices.Compact(f.Missing)
	return f, nil
}

const (
	configName = "config.json"
	indexName  = "model.safetensors.index.json"
)

// small reports the files beside weights that decide what a folder is.
func small(name string) bool {
	switch name {
	case configName, indexName, "tokenizer.json", "tokenizer.model", "tiktoken.model":
		return true
	}
	return false
}

// FormatOf tells of a file's name which weights it has; Other: none.
func FormatOf(name string) Format {
	f, _ := formatOf(name)
	return f
}

// formatOf tells a weight file by its name; the higher rank wins where a folder has several formats.
func formatOf(name string) (Format, int) {
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

func (f *Folder) readConfig(dir string) {
	f.config = true
	b, err := readSmall(filepath.Join(dir, configName))
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

// readIndex checks that every file of a sharded checkpoint is there.
func (f *Folder) readIndex(dir string, inside func(path string) bool) {
	if f.Format != Safetensors && f.Format != Other {
		return
	}
	b, err := readSmall(filepath.Join(dir, indexName))
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
		path := filepath.Join(dir, filepath.Base(name))
		if st, err := os.Lstat(path); err == nil && st.Mode()&fs.ModeSymlink != 0 && !inside(path) {
			continue // said already
		}
		if _, err := os.Stat(path); err != nil {
			f.Missing = append(f.Missing, name)
		}
	}
	if len(f.Missing) > 0 && f.Format == Other {
		f.Format = Safetensors // of which no shard is there yet
	}
}

// State is whether a model can be loaded.
type State string

const (
	Whole    State = "whole"
	Half     State = "half-downloaded" // a pull of it goes on where it ended
	Unusable State = "unusable"
)

// Judge says what the model of a folder is for ("" is chat), or why none like it is loaded, in a sentence without a full stop.
// It is asked for folders whose config.json has a model_type.
type Judge func(dir string) (kind, problem string)

// judge gives the state of what is in a folder. downloaded is a folder that a hub's client fills.
func (e *Entry) judge(downloaded bool, judge Judge) {
	f := &e.Folder
	refuse := func(reason string) { e.State, e.Reason = Unusable, reason }
	switch {
	case f.Outside != "":
		refuse(fmt.Sprintf("%s is a link that leads out of the folders in which models are looked for; --models-dir names further ones", f.Outside))
	case f.Format == GGUF:
		refuse("it is in GGUF files, which are not supported; use the model's MLX or safetensors version")
	case f.Format == PyTorch:
		refuse("its weights are in PyTorch's format, which is not supported; use a conversion of the model to MLX or safetensors")
	case f.Format == Adapter && !downloaded, f.Format == Adapter && len(f.Missing) == 0 && !f.config:
		refuse("it is an adapter without the model it belongs to; serve that with --adapter-path and this folder")
	case f.config && f.ModelType == "" && !slices.Contains(f.Missing, configName):
		refuse("its config.json names no model_type")
	case !f.config && f.Format == Safetensors && !downloaded:
		refuse("there is no config.json beside its weights")
	}
	if e.State == "" && f.ModelType != "" && judge != nil {
		kind, problem := judge(e.Dir)
		if e.Kind = kind; problem != "" {
			refuse(problem)
		}
	}
	if e.State != "" {
		f.Missing = nil
		return
	}
	if !f.config {
		f.Missing = append(f.Missing, configName)
	}
	if f.Format != Safetensors {
		f.Missing = append(f.Missing, anyWeights)
	}
	if !f.Tokenizer {
		if len(f.Missing) == 0 && !downloaded {
			refuse("it has no tokenizer (tokenizer.json, tokenizer.model or tiktoken.model)")
			return
		}
		f.Missing = append(f.Missing, "tokenizer.json")
	}
	slices.Sort(f.Missing)
	f.Missing = slices.Compact(f.Missing)
	e.State = Whole
	if len(f.Missing) > 0 {
		e.State, e.Reason = Half, missingFiles(f.Missing)
	}
}

// anyWeights stands for the files of weights where none is named.
const anyWeights = "weights (*.safetensors)"

// missingFiles says which files are missing.
func missingFiles(names []string) string {
	const most = 3
	switch more := len(names) - most; {
	case len(names) == 1 && names[0] == anyWeights:
		return names[0] + " are missing"
	case len(names) == 1:
		return names[0] + " is missing"
	case more > 0:
		return fmt.Sprintf("%s and %d more files are missing", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are missing"
}
