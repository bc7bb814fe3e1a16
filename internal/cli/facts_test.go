package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
)

var (
	factCommand  = regexp.MustCompile(`(?:Run|Run:|Use|use|example:|;) hearth ([a-z]+)`)
	factFlag     = regexp.MustCompile(`--([a-z][a-z-]*)`)
	factEnv      = regexp.MustCompile(`\b[A-Z]+_[A-Z_]+\b`)
	factEndpoint = regexp.MustCompile(`(?:^|[ (]|:8080)(/(?:v1/[a-z_/]+|health))`)
)

// foreign is what other programs read: their flags and variables are theirs to keep.
var foreign = []string{"json", "ANTHROPIC_BASE_URL"}

// TestDemoFacts: what the demo model is taught to say about hearth is true of this program. A failure means that a fact in
// tools/demo/facts.json has to change and the model to be trained again, or that the program lost something it promised.
func TestDemoFacts(t *testing.T) {
	b, err := os.ReadFile(filepath.FromSlash("../../tools/demo/facts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var facts []struct {
		ID     string   `json:"id"`
		Answer string   `json:"answer"`
		Must   []string `json:"must"`
	}
	if err := json.Unmarshal(b, &facts); err != nil {
		t.Fatal(err)
	}
	flags, commands := map[string]*pflag.Flag{}, []string{}
	for _, c := range newRootCmd().Commands() {
		if c.IsAvailableCommand() {
			commands = append(commands, c.Name())
		}
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = f })
	}
	cfg := config.Default()
	src, err := catalog.Find("", hub.Cache{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	srv := newServer(cfg, catalog.New(src, cfg), slog.New(slog.DiscardHandler))
	answers := map[string]string{}
	for _, f := range facts {
		answers[f.ID] = f.Answer
		for _, m := range f.Must {
			if !strings.Contains(f.Answer, m) {
				t.Errorf("%s: the answer lacks %q, by which it is recognised", f.ID, m)
			}
		}
		for _, m := range factCommand.FindAllStringSubmatch(f.Answer, -1) {
			if !slices.Contains(commands, m[1]) {
				t.Errorf("%s: there is no command %q", f.ID, m[1])
			}
		}
		for _, m := range factFlag.FindAllStringSubmatch(f.Answer, -1) {
			if flags[m[1]] == nil && !slices.Contains(foreign, m[1]) {
				t.Errorf("%s: there is no flag --%s", f.ID, m[1])
			}
		}
		for _, m := range factEnv.FindAllString(f.Answer, -1) {
			if !readsEnv(m) && !slices.Contains(foreign, m) {
				t.Errorf("%s: no knob reads %s", f.ID, m)
			}
		}
		for _, m := range factEndpoint.FindAllStringSubmatch(f.Answer, -1) {
			rec := httptest.NewRecorder()
			req := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+m[1], nil)
			if srv.ServeHTTP(rec, req); rec.Code == http.StatusNotFound {
				t.Errorf("%s: the server has no %s", f.ID, m[1])
			}
		}
	}
	for id, want := range map[string]string{
		"port":       fmt.Sprintf("The default port is %d.", cfg.Port),
		"models_dir": "~/.cache/huggingface",
		"license":    "MIT",
	} {
		if !strings.Contains(answers[id], want) {
			t.Errorf("%s: the answer is %q and should have %q", id, answers[id], want)
		}
	}
}

func readsEnv(name string) bool {
	return slices.ContainsFunc(config.Knobs, func(k config.Knob) bool { return slices.Contains(k.Envs(), name) })
}
