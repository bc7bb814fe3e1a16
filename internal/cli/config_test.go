package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/config"
)

// printed is what hearth config prints in a process of its own.
func printed(t *testing.T, env []string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(t, env, append([]string{"config"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Fatalf("%v: %v: %s", args, err, &errs)
	}
	return out.String()
}

// TestConfigCommand: every setting is there with its value and its origin, whatever that is, and no key.
func TestConfigCommand(t *testing.T) {
	dir := t.TempDir()
	path, keys := filepath.Join(dir, "c.toml"), filepath.Join(dir, "keys")
	file := "max_queue = 9\ngpu_memory_utilization = 0.5\noperator_key = 'k-operator'\ntop_p = 0.5\n[models.demo]\ntop_p = 0.25\nmax_tokens = 100\n[models.other]\ntop_k = 1\n"
	for name, text := range map[string]string{path: file, keys: "k-in-file\nalice user k-alice\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"HEARTH_CONFIG=" + path, "HEARTH_API_KEY=k-one,k-two", "MLX_TEMPERATURE=0.5", "PORT=many", "HEARTH_PROT=1", "HEARTH_TOP_P=0.75", "HEARTH_EMBEDDING_OVERFLOW_POLICY=truncate"}
	args := []string{"demo", "--max-num-seqs", "3", "--kv-cache-quantization", "--continuous-batching", "--watchdog-ppid=120", "--drain-timeout=10s", "--api-key-file", keys}
	var l listing
	asJSON := printed(t, env, append(args, "--json")...)
	if err := json.Unmarshal([]byte(asJSON), &l); err != nil {
		t.Fatal(err)
	}
	if len(l.Settings) != len(config.Knobs) || l.File != path || strings.Join(l.Tables, "") != `models."demo"` {
		t.Errorf("%d settings, file %s, tables %v", len(l.Settings), l.File, l.Tables)
	}
	for flag, want := range map[string][3]string{ // value, source, origin
		"max-sequences": {"3", "flag", "--max-sequences"}, "kv-type": {"q8", "flag", "--kv-cache-quantization"}, "drain-timeout": {"10s", "flag", "--drain-timeout"},
		"model": {"demo", "argument", "argument"}, "temperature": {"0.5", "environment", "MLX_TEMPERATURE"}, "max-queue": {"9", "file", path + ":1"},
		"top-p": {"0.25", "model", path + ":6"}, "max-tokens": {"100", "model", path + ":7"}, "port": {"8080", "default", ""}, "prompt-cache": {"true", "default", ""},
		"api-key": {"(2 keys)", "environment", "HEARTH_API_KEY"}, "operator-key": {"(1 key)", "file", path + ":3"}, "api-key-file": {keys, "flag", "--api-key-file"},
	} {
		s := l.setting(flag)
		if s.Value == nil || *s.Value != want[0] || string(s.Source) != want[1] || s.Origin != want[2] || s.Unset != "" {
			t.Errorf("%s: %+v, want %v", flag, s, want)
		}
	}
	for flag, unset := range map[string]string{"top-k": "generation_config.json, then off", "threads": "one per core", "host": "127.0.0.1 and ::1", "enable-thinking": "the model's template decides"} {
		if s := l.setting(flag); s.Value != nil || s.Unset != unset || s.Source != config.FromDefault {
			t.Errorf("%s: %+v", flag, s)
		}
	}
	if len(l.Flags) != 3 || l.Flags[1].Origin != path+":2" || !l.Flags[1].Unprotected || l.Flags[0].Warning {
		t.Errorf("flags of other servers: %+v", l.Flags)
	}
	if len(l.Warnings) != 3 || !strings.Contains(l.Warnings[0], "did you mean HEARTH_PORT?") || !strings.Contains(l.Warnings[1], `ignoring PORT="many"`) ||
		!strings.Contains(l.Warnings[2], "top-p of this model comes before HEARTH_TOP_P") {
		t.Errorf("warnings %q", l.Warnings)
	}
	text := printed(t, env, args...)
	lines := strings.Split(text, "\n")
	has := func(name, value, from string) {
		t.Helper()
		for _, line := range lines {
			if strings.Join(strings.Fields(line), " ") == name+" "+value+" "+from {
				return
			}
		}
		t.Errorf("no line %s, %s, %s in\n%s", name, value, from, text)
	}
	has("max-sequences", "3", "--max-sequences")
	has("kv-type", "q8", "--kv-cache-quantization")
	has("model", "demo", "argument")
	has("temperature", "0.5", "MLX_TEMPERATURE")
	has("max-queue", "9", "line 1")
	has("top-p", "0.25", "line 6, the model's table")
	has("port", "8080", "default")
	has("top-k", "(generation_config.json, then", "off)")
	has("embedding-overflow-policy", "truncate", "HEARTH_EMBEDDING_OVERFLOW_POLICY")
	for _, want := range []string{"note: --continuous-batching: ", "warning: --watchdog-ppid 120: ", "HEARTH_PROT is set and is no setting"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
	for _, line := range lines {
		if len(line) > 80 && !strings.Contains(line, os.TempDir()) {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, key := range []string{"k-one", "k-two", "k-operator", "k-in-file", "k-alice"} {
		if strings.Contains(text, key) || strings.Contains(asJSON, key) {
			t.Errorf("the key %s is shown", key)
		}
	}
	if text := printed(t, nil, "/nonexistent", "--models-config=x"); !strings.Contains(text, "serve would not start: load model: /nonexistent: there is no such folder") {
		t.Errorf("a model that is not there:\n%s", text)
	}
}

// TestModelOfVariable: a model that a variable or the settings file names is served, from the home folder too; one that is not
// there is an error that says who named it.
func TestModelOfVariable(t *testing.T) {
	home := t.TempDir()
	if err := writeDemo(filepath.Join(home, "models", "little")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, "c.toml")
	if err := os.WriteFile(path, []byte("model = '~/models/little'"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"HOME=" + home, "MLX_MODEL=~/models/little", "MLX_TEMPERATURE=0.25", "MLX_TOP_P=0.5", "MLX_MAX_KV_SIZE=1000", "MLX_PREFILL_STEP_SIZE=77", "MLX_MAX_TOKENS=20",
		"MLX_TRUST_REMOTE_CODE=1", "MLX_OMNI_LOG_LEVEL=DEBUG", "MLX_ENABLE_THINKING=0", "MLX_METAL_FAST_SYNCH=1", "HEARTH_TEST_MLX=x", "MLX_MODELL=y"})
	if !strings.Contains(p.stdout(), "model: little (") {
		t.Errorf("stdout:\n%s", p.stdout())
	}
	if status, body := request(t, "POST", p.url+"/v1/messages", hello); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	stop(t, p)
	for _, want := range []string{" context=1000 ", " prefill_step_size=77 ", " max_tokens_cap=20 thinking=off ", "level=DEBUG msg=asked ", "hearth: note: MLX_TRUST_REMOTE_CODE: ",
		"hearth: MLX_MODELL is set and is no setting; did you mean MLX_MODEL?"} {
		if strings.Count(p.stderr.String(), want) != 1 {
			t.Errorf("want %q once:\n%s", want, p.stderr)
		}
	}
	if strings.Contains(p.stderr.String(), "MLX_METAL") || strings.Contains(p.stderr.String(), "HEARTH_TEST") {
		t.Errorf("MLX's own variables are told of:\n%s", p.stderr)
	}
	for _, c := range []struct {
		env  []string
		args []string
		want string // "": it starts
	}{
		{[]string{"MLX_MODEL=/nonexistent"}, nil, "MLX_MODEL: load model: /nonexistent: there is no such folder"},
		{[]string{"MLX_MODEL=~/nonexistent", "HOME=" + home}, nil, "MLX_MODEL: load model: " + home + "/nonexistent: there is no such folder"},
		{[]string{"HEARTH_MODEL=org/none"}, nil, "HEARTH_MODEL: "},
		{nil, []string{"--model=/nonexistent"}, "load model: /nonexistent: there is no such folder"},
		{[]string{"HOME=" + home}, []string{"--config", path, "--model=~/nonexistent"}, "load model: " + home + "/nonexistent: there is no such folder"},
		{nil, []string{"--config", path}, path + ":1: "}, // in a home without such a model
		{[]string{"HOME=" + home}, []string{"--config", path}, ""},
		{[]string{"MLX_MODEL=/nonexistent"}, []string{"demo"}, ""},
	} {
		if c.want == "" {
			stop(t, start(t, c.env, c.args...))
			continue
		}
		for _, command := range []string{"serve", "run"} {
			if got := failed(t, c.env, append([]string{command}, c.args...)...); !strings.Contains(got, "hearth: error: "+c.want) {
				t.Errorf("%s, %v %v: %s, want %s", command, c.env, c.args, got, c.want)
			}
		}
	}
	for _, of := range []string{"SMALL", "EMBEDDING", "RERANK"} {
		if got := failed(t, []string{"HEARTH_" + of + "_MODEL=/nonexistent"}, "serve", "demo"); !strings.Contains(got, "hearth: error: HEARTH_"+of+"_MODEL: load model: /nonexistent: ") {
			t.Errorf("%s: %s", of, got)
		}
	}
}

// TestStrayVariables: every command that goes by settings says which variables are none, and lists templates; of two models on a
// command line it says which one counts.
func TestStrayVariables(t *testing.T) {
	for _, args := range [][]string{{"run", "demo", "Hi"}, {"show"}, {"doctor"}, {"debug", "render", "--model", "demo"}, {"serve", "--chat-template", "list"}} {
		cmd := command(t, []string{"HEARTH_PROT=1", "HEARTH_RATE_LIMIT=1"}, args...)
		var errs bytes.Buffer
		cmd.Stderr, cmd.Stdin = &errs, strings.NewReader(`{"messages": [{"role": "user", "content": "Hi"}]}`)
		if err := cmd.Run(); err != nil || strings.Count(errs.String(), "hearth: HEARTH_PROT is set and is no setting; did you mean HEARTH_PORT?\n") != 1 ||
			strings.Contains(errs.String(), "RATE_LIMIT") {
			t.Errorf("%v: %v: %s", args, err, &errs)
		}
	}
	for line, want := range map[string]bool{"demo --model other": true, "demo --model demo": false, "demo": false} {
		l, errs, err := listed(t, strings.Fields(line)...)
		if err != nil || slices.Contains(l.Warnings, "MODEL, which is demo, comes before --model other") != want {
			t.Errorf("%s: %v %s", line, l, errs)
		}
	}
	if _, errs, err := listed(t, "demo", "--any-model", "false"); err == nil || !strings.Contains(errs, "--any-model=false") {
		t.Errorf("a switch and a word: %s", errs)
	}
	if out := printed(t, nil, "--chat-template", "list"); !strings.HasPrefix(out, "alpaca ") {
		t.Errorf("hearth config --chat-template list:\n%s", out)
	}
}

// failed is what a command that fails says on stderr.
func failed(t *testing.T, env []string, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := command(t, env, args...)
	cmd.Stderr, cmd.Stdin = &errs, strings.NewReader("hi")
	if err := cmd.Run(); err == nil {
		t.Errorf("%v %v succeeds", env, args)
	}
	return errs.String()
}
