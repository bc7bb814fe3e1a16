package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
)

// configured is what a command line, an environment and a settings file come to.
func configured(t *testing.T, file string, env map[string]string, args ...string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	cfg.Register(fs, config.Groups...)
	if err := fs.Parse(append([]string{"--config", path}, args...)); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Load(fs, func(name string) (string, bool) { s, ok := env[name]; return s, ok }, func(line string) { t.Error(line) }); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// serveFolder serves the model of a folder in this process.
func serveFolder(t *testing.T, dir string, cfg *config.Config) (url string) {
	t.Helper()
	src, err := catalog.Find(dir, hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	models := catalog.New(src, cfg)
	if err := models.Load(backends()); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(newServer(cfg, models, slog.New(slog.DiscardHandler)))
	t.Cleanup(func() {
		srv.Close()
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv.URL
}

// said is what the model says to requests with these fields on an API. They begin answers that it never learned to go on
// with, so that chance has a say.
func said(t *testing.T, url, path, fields string) string {
	t.Helper()
	var all []string
	for _, begun := range []string{"Xq blue tree", "One and", "The", "Seven zz", "km 3,", "Oh"} {
		all = append(all, saidAfter(t, url, path, begun, fields))
	}
	return strings.Join(all, "|")
}

func saidAfter(t *testing.T, url, path, begun, fields string) string {
	t.Helper()
	ask := `"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "` + begun + `"}]`
	if path == "/v1/completions" {
		ask = `"prompt": "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n` + begun + `"`
	}
	status, body := request(t, "POST", url+path, `{`+ask+`, "max_tokens": 12`+fields+`}`)
	if status != 200 {
		t.Fatalf("%s: %d %s", path, status, body)
	}
	var r map[string]any
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	if r["content"] != nil {
		return fmt.Sprint(r["content"])
	}
	c := r["choices"].([]any)[0].(map[string]any)
	if m, ok := c["message"].(map[string]any); ok {
		return fmt.Sprint(m["content"], m["reasoning_content"])
	}
	return c["text"].(string)
}

// TestSamplingOrder: request, the model's table of the settings file, flag, environment, top of the file,
// generation_config.json, 0.7 and 0.95, on every API. A level that says 0 gives what a request for 0 gives, whatever those
// below it say; where all are silent a request for 0.7 and 0.95 is what they give. A seed makes chance repeat itself.
func TestSamplingOrder(t *testing.T) {
	apis := []string{"/v1/messages", "/v1/chat/completions", "/v1/completions"}
	levels := []string{"table", "flag", "environment", "file", "generation_config.json"}
	// begin serves a model for which the levels from first on say "hot" but for that one, which says what is given.
	begin := func(first int, temperature string) string {
		dir := filepath.Join(t.TempDir(), "little")
		if err := writeDemo(dir); err != nil {
			t.Fatal(err)
		}
		of := func(level int) string {
			switch {
			case level < first:
				return ""
			case level == first:
				return temperature
			}
			return "2"
		}
		var args []string
		env, table, top, generation := map[string]string{}, "", "seed = 5\n", `{"eos_token_id": [1358, 1356]}`
		if s := of(0); s != "" {
			table = "[models.little]\ntemperature = " + s + "\n"
		}
		if s := of(1); s != "" {
			args = append(args, "--default-temperature", s)
		}
		if s := of(2); s != "" {
			env["HEARTH_TEMPERATURE"] = s
		}
		if s := of(3); s != "" {
			top += "temperature = " + s + "\n"
		}
		if s := of(4); s != "" {
			generation = `{"eos_token_id": [1358, 1356], "temperature": ` + s + `}`
		}
		if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(generation), 0o600); err != nil {
			t.Fatal(err)
		}
		return serveFolder(t, dir, configured(t, top+table, env, args...))
	}
	url := begin(len(levels), "")
	cold := map[string]string{}
	for _, api := range apis {
		cold[api] = said(t, url, api, `, "temperature": 0`)
		hot, silent := said(t, url, api, `, "temperature": 2`), said(t, url, api, "")
		if hot == cold[api] || hot == silent {
			t.Fatalf("%s: temperatures make no difference: %q, %q, %q", api, cold[api], silent, hot)
		}
		if got := said(t, url, api, `, "temperature": 0.7, "top_p": 0.95`); got != silent {
			t.Errorf("%s: nothing set gives %q, 0.7 and 0.95 %q", api, silent, got)
		}
		if got := said(t, url, api, ""); got != silent {
			t.Errorf("%s: the seed does not hold: %q, then %q", api, silent, got)
		}
	}
	for i, level := range levels {
		t.Run(level, func(t *testing.T) {
			url := begin(i, "0")
			for _, api := range apis {
				if got := said(t, url, api, ""); got != cold[api] {
					t.Errorf("%s: %q, want %q", api, got, cold[api])
				}
				if got := said(t, url, api, `, "temperature": 2`); got == cold[api] {
					t.Errorf("%s: the request's temperature counts for nothing", api)
				}
			}
		})
	}
}

// TestModelSettings: what the file says of a model reaches its names, its context and its thinking, and not the small model's.
func TestModelSettings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "little")
	if err := writeDemo(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	file := "log-level = 'warn'\n[models.'li*']\nserved_model_name = ['mine']\ncontext_length = 512\nmax_tokens = 3\n" +
		"[models.demo]\nmax_tokens = 4\nchat_template_kwargs = { enable_thinking = false }\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"HEARTH_CONFIG=" + path}, dir, "--small-model", "demo", "--cache-memory-mb", "64", "--max-tokens", "9")
	if !strings.Contains(p.stdout(), "settings: "+path+`, models."li*"`) || !strings.Contains(p.stdout(), "model: mine ") {
		t.Errorf("stdout:\n%s", p.stdout())
	}
	for model, tokens := range map[string]float64{"mine": 3, "little": 3, "demo": 4} {
		_, body := request(t, "POST", p.url+"/v1/chat/completions", `{"model": "`+model+`", "messages": [{"role": "user", "content": "what is 47 + 85?"}]}`)
		var r struct {
			Usage struct {
				Completion float64 `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal(body, &r); err != nil || r.Usage.Completion != tokens || bytes.Contains(body, []byte("reasoning_content")) != (model != "demo") {
			t.Errorf("%s: want %v tokens: %s", model, tokens, body)
		}
	}
	if _, body := request(t, "GET", p.url+"/v1/models/mine", ""); !bytes.Contains(body, []byte(`"context_length":512`)) {
		t.Errorf("model: %s", body)
	}
}

// TestBadSettings: a settings file that says what there is not ends the start.
func TestBadSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	for file, want := range map[string]string{
		"[models.demo]\ntempreture = 1":              path + `:2: models.demo.tempreture: there is no such setting; did you mean temperature? a model has `,
		"[models.demo]\ntool_call_parser = 'hermez'": path + `:2: no tool-call parser is named "hermez"; there are `,
	} {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd := command(t, nil, "serve", "--port", "0", "--config", path)
		cmd.Stderr = &stderr
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: %v: %s", file, err, &stderr)
		}
	}
}

// TestQueueFull: a request over what may run and wait is told so at once, with the flags that say how many that is. Five
// prompts of one request are five sequences.
func TestQueueFull(t *testing.T) {
	url := serveFolder(t, "demo", configured(t, "max_queue = 2", nil, "--max-sequences", "1"))
	res, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt": ["1 2 3", "2 3 4", "3 4 5", "4 5 6", "5 6 7"]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || !bytes.Contains(body, []byte("--max-queue")) || !bytes.Contains(body, []byte(`"server_overloaded"`)) {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
	}
}
