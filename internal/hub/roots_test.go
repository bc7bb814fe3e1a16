package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// age makes everything below dir older than file systems count in.
func age(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, de os.DirEntry, err error) error {
		if err != nil || de.Type()&os.ModeSymlink != 0 {
			return err
		}
		old := time.Now().Add(-time.Hour)
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// foldersOf is a folder of models as LM Studio and people lay them out, and what lies outside of it.
func foldersOf(t testing.TB) (root, outside string) {
	top := write(t, map[string]string{
		"models/org/good/config.json":                  qwen,
		"models/org/good/tokenizer.json":               "{}",
		"models/org/good/model.safetensors":            "1234567",
		"models/plain/config.json":                     `{"model_type":"llama"}`,
		"models/plain/tokenizer.model":                 "x",
		"models/plain/model.safetensors":               "1",
		"models/files/m-q4.gguf":                       "x",
		"models/torch/config.json":                     qwen,
		"models/torch/pytorch_model.bin":               "x",
		"models/lora/adapters.safetensors":             "x",
		"models/lora/adapter_config.json":              "{}",
		"models/alien/config.json":                     `{"model_type":"alien"}`,
		"models/alien/model.safetensors":               "x",
		"models/alien/tokenizer.json":                  "{}",
		"models/diffusion/model.safetensors":           "x",
		"models/half/config.json":                      qwen,
		"models/half/tokenizer.json":                   "{}",
		"models/half/model-1.safetensors":              "x",
		"models/half/model.safetensors.index.json":     `{"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors","c":"model-3.safetensors"}}`,
		"models/unbegun/config.json":                   qwen,
		"models/unbegun/tokenizer.json":                "{}",
		"models/notes/todo.txt":                        "x",
		"models/.hidden/config.json":                   qwen,
		"models/loose.txt":                             "x",
		"models/linked":                                "->../outside/secret",
		"models/own":                                   "->plain",
		"models/leak/config.json":                      "->../../outside/secret/config.json",
		"models/leak/model.safetensors":                "x",
		"models/leak/tokenizer.json":                   "{}",
		"models/models--hub--repo/refs/main":           "c1",
		"models/models--hub--repo/snapshots/c1/x.json": "{}",
		"models/models--hub--repo/blobs/b.incomplete":  "",
		"models/datasets--org--data/a/config.json":     qwen,
		"outside/secret/config.json":                   qwen,
		"outside/secret/model.safetensors":             "x",
		"outside/secret/tokenizer.json":                "{}",
	})
	return filepath.Join(top, "models"), filepath.Join(top, "outside", "secret")
}

// judged knows two types.
func judged(dir string) (kind, problem string) {
	b, err := os.ReadFile(filepath.Join(dir, "config.json"))
	switch {
	case err != nil:
		return "", err.Error()
	case strings.Contains(string(b), "alien"):
		return "", `architecture "alien" is not supported`
	case strings.Contains(string(b), "llama"):
		return "embedding", ""
	}
	return "", ""
}

// Every folder of the roots is listed with what it is, and nothing that lies outside of them.
func TestRoots(t *testing.T) {
	root, _ := foldersOf(t)
	r := NewRoots(Root{Dir: root, Name: "models"}, Root{Dir: cacheOf(t).Dir, Name: "cache"}, Root{Dir: filepath.Join(root, "none")})
	r.Judge = judged
	want := []string{
		`alien models unusable 0: architecture "alien" is not supported`,
		`bare cache half-downloaded 0: model-00001.safetensors and tokenizer.json are missing`,
		`diffusion models unusable 0: there is no config.json beside its weights`,
		`files models unusable 0: it is in GGUF files, which are not supported; use the model's MLX or safetensors version`,
		`half models half-downloaded 4: model-2.safetensors and model-3.safetensors are missing`,
		`hub/repo models half-downloaded 0: config.json, tokenizer.json and weights (*.safetensors) are missing`,
		`leak models unusable 0: config.json is a link that leads out of the folders in which models are looked for; --models-dir names further ones`,
		`linked models unusable 0: it is a link that leads out of the folders in which models are looked for; --models-dir names further ones`,
		`lora models unusable 0: it is an adapter without the model it belongs to; serve that with --adapter-path and this folder`,
		`org/dangling cache half-downloaded 0: config.json and tokenizer.json are missing`,
		`org/good models whole 4`,
		`org/good cache whole 4`,
		`org/half cache half-downloaded 0: the download of revision main never finished`,
		`own models whole 0`,
		`plain models whole 0`,
		`torch models unusable 4: its weights are in PyTorch's format, which is not supported; use a conversion of the model to MLX or safetensors`,
		`unbegun models half-downloaded 4: weights (*.safetensors) are missing`,
	}
	for range 2 { // the second time from memory
		list, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			line := fmt.Sprintf("%s %s %s %d", e.ID, e.Root, e.State, e.Bits)
			if e.Reason != "" {
				line += ": " + e.Reason
			}
			got = append(got, line)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		age(t, root)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.List(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a list that nobody waits for: %v", err)
	}
}

func TestRootsFind(t *testing.T) {
	root, outside := foldersOf(t)
	cache := cacheOf(t).Dir
	aliases := &Aliases{File: filepath.Join(t.TempDir(), "aliases.json")}
	for name, model := range map[string]string{"short": "org/good@pr/1", "far": outside, "gone": "org/none", "qwen3": "plain"} {
		if err := aliases.Set(name, model); err != nil {
			t.Fatal(err)
		}
	}
	r := NewRoots(Root{Dir: cache}, Root{Dir: root})
	r.Aliases = aliases
	for _, tt := range []struct{ name, dir, want string }{
		{"org/good", cache + "/models--org--good/snapshots/c1", ""}, // not whole in the cache: see below
		{"org/good@c0", cache + "/models--org--good/snapshots/c0", ""},
		{"ORG/Good", cache + "/models--org--good/snapshots/c1", ""},
		{"good", cache + "/models--org--good/snapshots/c1", ""},
		{"plain", root + "/plain", ""},
		{"Plain", root + "/plain", ""},
		{"qwen3", root + "/plain", ""}, // the user's before the built-in
		{"half", root + "/half", ""},   // though org/half ends like it
		{"short", cache + "/models--org--good/snapshots/c0", ""},
		{"far", outside, ""},
		{root + "/org/good", root + "/org/good", ""},
		{root + "/own", root + "/own", ""},
		{cache + "/models--org--good/snapshots/c0", cache + "/models--org--good/snapshots/c0", ""},
		{outside, "", "outside the folders"},
		{root + "/../outside/secret", "", "outside the folders"},
		{root + "/notes", "", "no model in it"},
		{root + "/plain@main", "", "no model in it"},
		{"plain@main", "", "never downloaded"},
		{"gone", "", "(org/none) is not"},
		{"notes", "", "never downloaded"},
		{"org", "", "never downloaded"},
		{"../outside/secret", "", "neither a folder nor an id"},
		{".hidden", "", "neither a folder nor an id"},
	} {
		e, err := r.Find(tt.name)
		if tt.want != "" {
			var nf *NotFoundError
			if !errors.As(err, &nf) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Find(%q) = %s, %v; want %q", tt.name, e.Dir, err, tt.want)
			}
			continue
		}
		if err != nil || e.Dir != filepath.FromSlash(tt.dir) {
			t.Errorf("Find(%q) = %s, %v; want %s", tt.name, e.Dir, err, tt.dir)
		}
	}
	if e, err := r.Find("linked"); err != nil || e.State != Unusable || e.Format != "" {
		t.Errorf("a link out of the root: %+v, %v", e, err)
	}
	// A name that two models end in is nobody's.
	if err := os.Rename(filepath.Join(root, "plain"), filepath.Join(root, "org", "bare2")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "two"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "org", "bare2"), filepath.Join(root, "two", "bare2")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Find("bare2"); err == nil || !strings.Contains(err.Error(), "several models are called that: org/bare2, two/bare2") {
		t.Errorf("a name of two: %v", err)
	}
}

// A model that is whole in a later folder is meant before one that is half there in an earlier one.
func TestRootsPreferWhole(t *testing.T) {
	half, whole := t.TempDir(), t.TempDir()
	for dir, files := range map[string][]string{half: {"config.json"}, whole: {"config.json", "tokenizer.json", "model.safetensors"}} {
		if err := os.Mkdir(filepath.Join(dir, "m"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(dir, "m", f), []byte(qwen), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	e, err := NewRoots(Root{Dir: half}, Root{Dir: whole}).Find("m")
	if err != nil || e.Dir != filepath.Join(whole, "m") {
		t.Errorf("%s, %v", e.Dir, err)
	}
}

// What was seen is told again only while the folder is as it was.
func TestRootsSeeChanges(t *testing.T) {
	dir := write(t, map[string]string{"m/config.json": qwen, "m/tokenizer.json": "{}", "m/model.safetensors": "x"})
	age(t, dir)
	r := NewRoots(Root{Dir: dir})
	look := func() Entry {
		list, err := r.List(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0]
	}
	if e := look(); e.ModelType != "qwen3" || e.State != Whole {
		t.Fatalf("%+v", e)
	}
	if len(r.seen) != 1 {
		t.Error("nothing is kept")
	}
	if err := os.WriteFile(filepath.Join(dir, "m", "config.json"), []byte(`{"model_type":"llama"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := look(); e.ModelType != "llama" {
		t.Errorf("after the config changed: %+v", e)
	}
	if err := os.Remove(filepath.Join(dir, "m", "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if e := look(); e.State != Half {
		t.Errorf("without weights: %+v", e)
	}
}

func TestMissingFiles(t *testing.T) {
	for want, names := range map[string][]string{"a is missing": {"a"}, "a, b and c are missing": {"a", "b", "c"}, "a, b, c and 2 more files are missing": {"a", "b", "c", "d", "e"}} {
		if got := missingFiles(names); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAliases(t *testing.T) {
	a := &Aliases{File: filepath.Join(t.TempDir(), "new", "aliases.json")}
	if m, ok := a.Lookup("llama3.2"); !ok || m != builtin["llama3.2"] {
		t.Errorf("built in: %q", m)
	}
	for _, tt := range []struct{ name, model, want string }{
		{"mine", "org/name@v1", ""},
		{"llama3.2", "org/other", ""},
		{"a/b", "org/name", "cannot be an alias"},
		{"-x", "org/name", "cannot be an alias"},
		{"", "org/name", "cannot be an alias"},
		{"x", "../up", "neither an id"},
		{"x", "", "neither an id"},
	} {
		if err := a.Set(tt.name, tt.model); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Set(%q, %q): %v, want %q", tt.name, tt.model, err, tt.want)
		}
	}
	other := &Aliases{File: a.File} // as another program
	if m, _ := other.Lookup("llama3.2"); m != "org/other" {
		t.Errorf("the user's is %q", m)
	}
	if err := other.Remove("llama3.2"); err != nil {
		t.Error(err)
	}
	if m, _ := a.Lookup("llama3.2"); m != builtin["llama3.2"] {
		t.Errorf("what another program took out is %q", m)
	}
	list, err := a.List()
	if i := slices.Index(list, Alias{Name: "mine", Model: "org/name@v1"}); err != nil || i < 0 || len(list) != len(builtin)+1 {
		t.Errorf("%v, %v", list, err)
	}
	if err := a.Remove("nobody"); !errors.Is(err, ErrNoAlias) {
		t.Error(err)
	}
	if err := a.Remove("qwen3"); err == nil || !strings.Contains(err.Error(), "built in") {
		t.Error(err)
	}
	if err := os.WriteFile(a.File, []byte(strings.Repeat(" ", maxAliases)+"{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.List(); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a huge file: %v", err)
	}
	if err := os.WriteFile(a.File, []byte(`["x"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Set("y", "org/name"); err == nil || !strings.Contains(err.Error(), a.File) {
		t.Errorf("a file that cannot be read is written over: %v", err)
	}
	if _, ok := a.Lookup("mine"); ok {
		t.Error("it still has what it had")
	}
	if _, ok := (*Aliases)(nil).Lookup("qwen3"); ok {
		t.Error("no aliases have one")
	}
	for name := range builtin {
		if _, _, ok := ParseID(builtin[name]); !ok || !aliasName.MatchString(name) {
			t.Errorf("built-in %q: %q", name, builtin[name])
		}
	}
}

// Programs that change the file at once lose nothing of each other's.
func TestAliasesAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings", "aliases.json")
	const programs, each = 4, 8
	var wg sync.WaitGroup
	for p := range programs {
		wg.Go(func() {
			a := &Aliases{File: file}
			for i := range each {
				if err := a.Set(fmt.Sprintf("a%d-%d", p, i), "org/name"); err != nil {
					t.Error(err)
				}
			}
			if err := a.Remove(fmt.Sprintf("a%d-0", p)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, err := (&Aliases{File: file}).List()
	own := slices.DeleteFunc(all, func(a Alias) bool { return a.Builtin })
	if err != nil || len(own) != programs*(each-1) {
		t.Errorf("%d aliases, %v: %v", len(own), err, own)
	}
}

// What is wrong with the file is told with the line, also of a name that may be in it.
func TestAliasesBroken(t *testing.T) {
	for text, line := range map[string]string{"{\n \"a\": \"org/a\",\n \"b\" \"org/b\"\n}": ":3: ", "{\n \"a\": [],\n \"b\": \"org/b\"}": ":2: ", "": ":1: ", "{\n\n": ":2: "} {
		a := &Aliases{File: filepath.Join(t.TempDir(), "aliases.json")}
		if err := os.WriteFile(a.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := NewRoots(Root{Dir: t.TempDir()})
		r.Aliases = a
		_, listed := a.List()
		_, found := r.Find("b")
		for what, err := range map[string]error{"List": listed, "Set": a.Set("c", "org/c"), "Find": found} {
			if err == nil || !strings.Contains(err.Error(), a.File+line) {
				t.Errorf("%q: %s says %v, want line %s", text, what, err, line)
			}
		}
	}
}

// No name leads out of the roots, and none panics.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"plain", "org/good@main", "/etc", "..", "models/../..", "linked", "own@x", "~", "a\x00b", "org/../org/good"} {
		f.Add(s)
	}
	root, _ := foldersOf(f)
	r := NewRoots(Root{Dir: root})
	f.Fuzz(func(t *testing.T, name string) {
		e, err := r.Find(name)
		if err == nil && e.State == Whole && !under(root, e.Dir) {
			t.Errorf("%q leads to %s", name, e.Dir)
		}
	})
}

// FuzzAliases: the file may hold anything.
func FuzzAliases(f *testing.F) {
	f.Add(`{"a":"b/c"}`, "a")
	f.Add(`{"a":`, "a")
	f.Add(`{"a":"../.."}`, "a")
	f.Fuzz(func(t *testing.T, text, name string) {
		a := &Aliases{File: filepath.Join(t.TempDir(), "a.json")}
		if err := os.WriteFile(a.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := NewRoots(Root{Dir: t.TempDir()})
		r.Aliases = a
		if e, err := r.Find(name); err == nil && e.State == Whole {
			t.Errorf("%q, %q: found %s", text, name, e.Dir)
		}
	})
}

func BenchmarkList(b *testing.B) {
	files := map[string]string{}
	for i := range 300 {
		dir := fmt.Sprintf("models--org--m%d/", i)
		files[dir+"refs/main"] = "c"
		for name, text := range map[string]string{"config.json": qwen, "tokenizer.json": "{}", "model.safetensors": "x"} {
			files[dir+"blobs/"+name] = text
			files[dir+"snapshots/c/"+name] = "->../../blobs/" + name
		}
	}
	dir := write(b, files)
	age(b, dir)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if list, _ := NewRoots(Root{Dir: dir}).List(b.Context()); len(list) != 300 {
				b.Fatal(len(list))
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		r := NewRoots(Root{Dir: dir})
		for b.Loop() {
			if list, _ := r.List(b.Context()); len(list) != 300 {
				b.Fatal(len(list))
			}
		}
	})
}
