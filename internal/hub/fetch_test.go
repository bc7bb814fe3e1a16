package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/hub/hubtest"
	"hearth/internal/regular"
)

const mib = 1 << 20

// repository is a model as hubs have them, with more beside it than hearth reads. Its weights have size bytes, in two files.
func repository(size int64) map[string]hubtest.File {
	return map[string]hubtest.File{
		".gitattributes":                           hubtest.Text("*.safetensors filter=lfs"),
		"README.md":                                hubtest.Text("# ünïcode"),
		"config.json":                              hubtest.Text(qwen),
		"tokenizer.json":                           hubtest.Large(3, 100_000),
		"tokenizer_config.json":                    hubtest.Text("{}"),
		"additional_chat_templates/tools.jinja":    hubtest.Text("{{ tools }}"),
		"model.safetensors.index.json":             hubtest.Text(`{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`),
		"model-00001-of-00002.safetensors":         hubtest.Large(1, size/2),
		"model-00002-of-00002.safetensors":         hubtest.Large(2, size-size/2),
		"model-q4.gguf":                            hubtest.Large(4, 5000),
		"original/consolidated.safetensors":        hubtest.Large(5, 5000),
		"onnx/model.onnx":                          hubtest.Large(6, 5000),
		"pytorch_model.bin":                        hubtest.Large(7, 5000),
		"bilder/ä \"quoted\"\\\u007f\U0001f600.md": hubtest.Text("x"),
	}
}

var wanted = []string{"additional_chat_templates/tools.jinja", "config.json", "model.safetensors.index.json", "tokenizer_config.json",
	"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "tokenizer.json"}

// client is one whose attempts follow each other at once.
func client(t testing.TB, h *hubtest.Hub) *Client {
	c := &Client{Endpoint: h.URL, Cache: Cache{Dir: filepath.Join(t.TempDir(), "hub")}, stall: 5 * time.Second,
		pause: func(context.Context, time.Duration) {}}
	return c
}

func pull(ctx context.Context, c *Client, name string, progress func(Progress)) (Entry, error) {
	p, err := c.Plan(ctx, name)
	if err != nil {
		return Entry{}, err
	}
	return c.Fetch(ctx, p, progress)
}

// contents are the files of a folder, by path: the text of a file, or where a link leads.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			out[filepath.ToSlash(name)] = "-> " + to
			return err
		}
		b, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = fmt.Sprintf("%v %s", info.Mode(), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkFiles compares what a snapshot leads to with what the hub has.
func checkFiles(t testing.TB, dir string, files map[string]hubtest.File, names []string) {
	t.Helper()
	for _, name := range names {
		f := files[name]
		want := make([]byte, f.Size)
		_, _ = f.Content.ReadAt(want, 0)
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
		}
	}
}

func TestFetch(t *testing.T) {
	h := hubtest.New(t)
	files := repository(3 * mib)
	commit := h.Add("org/name", files)
	c := client(t, h)
	p, err := c.Plan(t.Context(), "org/name")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range p.Files {
		names = append(names, f.Path)
	}
	if d := cmp.Diff(wanted, names); d != "" || p.Others != len(files)-len(wanted) || p.Commit != commit || p.Weights() != 3*mib || p.Missing() != p.Bytes() {
		t.Fatalf("%s %+v", d, p)
	}
	var last Progress
	e, err := c.Fetch(t.Context(), p, func(p Progress) { last = p })
	if err != nil {
		t.Fatal(err)
	}
	if e.ID != "org/name" || e.Revision != commit || !e.Whole() || e.Bytes != 3*mib {
		t.Errorf("%+v", e)
	}
	if last.Done != p.Bytes() || last.Total != p.Bytes() || len(last.Files) != len(wanted) || last.Files[0].State != Finished {
		t.Errorf("the last progress is %+v of %d", last, p.Bytes())
	}
	checkFiles(t, e.Dir, files, wanted)
	got := contents(t, c.Cache.root("org/name"))
	if to := got["snapshots/"+commit+"/additional_chat_templates/tools.jinja"]; !strings.HasPrefix(to, "-> ../../../blobs/") {
		t.Errorf("a link leads to %q", to)
	}
	if ref := got["refs/main"]; !strings.HasSuffix(ref, commit) {
		t.Errorf("main is %q", ref)
	}
	if found, err := c.Cache.Find("org/name"); err != nil || found.Dir != e.Dir {
		t.Errorf("found %+v, %v", found, err)
	}
	// What is there is not asked for again, and a commit needs no resolving.
	h.Forget()
	if p, err = c.Plan(t.Context(), "org/name@"+commit); err != nil || p.Missing() != 0 {
		t.Fatalf("%d missing, %v", p.Missing(), err)
	}
	if _, err := c.Fetch(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if r := h.Requests(); len(r) != 1 || !strings.Contains(r[0], "/tree/") {
		t.Errorf("requests %q", r)
	}
	if d := cmp.Diff(got, contents(t, c.Cache.root("org/name"))); d != "" {
		t.Error(d)
	}
}

// A small file of a plan is read without keeping anything; what is on disk is not asked for. What is not the file each
// time it is asked for, or too large, is an error.
func TestRead(t *testing.T) {
	h, text := hubtest.New(t), `{"model_type":"qwen3"}`+strings.Repeat(" ", 3000)
	h.Add("org/name", map[string]hubtest.File{"config.json": hubtest.Text(text), "tokenizer.json": hubtest.Large(1, maxRead+1), "model.safetensors": hubtest.Large(2, 1000)})
	c := client(t, h)
	p, err := c.Plan(t.Context(), "org/name")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		b, err := c.Read(t.Context(), &p, name)
		if err != nil {
			if !errors.As(err, new(*FetchError)) {
				t.Errorf("%s: %T", name, err)
			}
			return err.Error()
		}
		return string(b)
	}
	if got := read("config.json"); got != text {
		t.Errorf("%.200s", got)
	}
	if _, err := os.Stat(c.Cache.Dir); err == nil {
		t.Error("something is kept")
	}
	for name, want := range map[string]string{"tokenizer.json": "tokenizer.json has 16777217 bytes, more than 16777216", "none.json": "has no none.json"} {
		if got := read(name); !strings.Contains(got, want) {
			t.Errorf("%s: %.200s", name, got)
		}
	}
	for what, faults := range map[string]hubtest.Faults{"cut": {CutEvery: 1000}, "longer": {Longer: true}, "another": {Garbage: 100}, "compressed": {Gzip: true}} {
		h.Lock()
		h.Faults = faults
		h.Unlock()
		if got := read("config.json"); got == text || !strings.HasPrefix(got, "org/name: ") {
			t.Errorf("%s: %.200s", what, got)
		}
	}
	h.Lock()
	h.Faults = hubtest.Faults{Garbage: 1}
	h.Unlock()
	if got := read("config.json"); got != text {
		t.Errorf("after one bad answer: %.200s", got)
	}
	if _, err := pull(t.Context(), c, "org/name", nil); err != nil {
		t.Fatal(err)
	}
	h.Forget()
	if got := read("config.json"); got != text || len(h.Requests()) != 0 {
		t.Errorf("requests %q", h.Requests())
	}
}

// A revision that moves takes over what both commits have, and is what it was until the new one is whole.
func TestFetchRevisions(t *testing.T) {
	h := hubtest.New(t)
	files := repository(mib)
	first := h.Add("org/name", files)
	c := client(t, h)
	if _, err := pull(t.Context(), c, "org/name", nil); err != nil {
		t.Fatal(err)
	}
	files["config.json"] = hubtest.Text(`{"model_type": "llama"}`)
	second := h.Add("org/name", files)
	h.Add("org/name", files, "refs/pr/1")
	h.Set(func(h *hubtest.Hub) { h.Refuse["/org/name/resolve/"] = &hubtest.Refusal{Status: http.StatusForbidden} })
	if _, err := pull(t.Context(), c, "org/name", nil); err == nil {
		t.Fatal("no error")
	}
	if e, err := c.Cache.Find("org/name"); err != nil || e.Revision != first || !e.Whole() {
		t.Errorf("after a failure it is %+v, %v", e, err)
	}
	h.Set(func(h *hubtest.Hub) { h.Refuse = nil })
	h.Forget()
	if e, err := pull(t.Context(), c, "org/name", nil); err != nil || e.Revision != second || e.ModelType != "llama" {
		t.Errorf("%+v, %v", e, err)
	}
	if n := h.Sent("model-00001-of-00002.safetensors"); n != 0 {
		t.Errorf("%d bytes of what did not change were sent", n)
	}
	if e, err := pull(t.Context(), c, "org/name@refs/pr/1", nil); err != nil || !e.Whole() {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := c.Cache.Find("org/name@refs/pr/1"); err != nil || !e.Whole() {
		t.Errorf("%+v, %v", e, err)
	}
}

// However a hub misbehaves, the files are right or there is an error, and what came is not asked for twice.
func TestFaults(t *testing.T) {
	const size = 3 * mib
	for name, tt := range map[string]struct {
		faults hubtest.Faults
		error  string // "": it succeeds
		twice  int64  // bytes that may be sent again
	}{
		"none":             {},
		"cuts":             {hubtest.Faults{CutEvery: 200_000}, "", 0},
		"cuts too often":   {hubtest.Faults{CutEvery: 10_000}, "failed 6 times in a row", 0},
		"stalls":           {hubtest.Faults{Stall: 300_000}, "", 0},
		"weak tags":        {hubtest.Faults{Weak: true}, "", 0},
		"addresses expire": {hubtest.Faults{CutEvery: 400_000, ExpireAfter: 1}, "", 0},
		"pages":            {hubtest.Faults{PageSize: 2}, "", 0},
		"hops":             {hubtest.Faults{TwoHops: true}, "", 0},
		"no ranges":        {hubtest.Faults{NoRange: true, CutEvery: size}, "", 0},
		"too short":        {hubtest.Faults{Less: 10}, "lists it with", 0},
		"too long":         {hubtest.Faults{More: 10}, "lists it with", 12 * size},
		"longer":           {hubtest.Faults{Longer: true}, "more of it than the", 12 * size},
		"garbage":          {hubtest.Faults{Garbage: 100}, "other contents", 0},
		"compressed":       {hubtest.Faults{Gzip: true}, "compressed", 12 * size},
		"another commit":   {hubtest.Faults{OtherCommit: true}, "from commit eee", 12 * size},
	} {
		t.Run(name, func(t *testing.T) {
			h := hubtest.New(t)
			h.Faults = tt.faults
			files := repository(size)
			h.Add("org/name", files)
			c := client(t, h)
			c.stall = 300 * time.Millisecond
			e, err := pull(t.Context(), c, "org/name", nil)
			var fe *FetchError
			switch {
			case tt.error == "" && err != nil:
				t.Fatal(err)
			case tt.error == "":
				checkFiles(t, e.Dir, files, wanted)
			case !errors.As(err, &fe) || !strings.Contains(err.Error(), tt.error) || fe.Advice == "":
				t.Fatalf("error %v with advice %+v, want %q", err, fe, tt.error)
			default:
				if des, _ := filepath.Glob(filepath.Join(c.Cache.root("org/name"), "refs", "*")); len(des) > 0 {
					t.Error("a revision leads to what did not come")
				}
			}
			for _, name := range wanted {
				if n := h.Sent(name); n > files[name].Size+tt.twice {
					t.Errorf("%d bytes of %s were sent, it has %d", n, name, files[name].Size)
				}
			}
		})
	}
}

// A part with other contents is fetched once more, as a whole; so is one of a server without ranges that is cut.
func TestFetchAgain(t *testing.T) {
	for name, faults := range map[string]hubtest.Faults{"wrong part": {}, "no ranges": {NoRange: true}} {
		t.Run(name, func(t *testing.T) {
			h := hubtest.New(t)
			h.Faults = faults
			files := repository(2 * mib)
			h.Add("org/name", files)
			c := client(t, h)
			p, err := c.Plan(t.Context(), "org/name")
			if err != nil {
				t.Fatal(err)
			}
			b := blobs{filepath.Join(c.Cache.root(p.ID), "blobs")}
			part := bytes.Repeat([]byte{1}, 1000)
			if faults.NoRange {
				_, _ = files[p.Files[4].Path].Content.ReadAt(part, 0)
			}
			if err := errors.Join(os.MkdirAll(b.dir, 0o777), os.WriteFile(b.part(p.Files[4].Blob), part, 0o666)); err != nil {
				t.Fatal(err)
			}
			e, err := c.Fetch(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkFiles(t, e.Dir, files, wanted)
		})
	}
}

func TestRefusals(t *testing.T) {
	type answers map[string]*hubtest.Refusal
	for name, tt := range map[string]struct {
		ask    string
		change func(c *Client, h *hubtest.Hub)
		error  string
		advice string
		status int
	}{
		"unknown":         {"org/none", nil, "no model of this name, or it is private", "settings/tokens", 401},
		"unknown, token":  {"org/none", func(c *Client, h *hubtest.Hub) { c.Token = "t" }, "no model of this name, or it is private", "check the name", 404},
		"revision":        {"org/name@v9", nil, "no such revision, v9", "/org/name", 404},
		"commit":          {"org/name@" + strings.Repeat("0", 40), nil, "no such revision, 000", "/org/name", 404},
		"bad token":       {"org/name", func(c *Client, h *hubtest.Hub) { c.Token, h.Token = "t", "u" }, "does not accept the token", "HF_TOKEN", 401},
		"gated, no token": {"org/name", func(c *Client, h *hubtest.Hub) { h.Gated["org/name"] = true }, "is gated", "accept it at HUB/org/name", 401},
		"gated, not in":   {"org/name", func(c *Client, h *hubtest.Hub) { h.Gated["org/name"], c.Token = true, "t" }, "has not been let in", "HUB/org/name", 403},
		"gated, let in":   {"org/name", func(c *Client, h *hubtest.Hub) { h.Gated["org/name"], c.Token, h.LetIn = true, "t", true }, "", "", 0},
		"forbidden": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/api": {Status: 403, Header: map[string]string{"X-Error-Message": "your plan\xff"}}}
		}, `does not allow it: your plan`, "tokens", 403},
		"taken down": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/api": {Status: 403, Header: map[string]string{"X-Error-Message": "Access to this resource is disabled."}}}
		}, "taken it down", "HUB/org/name", 403},
		"file gone": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/org/name/resolve": {Status: 404, Header: map[string]string{"X-Error-Code": "EntryNotFound"}}}
		}, "no longer has", "try again", 404},
		"limit, short": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/api": {Status: 429, Times: 3, Header: map[string]string{"Retry-After": "7"}}}
		}, "", "", 0},
		"limit, long": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/api": {Status: 429, Header: map[string]string{"Retry-After": "900"}}}
		}, "no more requests for 15m0s", "with a token", 429},
		"limit, RateLimit": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/api": {Status: 429, Header: map[string]string{"RateLimit": `"api";r=0;t=3600`}}}
		}, "no more requests for 1h0m0s", "try again later", 429},
		"limit, always": {"org/name", func(c *Client, h *hubtest.Hub) { h.Refuse = answers{"/api": {Status: 429}} }, "no more requests for now", "try again later", 429},
		"busy": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/": {Status: 503, Times: 4}, "cdn": {Status: 500, Times: 2}}
		}, "", "", 0},
		"broken":      {"org/name", func(c *Client, h *hubtest.Hub) { h.Refuse = answers{"/api": {Status: 500}} }, "answers 500", "try again later", 500},
		"cdn refuses": {"org/name", func(c *Client, h *hubtest.Hub) { h.Refuse = answers{"cdn": {Status: 403}} }, "no longer valid", "try again", 0},
		"odd":         {"org/name", func(c *Client, h *hubtest.Hub) { h.Refuse = answers{"/api": {Status: 418}} }, "answers 418", "", 418},
		"login page":  {"org/name", func(c *Client, h *hubtest.Hub) { h.Refuse = answers{"/api": {Status: 200}} }, "does not answer as a Hugging Face hub", "HF_ENDPOINT", 0},
		"round": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/api": {Status: 302, Header: map[string]string{"Location": "/api"}}}
		}, "from address to address", "", 0},
		"elsewhere": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/api": {Status: 302, Header: map[string]string{"Location": "ftp://127.0.0.1/x"}}}
		}, "another kind", "", 0},
		"file": {"org/name", func(c *Client, h *hubtest.Hub) {
			h.Refuse = answers{"/org": {Status: 302, Header: map[string]string{"Location": "file:///etc/passwd"}}}
		}, "address", "", 0},
		"offline":   {"org/name", func(c *Client, h *hubtest.Hub) { c.Offline = true }, "offline", "--offline", 0},
		"no name":   {"../x", nil, "no name of a model", "org/name", 0},
		"no org":    {"name", nil, "no name of a model", "org/name", 0},
		"no cache":  {"org/name", func(c *Client, h *hubtest.Hub) { c.Cache.Dir = "" }, "no home folder", "--hf-hub-cache", 0},
		"no hub":    {"org/name", func(c *Client, h *hubtest.Hub) { c.Endpoint = "huggingface" }, "no URL", "", 0},
		"no server": {"org/name", func(c *Client, h *hubtest.Hub) { c.Endpoint = "http://127.0.0.1:1" }, "refused", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := hubtest.New(t)
			h.Add("org/name", repository(1000))
			c := client(t, h)
			var waited []time.Duration
			c.pause = func(_ context.Context, d time.Duration) { waited = append(waited, d) }
			if tt.change != nil {
				tt.change(c, h)
			}
			_, err := pull(t.Context(), c, tt.ask, nil)
			if tt.error == "" {
				if err != nil {
					t.Fatal(err)
				}
				if name == "limit, short" && !slices.Equal(waited, []time.Duration{7 * time.Second, 7 * time.Second, 7 * time.Second}) {
					t.Errorf("waited %v", waited)
				}
				return
			}
			var fe *FetchError
			if !errors.As(err, &fe) || !strings.Contains(err.Error(), tt.error) || fe.Status != tt.status {
				t.Fatalf("error %v, status %+v; want %q, %d", err, fe, tt.error, tt.status)
			}
			if !strings.Contains(strings.ReplaceAll(fe.Hint(), h.URL, "HUB"), tt.advice) {
				t.Errorf("advice %q, want %q", fe.Hint(), tt.advice)
			}
			if strings.Contains(err.Error(), "\xff") {
				t.Errorf("the error has what the hub sent, %q", err)
			}
			if name == "offline" && (len(h.Requests()) > 0 || !errors.Is(err, ErrOffline)) {
				t.Errorf("%v, requests %q", err, h.Requests())
			}
			if len(waited) >= parallel*maxAttempts {
				t.Errorf("waited %v", waited)
			}
		})
	}
}

// The token is for the hub, not for who has its large files; waiting doubles.
func TestToken(t *testing.T) {
	h := hubtest.New(t)
	h.Token = "secret"
	h.Add("org/name", repository(1000))
	c := client(t, h)
	c.Token = "secret"
	if _, err := pull(t.Context(), c, "org/name", nil); err != nil {
		t.Fatal(err)
	}
	cdn := 0
	for _, r := range h.Requests() {
		if shown := strings.Contains(r, "with token"); shown == strings.Contains(r, " cdn/") {
			t.Errorf("%s", r)
		}
		if strings.Contains(r, " cdn/") {
			cdn++
		}
	}
	if cdn != 3 {
		t.Errorf("%d requests for large files", cdn)
	}
}

func TestBackoff(t *testing.T) {
	for n := 1; n < maxAttempts; n++ {
		if d := backoff(n); d < 250*time.Millisecond<<(n-1) || d > 320*time.Millisecond<<(n-1) {
			t.Errorf("after %d attempts it waits %v", n, d)
		}
	}
	for v, want := range map[string]time.Duration{"": 0, "5": 5 * time.Second, "x": 0, "-3": 0, "99999999999999999999": 0,
		time.Now().Add(time.Minute).UTC().Format(http.TimeFormat): time.Minute, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0} {
		if got := retryAfter(http.Header{"Retry-After": {v}}); got < want-3*time.Second || got > want {
			t.Errorf("Retry-After %q: %v, want %v", v, got, want)
		}
	}
}

// What came stays where the caller gives up, and the next one begins there.
func TestCancel(t *testing.T) {
	h := hubtest.New(t)
	files := repository(8 * mib)
	h.Add("org/name", files)
	h.Faults.PerSecond = 4 * mib
	c := client(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := pull(ctx, c, "org/name", func(p Progress) {
		if p.Done > 2*mib {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	p, err := c.Plan(t.Context(), "org/name")
	if err != nil || p.Missing() > 6*mib+mib/2 {
		t.Fatalf("%d are missing, %v", p.Missing(), err)
	}
	h.Set(func(h *hubtest.Hub) { h.Faults = hubtest.Faults{} })
	e, err := c.Fetch(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkFiles(t, e.Dir, files, wanted)
	for name, f := range files {
		if n := h.Sent(name); n > f.Size+bufferBytes+128<<10 { // what was in the sockets when it ended is lost
			t.Errorf("%d bytes of %s were sent, it has %d", n, name, f.Size)
		}
	}
}

// Two who fetch the same share the work.
func TestTogether(t *testing.T) {
	h := hubtest.New(t)
	files := repository(4 * mib)
	h.Add("org/name", files)
	h.Faults.PerSecond = 8 * mib
	c := client(t, h)
	var wg sync.WaitGroup
	var waited [2]bool
	var errs [2]error
	for i := range 2 {
		wg.Go(func() {
			_, errs[i] = pull(t.Context(), c, "org/name", func(p Progress) {
				waited[i] = waited[i] || slices.ContainsFunc(p.Files, func(f FileProgress) bool { return f.State == Waits })
			})
		})
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if !waited[0] && !waited[1] {
		t.Error("neither was said to wait")
	}
	for name := range files {
		if n, want := h.Sent(name), files[name].Size; n != want && n != 0 {
			t.Errorf("%d bytes of %s were sent, it has %d", n, name, want)
		}
	}
}

// A lock that another has ends with the wait's context; a file of a lock that was removed excludes nobody.
func TestLock(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	unlock, err := c.lockBlob(t.Context(), "org/name", "b", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := c.lockBlob(ctx, "org/name", "b", cancel); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	path := filepath.Join(c.Dir, ".locks", "models--org--name", "b.lock")
	removed := false
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again, err := c.lockBlob(t.Context(), "org/name", "b", func() { removed = true })
	if err != nil || removed {
		t.Fatal(err, removed)
	}
	again()
	unlock()
	if _, err := os.Stat(path); err != nil {
		t.Error("the file of the lock is gone:", err)
	}
}

// TestFetchChild is the process that TestKill kills.
func TestFetchChild(t *testing.T) {
	endpoint, dir := os.Getenv("HEARTH_TEST_HUB"), os.Getenv("HEARTH_TEST_CACHE")
	if endpoint == "" {
		t.Skip("it is started by TestKill")
	}
	c := &Client{Endpoint: endpoint, Cache: Cache{Dir: dir}}
	if _, err := pull(t.Context(), c, "org/name", nil); err != nil {
		t.Fatal(err)
	}
}

// A process that is killed twenty times fetches at most a buffer of each file again each time.
func TestKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed process is another thing there")
	}
	const kills = 20
	h := hubtest.New(t)
	files := repository(24 * mib)
	h.Add("org/name", files)
	h.Faults.PerSecond = 10 * mib
	dir := t.TempDir()
	child := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFetchChild$", "-test.count=1")
		cmd.Env = append(os.Environ(), "HEARTH_TEST_HUB="+h.URL, "HEARTH_TEST_CACHE="+dir)
		return cmd
	}
	sent := func() (n int64) {
		for name := range files {
			n += h.Sent(name)
		}
		return n
	}
	killed := 0
	for n := range kills {
		cmd := child()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until := sent() + int64(n*37%17)*60_000 + 100_000 // as if by chance
		for deadline := time.Now().Add(20 * time.Second); sent() < until && time.Now().Before(deadline); {
			if len(contentsOf(dir, "refs")) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err != nil {
			killed++
		}
	}
	if out, err := child().CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if killed < kills {
		t.Errorf("only %d of %d were killed before they ended", killed, kills)
	}
	e, err := Cache{Dir: dir}.Find("org/name")
	if err != nil {
		t.Fatal(err)
	}
	checkFiles(t, e.Dir, files, wanted)
	for _, name := range wanted {
		again := h.Sent(name) - files[name].Size
		t.Logf("%s: %d bytes, %d again in %d kills", name, files[name].Size, again, killed)
		if again > int64(killed)*bufferBytes {
			t.Errorf("%d bytes of %s were sent again in %d kills", again, name, killed)
		}
	}
}

var large = flag.Int64("large", 0, "bytes of the file of TestLarge")

// A file of a gigabyte over a hub that cuts every 50 MB is right, and no byte of it comes twice.
func TestLarge(t *testing.T) {
	if *large == 0 {
		t.Skip("run by hand: make hub")
	}
	h := hubtest.New(t)
	h.Add("org/name", map[string]hubtest.File{"config.json": hubtest.Text(qwen), "model.safetensors": hubtest.Large(1, *large)})
	h.Faults.CutEvery = 50_000_000
	c := &Client{Endpoint: h.URL, Cache: Cache{Dir: t.TempDir()}} // with the waits that a person has
	start := time.Now()
	e, err := pull(t.Context(), c, "org/name", nil)
	if err != nil {
		t.Fatal(err)
	}
	spent := time.Since(start)
	b, err := filepath.EvalSymlinks(filepath.Join(e.Dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil || hex.EncodeToString(sum.Sum(nil)) != filepath.Base(b) {
		t.Errorf("%v, the checksum is %x", err, sum.Sum(nil))
	}
	asked := 0
	for _, r := range h.Requests() {
		if strings.Contains(r, " cdn/") {
			asked++
		}
	}
	t.Logf("%d bytes in %v, over %d connections, %d bytes again", *large, spent.Round(10*time.Millisecond), asked, h.Sent("model.safetensors")-*large)
	if again := h.Sent("model.safetensors") - *large; again > bufferBytes {
		t.Errorf("%d bytes came twice", again)
	}
}

func contentsOf(dir, what string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "models--org--name", what, "*"))
	return names
}

// Parts that others have left are gone on with: the longest, as far as somebody wrote it.
func TestLeftovers(t *testing.T) {
	f := hubtest.Large(9, 100_000)
	body := make([]byte, f.Size)
	_, _ = f.Content.ReadAt(body, 0)
	blob := strings.Repeat("a", 64)
	for name, tt := range map[string]struct {
		parts map[string]int // their sizes
		hole  bool
		want  int64
	}{
		"none":          {nil, false, 0},
		"own":           {map[string]int{".incomplete": 5000}, false, 5000},
		"theirs":        {map[string]int{".0a1b2c3d.incomplete": 6000}, false, 6000},
		"longest":       {map[string]int{".incomplete": 5000, ".0a1b2c3d.incomplete": 70_000, ".1a1b2c3d.incomplete": 6000}, false, 70_000},
		"too long":      {map[string]int{".incomplete": 5000, ".0a1b2c3d.incomplete": 100_001}, false, 5000},
		"only too long": {map[string]int{".incomplete": 100_001}, false, 0},
		"other names":   {map[string]int{".0a1b2c3.incomplete": 5000, ".tmp": 5000}, false, 0},
		"holes":         {map[string]int{".0a1b2c3d.incomplete": 20_000}, true, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			b := blobs{t.TempDir()}
			for suffix, n := range tt.parts {
				part := append(append([]byte(nil), body...), 0)[:n]
				file, err := os.Create(b.path(blob + suffix))
				if err == nil {
					_, err = file.Write(part)
				}
				if err == nil && tt.hole {
					_, err = file.WriteAt([]byte("x"), 90_000)
				}
				if err = errors.Join(err, file.Close()); err != nil {
					t.Fatal(err)
				}
			}
			file, n, err := b.openPart(&File{Path: "x", Size: 100_000, Blob: blob}, b.leftovers()[blob])
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, known := firstHole(file); tt.hole && !known {
				t.Skip("this system does not tell where files have holes")
			}
			if tt.hole && n == 90_001 {
				t.Skip("this file system has no holes")
			}
			// The last bytes before a hole may be zeros of their own, which are fetched again.
			if n > tt.want || n < tt.want-8 {
				t.Errorf("it goes on at %d, want %d", n, tt.want)
			}
			got := make([]byte, n)
			if _, err := file.ReadAt(got, 0); err != nil && n > 0 || !bytes.Equal(got, body[:n]) {
				t.Errorf("what it goes on with is not the file: %v", err)
			}
		})
	}
}

// A link in a part's place is not written to.
func TestPartIsNoLink(t *testing.T) {
	b := blobs{t.TempDir()}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("mine"), 0o600), os.Symlink(victim, b.part(strings.Repeat("a", 64)))); err != nil {
		t.Fatal(err)
	}
	_, _, err := b.openPart(&File{Size: 10, Blob: strings.Repeat("a", 64)}, nil)
	var kind *regular.KindError
	if got, _ := os.ReadFile(victim); !errors.As(err, &kind) || string(got) != "mine" {
		t.Errorf("%v, the file has %q", err, got)
	}
}

func TestRoom(t *testing.T) {
	c := &Client{Endpoint: "http://127.0.0.1:1", Cache: Cache{Dir: t.TempDir()}}
	s, err := c.open("org/name")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := regular.Free(c.Cache.Dir); err != nil {
		t.Skip(err)
	}
	if err := s.room(&Plan{ID: "org/name", Files: []File{{Size: 1 << 60}}}); err == nil || !strings.Contains(err.Error(), c.Cache.Dir) {
		t.Errorf("%v", err)
	}
	if err := s.room(&Plan{ID: "org/name", Files: []File{{Size: 1 << 60, Have: 1<<60 - 1}}}); err != nil {
		t.Error(err)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 4_294_967_296: "4.3 GB", 3e12: "3.0 TB", 5e15: "5000.0 TB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	p := &Plan{Files: []File{{Path: "a", Size: 1000, Have: 200}, {Path: "b", Size: 10, Have: 10}}}
	tl := newTally(p, nil)
	tl.now, tl.seen = func() time.Time { return now }, []mark{{now, 0}}
	var got Progress
	for i := range int64(4) {
		now = now.Add(2 * time.Second)
		tl.set(0, Arrives, 300+100*i, 100)
		got = tl.progress()
	}
	want := Progress{Done: 610, Total: 1010, Rate: 50, Left: 8, Files: []FileProgress{{"a", 600, 1000, Arrives}, {"b", 10, 10, Finished}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	now = now.Add(time.Hour)
	if got = tl.progress(); got.Rate != 0 && got.Left < 3600 {
		t.Errorf("after an hour without a byte: %+v", got)
	}
}

// What cannot be run is refused before anything is fetched, and whatever a hub lists, nothing is written outside.
func TestListings(t *testing.T) {
	oid, sum := strings.Repeat("a", 40), strings.Repeat("b", 64)
	file := func(path string) string { return fmt.Sprintf(`{"type":"file","path":%q,"size":3,"oid":%q}`, path, oid) }
	good := file("config.json") + "," + file("model.safetensors")
	for name, tt := range map[string]struct{ list, error string }{
		"good":         {good, ""},
		"any name":     {file("config.json") + "," + file("weights.safetensors"), ""},
		"GGUF":         {file("config.json") + "," + file("m-q4.gguf"), "GGUF"},
		"PyTorch":      {file("config.json") + "," + file("pytorch_model.bin"), "PyTorch"},
		"adapter":      {file("adapter_config.json") + "," + file("adapters.safetensors"), "adapter without"},
		"elsewhere":    {file("config.json") + "," + file("unet/model.safetensors"), "no weights"},
		"nothing":      {"", "no weights"},
		"no config":    {file("model.safetensors"), "no config.json"},
		"climbs":       {good + "," + file("../../x/config.json"), ""}, // hearth does not read it
		"climbs in":    {good + "," + file("1_x/../config.json"), ""},
		"weights out":  {good + "," + file("model/../../x.safetensors"), ""},
		"backslash":    {good + "," + file(`model\..\..\x.safetensors`), "by a name that none may have"},
		"stream":       {good + "," + file(`model.safetensors:x.safetensors`), "by a name that none may have"},
		"control":      {good + "," + file("model\n.safetensors"), "by a name that none may have"},
		"long":         {good + "," + file("model"+strings.Repeat("x", 300)+".safetensors"), "by a name that none may have"},
		"twice":        {good + "," + file("config.json"), "twice"},
		"no sum":       {strings.Replace(good, oid, "", 1), "no checksum"},
		"sum climbs":   {strings.Replace(good, oid, "../../../"+oid[9:], 1), "no checksum"},
		"capitals":     {strings.Replace(good, oid, strings.ToUpper(oid), 1), "no checksum"},
		"large sum":    {`{"type":"file","path":"model.safetensors","oid":"` + oid + `","lfs":{"oid":"` + oid + `","size":1}}`, "no checksum"},
		"negative":     {`{"type":"file","path":"config.json","size":-1,"oid":"` + oid + `"}`, "-1 bytes"},
		"huge":         {`{"type":"file","path":"model.safetensors","oid":"` + oid + `","lfs":{"oid":"` + sum + `","size":9000000000000000000}}`, "9000000000000000000 bytes"},
		"no list":      {`{]`, "does not answer as"},
		"not of files": {`{"type":7}`, "does not answer as"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "[%s]", tt.list) }))
			t.Cleanup(srv.Close)
			c := &Client{Endpoint: srv.URL, Cache: Cache{Dir: t.TempDir()}, pause: func(context.Context, time.Duration) {}}
			p, err := c.Plan(t.Context(), "org/name@"+oid)
			if tt.error == "" {
				if err != nil || len(p.Files) != 2 {
					t.Errorf("%+v, %v", p.Files, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.error) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, tt.error)
			}
		})
	}
}

// There may be many files, but not any number of them.
func TestManyFiles(t *testing.T) {
	oid := strings.Repeat("a", 40)
	for name, tt := range map[string]struct {
		path  string
		count int
		error string
	}{"listed": {"images/%d.png", maxListed + 1, "more than 100000 files"}, "of the model": {"model-%d.safetensors", maxFiles + 1, "more than 4096"}} {
		t.Run(name, func(t *testing.T) {
			var list []map[string]any
			for i := range tt.count {
				list = append(list, map[string]any{"type": "file", "path": fmt.Sprintf(tt.path, i), "size": 1, "oid": oid})
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(list) }))
			t.Cleanup(srv.Close)
			c := &Client{Endpoint: srv.URL, Cache: Cache{Dir: t.TempDir()}}
			if _, err := c.Plan(t.Context(), "org/name@"+oid); err == nil || !strings.Contains(err.Error(), tt.error) {
				t.Error(err)
			}
		})
	}
}

// A list that does not end, or goes on at another server, is no list.
func TestPages(t *testing.T) {
	oid := strings.Repeat("a", 40)
	for _, tt := range []struct{ next, error string }{{"http://127.0.0.1:2/x", "goes on elsewhere"}, {"/again", "more than 100000 files"}} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "<"+tt.next+`>; rel="next"`)
			fmt.Fprint(w, "[]")
		}))
		t.Cleanup(srv.Close)
		c := &Client{Endpoint: srv.URL, Cache: Cache{Dir: t.TempDir()}}
		if _, err := c.Plan(t.Context(), "org/name@"+oid); err == nil || !strings.Contains(err.Error(), tt.error) {
			t.Errorf("%s: %v", tt.next, err)
		}
	}
}

// A hub's answer that has no end is not kept.
func TestLargeAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for b := bytes.Repeat([]byte(" "), mib); ; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	c := &Client{Endpoint: srv.URL, Cache: Cache{Dir: t.TempDir()}}
	if _, err := c.Plan(t.Context(), "org/name"); err == nil || !strings.Contains(err.Error(), "more than 32 MiB") {
		t.Error(err)
	}
}

// The list of a commit is what it was when it was first kept, whatever a hub says.
func FuzzListing(f *testing.F) {
	oid := strings.Repeat("a", 40)
	f.Add(`[{"type":"file","path":"config.json","size":3,"oid":"` + oid + `"},{"type":"file","path":"model.safetensors","size":3,"oid":"` + oid + `"}]`)
	f.Add(`[{"type":"file","path":"../config.json","size":-3,"oid":"../x"},{"type":"file","path":"model/../../x.safetensors","lfs":{"oid":"/"}}]`)
	f.Add(`[{"type":"file","path":"1_a/config.json"},{"path":"additional_chat_templates/\u0000.jinja"}]`)
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, list string) {
		p := Plan{ID: "org/name", Revision: "main", Commit: oid}
		if json.Unmarshal([]byte(list), &p.listing) != nil {
			return
		}
		s := &session{Client: &Client{}, id: "org/name"}
		err := s.choose(&p)
		c := Cache{Dir: root}
		for _, file := range p.Files {
			snapshot := filepath.Join(c.root(p.ID), "snapshots", oid)
			if rel, err := filepath.Rel(snapshot, c.pointer(&p, &file)); err != nil || !filepath.IsLocal(rel) || rel == "." {
				t.Errorf("%q leads out of the snapshot", file.Path)
			}
			b := blobs{filepath.Join(c.root(p.ID), "blobs")}
			if filepath.Dir(b.path(file.Blob)) != b.dir || file.Size < 0 || file.Size > maxFileBytes {
				t.Errorf("%q leads out of the blobs", file.Blob)
			}
		}
		if err == nil {
			c.look(&p)
			if err := c.writeTree(&p); err != nil {
				t.Error(err)
			}
			path := filepath.Join(c.root(p.ID), "trees", oid+".json")
			if b, err := os.ReadFile(path); err == nil && !json.Valid(b) {
				t.Errorf("the list is kept as %s", b)
			}
			_ = os.Remove(path)
		}
	})
}

// Headers of a hub are read without trust.
func FuzzAnswer(f *testing.F) {
	f.Add(206, "bytes 5-9/10", "5", "10", `W/"x"`, `"api";r=0;t=55`)
	f.Add(200, "", "10", "-1", `"`, "")
	f.Add(206, "bytes 5-9223372036854775807/*", "x", "99999999999999999999", "", `;r=0;t=999999999`)
	f.Fuzz(func(t *testing.T, status int, contentRange, retry, linked, tag, limit string) {
		h := http.Header{"Content-Range": {contentRange}, "Retry-After": {retry}, "X-Linked-Size": {linked}, "Etag": {tag}, "Ratelimit": {limit}, "Link": {tag}}
		d := &download{session: &session{Client: &Client{}, id: "org/name", base: mustURL("http://127.0.0.1")}, plan: &Plan{ID: "org/name"},
			file: &File{Path: "config.json", Size: 10, Blob: strings.Repeat("a", 40)}, at: 5}
		a := &answer{Response: &http.Response{StatusCode: status, Header: h, ContentLength: -1}, own: true, first: h}
		skip, err := d.expect(a)
		if err == nil && (skip < 0 || skip > d.at) {
			t.Errorf("%d bytes are skipped", skip)
		}
		if retryAfter(h) < 0 || nextPage(h) == "" && strings.Contains(tag, "<x>; rel=next") {
			t.Error(retryAfter(h))
		}
	})
}

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}
