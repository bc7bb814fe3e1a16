//go:build linux

package bigfolder

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/budget"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/convert"
	"hearth/internal/engine"
	"hearth/internal/hub"
	"hearth/internal/sysmem"
)

var (
	share  = flag.Float64("share", 0, "part of the machine's memory that the weights of TestPromise fill; 0: it is skipped")
	tokens = flag.Int("tokens", 131_072, "of its long prompt")
	mixes  = flag.Int("mixes", 0, "mixes of models and prompts of TestMixes; 0: it is skipped")
	mixRun = flag.String("mix", "", "mix to run in this process, as JSON")
)

// mix is a model and prompts that run together.
type mix struct {
	Folder  string
	Chunk   int
	Prompts []promptSize
}

// promptSize is a prompt of so many tokens and the length of its answer; Score: the prompt is scored.
type promptSize struct {
	Tokens, Answer int
	Score          bool
}

// outcome is what a mix was promised, and took.
type outcome struct {
	Before    int64 // resident before the model was loaded
	Promised  int64 // the most of the machine's memory that was promised at once, Before included
	Peak      int64 // resident
	Parts     budget.Use
	Seconds   float64
	LoadPeak  int64
	Preempted int64
}

// over is by how much the peak is over the promise, as a part of it; less than 0 if it is under.
func (o *outcome) over() float64 { return float64(o.Peak)/float64(o.Promised) - 1 }

// experts is a model of two layers with so many experts of such a width each, of which a row meets two: as large as wanted, and
// cheap.
func experts(n, width, context int) string {
	return fmt.Sprintf(`{"model_type": "qwen3_moe", "hidden_size": 1024, "num_hidden_layers": 2, "intermediate_size": 1024, "vocab_size": 4000,
		"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000, "max_position_embeddings": %d,
		"num_experts": %d, "num_experts_per_tok": 2, "moe_intermediate_size": %d, "norm_topk_prob": true, "decoder_sparse_step": 1,
		"mlp_only_layers": [], "tie_word_embeddings": true, "quantization": {"bits": 4, "group_size": 64}}`, context, n, width)
}

// wideExpert is the width of TestPromise's experts: no model has more than 4,096 of them. expertBytes is what one takes: three
// matrices with 4.5 bits a weight.
const (
	wideExpert  = 1536
	expertBytes = 3 * 1024 * wideExpert * 9 / 16
)

// TestPromise: the weights fill a share of the memory, a long prompt runs beside eight streams, and the peak is as promised.
func TestPromise(t *testing.T) {
	if *share == 0 {
		t.Skip("run by hand: make promise")
	}
	dir := write(t, experts(int(*share*float64(sysmem.Total())/2/expertBytes), wideExpert, 1<<18))
	m := mix{Folder: dir, Chunk: 2048, Prompts: []promptSize{{Tokens: *tokens, Answer: 2}}}
	for i := range 8 {
		m.Prompts = append(m.Prompts, promptSize{Tokens: 200 + 100*i, Answer: *tokens/2048 + 16})
	}
	o := runMix(t, &m)
	t.Logf("%.0f %% of %s: %d tokens beside eight streams in %.0f s: promised %s (before %s, weights %s, state %s, steps %s), peak %s: off by %+.1f %%; loading peaked at %s",
		100**share, mb(sysmem.Total()), *tokens, o.Seconds, mb(o.Promised), mb(o.Before), mb(o.Parts.Weights), mb(o.Parts.State), mb(o.Parts.Scratch), mb(o.Peak), 100*o.over(), mb(o.LoadPeak))
	if over := o.over(); over > within || over < -within {
		t.Errorf("the peak is off the promise by %+.1f %%", 100*over)
	}
}

// TestMixes: of mixes of models and prompts none takes more than it was promised and a twentieth of that.
func TestMixes(t *testing.T) {
	if *mixes == 0 {
		t.Skip("run by hand: make promise")
	}
	const sizes = `"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000, "max_position_embeddings": 65536,
		"tie_word_embeddings": false, "quantization": {"bits": 4, "group_size": 64}}`
	folders := map[string]string{
		"dense": `{"model_type": "qwen3", "hidden_size": 2048, "num_hidden_layers": 12, "intermediate_size": 8192, "vocab_size": 60000, ` + sizes,
		"hybrid": `{"model_type": "qwen3_5_moe", "hidden_size": 1024, "num_hidden_layers": 8, "vocab_size": 30000, "linear_num_key_heads": 4,
			"linear_num_value_heads": 8, "linear_key_head_dim": 64, "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4, "num_experts": 64,
			"num_experts_per_tok": 4, "intermediate_size": 1024, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, ` + sizes,
		"experts": experts(400, 768, 1<<16),
	}
	var names []string
	for _, name := range []string{"dense", "hybrid", "experts"} {
		folders[name] = write(t, folders[name])
		names = append(names, name)
	}
	worst := -1.0
	r := rand.New(rand.NewPCG(20, 5))
	for i := range *mixes {
		name := names[i%len(names)]
		m := mix{Folder: folders[name], Chunk: 256 << r.IntN(4)}
		for range 1 + r.IntN(8) {
			p := promptSize{Tokens: 10 + r.IntN(2000), Answer: 1 + r.IntN(10)}
			if r.IntN(6) == 0 {
				p.Score = true
			}
			m.Prompts = append(m.Prompts, p)
		}
		o := runMix(t, &m)
		worst = max(worst, o.over())
		t.Logf("%s, chunks of %d, %d prompts: promised %s (before %s, weights %s, state %s, steps %s), peak %s: %+.1f %%",
			name, m.Chunk, len(m.Prompts), mb(o.Promised), mb(o.Before), mb(o.Parts.Weights), mb(o.Parts.State), mb(o.Parts.Scratch), mb(o.Peak), 100*o.over())
		if o.over() > within {
			t.Errorf("mix %d is over its promise by %.1f %%", i, 100*o.over())
		}
	}
	t.Logf("the worst of %d is %+.1f %% off", *mixes, 100*worst)
}

// write makes a folder of random weights.
func write(t *testing.T, config string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "m")
	if *folder != "" {
		dir = *folder
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
	}
	if _, err := convert.Random(t.Context(), dir, convert.RandomOptions{Config: []byte(config), Shard: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory() // what writing took, a whole tensor of experts at a time
	return dir
}

// runMix runs a mix in a process of its own.
func runMix(t *testing.T, m *mix) (o outcome) {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-mix", string(b))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	if err := json.Unmarshal(out, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// child is that process.
func child(text string) (err error) {
	var m mix
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return err
	}
	began, err := memoryOf(os.Getpid())
	if err != nil {
		return err
	}
	o := outcome{Before: began.now}
	cfg := config.Default()
	cfg.PrefixCacheDir, cfg.PrefillStepSize, cfg.StepTarget, cfg.LowMemory = "off", m.Chunk, 0, new(false)
	src, err := catalog.Find(m.Folder, hub.Cache{})
	if err != nil {
		return err
	}
	bs := catalog.Backends{Auto: []string{"cpu"}, Memory: catalog.NewMachine(cfg), Open: map[string]catalog.Opener{
		"cpu": func(*config.Config) (backend.Backend, error) { return cpu.New(), nil }}}
	w, err := catalog.OpenWeights(src, cfg, bs)
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // as serve does once it is ready
	loaded, err := memoryOf(os.Getpid())
	if err != nil {
		return err
	}
	o.LoadPeak = loaded.peak
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak begins again
		return err
	}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for last := false; !last; {
			select {
			case <-done:
				last = true
			case <-time.After(5 * time.Millisecond):
			}
			if u := bs.Memory.Shares()[0].Use; u.Sum() > o.Parts.Sum() {
				o.Parts = u
			}
		}
	})
	start := time.Now()
	err = errors.Join(m.run(w)...)
	o.Seconds = time.Since(start).Seconds()
	close(done)
	watch.Wait()
	after, err2 := memoryOf(os.Getpid())
	o.Promised, o.Peak, o.Preempted = o.Before+o.Parts.Sum(), after.peak, w.Engine.Stats().Preempted
	if err := errors.Join(err, err2, w.Close()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(o)
}

// run runs all prompts at once.
func (m *mix) run(w *catalog.Weights) []error {
	errs := make([]error, len(m.Prompts))
	var all sync.WaitGroup
	for i, p := range m.Prompts {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		ids := make([]int32, p.Tokens)
		for k := range ids {
			ids[k] = r.Int32N(int32(w.Model.Vocab))
		}
		all.Go(func() { errs[i] = p.run(w, ids) })
	}
	all.Wait()
	return errs
}

func (p *promptSize) run(w *catalog.Weights, ids []int32) error {
	if p.Score {
		_, err := w.Engine.(*engine.Engine).Score(context.Background(), ids, 1)
		return err
	}
	s, err := w.Engine.Submit(context.Background(), engine.Prompt{Tokens: ids, MaxTokens: p.Answer, Logprobs: -1})
	if err != nil {
		return err
	}
	for {
		if _, err := s.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
