package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hearth/internal/demo"
)

// cacheWith is a Hugging Face cache with a copy of the demo under an id, and the arguments that name it.
func cacheWith(t *testing.T, id string) []string {
	t.Helper()
	root := t.TempDir()
	repo := filepath.Join(root, "models--"+strings.ReplaceAll(id, "/", "--"))
	if err := os.MkdirAll(filepath.Join(repo, "refs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, "refs", "main"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(repo, "snapshots", "abc"), demo.FS()); err != nil {
		t.Fatal(err)
	}
	return []string{"--hf-hub-cache", root}
}

// A server serves what is on disk when it is asked for it, in every protocol, and says so; with --models pinned it does not.
func TestServeOnDemand(t *testing.T) {
	cache := cacheWith(t, "org/tiny")
	p := start(t, nil, cache...)
	states := func() string {
		_, b := request(t, "GET", p.url+"/v1/models", "")
		var list struct {
			Data []struct{ ID, State string }
		}
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, m := range list.Data {
			text += m.ID + " " + m.State + ", "
		}
		return text
	}
	if got := states(); got != "demo loaded, org/tiny on_disk, " {
		t.Error(got)
	}
	if status, b := request(t, "GET", p.url+"/v1/models?limit=1&after_id=demo", ""); status != 200 || !strings.Contains(string(b), `"first_id":"org/tiny"`) || !strings.Contains(string(b), `"has_more":false`) {
		t.Errorf("%d %s", status, b)
	}
	if _, b := request(t, "GET", p.url+"/v1/models/org/tiny", ""); !strings.Contains(string(b), `"context_length":8192`) ||
		!strings.Contains(string(b), `"state":"on_disk","capabilities":["completion","chat","tools","thinking"]`) {
		t.Errorf("never loaded: %s", b)
	}
	for path, body := range map[string]string{
		"/v1/messages":         `{"model":"tiny","max_tokens":2,"keep_alive":"1h","messages":[{"role":"user","content":"Hi"}]}`,
		"/v1/chat/completions": `{"model":"org/tiny","max_tokens":2,"keep_alive":-1,"messages":[{"role":"user","content":"Hi"}]}`,
		"/v1/completions":      `{"model":"org/tiny","max_tokens":2,"keep_alive":3600,"prompt":"Hi"}`,
		"/v1/responses":        `{"model":"claude-org-tiny","max_output_tokens":16,"keep_alive":"30m","input":"Hi"}`,
	} {
		if status, b := request(t, http.MethodPost, p.url+path, body); status != 200 {
			t.Errorf("%s: %d %s", path, status, b)
		}
	}
	if got := states(); got != "demo loaded, org/tiny loaded, " {
		t.Error(got)
	}
	for path, body := range map[string]string{
		"/v1/messages":   `{"model":"tiny","max_tokens":2,"keep_alive":"soon","messages":[{"role":"user","content":"Hi"}]}`,
		"/v1/embeddings": `{"model":"org/tiny","input":"Hi"}`,
	} {
		if status, b := request(t, http.MethodPost, p.url+path, body); status != 400 {
			t.Errorf("%s: %d %s", path, status, b)
		}
	}
	if status, b := request(t, http.MethodPost, p.url+"/v1/completions", `{"model":"tiny","max_tokens":2,"keep_alive":0,"prompt":"Hi"}`); status != 200 {
		t.Errorf("%d %s", status, b)
	}
	for deadline := time.Now().Add(20 * time.Second); states() != "demo loaded, org/tiny on_disk, "; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not go: " + states())
		}
	}
	pinned := start(t, nil, append(cache, "--models", "pinned")...)
	if status, b := request(t, http.MethodPost, pinned.url+"/v1/messages", `{"model":"org/tiny","max_tokens":2,"messages":[{"role":"user","content":"Hi"}]}`); status != 404 {
		t.Errorf("pinned: %d %s", status, b)
	}
	if _, b := request(t, "GET", pinned.url+"/v1/models", ""); strings.Contains(string(b), "org/tiny") {
		t.Errorf("pinned: %s", b)
	}
}
