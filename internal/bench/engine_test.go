package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestBenchEngine runs every scenario small: its figures are there, and what does not depend on the machine holds.
func TestBenchEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("runs models for seconds")
	}
	svg := filepath.Join(t.TempDir(), "timeline.svg")
	for name, check := range map[string]string{
		"turns": "prompt tokens cached", "depth": "known tokens computed again", "restore": "known tokens computed again, most", "long": "answer",
		"mixed": "steps to a short prompt's first token, most", "conversations": "cache",
		"forced": "stretches of 8, against free", "forms": "JSON, against free",
	} {
		var out bytes.Buffer
		cmd := NewCmd("dev", "unknown")
		cmd.SetArgs([]string{"engine", name, "--shape", "tiny", "--scale", "0.01", "--svg", svg, "--json"})
		if name == "forms" {
			cmd.SetArgs([]string{"engine", name, "--folder", "../demo/model", "--scale", "0.01", "--json"})
		}
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err != nil {
			t.Fatal(name, err)
		}
		var figures []figure
		if err := json.Unmarshal(out.Bytes(), &figures); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out.String())
		}
		found := false
		for _, f := range figures {
			if f.Name == check {
				found = true
				if f.Limit > 0 && f.Value > f.Limit {
					t.Errorf("%s: %s is %g, above %g", name, f.Name, f.Value, f.Limit)
				}
			}
		}
		if !found {
			t.Errorf("%s: no %q in %s", name, check, out.String())
		}
	}
	f, err := os.Open(svg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := xml.NewDecoder(f); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal("timeline:", err)
		}
	}
}
