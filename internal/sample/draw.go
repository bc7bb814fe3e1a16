package sample

// Draw is all that the choice of one token depends on besides its logits, for a backend that draws where the logits are.
type Draw struct {
	Temperature, TopP, MinP float32 // as in Params
	TopK                    int
	Uniform                 float64 // in [0, 1): decides the draw
}

// Draw is that of the next token, or with skip 1 of the one after it, and so on. It reports false where the choice also
// depends on the tokens before or on a limit, which a Draw does not hold.
func (s *Sampler) Draw(skip int) (Draw, bool) {
	p := &s.p
	if len(p.LogitBias) > 0 || len(s.edits) > 0 || s.mask != nil || p.Temperature > 0 && len(s.filters) > 0 {
		return Draw{}, false
	}
	return Draw{Temperature: p.Temperature, TopP: p.TopP, MinP: p.MinP, TopK: p.TopK, Uniform: uniform(p.Seed, s.index+uint64(skip))}, true
}
