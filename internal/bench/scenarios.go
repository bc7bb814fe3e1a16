package bench

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"hearth/internal/backend"
	"hearth/internal/console"
	"hearth/internal/engine"
	"hearth/internal/sample"
)

// turns plays an agent that sends everything again with every tool result. What is compared is running only the new
// tokens of each turn through the model, in turns with the engine's. A restart in the middle counts until the engine is
// there again: what it reads from disk it reads within a turn.
func (b *engineBench) turns() ([]figure, error) {
	const rounds, reply = 20, 120
	limit := 1.1
	if b.f.again {
		limit = 1.2
		var err error
		if b.disk, err = os.MkdirTemp("", "hearth-bench-"); err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(b.disk) }()
	}
	system, result := b.scaled(1200), b.scaled(950)
	total := system + rounds*(result+reply)
	e, err := b.engine(total, 0, nil)
	if err != nil {
		return nil, err
	}
	defer func() { e.Close() }()
	raw, err := newBench(b.be, b.m, backend.KVPolicy{}, total+1, 1, 0)
	if err != nil {
		return nil, err
	}
	var ours, plain time.Duration
	prompt, known, cached := b.text(system), 0, 0
	for turn := range rounds {
		prompt = append(prompt, b.text(result)...)
		start := time.Now()
		if b.f.again && turn == rounds/2 {
			if err := e.Close(); err != nil {
				return nil, err
			}
			if e, err = b.engine(total, 0, nil); err != nil {
				return nil, err
			}
		}
		out, usage, err := b.ask(e, prompt, reply)
		if err != nil {
			return nil, err
		}
		ours += time.Since(start)
		cached += usage.Cached
		bare, err := raw.run(b.ctx, known, len(prompt), b.f.chunk)
		if err != nil {
			return nil, err
		}
		decode, err := raw.run(b.ctx, len(prompt), len(prompt)+reply, 1)
		if err != nil {
			return nil, err
		}
		plain += bare + decode
		prompt = append(prompt, out...)
		known = len(prompt)
		b.progress(fmt.Sprintf("turn %d of %d: %d tokens, %d cached, %.2f of the plain time so far", turn+1, rounds, usage.Prompt,
			usage.Cached, ours.Seconds()/plain.Seconds()))
	}
	return []figure{
		{"wall time, engine", ours.Seconds(), "s", 0},
		{"wall time, only what is new", plain.Seconds(), "s", 0},
		{"ratio", ours.Seconds() / plain.Seconds(), "", limit},
		{"prompt tokens cached", float64(cached), "tokens", 0},
	}, nil
}

// depth asks for 200 new tokens behind 20,000 known ones.
func (b *engineBench) depth() ([]figure, error) {
	const repeats = 5
	deep, more := b.scaled(20000), b.scaled(200)
	var rec recorder
	e, err := b.engine(deep+more+8, 0, rec.add)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	raw, err := newBench(b.be, b.m, backend.KVPolicy{}, deep+more+1, 1, 0)
	if err != nil {
		return nil, err
	}
	prompt := b.text(deep)
	if _, _, err := b.ask(e, prompt, 1); err != nil {
		return nil, err
	}
	b.progress(fmt.Sprintf("%d tokens are in the cache", deep))
	if _, err := raw.run(b.ctx, 0, deep, b.f.chunk); err != nil {
		return nil, err
	}
	var ours, plain, ratio []float64
	missing := 0
	var usages []engine.Usage
	for i := range repeats {
		_, usage, err := b.ask(e, append(slices.Clone(prompt), b.text(more)...), 1)
		if err != nil {
			return nil, err
		}
		bare, err := raw.run(b.ctx, deep, deep+more, b.f.chunk)
		if err != nil {
			return nil, err
		}
		missing = max(missing, deep-usage.Cached)
		usages = append(usages, usage)
		ours = append(ours, usage.First.Sub(usage.Submitted).Seconds())
		plain = append(plain, bare.Seconds())
		ratio = append(ratio, ours[i]/plain[i])
		b.progress(fmt.Sprintf("repeat %d of %d: first token after %.3f s, prefill alone %.3f s", i+1, repeats, ours[i], plain[i]))
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	steps := 0
	for i := range usages {
		steps = max(steps, stepsOf(rec.steps, &usages[i]))
	}
	return []figure{
		{"time to first token", median(ours), "s", 0},
		{"steps to the first token, most", float64(steps), "steps", 0},
		{"prefill of the new tokens alone", median(plain), "s", 0},
		{"ratio", median(ratio), "", 1.1},
		{"known tokens computed again", float64(missing), "tokens", 16},
	}, nil
}

// long runs one very long prompt and compares the memory it takes with what was forecast.
func (b *engineBench) long() ([]figure, error) {
	const reply = 16
	tokens := b.scaled(131072)
	warm, err := b.engine(4*b.f.chunk, 0, nil) // buffers of a step, which do not depend on the prompt
	if err != nil {
		return nil, err
	}
	if _, _, err := b.ask(warm, b.text(2*b.f.chunk), 8); err != nil {
		return nil, err
	}
	if err := warm.Close(); err != nil {
		return nil, err
	}
	debug.FreeOSMemory()
	before := console.ResidentMemory()
	forecast := func(n int) (int64, error) {
		keys, err := b.need(n)
		return before + keys + int64(n)*bytesPerToken, err
	}
	var figures []figure
	done, began := 0, time.Now()
	note := func(n int) {
		expected, e := forecast(n)
		if err == nil {
			err = e
		}
		actual := console.ResidentMemory()
		figures = append(figures,
			figure{fmt.Sprintf("memory at %d tokens, forecast", n), float64(expected) / 1e6, "MB", 0},
			figure{"measured", float64(actual) / 1e6, "MB", 0},
			figure{"off by", 100 * math.Abs(float64(actual-expected)) / float64(expected), "%", 10})
		took := time.Since(began)
		b.progress(fmt.Sprintf("%d of %d tokens in %s, %d MB", n, tokens+reply, took.Round(time.Second), actual>>20))
	}
	e, fail := b.engine(tokens+reply, 0, func(s engine.Step) {
		for quarter := range 3 {
			if at := tokens * (quarter + 1) / 4; done < at && done+s.Prompt >= at {
				note(done + s.Prompt)
			}
		}
		done += s.Prompt
	})
	if fail != nil {
		return nil, fail
	}
	defer e.Close()
	out, usage, fail := b.ask(e, b.text(tokens), reply)
	if fail != nil {
		return nil, fail
	}
	if err := e.Close(); err != nil { // and with it the notes
		return nil, err
	}
	note(tokens + reply)
	took := usage.First.Sub(usage.Started).Seconds()
	return append([]figure{
		{"prompt", float64(usage.Prompt), "tokens", 0},
		{"answer", float64(len(out)), "tokens", 0},
		{"time to first token", took, "s", 0},
		{"prefill", float64(usage.Prompt) / took, "tokens/s", 0},
	}, figures...), err
}

// bytesPerToken is what the engine and the prefix tree keep of a token beside its keys and values: ids and tree keys.
const bytesPerToken = 24

// conversations puts many more conversations through the cache than it holds. With --scale the cache is smaller, too, so
// that it fills as soon.
func (b *engineBench) conversations() ([]figure, error) {
	const length = 2000
	count := b.scaled(10000)
	least, err := b.need(4 * length)
	if err != nil {
		return nil, err
	}
	budget := max(int64(b.scaled(1<<30)), least)
	var lookups []float64
	e, err := b.engine(2*length, budget, func(s engine.Step) {
		if len(s.Starts) > 0 {
			lookups = append(lookups, float64(s.Plan.Nanoseconds())/1e3/float64(len(s.Starts)))
		}
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	system := b.text(200)
	var resident [4]float64 // MB after every quarter
	began := time.Now()
	for i := range count {
		if _, _, err := b.ask(e, append(slices.Clone(system), b.text(length-len(system))...), 1); err != nil {
			return nil, err
		}
		for q := range resident {
			if i+1 == max(count*(q+1)/4, 1) {
				resident[q] = float64(console.ResidentMemory()) / 1e6
			}
		}
		if (i+1)%max(count/20, 1) == 0 {
			left := time.Since(began) * time.Duration(count-i-1) / time.Duration(i+1)
			b.progress(fmt.Sprintf("%d of %d conversations, %d MB resident, %s to go", i+1, count, console.ResidentMemory()>>20, left.Round(time.Second)))
		}
	}
	slices.Sort(lookups)
	return []figure{
		{"conversations", float64(count), "", 0},
		{"cache", float64(e.Stats().Cache.Bytes) / 1e6, "MB", float64(budget) / 1e6},
		{"memory after a quarter", resident[0], "MB", 0},
		{"memory after a half", resident[1], "MB", 0},
		{"memory after three quarters", resident[2], "MB", 0},
		{"memory at the end", resident[3], "MB", 1.05 * resident[0]},
		{"look-up and plan, median", quantile(lookups, 0.5), "us", 0},
		{"look-up and plan, p99", quantile(lookups, 0.99), "us", 100},
	}, nil
}

// stepsOf counts the steps from a sequence's first to the one of its first token.
func stepsOf(steps []engine.Step, u *engine.Usage) (n int) {
	for i := range steps {
		if end(&steps[i]).After(u.Started) && steps[i].Began.Before(u.First) {
			n++
		}
	}
	return n
}

// quantile of sorted values.
func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return x[min(int(q*float64(len(x))), len(x)-1)]
}

// mixed starts eight streams, then a long prompt, and a short prompt every two seconds while that runs.
func (b *engineBench) mixed() ([]figure, error) {
	const streams, short = 8, 50
	deep := b.scaled(20000)
	var rec recorder
	e, err := b.engine(deep+64, 0, nil)
	if err != nil {
		return nil, err
	}
	_, alone, err := b.ask(e, b.text(deep), 1)
	if err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	aloneTook := alone.First.Sub(alone.Started)
	b.progress(fmt.Sprintf("the long prompt alone: %.1f s", aloneTook.Seconds()))

	budget, err := b.need(3*deep + 20*64*streams)
	if err != nil {
		return nil, err
	}
	if e, err = b.engine(deep+64, budget, rec.add); err != nil {
		return nil, err
	}
	defer e.Close() // and with it the streams
	for range streams {
		s, err := e.Submit(b.ctx, engine.Prompt{Tokens: b.text(100), Sampling: sample.Params{}, Logprobs: -1})
		if err != nil {
			return nil, err
		}
		if _, err := s.Next(); err != nil {
			return nil, err
		}
	}
	for e.Stats().GeneratedTokens < 40*streams { // the pace of decoding is known
		time.Sleep(10 * time.Millisecond)
	}
	long := make(chan error, 1)
	var usage engine.Usage
	go func() {
		var err error
		_, usage, err = b.ask(e, b.text(deep), 1)
		long <- err
	}()
	var shorts []engine.Usage
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for running := true; running; {
		select {
		case err := <-long:
			if err != nil {
				return nil, err
			}
			running = false
		case <-tick.C:
			_, u, err := b.ask(e, b.text(short), 1)
			if err != nil {
				return nil, err
			}
			shorts = append(shorts, u)
		}
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	if b.f.svg != "" {
		if err := os.WriteFile(b.f.svg, timeline(rec.steps, usage, shorts), 0o644); err != nil {
			return nil, err
		}
	}
	return b.mixedFigures(rec.steps, usage, shorts, aloneTook), nil
}

func (b *engineBench) mixedFigures(steps []engine.Step, long engine.Usage, shorts []engine.Usage, alone time.Duration) []figure {
	var gaps, decodes, overhead []float64
	var perToken float64 // slowest prompt token, beside decodes
	decoding := time.Duration(0)
	for i := range steps {
		s := &steps[i]
		switch {
		case s.Prompt == 0 && s.Decodes > 0:
			decodes = append(decodes, s.Run.Seconds())
			overhead = append(overhead, float64((s.Plan+s.Book).Nanoseconds())/1e3/float64(s.Decodes))
		case s.Prompt > 0 && s.Decodes > 0 && len(decodes) > 0:
			perToken = max(perToken, (s.Run.Seconds()-median(decodes))/float64(s.Prompt))
		}
		if i > 0 && s.Began.After(long.Started) && !s.Began.After(long.First) && s.Decodes > 0 {
			gaps = append(gaps, end(s).Sub(end(&steps[i-1])).Seconds())
			decoding += time.Duration(median(decodes) * 1e9)
		}
	}
	slices.Sort(gaps)
	decode := median(decodes)
	bound := max(b.f.target.Seconds(), decode+16*perToken)
	within := 0
	for _, u := range shorts {
		within = max(within, stepsOf(steps, &u))
	}
	took := long.First.Sub(long.Started)
	return []figure{
		{"gap of a running stream, longest", 1e3 * quantile(gaps, 1), "ms", 1.5e3 * bound},
		{"gap of a running stream, p99", 1e3 * quantile(gaps, 0.99), "ms", 1.2e3 * bound},
		{"gap of a running stream, median", 1e3 * quantile(gaps, 0.5), "ms", 0},
		{"decode step of eight", 1e3 * decode, "ms", 0},
		{"long prompt alone", float64(long.Prompt) / alone.Seconds(), "tokens/s", 0},
		{"long prompt beside them", float64(long.Prompt) / took.Seconds(), "tokens/s", 0},
		{"prefill lost", 100 * (1 - alone.Seconds()/took.Seconds()), "%", 0},
		{"prefill lost beyond the decodes' own time", 100 * (1 - alone.Seconds()/(took-decoding).Seconds()), "%", 25},
		{"short prompts", float64(len(shorts)), "", 0},
		{"steps to a short prompt's first token, most", float64(within), "steps", 3},
		{"engine's own time per token, median", median(overhead), "us", 50},
	}
}
