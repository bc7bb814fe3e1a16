//go:build unix

package model_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/model"
	"hearth/internal/regular"
	"hearth/internal/regular/regulartest"
)

// Lists of a folder that are gone through again and again, or that each name a file, have bounds, and what is wrong is said in
// a line or a few, whatever is shown of it.
func TestFolderBounds(t *testing.T) {
	const bert = tinyBert
	list := func(n int, item func(i int) string) string {
		var all []string
		for i := range n {
			all = append(all, item(i))
		}
		return strings.Join(all, ", ")
	}
	long := strings.Repeat("x", 1<<20)
	index := func(files int) string {
		return `{"weight_map": {` + list(files, func(i int) string { return fmt.Sprintf(`"t%d": "f%d.safetensors"`, i, i) }) + `}}`
	}
	modules := func(n int) string {
		return `[` + list(n, func(int) string { return `{"path": "", "type": "sentence_transformers.models.Transformer"}` }) + `]`
	}
	eos := func(n int) string {
		return `{"eos_token_id": [` + list(n, func(i int) string { return fmt.Sprint(i) }) + `]}`
	}
	for name, c := range map[string]struct{ file, text, want string }{
		"more files":            {"model.safetensors.index.json", index(4096), "has 4097 files of weights, more than 4096"},
		"as many files":         {"model.safetensors.index.json", index(4095), "f0.safetensors: model.safetensors.index.json names this file, but it is missing"},
		"more ends":             {"generation_config.json", eos(257), "warning: generation_config.json: eos_token_id: has 257 tokens, more than 256"},
		"as many ends":          {"generation_config.json", eos(256), ""},
		"more modules":          {"modules.json", modules(65), "it lists 65 modules, more than 64"},
		"as many modules":       {"modules.json", modules(64), ""},
		"long model type":       {"config.json", `{"model_type": "` + long + `"}`, "is not supported"},
		"long number":           {"generation_config.json", `{"top_k": ` + strings.Repeat("1", 1<<20) + `}`, "warning: generation_config.json: top_k: 111"},
		"long tensor":           {"model.safetensors.index.json", `{"weight_map": {"` + long + `": "../x.safetensors"}}`, "outside the folder"},
		"long file":             {"model.safetensors.index.json", `{"weight_map": {"t": "` + long + `"}}`, "no safetensors file"},
		"long missing file":     {"model.safetensors.index.json", `{"weight_map": {"t": "` + long + `.safetensors"}}`, "is missing"},
		"lines and escapes":     {"model.safetensors.index.json", `{"weight_map": {"a\n\u001b[31m": "../x.safetensors"}}`, `a\n\x1b[31m`},
		"long module":           {"modules.json", `[{"path": "", "type": "` + long + `"}]`, "is not supported"},
		"long path of a module": {"modules.json", `[{"path": "../` + long + `", "type": "x.Pooling"}]`, "outside the folder"},
		"long pooling":          {"1_Pooling/config.json", `{"pooling_mode": "` + long + `"}`, "is not supported"},
		"many poolings":         {"1_Pooling/config.json", `{` + list(50000, func(i int) string { return fmt.Sprintf(`"pooling_mode_%d": true`, i) }) + `}`, "is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := encoderFolder(t, bert, meanPooling)
			fsys[c.file] = &fstest.MapFile{Data: []byte(c.text)}
			k, err := model.OpenCheckpoint(fsys, "m")
			if err == nil {
				_, err = k.Pooling()
				defer k.Close()
				if err == nil && len(k.Warnings) > 0 {
					err = errors.New("warning: " + strings.Join(k.Warnings, "\n"))
				}
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1500 || strings.ContainsAny(err.Error(), "\n\x1b")):
				t.Errorf("%d bytes: %.3000v, want one with %q", len(fmt.Sprint(err)), err, c.want)
			}
		})
	}
}

// TestOddEncoderFiles: the files of embedding models are looked at before they are read, as all are.
func TestOddEncoderFiles(t *testing.T) {
	for kind, put := range regulartest.Kinds {
		for _, file := range []string{"modules.json", "sentence_bert_config.json", "1_Pooling/config.json"} {
			t.Run(file+"/"+kind, func(t *testing.T) {
				dir := t.TempDir()
				err := os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o700)
				for name, f := range encoderFolder(t, tinyBert, meanPooling) {
					err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), f.Data, 0o600))
				}
				if err != nil {
					t.Fatal(err)
				}
				says := put(t, filepath.Join(dir, filepath.FromSlash(file)))
				c, err := model.OpenCheckpoint(regular.Dir(dir), dir)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.Pooling(); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), says) {
					t.Errorf("the error is %v, want one that names the file and says %q", err, says)
				}
			})
		}
	}
}
