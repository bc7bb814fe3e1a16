package catalog

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/golden"
	"hearth/internal/hub"
	"hearth/internal/model"
)

// encoderSource is a tiny bert in a folder of that name.
func encoderSource(t *testing.T, name string, ranks bool) *Source {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	golden.EncoderFolder(t, dir, ranks)
	src, err := Find(dir, hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// beside loads the model of src, or the demo, with encoders beside it.
func beside(t *testing.T, src *Source, set func(*config.Config, *Catalog)) *Catalog {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	cfg := config.Default()
	if src == nil {
		var err error
		if src, err = Find("", hub.Cache{}); err != nil {
			t.Fatal(err)
		}
	}
	c := New(src, cfg)
	if set != nil {
		set(cfg, c)
	}
	return opened(t, c)
}

// opened is c with its models, closed with the test.
func opened(t *testing.T, c *Catalog) *Catalog {
	t.Helper()
	if err := c.Load(backends()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// what answers, by the kind asked for and the name sent; an error is its code.
func answers(t *testing.T, e *Catalog, kind chat.ModelKind, name string) string {
	t.Helper()
	var m interface{ Model() chat.Model }
	var err error
	switch kind {
	case chat.Embeds:
		m, err = e.OpenEmbedder(t.Context(), name)
	case chat.Ranks:
		m, err = e.OpenRanker(t.Context(), name)
	default:
		m, err = e.Open(t.Context(), name)
	}
	if err != nil {
		got := chat.AsError(err)
		if got.Param != "model" || got.Kind != chat.NotFound && got.Kind != chat.Invalid {
			t.Errorf("%s %q: %#v", kind, name, got)
		}
		return got.Code
	}
	return m.Model().ID
}

func TestEncodersBeside(t *testing.T) {
	e := beside(t, nil, func(cfg *config.Config, e *Catalog) {
		e.AddEmbedder(encoderSource(t, "minilm", false))
		e.AddRanker(encoderSource(t, "judge", true))
	})
	const no, unknown = "model_not_supported", "model_not_found"
	for _, c := range []struct {
		kind       chat.ModelKind
		name, want string
	}{
		{chat.Embeds, "minilm", "minilm"}, {chat.Embeds, "", "minilm"}, {chat.Embeds, "default", "minilm"}, {chat.Embeds, "text-embedding-3-small", "minilm"},
		{chat.Embeds, "demo", no}, {chat.Embeds, "judge", no}, {chat.Embeds, "bge", unknown}, {chat.Embeds, strings.Repeat("x", 5000), unknown},
		{chat.Ranks, "judge", "judge"}, {chat.Ranks, "", "judge"}, {chat.Ranks, "minilm", no}, {chat.Ranks, "demo", no}, {chat.Ranks, "other", unknown},
		{chat.Chats, "demo", "demo"}, {chat.Chats, "", "demo"}, {chat.Chats, "minilm", no}, {chat.Chats, "judge", no}, {chat.Chats, "other", unknown},
	} {
		if got := answers(t, e, c.kind, c.name); got != c.want {
			t.Errorf("%s %.20q: %s, want %s", c.kind, c.name, got, c.want)
		}
	}
	list := e.List(context.Background())
	if len(list) != 3 || list[0].Kind != chat.Chats || list[1].Kind != chat.Embeds || list[1].Context != 40 || list[2].Kind != chat.Ranks {
		t.Errorf("list %+v", list)
	}
	emb, err := e.OpenEmbedder(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	out, err := emb.Embed(t.Context(), &chat.EmbedRequest{Inputs: []chat.Input{{Text: "hello"}}})
	if err != nil || len(out.Vectors) != 1 || len(out.Vectors[0]) != 32 || out.Tokens != 7 {
		t.Errorf("%+v, %v", out, err)
	}
	if s := e.Entries()[1].Encoder(); s.Stats().Texts != 1 || s.Bytes() == 0 || !strings.Contains(s.Summary(), "bert") || !strings.HasSuffix(s.Summary(), ", backend cpu (float32)") {
		t.Errorf("%+v, %d bytes, %s", s.Stats(), s.Bytes(), s.Summary())
	}
}

// A main model that embeds answers under its own names and those of clients, and generates nothing.
func TestEncoderAlone(t *testing.T) {
	e := beside(t, encoderSource(t, "minilm", false), nil)
	for _, name := range []string{"", "minilm", "local", "text-embedding-ada-002"} {
		if got := answers(t, e, chat.Embeds, name); got != "minilm" {
			t.Errorf("%q: %s", name, got)
		}
	}
	if got := answers(t, e, chat.Chats, "minilm"); got != "model_not_supported" {
		t.Errorf("generates: %s", got)
	}
	if got := answers(t, e, chat.Ranks, ""); got != "model_not_supported" {
		t.Errorf("ranks: %s", got)
	}
	if c := e.Main(); c.Weights() != nil || c.Encoder() == nil || e.WeightBytes() == 0 || e.List(context.Background())[0].Kind != chat.Embeds {
		t.Errorf("weights %v, encoder %v, %d bytes, %+v", c.Weights(), c.Encoder(), e.WeightBytes(), e.List(context.Background()))
	}
}

// Without any encoder the reply says what is missing; with --any-model every name is that of the one there is.
func TestEncoderNames(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		_, err := beside(t, nil, nil).OpenEmbedder(t.Context(), "demo")
		if e := chat.AsError(err); e.Kind != chat.Invalid || !strings.Contains(e.Msg, `"demo" generates text; an embedding model is needed: start the server with --embedding-model`) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		_, err := beside(t, nil, nil).OpenEmbedder(t.Context(), "org/minilm")
		if e := chat.AsError(err); e.Kind != chat.NotFound || e.Msg != `"org/minilm" is not served here; an embedding model is needed: name one that is on disk, or start the server with --embedding-model` {
			t.Errorf("error %v", err)
		}
	})
	t.Run("any", func(t *testing.T) {
		e := beside(t, nil, func(cfg *config.Config, e *Catalog) {
			cfg.AnyModel = true
			e.AddEmbedder(encoderSource(t, "minilm", false))
		})
		if got := answers(t, e, chat.Embeds, "whatever"); got != "minilm" {
			t.Errorf("any model: %s", got)
		}
	})
}

func TestEncoderLoadErrors(t *testing.T) {
	bare := encoderSource(t, "bare", false)
	if err := os.Remove(filepath.Join(bare.Path, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	short := *config.Default()
	short.EmbeddingMaxLength = 41
	for name, c := range map[string]struct {
		src  *Source
		cfg  *config.Config
		kind model.Kind
		want string
	}{
		"a ranking model embeds":   {encoderSource(t, "a", true), config.Default(), model.Embeds, "the model ranks texts"},
		"an embedding model ranks": {encoderSource(t, "a", false), config.Default(), model.Ranks, "the model embeds texts"},
		"no tokenizer":             {bare, config.Default(), model.Embeds, "tokenizer.json"},
		"too long":                 {encoderSource(t, "a", false), &short, model.Embeds, "the model has 40 positions"},
	} {
		e := newEntry(Beside, c.src, c.cfg, c.kind)
		err := e.load(t.Context(), backends(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", name, err)
		}
		if _, opened := e.wait(t.Context()); chat.AsError(opened).Kind != chat.Internal {
			t.Errorf("%s: opened after that: %v", name, opened)
		}
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}
	goleak.VerifyNone(t)
}

// A folder that does not say what it is for embeds, or judges, where the user says so.
func TestEncoderOfChatModel(t *testing.T) {
	defer goleak.VerifyNone(t)
	src := &Source{ID: "demo", Where: "demo", FS: demo.FS()}
	for kind, want := range map[model.Kind]chat.ModelKind{model.Embeds: chat.Embeds, model.Ranks: chat.Ranks} {
		e := newEntry(Beside, src, config.Default(), kind)
		err := e.load(t.Context(), backends(), nil)
		switch {
		case err != nil && strings.Contains(err.Error(), "the model generates text"): // its vocabulary need not have both words
		case err != nil:
			t.Error(err)
		case e.Model().Kind != want:
			t.Errorf("%+v", e.Model())
		}
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}
}
