package browser

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"hearth/interop/program"
)

// TestPage tries the page of the server, in one browser.
func TestPage(t *testing.T) {
	if *binary == "" {
		t.Skip("run by make browser")
	}
	browser := start(t)
	for _, tt := range []struct {
		name string
		try  func(t *testing.T, browser context.Context)
	}{
		{"shell", shell}, {"key", key}, {"others", others}, {"docs", docs}, {"chat", chats}, {"reload", reloads}, {"harms", harms}, {"injections", injections}, {"connect", connects}, {"models", shows}, {"needs", needs}, {"watches", watches}, {"lives", lives}, {"long", long},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.try(t, browser) })
	}
}

// scripted is a server whose answers are these lines.
func scripted(t *testing.T, lines string, args ...string) *program.Server {
	t.Helper()
	file := t.TempDir() + "/script.jsonl"
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return program.Serve(t, *binary, nil, io.Discard, append([]string{"--prefix-cache-dir", "off", "--store", "memory", "--script", file}, args...)...)
}

// shell: what is around the views, in both themes and on a phone; how much is fetched for it.
func shell(t *testing.T, browser context.Context) {
	server := scripted(t, `{"raw": "Hello."}`)
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(server.URL)
	b.sees("Ready")
	b.sees("knows next to nothing") // the demo
	b.sees("More models")
	b.axe("light")
	b.text("Promise.all(['live', 'models', 'connect'].map((name) => import('/webui/' + name + '.js'))).then(() => '')") // which come last
	sum := value[float64](b, "performance.getEntriesByType('resource').filter(e => e.name.includes('/webui/')).reduce((n, e) => n + e.encodedBodySize, performance.getEntriesByType('navigation')[0].encodedBodySize)")
	if t.Logf("%.0f bytes are fetched", sum); sum == 0 || sum > 150_000 {
		t.Errorf("%.0f bytes are fetched", sum)
	}
	light := b.text("getComputedStyle(document.body.parentElement).backgroundColor")
	b.size(1280, 800, true)
	if dark := b.text("getComputedStyle(document.body.parentElement).backgroundColor"); dark == light {
		t.Errorf("dark as light: %s", dark)
	}
	b.axe("dark")
	b.press("Theme: as the system")
	if again := b.text("getComputedStyle(document.body.parentElement).backgroundColor"); again != light {
		t.Errorf("light by choice is %s, not %s", again, light)
	}
	b.show(server.URL)
	b.sees("Ready")
	if again := b.text("getComputedStyle(document.body.parentElement).backgroundColor"); again != light {
		t.Errorf("light by choice is %s after a reload, not %s", again, light)
	}
	b.size(390, 844, false)
	b.fits()
	b.press("Menu")
	b.wait("the menu", "document.getElementById('side').getBoundingClientRect().left === 0")
	b.axe("menu")
	for range 2 { // the second time it leads to where one is
		b.click(".side .new")
		b.wait("the end of the menu", "document.getElementById('side').getBoundingClientRect().right <= 0")
		b.press("Menu")
		b.wait("the menu", "document.getElementById('side').getBoundingClientRect().left === 0")
	}
	b.click("#nav a[data-view=models]")
	b.wait("the end of the menu", "document.getElementById('side').getBoundingClientRect().right <= 0")
	b.fits()
	b.axe("phone")

	// A view whose module does not come says so, and the others are there.
	if _, err := chromedp.Call(b.ctx, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: "*://*:*/webui/live.js", Block: true}}}); err != nil {
		t.Fatal(err)
	}
	b.expects("webui/live.js")
	b.show(server.URL + "/?anew#/live")
	b.sees("The server cannot be reached.")
	b.press("Menu")
	b.click("#nav a[data-view=chat]")
	b.sees("What shall we talk about?")
}

// key: the page asks for the key, keeps it for the tab, and no other tab has it.
func key(t *testing.T, browser context.Context) {
	server := scripted(t, `{"raw": "Hello."}`, "--api-key", "secret-of-the-test")
	b := open(t, browser)
	b.expects("401")
	b.show(server.URL)
	b.sees("This server wants a key")
	b.sees("--api-key")
	b.axe("key")
	enter := func(key string) {
		b.text("document.getElementById('key').value = " + quote(key))
		b.press("Continue")
	}
	enter("wrong")
	b.sees("Incorrect API key")
	enter("secret-of-the-test")
	b.wait("the view", "!document.getElementById('key') && document.querySelector('h1')")
	b.show(server.URL + "/#/models")
	b.sees("demo")
	for _, where := range []string{"document.cookie", "JSON.stringify(localStorage)", "location.href", "document.documentElement.outerHTML"} {
		if b.text(where+".includes('secret-of-the-test')") == "true" {
			t.Errorf("the key is in %s", where)
		}
	}
}

// others: who has a key and is not the operator goes through all views, and nothing is asked that would be refused.
func others(t *testing.T, browser context.Context) {
	for _, isolation := range []string{"key", "none"} {
		server := scripted(t, `{"raw": "Hello."}`, "--api-keys", "boss operator key-of-the-boss;ada user key-of-ada", "--cache-isolation", isolation)
		b := open(t, browser)
		b.size(1280, 800, false)
		b.show(server.URL + "/docs") // which asks for no key
		b.text("sessionStorage.setItem('hearth.key', 'key-of-ada')")
		b.show(server.URL)
		b.ask("hello")
		b.answered()
		b.click("#nav a[data-view=live]")
		b.sees("your own requests")
		b.wait("the request", "document.querySelectorAll('.latest details').length === 1")
		b.wait("its own part of the tree, where there is one", "document.querySelector('section[aria-label=\"Stored prompts\"]').checkVisibility() === "+fmt.Sprint(isolation == "key"))
		b.click("#nav a[data-view=models]")
		b.wait("the model", "document.querySelector('.model h2')?.innerText === 'demo'")
		if seen := b.text("[...document.querySelectorAll('.pull, .room, .model button')].filter(e => e.checkVisibility()).map(e => e.className)"); seen != "" {
			t.Errorf("isolation %s: others may use %s", isolation, seen)
		}
		b.click("#nav a[data-view=connect]")
		b.wait("the models", "document.querySelector('#connect-model option')?.value === 'demo'")
	}
}

// TestPlain: what is no browser gets the line of text at /, as before.
func TestPlain(t *testing.T) {
	if *binary == "" {
		t.Skip("run by make browser")
	}
	server := scripted(t, `{"raw": "Hello."}`)
	r, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil || !strings.HasPrefix(body.String(), "hearth is running. APIs:") {
		t.Errorf("%v: %s", err, body.String())
	}
}
