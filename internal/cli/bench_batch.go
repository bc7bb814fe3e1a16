package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"hearth/internal/engine"
	"hearth/internal/kernel"
)

// batchResult compares decoding together with decoding alone. Rates and their ratio are medians over the repeats; the
// two measurements of a repeat follow each other, so that the ratio is of one moment.
type batchResult struct {
	Shape     string  `json:"shape"`
	Bits      int     `json:"bits"`
	Threads   int     `json:"threads"`
	Precision string  `json:"precision"`
	KV        string  `json:"kv_type"`
	Kernel    string  `json:"kernel"`
	Prompt    int     `json:"prompt_tokens"`
	Tokens    int     `json:"decode_tokens"`
	Repeats   int     `json:"repeats"`
	Batch     int     `json:"batch"`
	Single    float64 `json:"single_tokens_per_s"`
	Together  float64 `json:"batch_tokens_per_s"` // of all sequences
	Ratio     float64 `json:"ratio"`
	RatioMin  float64 `json:"ratio_min"`
	RatioMax  float64 `json:"ratio_max"`
}

func (f *benchFlags) runBatch(ctx context.Context, progress func(string)) (*batchResult, error) {
	be, m, err := f.open(progress)
	if err != nil {
		return nil, err
	}
	defer be.Close()
	defer m.Close()
	e, err := engine.New(engine.Config{
		Model: m, Backend: be, KV: f.policy(), Vocab: m.Vocab, Budget: 4 << 30, MaxContext: f.prompt + 1<<14,
		MaxSequences: f.batch, PrefillChunk: benchChunk, NoCache: true,
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := &batchResult{Shape: f.shape, Bits: f.bits, Threads: f.threads, Precision: f.precision, KV: e.KV().String(),
		Kernel: kernel.Current(), Prompt: f.prompt, Tokens: f.tokens, Repeats: f.repeats, Batch: f.batch}
	var single, together, ratio []float64
	for i := range f.repeats {
		one, err := f.decode(ctx, e, m.Vocab, 1)
		if err != nil {
			return nil, err
		}
		all, err := f.decode(ctx, e, m.Vocab, f.batch)
		if err != nil {
			return nil, err
		}
		single, together, ratio = append(single, one), append(together, all), append(ratio, all/one)
		progress(fmt.Sprintf("repeat %d of %d: one %.1f tok/s, %d together %.1f tok/s, ratio %.2f", i+1, f.repeats, one, f.batch, all, all/one))
	}
	r.Single, r.Together, r.Ratio = median(single), median(together), median(ratio)
	r.RatioMin, r.RatioMax = ratio[0], ratio[0]
	for _, x := range ratio {
		r.RatioMin, r.RatioMax = min(r.RatioMin, x), max(r.RatioMax, x)
	}
	return r, nil
}

// decode gives the tokens per second of n sequences that decode together: n times those of the last one to start, after
// its first, while the others go on.
func (f *benchFlags) decode(ctx context.Context, e *engine.Engine, vocab, n int) (float64, error) {
	r := rand.New(rand.NewPCG(1, 2))
	var last *engine.Stream
	ctx, cancel := context.WithCancel(ctx) // ends the streams that go on longest
	defer cancel()
	for i := range n {
		p := engine.Prompt{Tokens: make([]int32, f.prompt), Logprobs: -1}
		for k := range p.Tokens {
			p.Tokens[k] = r.Int32N(int32(vocab))
		}
		if i == n-1 {
			p.MaxTokens = f.tokens + 1
		}
		s, err := e.Submit(ctx, p)
		if err != nil {
			return 0, err
		}
		if _, err := s.Next(); err != nil {
			return 0, err
		}
		last = s
	}
	for {
		if _, err := last.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, err
		}
	}
	u := last.Usage()
	return float64(n*(u.Generated-1)) / u.Ended.Sub(u.First).Seconds(), nil
}

func (r *batchResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprintf(w, `model      %s, %d bits, %s, keys and values %s
threads    %d, kernel %s
one        %.1f tok/s over %d tokens
%-2d         %.1f tok/s together
ratio      %.2f (%.2f to %.2f)
`, r.Shape, r.Bits, r.Precision, r.KV, r.Threads, r.Kernel, r.Single, r.Tokens, r.Batch, r.Together, r.Ratio, r.RatioMin, r.RatioMax)
	return err
}
