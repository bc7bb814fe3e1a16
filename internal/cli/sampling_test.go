package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/hub"
	"hearth/internal/model"
	"hearth/internal/sample"
	"hearth/internal/server"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
)

// asked keeps what an engine is asked for, and does none of it.
type asked struct{ got []sample.Params }

func (a *asked) Context() int { return 4096 }
func (a *asked) Submit(_ context.Context, p engine.Prompt) (generate.Stream, error) {
	a.got = append(a.got, p.Sampling)
	return nil, errors.New("only asked")
}

// just is the only model there is.
type just struct{ chat.Generator }

func (j just) Open(context.Context, string) (chat.Generator, error) { return j, nil }
func (j just) List(context.Context) []chat.Model                    { return []chat.Model{j.Model()} }

// TestSamplingParameters takes every row of the table through every place that has sampling parameters: each protocol, the log,
// each level of settings, the model's folder, the built-in value, show, and the documentation; and each level comes before the
// next. What crosses to a worker process is in package remote.
func TestSamplingParameters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "little")
	if err := writeDemo(dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range chat.SamplingParameters {
		t.Run(p.Name, func(t *testing.T) {
			value := func(quarters float64) float64 {
				if p.Whole {
					return quarters
				}
				return max(p.Least, 0) + quarters/4*(p.Most-max(p.Least, 0))
			}
			requested, operators, folders := value(3), value(2), value(1)
			folder, flag := `{"eos_token_id": 1358}`, "--"+strings.ReplaceAll(p.Name, "_", "-")
			if p.Recommended != 0 {
				folder = fmt.Sprintf(`{"eos_token_id": 1358, %q: %v}`, p.Name, folders)
			}
			if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(folder), 0o600); err != nil {
				t.Fatal(err)
			}
			src, err := catalog.Find(dir, hub.Cache{})
			if err != nil {
				t.Fatal(err)
			}
			c, err := model.OpenCheckpoint(src.FS, src.Where)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			// arrives checks what a request is sampled with.
			arrives := func(place string, cfg *config.Config, path, fields string, want float64) {
				t.Helper()
				text, err := catalog.Text(src, catalog.Settings(src, cfg))
				if err != nil {
					t.Fatal(err)
				}
				e := &asked{}
				text.Engine, text.Generation = e, c.Generation.Sampling
				gen, err := generate.New(text)
				if err != nil {
					t.Fatal(err)
				}
				var log strings.Builder
				srv := httptest.NewServer(server.New(server.Options{Models: just{gen}, Protocols: []wire.Protocol{anthropic.Protocol{}, openai.Protocol{}},
					Health: func() server.Health { return server.Health{} },
					Log:    slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}))
				request(t, "POST", srv.URL+path, `{"max_tokens": 1`+fields+`}`)
				srv.Close()
				if len(e.got) != 1 {
					t.Fatalf("%s: the engine was asked %d times: %s", place, len(e.got), log.String())
				}
				same, other := e.got[0], e.got[0]
				if !same.Set(p.Name, want) || !other.Set(p.Name, want+1) || reflect.DeepEqual(other, e.got[0]) {
					t.Fatalf("package sample: there is no %s", p.Name)
				}
				if !reflect.DeepEqual(same, e.got[0]) {
					t.Errorf("%s: %v did not become what is sampled with: %+v", place, want, e.got[0])
				}
				if logs := slices.Contains(strings.Fields(log.String()), fmt.Sprintf("%s=%v", p.Name, want)); logs != strings.Contains(fields, p.Name) {
					t.Errorf("the log, %s: says %v: %t\n%s", place, want, logs, log.String())
				}
			}
			const hi = `, "messages": [{"role": "user", "content": "Hi"}]`
			own := fmt.Sprintf(`, %q: %v`, p.Name, requested)
			settings := map[string]*config.Config{}
			if p.Doc != "" {
				name, x := strings.TrimPrefix(flag, "--"), fmt.Sprint(operators)
				settings["a flag"] = configured(t, "", nil, flag, x)
				settings["a flag that begins with default-"] = configured(t, "", nil, "--default-"+name, x)
				settings["an environment variable"] = configured(t, "", map[string]string{"HEARTH_" + strings.ToUpper(p.Name): x})
				settings["the settings file"] = configured(t, name+" = "+x, nil)
				settings["a model's table"] = configured(t, "[models.little]\n"+name+" = "+x, nil)
			}
			least := p.Builtin
			if p.Recommended != 0 {
				least = folders
				if shown, want := shownSampling(c.Generation.Sampling).String(), fmt.Sprintf("%s %v", p.Name, folders); shown != want {
					t.Errorf("show: %s, want %s", shown, want)
				}
			}
			arrives("a model's folder, or else the built-in value", configured(t, "", nil), "/v1/chat/completions", hi, least)
			for place, cfg := range settings {
				arrives(place, cfg, "/v1/chat/completions", hi, operators)
				arrives("a request over "+place, cfg, "/v1/chat/completions", hi+own, requested)
			}
			arrives("Chat", configured(t, "", nil), "/v1/chat/completions", hi+own, requested)
			arrives("Completions", configured(t, "", nil), "/v1/completions", `, "prompt": "Hi"`+own, requested)
			documents := map[string]string{"openai.md": "`" + p.Name + "`"}
			if p.Messages {
				arrives("Messages", configured(t, "", nil), "/v1/messages", hi+own, requested)
				documents["anthropic.md"] = "`" + p.Name + "`"
			}
			if p.Doc != "" {
				documents["config.md"] = "`" + flag + " "
			}
			for name, text := range documents {
				if b, err := os.ReadFile(filepath.Join("..", "..", "docs", name)); err != nil || !strings.Contains(string(b), text) {
					t.Errorf("docs/%s: %s is not in it (%v)", name, text, err)
				}
			}
		})
	}
}
