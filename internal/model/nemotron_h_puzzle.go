package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"hearth/internal/regular"
)

// puzzleKey is what makes a nemotron_h one whose layers differ in size: an object per layer, whose keys go before
// those of the whole.
const puzzleKey = "block_configs"

// puzzleBlock are the keys of such an object beside those of the family.
type puzzleBlock struct {
	Type   string `json:"block_type"`
	Window int    `json:"sliding_window"` // of attention
}

// puzzleNames: they are published under the usual root.
var puzzleNames = strings.NewReplacer("language_model.", "", "model.", "backbone.", "embed_tokens.", "embeddings.",
	".switch_mlp.fc1", ".switch_mlp.up_proj", ".switch_mlp.fc2", ".switch_mlp.down_proj")

// puzzle reads the objects and takes the kinds of layers from them; nil: the config has none.
func (a *nemotronHArgs) puzzle(cfg *config) ([]map[string]json.RawMessage, error) {
	raw := cfg.raw(puzzleKey)
	if raw == nil {
		if cfg.typ == "nemotron_h_puzzle" {
			return nil, fmt.Errorf("%s is missing: %s has its layers there", puzzleKey, cfg.typ)
		}
		return nil, nil
	}
	var blocks []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, keyed(puzzleKey, err)
	}
	if len(blocks) == 0 || len(blocks) > maxLayers || a.Layers != 0 && a.Layers != len(blocks) {
		return nil, fmt.Errorf("%s has %d entries for num_hidden_layers %d", puzzleKey, len(blocks), a.Layers)
	}
	delete(cfg.seen, cfg.at+puzzleKey)
	cfg.part[cfg.at+puzzleKey] = true
	cfg.harmless("blockwise_members", "hidden_act") // the names of keys that differ, and what mlp_hidden_act says
	a.Blocks = nil
	for i, block := range blocks {
		var k puzzleBlock
		if err := cfg.decode(block, a.block(cfg, i), &k); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", puzzleKey, i, err)
		}
		if k.Type == "" {
			return nil, fmt.Errorf("%s[%d].block_type is missing", puzzleKey, i)
		}
		a.Blocks = append(a.Blocks, k.Type)
		for _, key := range slices.Sorted(maps.Keys(block)) {
			if strings.HasPrefix(key, "q_indexer") && given(block[key]) {
				return nil, fmt.Errorf("%s[%d].%s is %s: attention that picks its keys is not supported, only null", puzzleKey, i, regular.Clip(key), regular.Clip(compact(block[key])))
			}
		}
	}
	if a.Limits == nil {
		a.Limits = []float{a.Least, float(math.Inf(1))}
	}
	return blocks, nil
}

func (a *nemotronHArgs) block(cfg *config, i int) string {
	return fmt.Sprintf("%s%s[%d].", cfg.at, puzzleKey, i)
}

// layers are the sizes of every layer: those of the whole, or with its object over them.
func (a *nemotronHArgs) layers(cfg *config, blocks []map[string]json.RawMessage, kinds string) ([]*nemotronHArgs, error) {
	if blocks == nil {
		if err := a.check(kinds); err != nil {
			return nil, err
		}
		if strings.Contains(kinds, "M") {
			if err := a.mamba().check(); err != nil {
				return nil, err
			}
		}
		return slices.Repeat([]*nemotronHArgs{a}, len(kinds)), nil
	}
	var all []*nemotronHArgs
	if err := a.check(""); err != nil {
		return nil, err
	}
	for i, block := range blocks {
		l, at := *a, a.block(cfg, i)
		var k puzzleBlock
		if err := cfg.decode(block, at, &l); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", puzzleKey, i, err)
		}
		if err := cfg.decode(block, at, &k); err != nil {
			return nil, err
		}
		l.window = k.Window
		err := l.check(kinds[i : i+1])
		switch {
		case err != nil:
		case l.D != a.D || l.Vocab != a.Vocab || l.Eps != a.Eps:
			err = fmt.Errorf("hidden_size, vocab_size and layer_norm_epsilon are those of the whole")
		case l.window < 0 || l.window > 1<<30:
			err = fmt.Errorf("sliding_window %d is out of range", l.window)
		case kinds[i] == 'M':
			err = l.mamba().check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s[%d], %s: %w", puzzleKey, i, regular.Quote(a.Blocks[i]), err)
		}
		all = append(all, &l)
	}
	return all, nil
}
