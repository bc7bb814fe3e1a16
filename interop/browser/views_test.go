package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"hearth/interop/program"
)

// connects: what each client is told has this server's address, model and key, the key hidden; the test answers.
func connects(t *testing.T, browser context.Context) {
	server := scripted(t, `{"raw": "Hello there."}`, "--api-key", "secret-of-the-test")
	b := open(t, browser)
	b.size(1280, 800, false)
	b.expects("401")
	b.show(server.URL + "/#/connect")
	b.sees("This server wants a key")
	b.text("document.getElementById('key').value = 'secret-of-the-test'")
	b.press("Continue")
	b.wait("the models", "document.querySelector('#connect-model option')?.value === 'demo'")
	b.text(`Object.defineProperty(navigator, 'clipboard', { value: { writeText: (t) => { globalThis.copied = t; return Promise.resolve(); } } })`)
	names := strings.Split(b.text("[...document.querySelectorAll('.clients a')].map(a => a.innerText).join()"), ",")
	if len(names) != 14 {
		t.Errorf("there are %d clients: %q", len(names), names)
	}
	for _, name := range names {
		b.press(name)
		b.wait(name, "document.querySelector('section h2')?.innerText === "+quote(name)+" && document.querySelector('#connect-model option')")
		shown := b.text("document.querySelector('.blocks').innerText")
		if strings.Contains(shown, "secret-of-the-test") || !strings.Contains(shown, "••••") || !strings.Contains(shown, server.URL) && name != "Claude Code" || !strings.Contains(shown, "demo") && name != "Open WebUI" {
			t.Errorf("%s: %s", name, shown)
		}
		copied := b.text("[...document.querySelectorAll('.blocks button')].reduce(async (all, e) => { const before = await all; e.click(); await 0; return before + copied; }, '')")
		if !strings.Contains(copied, "secret-of-the-test") || strings.Contains(copied, "••") {
			t.Errorf("%s copies %s", name, copied)
		}
	}
	b.axe("connect")
	b.press("Test it")
	b.sees("It works.")
	b.sees("Hello there.")
	b.size(390, 844, true)
	b.fits()
	b.axe("connect, phone, dark")
}

// shows: models that are loaded, where the memory is, and a model that is fetched; a proxy answers for the hub.
func shows(t *testing.T, browser context.Context) {
	target, err := url.Parse(program.Serve(t, *binary, nil, io.Discard, "--prefix-cache-dir", "off", "--store", "memory").URL) // the demo
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", httputil.NewSingleHostReverseProxy(target))
	more := make(chan struct{})
	mux.HandleFunc("POST /hearth/models/pull", func(w http.ResponseWriter, _ *http.Request) {
		tell := func(event string) {
			fmt.Fprintf(w, "data: %s\n\n", event)
			w.(http.Flusher).Flush()
		}
		tell(`{"event":"plan","id":"org/model","bytes":2000000000,"missing":2000000000,"need":3000000000,"context":32768,"memory":9000000000,"fits":true}`)
		tell(`{"event":"progress","done":500000000,"total":2000000000,"rate":1000000}`)
		<-more
		tell(`{"event":"done","id":"org/model"}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(server.URL + "/#/models")
	b.wait("the model", "document.querySelector('.model h2')?.innerText === 'demo' && document.querySelector('.model .badge.good')")
	b.wait("the memory", "document.querySelector('.memory:not([hidden]) .legend li')")
	b.axe("models")
	b.text("document.getElementById('pull').value = 'org/model'")
	b.press("Fetch")
	b.sees("500 MB of 2.0 GB, 1.0 MB a second")
	b.sees("It takes 3.0 GB of memory with 32,768 tokens of context, and fits.")
	b.axe("a model that is fetched")
	close(more)
	b.sees("org/model is here.")
	b.size(390, 844, true)
	b.fits()
	b.axe("models, phone, dark")
}
