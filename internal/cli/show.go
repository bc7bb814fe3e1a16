package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/generate"
	"hearth/internal/jsonc"
	"hearth/internal/model"
	"hearth/internal/regular"
)

// shown is what hearth show says about a model.
type shown struct {
	ID           string           `json:"id"`
	Path         string           `json:"path,omitempty"` // none: the embedded demo
	Architecture string           `json:"architecture"`
	Adapter      string           `json:"adapter,omitempty"`
	Parameters   int64            `json:"parameters"`
	Bytes        int64            `json:"bytes"`
	Context      int              `json:"context,omitempty"`
	Ropes        []model.Rotation `json:"rope,omitempty"`
	Windows      []model.Window   `json:"windows,omitempty"`
	Unread       []model.Unread   `json:"not_understood"`
	Notes        []string         `json:"notes,omitempty"`
	State        shownState       `json:"state"`
	Precision    shownPrecision   `json:"precision"`
	Sight        *shownSight      `json:"sight,omitempty"` // nil: it cannot see
	Memory       []shownMemory    `json:"memory"`
	Layers       []shownLayers    `json:"layers"`
	Modules      []shownModules   `json:"modules"`
	Tokenizer    shownTokenizer   `json:"tokenizer"`
	Template     generate.Summary `json:"template"`
	Sampling     shownSampling    `json:"sampling"`
	Warnings     []string         `json:"warnings,omitempty"` // what is wrong with the folder and was read over or mended, the file first

	broken bool // a file that may have the template cannot be read
}

// shownState is what a sequence takes on the cpu backend: for each of its tokens (of layers with
// a window, while they are in it), and once, which is also what a snapshot in the prefix cache takes.
type shownState struct {
	Token    int64  `json:"bytes_per_token"`
	Sequence int64  `json:"bytes_per_sequence"`
	KVType   string `json:"kv_type"`
	Rounding string `json:"rounding,omitempty"` // what the type costs, in a phrase
}

func (s *shownState) String() string {
	text := console.Commas(s.Token) + " bytes per token"
	if s.Sequence > 0 {
		text += ", " + console.Commas(s.Sequence) + " per sequence and snapshot"
	}
	text += ", keys and values in " + s.KVType
	if s.Rounding != "" {
		text += ": " + s.Rounding
	}
	return text
}

// shownPrecision is what a server would run the model with on the cpu backend.
type shownPrecision struct {
	Name     string `json:"name"`
	Asked    string `json:"asked"`
	Rounding string `json:"rounding,omitempty"`
}

func (p shownPrecision) String() string {
	s := p.Name
	if p.Asked != p.Name {
		s += ", by " + p.Asked
	}
	if p.Rounding != "" {
		s += ": " + p.Rounding
	}
	return s
}

// shownLayers are the weights of one kind that are stored in one way.
type shownLayers struct {
	Kind       string `json:"kind"`
	Stored     string `json:"stored"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
}

// shownSight is how a model sees.
type shownSight struct {
	Tower     string `json:"tower"`
	Bytes     int64  `json:"bytes"` // of its weights, in memory from the first image on
	Processor string `json:"processor"`
	Patch     int    `json:"patch_size"`           // pixels along its side
	Merged    int    `json:"merge_size"`           // along a side
	Megapixel int    `json:"tokens_per_megapixel"` // of an image of 1000 by 1000 pixels
}

func (s *shownSight) String() string {
	patches := fmt.Sprintf("patches of %d by %d pixels", s.Patch, s.Patch)
	if s.Merged > 1 {
		patches += fmt.Sprintf(", %d by %d of them a token", s.Merged, s.Merged)
	}
	return fmt.Sprintf("tower of %s, %s bytes, %s, %s tokens for 1000 by 1000 pixels", s.Tower, console.Commas(s.Bytes), patches, console.Commas(int64(s.Megapixel)))
}

// sightOf looks at how a model sees, nil if it cannot.
func sightOf(src *catalog.Source, c *model.Checkpoint, cfg *config.Config, o backend.Options) (*shownSight, []string, error) {
	sight, tower, warnings := catalog.Sight(src.FS, c, cfg)
	if sight == nil {
		return nil, warnings, nil
	}
	p := sight.Processor
	s := &shownSight{Tower: tower.Type, Processor: p.Family()}
	var err error
	if s.Bytes, err = tower.Weights(cpu.New(), o); err != nil {
		return nil, nil, &model.LoadError{Where: src.Where, Err: err}
	}
	s.Patch, s.Merged = p.PatchSize()
	if plan, err := p.Plan(1000, 1000); err == nil {
		s.Megapixel = plan.Positions()
	}
	return s, warnings, nil
}

type shownTokenizer struct {
	Type       string `json:"type"`
	Vocabulary int    `json:"vocabulary"`
}

// shownSampling is what the model's authors recommend; nothing where they are silent.
type shownSampling chat.Sampling

func newShowCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [MODEL | CONFIG]",
		Short: "Say what a model is: architecture, quantisation, tokenizer, template",
		Long: `show reads a model's folder and says what hearth found in it. Weights are looked at but not loaded. MODEL is a folder,
an id in the Hugging Face cache, or demo, which is also what it shows without one. CONFIG is a config.json alone, of a model that is
not here yet: show says what would run and what it would take, and which keys are not understood.`,
		Example: `  hearth show
  hearth show mlx-community/Qwen3-0.6B-4bit --json
  hearth show Downloads/config.json`,
		Args: console.MaxArgs(1),
	}
	cfg := settings(cmd, config.Model, config.Run, config.Sampling)
	cmd.ValidArgsFunction = completeModel(cfg, 0, toServe)
	var contexts []int
	cmd.Flags().IntSliceVar(&contexts, "contexts", nil, "`lengths` of a sequence to say the memory for, with commas (default 4096, 32768 and what the model was made for)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		if len(args) > 0 {
			cfg.SetModel(args[0])
		}
		if isConfig(cfg.Model) {
			s, err := surveyConfig(cfg.Model, cfg, contexts)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), s, asJSON)
		}
		src, err := findModel(cfg)
		if err != nil {
			return err
		}
		cfg = catalog.Settings(src, cfg)
		if err := generate.CheckParsers(cfg.ToolCallParser, cfg.ReasoningParser); err != nil {
			return err
		}
		var s inspected
		if e, err := surveyEncoder(src, cfg); err != nil {
			return err
		} else if e != nil {
			s = e
		} else if s, err = survey(src, cfg, contexts); err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), s, asJSON)
	}
	return cmd
}

// inspected is what show says, for people or as JSON.
type inspected interface{ print(w io.Writer) error }

func show(w io.Writer, s inspected, asJSON bool) error {
	if !asJSON {
		return s.print(w)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(s)
}

// survey reads everything but the weights' values.
func survey(src *catalog.Source, cfg *config.Config, contexts []int) (*shown, error) {
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if cfg.AdapterPath != "" {
		a, err := model.OpenAdapter(regular.Dir(cfg.AdapterPath), cfg.AdapterPath)
		if err != nil {
			return nil, err
		}
		defer a.Close()
		c.Adapter = a
	}
	text, err := catalog.Text(src, cfg)
	broken := errors.As(err, new(*generate.BrokenError))
	if err != nil && !broken {
		return nil, err
	}
	look := &surveyor{}
	o := catalog.Options(src, cfg, model.Generates, backend.Caps{})
	f, err := newForecasts(c, o, cfg, look.note)
	if err != nil {
		return nil, err
	}
	debug.FreeOSMemory()
	f.program = console.ResidentMemory() + serverBytes // tokenizer and template are loaded, and nothing else is
	m := f.packed.Model
	s := &shown{State: stateOf(f.packed.State()), Precision: shownPrecision{o.Precision.String(), cfg.Precision, o.Precision.Rounding(backend.Caps{})}, ID: src.ID, Path: src.Path, Architecture: c.Type, Adapter: m.Adapter, Parameters: m.Params, Bytes: m.Bytes, Context: m.Context, Layers: look.layers, Modules: look.modules}
	s.read(m.Reading)
	s.broken = broken
	if text.Tokenizer != nil {
		text.StopIDs = c.Generation.EOS
		s.Tokenizer.Vocabulary = text.Tokenizer.Size()
		s.Template = text.Summary()
	}
	if s.Tokenizer.Type, err = tokenizerType(src.FS); err != nil {
		return nil, &model.LoadError{Where: src.Where, Err: err}
	}
	if s.Memory, err = f.memory(contexts, look.layers); err != nil {
		return nil, &model.LoadError{Where: src.Where, Err: err}
	}
	s.Sampling = shownSampling(c.Generation.Sampling)
	var blind []string
	if s.Sight, blind, err = sightOf(src, c, cfg, o); err != nil {
		return nil, err
	}
	s.Warnings = distinct(c.Warnings, slices.Concat(blind, text.Warnings)) // what is not understood of config.json is told apart
	return s, nil
}

// maxTokenizerBytes bounds a tokenizer's file, as package tokenizer does.
const maxTokenizerBytes = 1 << 28

// tokenizerType is the kind of model that the tokenizer's file holds.
func tokenizerType(fsys fs.FS) (string, error) {
	b, err := regular.ReadFS(fsys, "tokenizer.json", maxTokenizerBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		for _, name := range []string{"tokenizer.model", "tiktoken.model"} {
			if _, err := fs.Stat(fsys, name); err == nil {
				return name, nil
			}
		}
		return "unknown", nil
	}
	var t struct {
		Model struct {
			Type         string `json:"type"`
			ByteFallback bool   `json:"byte_fallback"`
		} `json:"model"`
	}
	if json.Unmarshal(jsonc.WithoutBOM(b), &t) != nil || t.Model.Type == "" {
		return "BPE", nil // old files leave it out
	}
	if t.Model.ByteFallback {
		return t.Model.Type + " with byte fallback", nil
	}
	return t.Model.Type, nil
}

// surveyor notes how weights are stored while they are loaded.
type surveyor struct {
	layers  []shownLayers
	modules []shownModules
	seen    map[string]bool // tensors
}

// visitor is a backend that checks and notes weights and does not load them.
func (s *surveyor) visitor() backend.Backend {
	dry, _ := cpu.New().DryLoader(backend.Options{})
	return backend.Visitor(func(w backend.WeightSpec) (backend.Weight, error) {
		s.note(w)
		return dry.Load(w)
	})
}

func (s *surveyor) note(w backend.WeightSpec) {
	for _, p := range w.Parts {
		if p.Weight == nil {
			continue
		}
		stored := p.Scheme.String()
		if p.Scheme.None() {
			stored = p.Weight.DType
		}
		l := shownLayers{Kind: layerKind(w), Stored: stored, Parameters: weights(p)}
		for _, t := range []*backend.Tensor{p.Weight, p.Scales, p.Biases, p.Global, p.Bias} {
			if t != nil {
				l.Bytes += int64(len(t.Bytes))
			}
		}
		s.add(l)
		s.module(l.Kind, stored, p)
	}
}

// weights is how many numbers a part stands for.
func weights(p backend.Part) int64 {
	n := int64(1)
	for _, d := range p.Weight.Shape {
		n *= int64(d)
	}
	if !p.Scheme.None() && p.Scales != nil { // codes are packed, scales are one a group
		n = int64(p.Scheme.Group)
		for _, d := range p.Scales.Shape {
			n *= int64(d)
		}
	}
	if p.Bias != nil {
		n += int64(p.Bias.Shape[0])
	}
	return n
}

func (s *surveyor) add(l shownLayers) {
	i := slices.IndexFunc(s.layers, func(o shownLayers) bool { return o.Kind == l.Kind && o.Stored == l.Stored })
	if i < 0 {
		at := len(s.layers) // behind others of its kind
		for i, o := range s.layers {
			if o.Kind == l.Kind {
				at = i + 1
			}
		}
		s.layers = slices.Insert(s.layers, at, l)
		return
	}
	s.layers[i].Parameters += l.Parameters
	s.layers[i].Bytes += l.Bytes
}

// layerKind groups weights by what they are for, from their use and the customary names of modules.
func layerKind(w backend.WeightSpec) string {
	name := w.Name
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(s string) bool { return strings.Contains(name, s) })
	}
	switch {
	case w.Use == backend.UseTable:
		return "embeddings"
	case w.Use == backend.UseVector:
		return "norms"
	case has("lm_head", "output_projection"):
		return "head"
	case has("router", "mlp.gate."), strings.HasSuffix(name, "mlp.gate"):
		return "router"
	case has("expert", "switch_mlp"):
		return "experts"
	case has("attn", "attention"):
		return "attention"
	case has("mlp", "feed_forward", "ffn"):
		return "mlp"
	}
	return "other"
}

func (s *shown) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("model", "%s", s.ID)
	if s.Path != "" {
		row("folder", "%s", s.Path)
	}
	row("architecture", "%s", s.Architecture)
	if s.Adapter != "" {
		row("adapter", "%s", s.Adapter)
	}
	row("parameters", "%s", console.Commas(s.Parameters))
	row("bytes", "%s", console.Commas(s.Bytes))
	if s.Context > 0 {
		row("context", "%s tokens", console.Commas(int64(s.Context)))
	}
	s.printReading(row)
	row("precision", "%s", s.Precision)
	if s.Sight != nil {
		row("images", "%s", s.Sight)
	}
	row("state", "%s", &s.State)
	for _, m := range s.Memory {
		images := ""
		if m.Images > 0 {
			images = ", images " + console.Commas(m.Images)
		}
		row("  memory", "%s bytes for %s tokens: weights %s, keys and values %s, a step %s%s, the program %s",
			console.Commas(m.Bytes), console.Commas(int64(m.Context)), console.Commas(m.Weights), console.Commas(m.State), console.Commas(m.Step), images, console.Commas(m.Program))
		if m.LowMemory.Files == 0 {
			continue // there are no files that could stay mapped
		}
		row("    low-memory", "%s bytes, and up to %s of the files that the system can take back", console.Commas(m.LowMemory.Bytes), console.Commas(m.LowMemory.Files))
	}
	printLayers(row, s.Layers, s.Modules)
	if s.Tokenizer.Type == "" { // of a config.json alone
		printShownWarnings(row, s.Warnings)
		return t.Flush()
	}
	row("tokenizer", "%s, %s tokens", s.Tokenizer.Type, console.Commas(int64(s.Tokenizer.Vocabulary)))
	if s.Template.Source == "" && s.broken {
		row("template", "none that can be read, so it does not chat")
	} else if s.Template.Source == "" {
		row("template", "none: a base model")
		row("  chat", "no: it continues text (/v1/completions); %s", makeChat)
	} else {
		row("template", "%s", s.Template.Source)
		row("  tools", "%s", toolsOf(&s.Template))
		row("  thinking", "%s", s.Template.Thinking)
		row("  system role", "%s", yes(s.Template.System))
		row("  content", "%s", s.Template.Content)
		row("  output", "%s (%s)", s.Template.Parser, s.Template.Evidence)
		if s.Template.Override != "" {
			row("  read as", "%s (asked for)", s.Template.Override)
		}
		if s.Template.Reasoning != "" {
			row("  reasoning", "%s", s.Template.Reasoning)
			if s.Template.Replays {
				row("", "put back into turns that clients send without it")
			}
		}
		for _, w := range s.Template.Warnings {
			row("  warning", "%s", w)
		}
	}
	row("replies end", "%s", endsWith(s.Template.Ends))
	for _, text := range s.Template.EndTexts {
		row("", "with the text %q (from the template)", text)
	}
	row("sampling", "%s", s.Sampling)
	printShownWarnings(row, s.Warnings)
	return t.Flush()
}

// endsWith lists the tokens that end a reply.
func endsWith(ends []generate.End) string {
	var list []string
	for _, e := range ends {
		text := regular.Clip(e.Token)
		if text == "" {
			text = fmt.Sprintf("token %d, which the vocabulary does not have", e.ID)
		}
		if e.Template {
			text += " (from the template)"
		}
		list = append(list, text)
	}
	if list == nil {
		return "at the limit of tokens only: nothing names a token that ends them"
	}
	return "with " + strings.Join(list, ", ")
}

// printShownWarnings is the last part of what show says of a folder, if there is something to warn of.
func printShownWarnings(row func(name, format string, args ...any), warnings []string) {
	name := "warnings"
	for _, w := range warnings {
		row(name, "%s", w)
		name = ""
	}
}

// distinct joins lists; a line that stands in several is there once.
func distinct(lists ...[]string) []string {
	var all []string
	for _, line := range slices.Concat(lists...) {
		if !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return all
}

// toolsOf says where tools stand in a prompt.
func toolsOf(t *generate.Summary) string {
	if t.ToolsInPrompt {
		return "in the system text"
	}
	return yes(t.Tools)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// MarshalJSON has what is given, in the table's order.
func (s shownSampling) MarshalJSON() ([]byte, error) {
	var fields []string
	for _, p := range chat.ListedParameters {
		if x := *p.Field((*chat.Sampling)(&s)); x != nil {
			value, _ := json.Marshal(*x) // a number that was read
			fields = append(fields, fmt.Sprintf("%q:%s", p.Name, value))
		}
	}
	return []byte("{" + strings.Join(fields, ",") + "}"), nil
}

// String lists what is given.
func (s shownSampling) String() string {
	b, err := s.MarshalJSON()
	if err != nil || string(b) == "{}" {
		return "no recommendation"
	}
	return strings.NewReplacer("{", "", "}", "", `"`, "", ":", " ", ",", ", ").Replace(string(b))
}
