package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/apidoc/apidoctest"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/hub"
	"hearth/internal/hub/hubtest"
	"hearth/internal/sysmem"
)

// demoFiles is the demo model as a hub's files.
func demoFiles(t *testing.T) map[string]hubtest.File {
	t.Helper()
	files := map[string]hubtest.File{"README.md": hubtest.Text("#")}
	err := fs.WalkDir(demo.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(demo.FS(), name)
		files[name] = hubtest.File{Size: int64(len(b)), Content: bytes.NewReader(b), LFS: filepath.Ext(name) == ".safetensors"}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// hearth runs a command in this process, and gives what it prints.
func hearth(t *testing.T, h *hubtest.Hub, cache string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := newRootCmd()
	var out, notes bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	cmd.SetIn(strings.NewReader("y\n")) // no terminal: it is not asked
	cmd.SetArgs(append(args, "--hf-endpoint", h.URL, "--hf-hub-cache", cache, "--config", "off"))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), notes.String(), err
}

func TestPull(t *testing.T) {
	h := hubtest.New(t)
	commit := h.Add("org/name", demoFiles(t))
	cache := filepath.Join(t.TempDir(), "hub")
	want := filepath.Join(cache, "models--org--name", "snapshots", commit)
	stdout, stderr, err := hearth(t, h, cache, "pull", "org/name")
	if err != nil || stdout != want+"\n" {
		t.Fatalf("%q, %v", stdout, err)
	}
	for _, s := range []string{"org/name@" + commit[:12] + ": ", " files, ", "free in " + cache, "memory: it takes ", " with a context of 8,192 tokens, models may have ", ": it fits"} {
		if !strings.Contains(stderr, s) {
			t.Errorf("nothing says %q: %s", s, stderr)
		}
	}
	if strings.Contains(stderr, "\r") {
		t.Errorf("there is a bar where no terminal is: %q", stderr)
	}
	if e, err := (hub.Cache{Dir: cache}).Find("org/name"); err != nil || !e.Whole() {
		t.Errorf("%+v, %v", e, err)
	}
	// Again, as JSON.
	stdout, stderr, err = hearth(t, h, cache, "pull", "org/name", "--json")
	if err != nil || stderr != "" {
		t.Fatalf("%q, %v", stderr, err)
	}
	var events []string
	for line := range strings.Lines(stdout) {
		var e pullEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events = append(events, e.Event)
		apidoctest.Read().Value(t, "PullEvent", []byte(line))
		switch e.Event {
		case "plan":
			if e.ID != "org/name" || e.Commit != commit || e.Missing != 0 || e.Bytes == 0 || e.Count == 0 || e.Fits == nil || !*e.Fits || e.Context != 8192 || e.Need <= e.Weights || e.Memory <= e.Need {
				t.Errorf("%s", line)
			}
		case "progress":
			if e.Progress == nil || e.Done != e.Total || e.Total == 0 || len(e.Files) == 0 {
				t.Errorf("%s", line)
			}
		case "done":
			if e.Dir != want {
				t.Errorf("%s", line)
			}
		}
	}
	if !slices.Equal(slices.Compact(events), []string{"plan", "progress", "done"}) {
		t.Errorf("%q", events)
	}
}

func TestPullRefuses(t *testing.T) {
	h := hubtest.New(t)
	h.Add("org/gguf", map[string]hubtest.File{"m-q4.gguf": hubtest.Large(1, 1000), "config.json": hubtest.Text("{}")})
	h.Add("org/torch", map[string]hubtest.File{"pytorch_model.bin": hubtest.Large(1, 1000), "config.json": hubtest.Text("{}")})
	h.Add("org/lora", map[string]hubtest.File{"adapters.safetensors": hubtest.Large(1, 1000), "adapter_config.json": hubtest.Text("{}")})
	for name, tt := range map[string]struct {
		args []string
		want string // of error and hint
	}{
		"GGUF":     {[]string{"pull", "org/gguf"}, "GGUF"},
		"PyTorch":  {[]string{"pull", "org/torch"}, "PyTorch"},
		"adapter":  {[]string{"pull", "org/lora"}, "--adapter-path"},
		"unknown":  {[]string{"pull", "org/none"}, "check the name"},
		"name":     {[]string{"pull", "demo"}, "org/name@revision"},
		"nothing":  {[]string{"pull"}, "needs a model's name"},
		"offline":  {[]string{"pull", "org/gguf", "--offline"}, "leave --offline and HF_HUB_OFFLINE away"},
		"two":      {[]string{"pull", "a/b", "c/d"}, `unexpected argument "c/d"`},
		"no asker": {[]string{"run", "org/gguf", "Hi"}, "org/gguf"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := hearth(t, h, filepath.Join(t.TempDir(), "hub"), tt.args...)
			if err == nil {
				t.Fatal("no error")
			}
			var b bytes.Buffer
			report(&b, err)
			if !strings.Contains(b.String(), tt.want) {
				t.Errorf("%s\nwant %q", b.String(), tt.want)
			}
		})
	}
}

// A model that is not on disk is fetched with --pull, or when a person says yes; not when nobody can be asked, and not offline.
func TestPullBeforeServing(t *testing.T) {
	for name, tt := range map[string]struct {
		pull, person, offline bool
		answer                string
		fetched, asked        bool
	}{
		"--pull":          {pull: true, fetched: true},
		"yes":             {person: true, answer: "y\n", fetched: true, asked: true},
		"no":              {person: true, answer: "n\n", asked: true},
		"nothing said":    {person: true, answer: "", asked: true},
		"nobody":          {},
		"offline":         {pull: true, person: true, offline: true, answer: "y\n"},
		"--pull, to some": {pull: true, person: true, answer: "n\n", fetched: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := hubtest.New(t)
			h.Add("org/name", demoFiles(t))
			cfg := config.Default()
			cfg.HFEndpoint, cfg.HubCache, cfg.Pull, cfg.Offline = h.URL, filepath.Join(t.TempDir(), "hub"), tt.pull, tt.offline
			cfg.SetModel("org/name")
			var out bytes.Buffer
			p := &puller{cfg: cfg, in: strings.NewReader(tt.answer), out: &out, person: tt.person}
			src, err := p.find(t.Context())
			var missing *hub.NotFoundError
			if tt.fetched && (err != nil || src.ID != "org/name") || !tt.fetched && !errors.As(err, &missing) {
				t.Errorf("%+v, %v", src, err)
			}
			if asked := strings.Contains(out.String(), "[y/N]"); asked != tt.asked {
				t.Errorf("%q", out.String())
			}
			if !tt.fetched && !tt.asked && len(h.Requests()) > 0 {
				t.Errorf("requests %q", h.Requests())
			}
			if !tt.fetched {
				return
			}
			h.Forget() // now it is there
			if _, err := p.find(t.Context()); err != nil || len(h.Requests()) > 0 {
				t.Errorf("%v, requests %q", err, h.Requests())
			}
			// Of half of it the rest is fetched.
			if err := os.Remove(filepath.Join(src.Path, "model.safetensors")); err != nil {
				t.Fatal(err)
			}
			p.in = strings.NewReader(tt.answer)
			if src, err := p.find(t.Context()); err != nil || src.ID != "org/name" {
				t.Errorf("%+v, %v", src, err)
			}
		})
	}
}

// The models beside the main one are fetched likewise, before the server listens.
func TestPullBeside(t *testing.T) {
	for _, flag := range []string{"small-model", "embedding-model", "rerank-model"} {
		h := hubtest.New(t)
		h.Add("org/name", demoFiles(t))
		cfg := config.Default()
		cfg.HFEndpoint, cfg.HubCache = h.URL, filepath.Join(t.TempDir(), "hub")
		cfg.SmallModel, cfg.EmbeddingModel, cfg.RerankModel = "org/name", "org/name", "org/name"
		find := func(answer string) (beside, error) {
			return findBeside(t.Context(), &puller{cfg: cfg, in: strings.NewReader(answer), out: io.Discard, person: true}, flag)
		}
		if _, err := find("n\n"); !errors.As(err, new(*hub.NotFoundError)) {
			t.Errorf("%s: no is %v", flag, err)
		}
		b, err := find("y\n")
		if err != nil {
			t.Fatal(err)
		}
		for of, src := range map[string]*catalog.Source{"small-model": b.small, "embedding-model": b.embedder, "rerank-model": b.ranker} {
			if (src != nil) != (of == flag) || src != nil && src.ID != "org/name" {
				t.Errorf("%s: %s is %+v", flag, of, src)
			}
		}
	}
}

// What does not fit into memory with 32,768 tokens, by its config.json, and what nothing here runs, is not fetched, unless that
// is asked for; nothing is left behind.
func TestPullFits(t *testing.T) {
	h := hubtest.New(t)
	large := demoFiles(t)
	large["config.json"] = hubtest.Text(`{"model_type":"llama","hidden_size":1024,"num_hidden_layers":32,"num_attention_heads":16,"num_key_value_heads":8,
		"head_dim":128,"intermediate_size":2048,"vocab_size":5760,"rms_norm_eps":1e-5,"max_position_embeddings":131072,"quantization":{"bits":4,"group_size":64}}`)
	h.Add("org/large", large)
	strange := demoFiles(t)
	strange["config.json"] = hubtest.Text(`{"model_type":"wombat"}`)
	h.Add("org/strange", strange)
	embeds := demoFiles(t)
	embeds["config.json"] = hubtest.Text(`{"model_type":"bert"}`)
	embeds["model.safetensors"] = hubtest.Large(1, 2<<20)
	h.Add("org/embeds", embeds)
	cache := filepath.Join(t.TempDir(), "hub")
	reserve := func(n int64) []string { // leaves so much
		return []string{"--os-reserve", fmt.Sprintf("%dMiB", (sysmem.Total()-n)>>20)}
	}
	for _, tt := range []struct {
		name string
		room int64
		want []string // of error and hint; none: it is fetched
	}{
		// Keys and values alone are 32 layers of 8 heads of 128 numbers, two of them, in two bytes: 4 GiB.
		{"org/large", 1 << 30, []string{"does not fit this machine: it takes 4.", " GiB of memory with a context of 32,768 tokens, and models may have 1.0 GiB", "hearth pull org/large --force"}},
		{"org/strange", 1 << 30, []string{`org/strange: config.json: architecture "wombat" is not supported`, "hearth pull org/strange --force"}},
		{"org/embeds", 16 << 20, []string{"does not fit this machine: it takes 34 MiB of memory, and"}},
		{"org/embeds", 64 << 20, nil},
	} {
		args := append([]string{"pull", tt.name}, reserve(tt.room)...)
		_, notes, err := hearth(t, h, cache, args...)
		if tt.want == nil {
			if err != nil {
				t.Errorf("%s: %v\n%s", tt.name, err, notes)
			}
			continue
		}
		var b bytes.Buffer
		if err != nil {
			report(&b, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %s\nwant %s", tt.name, b.String(), want)
			}
		}
		if _, err := os.Stat(cache); err == nil {
			t.Errorf("%s: something is left of what was refused", tt.name)
		}
		forced := filepath.Join(t.TempDir(), "hub")
		if _, _, err := hearth(t, h, forced, append(args, "--force")...); err != nil {
			t.Errorf("%s, forced: %v", tt.name, err)
		}
	}
}

func TestPullInterrupted(t *testing.T) {
	h := hubtest.New(t)
	files := demoFiles(t)
	files["model.safetensors"] = hubtest.Large(1, 64<<20)
	h.Add("org/name", files)
	h.Faults.PerSecond = 8 << 20
	cfg := config.Default()
	cfg.HFEndpoint, cfg.HubCache = h.URL, filepath.Join(t.TempDir(), "hub")
	ctx, cancel := context.WithCancel(t.Context())
	out := writerFunc(func(b []byte) {
		if bytes.Contains(b, []byte(`"progress"`)) {
			cancel()
		}
	})
	p := &puller{cfg: cfg, out: io.Discard, events: func(e pullEvent) error { return json.NewEncoder(out).Encode(e) }}
	_, err := p.pull(ctx, "org/name", nil)
	var b bytes.Buffer
	report(&b, err)
	if want := "hearth: error: org/name: interrupted; what has arrived is kept\nhearth: hint: hearth pull org/name goes on\n"; b.String() != want {
		t.Errorf("%s", b.String())
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// The token is that of the flag, or of the file that the hub's own commands write.
func TestHubToken(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, ".cache", "huggingface", "token")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("hf_file\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(home, "large")
	if err := os.WriteFile(large, bytes.Repeat([]byte("x"), 64<<10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"HOME": home, "HF_TOKEN_PATH": large}, ""},
		{map[string]string{"HOME": home}, "hf_file"},
		{map[string]string{"HOME": home, "HF_TOKEN": "hf_env"}, "hf_env"},
		{map[string]string{"HOME": home, "HF_TOKEN_PATH": "/nonexistent"}, ""},
		{map[string]string{"HOME": home, "HF_HOME": filepath.Join(home, "other")}, ""},
		{map[string]string{}, ""},
	} {
		cmd := newPullCmd()
		cfg := config.Default()
		cmd.ResetFlags()
		cfg.Register(cmd.Flags(), config.Model, config.Hub)
		if err := cfg.Load(cmd.Flags(), func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }, func(string) {}); err != nil {
			t.Fatal(err)
		}
		if got := cfg.HubToken(); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.env, got, tt.want)
		}
	}
}
