//go:build unix

package catalog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/hub"
)

// TestWarnings: what is wrong with a folder is told once, wherever its model runs and whatever it is for.
func TestWarnings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	if err := os.CopyFS(dir, demo.FS()); err != nil {
		t.Fatal(err)
	}
	write := func(dir, name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		_ = os.Remove(file) // one that is there may be read-only
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(dir, "generation_config.json", `{"eos_token_id": 5711,}`)
	write(dir, "chat_template.json", `{`)
	want := []Warning{
		{dir, "generation_config.json: has a comma too many at byte 22, line 1, which JSON does not allow; it is read without"},
		{dir, "chat_template.json: is no valid JSON at byte 1, line 1: unexpected end of JSON input; the file is left out: it gives no chat template"},
	}
	for name, bs := range map[string]Backends{"here": backends(), "in a process of its own": aparts("cpu")} {
		src, err := Find(dir, hub.Cache{})
		if err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		cfg.CacheMemoryMB, cfg.Threads = 64, 1
		c := New(src, cfg)
		if len(c.Warnings()) > 0 {
			t.Errorf("%s: warnings before anything is read", name)
		}
		if err := c.Load(bs); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, c.Warnings()); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
		if d := cmp.Diff([]string{want[0].Text}, c.Main().Weights().warnings); d != "" {
			t.Errorf("%s: of the weights:\n%s", name, d)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}

	src := encoderSource(t, "reader", false)
	write(src.Path, "sentence_bert_config.json", `{"max_seq_length": "many"}`)
	write(src.Path, "special_tokens_map.json", `[]`)
	want = []Warning{
		{src.Where, `sentence_bert_config.json: max_seq_length: "many" is no number; the key is left out`},
		{src.Where, "special_tokens_map.json: a JSON array is not what should be here; the file is left out: no token that it names has a role"},
	}
	e := beside(t, nil, func(_ *config.Config, e *Catalog) { e.AddEmbedder(src) })
	if d := cmp.Diff(want, e.Warnings()); d != "" {
		t.Errorf("an encoder:\n%s", d)
	}
}
