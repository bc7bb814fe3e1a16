package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/jsonc"
	"hearth/internal/regular"
	"hearth/internal/safetensors"
)

// Files of sentence-transformers, which say what is done with the rows of a text.
const (
	modulesFile    = "modules.json"
	poolingFolder  = "1_Pooling"
	sentenceConfig = "sentence_bert_config.json"
)

// maxModules bounds what modules.json lists, each of which is a file to read; models have up to five.
const maxModules = 64

// denseModule begins the names of the tensors of layers behind the pooling.
const denseModule = "dense."

// Pooling says how the rows of a text become its vector or its score.
type Pooling struct {
	Kind      Kind
	Rows      B.PoolKind
	Dense     []Dense // behind the pooled row, when embedding
	Normalize bool    // vectors have length 1
	MaxTokens int     // of a text; 0: as many as there are positions

	Labels int  // scores of a ranking model's head
	Raw    bool // scores are the head's numbers; else they are squeezed between 0 and 1
	// Yes and No are tokens: the score is the probability of the first, of the two. Equal: there is a head.
	Yes, No int32
}

// Dense is a layer behind the pooling.
type Dense struct {
	In, Out int
	Bias    bool
	Act     B.Activation
	Path    string // folder with its file; "": its tensors are with the model's
}

func (d *Dense) file() string { return path.Join(d.Path, configFile) }

func (p *Pooling) yesNo() bool { return p.Yes != p.No }

// Vector makes a row of Encoder.Forward the vector it stands for: the first n numbers, of length 1 where the model
// normalises or n is less than all. It may return row itself, changed.
func (p *Pooling) Vector(row []float32, n int) []float32 {
	if n == len(row) && !p.Normalize {
		return row
	}
	row = row[:n]
	var square float64
	for _, x := range row {
		square += float64(x) * float64(x)
	}
	if square == 0 {
		return row
	}
	f := 1 / math.Sqrt(square)
	for i, x := range row {
		row[i] = float32(float64(x) * f)
	}
	return row
}

// Score makes a row of Encoder.Forward a score.
func (p *Pooling) Score(row []float32) float64 {
	x := float64(row[0])
	switch {
	case p.yesNo():
		x -= float64(row[1])
	case p.Raw:
		return x
	}
	return 1 / (1 + math.Exp(-x))
}

// Pooling reads what the folder says about the use of the model. A folder that says nothing about it is of Kind
// Generates, with the pooling that its architecture has by default, for callers who know better.
func (c *Checkpoint) Pooling() (Pooling, error) {
	p, err := c.pooling()
	if err != nil {
		return p, c.blame(err)
	}
	return p, nil
}

// encoderKeys are keys of config.json about what a model is used for.
type encoderKeys struct {
	Architectures []string                   `json:"architectures"`
	NumLabels     int                        `json:"num_labels"`
	Labels        map[string]json.RawMessage `json:"id2label"`
	Activation    string                     `json:"sbert_ce_default_activation_function"`
	Sentence      struct {
		Activation string `json:"activation_fn"`
	} `json:"sentence_transformers"`
}

func (c *Checkpoint) pooling() (Pooling, error) {
	var k encoderKeys
	if err := json.Unmarshal(c.Config, &k); err != nil {
		return Pooling{}, inConfig(tidyJSON(err))
	}
	p := Pooling{Rows: defaultRows(c.Type), Normalize: true}
	if err := c.readRows(&p); err != nil {
		return p, err
	}
	arch := ""
	if len(k.Architectures) > 0 {
		arch = k.Architectures[0]
	}
	switch {
	case strings.HasSuffix(arch, "ForSequenceClassification"):
		p.Kind = Ranks
		p.Labels = 2 // transformers' default
		if k.NumLabels > 0 {
			p.Labels = k.NumLabels
		} else if len(k.Labels) > 0 {
			p.Labels = len(k.Labels)
		}
		act := k.Sentence.Activation
		if act == "" {
			act = k.Activation
		}
		p.Raw = strings.HasSuffix(act, "Identity")
		return p, c.readMaxTokens(&p)
	case encodes(c.Type) || strings.HasSuffix(arch, "Model") && !strings.HasSuffix(arch, "LMHeadModel") && !c.hasHead():
		p.Kind = Embeds
	}
	if err := c.readModules(&p); err != nil {
		return p, err
	}
	return p, c.readMaxTokens(&p)
}

// hasHead reports a head of its own for a vocabulary.
func (c *Checkpoint) hasHead() bool {
	for name := range c.where {
		if strings.HasSuffix(name, "lm_head.weight") {
			return true
		}
	}
	return false
}

// defaultRows is what is pooled where a folder does not say.
func defaultRows(typ string) B.PoolKind {
	if e, ok := embedders[named(typ)]; ok {
		return e.rows
	}
	if encodes(typ) || strings.HasPrefix(typ, "gemma") {
		return B.PoolMean
	}
	return B.PoolLast
}

// poolings are the words of llama_bidirec's key pooling.
var poolings = map[string]B.PoolKind{"avg": B.PoolMean, "cls": B.PoolFirst, "last": B.PoolLast}

// readRows reads the key pooling, which llama_bidirec has in place of a folder.
func (c *Checkpoint) readRows(p *Pooling) error {
	if named(c.Type) != "llama_bidirec" {
		return nil
	}
	cfg, err := openConfig(c.Type, c.Config)
	if err == nil {
		p.Rows, err = cfg.poolingOf(p.Rows)
	}
	return inConfig(err)
}

// poolingOf is what the key pooling says.
func (c *config) poolingOf(missing B.PoolKind) (B.PoolKind, error) {
	var k struct {
		Pooling *string `json:"pooling"`
	}
	if c.into(&k); k.Pooling == nil {
		return missing, c.err
	}
	rows, ok := poolings[*k.Pooling]
	if !ok {
		return 0, fmt.Errorf("pooling is %s; avg, cls and last are supported", regular.Quote(*k.Pooling))
	}
	return rows, nil
}

// readJSON reads a file that may be absent. What it says decides about numbers, so one that cannot be read is an error.
func (c *Checkpoint) readJSON(name string, to any) (found bool, err error) {
	b, err := regular.ReadFS(c.fsys, name, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var fault string
	if err == nil {
		fault, err = jsonc.Unmarshal(b, to)
	}
	if err != nil {
		return false, &LoadError{File: name, Err: tidyJSON(err)}
	}
	c.readOver(name, fault)
	return true, nil
}

func (c *Checkpoint) readMaxTokens(p *Pooling) error {
	v := values{c: c, file: sentenceConfig}
	_, err := c.readOptional(sentenceConfig, maxConfigBytes, &v.of, "texts may be as long as the model has positions")
	if x := v.number("max_seq_length", 0, maxSize); x != nil {
		p.MaxTokens = int(*x)
	}
	return err
}

// readModules follows modules.json, or, where only that is there, the pooling's own folder.
func (c *Checkpoint) readModules(p *Pooling) error {
	var modules []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	found, err := c.readJSON(modulesFile, &modules)
	if err != nil {
		return err
	}
	if !found {
		found, err := c.readPooling(poolingFolder, p)
		if found {
			p.Kind = Embeds
		}
		return err
	}
	if len(modules) > maxModules {
		return &LoadError{File: modulesFile, Problem: fmt.Sprintf("it lists %d modules, more than %d", len(modules), maxModules)}
	}
	p.Kind, p.Normalize = Embeds, embedders[named(c.Type)].unit
	pooled := false
	for _, m := range modules {
		if m.Path != "" && (!fs.ValidPath(m.Path) || strings.Contains(m.Path, `\`)) {
			return &LoadError{File: modulesFile, Problem: fmt.Sprintf("%s is outside the folder", regular.Quote(m.Path))}
		}
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer", "Dropout":
		case "Pooling":
			if _, err = c.readPooling(m.Path, p); err != nil {
				return err
			}
			pooled = true
		case "Normalize":
			p.Normalize = true
		case "Dense":
			if !pooled {
				return &LoadError{File: modulesFile, Problem: fmt.Sprintf("module %s comes before a pooling: the model has a vector per token (ColBERT), which is not supported", regular.Quote(m.Type)),
					Hint: "use a model with a vector per text, such as LiquidAI/LFM2.5-Embedding-350M"}
			}
			if err := c.readDense(m.Path, p); err != nil {
				return err
			}
		case "LogitScore":
			if err := c.readLogitScore(m.Path, p); err != nil {
				return err
			}
		default:
			return &LoadError{File: modulesFile, Problem: fmt.Sprintf("module %s is not supported", m.Type),
				Hint: "known are Transformer, Pooling, Dense, Normalize, LogitScore and Dropout"}
		}
	}
	return nil
}

// readPooling reads the mode of a pooling, in either of two forms.
func (c *Checkpoint) readPooling(folder string, p *Pooling) (bool, error) {
	var k map[string]json.RawMessage
	name := path.Join(folder, configFile)
	found, err := c.readJSON(name, &k)
	if err != nil || !found {
		return found, err
	}
	var modes []string
	for key, v := range k {
		if m, ok := strings.CutPrefix(key, "pooling_mode_"); ok && string(v) == "true" {
			modes = append(modes, m)
		}
	}
	if v, ok := k["pooling_mode"]; ok {
		var m string
		if err := json.Unmarshal(v, &m); err != nil {
			return true, &LoadError{File: name, Problem: "pooling_mode should be one word"}
		}
		modes = []string{m}
	}
	slices.Sort(modes)
	switch mode := strings.Join(modes, " and "); mode {
	case "mean_tokens", "mean":
		p.Rows = B.PoolMean
	case "cls_token", "cls":
		p.Rows = B.PoolFirst
	case "lasttoken", "last_token":
		p.Rows = B.PoolLast
	default:
		return true, &LoadError{File: name, Problem: fmt.Sprintf("pooling %s is not supported", regular.Quote(mode)), Hint: "known are mean_tokens, cls_token and lasttoken, one at a time"}
	}
	return true, nil
}

func (c *Checkpoint) readDense(folder string, p *Pooling) error {
	d := Dense{Path: folder}
	k := struct {
		In   int    `json:"in_features"`
		Out  int    `json:"out_features"`
		Bias bool   `json:"bias"`
		Act  string `json:"activation_function"`
	}{Bias: true, Act: "torch.nn.modules.activation.Tanh"}
	name := path.Join(folder, configFile)
	found, err := c.readJSON(name, &k)
	switch {
	case err != nil:
		return err
	case !found:
		return &LoadError{File: name, Problem: "is missing, " + modulesFile + " names it", Hint: hints[Missing]}
	case k.In <= 0 || k.Out <= 0 || k.In > maxSize || k.Out > maxSize:
		return &LoadError{File: name, Problem: fmt.Sprintf("in_features %d and out_features %d are no sizes", k.In, k.Out)}
	}
	d.In, d.Out, d.Bias = k.In, k.Out, k.Bias
	switch act := k.Act[strings.LastIndexByte(k.Act, '.')+1:]; act {
	case "Identity":
	case "Tanh":
		d.Act = squash
	case "GELU":
		d.Act = B.Activation{Kind: B.GeluErf}
	case "Sigmoid":
		d.Act = B.Activation{Kind: B.SigmoidAct}
	default:
		return &LoadError{File: name, Problem: fmt.Sprintf("activation_function %s is not supported", k.Act)}
	}
	p.Dense = append(p.Dense, d)
	return nil
}

func (c *Checkpoint) readLogitScore(folder string, p *Pooling) error {
	var k struct {
		Yes *int32 `json:"true_token_id"`
		No  *int32 `json:"false_token_id"`
	}
	name := path.Join(folder, configFile)
	if _, err := c.readJSON(name, &k); err != nil {
		return err
	}
	if k.Yes == nil || k.No == nil || *k.Yes == *k.No {
		return &LoadError{File: name, Problem: "true_token_id and false_token_id should be two tokens"}
	}
	p.Kind, p.Rows, p.Yes, p.No = Ranks, B.PoolLast, *k.Yes, *k.No
	return nil
}

// openDense maps the files of dense layers, as far as the model's own files do not have them. Their tensors are called
// dense.N.weight and dense.N.bias.
func (c *Checkpoint) openDense(layers []Dense) error {
	for i, d := range layers {
		to := fmt.Sprintf("%s%d.", denseModule, i)
		if _, ok := c.where[to+"weight"]; ok || d.Path == "" {
			continue
		}
		name := path.Join(d.Path, "model.safetensors")
		f, err := safetensors.Open(c.fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			return &LoadError{File: name, Problem: "is missing, " + modulesFile + " names it", Hint: "use a conversion of the model to safetensors"}
		} else if err != nil {
			return &LoadError{Err: err, Hint: "fetch the file again"}
		}
		f.Rename(func(name string) string { return to + strings.TrimPrefix(name, "linear.") })
		c.files = append(c.files, f)
		for _, t := range f.Tensors {
			c.where[t.Name] = len(c.files) - 1
		}
	}
	return nil
}
