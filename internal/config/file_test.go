package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

// written is a settings file in a folder of its own.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const settingsFile = `# everything
port = 1000
temp = 0.5                      # by another name
allowed_origins = ["https://a.example", "https://b.example"]
allowed-hosts = "a, b"
any-model = true
cache_memory_percent = 1
chat_template_kwargs = '{"a": 1}'

[models."Org/*"]
temperature = 0.25
top_p = 1
max_tokens = 10
[models."org/*-it".chat_template_kwargs]
enable_thinking = false
deep = { list = [1, "2"] }

[models."org/model-it"]
temperature = 0
max_tokens = 20
served_model_name = ["one", "two"]
[models]
other = { top_k = 5 }
"org/mod*it" = { max_tokens = 30, seed = 7, enable_thinking = true, presence_penalty = -1.5 }
`

func TestFile(t *testing.T) {
	c, warns, err := load(t, map[string]string{"HEARTH_PORT": "2000"}, "--config", written(t, settingsFile), "--allowed-hosts=c", "--top-p=0.5")
	if err != nil || warns != nil {
		t.Fatalf("error %v, warnings %q", err, warns)
	}
	want := Default()
	want.ConfigFile, want.Port, want.Temperature, want.TopP, want.AnyModel, want.CacheMemoryPart = c.ConfigFile, 2000, new(0.5), new(0.5), true, 1
	want.AllowedOrigins, want.AllowedHosts = []string{"https://a.example", "https://b.example"}, []string{"c"}
	want.ChatTemplateArgs = map[string]json.RawMessage{"a": json.RawMessage("1")}
	if d := cmp.Diff(want, c, cmpopts.IgnoreUnexported(Config{})); d != "" {
		t.Error("the server's:", d)
	}
	for flag, origin := range map[string]string{"port": "HEARTH_PORT", "temperature": c.ConfigFile + ":3", "top-p": "--top-p", "min-p": ""} {
		if got := c.Origin(flag); got != origin {
			t.Errorf("origin of %s is %q, want %q", flag, got, origin)
		}
	}
	own := c.For("org/model-it", "model-it")
	want.Temperature, want.TopP, want.MaxTokens, want.Seed, want.PresencePenalty = new(0.0), new(1.0), 20, new(uint64(7)), new(-1.5)
	want.EnableThinking, want.ServedModelName = new(true), []string{"one", "two"}
	want.ChatTemplateArgs = map[string]json.RawMessage{"enable_thinking": json.RawMessage("false"), "deep": json.RawMessage(`{"list":[1,"2"]}`)}
	if d := cmp.Diff(want, own, cmpopts.IgnoreUnexported(Config{})); d != "" {
		t.Error("a model's:", d)
	}
	if got := own.Origin("max-tokens"); got != c.ConfigFile+":20" {
		t.Errorf("max-tokens is from %q", got)
	}
	if d := cmp.Diff([]string{`models."Org/*"`, `models."org/*-it"`, `models."org/mod*it"`, `models."org/model-it"`}, own.Sections()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{c.ConfigFile + ":12: top-p of this model comes before --top-p"}, own.Overruled()); d != "" {
		t.Error(d)
	}
	if again := own.For("org/model-it", "model-it"); cmp.Diff(own, again, cmpopts.IgnoreUnexported(Config{})) != "" || len(again.Sections()) != 4 {
		t.Error("a model's settings change when they are asked for again")
	}
	if c.MaxTokens != 0 || len(c.Sections()) != 0 {
		t.Error("a model's settings got into the server's")
	}
	if other := c.For("elsewhere/other", "OTHER"); *other.TopK != 5 || *other.Temperature != 0.5 {
		t.Errorf("a model's without a pattern: %+v", other)
	}
}

// Flags of other servers are keys of the file too, weaker than its own keys, which are weaker than the environment and flags.
func TestForeignKeys(t *testing.T) {
	const file = "rate_limit = 30\ndisable-prefix-cache = true\nkv_cache_quantization = true\nchunked_prefill_tokens = 64\nprefill_step_size = 128\ntimeout = 1.5\nenable_metrics = false\ntrust_remote_code = '1'\n"
	c, warns, err := load(t, map[string]string{"HEARTH_TIMEOUT": "2"}, "--config", written(t, file), "--rate-limit=60")
	if err != nil || warns != nil {
		t.Fatal(err, warns)
	}
	if c.PromptCache || c.KVType != "q8" || c.PrefillStepSize != 128 || c.Origin("kv-type") != c.File()+":3" {
		t.Errorf("%+v, kv-type from %q", c, c.Origin("kv-type"))
	}
	var lines []string
	for _, r := range c.Replies() {
		text, _, _ := strings.Cut(r.Line(), ":")
		if strings.HasPrefix(r.Origin, c.File()) {
			text = strings.TrimPrefix(r.Line(), c.File())
		}
		lines = append(lines, text)
	}
	if d := cmp.Diff([]string{":4: chunked-prefill-tokens = 64: prefill-step-size comes from " + c.File() + ":5",
		":8: trust-remote-code: code that comes with a model is never run; none is needed"}, lines); d != "" {
		t.Error(d)
	}
}

// What a stronger source says of a flag of other servers, that it is off too, is all that counts of that flag.
func TestForeignOff(t *testing.T) {
	const file = "disable_prefix_cache = true\nkv_cache_quantization = true\nkv_cache_quantization_bits = 4\nrate_limit = 30\n"
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
	}{
		"environment": {env: map[string]string{"HEARTH_DISABLE_PREFIX_CACHE": "0", "HEARTH_KV_CACHE_QUANTIZATION": "off", "HEARTH_RATE_LIMIT": "0"}},
		"flags":       {args: []string{"--disable-prefix-cache=false", "--kv-cache-quantization=false", "--rate-limit=0"}},
		"flags before the environment": {env: map[string]string{"HEARTH_DISABLE_PREFIX_CACHE": "1", "HEARTH_KV_CACHE_QUANTIZATION": "1", "HEARTH_RATE_LIMIT": "1"},
			args: []string{"--disable-prefix-cache=false", "--kv-cache-quantization=false", "--rate-limit=0"}},
	} {
		c, warns, err := load(t, tt.env, append(tt.args, "--config", written(t, file))...)
		if err != nil || warns != nil || !c.PromptCache || c.KVType != "auto" {
			t.Errorf("%s: prompt cache %t, kv-type %s, %v %v", name, c.PromptCache, c.KVType, warns, err)
		}
		if r := c.Replies(); len(r) != 1 || r[0].Text != "changes nothing without --kv-cache-quantization" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A variable of a server's is nothing to commands that have no such flag and no such setting.
func TestForeignElsewhere(t *testing.T) {
	c := Default()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Register(fs, Sampling)
	env := map[string]string{"HEARTH_RATE_LIMIT": "many", "HEARTH_DISABLE_PREFIX_CACHE": "perhaps", "VLLM_MLX_MCP_CONFIG": "x"}
	if err := c.Load(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok }, nil); err != nil || c.Replies() != nil {
		t.Error(err, c.Replies())
	}
}

// A file is looked for where settings are, and need not be there, unless it is named.
func TestFindFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hearth", "config.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("port = 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env  map[string]string
		args []string
		port int
	}{
		{map[string]string{"XDG_CONFIG_HOME": dir}, nil, 7},
		{map[string]string{"XDG_CONFIG_HOME": t.TempDir()}, nil, 8080},
		{map[string]string{"XDG_CONFIG_HOME": "relative"}, nil, 8080},
		{map[string]string{"XDG_CONFIG_HOME": dir}, []string{"--config=off"}, 8080},
		{map[string]string{"HEARTH_CONFIG": path}, nil, 7},
		{map[string]string{"HEARTH_CONFIG": "~/hearth/config.toml", "HOME": dir}, nil, 7},
		{map[string]string{"HEARTH_CONFIG": "nowhere"}, []string{"--config", path}, 7},
		{nil, nil, 8080},
	} {
		c, _, err := load(t, tt.env, tt.args...)
		if err != nil || c.Port != tt.port {
			t.Errorf("%v %v: error %v, config %+v", tt.env, tt.args, err, c)
		} else if (c.File() != "") != (tt.port == 7) {
			t.Errorf("%v %v: file %q", tt.env, tt.args, c.File())
		}
	}
	if _, _, err := load(t, nil, "--config", filepath.Join(dir, "missing.toml")); err == nil || !strings.Contains(err.Error(), "missing.toml") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	for text, want := range map[string][]string{
		"port = 1\nprot = 2":             {":2: prot: there is no such setting; did you mean port? hearth serve --help lists all"},
		"ratelimit = 1":                  {":1: ratelimit: there is no such setting; did you mean rate-limit?"},
		"watchdog_ppid = 'many'":         {`:1: watchdog_ppid: "many": want a whole number`},
		"watchdog_ppid = [1]":            {`:1: watchdog_ppid: [1]: want one value`},
		"rate_limit = 1\nrate-limit = 1": {":2: rate-limit: rate-limit is set twice, first at ", ":1"},
		"[models.a]\nwatchdog_ppid = 1":  {":2: models.a.watchdog_ppid: flags of other servers stand at the top of the file", "that has served-model-name"},
		"kv_cache_quantization = true\nkv_cache_quantization_bits = 9": {":2: \"9\" for kv-type: want one of auto, f32"},
		"config = 'x'":                                           {":1: config: there is no such setting"},
		"\n\n[models.\"a/*\"]\n\ntempreture = 1":                 {`:5: models."a/*".tempreture: there is no such setting; did you mean temperature? a model has served-model-name, `, "top-p, top-k"},
		"[models.Qwen3-0.6B]\ntop_p = 1":                         {`:1: models.Qwen3-0.6B: a model has no tables`, `[models."Qwen3-0.6B"]`},
		"[models.a]\nport = 1":                                   {":2: models.a.port: this is the server's, not a model's; a model has served-model-name"},
		"[models.a]\ntop_p = 7":                                  {":2: models.a.top_p: 7: want a number from 0 to 1"},
		"[models.a]\ntop_p = nan":                                {":2: models.a.top_p: NaN: want a number from 0 to 1"},
		"[models]\na = { x = 1,\n top_k = 'many' }":              {":2: models.a.x: there is no such setting"},
		"[models]\na = { top_k = 'many' }":                       {`:2: models.a.top_k: "many": want a whole number`},
		"models = 1":                                             {":1: models: want a table for each model"},
		"models.a = 1":                                           {":1: models.a: want a table with settings of this model"},
		"[[models.a]]\nport = 1":                                 {":1: models.a: want a table"},
		"[models.a]\ntop-p = 1\ntop_p = 1":                       {":3: models.a.top_p: top-p is set twice, first at ", ":2"},
		"temperature = 1\ntemp = 1":                              {":2: temp: temperature is set twice"},
		"port = 1\nport = 2":                                     {`:2: "port = 2": `},
		"[models.a]\ntemp = 7a":                                  {`:2: "temp = 7a": `},
		"a = 1\n[models":                                         {":2: "},
		"port = [1]":                                             {":1: port: [1]: want one value"},
		"port = 1979-05-27":                                      {":1: port: 1979-05-27: want one value"},
		"rate_limit = '" + strings.Repeat("x", 99) + "'":         {`:1: rate_limit: "` + strings.Repeat("x", 99) + `…: want`},
		"rate_limit = '" + strings.Repeat("x", 98) + "'":         {`:1: rate_limit: "` + strings.Repeat("x", 98) + `": want`},
		"backend = 'gpu'":                                        {`:1: backend: "gpu": want one of auto, mlx, cpu`},
		"chat_template_kwargs = '[1]'":                           {":1: chat_template_kwargs: ", "want a JSON object"},
		"api-key-file = '/there/is/no/such/file'":                {":1: api-key-file: ", "no such file"},
		"[models.a]\nserved_model_name = [['x', 1979-05-27]]":    {":2: models.a.served_model_name: ", "want one value"},
		"[models.a]\nmax_tokens = 99999999999999999999999999999": {":2: "},
	} {
		path := written(t, text)
		_, _, err := load(t, nil, "--config", path)
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		for _, part := range append(want, "settings file "+path) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v\nwant %q", text, err, part)
			}
		}
	}
}

func TestExampleFile(t *testing.T) {
	c, _, err := load(t, nil, "--config", written(t, exampleFile))
	if err != nil {
		t.Fatal(err)
	}
	own := c.For("mlx-community/Qwen3-0.6B-4bit", "Qwen3-0.6B-4bit")
	if c.Port != 8081 || *c.Temperature != 0.8 || *own.Temperature != 0.6 || own.MaxTokens != 4096 || own.ServedModelName[0] != "qwen" || *own.Thinking() {
		t.Errorf("%+v\n%+v", c, own)
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"ab", "a", false}, {"A/B", "a/b", true}, {"", "", true}, {"", "a", false},
		{"*", "", true}, {"*", "x/y", true}, {"a*", "a", true}, {"a*", "ba", false}, {"*b", "ab", true}, {"*b", "abc", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "ac", false}, {"a**c", "abc", true}, {"*b*b", "b", false},
	} {
		if got := matches(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q, %q: %v", tt.pattern, tt.name, got)
		}
	}
}

// FuzzFile: whatever a file has, it is refused with its name, or every model can have what it says.
func FuzzFile(f *testing.F) {
	for _, s := range []string{settingsFile, "port = 1", "[models.a]\ntop_p = 7", "[[models]]", "models = {a.b.c = 1}", "\"\" = 1", "[models.'*']\nseed = 1e3", "a = [[]]\n", "[models.\"\\u0000\"]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseFile("/f", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "settings file /f") {
				t.Errorf("error %q", err)
			}
			return
		}
		c := Default()
		c.sections = got.sections
		c.For("a", "org/model")
		for _, s := range got.sections {
			c.For(s.pattern)
		}
	})
}
