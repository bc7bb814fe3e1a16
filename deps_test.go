package hearth

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers is the import matrix: what each package of ours may import of ours. Arrows point down only. A package that is
// missing here fails the test, so a new room in the house is a decision, not an accident. docs/ARCHITECTURE.md says why.
// config and model import chat for its table of sampling parameters: a flag, and a key of generation_config.json, is a row of it.
// config imports access for the files of keys that its knobs name, wire and catalog for who asks.
// backend imports sample for Draw, by which a device draws the tokens that the sampler would.
var layers = map[string][]string{
	"cmd/hearth": {"cli"},
	"cli":        {"*"},

	"bench": {"server", "wire", "wire/anthropic", "wire/openai", "chat", "catalog", "generate", "grammar", "grammar/jsonschema", "schema", "embed", "engine", "sched", "tier", "sample", "model",
		"convert", "tokenizer", "backend", "backend/cpu", "kernel", "kv", "quant", "config", "console", "demo", "regular", "chart"},

	"access":         {"regular"},
	"server":         {"access", "wire", "chat", "config", "metrics", "mcp", "webui", "apidoc"},
	"wire":           {"access", "chat", "schema", "grammar", "grammar/jsonschema", "textform"},
	"mcp":            {"wire", "chat", "jsonc", "regular"},
	"wire/anthropic": {"wire", "chat"},
	"wire/openai":    {"wire", "chat"},
	"wire/responses": {"wire", "wire/openai", "chat", "store"},
	"wire/wiretest":  {"wire", "chat"},
	"store":          {"regular"},
	"catalog":        {"access", "chat", "hub", "dialect", "generate", "embed", "engine", "remote", "model", "vision", "tokenizer", "backend", "kv", "config", "demo", "script", "tier", "timeline", "regular", "budget", "sysmem"},
	"embed":          {"chat", "tokenizer", "model", "backend", "watchdog", "budget"},
	"script":         {"chat", "generate", "tokenizer", "engine", "kv", "regular", "timeline"},
	"generate":       {"callform", "chat", "jinja", "tokenizer", "dialect", "transcript", "retention", "grammar", "grammar/jsonschema", "textform", "schema", "engine", "sample", "vision", "regular", "jsonc"},
	"dialect":        {"schema"},
	"callform":       {"dialect", "grammar", "grammar/jsonschema", "schema"},
	"textform":       {"chat", "grammar", "grammar/gbnf", "grammar/jsonschema", "grammar/lark", "grammar/regex", "schema"},
	"transcript":     {"tokenizer", "retention"},

	"engine/enginetest": {"engine", "model", "backend", "backend/cpu", "quant"},
	"engine":            {"sched", "spec", "kv", "tier", "sample", "model", "backend", "watchdog", "budget", "timeline"},
	"remote":            {"engine", "sample", "kv", "backend", "watchdog", "budget", "timeline"},
	"tier":              {"kv", "regular"},
	"sched":             {"kv"},
	"spec":              {},
	"model":             {"nn", "backend", "quant", "safetensors", "regular", "jsonc", "chat"},
	"convert":           {"model", "backend", "quant", "safetensors", "regular"},
	"nn":                {"backend"},

	"backend":              {"kv", "quant", "sample"},
	"backend/cpu":          {"backend", "kernel", "kv", "quant"},
	"backend/ref":          {"backend", "kv", "quant"},
	"backend/mlx":          {"backend", "backend/mlx/dl", "kv", "quant", "sample"},
	"backend/mlx/dl":       {},
	"backend/mlx/testshim": {"backend/mlx", "backend/mlx/dl", "config"},
	"backend/stub":         {"backend", "kv"},
	"backend/backendtest":  {"backend", "backend/ref", "kv", "quant"},
	"kernel":               {"quant"},

	"golden": {"backend", "kv", "model", "safetensors"},

	"apidoc": {}, "apidoc/apidoctest": {"apidoc", "grammar/jsonschema", "schema"},

	"interop/agents": {}, "interop/browser": {}, "interop/claude": {}, "interop/crash": {}, "interop/program": {}, "interop/hostile": {}, "interop/hub": {}, "interop/load": {}, "interop/mcp": {}, "interop/soak": {}, "interop/prometheus": {}, "tier/tiertest": {}, "vision/visiontest": {"safetensors", "vision"}, "regular/regulartest": {}, "server/servertest": {}, "tools/bigfolder": {},

	"chat": {}, "chat/chattest": {"chat"}, "jinja": {}, "tokenizer": {"regular", "jsonc"}, "jsonc": {}, "grammar": {}, "grammar/regex": {"grammar", "grammar/notation"}, "grammar/jsonschema": {"grammar", "grammar/regex", "schema"}, "grammar/notation": {"grammar"},
	"grammar/gbnf": {"grammar", "grammar/notation"}, "grammar/lark": {"grammar", "grammar/notation", "grammar/regex"}, "grammar/notation/notationtest": {"grammar", "grammar/notation", "demo", "tokenizer"}, "schema": {}, "sample": {}, "kv": {"retention"}, "retention": {}, "quant": {}, "safetensors": {"regular"},
	"budget": {}, "sysmem": {}, "watchdog": {}, "timeline": {}, "webui": {}, "config": {"access", "chat", "regular"}, "console": {}, "chart": {}, "hub": {"regular"}, "hub/hubtest": {}, "demo": {}, "metrics": {}, "regular": {}, "vision": {},
}

// modules are the third-party modules the program and its tests may use, with the reason for each. A module that is
// needed only by one of these is not listed.
var modules = map[string]string{
	"github.com/spf13/cobra":                 "subcommands, help with examples, completion; one dependency (pflag), the field's standard",
	"github.com/spf13/pflag":                 "cobra's flags: the knob table registers on it directly",
	"github.com/peterh/liner":                "line editing and history of the chat loop, small and portable; a full-screen library would be nineteen modules",
	"github.com/pelletier/go-toml/v2":        "the settings file: errors with their line, no dependencies",
	"github.com/dlclark/regexp2/v2":          "parses pre-tokenizer patterns, with the lookahead that the standard package's syntax lacks; its matcher only serves tests",
	"github.com/klauspost/compress":          "request bodies in zstd, which Codex sends: bounded in window and memory, no dependencies; the standard package has gzip alone",
	"github.com/coder/websocket":             "responses over WebSocket, which Codex asks for first: contexts bound each read and write, no dependencies; the standard library has none",
	"github.com/yuin/goldmark":               "Markdown of answers for the page: CommonMark with GitHub's extensions, no dependencies",
	"github.com/microcosm-cc/bluemonday":     "the list of what may stay of its HTML: the sanitiser that the field uses",
	"github.com/modelcontextprotocol/go-sdk": "MCP's official SDK, for the client side of its transports and versions; it brings jsonschema-go, oauth2 and a JSON decoder, all without cgo",
	"modernc.org/sqlite":                     "stored responses: a real database that survives kill -9, without cgo; a key-value file would leave chains, owners and expiry to us",
	"github.com/prometheus/client_golang":    "/metrics: Prometheus' own client, whose format, escapes and process figures scrapers were tested with",
	"golang.org/x/image":                     "decodes WebP, BMP and TIFF, which the standard library does not; the Go project's own, without cgo",
	"golang.org/x/text":                      "Unicode normal forms of tokenizer files",
	"golang.org/x/sys":                       "mmap, madvise, CPU features, file locks, free disk space",
	"golang.org/x/term":                      "terminal detection and width",
	"github.com/ebitengine/purego":           "opens libmlxc and calls it without cgo: linked on macOS, and by tests",
	"github.com/google/go-cmp":               "test only: readable differences of nested values",
	"github.com/chromedp/chromedp":           "test only: drives Chromium, through a pipe and without a driver program, for the tests of the page",
	"github.com/chromedp/cdproto":            "test only: the words of that protocol",
	"github.com/rogpeppe/go-internal":        "test only: testscript and txtar for the command line and the wire cases",
	"go.uber.org/goleak":                     "test only: no goroutine outlives an engine or a server",
}

// forbidden are standard packages that a layer must do without: the network stays above generate, the log above engine.
var forbidden = map[string][]string{
	"net/http": {"server", "wire", "wire/anthropic", "wire/openai", "wire/responses", "wire/wiretest", "cli", "bench", "hub", "hub/hubtest", "metrics", "mcp", "webui"},
	"log/slog": {"server", "cli"},
	"log":      {},
}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// list is the packages with what they import here, or on another system.
func list(t *testing.T, system ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Env = append(os.Environ(), system...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

func short(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "hearth/"), "internal/")
}

// TestLayers holds the direction of imports, and the matrix to what is there. Test files may reach further (a model test runs
// on real backends).
func TestLayers(t *testing.T) {
	uses := map[string]map[string]bool{}
	for _, p := range slices.Concat(list(t), list(t, "GOOS=darwin", "GOARCH=arm64"), list(t, "GOOS=windows", "GOARCH=amd64")) {
		name := short(p.ImportPath)
		if name == "hearth" {
			continue
		}
		if uses[name] == nil {
			uses[name] = map[string]bool{}
		}
		for _, im := range p.Imports {
			uses[name][short(im)] = true
		}
		may, ok := layers[name]
		if !ok {
			t.Errorf("package %s has no place in the import matrix of deps_test.go", name)
			continue
		}
		for _, im := range p.Imports {
			if strings.HasPrefix(im, "hearth/") && !slices.Contains(may, "*") && !slices.Contains(may, short(im)) {
				t.Errorf("%s imports %s: the matrix allows only %v", name, short(im), may)
			}
			if users, ok := forbidden[im]; ok && !slices.Contains(users, name) {
				t.Errorf("%s imports %s: only %v may", name, im, users)
			}
		}
	}
	for name, may := range layers {
		if uses[name] == nil {
			t.Errorf("the matrix has a row for %s, which is no package", name)
		}
		for _, im := range may {
			if im != "*" && !uses[name][im] {
				t.Errorf("%s may import %s and does not: drop it from the matrix", name, im)
			}
		}
	}
	for im, users := range forbidden {
		for _, name := range users {
			if !uses[name][im] {
				t.Errorf("%s may import %s and does not: drop it from what is forbidden to others", name, im)
			}
		}
	}
}

// TestModules holds the list of third-party modules to those with a reason.
func TestModules(t *testing.T) {
	used := map[string]bool{}
	for _, p := range list(t) {
		for _, im := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if first, _, _ := strings.Cut(im, "/"); !strings.Contains(first, ".") {
				continue
			}
			mod := ""
			for m := range modules {
				if im == m || strings.HasPrefix(im, m+"/") {
					mod = m
				}
			}
			if mod == "" {
				t.Errorf("%s imports %s: give the module a reason in deps_test.go or do without", short(p.ImportPath), im)
			}
			used[mod] = true
		}
	}
	for m := range modules {
		if !used[m] {
			t.Errorf("module %s has a reason in deps_test.go but no user: drop it", m)
		}
	}
}

// TestNoCgo: the program is built without cgo, so nothing may need it.
func TestNoCgo(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if .CgoFiles}}{{.ImportPath}}{{end}}", "./cmd/hearth")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // with 0, files that need cgo are left out silently
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, p := range strings.Fields(string(out)) {
		if strings.Contains(p, ".") || strings.HasPrefix(p, "hearth/") { // not the standard library, which can do without
			t.Errorf("%s needs cgo", p)
		}
	}
}
