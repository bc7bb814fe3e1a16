package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hearth/internal/demo"
	"hearth/internal/hub/hubtest"
	"hearth/interop/program"
)

// connects: what each client is told has this server's address, model and key, the key hidden; the test answers.
func connects(t *testing.T, browser context.Context) {
	const key = `secret"of'the-test` // which no set-up has as it is
	server := scripted(t, `{"raw": "Hello there."}`, "--api-key", key, "--context-length", "8192")
	b := open(t, browser)
	b.size(1280, 800, false)
	b.expects("401")
	b.show(server.URL + "/#/connect")
	b.sees("This server wants a key")
	b.text("document.getElementById('key').value = " + quote(key))
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
		if strings.Contains(shown, "secret") || !strings.Contains(shown, "••••") || !strings.Contains(shown, server.URL) && name != "Claude Code" || !strings.Contains(shown, "demo") && name != "Open WebUI" {
			t.Errorf("%s: %s", name, shown)
		}
		copied := b.text("[...document.querySelectorAll('.blocks button')].reduce(async (all, e) => { const before = await all; e.click(); await 0; return before + copied; }, '')")
		if !strings.Contains(copied, "secret") || strings.Contains(copied, "••") {
			t.Errorf("%s copies %s", name, copied)
		}
	}
	b.press("Claude Code")
	b.sees("The prompt of Claude Code itself has some 14,000 tokens. A context of 8,192 has no room for it")
	b.press("opencode")
	b.sees("itself has some 5,500 tokens. A context of 8,192 leaves little for a session")
	b.axe("connect")
	b.sees("Copy has it")
	b.press("Test it")
	b.sees("It works.")
	b.sees("Hello there.")
	b.size(390, 844, true)
	b.fits()
	b.axe("connect, phone, dark")
}

// shows: models that are loaded, where the memory is, and one that is fetched from a hub, loaded and unloaded.
func shows(t *testing.T, browser context.Context) {
	h := hubtest.New(t)
	files := map[string]hubtest.File{}
	for _, name := range []string{"config.json", "generation_config.json", "chat_template.jinja", "tokenizer.json", "tokenizer_config.json", "model.safetensors"} {
		body, err := fs.ReadFile(demo.FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = hubtest.File{Size: int64(len(body)), Content: bytes.NewReader(body), LFS: name == "model.safetensors"}
	}
	h.Add("org/little", files)
	h.Faults.PerSecond = 16 << 20 // so that it is seen on its way
	dir := t.TempDir()
	server := program.Serve(t, *binary, append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "HF_HUB_CACHE="+dir+"/hub", "HF_ENDPOINT="+h.URL), io.Discard,
		"--prefix-cache-dir", "off", "--store", "memory")
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(server.URL + "/#/models")
	b.wait("the model", "document.querySelector('.model h2')?.innerText === 'demo' && document.querySelector('.model .badge.good')")
	b.wait("the memory", "document.querySelector('[aria-label=Memory]:not([hidden]) .series li')")
	b.axe("models")
	b.text(`(() => { globalThis.said = []; const e = document.querySelector('.pull [aria-live]');
		new MutationObserver(() => said.push(e.innerText + ' ' + (e.querySelector('progress')?.value ?? ''))).observe(e, { childList: true, subtree: true, characterData: true, attributes: true }); })()`)
	b.text("document.getElementById('pull').value = 'org/little'")
	b.press("Fetch")
	b.sees("org/little is here. Chat with it")
	said := b.text("said.join('\\n')")
	for _, want := range []string{`\d MB of 9\.\d MB(, .* a second)?(.|\n)* 0\.\d`, `It takes \d+ MB of memory with 8,192 tokens of context, and fits\.`} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("nothing said %s:\n%s", want, said)
		}
	}
	state := func(want string) {
		t.Helper()
		b.wait("the state "+want, "document.querySelector('.model[aria-label=\"org/little\"] .badge')?.innerText === "+quote(want))
	}
	state("on disk")
	b.sees("MB with 8,192 tokens of context: fits")
	b.text("(e => { e.value = '4096'; e.dispatchEvent(new Event('change')); })(document.getElementById('context'))")
	b.sees("MB with 4,096 tokens of context: fits")
	b.axe("a model on disk")
	b.press("Load org/little")
	state("loaded")
	b.press("Unload org/little")
	state("on disk")
	b.press("Connect to org/little")
	b.wait("the model", "document.querySelector('#connect-model').value === 'org/little'")
	b.sees("A context of 8,192 has no room for it")
	b.press("Codex")
	b.wait("the model of another client", "document.querySelector('section h2').innerText === 'Codex' && document.querySelector('#connect-model').value === 'org/little'")
	b.click("#nav a[data-view=models]")
	b.press("Chat with org/little")
	b.wait("the model of the chat", "document.querySelector('.picker')?.value === 'org/little'")
	b.click("#nav a[data-view=models]")
	b.wait("the field", "document.querySelector('.pull:not([hidden])')")

	b.text("document.getElementById('pull').value = 'org/other'")
	b.expects("/hearth/models/pull") // is refused
	b.press("Fetch")
	b.sees("org/other")
	b.wait("the error", "document.querySelector('.pull .note.bad')?.innerText.includes('org/other')")
	b.size(390, 844, true)
	b.fits()
	b.axe("models, phone, dark")
}

// shelf answers in the server's place which models there are: one that is loaded, and others that fit, fit alone, and do not.
func shelf(target *url.URL) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", behind(target))
	const gb = 1_000_000_000
	row := func(id string, weights int64, more object) object {
		m := object{"id": id, "kind": "chat", "status": "on_disk", "state": "whole", "model_type": "qwen3", "bits": 4, "bytes": weights, "context": 40960}
		maps.Copy(m, more)
		return m
	}
	need := func(bytes int64, fits, beside bool) object {
		return object{"memory": object{"context": 32768, "bytes": bytes, "fits": fits, "beside": beside}}
	}
	mux.HandleFunc("GET /hearth/models", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(object{"memory": object{"capacity_bytes": 24 * gb, "held_bytes": 6 * gb, "free_bytes": 14 * gb}, "models": []object{
			row("mlx-community/Qwen3-4B-4bit", 2.3*gb, object{"status": "loaded", "pinned": true, "default": true, "held_bytes": 6 * gb}),
			row("mlx-community/Qwen3-8B-4bit", 4.6*gb, need(9.7*gb, true, true)),
			row("mlx-community/Qwen3-30B-A3B-4bit", 17.2*gb, need(20.4*gb, true, false)),
			row("mlx-community/Qwen3-32B-4bit", 18.4*gb, need(27.3*gb, false, false)),
		}})
	})
	return mux
}

// needs: it is seen at a glance what models on the disk would take, and which fit.
func needs(t *testing.T, browser context.Context) {
	target, err := url.Parse(scripted(t, `{"raw": "Hello."}`).URL)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(shelf(target))
	t.Cleanup(server.Close)
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(server.URL + "/#/models")
	for i, want := range []string{"It has 6.0 GB of memory.", "9.7 GB with 32,768 tokens of context: fits", "20.4 GB with 32,768 tokens of context: fits when others have gone", "27.3 GB with 32,768 tokens of context: more than the 24.0 GB that models may have"} {
		b.wait(want, fmt.Sprintf("[...document.querySelectorAll('.model')[%d]?.querySelectorAll('.small') ?? []].at(-1)?.textContent === %s", i, quote(want)))
	}
	// Each bar begins with what others have, and shows in its colour whether the rest is enough.
	const drawn = "[...document.querySelectorAll('.model .shares')].map(bar => [...bar.querySelectorAll('rect')].map(r => r.getAttribute('class').trim() + ' ' + Math.round(r.getAttribute('width') / 10)).join(', ')).join('; ')"
	if got, want := b.text(drawn), "area need 25, area others 17; area held 25, area others 17, area need 40; area held 25, area others 17, area need tight 58; area held 25, area others 17, area need over 58"; got != want {
		t.Errorf("drawn is\n%s, not\n%s", got, want)
	}
	b.axe("what models take")
	b.size(390, 844, true)
	b.fits()
	b.axe("what models take, phone, dark")
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
	b.wait("its end", "document.querySelector('.message:last-child .prose strong') && document.querySelector('.message:last-child').textContent.includes('Number 2000. ')")
	made := "document.querySelectorAll('.message').length"
	if n := value[int](b, made); n > 60 {
		t.Errorf("%d messages are made at once", n)
	}
	b.text(`(async () => { const s = document.querySelector('.scroller'), list = document.getElementsByClassName('message'); globalThis.most = 0;
		for (let n = 0; list.length < 2000; n = list.length) { s.scrollTop = 0; await new Promise(requestAnimationFrame); if (n) most = Math.max(most, list.length - n); } })()`)
	b.wait("its beginning", made+" === 2000")
	b.wait("Markdown there", "document.querySelector('.message.assistant .prose strong')")
	if n := value[int](b, "most"); n == 0 || n > 24 {
		t.Errorf("up to %d messages are made in a frame", n)
	}
	if n := value[int](b, "document.querySelectorAll('.message.assistant .prose:not(.raw)').length"); n == 1000 {
		t.Error("Markdown is made of messages that nobody has looked at")
	}
	t.Logf("the longest task takes %.0f ms, of %s", value[float64](b, "Math.max(0, ...tasks)"), b.text("tasks.length + ' above 50 ms'")) // as busy as the machine is
}
