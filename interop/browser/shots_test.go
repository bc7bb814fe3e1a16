package browser

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hearth/interop/program"
)

// TestShots makes the pictures of docs/page.md.
func TestShots(t *testing.T) {
	if *binary == "" || *shots == "" {
		t.Skip("run by make screenshots")
	}
	server := program.Serve(t, *binary, nil, io.Discard, "--prefix-cache-dir", "off", "--store", "memory") // the demo, for figures of its own
	written := scripted(t, strings.Replace(lines, `{"raw": "<think>`, `{"tokens_per_s": 60, "raw": "<think>`, 1))
	b := open(t, start(t))
	shot := func(name string) {
		t.Helper()
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join(*shots, name+".png"), picture, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b.size(1200, 760, false)
	b.show(written.URL)
	b.sees("What shall we talk about?")
	b.sees("Ready")
	b.ask("How would you show a table and some code?")
	b.answered()
	b.wait("the Markdown", "document.querySelector('.prose table')")
	shot("chat")
	b.size(1200, 760, true)
	shot("chat-dark")
	b.size(390, 844, false)
	shot("chat-phone")
	b.size(1200, 760, false)
	b.show(server.URL + "/#/connect/codex")
	b.wait("the model", "document.querySelector('#connect-model option')")
	shot("connect")
	b.show(server.URL + "/#/models")
	b.wait("the model", "document.querySelector('.model')")
	shot("models")
}
