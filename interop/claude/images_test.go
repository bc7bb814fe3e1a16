package claude

import (
	"os"
	"path/filepath"
	"testing"

	"hearth/internal/vision/visiontest"
	"hearth/interop/program"
)

// TestReadsImage: Claude Code reads a PNG through its Read tool, and what the model sees of it is to the bit what transformers'
// image processor makes of the file.
func TestReadsImage(t *testing.T) {
	hearthBinary(t)
	known := visiontest.Reference(t)
	s := serveWith(t, []string{known.Folder, "--served-model-name", "demo", "--log-level", "debug"},
		line{Turn: 1, IfTool: "^Read$", Raw: toolCall(`Read`, `{"file_path": "a.png"}`)},
		line{Turn: 2, Raw: "I have seen it."})
	home := s.home(t)
	file, err := os.ReadFile(known.File)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "project", "a.png"), file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := s.untold(t, home, "-p", "Look at a.png")
	r.says(t, "I have seen it.")
	if got := program.Seen(s.stderr.String()); len(got) != 1 || got[0] != known.Seen {
		t.Errorf("seen %q, want %q", got, known.Seen)
	}
}
