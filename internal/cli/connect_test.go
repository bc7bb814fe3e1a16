package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
)

// connection is a server as the page's Connect view knows it.
type connection struct {
	URL     string `json:"url"`
	Key     string `json:"key"`
	Model   string `json:"model"`
	Context int    `json:"context"`
	Sees    bool   `json:"sees"`
}

// block is a piece of a set-up that the view hands out.
type block struct{ Client, Title, Language, Text string }

// What the view hands out is evaluated by node, and TypeScript run with SDKs that tell what they are given.
const evaluation = `
const { clients } = await import(process.argv[1]);
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const run = Object.getPrototypeOf(async () => {}).constructor;
const all = [];
for (const at of JSON.parse(Buffer.concat(chunks))) {
  const blocks = [];
  for (const c of clients) for (const [Title, Language, Text] of c.blocks(at)) {
    const b = { Client: c.id, Title, Language, Text };
    if (Language === 'ts') {
      const told = [];
      const tell = { create: async (v) => (told.push(v), { choices: [{ message: {} }] }) };
      class SDK { constructor(v) { told.push(v); } chat = { completions: tell }; messages = tell; }
      await new run('OpenAI', 'Anthropic', 'console', Text.replace(/^import .*$/m, ''))(SDK, SDK, { log() {} });
      b.Text = JSON.stringify(told);
    }
    blocks.push(b);
  }
  all.push(blocks);
}
console.log(JSON.stringify(all));`

// SDKs for Python that tell what they are given.
const pythonSDKs = `
import io, json, sys, types
class Told:
    def __init__(self, **given):
        if given: told.append(given)
    def create(self, **given):
        told.append(given)
        return self
    def __getattr__(self, name): return self
    def __getitem__(self, i): return self
told, out = [], sys.stdout
sys.modules["openai"] = types.SimpleNamespace(OpenAI=Told)
sys.modules["anthropic"] = types.SimpleNamespace(Anthropic=Told)
sys.stdout = io.StringIO()
exec(json.load(sys.stdin), {})
json.dump(told, out)
`

// setups evaluates what the view hands out for each of these servers.
func setups(t *testing.T, servers []connection) [][]block {
	t.Helper()
	needsProgram(t, "node")
	text, err := os.ReadFile("../webui/static/clients.js")
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(t.TempDir(), "clients.mjs")
	if err := os.WriteFile(module, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var all [][]block
	decode(t, ran(t, servers, nil, "node", "--input-type=module", "-e", evaluation, module), &all)
	return all
}

func needsProgram(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// ran runs a program that is given input as JSON.
func ran(t *testing.T, input any, env []string, name string, args ...string) []byte {
	t.Helper()
	in, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin, cmd.Stderr, cmd.Env = bytes.NewReader(in), &errs, env
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, errs.String())
	}
	return out
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// programs makes a folder of programs that write what they are given, arguments and environment, each with a zero behind it.
func programs(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range []string{"hearth", "claude", "codex", "qwen", "openclaw", "pi", "aider", "open-webui", "curl"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\nprintf '%s\\0' \"$@\"\nexec /usr/bin/env -0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// told is what a block's program, or whoever reads its file, is given: all texts in it.
func (b block) told(t *testing.T, folder string) (texts []string) {
	t.Helper()
	switch b.Language {
	case "sh":
		out := ran(t, nil, []string{"PATH=" + folder}, "/bin/sh", "-euc", b.Text)
		for text := range strings.SplitSeq(string(out), "\x00") {
			texts = append(texts, text)
			if _, value, ok := strings.Cut(text, "="); ok {
				texts = append(texts, value)
			}
			var body map[string]any
			if json.Unmarshal([]byte(text), &body) == nil {
				texts = append(texts, leaves(body)...)
			}
		}
	case "json", "ts":
		var v any
		decode(t, []byte(b.Text), &v)
		texts = leaves(v)
	case "toml":
		var v map[string]any
		if err := toml.Unmarshal([]byte(b.Text), &v); err != nil {
			t.Fatal(err)
		}
		texts = leaves(v)
	case "yaml":
		texts = plainYAML(t, b.Text)
	case "python":
		needsProgram(t, "python3")
		var v any
		decode(t, ran(t, b.Text, nil, "python3", "-c", pythonSDKs), &v)
		texts = leaves(v)
	case "go":
		f, err := parser.ParseFile(token.NewFileSet(), "", b.Text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, _ := strconv.Unquote(l.Value) // the parser has read it
				texts = append(texts, text)
			}
			return true
		})
	case "text":
		texts = []string{b.Text}
	default:
		t.Fatalf("nobody reads %q", b.Language)
	}
	return texts
}

// leaves are all texts in a value, names of fields among them.
func leaves(v any) (texts []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			texts = append(texts, leaves(e)...)
		}
	case map[string]any:
		for name, e := range v {
			texts = append(append(texts, name), leaves(e)...)
		}
	}
	return texts
}

// plainYAML reads the part of YAML in which a value is a text as JSON has it, a plain word or a list of such.
func plainYAML(t *testing.T, text string) (texts []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ":")
		value = strings.TrimSpace(value)
		var quoted string
		switch {
		case !ok || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
			t.Fatalf("no field: %q", line)
		case json.Unmarshal([]byte(value), &quoted) == nil:
			texts = append(texts, quoted)
		case strings.Trim(value, "abcdefghijklmnopqrstuvwxyz_0123456789.,[] ") != "":
			t.Fatalf("neither a text nor a word: %q", line)
		}
	}
	return texts
}

// Whatever the names of a server, its key and its model have in them, each client gets exactly these.
func TestConnect(t *testing.T) {
	servers := []connection{
		{"http://127.0.0.1:8080", "any", "demo", 8192, false},
		{"https://[fe80::1]:8443", `it's "my" $(exit 1) \key`, "mlx-community/Qwen3 0.6B", 32768, true},
		{"http://xn--bcher-kva.example", "#k: [é] & -", "a\"b'c\\d\\n $HOME `exit 1` ${x} %s {{.}} # : - *&! 名\t\n\u007f\u0085\u2028=", 262144, true},
	}
	folder := programs(t)
	for i, blocks := range setups(t, servers) {
		s := servers[i]
		v1 := s.URL + "/v1"
		wants := map[string][]string{
			"claude-code": {s.URL, s.Key, s.Model}, "codex": {v1, s.Key, s.Model}, "opencode": {v1, s.Key, s.Model, "hearth/" + s.Model},
			"qwen-code": {v1, s.Key, s.Model}, "openclaw": {v1, s.Key, s.Model, "hearth/" + s.Model}, "pi": {v1, s.Key, s.Model},
			"aider": {v1, s.Key, "openai/" + s.Model}, "open-webui": {v1, s.Key}, "continue": {v1, s.Key, s.Model}, "zed": {v1, s.Key, s.Model},
			"python": {s.URL, v1, s.Key, s.Model}, "typescript": {s.URL, v1, s.Key, s.Model}, "go": {v1, s.Key, s.Model},
			"curl": {v1 + "/chat/completions", v1 + "/messages", v1 + "/responses", "Authorization: Bearer " + s.Key, s.Model},
		}
		told := map[string][]string{}
		for _, b := range blocks {
			told[b.Client] = append(told[b.Client], b.told(t, folder)...)
		}
		if got, want := slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(wants)); !slices.Equal(got, want) {
			t.Errorf("clients %q, want %q", got, want)
		}
		for client, texts := range wants {
			for _, text := range texts {
				if !slices.Contains(told[client], text) {
					t.Errorf("%s is not told %q: %q", client, text, told[client])
				}
			}
		}
	}
}

// Claude Code and Codex are told on the page what hearth launch tells them.
func TestConnectAsLaunched(t *testing.T) {
	var servers []connection
	for _, context := range []int{8192, 32_768, 81_921, 100_000, 120_000, 262_144} {
		servers = append(servers, connection{"http://127.0.0.1:8080", "secret", "org/model", context, false})
	}
	folder := programs(t)
	for i, blocks := range setups(t, servers) {
		s := servers[i]
		launched := &target{state: state{URL: s.URL, Key: s.Key, Model: s.Model}, context: s.Context}
		for _, b := range blocks {
			switch {
			case b.Client == "claude-code" && b.Title == "Anywhere":
				got := slices.DeleteFunc(b.told(t, folder), func(text string) bool {
					return !strings.HasPrefix(text, "ANTHROPIC_") && !strings.Contains(text, "_TOKENS=") && !strings.HasPrefix(text, "CLAUDE_") && !strings.HasPrefix(text, "BASH_") && !strings.HasPrefix(text, "API_")
				})
				var want []string
				for _, v := range claudeEnv(launched) {
					want = append(want, v[0]+"="+v[1])
				}
				slices.Sort(got)
				slices.Sort(want)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("Claude Code with %d tokens (-launched +page):\n%s", s.Context, diff)
				}
			case b.Client == "codex" && b.Language == "toml":
				args, _ := codexSettings(launched)
				var told, page map[string]any
				if err := toml.Unmarshal([]byte(b.Text), &page); err != nil {
					t.Fatal(err)
				}
				var settings strings.Builder
				for i := 1; i < len(args); i += 2 {
					fmt.Fprintln(&settings, args[i])
				}
				if err := toml.Unmarshal([]byte(settings.String()), &told); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(told, page); diff != "" {
					t.Errorf("Codex with %d tokens (-launched +page):\n%s", s.Context, diff)
				}
			}
		}
	}
}
