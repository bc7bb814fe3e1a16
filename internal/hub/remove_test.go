package hub

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/regular"
)

// sharedCache has a model of two revisions that share a blob, one of one revision, a folder beside them, and links out.
func sharedCache(t testing.TB) string {
	return write(t, map[string]string{
		"hub/models--org--two/refs/main":                        "c1",
		"hub/models--org--two/refs/pr/1":                        "c1",
		"hub/models--org--two/refs/old":                         "c0",
		"hub/models--org--two/blobs/shared":                     "{}",
		"hub/models--org--two/blobs/config":                     qwen,
		"hub/models--org--two/blobs/w1":                         "1111111111",
		"hub/models--org--two/blobs/w0":                         "000",
		"hub/models--org--two/snapshots/c1/config.json":         "->../../blobs/config",
		"hub/models--org--two/snapshots/c1/tokenizer.json":      "->../../blobs/shared",
		"hub/models--org--two/snapshots/c1/model.safetensors":   "->../../blobs/w1",
		"hub/models--org--two/snapshots/c1/1_Pooling/config.js": "->../../../blobs/w0",
		"hub/models--org--two/snapshots/c1/NOTES":               "->../../../../outside/notes",
		"hub/models--org--two/snapshots/c0/config.json":         "->../../blobs/config",
		"hub/models--org--two/snapshots/c0/tokenizer.json":      "->../../blobs/shared",
		"hub/models--org--two/snapshots/c0/model.safetensors":   "->../../blobs/w0",
		"hub/models--org--one/refs/main":                        "d1",
		"hub/models--org--one/blobs/x.incomplete":               "x",
		"hub/models--org--one/snapshots/d1/config.json":         qwen,
		"hub/models--org--one/snapshots/d1/tokenizer.json":      "{}",
		"hub/models--org--one/snapshots/d1/model.safetensors":   "xx",
		"hub/models--org--one/snapshots/d1/dir":                 "->../../../../outside",
		"hub/.locks/models--org--one/x.lock":                    "",
		"hub/models--org--linked":                               "->../outside/models--org--linked",
		"outside/notes":                                         "mine",
		"outside/models--org--linked/snapshots/e1/config.json":  qwen,
		"models/mine/config.json":                               qwen,
		"models/mine/tokenizer.json":                            "{}",
		"models/mine/model.safetensors":                         "->../../outside/weights",
		"outside/weights":                                       "w",
		"models/link":                                           "->mine",
	})
}

func filesOf(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, de fs.DirEntry, err error) error {
		if err == nil && !de.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// What goes with a model is what only it links, and nothing outside its folder ever.
func TestRemove(t *testing.T) {
	for name, tt := range map[string]struct {
		model string
		gone  []string // names, or what they begin with
		bytes int64
		kept  int
	}{
		"a revision of two": {"org/two", []string{"hub/models--org--two/snapshots/c1/", "hub/models--org--two/refs/main", "hub/models--org--two/refs/pr/1",
			"hub/models--org--two/blobs/w1"}, 10, 3},
		"the other":         {"org/two@old", []string{"hub/models--org--two/snapshots/c0/", "hub/models--org--two/refs/old"}, 0, 3},
		"the only revision": {"org/one", []string{"hub/models--org--one/"}, int64(len("d1x" + qwen + "{}xx")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			top := sharedCache(t)
			r := NewRoots(Root{Dir: filepath.Join(top, "hub")}, Root{Dir: filepath.Join(top, "models")})
			var want []string
			for _, f := range filesOf(t, top) {
				if !slices.ContainsFunc(tt.gone, func(g string) bool { return strings.HasPrefix(f, g) }) {
					want = append(want, f)
				}
			}
			e, err := r.Find(tt.model)
			if err != nil {
				t.Fatal(err)
			}
			m, err := r.PlanRemoval(e)
			if err != nil || m.Bytes != tt.bytes || m.Kept != tt.kept {
				t.Errorf("%d bytes, %d kept, %v; want %d, %d", m.Bytes, m.Kept, err, tt.bytes, tt.kept)
			}
			if err := r.Remove(m); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, filesOf(t, top)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRemoveRefuses(t *testing.T) {
	top := sharedCache(t)
	hub, models := filepath.Join(top, "hub"), filepath.Join(top, "models")
	r := NewRoots(Root{Dir: hub}, Root{Dir: models})
	before := filesOf(t, top)
	for _, e := range []Entry{
		{ID: "link", Dir: filepath.Join(models, "link")},
		{ID: "org/linked", Dir: filepath.Join(hub, "models--org--linked", "snapshots", "e1"), Repo: filepath.Join(hub, "models--org--linked"), Revision: "e1"},
		{ID: "outside", Dir: filepath.Join(top, "outside")},
		{ID: "outside", Dir: filepath.Join(models, "..", "outside")},
		{ID: "none", Dir: filepath.Join(models, "none")},
	} {
		if m, err := r.PlanRemoval(e); err == nil {
			t.Errorf("%s: %+v", e.Dir, m)
		}
	}
	e, err := r.Find("org/one")
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.PlanRemoval(e)
	if err != nil {
		t.Fatal(err)
	}
	held, err := regular.Hold(regular.Dir(e.Dir)) // as who has it loaded
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(m); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "loaded") {
		t.Errorf("a model in use: %v", err)
	}
	_ = held.Close()
	lock, err := os.OpenFile(filepath.Join(hub, ".locks", "models--org--one", "x.lock"), os.O_RDWR, 0)
	if err == nil {
		err = regular.Lock(lock)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(m); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "downloads") {
		t.Errorf("a model that is downloaded: %v", err)
	}
	if d := cmp.Diff(before, filesOf(t, top)); d != "" {
		t.Error(d)
	}
	_ = lock.Close()
	if err := r.Remove(m); err != nil {
		t.Error(err)
	}
}

// A folder goes with its links, not with what they lead to.
func TestRemoveFolder(t *testing.T) {
	top := sharedCache(t)
	r := NewRoots(Root{Dir: filepath.Join(top, "models")})
	m, err := r.PlanRemoval(Entry{ID: "mine", Dir: filepath.Join(top, "models", "mine")})
	if err == nil {
		err = r.Remove(m)
	}
	if err != nil || m.Files != 3 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := os.Stat(filepath.Join(top, "outside", "weights")); err != nil {
		t.Error(err)
	}
	if isDir(filepath.Join(top, "models", "mine")) {
		t.Error("it is still there")
	}
}
