//go:build darwin || linux

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/server"
)

// TestPrecisionOnMLX: what a precision chooses there is said.
func TestPrecisionOnMLX(t *testing.T) {
	shim := testshim.Config(t, testshim.Newest)
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	for precision, want := range map[string]string{"fast": "activations in bfloat16: KL to float32 ", "outliers": "activations in bfloat16: KL to float32 ", "exact": "activations in float32"} {
		cfg := config.Default()
		cfg.Backend, cfg.Precision = "mlx", precision
		c := shim
		c.Activations = backend.BF16
		url := serveOn(t, src, cfg, catalog.Backends{Open: map[string]catalog.Opener{"mlx": func(*config.Config) (backend.Backend, error) { return mlx.Open(c) }}})
		_, b := request(t, "GET", url+"/v1/status", "")
		var s server.Status
		if err := json.Unmarshal(b, &s); err != nil || s.Precision == nil || s.Precision.Name != precision || !strings.HasPrefix(s.Precision.Rounding, want) {
			t.Errorf("%s: %+v, %v", precision, s.Precision, err)
		}
	}
}

// TestFormsOnMLX: what is asked for holds on MLX: JSON of a schema, a call that is demanded, a pattern.
func TestFormsOnMLX(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	cfg := config.Default()
	cfg.Backend = "mlx"
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	bs := catalog.Backends{Open: map[string]catalog.Opener{"mlx": func(*config.Config) (backend.Backend, error) { return testshim.Open(t), nil }}}
	url := serveOn(t, src, cfg, bs)
	type answer struct {
		Choices []struct {
			Message struct {
				Content string
				Calls   []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
	}
	ask := func(body string) (a answer) {
		t.Helper()
		r, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages": [{"role": "user", "content": "Tell me about a person."}], "enable_thinking": false, `+body+`}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err = errors.Join(err, json.Unmarshal(b, &a)); err != nil || r.StatusCode != 200 || len(a.Choices) == 0 {
			t.Fatalf("%s: %d %s, %v", body, r.StatusCode, b, err)
		}
		return a
	}
	person := `"response_format": {"type": "json_schema", "json_schema": {"name": "p", "strict": true, "schema": ` + personSchema + `}}`
	ended := 0
	for seed := range 6 {
		a := ask(fmt.Sprintf(`"temperature": 1.2, "seed": %d, "max_tokens": 120, %s`, seed, person))
		c := a.Choices[0]
		if why := misses(t, "person", c.Message.Content, c.Finish != "stop"); why != "" {
			t.Errorf("%s: %q", why, c.Message.Content)
		}
		if c.Finish == "stop" {
			ended++
		}
	}
	if ended < 3 {
		t.Errorf("%d of 6 ended", ended)
	}
	a := ask(`"temperature": 1.2, "seed": 1, "guided_regex": "[a-z]{1,3}[0-9]{2}"`)
	if why := misses(t, `^[a-z]{1,3}[0-9]{2}$`, a.Choices[0].Message.Content, false); why != "" {
		t.Error(why)
	}
	a = ask(`"temperature": 1.2, "seed": 2, "max_tokens": 200, "tool_choice": "required", "tools": [{"type": "function", "function": {"name": "add_person", "parameters": ` + personSchema + `}}]`)
	if calls := a.Choices[0].Message.Calls; len(calls) == 0 || calls[0].Function.Name != "add_person" || misses(t, "person", calls[0].Function.Arguments, false) != "" {
		t.Errorf("%+v", a)
	}
}
