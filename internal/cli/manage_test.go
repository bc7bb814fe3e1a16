//go:build unix

package cli

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/hub/hubtest"
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

// A pull over HTTP gives the events that the command prints, and what is refused before the first is an error of its own.
func TestManagerPulls(t *testing.T) {
	h := hubtest.New(t)
	h.Add("org/name", demoFiles(t))
	cfg := config.Default()
	cfg.HFEndpoint, cfg.HubCache = h.URL, filepath.Join(t.TempDir(), "hub")
	m := manager{cfg: cfg, on: hub.NewRoots(hub.Root{Dir: cfg.HubCache})}
	var events []string
	tell := func(event string, body any) error {
		if e, ok := body.(pullEvent); !ok || e.Event != event {
			t.Errorf("%s: %+v", event, body)
		}
		events = append(events, event)
		return nil
	}
	if err := m.Pull(t.Context(), "org/name", "main", tell); err != nil || !slices.Equal(slices.Compact(events), []string{"plan", "progress", "done"}) {
		t.Errorf("%q, %v", events, err)
	}
	if e, err := m.on.Find("org/name"); err != nil || e.State != hub.Whole {
		t.Errorf("%+v, %v", e, err)
	}
	events = nil
	var e *chat.Error
	if err := m.Pull(t.Context(), "org/none", "", tell); !errors.As(err, &e) || e.Kind == chat.Internal || events != nil {
		t.Errorf("%q, %v", events, err)
	}
}

// A running server tells what there is and takes names, and a model that it has loaded stays on the disk, whoever wants it gone.
func TestManageServer(t *testing.T) {
	dir := t.TempDir()
	snap := filepath.Join(dir, "hub", "models--org--little", "snapshots", "abc")
	if err := writeDemo(snap); err != nil {
		t.Fatal(err)
	}
	if err := writeDemo(filepath.Join(dir, "llm", "models", "other")); err != nil {
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
	p := start(t, env, "org/little", "--offline")
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
		{"GET", "/hearth/models", "", 200, `"kind":"chat","status":"loaded","pinned":true,"default":true,"context":8192,"state":"whole"`},
		{"GET", "/hearth/models", "", 200, `"state":"whole","folder":"` + snap + `","revision":"abc","model_type":"qwen3"`},
		{"GET", "/hearth/models", "", 200, `{"id":"half","kind":"chat","status":"","state":"half-downloaded","reason":"tokenizer.json and weights (*.safetensors) are missing","missing":["tokenizer.json","weights (*.safetensors)"]`},
		{"GET", "/hearth/models?context=max", "", 200, `"memory":{"context":8192,"bytes":`},
		{"GET", "/hearth/models?context=100", "", 200, `"memory":{"context":100,"bytes":`},
		{"GET", "/hearth/models?context=100", "", 200, `"fits":true,"beside":true}`},
		{"GET", "/hearth/models", "", 200, `}],"memory":{"capacity_bytes":`},
		{"GET", "/hearth/models?context=few", "", 400, `"param":"context"`},
		{"DELETE", "/hearth/models", `{"model":"org/little"}`, 409, `a program has it loaded","type":"invalid_request_error","param":"model","code":"model_in_use"`},
		{"DELETE", "/hearth/models", `{"model":"org/litle"}`, 404, "did you mean org/little?; to download it: hearth pull org/litle"},
		{"DELETE", "/hearth/models", `{"model":"half"}`, 400, "in no cache"},
		{"PUT", "/hearth/aliases", `{"name":"mine","model":"org/little"}`, 200, `{"name":"mine","model":"org/little","builtin":false}`},
		{"PUT", "/hearth/aliases", `{"name":"etc","model":"/etc"}`, 404, "outside the folders"},
		{"PUT", "/hearth/aliases", `{"name":"default","model":"org/little"}`, 400, "has a meaning of its own"},
		{"DELETE", "/hearth/aliases", `{"name":"nobody"}`, 404, "no such alias"},
		{"POST", "/hearth/models/pull", `{"model":"org/none"}`, 400, "offline"},
		{"POST", "/hearth/models/pull", `{"model":"../up"}`, 400, "../up"},
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
	// What is on disk comes and goes as it is told to; what the server was started with stays.
	for _, tc := range []struct{ args, want string }{
		{"ps", `org/little +chat +loaded +8192 +[0-9]+ MiB +- +never +` + p.url},
		{"load other --keep-alive 1h", `other is loaded at ` + p.url},
		{"ps", `other +chat +loaded +8192 +[0-9]+ MiB +0 +in (1h0m0s|59m[0-9]+s) +` + p.url},
		{"ps --json", `"id": "other"`},
		{"stop org/little", `org/little stays loaded while the server runs`},
		{"load half", `model: "half" is only half-downloaded in .*half: tokenizer.json`},
		{"load othr", `othr`},
		{"load other --keep-alive soon", `keep_alive: expected seconds or a time such as`},
	} {
		out, err := hearth(strings.Fields(tc.args)...)
		if !regexp.MustCompile(tc.want).MatchString(out) || (err != nil) != strings.HasPrefix(out, "hearth: error") {
			t.Errorf("hearth %s: %v\n%s\nwant %s", tc.args, err, out, tc.want)
		}
	}
	if out, err := hearth("stop", "other"); err != nil {
		t.Errorf("stop: %s, %v", out, err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		out, err := hearth("ps")
		if err == nil && !strings.Contains(out, "other") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is still loaded: %s, %v", out, err)
		}
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
