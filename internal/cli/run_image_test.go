package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/vision/visiontest"
)

// TestRunImage: run shows a model images, and show says how it sees.
func TestRunImage(t *testing.T) {
	dir, files := visiontest.Folder(t, "qwen3_vl"), t.TempDir()
	file := func(name string, b []byte) string {
		path := filepath.Join(files, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, other := file("one.png", visiontest.PNG(t, 60, 40, 1)), file("other.png", visiontest.PNG(t, 60, 40, 2))
	run := func(args ...string) (string, error) {
		var out, notes bytes.Buffer
		cmd := newRootCmd()
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&notes)
		err := cmd.Execute()
		return out.String(), err
	}
	ask := func(images ...string) string {
		args := []string{"run", dir, "What is this?", "--max-tokens", "8", "--temp", "0"}
		for _, name := range images {
			args = append(args, "--image", name)
		}
		out, err := run(args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if first := ask(one); first != ask(one) || first == ask(other) || first == ask(one, other) || first == ask() {
		t.Errorf("an image does not decide the answer: %q, %q, %q, %q", first, ask(other), ask(one, other), ask())
	}
	for want, args := range map[string][]string{
		"demo cannot see images":               {"run", "demo", "Hi", "--image", one},
		"--image: stat " + files + "/none.png": {"run", dir, "Hi", "--image", files + "/none.png"},
		"the image":                            {"run", dir, "Hi", "--image", file("text.png", []byte("no image"))},
	} {
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	out, err := run("show", dir)
	if err != nil || !strings.Contains(out, "tower of qwen3_vl") || !strings.Contains(out, " tokens for 1000 by 1000 pixels") {
		t.Errorf("%v:\n%s", err, out)
	}
	if out, err := run("show", "demo"); err != nil || strings.Contains(out, "tower") {
		t.Errorf("%v:\n%s", err, out)
	}
}
