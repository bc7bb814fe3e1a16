//go:build unix

package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/hub/hubtest"
)

var writeTranscript = flag.Bool("transcript", false, "write the session of docs/models.md")

// transcript is what a person types and what comes of it.
type transcript struct {
	strings.Builder
	hide *strings.Replacer // of what is this machine's
}

// add writes a command and the lines that it prints.
func (s *transcript) add(typed, printed string) {
	s.WriteString("$ " + typed + "\n" + s.hide.Replace(printed))
}

// TestTranscript holds the session of docs/models.md to what commands print, but for numbers: a pull from a hub that cuts
// connections, broken off and gone on with, then a server by name and a model that comes on demand and goes.
func TestTranscript(t *testing.T) {
	if testing.Short() {
		t.Skip("a model takes seconds to be idle")
	}
	h := hubtest.New(t)
	files := demoFiles(t)
	weights := files["model.safetensors"].Size
	for _, id := range []string{"org/tiny", "org/other"} {
		h.Add(id, files)
	}
	home := t.TempDir()
	env := []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + home, "HF_ENDPOINT=" + h.URL}
	cdn := strings.TrimPrefix(h.CDN, "http://")
	s := &transcript{hide: strings.NewReplacer(home, "~", h.URL, "https://hub.example", cdn, "files.hub.example")}
	run := func(args ...string) string {
		t.Helper()
		out, err := command(t, env, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("hearth %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	hearth := func(args ...string) { s.add("hearth "+strings.Join(args, " "), run(args...)) }

	// Every connection ends after 1 MB; Ctrl-C ends the first pull after some.
	h.Set(func(h *hubtest.Hub) { h.Faults.CutEvery, h.Faults.PerSecond = 1_000_000, 4_000_000 })
	pull := command(t, env, "pull", "org/tiny")
	var printed strings.Builder
	pull.Stdout, pull.Stderr = &printed, &printed
	if err := pull.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); h.Sent("model.safetensors") < 3_500_000; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nothing comes: %s", printed.String())
		}
	}
	if err := pull.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := pull.Wait(); err == nil {
		t.Fatalf("it is not broken off: %s", printed.String())
	}
	s.add("hearth pull org/tiny", "^C\n"+printed.String())
	h.Set(func(h *hubtest.Hub) { h.Faults.PerSecond = 0 })
	hearth("ls")
	hearth("pull", "org/tiny")
	connections := 0
	for _, r := range h.Requests() {
		if strings.Contains(r, "GET cdn") {
			connections++
		}
	}
	if n := h.Sent("model.safetensors"); n > weights+512<<10 {
		t.Errorf("%d bytes came of %d", n, weights)
	}
	fmt.Fprintf(s, "# %d connections, none for longer than 1 MB; %.1f MB came of %.1f MB\n", connections, float64(h.Sent("model.safetensors"))/1e6, float64(weights)/1e6)
	hearth("pull", "org/other")
	hearth("ls")

	p := start(t, env, "org/tiny", "--idle-unload", "6s", "--host", "127.0.0.1")
	var served strings.Builder
	for _, line := range p.lines {
		switch word, _, _ := strings.Cut(line, " "); word {
		case "listening", "model:":
			served.WriteString(line + "\n")
		case "ready":
			parts := strings.SplitN(line, ", ", 4) // what follows is the machine's
			served.WriteString(strings.Join(parts[:3], ", ") + ", …\n")
		}
	}
	s.hide = strings.NewReplacer(home, "~", p.url, "http://127.0.0.1:8080")
	s.add("hearth serve org/tiny --idle-unload 6s --host 127.0.0.1 &", served.String())
	_, body := request(t, "POST", p.url+"/v1/chat/completions", `{"model": "other", "messages": [{"role": "user", "content": "What is 3 + 4?"}], "temperature": 0}`)
	s.add(`curl -s localhost:8080/v1/chat/completions -d '{"model": "other", "messages": [{"role": "user", "content": "What is 3 + 4?"}], "temperature": 0}' | jq -c '.model, .choices[0].message.content'`,
		regexp.MustCompile(`.*"model":("[^"]*").*"content":("[^"]*").*\n`).ReplaceAllString(string(body), "$1\n$2\n"))
	hearth("ps")
	gone := ""
	for deadline := time.Now().Add(30 * time.Second); ; {
		if gone = run("ps"); !strings.Contains(gone, "org/other") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not go: %s", gone)
		}
	}
	s.add("sleep 6; hearth ps", gone)

	file := filepath.Join("..", "..", "docs", "models.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- written by TestTranscript -->\n```\n", "```\n<!-- end -->"
	before, rest, ok := strings.Cut(string(text), begin)
	is, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for it", file)
	}
	if *writeTranscript {
		if err := os.WriteFile(file, []byte(before+begin+s.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(shapes(is), shapes(s.String())); d != "" {
		t.Errorf("go test ./internal/cli -run TestTranscript -transcript writes it anew; docs/models.md (-) and what is printed (+):\n%s", d)
	}
}

// shapes is a text without its numbers, and with one space in place of several.
func shapes(s string) []string {
	s = regexp.MustCompile(`\d[\d.,]*( ?(bytes|[kMGT]i?B|ms|s)\b)?`).ReplaceAllString(s, "0")
	s = regexp.MustCompile(`[a-f\d]{10,}`).ReplaceAllString(s, "0")
	return strings.Split(regexp.MustCompile(` +`).ReplaceAllString(s, " "), "\n")
}
