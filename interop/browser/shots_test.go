package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestShots makes the pictures of docs/page.md.
func TestShots(t *testing.T) {
	if *binary == "" || *shots == "" {
		t.Skip("run by make screenshots")
	}
	server := scripted(t, lines)
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
	b.show(server.URL)
	b.sees("What shall we talk about?")
	b.sees("Ready")
	shot("welcome")
	b.ask("How would you show a table and some code?")
	b.answered()
	b.wait("the Markdown", "document.querySelector('.prose table')")
	shot("chat")
	b.size(1200, 760, true)
	shot("chat-dark")
	b.press("Settings of this conversation")
	shot("settings-dark")
	b.press("Close")
	b.size(390, 844, false)
	shot("chat-phone")
	b.press("Menu")
	shot("menu-phone")
}
