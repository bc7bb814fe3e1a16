package bench

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/chat"
	"hearth/internal/demo"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/model"
)

// TestFormsOfDemo: JSON whose keys are forced at once, which is most of it, is what the demo writes with a step for each token.
func TestFormsOfDemo(t *testing.T) {
	ckpt, err := model.OpenCheckpoint(demo.FS(), demo.Name)
	if err != nil {
		t.Fatal(err)
	}
	be := cpu.New()
	m, err := ckpt.Load(be, backend.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Model: m, Backend: be, Vocab: m.Vocab, Budget: 1 << 26, MaxContext: 2000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []io.Closer{e, m, be, ckpt} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	text, err := generate.Load(demo.FS(), "")
	if err != nil {
		t.Fatal(err)
	}
	tap := &tap{Tokens: e}
	text.Engine = generate.Over(tap)
	g, err := generate.New(text)
	if err != nil {
		t.Fatal(err)
	}
	write := func(oneByOne bool, r *chat.Request) string {
		tap.oneByOne, tap.forced = oneByOne, 0
		events, err := g.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for e, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == chat.EventText {
				out.WriteString(e.Text)
			}
		}
		return out.String()
	}
	for i, prompt := range []string{"Tell me about a customer, in JSON.", "Hello", "Who is Ada Lovelace?", "Invent a person in Lyon.", "a"} {
		r := formRequest(prompt)
		r.Sampling = chat.Sampling{Temperature: new(float64(i) / 3), Seed: new(uint64(i))}
		slow := write(true, r)
		once := write(false, r)
		n := tap.stream.Usage().Generated
		if once != slow || !json.Valid([]byte(once)) || tap.forced < n/2 {
			t.Errorf("%s: %d of %d tokens were forced: %q, token by token %q", prompt, tap.forced, n, once, slow)
		}
	}
}
