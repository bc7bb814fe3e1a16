//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hearth/internal/regular/regulartest"
	"hearth/internal/safetensors"
)

// inProcess runs a command that should end by itself.
func inProcess(t *testing.T, args ...string) error {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := newRootCmd()
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		t.Fatalf("%q does not end", args)
		return nil
	}
}

// linked makes a folder whose files are links to those of another, as the hub cache has them.
func linked(t *testing.T, from string, but ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "m")
	entries, err := os.ReadDir(from)
	err = errors.Join(err, os.Mkdir(dir, 0o700))
	for _, e := range entries {
		if !slices.Contains(but, e.Name()) {
			err = errors.Join(err, os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOddFolders puts what is no file in the place of each file of a folder, those that are there and those that may be: every
// command that reads it refuses the folder by an error that says which file it is and what, and ends.
func TestOddFolders(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	good := filepath.Join(t.TempDir(), "good")
	if err := writeDemo(good); err != nil {
		t.Fatal(err)
	}
	adapter := t.TempDir()
	var b bytes.Buffer
	const module = "model.layers.4.self_attn.q_proj"
	if err := safetensors.Write(&b, []safetensors.Tensor{
		{Name: module + ".lora_a", DType: "F32", Shape: []int{256, 1}, Bytes: make([]byte, 4*256)},
		{Name: module + ".lora_b", DType: "F32", Shape: []int{1, 256}, Bytes: make([]byte, 4*256)},
	}, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(adapter, "adapters.safetensors"), b.Bytes(), 0o600),
		os.WriteFile(filepath.Join(adapter, "adapter_config.json"), []byte(`{"lora_parameters": {"rank": 1, "scale": 20}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	loaders := map[string]func(dir string) []string{
		"show": func(dir string) []string { return []string{"show", dir} },
		"quantize": func(dir string) []string {
			return []string{"quantize", dir, filepath.Join(t.TempDir(), "out"), "--bits", "4"}
		},
		"run": func(dir string) []string { return []string{"run", dir, "--max-tokens", "1", "Hello"} },
	}
	both := []string{"show", "run"}
	for file, by := range map[string][]string{
		"config.json":                              {"show", "quantize", "run"},
		"generation_config.json":                   {"show", "quantize", "run"},
		"hf_quant_config.json":                     {"show", "quantize", "run"},
		"model.safetensors":                        {"show", "quantize", "run"},
		"model-2.safetensors":                      {"show", "quantize", "run"},
		"model.safetensors.index.json":             {"show", "quantize", "run"},
		"tokenizer.json":                           both,
		"tokenizer_config.json":                    both,
		"special_tokens_map.json":                  both,
		"added_tokens.json":                        both,
		"tokenizer.model":                          both,
		"tiktoken.model":                           both,
		"chat_template.jinja":                      both,
		"chat_template.json":                       both,
		"additional_chat_templates/tool_use.jinja": both,
	} {
		kinds := map[string]func(testing.TB, string) string{}
		for kind, put := range regulartest.Kinds {
			kinds[kind] = put
		}
		kinds["huge"] = func(t testing.TB, path string) string {
			regulartest.Large(t, path)
			if strings.HasSuffix(path, ".safetensors") {
				return "is no JSON object"
			}
			return "more than"
		}
		for kind, put := range kinds {
			for _, by := range by {
				t.Run(file+"/"+kind+"/"+by, func(t *testing.T) {
					without := []string{file}
					if file == "tokenizer.model" || file == "tiktoken.model" {
						without = append(without, "tokenizer.json")
					}
					dir := linked(t, good, without...)
					if sub := filepath.Dir(file); sub != "." {
						if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
							t.Fatal(err)
						}
					}
					says := put(t, filepath.Join(dir, file))
					err := inProcess(t, loaders[by](dir)...)
					if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), says) || len(err.Error()) > 2000 {
						t.Errorf("the error is %v, want one that names the file and says %q", err, says)
					}
				})
			}
		}
	}
	for kind, put := range regulartest.Kinds {
		for _, file := range []string{"adapter_config.json", "adapters.safetensors"} {
			for _, by := range both {
				t.Run(file+"/"+kind+"/"+by, func(t *testing.T) {
					dir := linked(t, adapter, file)
					says := put(t, filepath.Join(dir, file))
					err := inProcess(t, append(loaders[by](good), "--adapter-path", dir)...)
					if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), says) {
						t.Errorf("the error is %v, want one that names the file and says %q", err, says)
					}
				})
			}
		}
	}
	for _, by := range both {
		if err := inProcess(t, append(loaders[by](linked(t, good)), "--adapter-path", linked(t, adapter))...); err != nil {
			t.Errorf("a folder of links to files: %s: %v", by, err)
		}
	}
}

// TestOddSettings does so with the files that a person names.
func TestOddSettings(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	for kind, put := range regulartest.Kinds {
		for _, flag := range []string{"--config", "--api-key-file", "--script"} {
			t.Run(flag+"/"+kind, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "odd")
				says := put(t, file)
				err := inProcess(t, "serve", flag, file, "--port", "0")
				if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), says) {
					t.Errorf("the error is %v, want one that names the file and says %q", err, says)
				}
			})
		}
		t.Run("the settings file that is there/"+kind, func(t *testing.T) {
			dir := filepath.Join(home, ".config", "hearth")
			if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
				t.Fatal(err)
			}
			says := put(t, filepath.Join(dir, "config.toml"))
			err := inProcess(t, "serve", "--port", "0")
			if err == nil || !strings.Contains(err.Error(), "config.toml") || !strings.Contains(err.Error(), says) {
				t.Errorf("the error is %v, want one that names the file and says %q", err, says)
			}
			_ = os.RemoveAll(dir)
		})
	}
	for _, flag := range []string{"--config", "--api-key-file", "--script"} {
		file := filepath.Join(t.TempDir(), "huge")
		regulartest.Large(t, file)
		err := inProcess(t, "serve", flag, file, "--port", "0")
		if err == nil || !strings.Contains(err.Error(), file+": has "+fmt.Sprint(regulartest.Huge)+" bytes") {
			t.Errorf("%s of a huge file: %v", flag, err)
		}
	}
}
