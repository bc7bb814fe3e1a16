package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"hearth/internal/chat"
	"hearth/internal/tokenizer"
)

// Load reads the text side of a model from the root of its folder: tokenizer, chat template, ids that end a turn, and
// sampling defaults.
func Load(fsys fs.FS) (Config, error) {
	tok, err := tokenizer.Load(fsys)
	if err != nil {
		return Config{}, err
	}
	tmpl, err := LoadTemplate(fsys)
	if err != nil {
		return Config{}, err
	}
	c := Config{Tokenizer: tok, Template: tmpl}
	if err := c.loadGeneration(fsys); err != nil {
		return Config{}, err
	}
	return c, nil
}

// generationFile is what generate reads of generation_config.json and, for the ids only, of config.json.
type generationFile struct {
	EOS               json.RawMessage `json:"eos_token_id"`
	DoSample          *bool           `json:"do_sample"`
	Temperature       *float64        `json:"temperature"`
	TopP              *float64        `json:"top_p"`
	TopK              *int            `json:"top_k"`
	MinP              *float64        `json:"min_p"`
	RepetitionPenalty *float64        `json:"repetition_penalty"`
	Text              *struct {
		EOS json.RawMessage `json:"eos_token_id"`
	} `json:"text_config"`
}

// loadGeneration reads stop ids and sampling. The ids of generation_config.json replace those of config.json; the
// tokenizer's own is always one of them.
func (c *Config) loadGeneration(fsys fs.FS) error {
	var gen, model generationFile
	if err := readJSON(fsys, "generation_config.json", &gen); err != nil {
		return err
	}
	if err := readJSON(fsys, "config.json", &model); err != nil {
		return err
	}
	eos := gen.EOS
	if isNull(eos) {
		eos = model.EOS
	}
	if isNull(eos) && model.Text != nil {
		eos = model.Text.EOS
	}
	ids, err := intOrList(eos)
	if err != nil {
		return fmt.Errorf("read generation_config.json: eos_token_id: %w", err)
	}
	if id, ok := c.Tokenizer.EOS(); ok && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	c.StopIDs = ids
	c.Generation = chat.Sampling{Temperature: gen.Temperature, TopP: gen.TopP, TopK: gen.TopK, MinP: gen.MinP, RepetitionPenalty: gen.RepetitionPenalty}
	if gen.DoSample != nil && !*gen.DoSample && gen.Temperature == nil {
		c.Generation.Temperature = ptr(0.0)
	}
	return nil
}

func isNull(m json.RawMessage) bool { return len(m) == 0 || string(m) == "null" }

func intOrList(m json.RawMessage) ([]int32, error) {
	if isNull(m) {
		return nil, nil
	}
	var one int32
	if json.Unmarshal(m, &one) == nil {
		return []int32{one}, nil
	}
	var list []int32
	if err := json.Unmarshal(m, &list); err != nil {
		return nil, fmt.Errorf("want an integer below %d or a list of them: %w", math.MaxInt32, err)
	}
	return list, nil
}

// readJSON reads a file that may be absent into v.
func readJSON(fsys fs.FS, name string, v any) error {
	data, err := fs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
