package hub

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes files under a fresh folder; a value that starts with "->" becomes a link.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(text, "->"); ok {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const qwen = `{"model_type":"qwen3","quantization":{"group_size":64,"bits":4}}`

func cacheOf(t testing.TB) Cache {
	return Cache{Dir: write(t, map[string]string{
		"models--org--good/refs/main":                          "c1\n",
		"models--org--good/refs/pr/1":                          "c0",
		"models--org--good/snapshots/c1/config.json":           "->../../blobs/x",
		"models--org--good/blobs/x":                            qwen,
		"models--org--good/snapshots/c1/model.safetensors":     "12345",
		"models--org--good/snapshots/c1/tokenizer.json":        "{}",
		"models--org--good/snapshots/c0/config.json":           qwen,
		"models--org--half/refs/main":                          "c9",
		"models--org--half/blobs/a.incomplete":                 "",
		"models--org--evil/refs/main":                          "../../../..",
		"models--bare/snapshots/c3/config.json":                `{"model_type":"llama"}`,
		"models--bare/snapshots/c3/model-00001.safetensors":    "->../../blobs/gone",
		"models--org--dangling/snapshots/c4/model.safetensors": "x",
		"datasets--org--data/snapshots/c5/config.json":         "{}",
		"models--org--a--b/snapshots/c6/config.json":           "{}",
		"version.txt": "1",
	})}
}

func TestFind(t *testing.T) {
	c := cacheOf(t)
	for _, tt := range []struct{ id, rev, want string }{
		{"org/good", "c1", ""},
		{"org/good@main", "c1", ""},
		{"org/good@pr/1", "c0", ""},
		{"org/good@c0", "c0", ""},
		{"bare", "c3", ""},
		{"org/good@c7", "", "revision c7 was never downloaded"},
		{"org/evil", "", "holds no commit"},
		{"org/none", "", "never downloaded"},
		{"other/good", "", "never downloaded"},
		{"org/good@../../x", "", "neither a folder nor an id"},
		{"../good", "", "neither a folder nor an id"},
		{"a/b/c", "", "neither a folder nor an id"},
		{"", "", "neither a folder nor an id"},
	} {
		e, err := c.Find(tt.id)
		if tt.want != "" {
			var nf *NotFoundError
			if !errors.As(err, &nf) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), c.Dir) {
				t.Errorf("Find(%q): error %v, want it to say %q and where it looked", tt.id, err, tt.want)
			}
			continue
		}
		if err != nil || e.Revision != tt.rev || filepath.Base(e.Dir) != tt.rev {
			t.Errorf("Find(%q) = revision %q in %s, error %v; want %q", tt.id, e.Revision, e.Dir, err, tt.rev)
		}
	}
}

// A download that has no revision yet is found as what it is.
func TestFindHalf(t *testing.T) {
	e, err := cacheOf(t).Find("org/half")
	if err != nil || e.State != Half || !strings.Contains(e.Reason, "never finished") {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestFindSuggestsNearest(t *testing.T) {
	var nf *NotFoundError
	if _, err := cacheOf(t).Find("other/good"); !errors.As(err, &nf) {
		t.Fatal(err)
	}
	if len(nf.Have) != 4 || nf.Have[0] != "org/good" {
		t.Errorf("suggestions %q, want org/good first", nf.Have)
	}
}

func TestFindWithoutCache(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "none")} {
		if _, err := (Cache{Dir: dir}).Find("org/m"); err == nil {
			t.Errorf("cache %q: no error", dir)
		}
		if got, err := NewRoots(Root{Dir: dir}).List(t.Context()); got != nil || err != nil {
			t.Errorf("cache %q: list %v, %v", dir, got, err)
		}
	}
}

func TestInspect(t *testing.T) {
	const index = `{"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}}`
	for name, tt := range map[string]struct {
		files   map[string]string
		kind    Format
		missing string // names, with blanks
		whole   bool
	}{
		"good":       {map[string]string{"config.json": qwen, "model.safetensors": "x", "tokenizer.json": "{}"}, Safetensors, "", true},
		"both kinds": {map[string]string{"config.json": qwen, "model.safetensors": "x", "tokenizer.json": "{}", "pytorch_model.bin": "x", "m.gguf": "y"}, Safetensors, "", true},
		"gguf":       {map[string]string{"m-q4.gguf": "x", "config.json": qwen, "tokenizer.json": "{}"}, GGUF, "", false},
		"pytorch":    {map[string]string{"config.json": qwen, "pytorch_model-1.bin": "x"}, PyTorch, "", false},
		"adapter":    {map[string]string{"adapter_config.json": "{}", "adapters.safetensors": "x"}, Adapter, "", false},
		"shard":      {map[string]string{"config.json": qwen, "model-1.safetensors": "x", "tokenizer.json": "{}", "model.safetensors.index.json": index}, Safetensors, "model-2.safetensors", false},
		"link":       {map[string]string{"config.json": qwen, "tokenizer.json": "{}", "model.safetensors": "->gone"}, Safetensors, "model.safetensors", false},
		"no config":  {map[string]string{"model.safetensors": "x", "tokenizer.json": "{}"}, Safetensors, "", false},
		"bad config": {map[string]string{"config.json": "[]", "model.safetensors": "x", "tokenizer.json": "{}"}, Safetensors, "", false},
		"tokenizer":  {map[string]string{"config.json": qwen, "model.safetensors": "x"}, Safetensors, "", false},
		"empty":      {nil, Other, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Inspect(write(t, tt.files))
			if err != nil {
				t.Fatal(err)
			}
			if f.Format != tt.kind || strings.Join(f.Missing, " ") != tt.missing || f.Whole() != tt.whole {
				t.Errorf("kind %s, missing %q, whole %v; want %s, %q, %v", f.Format, f.Missing, f.Whole(), tt.kind, tt.missing, tt.whole)
			}
		})
	}
}

// No id leads out of the cache.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"a", "a/b", "a/b@main", "a/b@pr/1", "..", "a/..", "a/b@..", "a@/etc", "a--b/c", "a\x00", "a/b@C:\\x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, rev, ok := ParseID(s)
		if !ok {
			return
		}
		root := filepath.Join("/cache", "models--"+strings.ReplaceAll(id, "/", "--"))
		for _, p := range []string{root, filepath.Join(root, "refs", rev), filepath.Join(root, "snapshots", rev)} {
			if !strings.HasPrefix(p, "/cache/models--") || strings.HasPrefix(p, "/cache/models--/") {
				t.Errorf("%q leads to %s", s, p)
			}
		}
	})
}

// A folder may hold anything.
func FuzzInspect(f *testing.F) {
	f.Add(qwen, `{"weight_map":{"a":"m"}}`)
	f.Add(`{"quantization":3}`, `{"weight_map":{"a":"../../m"}}`)
	f.Fuzz(func(t *testing.T, config, index string) {
		dir := write(t, map[string]string{"config.json": config, "model.safetensors.index.json": index, "m.safetensors": ""})
		if _, err := Inspect(dir); err != nil {
			t.Error(err)
		}
	})
}
