package agents

import (
	"os"
	"testing"

	"hearth/internal/vision/visiontest"
	"hearth/interop/program"
)

// TestCodexViewsImage: Codex views an image through its view_image tool, and what the model sees of it is to the bit what
// transformers' image processor makes of the file.
func TestCodexViewsImage(t *testing.T) {
	if *hearthFlag == "" {
		t.Skip("run by make interop, which installs the agents")
	}
	known := visiontest.Reference(t)
	file, err := os.ReadFile(known.File)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, []string{known.Folder, "--served-model-name", "demo", "--log-level", "debug"},
		line{Turn: 1, IfTool: "^view_image$", Raw: toolCall("view_image", `{"path": "a.png"}`)},
		line{Turn: 2, Raw: "I have seen it."})
	r := s.codex(t, "wide", s.project(t, map[string]string{"a.png": string(file)}), "Look at a.png")
	r.says(t, "I have seen it.")
	s.calls(t, responsesPath, 2)
	if got := program.Seen(s.stderr.String()); len(got) != 1 || got[0] != known.Seen {
		t.Errorf("seen %q, want %q", got, known.Seen)
	}
}
