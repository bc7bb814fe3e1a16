package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/hub"
	"hearth/internal/model"
	"hearth/internal/sysmem"
)

func backends() Backends {
	return Backends{Open: map[string]Opener{"cpu": func(*config.Config) (backend.Backend, error) { return cpu.New(), nil }}, Auto: []string{"cpu"}}
}

// loaded is a catalog of the demo, closed with the test; leaks are checked after.
func loaded(t *testing.T, set func(*config.Config)) *Catalog {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	cfg := config.Default()
	if set != nil {
		set(cfg)
	}
	return loadDemo(t, backends(), cfg)
}

// loadDemo is a catalog of the demo on one of bs, closed with the test.
func loadDemo(t *testing.T, bs Backends, cfg *config.Config) *Catalog {
	t.Helper()
	src, err := Find("", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	c := New(src, cfg)
	if err := c.Load(bs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestOpenGenerates(t *testing.T) {
	c := loaded(t, nil)
	g, err := c.Open(t.Context(), "claude-opus-4-1")
	if err != nil {
		t.Fatal(err)
	}
	if m := g.Model(); m.ID != "demo" || m.Path != "" || m.Context != 8192 || !m.Thinking || !m.Tools || m.Created.IsZero() {
		t.Errorf("model %+v", m)
	}
	events, err := g.Generate(t.Context(), &chat.Request{MaxTokens: 4, Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "Hello"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var last chat.Event
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	if last.Kind != chat.EventFinish || last.Finish != chat.FinishLength || last.Usage == nil || last.Usage.Output != 4 {
		t.Errorf("last event %+v", last)
	}
	if n := c.Stats().GeneratedTokens; n != 4 {
		t.Errorf("engine counts %d tokens, want 4", n)
	}
}

// Settings reach the engine and the generator.
func TestSettings(t *testing.T) {
	c := loaded(t, func(cfg *config.Config) {
		cfg.ContextLength, cfg.CacheMemoryMB, cfg.Precision, cfg.Threads, cfg.MaxTokens = 128, 64, "fast", 1, 3
		cfg.ServedModelName = []string{"mine", "other"}
	})
	w := c.Main().Weights()
	if w.Precision != backend.Fast || w.Engine.Context() != 128 || c.Stats().Budget != 64<<20 {
		t.Errorf("precision %v, context %d, budget %d", w.Precision, w.Engine.Context(), c.Stats().Budget)
	}
	if want := "context 128 of 8192"; !strings.Contains(w.Summary(), want) || !strings.Contains(w.Summary(), "cpu (fast: KL to float32 ") {
		t.Errorf("summary %q", w.Summary())
	}
	if got := c.List(context.Background())[0].ID; got != "mine" {
		t.Errorf("id %q, want mine", got)
	}
	g, err := c.Open(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	events, err := g.Generate(t.Context(), &chat.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "Hello"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == chat.EventFinish && e.Usage.Output != 3 {
			t.Errorf("%d tokens, want the default of 3", e.Usage.Output)
		}
	}
}

func TestPrecisionAuto(t *testing.T) {
	// the demo is small enough for float32
	for asked, want := range map[string]backend.Precision{"auto": backend.Float32, "exact": backend.Exact} {
		t.Run(asked, func(t *testing.T) {
			if p := loaded(t, func(cfg *config.Config) { cfg.Precision = asked }).Main().Weights().Precision; p != want {
				t.Errorf("got %v", p)
			}
		})
	}
	typed := backend.Caps{Acts: []backend.DType{backend.BF16, backend.BF16, backend.F32, backend.F32}}
	for _, tt := range []struct {
		asked  string
		kind   model.Kind
		weight int64
		caps   backend.Caps
		want   backend.Precision
	}{
		{"auto", model.Generates, 64 << 20, backend.Caps{}, backend.Float32}, {"auto", model.Generates, 64<<20 + 1, backend.Caps{}, backend.Outliers},
		{"auto", model.Embeds, 64 << 20, backend.Caps{}, backend.Float32}, {"auto", model.Embeds, 64<<20 + 1, backend.Caps{}, backend.Exact},
		{"auto", model.Ranks, 1 << 40, backend.Caps{}, backend.Exact}, {"auto", model.Ranks, 1 << 40, typed, backend.Outliers},
		{"fast", model.Embeds, 1 << 40, backend.Caps{}, backend.Fast}, {"float32", model.Generates, 1 << 40, typed, backend.Float32},
	} {
		if p := Precision(tt.asked, tt.kind, tt.weight, tt.caps); p != tt.want {
			t.Errorf("%+v: %v", tt, p)
		}
	}
}

// TestOutliersMemory: outliers takes what fast takes, for weights, keys and values, and has the same context.
func TestOutliersMemory(t *testing.T) {
	type memory struct {
		weights, budget int64
		keys, kv        string
		context         int
	}
	of := map[string]memory{}
	for _, p := range []string{"fast", "outliers", "float32"} {
		t.Run(p, func(t *testing.T) {
			c := loaded(t, func(cfg *config.Config) { cfg.Precision, cfg.CacheMemoryMB = p, 16 })
			w := c.Main().Weights()
			f, err := NewForecaster(w.checkpoint, cpu.New(), Options(c.Main().src, c.Settings(), model.Generates, backend.Caps{}), c.Settings(), nil)
			if err != nil {
				t.Fatal(err)
			}
			g, kv := f.State()
			of[p] = memory{f.weights, c.Stats().Budget, fmt.Sprint(g), kv.String() + " " + w.Engine.KV().String(), w.Engine.Context()}
		})
	}
	if of["outliers"] != of["fast"] || of["outliers"] == of["float32"] {
		t.Errorf("%+v", of)
	}
}

func TestOpenWaitsAndGivesUp(t *testing.T) {
	src, _ := Find("", hub.Cache{})
	c := New(src, config.Default())
	if c.Ready() || len(c.List(context.Background())) != 1 || c.List(context.Background())[0].ID != "demo" {
		t.Errorf("before Load: ready %v, list %v", c.Ready(), c.List(context.Background()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Open(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if _, err := c.Open(ctx, "nope"); chat.AsError(err).Kind != chat.NotFound {
		t.Errorf("error %v: an unknown name need not wait", err)
	}
}

func TestFailedLoad(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, set := range map[string]func(*config.Config){
		"backend": func(c *config.Config) { c.Backend = "abacus" },
		"memory":  func(c *config.Config) { c.CacheMemoryMB = 1; c.ContextLength = 64; c.PrefillStepSize = 64 },
		"folder":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			src, _ := Find("", hub.Cache{})
			if set == nil {
				dir := t.TempDir()
				src = &Source{ID: "x", Path: dir, Where: dir, FS: os.DirFS(dir)}
			} else {
				set(cfg)
			}
			c := New(src, cfg)
			err := c.Load(backends())
			if name == "memory" && err == nil { // a page fits after all: then a short context must be what came out
				if n := c.Main().Weights().Engine.Context(); n > 64 {
					t.Errorf("context %d", n)
				}
			} else if err == nil {
				t.Error("no error")
			} else if _, opened := c.Open(t.Context(), ""); chat.AsError(opened).Kind != chat.Internal || !errors.Is(opened, err) {
				t.Errorf("Open after a failed load: %v", opened)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "Qwen3-0.6B-4bit")
	n := newNames(&Source{ID: "mlx-community/Qwen3-0.6B-4bit", Path: dir}, []string{"served"})
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(wd, dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{
		"": true, "default": true, "default_model": true, "local": true, "served": true,
		"mlx-community/Qwen3-0.6B-4bit": true, "Qwen3-0.6B-4bit": true,
		dir: true, dir + "/": true, rel: true,
		"claude-": true, "claude-3-5-haiku-latest": true,
		"claude": false, "my-claude-x": false, "gpt-4o": false, "Qwen3-0.6B": false, "mlx-community": false, "Default": false,
		filepath.Dir(dir): false, "demo": false, "*": false, strings.Repeat("x", 10_000): false,
	} {
		_, err := n.find(name, false)
		if (err == nil) != ok {
			t.Errorf("%.40q: error %v, want known %v", name, err, ok)
		}
		var e *chat.Error
		if err != nil && (!errors.As(err, &e) || e.Kind != chat.NotFound || e.Param != "model" || !strings.Contains(e.Msg, "--any-model") || len(e.Msg) > 500) {
			t.Errorf("%.40q: error %#v", name, err)
		}
	}
	if n.id() != "served" {
		t.Errorf("id %q", n.id())
	}
	n.any = true
	if guessed, err := n.find("whatever", false); err != nil || guessed {
		t.Error(guessed, err)
	}
}

// Names of models that only OpenAI serves, and deployments, mean the only model there is, unless the server is strict.
func TestHostedNames(t *testing.T) {
	src := &Source{ID: "mlx-community/gpt-oss-20b", Path: "/models/gpt-oss-20b"}
	cfg := config.Default()
	c := New(src, cfg)
	for name, want := range map[string]bool{
		"gpt-4o": true, "gpt-3.5-turbo": true, "gpt-5.2-codex": true, "GPT-4": true, "openai/gpt-4o-mini": true, "chatgpt-4o-latest": true,
		"o1": true, "o3-mini": true, "o4-mini-2025-04-16": true, "openai/o3": true, "codex-mini-latest": true, "text-davinci-003": true,
		"gpt-oss-120b": false, "openai/gpt-oss-120b": false, "o": false, "olmo-2": false, "opus": false, "openai/": false, "gpt4": false, "o3": true,
		"my-gpt-4o": false, "mistral/gpt-4o": false, "text-embedding-3-small": false,
	} {
		guessed, err := c.Main().names.find(name, false)
		if guessed != want || (err == nil) != want {
			t.Errorf("%q: guessed %v, %v; want %v", name, guessed, err, want)
		}
		if guessed, err := c.Main().names.find(name, true); !guessed || err != nil {
			t.Errorf("deployment %q: guessed %v, %v", name, guessed, err)
		}
	}
	for _, name := range []string{"gpt-oss-20b", "default", "claude-opus-4-8"} {
		if guessed, err := c.Main().names.find(name, true); guessed || err != nil {
			t.Errorf("%q: guessed %v, %v", name, guessed, err)
		}
	}
	cfg.StrictModels = true
	strict := New(src, cfg)
	for name, command := range map[string]string{
		"gpt-4o": "hearth serve /models/gpt-oss-20b --served-model-name gpt-4o;", "it's": "", "a,b": "", "two words": "--served-model-name 'two words';",
		"-x": "", "\x1b[31m": "",
	} {
		_, err := strict.Main().names.find(name, true)
		if chat.AsError(err).Kind != chat.NotFound || command == "" == strings.Contains(err.Error(), "--served-model-name") || !strings.Contains(err.Error(), command) {
			t.Errorf("strict, %q: %v; want the command %q", name, err, command)
		}
	}
	small := New(src, config.Default())
	small.AddSmall(&Source{ID: "small"})
	if guessed, err := small.Main().names.find("gpt-4o", false); guessed || err == nil {
		t.Errorf("beside a small model: guessed %v, %v", guessed, err)
	}
}

// The name with claude of a model opens that model, whatever other rule about names would have of it.
func TestClaudeNamesOpen(t *testing.T) {
	cfg := config.Default()
	for _, tt := range []struct {
		main, small string
		served      []string
	}{
		{"org/big", "org/little", nil}, {"org/haiku-writer", "org/haiku-reader", nil}, {"org/big", "claude-3-haiku", nil},
		{"org/big", "org/little", []string{"haiku/of mine", "other"}},
	} {
		cfg.ServedModelName = tt.served
		s := New(&Source{ID: tt.main}, cfg)
		s.AddSmall(&Source{ID: tt.small})
		for _, want := range s.Entries() {
			name := chat.ClaudeName(want.ID())
			if e, err := s.find(t.Context(), name); err != nil || e != want {
				t.Errorf("%+v: %s opens %v, %v", tt, name, e, err)
			}
		}
		for name, want := range map[string]*Entry{"claude-haiku-4-5": s.Small(), "Claude-3-HAIKU": s.Small(), "claude-opus-4-8": s.Main(), "default": s.Main()} {
			if name == tt.small {
				continue
			}
			if e, err := s.find(t.Context(), name); err != nil || e != want {
				t.Errorf("%+v: %s opens %v, %v", tt, name, e, err)
			}
		}
	}
	if n := newNames(&Source{ID: "a/b"}, nil); !n.is("claude-a-b") {
		t.Errorf("names %q", n.exact)
	}
}

// Who answers under another's name is said once for each, and for no more of them than a log can bear.
func TestGuessesAreTold(t *testing.T) {
	c := loaded(t, nil)
	var lines []string
	c.Note = func(line string) { lines = append(lines, line) }
	for range 2 {
		if _, err := c.Open(t.Context(), "gpt-4o"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Open(t.Context(), "claude-3"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Open(chat.WithDeployment(t.Context(), "prod"), "prod"); err != nil {
			t.Fatal(err)
		}
	}
	if len(lines) != 2 || !strings.Contains(lines[0], `"gpt-4o"`) || !strings.Contains(lines[0], `"demo"`) || !strings.Contains(lines[1], `"prod"`) {
		t.Errorf("told %q", lines)
	}
	for i := range 2 * mostTold {
		if _, err := c.Open(t.Context(), fmt.Sprintf("gpt-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(lines) != mostTold {
		t.Errorf("told %d times, want %d", len(lines), mostTold)
	}
	if _, err := c.Open(t.Context(), "prod"); chat.AsError(err).Kind != chat.NotFound {
		t.Errorf("no deployment: %v", err)
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "a", true}, {"a*", "abc", true}, {"*c", "abc", true},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"*", "", true}, {"a*c", "abd", false},
		{"*b*", "abc", true}, {"*b*", "b", true}, {"*b*", "ac", false}, {"a*b*c", "a-b-c", true}, {"a*b*c", "a-c-b", false}, {"a*b*b", "ab", false},
	} {
		if got := matchGlob(tt.pattern, tt.s); got != tt.want {
			t.Errorf("match(%q, %q) = %v", tt.pattern, tt.s, got)
		}
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	snap := filepath.Join(root, "hub", "models--org--name", "snapshots", "abc")
	for _, dir := range []string{snap, filepath.Join(root, "plain"), filepath.Join(root, "demo")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(root, "plain", "model.safetensors")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.json": `{"model_type": "llama"}`, "tokenizer.json": "{}", "model.safetensors": ""} {
		if err := os.WriteFile(filepath.Join(snap, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	cache := hub.Cache{Dir: filepath.Join(root, "hub")}
	for _, tt := range []struct{ name, id, path string }{
		{"", "demo", ""},
		{"demo", "demo", ""},
		{"./demo", "demo", filepath.Join(root, "demo")},
		{"plain", "plain", filepath.Join(root, "plain")},
		{"plain/", "plain", filepath.Join(root, "plain")},
		{"org/name", "org/name", snap},
		{"org/name@abc", "org/name", snap},
		{snap, "org/name", snap},
	} {
		s, err := Find(tt.name, cache)
		if err != nil {
			t.Errorf("Find(%q): %v", tt.name, err)
			continue
		}
		if s.ID != tt.id || s.Path != tt.path || s.Demo() != (tt.path == "") || s.Where == "" {
			t.Errorf("Find(%q) = %+v, want id %s, path %s", tt.name, s, tt.id, tt.path)
		}
	}
	for name, want := range map[string]string{
		"./none": "no such folder", "/none": "no such folder", "a/b/c": "no such folder", "none.gguf": "no such folder",
		file: "one file of a model",
	} {
		var load *model.LoadError
		if _, err := Find(name, cache); !errors.As(err, &load) || !strings.Contains(err.Error(), want) || load.Hint == "" {
			t.Errorf("Find(%q): error %v, want it to say %q with a hint", name, err, want)
		}
	}
	var missing *hub.NotFoundError
	if _, err := Find("org/none", cache); !errors.As(err, &missing) {
		t.Errorf("error %v, want a *hub.NotFoundError", err)
	}
}

// The folder on disk and the embedded one load the same.
func TestFolder(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, demo.FS()); err != nil {
		t.Fatal(err)
	}
	src, err := Find(dir, hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := OpenWeights(src, config.Default(), backends())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	st, err := fs.Stat(src.FS, "model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if w.Model.Bytes <= 0 || w.Model.Bytes > st.Size() || WeightBytes(src.FS) != st.Size() {
		t.Errorf("weights of %d bytes in a file of %d", w.Model.Bytes, st.Size())
	}
}

func TestCacheBudget(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		mb               int
		weights, machine int64
		want             int64
		err              string
	}{
		{0, 1 * gib, 20 * gib, 4 * gib, ""},
		{0, 16 * gib, 20 * gib, 20*gib - 16*gib*115/100, ""},
		{0, 5 * gib, 7 * gib, 7*gib - 5*gib*115/100, ""},
		{0, gib / 16, gib, gib / 5, ""},
		{0, 18 * gib, 20 * gib, 0, "18.0 GiB of weights leave nothing of 20.0 GiB"},
		{0, 1 * gib, 0, unknownMemory, ""},
		{3, 18 * gib, 20 * gib, 3 << 20, ""},
	} {
		cfg := config.Default()
		cfg.CacheMemoryMB = c.mb
		n, err := cacheBudget(cfg, c.weights, c.machine)
		if (n-c.want)/1000 != 0 || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %d, %v", c, n, err)
		}
	}
}

// TestReserve: what is the system's is not for keys and values.
func TestReserve(t *testing.T) {
	const gib = 1 << 30
	cfg := config.Default()
	cfg.CacheMemoryPart = 1
	if n, err := cacheBudget(cfg, gib, 32*gib); err != nil || n != 29*gib {
		t.Errorf("%d, %v, want 29 GiB: a sixteenth is the system's", n, err)
	}
	cfg.OSReserve = new(int64(20 * gib))
	if n, err := cacheBudget(cfg, gib, 32*gib); err != nil || n != 11*gib {
		t.Errorf("%d, %v, want 11 GiB", n, err)
	}
	if _, err := cacheBudget(cfg, 12*gib, 32*gib); err == nil || !strings.Contains(err.Error(), "20.0 GiB are the system's") {
		t.Error(err)
	}
}

// TestPressureLevel: what the system says, and what has happened since it was asked last.
func TestPressureLevel(t *testing.T) {
	for _, c := range []struct {
		before, now sysmem.Pressure
		want        budget.Level
	}{
		{sysmem.Pressure{}, sysmem.Pressure{Some: 0.05, Full: 0.05}, budget.Enough},
		{sysmem.Pressure{}, sysmem.Pressure{Some: 0.3, Full: 0.1}, budget.Short},
		{sysmem.Pressure{}, sysmem.Pressure{Some: 0.3, Full: 0.2}, budget.Critical},
		{sysmem.Pressure{Limits: 4, Kills: 1}, sysmem.Pressure{Limits: 4, Kills: 1}, budget.Enough},
		{sysmem.Pressure{Limits: 4, Kills: 1}, sysmem.Pressure{Limits: 5, Kills: 1}, budget.Short},
		{sysmem.Pressure{Limits: 4, Kills: 1}, sysmem.Pressure{Limits: 5, Kills: 2}, budget.Critical},
		{sysmem.Pressure{}, sysmem.Pressure{Level: 1}, budget.Enough},
		{sysmem.Pressure{}, sysmem.Pressure{Level: 2}, budget.Short},
		{sysmem.Pressure{}, sysmem.Pressure{Level: 4}, budget.Critical},
	} {
		if got := pressureLevel(&c.before, &c.now); got != c.want {
			t.Errorf("%+v after %+v: %v, want %v", c.now, c.before, got, c.want)
		}
	}
}

// TestShareOfModel: a loaded model has a share of the machine's memory, for weights, steps and what it stores; closing it gives
// all back, and one that does not fit is refused with the numbers.
func TestShareOfModel(t *testing.T) {
	src, err := Find("", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	bs := backends()
	total := int64(1 << 30)
	bs.Memory = budget.New(budget.Readers{Total: func() int64 { return total }}, 0)
	w, err := OpenWeights(src, config.Default(), bs)
	if err != nil {
		t.Fatal(err)
	}
	held := bs.Memory.Shares()
	if len(held) != 1 || held[0].Weights < w.Model.Bytes*9/10 || held[0].Scratch == 0 || held[0].State == 0 || !held[0].Pinned {
		t.Errorf("%+v", held)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := bs.Memory.Free(""); n != total {
		t.Errorf("%d bytes are free of %d", n, total)
	}
	total = 1 << 20
	if _, err := OpenWeights(src, config.Default(), bs); err == nil || !strings.Contains(err.Error(), "of 1 MiB are free") {
		t.Errorf("got %v", err)
	}
}

// A context asked for by name is given or refused with the numbers, never cut.
func TestContextAsked(t *testing.T) {
	cfg := config.Default()
	cfg.CacheMemoryMB, cfg.ContextLength = 1, 1<<20
	src, _ := Find("", hub.Cache{})
	c := New(src, cfg)
	if err := c.Load(backends()); err == nil || !strings.Contains(err.Error(), "1048576 bytes are less than the") ||
		!strings.Contains(err.Error(), "1048576 tokens") {
		t.Errorf("error %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A key names the models that it may use, with at most one star each.
func TestMayUse(t *testing.T) {
	for _, tc := range []struct {
		models []string
		names  []string
		want   bool
	}{
		{nil, []string{"any"}, true},
		{[]string{"demo"}, []string{"demo"}, true},
		{[]string{"demo"}, []string{"demos"}, false},
		{[]string{"org/*"}, []string{"x", "org/m"}, true},
		{[]string{"*-4bit"}, []string{"m-8bit"}, false},
		{[]string{"aa*aa"}, []string{"aaa"}, false},
		{[]string{"*"}, []string{""}, true},
	} {
		if got := allowed(tc.models, tc.names); got != tc.want {
			t.Errorf("%q of %q: %t", tc.models, tc.names, got)
		}
	}
}
