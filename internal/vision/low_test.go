package vision

import "testing"

// TestLow: with low detail a large picture takes fewer positions where the family has a choice, a small one as many, and both are
// prepared as planned.
func TestLow(t *testing.T) {
	for kind, c := range map[string]struct {
		config    string
		high, low int // positions of 1600 by 1200 pixels
	}{
		"qwen_vl":  {`{"model_type":"qwen3_vl","vision_config":{"patch_size":16}}`, 972, 234},
		"gemma3":   {`{"model_type":"gemma3","vision_config":{"patch_size":14}}`, 256, 256},
		"gemma4":   {`{"model_type":"gemma4"}`, 266, 63},
		"pixtral":  {`{"model_type":"pixtral","vision_config":{"patch_size":16}}`, 3072, 768},
		"lfm2_vl":  {`{"model_type":"lfm2_vl"}`, 1770, 234},
		"idefics3": {`{"model_type":"idefics3","scale_factor":2,"vision_config":{"patch_size":14}}`, 2197, 169},
	} {
		pre := "{}"
		if kind == "gemma3" {
			pre = `{"size":{"height":896,"width":896}}`
		}
		p, err := NewProcessor(Files{Config: []byte(c.config), Preprocessor: []byte(pre)})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		count := func(p *Processor, w, h int) int {
			plan, err := p.Plan(w, h)
			if err != nil {
				t.Fatal(err)
			}
			return plan.Positions()
		}
		if high, low := count(p, 1600, 1200), count(p.Low(), 1600, 1200); high != c.high || low != c.low {
			t.Errorf("%s: %d positions, %d with low detail, want %d and %d", kind, high, low, c.high, c.low)
		}
		for _, size := range [][2]int{{1, 1}, {40, 30}, {1600, 1200}, {300, 3000}} {
			if high, low := count(p, size[0], size[1]), count(p.Low(), size[0], size[1]); low > high {
				t.Errorf("%s, %v: %d positions, %d with low detail", kind, size, high, low)
			}
		}
		pic, err := p.Low().Prepare(t.Context(), &Raster{Width: 160, Height: 120, Pix: make([]byte, 160*120*3)})
		if err != nil || pic.PatchCount() == 0 {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
