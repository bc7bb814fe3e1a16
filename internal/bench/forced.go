package bench

import (
	"fmt"

	"hearth/internal/engine"
)

// forced decodes a sequence of which every other stretch is forced, at once and token by token, by turns with one that is free.
func (b *engineBench) forced() ([]figure, error) {
	const rounds = 9
	prompt, tokens := b.scaled(64), max(b.scaled(400), 8)
	e, err := b.engine(prompt+tokens, 0, nil)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	rate := func(stretch, atOnce int) (float64, error) {
		p := engine.Prompt{Tokens: b.text(prompt), MaxTokens: tokens, Logprobs: -1}
		if stretch > 0 {
			n, ids := 0, b.text(stretch)
			p.Constrain = func(int32) (c engine.Constraint) {
				if at := n % (2 * stretch); at < stretch && at%atOnce == 0 {
					c.Forced = ids[at : at+atOnce]
				}
				n++
				return c
			}
		}
		s, err := e.Submit(b.ctx, p)
		if err != nil {
			return 0, err
		}
		if _, err := read(s); err != nil {
			return 0, err
		}
		return rate(s), nil
	}
	ways := []struct {
		name            string
		stretch, atOnce int
	}{
		{"free", 0, 0},
		{"stretches of 4, token by token", 4, 1}, {"stretches of 4", 4, 4},
		{"stretches of 8, token by token", 8, 1}, {"stretches of 8", 8, 8},
		{"stretches of 16, token by token", 16, 1}, {"stretches of 16", 16, 16},
	}
	rates, ratios := make([][]float64, len(ways)), make([][]float64, len(ways))
	for i := range rounds {
		for k, w := range ways {
			r, err := rate(w.stretch, w.atOnce)
			if err != nil {
				return nil, err
			}
			rates[k] = append(rates[k], r)
			ratios[k] = append(ratios[k], r/rates[0][i])
		}
		b.progress(fmt.Sprintf("round %d of %d: %.0f tokens a second free, %.0f where every other 8 are forced", i+1, rounds, rates[0][i], rates[4][i]))
	}
	var all []figure
	for k, w := range ways {
		all = append(all, figure{w.name, median(rates[k]), "tok/s", 0}, figure{w.name + ", against free", median(ratios[k]), "times", 0})
	}
	return all, nil
}
