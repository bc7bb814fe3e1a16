// Package hub runs huggingface_hub itself against the hub that stands in for Hugging Face's in tests, and both it and hearth
// on one cache: only what it downloads from counts as a hub, and each has to go on with what the other left. Run by make
// interop, which installs it.
package hub

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/hub"
	"hearth/internal/hub/hubtest"
)

var (
	python = flag.String("python", "", "a Python with huggingface_hub")
	before = flag.String("before", "", "a Python with a huggingface_hub that goes on with parts of files, such as 0.36")
)

const mib = 1 << 20

// library is the Python to use; the test is skipped without one.
func library(t *testing.T, path string) string {
	t.Helper()
	if path == "" {
		t.Skip("run by make interop, which installs huggingface_hub")
	}
	return path
}

// model has files of all kinds, the weights of size bytes.
func model(size int64) map[string]hubtest.File {
	return map[string]hubtest.File{
		"README.md":                             hubtest.Text("# ünïcode"),
		"config.json":                           hubtest.Text(`{"model_type": "llama"}`),
		"tokenizer.json":                        hubtest.Large(3, 100_000),
		"additional_chat_templates/tools.jinja": hubtest.Text("{{ tools }}"),
		"model.safetensors":                     hubtest.Large(1, size),
		"odd/ä \"q\" \\ \u007f\U0001f600\n.md":  hubtest.Text("x"),
		"odd/z.md":                              hubtest.Text(""),
	}
}

var wanted = []string{"additional_chat_templates/tools.jinja", "config.json", "model.safetensors", "tokenizer.json"}

// script is a program in Python that has the cache as its own and h as hub.
func script(ctx context.Context, path string, h *hubtest.Hub, cache, text string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, "-c", text)
	cmd.Env = append(os.Environ(), "HF_ENDPOINT="+h.URL, "HF_HUB_CACHE="+cache, "HF_HOME="+filepath.Dir(cache), "HF_TOKEN_PATH="+cache+"-token",
		// The store of chunks is another protocol, which hearth does not speak either.
		"HF_HUB_DISABLE_XET=1", "HF_HUB_DISABLE_PROGRESS_BARS=1", "HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_IMPLICIT_TOKEN=1")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// download is a snapshot of what hearth reads.
func download(revision string) string {
	names := make([]string, len(wanted))
	for i, name := range wanted {
		names[i] = fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("import huggingface_hub as h; print(h.snapshot_download('org/name', revision=%q, allow_patterns=[%s]))", revision, strings.Join(names, ","))
}

func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// fetch is hearth's.
func fetch(ctx context.Context, h *hubtest.Hub, cache, name string, progress func(hub.Progress)) (hub.Entry, error) {
	c := &hub.Client{Endpoint: h.URL, Cache: hub.Cache{Dir: cache}}
	p, err := c.Plan(ctx, name)
	if err != nil {
		return hub.Entry{}, err
	}
	return c.Fetch(ctx, p, progress)
}

// tree is all that is in a folder: kind, mode and contents by path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var b []byte
			if b, err = os.ReadFile(path); len(b) > 10_000 {
				b = fmt.Appendf(nil, "%d bytes, %x", len(b), b[len(b)-8:]) // its name is its checksum
			}
			text = string(b)
		}
		out[filepath.ToSlash(name)] = info.Mode().String() + " " + text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// check compares the files behind a snapshot with the hub's.
func check(t *testing.T, dir string, files map[string]hubtest.File) {
	t.Helper()
	for _, name := range wanted {
		want := make([]byte, files[name].Size)
		_, _ = files[name].Content.ReadAt(want, 0)
		if got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
		}
	}
}

// The folders that both leave are the same: tree, links, refs, blobs, locks, modes.
func TestSame(t *testing.T) {
	path := library(t, *python)
	for name, revision := range map[string]string{"main": "main", "branch": "refs/pr/1", "commit": ""} {
		t.Run(name, func(t *testing.T) {
			h := hubtest.New(t)
			h.Faults = hubtest.Faults{PageSize: 3, TwoHops: true}
			commit := h.Add("org/name", model(mib), "main", "refs/pr/1")
			if revision == "" {
				revision = commit
			}
			theirs, ours := filepath.Join(t.TempDir(), "hub"), filepath.Join(t.TempDir(), "hub")
			said := run(t, script(t.Context(), path, h, theirs, download(revision)))
			e, err := fetch(t.Context(), h, ours, "org/name@"+revision, nil)
			if err != nil {
				t.Fatal(err)
			}
			if rel, _ := filepath.Rel(ours, e.Dir); filepath.Join(theirs, rel) != said {
				t.Errorf("hearth says %s, huggingface_hub %s", e.Dir, said)
			}
			if d := cmp.Diff(tree(t, theirs), tree(t, ours)); d != "" {
				t.Error("- huggingface_hub, + hearth:\n", d)
			}
		})
	}
}

// What one has fetched the other has, too, online and offline.
func TestShare(t *testing.T) {
	path := library(t, *python)
	h := hubtest.New(t)
	files := model(mib)
	h.Add("org/name", files)
	get := map[string]func(t *testing.T, cache string) string{
		"hearth": func(t *testing.T, cache string) string {
			e, err := fetch(t.Context(), h, cache, "org/name", nil)
			if err != nil {
				t.Fatal(err)
			}
			return e.Dir
		},
		"huggingface_hub": func(t *testing.T, cache string) string {
			return run(t, script(t.Context(), path, h, cache, download("main")))
		},
	}
	for first, second := range map[string]string{"hearth": "huggingface_hub", "huggingface_hub": "hearth"} {
		t.Run(first+" first", func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "hub")
			dir := get[first](t, cache)
			was := tree(t, cache)
			h.Forget()
			if again := get[second](t, cache); again != dir {
				t.Errorf("%s finds %s, %s made %s", second, again, first, dir)
			}
			if r := h.Requests(); slices.ContainsFunc(r, func(r string) bool { return strings.Contains(r, "/resolve/") }) {
				t.Errorf("%s asks for %q", second, r)
			}
			if d := cmp.Diff(was, tree(t, cache)); d != "" {
				t.Error(d)
			}
			check(t, dir, files)
			h.Forget()
			if said := run(t, script(t.Context(), path, h, cache, download("main"), "HF_HUB_OFFLINE=1")); said != dir || len(h.Requests()) > 0 {
				t.Errorf("offline it is %s, with requests %q", said, h.Requests())
			}
		})
	}
}

// parts are the sizes of what is half there.
func parts(cache string) (n int64) {
	names, _ := filepath.Glob(filepath.Join(cache, "*", "blobs", "*.incomplete"))
	for _, name := range names {
		if st, err := os.Stat(name); err == nil {
			n = max(n, st.Size())
		}
	}
	return n
}

// hearth goes on with what a huggingface_hub that was killed has left.
func TestResumeTheirs(t *testing.T) {
	for name, path := range map[string]string{"now": *python, "before": *before} {
		t.Run(name, func(t *testing.T) {
			path := library(t, path)
			h := hubtest.New(t)
			files := model(64 * mib)
			h.Add("org/name", files)
			h.Faults.PerSecond = 40 * mib
			cache := filepath.Join(t.TempDir(), "hub")
			cmd := script(t.Context(), path, h, cache, download("main"))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(time.Minute); parts(cache) < 20*mib && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			have := parts(cache)
			if have < 20*mib {
				t.Fatalf("it left %d bytes", have)
			}
			h.Set(func(h *hubtest.Hub) { h.Faults = hubtest.Faults{} })
			h.Forget()
			e, err := fetch(t.Context(), h, cache, "org/name", nil)
			if err != nil {
				t.Fatal(err)
			}
			check(t, e.Dir, files)
			if n, want := h.Sent("model.safetensors"), files["model.safetensors"].Size-have; n < want || n > want+128<<10 { // a request that has ended may count a little more
				t.Errorf("%d bytes were sent, %d were missing", n, want)
			}
			clean := filepath.Join(t.TempDir(), "hub")
			if _, err := fetch(t.Context(), h, clean, "org/name", nil); err != nil {
				t.Fatal(err)
			}
			if name == "now" {
				if d := cmp.Diff(tree(t, clean), tree(t, cache)); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// huggingface_hub ends what hearth has begun. Older releases go on with the part of a file that is there; 2.4 takes whole files
// alone, and fetches that one anew.
func TestResumeOurs(t *testing.T) {
	for name, path := range map[string]string{"now": *python, "before": *before} {
		t.Run(name, func(t *testing.T) {
			path := library(t, path)
			h := hubtest.New(t)
			files := model(32 * mib)
			h.Add("org/name", files)
			h.Faults.PerSecond = 30 * mib
			cache := filepath.Join(t.TempDir(), "hub")
			ctx, cancel := context.WithCancel(t.Context())
			_, err := fetch(ctx, h, cache, "org/name", func(p hub.Progress) {
				if p.Done > 10*mib {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			have := parts(cache)
			h.Set(func(h *hubtest.Hub) { h.Faults = hubtest.Faults{} })
			h.Forget()
			dir := run(t, script(t.Context(), path, h, cache, download("main")))
			check(t, dir, files)
			n, size := h.Sent("model.safetensors"), files["model.safetensors"].Size
			// A request that has ended may count a little more afterwards.
			if name == "before" && n > size-have+128<<10 || n > size+128<<10 || have < 8*mib {
				t.Errorf("%d bytes of %d were sent, %d were there", n, size, have)
			}
			if n := h.Sent("tokenizer.json"); n != 0 {
				t.Errorf("%d bytes of a file that was there were sent", n)
			}
			// hearth clears away what nobody will go on with.
			if e, err := fetch(t.Context(), h, cache, "org/name", nil); err != nil || e.Dir != dir || parts(cache) != 0 {
				t.Errorf("%s, %v, %d bytes left over", e.Dir, err, parts(cache))
			}
		})
	}
}

// A lock of one holds up the other.
func TestLocks(t *testing.T) {
	path := library(t, *python)
	h := hubtest.New(t)
	files := model(16 * mib)
	h.Add("org/name", files)
	// The lock is theirs: hearth waits until they let go of it.
	cache := filepath.Join(t.TempDir(), "hub")
	c := &hub.Client{Endpoint: h.URL, Cache: hub.Cache{Dir: cache}}
	p, err := c.Plan(t.Context(), "org/name")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Files, func(f hub.File) bool { return f.Path == "model.safetensors" })
	lock := filepath.Join(cache, ".locks", "models--org--name", p.Files[i].Blob+".lock")
	if err := os.MkdirAll(filepath.Dir(lock), 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := script(t.Context(), path, h, cache, fmt.Sprintf("import sys; from huggingface_hub.utils import WeakFileLock\nwith WeakFileLock(%q):\n  print('locked', flush=True); sys.stdin.read()", lock))
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	waited := false
	if _, err := c.Fetch(t.Context(), p, func(now hub.Progress) {
		if !waited && now.Files[i].State == hub.Waits {
			waited = true
			_ = in.Close()
		}
	}); err != nil || !waited {
		t.Fatalf("%v; it waited: %t", err, waited)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	// The lock is hearth's: they wait, and then have nothing to fetch.
	h.Forget()
	h.Set(func(h *hubtest.Hub) { h.Faults.PerSecond = 8 * mib })
	cache = filepath.Join(t.TempDir(), "hub")
	var theirs *exec.Cmd
	var said bytes.Buffer
	if _, err := fetch(t.Context(), h, cache, "org/name", func(now hub.Progress) {
		if theirs == nil && now.Done > mib {
			theirs = script(t.Context(), path, h, cache, download("main"))
			theirs.Stderr = &said
			if err := theirs.Start(); err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if n, size := h.Sent("model.safetensors"), files["model.safetensors"].Size; n != size {
		t.Errorf("%d bytes of %d were sent to both", n, size)
	}
}

// The stand-in's faults and refusals are such as huggingface_hub knows: it gets over the first, and names the second.
func TestStandIn(t *testing.T) {
	path := library(t, *python)
	for name, tt := range map[string]struct {
		set  func(h *hubtest.Hub)
		ask  string // "": the snapshot
		want string // "": the files are right
	}{
		"weak tags": {func(h *hubtest.Hub) { h.Faults.Weak = true }, "", ""},
		"cuts":      {func(h *hubtest.Hub) { h.Faults.CutEvery = 10 * mib }, "", ""},
		"no ranges": {func(h *hubtest.Hub) { h.Faults.NoRange = true }, "", ""},
		"token":     {func(h *hubtest.Hub) { h.Token = "hf_x" }, "", ""},
		"lies":      {func(h *hubtest.Hub) { h.Faults.Less = 1 }, "", "RemoteProtocolError|OSError|ReadError|Exception"},
		"gated":     {func(h *hubtest.Hub) { h.Gated["org/name"] = true }, "h.hf_hub_download('org/name','config.json')", "GatedRepoError"},
		"not in":    {func(h *hubtest.Hub) { h.Gated["org/name"] = true }, "h.hf_hub_download('org/name','config.json',token='hf_x')", "GatedRepoError"},
		"unknown":   {nil, "h.snapshot_download('org/none')", "RepositoryNotFoundError"},
		"revision":  {nil, "h.snapshot_download('org/name',revision='v9')", "RevisionNotFoundError"},
		"file":      {nil, "h.hf_hub_download('org/name','none.json')", "RemoteEntryNotFoundError"},
		"limit":     {func(h *hubtest.Hub) { h.Refuse["/org"] = &hubtest.Refusal{Status: 429} }, "h.hf_hub_download('org/name','config.json')", "429 Too Many Requests"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hubtest.New(t)
			files := model(24 * mib)
			h.Add("org/name", files)
			if tt.set != nil {
				tt.set(h)
			}
			text := download("main")
			if tt.ask != "" {
				text = "import huggingface_hub as h; " + tt.ask
			}
			if h.Token != "" {
				text = strings.Replace(text, "'org/name'", "'org/name', token='hf_x'", 1)
			}
			cmd := script(t.Context(), path, h, filepath.Join(t.TempDir(), "hub"), text)
			if tt.want == "" {
				check(t, run(t, cmd), files)
				return
			}
			out, err := cmd.CombinedOutput()
			if err == nil || !slices.ContainsFunc(strings.Split(tt.want, "|"), func(w string) bool { return strings.Contains(string(out), w) }) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
