package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/config"
)

// listed is what hearth config prints as JSON for these arguments; the whole command runs, but for its process.
func listed(t *testing.T, args ...string) (*listing, string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := newRootCmd()
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(append([]string{"config", "--json", "--config=off"}, args...))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		report(&errs, err)
		return nil, errs.String(), err
	}
	l := &listing{}
	if err := json.Unmarshal(out.Bytes(), l); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out.String())
	}
	return l, errs.String(), nil
}

func (l *listing) setting(flag string) *config.Setting {
	i := slices.IndexFunc(l.Settings, func(s config.Setting) bool { return s.Flag == flag })
	return &l.Settings[i]
}

// The flags of other servers, with a value as people write it there, and what becomes of it here: a setting and its value, or
// a note, a warning, or one that says what is unprotected.
var foreignFlags = []struct{ server, flag, value, want string }{
	{"mlx-lm", "model", "demo", "model demo"},
	{"mlx-lm", "adapter-path", "adapters", "adapter-path adapters"},
	{"mlx-lm", "host", "127.0.0.1", "host 127.0.0.1"},
	{"mlx-lm", "port", "8080", "port 8080"},
	{"mlx-lm", "allowed-origins", "*", "allowed-origins *"},
	{"mlx-lm", "allowed-origins", "http://a.example,http://b.example", "allowed-origins http://a.example,http://b.example"},
	{"mlx-lm", "draft-model", "mlx-community/Qwen3-0.6B-4bit", "warning"},
	{"mlx-lm", "num-draft-tokens", "3", "note"},
	{"mlx-lm", "trust-remote-code", "", "note"},
	{"mlx-lm", "log-level", "DEBUG", "log-level debug"},
	{"mlx-lm", "log-level", "INFO", "log-level info"},
	{"mlx-lm", "log-level", "WARNING", "log-level warn"},
	{"mlx-lm", "log-level", "ERROR", "log-level error"},
	{"mlx-lm", "log-level", "CRITICAL", "log-level error"},
	{"mlx-lm", "use-default-chat-template", "", "note"},
	{"mlx-lm", "temp", "0.0", "temperature 0"},
	{"mlx-lm", "top-p", "1.0", "top-p 1"},
	{"mlx-lm", "top-k", "0", "top-k 0"},
	{"mlx-lm", "min-p", "0.0", "min-p 0"},
	{"mlx-lm", "max-tokens", "512", "max-tokens 512"},
	{"mlx-lm", "chat-template-args", `{"enable_thinking":false}`, `chat-template-kwargs {"enable_thinking":false}`},
	{"mlx-lm", "chat-template-args", `{}`, `chat-template-kwargs `},
	{"mlx-lm", "decode-concurrency", "32", "max-sequences 32"},
	{"mlx-lm", "prompt-concurrency", "8", "note"},
	{"mlx-lm", "prefill-step-size", "2048", "prefill-step-size 2048"},
	{"mlx-lm", "prefill-step-size", "16384", "prefill-step-size 8192"},
	{"mlx-lm", "prompt-cache-size", "10", "note"},
	{"mlx-lm", "prompt-cache-bytes", "4GB", "prompt-cache-bytes 4000000000"},
	{"mlx-lm", "prompt-cache-bytes", "512M", "prompt-cache-bytes 512000000"},
	{"mlx-lm", "prompt-cache-bytes", "1073741824", "prompt-cache-bytes 1073741824"},
	{"mlx-lm", "kv-bits", "4", "kv-type q4"},
	{"mlx-lm", "kv-bits", "8", "kv-type q8"},
	{"mlx-lm", "kv-bits", "2", "kv-type q4"},
	{"mlx-lm", "kv-bits", "3", "kv-type q4"},
	{"mlx-lm", "kv-bits", "6", "kv-type q8"},
	{"mlx-lm", "kv-group-size", "64", "nothing"},
	{"mlx-lm", "kv-group-size", "32", "warning"},
	{"mlx-lm", "quantized-kv-start", "0", "nothing"},
	{"mlx-lm", "quantized-kv-start", "5000", "note"},
	{"mlx-lm", "pipeline", "", "note"},

	{"vllm-mlx", "models-config", "models.yaml", "warning"},
	{"vllm-mlx", "memory-budget-gb", "64", "unprotected"},
	{"vllm-mlx", "served-model-name", "my-model", "served-model-name my-model"},
	{"vllm-mlx", "api-key", "your-secret-key", "api-key (1 key)"},
	{"vllm-mlx", "rate-limit", "60", "rate-limit 60"},
	{"vllm-mlx", "rate-limit", "0", "rate-limit 0"},
	{"vllm-mlx", "timeout", "120", "timeout 2m0s"},
	{"vllm-mlx", "timeout", "300.0", "timeout 5m0s"},
	{"vllm-mlx", "enable-metrics", "", "enable-metrics true"},
	{"vllm-mlx", "continuous-batching", "", "note"},
	{"vllm-mlx", "max-num-seqs", "256", "max-sequences 256"},
	{"vllm-mlx", "prefill-batch-size", "8", "note"},
	{"vllm-mlx", "completion-batch-size", "32", "note"},
	{"vllm-mlx", "chunked-prefill-tokens", "1024", "prefill-step-size 1024"},
	{"vllm-mlx", "chunked-prefill-tokens", "0", "nothing"},
	{"vllm-mlx", "stream-interval", "5", "stream-interval 5"},
	{"vllm-mlx", "max-tokens", "32768", "max-tokens 32768"},
	{"vllm-mlx", "max-request-tokens", "4096", "max-tokens-cap 4096"},
	{"vllm-mlx", "default-temperature", "0.7", "temperature 0.7"},
	{"vllm-mlx", "default-top-p", "0.9", "top-p 0.9"},
	{"vllm-mlx", "default-top-k", "-1", "top-k 0"},
	{"vllm-mlx", "default-min-p", "0.05", "min-p 0.05"},
	{"vllm-mlx", "default-presence-penalty", "1.5", "presence-penalty 1.5"},
	{"vllm-mlx", "default-repetition-penalty", "1.1", "repetition-penalty 1.1"},
	{"vllm-mlx", "default-chat-template-kwargs", `{"enable_thinking": true}`, `chat-template-kwargs {"enable_thinking":true}`},
	{"vllm-mlx", "default-thinking-token-budget", "512", "thinking-token-budget 512"},
	{"vllm-mlx", "enable-thinking", "", "enable-thinking true"},
	{"vllm-mlx", "enable-auto-tool-choice", "", "enable-auto-tool-choice true"},
	{"vllm-mlx", "tool-call-parser", "hermes", "tool-call-parser hermes"},
	{"vllm-mlx", "reasoning-parser", "deepseek_r1", "reasoning-parser deepseek_r1"},
	{"vllm-mlx", "enable-prefix-cache", "", "prompt-cache true"},
	{"vllm-mlx", "disable-prefix-cache", "", "prompt-cache false"},
	{"vllm-mlx", "prefix-cache-size", "100", "note"},
	{"vllm-mlx", "cache-memory-mb", "2048", "cache-memory-mb 2048"},
	{"vllm-mlx", "cache-memory-percent", "0.20", "cache-memory-percent 0.2"},
	{"vllm-mlx", "no-memory-aware-cache", "", "note"},
	{"vllm-mlx", "use-paged-cache", "", "note"},
	{"vllm-mlx", "paged-cache-block-size", "64", "note"},
	{"vllm-mlx", "max-cache-blocks", "1000", "note"},
	{"vllm-mlx", "prefix-trie-cache", "", "note"},
	{"vllm-mlx", "prefix-trie-cache-size", "32", "note"},
	{"vllm-mlx", "prefix-trie-cache-memory-mb", "256", "prompt-cache-bytes 268435456"},
	{"vllm-mlx", "ssd-cache-dir", "/tmp/kv", "prefix-cache-dir /tmp/kv"},
	{"vllm-mlx", "ssd-cache-max-gb", "2.5", "prefix-cache-disk-mb 2560"},
	{"vllm-mlx", "warm-prompts", "prompts.json", "warning"},
	{"vllm-mlx", "kv-cache-quantization", "", "kv-type q8"},
	{"vllm-mlx", "kv-cache-quantization-bits", "4", "note"}, // alone it changes nothing there either
	{"vllm-mlx", "kv-cache-quantization-group-size", "64", "nothing"},
	{"vllm-mlx", "kv-cache-min-quantize-tokens", "256", "note"},
	{"vllm-mlx", "max-kv-size", "32768", "context-length 32768"},
	{"vllm-mlx", "gpu-memory-utilization", "0.90", "unprotected"},
	{"vllm-mlx", "enable-mtp", "", "warning"},
	{"vllm-mlx", "mtp-num-draft-tokens", "1", "note"},
	{"vllm-mlx", "mtp-optimistic", "", "note"},
	{"vllm-mlx", "mllm", "", "note"},
	{"vllm-mlx", "no-mllm", "", "note"},
	{"vllm-mlx", "mllm-prefill-step-size", "1024", "note"},
	{"vllm-mlx", "mllm-draft-model", "draft", "warning"},
	{"vllm-mlx", "mllm-draft-kind", "mtp", "note"},
	{"vllm-mlx", "mllm-draft-block-size", "4", "note"},
	{"vllm-mlx", "default-mllm-draft", "", "note"},
	{"vllm-mlx", "specprefill", "", "warning"},
	{"vllm-mlx", "specprefill-threshold", "8192", "note"},
	{"vllm-mlx", "specprefill-keep-pct", "0.3", "note"},
	{"vllm-mlx", "specprefill-backbone-pct", "0.0", "note"},
	{"vllm-mlx", "specprefill-draft-model", "draft", "warning"},
	{"vllm-mlx", "embedding-model", "demo", "embedding-model demo"},
	{"vllm-mlx", "embedding-max-length", "512", "embedding-max-length 512"},
	{"vllm-mlx", "embedding-max-length", "auto", "embedding-max-length 0"},
	{"vllm-mlx", "embedding-overflow-policy", "truncate", "embedding-overflow-policy truncate"},
	{"vllm-mlx", "rerank-model", "demo", "rerank-model demo"},
	{"vllm-mlx", "mcp-config", "mcp.json", "mcp-config mcp.json"},
	{"vllm-mlx", "lazy-load-model", "", "warning"},
	{"vllm-mlx", "auto-unload-idle-seconds", "600", "unprotected"},
	{"vllm-mlx", "auto-unload-idle-seconds", "0", "nothing"},
	{"vllm-mlx", "offline", "", "offline true"},
	{"vllm-mlx", "download-timeout", "300", "note"},
	{"vllm-mlx", "download-retries", "3", "note"},
	{"vllm-mlx", "max-audio-upload-mb", "25", "note"},
	{"vllm-mlx", "max-tts-input-chars", "4096", "note"},
	{"mlx-serve", "metrics", "", "enable-metrics true"},
	{"Rapid-MLX", "trusted-hosts", "lan.example", "allowed-hosts lan.example"},
	{"vllm-mlx's documents", "moe-top-k", "4", "warning"},
	{"vllm-mlx's documents", "mtp", "", "warning"},
	{"vllm-mlx's documents", "spec-prefill", "", "warning"},
	{"vllm-mlx's documents", "enable-mllm-cache", "", "note"},
	{"vllm-mlx's documents", "mllm-cache-max-mb", "1024", "note"},

	{"Rapid-MLX", "max-concurrent-requests", "256", "max-concurrent-requests 256"},
	{"Rapid-MLX", "max-concurrent-requests", "0", "max-concurrent-requests 0"},
	{"Rapid-MLX", "cors-origins", "http://a.example", "allowed-origins http://a.example"},
	{"Rapid-MLX", "kv-cache-dtype", "int8", "kv-type q8"},
	{"Rapid-MLX", "kv-cache-dtype", "bf16", "kv-type bf16"},
	{"Rapid-MLX", "reasoning", "", "kv-type q8"},
	{"Rapid-MLX", "prefix-cache-index", "radix", "note"},
	{"Rapid-MLX", "hybrid-cache-entries", "8", "note"},
	{"Rapid-MLX", "response-cache-entries", "64", "note"},
	{"Rapid-MLX", "pin-system-prompt", "", "note"},
	{"Rapid-MLX", "kv-disk-checkpoint-interval", "4096", "note"},
	{"Rapid-MLX", "idle-unload-seconds", "600", "unprotected"},
	{"Rapid-MLX", "resident-model-idle-ttl", "600", "unprotected"},
	{"Rapid-MLX", "resident-model-idle-ttl", "0.0", "nothing"},
	{"Rapid-MLX", "resident-memory-limit-gb", "48", "unprotected"},
	{"Rapid-MLX", "idle-cache-clear-seconds", "300", "unprotected"},
	{"Rapid-MLX", "watchdog-ppid", "4242", "unprotected"},
	{"Rapid-MLX", "metal-cap-kv-bytes-per-token", "65536", "note"},
	{"Rapid-MLX", "lazy-load", "", "warning"},
	{"Rapid-MLX", "disk-stream", "", "low-memory true"},
	{"Rapid-MLX", "disk-stream-cache-gb", "1.0", "note"},
	{"Rapid-MLX", "listen-fd", "3", "listen fd:3"},
	{"Rapid-MLX", "speculative-config", `{"method":"mtp","num_speculative_tokens":3}`, "warning"},
	{"Rapid-MLX", "pflash", "off", "note"},
	{"Rapid-MLX", "text-only", "", "note"},
	{"Rapid-MLX", "force-hybrid", "", "note"},
	{"Rapid-MLX", "no-hybrid", "", "note"},
	{"Rapid-MLX", "vision-min-pixels", "65536", "note"},
	{"Rapid-MLX", "vision-max-pixels", "1048576", "note"},
	{"Rapid-MLX", "vision-prefill-token-budget", "8192", "note"},
	{"Rapid-MLX", "relocate-mid-conversation-system", "", "note"},
	{"Rapid-MLX", "no-thinking", "", "enable-thinking false"},
	{"Rapid-MLX", "no-think", "", "enable-thinking false"},
	{"Rapid-MLX", "no-tool-call-parser", "", "tool-call-parser none"},
	{"Rapid-MLX", "no-reasoning-parser", "", "reasoning-parser none"},
}

// outcome is what a listing has of a flag, in the words of the table.
func (l *listing) outcome(flag, want string) string {
	for _, f := range l.Flags {
		switch {
		case f.Flag != flag:
		case f.Text == "" || strings.Contains(f.Text, "\n"):
			return "no word about it"
		case f.Unprotected && f.Warning:
			return "unprotected"
		case f.Warning:
			return "warning"
		default:
			return "note"
		}
	}
	knob, _, ok := strings.Cut(want, " ")
	if !ok {
		return "nothing"
	}
	s := l.setting(knob)
	if s.Value == nil || s.Source != config.FromFlag {
		return fmt.Sprintf("%s from %s", knob, s.Source)
	}
	return knob + " " + *s.Value
}

// TestForeignFlags: every flag is taken with and without an equals sign, with dashes or underscores.
func TestForeignFlags(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range foreignFlags {
		seen[f.flag] = true
		for _, name := range []string{f.flag, strings.ReplaceAll(f.flag, "-", "_")} {
			forms := [][]string{{"--" + name + "=" + f.value}, {"--" + name, f.value}}
			if f.value == "" {
				forms = [][]string{{"--" + name}, {"--" + name + "=true"}}
			}
			for _, args := range forms {
				if f.flag == "models-config" {
					args = append(args, "demo")
				}
				l, errs, err := listed(t, args...)
				if err != nil {
					t.Errorf("%s: %v: %s", f.server, args, errs)
				} else if got := l.outcome(f.flag, f.want); got != f.want {
					t.Errorf("%s: %v: %s, want %s", f.server, args, got, f.want)
				}
			}
		}
	}
	for _, f := range config.Foreigners {
		if !seen[f.Flag] {
			t.Errorf("--%s is not tried", f.Flag)
		}
	}
}

// Flags that belong together, switches that are switched off, and values that their servers refuse as well.
func TestForeignFlagsTogether(t *testing.T) {
	for line, want := range map[string]string{
		"--kv-cache-quantization --kv-cache-quantization-bits 4":       "kv-type q4, ",
		"--kv-cache-quantization-bits=8 --kv-cache-quantization":       "kv-type q8, ",
		"--kv-cache-quantization=false --kv-cache-quantization-bits=8": "kv-type -, kv-cache-quantization-bits",
		"--enable-prefix-cache --disable-prefix-cache":                 "prompt-cache false, enable-prefix-cache",
		"--disable-prefix-cache=false":                                 "prompt-cache -, ",
		"--continuous-batching=false --enable-metrics=false":           "prompt-cache -, ",
		"--prefill-step-size 512 --chunked-prefill-tokens 256":         "prefill-step-size 512, chunked-prefill-tokens",
		"--max-num-seqs 8 --decode-concurrency 4":                      "max-sequences 4, ",
		"--rate-limit many":           "error want a whole number",
		"--rate-limit=-1":             "error want a whole number from 0",
		"--timeout soon":              "error want a time such as 30s or 2m, or a number of seconds",
		"--timeout":                   "error flag needs an argument: --timeout",
		"--continuous-batching=often": "error want true or false",
		"--kv-cache-quantization --kv-cache-quantization-bits 9": `error --kv-cache-quantization-bits: "9" for kv-type: want one of`,
		"--log-level=loud":       "error want one of debug, info, warn, error",
		"--models-config=m.yaml": "model -, models-config",
	} {
		l, errs, err := listed(t, strings.Fields(line)...)
		if text, ok := strings.CutPrefix(want, "error "); ok {
			if err == nil || !strings.Contains(errs, text) {
				t.Errorf("%s: %s, want %q", line, errs, text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %s", line, errs)
			continue
		}
		knob, _, _ := strings.Cut(want, " ")
		value := "-"
		if s := l.setting(knob); s.Source != config.FromDefault {
			value = *s.Value
		}
		var flags []string
		for _, f := range l.Flags {
			flags = append(flags, f.Flag)
		}
		if got := knob + " " + value + ", " + strings.Join(flags, " "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// standIn puts the demo's files into a cache under a model's id.
func standIn(t *testing.T, cache, id string) {
	t.Helper()
	dir := filepath.Join(cache, "models--"+strings.ReplaceAll(id, "/", "--"))
	if err := writeDemo(filepath.Join(dir, "snapshots", "main")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "refs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "refs", "main"), []byte("main"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPublishedCommandLines: the command lines of vllm-mlx's server guide start, and say what they get.
func TestPublishedCommandLines(t *testing.T) {
	const plain = "mlx-community/Llama-3.2-3B-Instruct-4bit"
	cache, made := t.TempDir(), []string(nil)
	for _, c := range []struct {
		line string
		says []string // on stderr; none: not a word about flags
	}{
		{plain + " --port 8000", nil},
		{plain + " --port 8000 --continuous-batching", []string{"note: --continuous-batching: "}},
		{plain + " --port 8000 --continuous-batching --use-paged-cache", []string{"note: --continuous-batching: ", "note: --use-paged-cache: "}},
		{plain + " --enable-metrics", nil},
		{"mlx-community/Qwen3-Coder-Next-235B-A22B-4bit --continuous-batching --enable-auto-tool-choice --tool-call-parser hermes", []string{"note: --continuous-batching: "}},
		{"mlx-community/Devstral-Small-2507-4bit --enable-auto-tool-choice --tool-call-parser mistral", nil},
		{"mlx-community/Qwen3-8B-4bit --reasoning-parser qwen3", nil},
		{"mlx-community/DeepSeek-R1-Distill-Qwen-7B-4bit --reasoning-parser deepseek_r1", nil},
		{"model --continuous-batching --stream-interval 1", []string{"note: --continuous-batching: "}},
		{"model --continuous-batching --stream-interval 5", []string{"note: --continuous-batching: "}},
		{plain + " --port 8000", nil}, // again, for Open WebUI
		{"mlx-community/Qwen3-0.6B-8bit --continuous-batching --use-paged-cache --port 8000", []string{"note: --continuous-batching: ", "note: --use-paged-cache: "}},
		{"mlx-community/Qwen3-0.6B-8bit --continuous-batching --use-paged-cache --api-key your-secret-key --rate-limit 60 --timeout 120 --port 8000",
			[]string{"note: --continuous-batching: ", "note: --use-paged-cache: ", `unprotected=""`}},
	} {
		args := strings.Fields(strings.ReplaceAll(c.line, "--port 8000", ""))
		if args[0] == "model" {
			args[0] = "org/model"
		}
		if !slices.Contains(made, args[0]) {
			standIn(t, cache, args[0])
			made = append(made, args[0])
		}
		p := start(t, []string{"HF_HUB_CACHE=" + cache}, args...)
		if status, body := request(t, "GET", p.url+"/health", ""); status != 200 || !bytes.Contains(body, []byte(args[0])) {
			t.Errorf("%s: %d %s", c.line, status, body)
		}
		stop(t, p) // its log is whole then
		errs := p.stderr.String()
		for _, want := range c.says {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: want %q:\n%s", c.line, want, errs)
			}
		}
		if n := strings.Count(errs, "hearth: note: ") + strings.Count(errs, "hearth: warning: --"); n != len(c.says)-strings.Count(strings.Join(c.says, ""), "unprotected=") {
			t.Errorf("%s: %d lines about flags:\n%s", c.line, n, errs)
		}
		if strings.Contains(errs, "your-secret-key") {
			t.Errorf("%s: the log has the key", c.line)
		}
	}
}

// TestServeForeignFlags: a server starts with all of them together, from the command line, the environment or the file, but for
// that of a socket which has to be there (TestListenFD).
func TestServeForeignFlags(t *testing.T) {
	var args, env, file []string
	for i := range config.Foreigners {
		f := &config.Foreigners[i]
		if f.Flag == "listen-fd" {
			continue
		}
		value := map[config.Kind]string{config.Switch: "true", config.Count: "8", config.Amount: "8.5", config.Text: "x"}[f.Kind]
		args = append(args, "--"+f.Flag+"="+value)
		env = append(env, "HEARTH_"+strings.ToUpper(strings.ReplaceAll(f.Flag, "-", "_"))+"="+value)
		file = append(file, strings.ReplaceAll(f.Flag, "-", "_")+" = '"+value+"'")
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(strings.Join(file, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env, args []string
		given     string
	}{
		{nil, args, "--watchdog-ppid 8"}, {env, nil, "HEARTH_WATCHDOG_PPID=8"}, {[]string{"HEARTH_CONFIG=" + path}, nil, "watchdog-ppid = 8"},
	} {
		p := start(t, c.env, append(c.args, "demo")...)
		stop(t, p)
		errs := p.stderr.String()
		for _, want := range []string{c.given + ": the server does not end with another process", "kv_type=q8", "kv-type q8 of demo: KL to float32 keys and values ", " precision=float32 rounding=\"\" ", "prompt_cache=false", "prefill_step_size=8 ", "unprotected=", c.given + `"`} {
			if !strings.Contains(errs, want) {
				t.Errorf("want %q:\n%s", want, errs)
			}
		}
	}
	cmd := command(t, nil, "serve", "--port", "0", "--models-config", "models.yaml")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "hearth: error: --models-config models.yaml: no MODEL is named") || !strings.Contains(stderr.String(), "hearth: hint: serve one of its models") {
		t.Errorf("%v: %s", err, &stderr)
	}
}

// TestMistypedFlags: what is no flag stays an error, with the nearest name, own or another server's.
func TestMistypedFlags(t *testing.T) {
	for flag, near := range map[string]string{
		"--prot": "port", "--rate-limits=3": "rate-limit", "--max-num-sqs": "max-num-seqs", "--continuous-batchin": "continuous-batching", "--temprature=1": "temperature",
		"--max_token": "max-tokens", "-port": "port", "--kv_cache_dtypes": "kv-cache-dtype", "--prefix-cache-directory": "prefix-cache-dir", "--thinking": "enable-thinking",
		"--no-prompt-cache": "prompt-cache=false", "--no_enable_thinking": "enable-thinking=false", "--disable-thinking": "no-thinking", "--no-thinkin": "no-thinking", "--tool-call-parse=x": "tool-call-parser",
		"--no-prefix-cache": "disable-prefix-cache", "--no-memory-aware-caches": "no-memory-aware-cache", "--no-mcp-config=x": "", "--no-": "", "--disable-kv-type": "",
		"--frobnicate": "", "--x": "", "--a-name-that-is-longer-than-any-flag-of-any-server-that-there-is-or-ever-will-be": "",
	} {
		_, errs, err := listed(t, flag)
		want := "hearth: hint: "
		if near != "" {
			want += "did you mean --" + near + "? "
		}
		if err == nil || !strings.Contains(errs, want+"hearth config --help lists the flags") {
			t.Errorf("%s: %v: %s, want %s", flag, err, errs, want)
		}
	}
}
