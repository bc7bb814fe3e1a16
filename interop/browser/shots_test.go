package browser

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	browser := start(t)
	target, err := url.Parse(written.URL)
	if err != nil {
		t.Fatal(err)
	}
	shelves := httptest.NewServer(shelf(target))
	t.Cleanup(shelves.Close)
	agents := program.Serve(t, *binary, nil, io.Discard, "--prefix-cache-dir", t.TempDir(), "--store", "memory") // the demo, for agents
	b := open(t, browser)
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
	others := func(name string) {
		b.size(1200, 760, true)
		shot(name + "-dark")
		b.size(390, 844, false)
		shot(name + "-phone")
		b.size(1200, 760, false)
	}
	others("chat")
	b.show(server.URL + "/#/connect/codex")
	b.wait("the model", "document.querySelector('#connect-model option')")
	shot("connect")
	others("connect")
	b.show(shelves.URL + "/#/models")
	b.wait("the models", "document.querySelectorAll('.model .shares').length === 4")
	shot("models")
	others("models")
	b = open(t, browser)
	live(b, agents.URL, shot)
}

// live makes pictures of the live view while the demo answers some agents, whose prompts begin alike or do not.
func live(b *tab, server string, shot func(string)) {
	busy, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer stop()
	tools := strings.Repeat("You are a coding agent with tools for reading, writing and searching. Say what you do and why. ", 40)
	helper := strings.Repeat("You are a helper who answers in plain words, and says so when something is not known. ", 12)
	questions := []string{"Fix the failing test of the cart", "What is 17 + 25?", "Tell me a story", "Write the changelog", "What can you do?", "Rename the field price"}
	for agent := range 4 {
		ended.Go(func() {
			for n := agent; busy.Err() == nil; n++ {
				system := []string{tools, helper}[agent%2]
				if n%3 == 2 {
					system = fmt.Sprint(helper, "It is now ", n*7, " minutes past noon. ", tools)
				}
				messages := []object{{"role": "system", "content": system}}
				for turn := range 5 {
					question := questions[(n+turn)%len(questions)] + strings.Repeat(". This is a line of the log", (n+turn)%5*9)
					messages = append(messages, object{"role": "user", "content": question})
					_, answer := talk(b.t, server, fmt.Sprintf("agent-%d", agent), 100, messages)
					messages = append(messages, object{"role": "assistant", "content": answer})
				}
			}
		})
	}
	b.size(1200, 1500, false)
	b.show(server + "/#/live")
	b.text("new Promise(done => setTimeout(done, 40_000))") // so that there is something to see over time
	shot("live")
	b.size(1200, 1500, true)
	b.wait("a slow one", "document.querySelector('.latest .much')")
	b.text("document.querySelector('.latest .much').closest('details').open = true")
	b.wait("the trace", "document.querySelector('.latest .phases')")
	b.text("document.getElementById('main').scrollTop = 1e6")
	shot("live-dark")
	b.size(390, 844, false)
	b.text("document.getElementById('main').scrollTop = 0")
	shot("live-phone")
}
