package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/config.md")

// load parses args over env and returns the result with the warnings.
func load(t *testing.T, env map[string]string, args ...string) (*Config, []string, error) {
	t.Helper()
	c := Default()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Register(fs, Groups...)
	c.RegisterForeign(fs)
	if err := fs.Parse(args); err != nil {
		return nil, nil, err
	}
	var warns []string
	err := c.Load(fs, func(k string) (string, bool) { s, ok := env[k]; return s, ok }, func(s string) { warns = append(warns, s) })
	return c, warns, err
}

func TestPrecedence(t *testing.T) {
	half := 0.5
	tests := []struct {
		name string
		env  map[string]string
		args []string
		want func(*Config)
	}{
		{"defaults", nil, nil, func(*Config) {}},
		{"plain PORT", map[string]string{"PORT": "9000"}, nil, func(c *Config) { c.Port = 9000 }},
		{"own name wins", map[string]string{"PORT": "9000", "HEARTH_PORT": "9001"}, nil, func(c *Config) { c.Port = 9001 }},
		{"flag wins", map[string]string{"PORT": "9000", "HEARTH_PORT": "9001"}, []string{"--port=9002"}, func(c *Config) { c.Port = 9002 }},
		{"empty is unset", map[string]string{"HEARTH_PORT": "", "PORT": "9000"}, nil, func(c *Config) { c.Port = 9000 }},
		{"flag set to its default still wins", map[string]string{"HEARTH_PORT": "9001"}, []string{"--port=8080"}, func(*Config) {}},
		{"host", map[string]string{"HOST": "127.0.0.1"}, nil, func(c *Config) { c.Host = "127.0.0.1" }},
		{"key from the token", map[string]string{"ANTHROPIC_AUTH_TOKEN": "t"}, nil, func(c *Config) { c.APIKeys = []string{"t"} }},
		{"own key wins", map[string]string{"ANTHROPIC_AUTH_TOKEN": "t", "HEARTH_API_KEY": "k"}, nil, func(c *Config) { c.APIKeys = []string{"k"} }},
		{"names of other servers", nil, []string{"--temp=0.5", "--max_num_seqs", "3", "--ctx-size=99"},
			func(c *Config) { c.Temperature, c.MaxSequences, c.ContextLength = &half, 3, 99 }},
		{"a cap by its shared name", map[string]string{"MLX_MAX_TOKENS": "100", "HEARTH_MAX_TOKENS": "50"}, nil,
			func(c *Config) { c.MaxTokensCap, c.MaxTokens = 100, 50 }},
		{"a default by another name", map[string]string{"HEARTH_TEMPERATURE": "0.5", "HEARTH_TOP_P": "0.4"}, []string{"--default-temperature=0.25"},
			func(c *Config) { c.Temperature, c.TopP = new(0.25), new(0.4) }},
		{"lists", map[string]string{"HEARTH_ALLOWED_ORIGINS": "a"}, []string{"--allowed-hosts=a, b", "--allowed-hosts=c"},
			func(c *Config) { c.AllowedHosts, c.AllowedOrigins = []string{"a", "b", "c"}, []string{"a"} }},
		{"hub", map[string]string{"HF_HOME": "/h"}, nil, func(c *Config) { c.HFHome, c.HubCache = "/h", "/h/hub" }},
		{"hub cache", map[string]string{"HF_HOME": "/h", "HF_HUB_CACHE": "/c"}, nil, func(c *Config) { c.HFHome, c.HubCache = "/h", "/c" }},
		{"hub in the user's cache", map[string]string{"HOME": "/u", "XDG_CACHE_HOME": "/x"}, nil, func(c *Config) { c.HubCache = "/x/huggingface/hub" }},
		{"hub in the user's home", map[string]string{"HOME": "/u"}, nil, func(c *Config) { c.HubCache = "/u/.cache/huggingface/hub" }},
		{"hub with a tilde", map[string]string{"HOME": "/u", "HF_HOME": "~/m"}, nil, func(c *Config) { c.HFHome, c.HubCache = "~/m", "/u/m/hub" }},
		{"bool without a value", nil, []string{"--any-model"}, func(c *Config) { c.AnyModel = true }},
		{"names of another server's variables", map[string]string{"MLX_MODEL": "m", "MLX_TEMPERATURE": "0.5", "MLX_TOP_P": "0.4", "MLX_MAX_KV_SIZE": "1000", "MLX_PREFILL_STEP_SIZE": "77",
			"MLX_TRUST_REMOTE_CODE": "1", "MLX_OMNI_LOG_LEVEL": "DEBUG"}, nil, func(c *Config) {
			c.Model, c.Temperature, c.TopP, c.ContextLength, c.PrefillStepSize, c.LogLevel = "m", new(0.5), new(0.4), 1000, 77, "debug"
		}},
		{"own variables come before them", map[string]string{"MLX_MODEL": "m", "HEARTH_MODEL": "h", "MLX_TEMPERATURE": "0.5", "HEARTH_TEMP": "0.25"}, nil,
			func(c *Config) { c.Model, c.Temperature = "h", new(0.25) }},
		{"flags come before them", map[string]string{"MLX_MODEL": "m", "MLX_MAX_KV_SIZE": "1000"}, []string{"--model=f", "--max-kv-size=5"},
			func(c *Config) { c.Model, c.ContextLength = "f", 5 }},
		{"a home folder in a model", map[string]string{"HOME": "/u", "MLX_MODEL": "~/models/x"}, []string{"--embedding-model=~/e"},
			func(c *Config) {
				c.Model, c.EmbeddingModel, c.HubCache = "/u/models/x", "/u/e", "/u/.cache/huggingface/hub"
			}},
		{"other flags by variables", map[string]string{"HEARTH_DISABLE_PREFIX_CACHE": "1", "HEARTH_MAX_NUM_SEQS": "3", "HEARTH_SSD_CACHE_MAX_GB": "1"}, nil,
			func(c *Config) { c.PromptCache, c.MaxSequences, c.PrefixCacheMB = false, 3, 1024 }},
		{"an own variable before another flag's", map[string]string{"HEARTH_DISABLE_PREFIX_CACHE": "1", "PROMPT_CACHE": "1"}, nil, func(*Config) {}},
		{"another flag before a variable", map[string]string{"HEARTH_PROMPT_CACHE": "1"}, []string{"--disable-prefix-cache"}, func(c *Config) { c.PromptCache = false }},
		{"thinking off", map[string]string{"HEARTH_ENABLE_THINKING": "no"}, nil, func(c *Config) { c.EnableThinking = new(bool) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, warns, err := load(t, tt.env, tt.args...)
			if err != nil || warns != nil {
				t.Fatalf("error %v, warnings %q", err, warns)
			}
			want := Default()
			tt.want(want)
			if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOrigin(t *testing.T) {
	c, _, err := load(t, map[string]string{"ANTHROPIC_AUTH_TOKEN": "t"}, "--port=1")
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"api-key": "ANTHROPIC_AUTH_TOKEN", "port": "--port", "host": ""} {
		if got := c.Origin(flag); got != want {
			t.Errorf("origin of %s is %q, want %q", flag, got, want)
		}
	}
}

func TestSharedNamesAreIgnoredWhenUnusable(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"compiler triple": {"HOST": "x86_64-conda-linux-gnu"},
		"odd host":        {"HOST": "two words"},
		"port":            {"PORT": "tcp://172.17.0.1:80"},
		"port range":      {"PORT": "70000"},
		"temperature":     {"MLX_TEMPERATURE": "warm"},
		"top-p":           {"MLX_TOP_P": "95"},
		"context":         {"MLX_MAX_KV_SIZE": "-1"},
		"step":            {"MLX_PREFILL_STEP_SIZE": "0"},
		"cap":             {"MLX_MAX_TOKENS": "8k"},
		"thinking":        {"MLX_ENABLE_THINKING": "maybe"},
		"log level":       {"MLX_OMNI_LOG_LEVEL": "loud"},
		"remote code":     {"MLX_TRUST_REMOTE_CODE": "perhaps"},
	} {
		t.Run(name, func(t *testing.T) {
			c, warns, err := load(t, env)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(Default(), c, cmpopts.IgnoreUnexported(Config{})); d != "" {
				t.Error(d)
			}
			for k, v := range env {
				if len(warns) != 1 || !strings.Contains(warns[0], k) || !strings.Contains(warns[0], v) || strings.Contains(warns[0], "\n") {
					t.Errorf("warnings %q: want one line that names %s=%s", warns, k, v)
				}
			}
		})
	}
}

func TestBadValues(t *testing.T) {
	for _, tt := range []struct {
		env  string
		flag string
		want string
	}{
		{"HEARTH_PORT=x", "", "HEARTH_PORT"},
		{"HEARTH_PORT=-1", "", "from 0 to 65535"},
		{"", "--port=99999", "from 0 to 65535"},
		{"", "--backend=gpu", "auto, mlx, cpu"},
		{"", "--precision=half", "auto, fast, outliers, exact"},
		{"", "--kv-type=fp8", "f32, bf16, f16, q8, q4"},
		{"", "--temperature=nan", "a number from 0"},
		{"", "--temperature=-1", "a number from 0"},
		{"", "--top-p=1.5", "from 0 to 1"},
		{"", "--repetition-penalty=0", "above 0"},
		{"", "--max-sequences=0", "from 1"},
		{"HEARTH_LOG_LEVEL=loud", "", "debug, info, warn, error"},
		{"HEARTH_ANY_MODEL=maybe", "", "true or false"},
		{"", "--drain-timeout=5", "30s"},
		{"", "--context-max-sessions=1048577", "from 1 to 1048576"},
		{"", "--max-sockets=65537", "from 0 to 65536"},
	} {
		t.Run(tt.env+tt.flag, func(t *testing.T) {
			env, args := map[string]string{}, []string{}
			if k, v, ok := strings.Cut(tt.env, "="); ok {
				env[k] = v
			}
			if tt.flag != "" {
				args = append(args, tt.flag)
			}
			_, _, err := load(t, env, args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want it to say %q", err, tt.want)
			}
		})
	}
}

// TestBatchIsBounded: more rows than a step has are as many as it has, since other servers have no such limit.
func TestBatchIsBounded(t *testing.T) {
	for arg, want := range map[string]int{"8192": 8192, "8193": 8192} {
		if c, _, err := load(t, nil, "--prefill-step-size", arg); err != nil || c.PrefillStepSize != want {
			t.Errorf("%s: %d, %v", arg, c.PrefillStepSize, err)
		}
	}
}

// What other servers call a type of keys and values means the same here.
func TestKVType(t *testing.T) {
	for arg, want := range map[string]string{
		"--kv-type=auto": "auto", "--kv-type=q8": "q8", "--kv-bits=4": "q4", "--kv-bits=0": "auto",
		"--kv-cache-dtype=bfloat16": "bf16", "--kv-cache-dtype=FP16": "f16", "--cache-type=q8_0": "q8", "--kv-cache-dtype=float32": "f32",
	} {
		if c, _, err := load(t, nil, arg); err != nil || c.KVType != want {
			t.Errorf("%s: %v, %v, want %s", arg, c, err, want)
		}
	}
}

// Every name means one thing.
func TestNamesAreUnique(t *testing.T) {
	flags, envs := map[string]string{}, map[string]string{}
	for i := range Foreigners {
		f := &Foreigners[i]
		flags[f.Flag] = f.Flag
		for _, e := range append([]string{f.own()}, f.Env...) {
			envs[e] = f.Flag
		}
		if f.Doc == "" || strings.ContainsAny(f.Doc, "\n|`") || f.Sets != "" && (knobNamed(f.Sets) == nil || f.to == nil || f.Answer != Note) {
			t.Errorf("--%s: %+v", f.Flag, f)
		}
	}
	if len(flags) != len(Foreigners) {
		t.Error("a flag of other servers is there twice")
	}
	for i := range Knobs {
		k := &Knobs[i]
		for _, f := range append([]string{k.Flag}, k.Also...) {
			if other, ok := flags[f]; ok {
				t.Errorf("--%s belongs to %s and %s", f, other, k.Flag)
			}
			flags[f] = k.Flag
		}
		for _, e := range k.variables() {
			if other, ok := envs[e]; ok {
				t.Errorf("%s belongs to %s and %s", e, other, k.Flag)
			}
			envs[e] = k.Flag
		}
		if k.Doc == "" || strings.ContainsAny(k.Doc, "\n|") {
			t.Errorf("--%s: documentation %q", k.Flag, k.Doc)
		}
	}
}

func TestDocIsCurrent(t *testing.T) {
	var b bytes.Buffer
	if err := writeDoc(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", "config.md")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(b.String(), string(have)); d != "" {
		t.Errorf("docs/config.md is not current, run go test ./internal/config -update:\n%s", d)
	}
}
