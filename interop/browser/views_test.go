package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

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
	mux.Handle("/", behind(target))
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

// long: a conversation of 2,000 messages is opened and read from its end to its beginning; only what is gone to is made.
func long(t *testing.T, browser context.Context) {
	server := scripted(t, `{"raw": "Hello."}`)
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(server.URL)
	b.wait("the composer", "document.querySelector('.picker option')")
	b.text(`(() => { const text = 'A paragraph with **some** words, and ' + 'more of them, '.repeat(20) + '\n\n- one\n- two\n\n\u0060\u0060\u0060go\nfunc main() {}\n\u0060\u0060\u0060\n';
		const messages = Array.from({ length: 2000 }, (_, i) => ({ n: i + 1, parent: i, role: i % 2 ? 'assistant' : 'user', text: 'Number ' + (i + 1) + '. ' + text, state: 'done' }));
		const data = new DataTransfer(); data.items.add(new File([JSON.stringify({ format: 'hearth-conversations-1', conversations: [{ title: 'long', leaf: 2000, messages }] })], 'long.json', { type: 'application/json' }));
		const input = document.querySelector('.side-files input'); input.files = data.files; input.dispatchEvent(new Event('change')); })()`)
	b.wait("the conversation", "document.querySelectorAll('.message').length > 0")
	b.run(chromedp.Reload())
	b.text("globalThis.tasks = [], new PerformanceObserver(l => tasks.push(...l.getEntries().map(e => e.duration))).observe({ type: 'longtask', buffered: true })")
	b.wait("its end", "document.querySelector('.prose strong') && document.body.innerText.includes('Number 2000. ')")
	if n := value[int](b, "document.querySelectorAll('.message').length"); n > 60 {
		t.Errorf("%d messages are made at once", n)
	}
	b.text(`(async () => { const s = document.querySelector('.scroller'); while (document.querySelectorAll('.message').length < 2000) { s.scrollTop = 0; await new Promise(requestAnimationFrame); } })()`)
	b.wait("its beginning", "document.querySelectorAll('.message').length === 2000")
	b.wait("Markdown there", "document.querySelector('.message.assistant .prose strong')")
	longest := value[float64](b, "Math.max(0, ...tasks)")
	if t.Logf("the longest task takes %.0f ms, of %s", longest, b.text("tasks.length + ' above 50 ms'")); longest > 1000 { // as busy as the machine is
		t.Errorf("a task takes %.0f ms", longest)
	}
}
