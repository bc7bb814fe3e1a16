package model

func init() { register("olmo3", newOlmo3) }

// newOlmo3 is olmo2 with windows in three layers of four. The scaling of the rotation is for the others alone.
func newOlmo3(cfg *config, b *Build) (Generator, error) {
	a, err := read[llamaArgs](cfg)
	if err != nil {
		return nil, err
	}
	if a.Types == nil {
		for i := range min(max(a.Layers, 0), maxLayers) {
			kind := "sliding_attention"
			if (i+1)%4 == 0 {
				kind = "full_attention"
			}
			a.Types = append(a.Types, kind)
		}
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	every, err := cfg.rope(rotation{Head: a.HeadDim, Kind: full, Base: 10000})
	if err != nil {
		return nil, err
	}
	plain, err := cfg.rope(rotation{Head: a.HeadDim, Kind: slides, Base: 10000, Plain: true})
	if err != nil {
		return nil, err
	}
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		if a.window(i) > 0 {
			return a.postNorm(b, i, plain)
		}
		return a.postNorm(b, i, every)
	}), nil
}
