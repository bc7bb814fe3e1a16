package model

import (
	"encoding/json"
	"fmt"
)

func init() { register("olmo3", newOlmo3) }

// newOlmo3 is olmo2 with windows in three layers of four. The scaling of the rotation is for the others alone.
func newOlmo3(cfg *config, b *Build) (Generator, error) {
	a := read[llamaArgs](cfg)
	a.MLPBias = false // there may be some, but no key says so
	if _, ok := cfg.text["sliding_window"]; !ok {
		a.Window = 4096
	}
	a.fill(a.Layers, func(i int) bool { return (i+1)%4 != 0 })
	if err := a.check(); err != nil {
		return nil, err
	}
	var kinds map[string]json.RawMessage
	if raw := cfg.raw("rope_parameters"); raw != nil {
		if err := json.Unmarshal(raw, &kinds); err != nil {
			return nil, keyed("rope_parameters", err)
		}
		if len(kinds) > 0 && !byKind(kinds) {
			return nil, fmt.Errorf("rope_parameters should be by layer type: %s and %s", full, slides)
		}
	}
	every := cfg.rope(rotation{Head: a.HeadDim, Kind: full, Base: olmo3Base, Fixed: true})
	plain := cfg.rope(rotation{Head: a.HeadDim, Kind: slides, Base: olmo3Base, Plain: true, Fixed: true})
	if base, err := cfg.number("rope_theta"); err == nil && base != nil && *base != olmo3Base && len(kinds) == 0 {
		cfg.differs("rope_theta", "which turns all layers, as in mlx-lm; transformers 5 turns those with a window by 500000")
	}
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		if a.window(i) > 0 {
			return a.postNorm(b, i, plain)
		}
		return a.postNorm(b, i, every)
	}), nil
}

const olmo3Base = 500000
