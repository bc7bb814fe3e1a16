//go:build unix

package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/engine"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/sample"
	"hearth/internal/tier"
	"hearth/internal/timeline"
)

// TestMain also is the worker process: this program starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		os.Exit(workerMain())
	}
	// The owner of MLX lives as long as its process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("hearth/internal/backend/mlx.(*owner).work"))
}

const tiny = `{"model_type":"qwen3","hidden_size":64,"num_hidden_layers":2,"intermediate_size":128,"num_attention_heads":4,
"num_key_value_heads":2,"head_dim":32,"rms_norm_eps":1e-6,"vocab_size":97,"rope_theta":10000,"max_position_embeddings":4096,
"tie_word_embeddings":true}`

// spec is what the worker process of these tests loads.
type spec struct {
	Refuse string // instead
	Die    string // instead
	Disk   string
	MLX    string // path of its library: the model runs on it
	Abort  int    // steps after which its process calls abort
	Stuck  int    // steps after which it says that one does not end, and none does
	Sequences,
	Queue int
	Speculate bool
}

// openMLX and abort are what the systems have where MLX can be tested.
var (
	openMLX func(path string) (backend.Backend, error)
	abort   func(path string)
)

func workerMain() int {
	conn, err := Inherit()
	if err == nil {
		err = Serve(conn, "test", func(b json.RawMessage, h Hooks) (*Loaded, error) {
			var s spec
			if err := json.Unmarshal(b, &s); err != nil {
				return nil, err
			}
			switch {
			case s.Die != "":
				fmt.Fprintln(os.Stderr, s.Die)
				os.Exit(3)
			case s.Refuse != "":
				return nil, &Refused{Msg: s.Refuse, Advice: "have another"}
			}
			return load(s, h.Trace, h.Stuck)
		})
	}
	if err != nil && !errors.Is(err, ErrGone) {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

// load is the model of these tests, the same in every process.
func load(s spec, trace func(engine.Step), stuck func(time.Duration)) (*Loaded, error) {
	var be backend.Backend = cpu.New()
	if s.MLX != "" {
		var err error
		if be, err = openMLX(s.MLX); err != nil {
			return nil, err
		}
	}
	if s.Stuck > 0 { // as if the watch over steps had found one that does not end
		tell, n := trace, 0
		trace = func(st engine.Step) {
			if n++; n == s.Stuck {
				stuck(2 * time.Minute)
				select {}
			}
			tell(st)
		}
	}
	if s.Abort > 0 {
		tell, n := trace, 0
		trace = func(st engine.Step) {
			if n++; n == s.Abort {
				abort(s.MLX)
			}
			tell(st)
		}
	}
	m, err := model.Synthetic{Config: []byte(tiny), Seed: 3, Type: quant.F32}.Load(be, backend.Options{Precision: backend.Float32, Threads: 1})
	if err != nil {
		return nil, err
	}
	limits := Limits{Vocab: m.Vocab, MaxSequences: cmp.Or(s.Sequences, 4), MaxQueue: cmp.Or(s.Queue, 16)}
	cfg := engine.Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, Budget: 1 << 26, MaxContext: 2000,
		MaxSequences: limits.MaxSequences, MaxQueue: limits.MaxQueue, PrefillChunk: 64, Trace: trace, Stuck: stuck, Speculate: s.Speculate}
	if s.Disk != "" {
		cfg.Disk = &tier.Options{Dir: s.Disk, Name: "test", Fingerprint: "test"}
	}
	e, err := engine.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Loaded{Engine: e, Limits: limits, About: json.RawMessage(`{"name":"tiny"}`),
		Close: func() error { return errors.Join(e.Close(), m.Close(), be.Close()) }}, nil
}

// log collects lines.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.mu.Lock()
	l.lines = append(l.lines, line)
	l.mu.Unlock()
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// workers starts them and knows the last one.
type workers struct {
	mu   sync.Mutex
	last Process
	n    int
	out  log
}

func (c *workers) start() (Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := Exec(exec.Command(exe, "worker"), c.out.add)
	c.mu.Lock()
	c.last, c.n = p, c.n+1
	c.mu.Unlock()
	return p, err
}

func (c *workers) current() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.(*process)
}

func config(s spec, c *workers, warn *log) Config {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return Config{Start: c.start, Build: "test", Spec: b, Warn: warn.add, Delay: func(int) time.Duration { return 0 }}
}

// open starts an engine in a worker process until the test ends.
func open(t *testing.T, s spec, change func(*Config)) (*Engine, *workers) {
	t.Helper()
	c := &workers{}
	cfg := config(s, c, &log{})
	if change != nil {
		change(&cfg)
	}
	e, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e, c
}

// local is the same engine in this process.
func local(t *testing.T, s spec) *engine.Engine {
	t.Helper()
	l, err := load(s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.Engine
}

// submitter is an engine, wherever it is.
type submitter interface {
	Submit(context.Context, engine.Prompt) (*engine.Stream, error)
	Score(context.Context, []int32, int) ([]engine.Score, error)
}

// reply is what becomes of a prompt.
type reply struct {
	Tokens []engine.Token
	Reason engine.Reason
	Stop   int32
	Usage  engine.Usage
	Err    error
}

func read(s *engine.Stream) (r reply) {
	for {
		tok, err := s.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.Err = err
			}
			break
		}
		r.Tokens = append(r.Tokens, tok)
	}
	r.Reason, r.Stop, r.Usage = s.Finish(), s.StopID(), s.Usage()
	return r
}

func prompt(n, seed int) engine.Prompt {
	p := engine.Prompt{Tokens: make([]int32, n), MaxTokens: 20, Logprobs: -1}
	for i := range p.Tokens {
		p.Tokens[i] = int32((i*7 + seed*13 + i*i*seed) % 97)
	}
	return p
}

// prompts are of all kinds.
func prompts() []engine.Prompt {
	var ps []engine.Prompt
	add := func(n int, change func(*engine.Prompt)) {
		p := prompt(n, len(ps)+1)
		if change != nil {
			change(&p)
		}
		ps = append(ps, p)
	}
	add(5, nil)
	add(200, func(p *engine.Prompt) { p.Logprobs = 0 })
	add(130, func(p *engine.Prompt) {
		p.Logprobs, p.Sampling = 5, sample.Params{Temperature: 0.9, TopP: 0.9, Seed: 7}
	})
	add(70, func(p *engine.Prompt) {
		p.Sampling = sample.Params{Temperature: 1.5, TopK: 20, MinP: 0.01, XTCSpare: []int32{3}, Seed: 1 << 63, LogitBias: map[int32]float32{5: 3, 9: -100}}
		for name, x := range map[string]float64{"repetition_penalty": 1.1, "presence_penalty": 0.3, "frequency_penalty": 0.2, "xtc_probability": 0.5, "xtc_threshold": 0.05} {
			p.Sampling.Set(name, x)
		}
	})
	add(40, func(p *engine.Prompt) { // most tokens end it
		p.Sampling = sample.Params{Temperature: 2, Seed: 5}
		for id := range int32(60) {
			p.StopIDs = append(p.StopIDs, id)
		}
	})
	add(30, func(p *engine.Prompt) { // after every third token two others
		n := 0
		p.Logprobs, p.Sampling = 1, sample.Params{Temperature: 1, Seed: 11}
		p.Constrain = func(id int32) engine.Constraint {
			if n++; n%3 == 0 {
				return engine.Constraint{Forced: []int32{id%50 + 1, 42}}
			}
			return engine.Constraint{}
		}
	})
	add(100, func(p *engine.Prompt) {
		p.MaxTokens, p.Session, p.Party, p.Client, p.Marked, p.Marks = 0, 3, 4, 5, true, []int{16, 48}
	})
	add(100, func(p *engine.Prompt) { p.Salt[3], p.Background, p.Request = 9, true, "r" })
	add(60, func(p *engine.Prompt) { // by turns all tokens, some, and one that is said whatever may come
		n := 0
		p.Logprobs, p.Sampling = 5, sample.Params{Temperature: 1, TopP: 0.9, Seed: 12}
		p.Constrain = func(id int32) engine.Constraint {
			switch n++; n % 3 {
			case 0:
				return engine.Constraint{Mask: sample.Set{1<<id%60 | 1<<7, 1 << 30}}
			case 1:
				return engine.Constraint{Forced: []int32{8}, Mask: sample.Set{}}
			}
			return engine.Constraint{}
		}
	})
	for top := -1; top < 1; top++ { // stretches longer than a span, the last with a stop id
		add(50, func(p *engine.Prompt) {
			n := 0
			p.Logprobs, p.StopIDs, p.MaxTokens = top, []int32{90}, 400
			p.Constrain = func(int32) (c engine.Constraint) {
				switch n++; n {
				case 2, 110:
					c.Forced = make([]int32, engine.LongestSpan+20)
				case 210:
					c.Forced = []int32{1, 2, 90, 3}
				}
				return c
			}
		})
	}
	return ps
}

var ignoreTimes = diff.Options{
	cmpopts.IgnoreFields(engine.Usage{}, "Submitted", "Started", "First", "Ended", "Matched"), cmpopts.EquateNaNs(), cmpopts.EquateEmpty(),
}

// TestSame: an engine in a worker process answers as one in this process does, to the bit, also from what it has cached.
func TestSame(t *testing.T) {
	hour := &timeline.Hour{}
	away, _ := open(t, spec{}, func(c *Config) { c.Hour = hour })
	here := local(t, spec{})
	if away.Context() != here.Context() || away.KV() != here.KV() || string(away.About()) != `{"name":"tiny"}` {
		t.Errorf("context %d, kv %v, about %s", away.Context(), away.KV(), away.About())
	}
	for turn := range 2 {
		want, got := prompts(), prompts() // Constrain has state
		for i := range want {
			var r [2]reply
			for k, e := range []submitter{here, away} {
				p := [][]engine.Prompt{want, got}[k][i]
				s, err := e.Submit(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				r[k] = read(s)
				u := r[k].Usage
				if u.Submitted.After(u.Started) || u.Started.After(u.First) || u.First.After(u.Ended) {
					t.Errorf("prompt %d: times %+v", i, u)
				}
			}
			if d := diff.Diff(r[0], r[1], ignoreTimes); d != "" {
				t.Errorf("turn %d, prompt %d: here -, away +\n%s", turn, i, d)
			}
			if turn == 1 && len(want[i].Tokens) >= 100 && r[1].Usage.Cached == 0 {
				t.Errorf("prompt %d: nothing came from the cache", i)
			}
		}
	}
	var sum timeline.Counts
	seconds, _ := hour.Since(time.Now(), 0, nil)
	for i := range seconds {
		sum.Requests, sum.Prompt, sum.Cached, sum.Output = sum.Requests+seconds[i].Requests, sum.Prompt+seconds[i].Prompt, sum.Cached+seconds[i].Cached, sum.Output+seconds[i].Output
		sum.Steps, sum.Sequences = sum.Steps+seconds[i].Steps, sum.Sequences+seconds[i].Sequences
		for k, n := range seconds[i].Hits {
			sum.Hits[k] += n
		}
	}
	began := int64(0)
	for _, n := range sum.Hits {
		began += n
	}
	st := away.Stats()
	if sum.Requests != int64(2*len(prompts())) || sum.Prompt != st.PromptTokens || sum.Output != st.GeneratedTokens || sum.Cached != st.Cache.Tokens || began != st.Cache.Queries ||
		sum.Hits[kv.Miss] == 0 || sum.Hits[kv.Miss] == began || sum.Steps == 0 || sum.Steps > sum.Sequences || sum.Sequences > sum.Prompt+sum.Output {
		t.Errorf("the last hour has %+v, the engine %+v", sum, st)
	}
	p := prompt(300, 1)
	want, err := here.Score(t.Context(), p.Tokens, 3)
	if err != nil {
		t.Fatal(err)
	}
	got, err := away.Score(t.Context(), p.Tokens, 3)
	if d := diff.Diff(want, got); err != nil || d != "" {
		t.Errorf("scores: error %v, here -, away +\n%s", err, d)
	}
	a, b := here.Stats(), away.Stats()
	a.Steps, b.Steps = 0, 0 // of prompts that were cancelled while a step ran
	if d := diff.Diff(a, b); d != "" {
		t.Errorf("stats: here -, away +\n%s", d)
	}
	if x, y := here.Stored(kv.Salt{}), away.Stored(kv.Salt{}); x != y || x.Entries == 0 || away.Stored(kv.Salt{9}) != (engine.Stored{}) {
		t.Errorf("stored %+v, here %+v", y, x)
	}
	q := engine.TreeQuery{All: true, First: true, Salt: kv.Salt{3: 9}, Most: 100}
	trees := [2]engine.Tree{}
	for i, e := range []interface {
		Tree(context.Context, engine.TreeQuery) (engine.Tree, error)
	}{here, away} {
		var err error
		if trees[i], err = e.Tree(t.Context(), q); err != nil || len(trees[i].Nodes) == 0 {
			t.Errorf("tree %d: %+v, %v", i, trees[i], err)
		}
		slices.SortFunc(trees[i].Nodes, func(a, b engine.TreeNode) int { return cmp.Or(slices.Compare(a.First, b.First), a.Tokens-b.Tokens) })
	}
	if d := diff.Diff(trees[0], trees[1], cmpopts.IgnoreFields(engine.TreeNode{}, "ID", "Parent", "Unused")); d != "" {
		t.Errorf("tree: here -, away +\n%s", d)
	}
	if d, err := away.DropSalt(t.Context(), kv.Salt{9}); err != nil || d != (engine.Stored{}) {
		t.Errorf("dropped what is not there: %+v, %v", d, err)
	}
	x, err := here.DropCache(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	y, err := away.DropCache(t.Context())
	if err != nil || x != y || x.Entries == 0 {
		t.Errorf("dropped %+v, here %+v: error %v", y, x, err)
	}
}

// TestDraftsCross: sequences that are constrained from this process have drafts in the worker process, looked up there and
// proposed here, and say what they say without.
func TestDraftsCross(t *testing.T) {
	away, _ := open(t, spec{Speculate: true}, nil)
	here := local(t, spec{})
	ask := func(said []int32, seed int, top int) (p engine.Prompt) {
		p, n := prompt(20, seed), 0
		p.MaxTokens, p.Logprobs, p.Prediction = 300, top, said
		p.Sampling = sample.Params{Temperature: 0.7, Seed: uint64(seed)}
		p.Constrain = func(id int32) engine.Constraint {
			switch n++; n % 7 {
			case 3:
				return engine.Constraint{Forced: []int32{id, 8, 9}}
			case 4, 5:
				return engine.Constraint{}
			}
			return engine.Constraint{Mask: sample.Set{^uint64(0) << (n % 40), 1 << 30}}
		}
		p.Draft = func(forced, looked []int32, most int) []int32 {
			if at := n + len(forced); len(looked) == 0 && at < len(said) && most > 0 {
				return said[at : at+1]
			}
			return nil
		}
		return p
	}
	accepted := 0
	for seed := range 40 {
		var list [2]reply
		for i, p := range []engine.Prompt{ask(nil, seed, seed%3-1), {}} {
			if i == 1 {
				var said []int32
				for _, tok := range list[0].Tokens {
					said = append(said, tok.ID)
				}
				p = ask(said, seed, seed%3-1)
			}
			s, err := []submitter{here, away}[i].Submit(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			list[i] = read(s)
		}
		accepted += list[1].Usage.Accepted
		for i := range list[1].Tokens {
			list[1].Tokens[i].More = false // which come together
		}
		list[0].Usage, list[1].Usage = engine.Usage{}, engine.Usage{}
		if d := diff.Diff(list[0], list[1], ignoreTimes); d != "" {
			t.Fatalf("seed %d: here -, away +\n%s", seed, d)
		}
		if seed >= 5 && accepted > 100 {
			return
		}
	}
	t.Errorf("%d drafts were right", accepted)
}
