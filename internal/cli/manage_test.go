//go:build unix

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stateIn is the state of the one server that runs in a runtime folder.
func stateIn(t *testing.T, dir string) (s state) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "hearth", "serve-*.json"))
	if len(files) != 1 {
		t.Fatalf("state files: %v", files)
	}
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A running server tells what there is and takes names, and a model that it has loaded stays on the disk, whoever wants it gone.
func TestManageServer(t *testing.T) {
	dir := t.TempDir()
	snap := filepath.Join(dir, "hub", "models--org--little", "snapshots", "abc")
	if err := writeDemo(snap); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, "llm", "models", "half")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "config.json"), []byte(`{"model_type":"llama"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "HF_HUB_CACHE=" + filepath.Join(dir, "hub")}
	p := start(t, env, "org/little")
	token := stateIn(t, dir).Token
	if len(token) < 20 {
		t.Fatalf("token %q", token)
	}
	ask := func(method, path, body, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/hearth/models", "", 200, `{"id":"org/little","loaded":true,"default":true,"kind":"chat","context":8192,"state":"whole","folder":"` + snap + `","revision":"abc","model_type":"qwen3"`},
		{"GET", "/hearth/models", "", 200, `{"id":"half","loaded":false,"kind":"chat","state":"half-downloaded","reason":"tokenizer.json and weights (*.safetensors) are missing","missing":["tokenizer.json","weights (*.safetensors)"]`},
		{"DELETE", "/hearth/models", `{"model":"org/little"}`, 400, "a program has it loaded"},
		{"DELETE", "/hearth/models", `{"model":"org/litle"}`, 404, "did you mean org/little?; to download it: hearth pull org/litle"},
		{"DELETE", "/hearth/models", `{"model":"half"}`, 400, "in no cache"},
		{"PUT", "/hearth/aliases", `{"name":"mine","model":"org/little"}`, 200, `{"name":"mine","model":"org/little","builtin":false}`},
		{"PUT", "/hearth/aliases", `{"name":"etc","model":"/etc"}`, 404, "outside the folders"},
		{"PUT", "/hearth/aliases", `{"name":"default","model":"org/little"}`, 400, "has a meaning of its own"},
		{"DELETE", "/hearth/aliases", `{"name":"nobody"}`, 404, "no such alias"},
		{"GET", "/hearth/cache", "", 200, `"type":"prefix_tree"`},
	} {
		if code, text := ask(tc.method, tc.path, tc.body, token); code != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s %s %s = %d %s\nwant %d %s", tc.method, tc.path, tc.body, code, text, tc.status, tc.want)
		}
	}
	if code, _ := ask("GET", "/hearth/models", "", "guessed"); code != 401 {
		t.Errorf("without the token: %d", code)
	}
	hearth := func(args ...string) (string, error) {
		out, err := command(t, env, args...).CombinedOutput()
		return string(out), err
	}
	if out, err := hearth("alias"); err != nil || !strings.Contains(out, "mine") {
		t.Errorf("the command line does not see what the server was told: %s, %v", out, err)
	}
	if out, err := hearth("rm", "mine", "--yes"); err == nil || !strings.Contains(out, "a program has it loaded") {
		t.Errorf("a loaded model is removed: %s", out)
	}
	stop(t, p)
	if out, err := hearth("rm", "mine", "--yes"); err != nil || !strings.Contains(out, "removed org/little") {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(snap))); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
