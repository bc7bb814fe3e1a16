//go:build unix

package hub

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"hearth/internal/regular/regulartest"
)

// What is no file in a cache is looked at and left alone: the model is described by what else is there.
func TestOddCache(t *testing.T) {
	kinds := map[string]func(testing.TB, string) string{"huge": func(t testing.TB, path string) string { regulartest.Large(t, path); return "" }}
	for kind, put := range regulartest.Kinds {
		kinds[kind] = put
	}
	for kind, put := range kinds {
		for _, odd := range []string{"refs/main", "snapshots/abc/config.json", "snapshots/abc/model.safetensors.index.json"} {
			t.Run(odd+"/"+kind, func(t *testing.T) {
				c := Cache{Dir: t.TempDir()}
				root := filepath.Join(c.Dir, "models--org--name")
				snap := filepath.Join(root, "snapshots", "abc")
				err := errors.Join(os.MkdirAll(snap, 0o700), os.Mkdir(filepath.Join(root, "refs"), 0o700))
				for name, text := range map[string]string{"refs/main": "abc", "snapshots/abc/config.json": `{"model_type": "qwen3"}`,
					"snapshots/abc/model.safetensors": "", "snapshots/abc/tokenizer.json": "{}"} {
					if name != odd {
						err = errors.Join(err, os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o600))
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(root, filepath.FromSlash(odd)))
				e, err := c.Find("org/name")
				if err != nil || e.Dir != snap || e.Format != Safetensors {
					t.Errorf("%+v, %v", e, err)
				}
				if list, err := NewRoots(Root{Dir: c.Dir}).List(t.Context()); len(list) != 1 {
					t.Errorf("it is not listed: %v", err)
				}
			})
		}
	}
}
