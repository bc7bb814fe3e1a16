package model

func init() { register("qwen2", newQwen2) }

// qwenArgs: with use_sliding_window, layers from max_window_layers on have a window, unless layer_types says which.
type qwenArgs struct {
	common
	windows
	Slides *bool `json:"use_sliding_window"`
	From   int   `json:"max_window_layers"`
}

// readQwen has the defaults of two generations; from is that of max_window_layers.
func readQwen(cfg *config, from int) (*qwenArgs, error) {
	a := &qwenArgs{windows: windows{Window: 4096}, From: from}
	cfg.into(a)
	no := a.Slides != nil && !*a.Slides || a.Slides == nil && len(a.Types) == 0
	if no || cfg.null("sliding_window") {
		a.Window = 0
	}
	a.fill(a.Layers, func(i int) bool { return i >= a.From })
	if err := a.common.check(); err != nil {
		return nil, err
	}
	return a, a.checkWindows(a.Layers)
}

// newQwen2: queries, keys and values have a bias, nothing else does.
func newQwen2(cfg *config, b *Build) (Generator, error) {
	return qwen2(cfg, b, 28, rotation{Base: 10000})
}

// qwen2 has its defaults of max_window_layers and of the base from models of text, or of text and images.
func qwen2(cfg *config, b *Build, from int, r rotation) (Generator, error) {
	a, err := readQwen(cfg, from)
	if err != nil {
		return nil, err
	}
	rope := cfg.rope(r.of(a.HeadDim))
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QKV.Bias = true
		return preNorm(&a.common, b, t)
	}), nil
}
