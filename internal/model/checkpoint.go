package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/jsonc"
	"hearth/internal/regular"
	"hearth/internal/safetensors"
)

// Names of a model folder.
const (
	configFile     = "config.json"
	generationFile = "generation_config.json"
	indexFile      = "model.safetensors.index.json"
	hfQuantFile    = "hf_quant_config.json"
	weightGlob     = "model*.safetensors"
)

// Bounds on the files of a folder, well above the largest known ones: configs have some kilobytes, indices up to 10 MB.
const (
	maxConfigBytes = 16 << 20
	maxIndexBytes  = 64 << 20
	maxShards      = 4096 // files with weights
)

// Checkpoint is an open model folder: its configs are read, its weight files are mapped. Close it when nothing loaded
// from it is in use any more.
type Checkpoint struct {
	Where      string // for errors and listings
	Type       string // model_type of config.json
	Config     []byte // config.json
	Generation Generation
	Adapter    *Adapter // to load with the model; nil: none
	Warnings   []string // what may have been meant otherwise than it is read; loading adds some
	// Stop is asked before each weight is loaded: its error ends the load. nil: it goes on to its end.
	Stop func() error

	fsys  fs.FS
	held  io.Closer // the folder, so that nobody removes it; nil: none
	blank bool      // config.json alone: tensors have their shapes and nothing in them
	quant quantization
	files []*safetensors.File
	where map[string]int // tensor name -> file
}

// OpenCheckpoint reads and checks the folder fsys; where is how errors call it. All errors are LoadErrors.
func OpenCheckpoint(fsys fs.FS, where string) (*Checkpoint, error) {
	c := &Checkpoint{Where: where, fsys: fsys, where: map[string]int{}}
	for _, step := range []func() error{c.hold, c.readConfig, c.readGeneration, c.openFiles} {
		if err := step(); err != nil {
			c.Close()
			return nil, c.blame(err)
		}
	}
	return c, nil
}

// OpenConfig makes a checkpoint of a config.json alone, to tell what a model of it would be and how much memory it
// would take. What is loaded from it computes nonsense. Weights in the quantisation of another tool than MLX are
// counted as bfloat16.
func OpenConfig(b []byte, where string) (*Checkpoint, error) {
	c := &Checkpoint{Where: where, blank: true}
	if err := c.parseConfig(b); err != nil {
		return nil, c.blame(err)
	}
	var bad *LoadError
	switch err := c.parseQuantization(nil); {
	case errors.As(err, &bad) && bad.Problem != "":
		c.quant = quantization{}
		c.tell(fmt.Sprintf("%s; %s; here weights are counted as bfloat16", bad.Problem, bad.Hint))
	case err != nil:
		return nil, c.blame(err)
	default:
		if said, _ := saysQuantization(c.Config); said && c.quant.None() {
			c.tell("the weights are in another tool's format; here they are counted as bfloat16")
		}
	}
	return c, nil
}

// Encodes reports an architecture that embeds or ranks texts and generates none.
func (c *Checkpoint) Encodes() bool { return encodes(c.Type) }

// Name is the model type as it is spelled here and in mlx-lm, with "-" or with "_".
func (c *Checkpoint) Name() string { return named(c.Type) }

func (c *Checkpoint) blame(err error) error { return blame(err, "", c.Where) }

// Close unmaps the weight files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	if c.held != nil {
		errs = append(errs, c.held.Close())
	}
	c.files, c.where, c.held = nil, nil, nil
	return errors.Join(errs...)
}

// hold keeps the folder from being removed while its files are in use.
func (c *Checkpoint) hold() (err error) {
	if c.held, err = regular.Hold(c.fsys); errors.Is(err, regular.ErrBusy) {
		return &LoadError{Problem: "is being removed"}
	}
	return err
}

// Tensor is a stored tensor as its file has it, nil if there is none of that name. Its bytes are valid until Close.
func (c *Checkpoint) Tensor(name string) *B.Tensor {
	i, ok := c.where[name]
	if !ok {
		return nil
	}
	t, _ := c.files[i].Tensor(name)
	return &B.Tensor{Name: name, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes}
}

// Release says that the bytes of a tensor are not needed for now, so that their memory can be used for something else.
func (c *Checkpoint) Release(name string) {
	if i, ok := c.where[name]; ok {
		t, _ := c.files[i].Tensor(name)
		c.files[i].Release(t)
	}
}

func (c *Checkpoint) readConfig() error {
	b, err := regular.ReadFS(c.fsys, configFile, maxConfigBytes)
	if err != nil {
		return c.foreign(configFile, err)
	}
	if err := c.parseConfig(b); err != nil {
		return err
	}
	hf, err := c.readHFQuant(c.Config)
	if err != nil {
		return err
	}
	return c.parseQuantization(hf)
}

// parseConfig takes the contents of config.json, of a type that is known.
func (c *Checkpoint) parseConfig(b []byte) error {
	if len(bytes.TrimSpace(jsonc.WithoutBOM(b))) == 0 {
		return &LoadError{File: configFile, Problem: "is empty", Hint: "fetch the file again"}
	}
	b = jsonc.Tagged(jsonc.WithoutBOM(b))
	typ, err := typeOf(b)
	if err != nil {
		return err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(b, &top); err != nil {
		return inConfig(tidyJSON(err))
	}
	if typ == "" {
		return &LoadError{File: configFile, Problem: "model_type is missing", Hint: "this is not the config of a language model"}
	}
	c.Type, c.Config = calledBy(typ, top), b
	if err := known(c.Type); err != nil && !encodes(c.Type) {
		return err
	}
	return nil
}

// parseQuantization reads how weights are stored; hf is hf_quant_config.json, nil if there is none.
func (c *Checkpoint) parseQuantization(hf []byte) (err error) {
	c.quant, err = parseQuantization(c.Config, hf)
	c.Warnings = append(c.Warnings, c.quant.warnings...)
	return inConfig(err)
}

// readHFQuant gives hf_quant_config.json, nil if there is none. A broken file is an error only where config.json says
// nothing of quantisation, because then the numbers depend on it.
func (c *Checkpoint) readHFQuant(cfg []byte) ([]byte, error) {
	hf, err := regular.ReadFS(c.fsys, hfQuantFile, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &LoadError{File: hfQuantFile, Err: err}
	}
	said, err := saysQuantization(cfg)
	if err != nil {
		return nil, err
	}
	plain, fault, err := jsonc.Plain(hf)
	switch {
	case err != nil && said:
		c.warn(hfQuantFile, "%v; the file is left out: %s says how the weights are stored", err, configFile)
		return nil, nil
	case err != nil:
		return nil, &LoadError{File: hfQuantFile, Err: err, Hint: "fetch the file again: it says how the weights are stored"}
	}
	c.readOver(hfQuantFile, fault)
	return plain, nil
}

// foreign explains a folder in which a file is missing, from what is there instead.
func (c *Checkpoint) foreign(missing string, cause error) error {
	if strings.HasSuffix(strings.ToLower(c.Where), ".gguf") {
		return ggufError("")
	}
	entries, err := fs.ReadDir(c.fsys, ".")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &LoadError{Problem: "the folder does not exist", Hint: "give the path of a model folder"}
	case err != nil:
		return &LoadError{Problem: "is not a folder", Hint: "give the path of a folder with config.json and model.safetensors in it"}
	}
	var pytorch, adapter string
	for _, e := range entries {
		name := e.Name()
		switch ext := path.Ext(strings.ToLower(name)); {
		case ext == ".gguf":
			return ggufError(name)
		case strings.HasPrefix(name, "pytorch_model"), ext == ".pth", ext == ".pt":
			pytorch = name
		case name == "adapter_config.json", strings.HasPrefix(name, "adapter") && (ext == ".safetensors" || ext == ".npz" || ext == ".bin"):
			adapter = cmp.Or(adapter, name)
		}
	}
	switch {
	case adapter != "":
		return &LoadError{File: adapter, Problem: "the folder holds an adapter without the model it belongs to",
			Hint: "give the folder of the base model, and this one as --adapter-path"}
	case pytorch != "":
		return &LoadError{File: pytorch, Problem: "the folder holds PyTorch weights, which are not supported",
			Hint: "use a conversion of the model to MLX or safetensors"}
	case !errors.Is(cause, fs.ErrNotExist):
		return &LoadError{File: missing, Err: cause}
	}
	return &LoadError{File: missing, Problem: "is missing", Hint: "give the path of a folder with config.json and model.safetensors in it"}
}

func ggufError(name string) error {
	return &LoadError{File: name, Problem: "GGUF files are not supported", Hint: "use the model's MLX or safetensors version, a folder with config.json in it"}
}

// openFiles maps every shard and notes which file has which tensor. The index may name further files inside the folder;
// where two files have a tensor of one name it says which one counts.
func (c *Checkpoint) openFiles() error {
	names, err := fs.Glob(c.fsys, weightGlob)
	if err != nil {
		return err
	}
	index, err := c.readIndex()
	if err != nil {
		return err
	}
	for _, file := range index {
		names = append(names, file)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxShards {
		return &LoadError{File: indexFile, Problem: fmt.Sprintf("the folder has %d files of weights, more than %d", len(names), maxShards)}
	}
	if len(names) == 0 {
		for _, w := range c.Warnings {
			if strings.HasPrefix(w, indexFile) {
				return &LoadError{Problem: w, Hint: "fetch the file again"}
			}
		}
		return c.foreign("model.safetensors", fs.ErrNotExist)
	}
	for i, name := range names {
		f, err := safetensors.Open(c.fsys, name)
		var system *fs.PathError
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &LoadError{File: name, Problem: indexFile + " names this file, but it is missing", Hint: hints[Missing]}
		case errors.As(err, &system):
			return &LoadError{File: name, Err: system.Err}
		case err != nil:
			return &LoadError{Err: err, Hint: "fetch the file again"}
		}
		c.files = append(c.files, f)
		for _, t := range f.Tensors {
			k, twice := c.where[t.Name]
			if twice && index[t.Name] != name && index[t.Name] != names[k] {
				return &LoadError{File: name, Tensor: t.Name, Problem: fmt.Sprintf("tensor %s is in %s as well", regular.Clip(t.Name), regular.Clip(names[k])), Hint: "remove one of the two files"}
			}
			if !twice || index[t.Name] == name {
				c.where[t.Name] = i
			}
		}
	}
	return nil
}

// readIndex returns the index's map from tensor to file, nil if there is no index. A broken index is ignored, as mlx-lm
// ignores all of them: a missing tensor, or one that two files have, is an error anyway.
func (c *Checkpoint) readIndex() (map[string]string, error) {
	var x struct {
		Map map[string]string `json:"weight_map"`
	}
	found, err := c.readOptional(indexFile, maxIndexBytes, &x, "the weights are those of the files "+weightGlob)
	if err != nil || !found {
		return nil, err
	}
	for _, tensor := range slices.Sorted(maps.Keys(x.Map)) {
		file := x.Map[tensor]
		if !fs.ValidPath(file) || strings.Contains(file, `\`) {
			return nil, &LoadError{File: indexFile, Tensor: tensor, Problem: fmt.Sprintf("tensor %s is said to be in %s, which is outside the folder", regular.Clip(tensor), regular.Quote(file))}
		}
		if path.Ext(file) != ".safetensors" {
			return nil, &LoadError{File: indexFile, Tensor: tensor, Problem: fmt.Sprintf("tensor %s is said to be in %s, which is no safetensors file", regular.Clip(tensor), regular.Quote(file))}
		}
	}
	return x.Map, nil
}
