//go:build unix

package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/hub"
	"hearth/internal/model"
	"hearth/internal/remote"
)

// TestMain also is the process of a model: this program starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "child" {
		conn, err := remote.Inherit()
		if err == nil {
			err = ServeWorker(conn, "test", withGPU())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// noGPU is what a backend says that is not here.
type noGPU struct{ error }

func (noGPU) Hint() string { return "have one" }

// withGPU are backends of which one does not open.
func withGPU() Backends {
	b := backends()
	b.Open["bounded"] = openBounded
	b.Open["gpu"] = func(*config.Config) (backend.Backend, error) { return nil, noGPU{errors.New("there is no GPU")} }
	return b
}

// aparts are backends of which some have their models run in processes of their own.
func aparts(names ...string) Backends {
	b := withGPU()
	b.Workers = &Workers{Backends: names, Build: "test", Warn: func(string) {}, Output: func(string) {},
		Delay: func(int) time.Duration { return 0 },
		Command: func() (*exec.Cmd, error) {
			exe, err := os.Executable()
			return exec.Command(exe, "child"), err
		}}
	return b
}

func loadApart(t *testing.T, bs Backends, set func(*config.Config)) *Catalog {
	t.Helper()
	cfg := config.Default()
	cfg.CacheMemoryMB, cfg.Threads = 256, 1
	if set != nil {
		set(cfg)
	}
	return loadDemo(t, bs, cfg)
}

// requests are of all kinds that an engine can tell apart.
func requests() map[string]*chat.Request {
	seed, hot, penalty := uint64(5), 1.3, 1.2
	user := func(text string) []chat.Message {
		return []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: text}}}}
	}
	tools := conversation()
	tools.Sampling = chat.Sampling{Seed: &seed}
	kept := demanded(9)
	kept.Logprobs, kept.TopLogprobs, kept.MaxTokens, kept.Choice.Single = true, 3, 60, false
	return map[string]*chat.Request{
		"greedy":   {MaxTokens: 30, Messages: user("Hello")},
		"logprobs": {MaxTokens: 20, Messages: user("Who are you?"), Logprobs: true, TopLogprobs: 4, Sampling: chat.Sampling{Seed: &seed, Temperature: &hot}},
		"choices":  {MaxTokens: 20, N: 3, Messages: user("Tell me something"), Sampling: chat.Sampling{Seed: &seed, Temperature: &hot, RepetitionPenalty: &penalty}},
		"bias":     {MaxTokens: 8, Messages: user("Hello"), Sampling: chat.Sampling{Seed: &seed, LogitBias: map[int32]float64{100: 30}}},
		"budget":   {MaxTokens: 60, Messages: user("What is 17 + 25?"), Thinking: chat.Thinking{Mode: chat.On, Budget: 6}, Sampling: chat.Sampling{Seed: &seed}},
		"stop":     {MaxTokens: 60, Messages: user("Count to ten"), Stop: []string{"e"}, Sampling: chat.Sampling{Seed: &seed}},
		"tools":    tools,
		"kept":     kept,
		"echo":     {MaxTokens: 5, Prompt: &chat.Prompt{Text: "The quick brown fox", Echo: true}, Logprobs: true, TopLogprobs: 2, Sampling: chat.Sampling{Seed: &seed}},
	}
}

// demanded is a request whose answer must be a call of any of two tools, at a temperature at which words are chosen by chance.
func demanded(seed uint64) *chat.Request {
	hot := 3.0
	return &chat.Request{MaxTokens: 400, Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "Paint the shed."}}}},
		Choice: chat.ToolChoice{Kind: chat.ChoiceRequired, Single: true}, Sampling: chat.Sampling{Seed: &seed, Temperature: &hot},
		Tools: []chat.Tool{
			{Name: "paint_shed", Description: "Paint a shed", Parameters: json.RawMessage(`{"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}, "coats": {"type": "integer"}, "matt": {"type": "boolean"}}, "required": ["colour", "coats"]}`)},
			{Name: "ring", Description: "Ring a bell", Parameters: json.RawMessage(`{"type": "object", "properties": {"bells": {"type": "array", "items": {"enum": [1, 2, 3]}}}, "required": ["bells"]}`)},
		}}
}

// TestConstrainTools: a call that is demanded follows its tool's schema, whatever a model says by chance and --constrain-tools
// says of others.
func TestConstrainTools(t *testing.T) {
	for _, mode := range []string{"auto", "never"} {
		c := loadApart(t, backends(), func(cfg *config.Config) { cfg.ConstrainTools = mode })
		g, err := c.Open(t.Context(), "demo")
		if err != nil {
			t.Fatal(err)
		}
		good := 0
		for seed := range uint64(12) {
			seq, err := g.Generate(t.Context(), demanded(seed))
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range seq {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == chat.EventToolEnd && follows(e.Call) {
					good++
				}
			}
		}
		if good != 12 {
			t.Errorf("%s: %d of 12 calls follow their schema", mode, good)
		}
	}
}

// follows tells whether a call is one that demanded asks for.
func follows(call *chat.ToolCall) bool {
	var args struct {
		Colour string
		Coats  json.Number
		Matt   bool
		Bells  []int
	}
	d := json.NewDecoder(bytes.NewReader(call.Arguments))
	d.DisallowUnknownFields()
	if d.Decode(&args) != nil {
		return false
	}
	if call.Name == "ring" {
		return args.Bells != nil && !slices.ContainsFunc(args.Bells, func(n int) bool { return n < 1 || n > 3 })
	}
	return call.Name == "paint_shed" && args.Coats != "" && (args.Colour == "red" || args.Colour == "blue")
}

// TestApart: a model in a process of its own is told apart from one that is not by nothing but what it says of itself.
func TestApart(t *testing.T) {
	plain := func(cfg *config.Config) { cfg.Speculation = "off" } // how many tokens leave together depends on how long steps take
	here, away := loadApart(t, backends(), plain), loadApart(t, aparts("cpu"), plain)
	if _, ok := away.Main().Weights().Engine.(*remote.Engine); !ok {
		t.Fatalf("the engine is a %T", away.Main().Weights().Engine)
	}
	added := false
	for name, r := range requests() {
		var all [2][]chat.Event
		for i, c := range []*Catalog{here, away} {
			g, err := c.Open(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			seq, err := g.Generate(t.Context(), r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for e, err := range seq {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				all[i] = append(all[i], e)
				added = added || i == 1 && e.Kind == chat.EventFinish && e.Usage.Added > 0
			}
		}
		if d := cmp.Diff(all[0], all[1], cmpopts.EquateNaNs(), cmpopts.IgnoreFields(chat.Usage{}, "Tokenized", "Queued", "Matched", "Prefill", "Decode"),
			cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Call.ID" }, cmp.Ignore()),
			cmp.Transformer("start", func(e chat.Event) chat.Event {
				if e.Kind == chat.EventStart { // what is known by then depends on who is quicker
					e.Usage = &chat.Usage{Prompt: e.Usage.Prompt}
				}
				return e
			})); d != "" {
			t.Errorf("%s: here -, away +\n%s", name, d)
		}
	}
	if !added {
		t.Error("nothing was added to the prompt cache away from here")
	}
	if d := cmp.Diff(here.List(context.Background()), away.List(context.Background())); d != "" {
		t.Errorf("models: here -, away +\n%s", d)
	}
	a, b := here.Stats(), away.Stats()
	a.Steps, b.Steps = 0, 0
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("stats: here -, away +\n%s", d)
	}
	if here.Main().Weights().Model != away.Main().Weights().Model || here.WeightBytes() != away.WeightBytes() {
		t.Errorf("facts %+v, here %+v", away.Main().Weights().Model, here.Main().Weights().Model)
	}
	if got := away.Main().Weights().Summary(); !strings.Contains(got, "backend cpu (float32), context 8192") || !strings.HasSuffix(got, "in a process of its own") {
		t.Errorf("summary %q", got)
	}
}

// keeping is a configuration that keeps the prompt cache in dir.
func keeping(t *testing.T, dir string) *config.Config {
	t.Helper()
	cfg := config.Default()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.Register(flags, config.Groups...)
	if err := flags.Parse([]string{"--prefix-cache-dir", dir, "--cache-memory-mb", "64", "--threads", "1", "--config", "off"}); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Load(flags, func(string) (string, bool) { return "", false }, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestApartKeeps: what the prompt cache has on disk is there after a restart, ids of earlier answers included.
func TestApartKeeps(t *testing.T) {
	dir := t.TempDir()
	r := conversation()
	for i := range 2 {
		cfg := keeping(t, dir)
		src, err := Find("", hub.Cache{})
		if err != nil {
			t.Fatal(err)
		}
		c := New(src, cfg)
		c.DiskCache = &DiskCache{Build: "test", Warn: func(line string) { t.Error(line) }}
		if err := c.Load(aparts("cpu")); err != nil {
			t.Fatal(err)
		}
		g, err := c.Open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, u := turn(t, g, r)
			if i == 1 && u.Disk == 0 && u.Cached == 0 {
				t.Errorf("usage %+v", u)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if found, err := filepath.Glob(filepath.Join(dir, "*", "history.aside")); err != nil || len(found) != 1 {
			t.Errorf("the ids of earlier answers are in %v, error %v", found, err)
		}
	}
}

// TestApartFallsBack: auto takes the next backend where the first does not open in its process, and says what was wrong where
// none does, or where that one was asked for.
func TestApartFallsBack(t *testing.T) {
	bs := aparts("gpu")
	bs.Auto = []string{"gpu", "cpu"}
	if w := loadApart(t, bs, nil).Main().Weights(); w.Backend != "cpu" || w.summary != "" {
		t.Errorf("backend %s, %s", w.Backend, w.Summary())
	}
	bs = aparts("gpu", "cpu")
	bs.Auto = []string{"gpu", "cpu"}
	if w := loadApart(t, bs, nil).Main().Weights(); w.Backend != "cpu" || w.summary == "" {
		t.Errorf("backend %s, %s", w.Backend, w.Summary())
	}
	for _, name := range []string{"auto", "gpu"} {
		cfg := config.Default()
		cfg.Backend = name
		src, _ := Find("", hub.Cache{})
		bs := aparts("gpu")
		bs.Auto = []string{"gpu"}
		c := New(src, cfg)
		err := c.Load(bs)
		if err == nil || !strings.Contains(err.Error(), "no GPU") {
			t.Errorf("backend %s: %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestApartCrashes: a process that ends again and again while it loads is given up, with advice.
func TestApartCrashes(t *testing.T) {
	bs := aparts("cpu")
	bs.Workers.Command = func() (*exec.Cmd, error) { return exec.Command("false"), nil }
	src, err := Find("", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	c := New(src, config.Default())
	err = c.Load(bs)
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "--model-process never") || !strings.Contains(err.Error(), "ended 3 times while it loaded, the last time with exit status 1") {
		t.Errorf("error %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestEncodersApart: vectors and scores of models in processes of their own are those of models here, also of the texts that
// come when a process has been killed.
func TestEncodersApart(t *testing.T) {
	texts := &chat.EmbedRequest{Inputs: []chat.Input{{Text: "one"}, {Text: "two words"}, {Text: "three words here"}}}
	ranks := &chat.RankRequest{Query: "one", Documents: texts.Inputs}
	var vectors []*chat.Embeddings
	var scores []*chat.Ranking
	apart, started := aparts("cpu"), make(chan *exec.Cmd, 8)
	command := apart.Workers.Command
	apart.Workers.Command = func() (*exec.Cmd, error) {
		cmd, err := command()
		started <- cmd
		return cmd, err
	}
	for _, bs := range []Backends{backends(), apart} {
		e, _, err := openEncoder(t.Context(), encoderSource(t, "a", false), config.Default(), "a", model.Embeds, bs)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := openEncoder(t.Context(), encoderSource(t, "b", true), config.Default(), "b", model.Ranks, bs)
		if err != nil {
			t.Fatal(err)
		}
		if (e.away != nil) != (bs.Workers != nil) || e.Bytes() == 0 || !strings.Contains(e.Summary(), "backend cpu") {
			t.Errorf("%s, %d bytes", e.Summary(), e.Bytes())
		}
		for range 2 {
			v, err := e.service.Embed(t.Context(), texts)
			if err != nil {
				t.Fatal(err)
			}
			s, err := r.service.Rank(t.Context(), ranks)
			if err != nil {
				t.Fatal(err)
			}
			vectors, scores = append(vectors, v), append(scores, s)
			if e.away != nil {
				for range 2 {
					if err := (<-started).Process.Kill(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := errors.Join(e.close(), r.close()); err != nil {
			t.Error(err)
		}
	}
	untimed := cmpopts.IgnoreTypes(chat.EncodeTimes{})
	for i := range vectors {
		if d := cmp.Diff(vectors[0], vectors[i], untimed); d != "" {
			t.Errorf("vectors %d: here -, away +\n%s", i, d)
		}
		if d := cmp.Diff(scores[0], scores[i], untimed); d != "" {
			t.Errorf("scores %d: here -, away +\n%s", i, d)
		}
	}
}

// TestApartShares: models in processes of their own have shares of the machine's memory, which grow with what they do, are asked
// for what they have to spare, and come back when they go; the least recently used one goes for another, and none stays behind.
func TestApartShares(t *testing.T) {
	disk := copied(t, "a", "b", "c")
	disk = append(disk, Found{Source: encoderSource(t, "reads", false), Kind: chat.Embeds})
	bs := aparts("cpu")
	var mu sync.Mutex
	var started []*exec.Cmd
	command := bs.Workers.Command
	bs.Workers.Command = func() (*exec.Cmd, error) {
		cmd, err := command()
		mu.Lock()
		defer mu.Unlock()
		started = append(started, cmd)
		return cmd, err
	}
	c, forward := demandsOn(t, bs, disk, 2, 0)
	held := func(name string) (h budget.Held) {
		for _, h := range c.bs.Memory.Shares() {
			if h.Name == name {
				return h
			}
		}
		return h
	}
	if h := held("demo"); h.Weights == 0 || h.Scratch == 0 || !h.Pinned {
		t.Errorf("the main model has %+v", h)
	}
	inTurn(t, c, forward, "a", "b", "a")
	if _, err := say(t, c, "c", nil); err != nil {
		t.Fatal(err)
	}
	if a, b := row(t, c, "a"), row(t, c, "b"); a.State != "loaded" || b.State != "on_disk" || held("b").Sum() != 0 {
		t.Errorf("a is %s, b is %s with %+v", a.State, b.State, held("b"))
	}
	until(t, "a tells what its prompt cache holds", func() bool { return held("a").Spare > 0 })
	before := held("a")
	c.bs.Memory.Press(budget.Short)
	until(t, "half of it goes", func() bool { return held("a").State < before.State })
	until(t, "nobody uses c", func() bool { return row(t, c, "c").Users == 0 })
	c.bs.Memory.Press(budget.Critical)
	until(t, "models that nobody uses go", func() bool { return row(t, c, "a").State == "on_disk" && row(t, c, "c").State == "on_disk" })
	ctx, cancel := context.WithCancel(t.Context())
	e, err := c.OpenEmbedder(ctx, "reads")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(ctx, &chat.EmbedRequest{Inputs: []chat.Input{{Text: "hello"}}}); err != nil {
		t.Error(err)
	}
	if h := held("reads"); h.Weights == 0 || h.Scratch == 0 || h.State != 0 {
		t.Errorf("the embedder has %+v", h)
	}
	cancel()
	if err := c.UnloadModel(t.Context(), "reads"); err != nil {
		t.Error(err)
	}
	until(t, "only the main model has a share", func() bool { return len(c.bs.Memory.Shares()) == 1 && held("demo").Weights > 0 })
	mu.Lock()
	defer mu.Unlock()
	for _, cmd := range started[1:] {
		if cmd.ProcessState == nil {
			t.Errorf("process %d still runs", cmd.Process.Pid)
		}
	}
}

// TestApartCancelled: the load of a model in a process of its own ends, and its process with it, when all who waited have left.
func TestApartCancelled(t *testing.T) {
	disk := copied(t, "a")
	disk = append(disk, Found{Source: encoderSource(t, "reads", false), Kind: chat.Embeds})
	bs := aparts("cpu")
	command := bs.Workers.Command
	silent := make(chan *exec.Cmd, 1)
	c, forward := demandsOn(t, bs, disk, 2, 0)
	for _, name := range []string{"a", "reads"} {
		c.mu.Lock()
		bs.Workers.Command = func() (*exec.Cmd, error) {
			cmd := exec.Command("sleep", "1000")
			silent <- cmd
			return cmd, nil
		}
		c.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() {
			var err error
			if name == "a" {
				_, err = c.Open(ctx, name)
			} else {
				_, err = c.OpenEmbedder(ctx, name)
			}
			got <- err
		}()
		cmd := <-silent
		until(t, "it is being loaded", func() bool { return row(t, c, name).State == "loading" })
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", name, err)
		}
		until(t, "the load ends", func() bool { return row(t, c, name).State == "on_disk" })
		if cmd.ProcessState == nil {
			t.Errorf("%s: its process still runs", name)
		}
		if r := row(t, c, name); r.Loads != 0 || r.Problem != "" || len(c.bs.Memory.Shares()) != 1 {
			t.Errorf("%+v, shares %+v", r, c.bs.Memory.Shares())
		}
		bs.Workers.Command = command
		forward(0)
	}
	if _, err := say(t, c, "a", nil); err != nil {
		t.Error(err)
	}
}

// TestApartTooLarge: what a process finds too large is refused as it would be here, and the server's other models go on.
func TestApartTooLarge(t *testing.T) {
	for name, bs := range map[string]Backends{"here": backends(), "apart": aparts("cpu")} {
		bs.Memory = budget.New(budget.Readers{Total: func() int64 { return 1 << 20 }}, 0)
		src, err := Find("", hub.Cache{})
		if err != nil {
			t.Fatal(err)
		}
		c := New(src, config.Default())
		err = c.Load(bs)
		var hint interface{ Hint() string }
		var short *budget.ShortError
		if !errors.As(err, &short) || short.Need.Weights == 0 || !strings.Contains(err.Error(), "of 1 MiB are free") || !errors.As(err, &hint) || hint.Hint() != short.Hint() {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if all := bs.Memory.Shares(); len(all) != 0 {
			t.Errorf("%s: shares that are left: %+v", name, all)
		}
	}
}

// TestApartErrors: what is wrong with a folder is said in the words that it has in one process.
func TestApartErrors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "broken")
	if err := os.CopyFS(dir, demo.FS()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	c["num_hidden_layers"] = c["num_hidden_layers"].(float64) + 1
	delete(c, "layer_types")
	if b, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := Find(dir, hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	load := func(bs Backends) error {
		c := New(src, config.Default())
		err := c.Load(bs)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		return err
	}
	var want *model.LoadError
	if err := load(backends()); !errors.As(err, &want) {
		t.Fatalf("here: %v", err)
	}
	var got *remote.Refused
	if err := load(aparts("cpu")); !errors.As(err, &got) || got.Msg != want.Message() || got.Hint() != want.Hint || got.NoBackend {
		t.Errorf("away: %v; here: %v", err, want)
	}
}
