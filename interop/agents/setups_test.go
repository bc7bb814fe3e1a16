package agents

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var (
	qwenFlag = flag.String("qwen", "", "the qwen executable of Qwen Code")
	piFlag   = flag.String("pi", "", "the pi executable")
)

// A model's name and a key that shells and formats have to quote.
const (
	quotedModel = "org/a model's"
	quotedKey   = `it's "secret" $x`
)

// block is a piece of a set-up: what it is, in which language, and the text.
type block [3]string

// setup is what the page's Connect view hands out for a client.
func (s *server) setup(t *testing.T, client string) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile("../../internal/webui/static/clients.js")
	module := filepath.Join(s.dir, "clients.mjs") // which node knows as a module by its name
	if err == nil {
		err = os.WriteFile(module, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const evaluation = `const [module, client, url, key, model, context] = process.argv.slice(1);
		console.log(JSON.stringify((await import(module)).clients.find((c) => c.id === client).blocks({ url, key, model, context: +context, sees: false })))`
	out, err := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", evaluation, module, client, s.url, quotedKey, quotedModel, strconv.Itoa(contextLength)).Output()
	if err == nil {
		err = json.Unmarshal(out, &blocks)
	}
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

const contextLength = 65_536

// TestSetups: told of the server by what the page hands out, an agent writes a file, and reads in the next turn, which builds on
// the cache of the one before, that it has.
func TestSetups(t *testing.T) {
	for _, tt := range []struct {
		client     string
		binary     *string
		args, tool string
	}{
		{"qwen-code", qwenFlag, " --yolo -p ", `{"name": "write_file", "arguments": {"file_path": %s, "content": "Hello from hearth.\n"}}`},
		{"pi", piFlag, " -p ", `{"name": "write", "arguments": {"path": %s, "content": "Hello from hearth.\n"}}`},
	} {
		t.Run(tt.client, func(t *testing.T) {
			t.Parallel()
			if *tt.binary == "" {
				t.Skip("run by make interop, which installs the agents")
			}
			s := serve(t, []string{"--context-length", strconv.Itoa(contextLength), "--served-model-name", quotedModel, "--api-key", quotedKey},
				line{Turn: 1, IfTool: "^write", Raw: "I will write it.\n<tool_call>\n" + strings.Replace(tt.tool, "%s", "{{json (find `Write (\\S+) now` .Last)}}", 1) + "\n</tool_call>"},
				line{Turn: 2, Raw: "It is done: {{find `(?i)success\\w* (?:created and )?wrote` .Last}}"})
			home := s.project(t, nil)
			var shell string
			for _, b := range s.setup(t, tt.client) {
				if b[1] == "sh" {
					shell = b[2]
					continue
				}
				path := strings.Replace(b[0], "~", home, 1)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(b[2]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			// The last line runs the program, and has its arguments behind it.
			shell = "PATH='" + filepath.Dir(*tt.binary) + "':$PATH\n" + shell + tt.args + "'Write " + filepath.Join(home, "project", "hello.txt") + " now'"
			r := s.run(t, home, []string{"sh", "-euc", shell})
			if r.err != nil {
				t.Errorf("%v\n%s%s", r.err, r.out, r.notes)
			}
			r.says(t, "It is done: Success")
			r.has(t, "hello.txt", "Hello from hearth.\n")
			turns := s.calls(t, chatPath, 2)
			if whole := turns[0].prompt + turns[0].output - 1; turns[1].cached < whole {
				t.Errorf("the second turn reuses %d tokens, the turn before had %d", turns[1].cached, whole)
			}
		})
	}
}
