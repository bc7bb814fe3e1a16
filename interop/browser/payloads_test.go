package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// payloads are texts that run something where a page makes markup or code of them. What they run sets ran.
var payloads = strings.Split(strings.TrimSpace(`
<script>ran=1</script>
<SCRIPT SRC=data:,ran=1></SCRIPT>
<script type=module>globalThis.ran=1</script>
<scr<script>ipt>ran=1</scr</script>ipt>
<script/x>ran=1</script>
<script
>ran=1</script>
</script><script>ran=1</script>
</textarea><script>ran=1</script>
</title><script>ran=1</script>
--><script>ran=1</script>
]]><script>ran=1</script>
<img src=x onerror=ran=1>
<img src=x onerror="ran=1">
<img src=x onerror=ran=1//
<img/src=x/onerror=ran=1>
<img """><script>ran=1</script>">
<IMG SRC=x OnErRoR=ran=1>
<img src="x`+"`"+` `+"`"+`onerror=ran=1 x="">
<img srcset="x 1x" onerror=ran=1>
<image href=x onerror=ran=1>
<picture><source srcset=x><img onerror=ran=1 src=x></picture>
<svg onload=ran=1>
<svg/onload=ran=1>
<svg><script>ran=1</script></svg>
<svg><animate onbegin=ran=1 attributeName=x dur=1s>
<svg><a xlink:href="javascript:ran=1"><text>x</text></a></svg>
<svg><use href="data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg><script>ran=1</script></svg>#x"/></svg>
<svg><foreignObject><iframe srcdoc="<script>parent.ran=1</script>"></foreignObject></svg>
<svg><style><img src=x onerror=ran=1></style></svg>
<math><mtext><table><mglyph><style><img src=x onerror=ran=1></style></mglyph></table></mtext></math>
<math href="javascript:ran=1">x</math>
<iframe src="javascript:parent.ran=1"></iframe>
<iframe srcdoc="<script>parent.ran=1</script>"></iframe>
<iframe onload=ran=1></iframe>
<object data="javascript:ran=1"></object>
<embed src="javascript:ran=1">
<body onload=ran=1>
<body onpageshow=ran=1>
<details open ontoggle=ran=1>x</details>
<video src=x onerror=ran=1></video>
<video><source onerror=ran=1></video>
<audio src=x onerror=ran=1>
<input autofocus onfocus=ran=1>
<select autofocus onfocus=ran=1>
<textarea autofocus onfocus=ran=1>
<button autofocus onfocus=ran=1>x</button>
<a autofocus onfocus=ran=1 href=#>x</a>
<div style="animation-name:pulse;animation-duration:1ms" onanimationstart=ran=1>x</div>
<div tabindex=0 autofocus onfocusin=ran=1>x</div>
<marquee onstart=ran=1>x</marquee>
<form action="javascript:ran=1"><button autofocus>x</button></form>
<form><button formaction="javascript:ran=1">x</button></form>
<isindex action="javascript:ran=1">
<meta http-equiv=refresh content="0;url=javascript:ran=1">
<meta http-equiv=Content-Security-Policy content="script-src *">
<base href="data:/,ran=1//">
<link rel=stylesheet href="data:text/css,*{color:red}">
<link rel=import href="data:text/html,<script>ran=1</script>">
<style>@import 'data:text/css,*{color:red}';</style>
<style onload=ran=1></style>
<template><script>ran=1</script></template>
<noscript><p title="</noscript><img src=x onerror=ran=1>">
<xmp><p title="</xmp><img src=x onerror=ran=1>">
<plaintext><img src=x onerror=ran=1>
<!--<img src="--><img src=x onerror=ran=1//">
<![CDATA[<img src=x onerror=ran=1>]]>
<?xml-stylesheet href="javascript:ran=1"?>
[x](javascript:ran=1)
[x](JaVaScRiPt:ran=1)
[x](java&#115;cript:ran=1)
[x](&#x6A;avascript:ran=1)
[x](java%0ascript:ran=1)
[x]( javascript:ran=1)
[x](<javascript:ran=1>)
[x](data:text/html,<script>ran=1</script>)
[x](vbscript:ran=1)
[x](blob:http://localhost/x)
[x](https://example.com/" onmouseover="ran=1)
[x](https://example.com/ "x" onmouseover=ran=1)
![x](javascript:ran=1)
![x" onerror="ran=1](https://example.com/x.png)
![x](https://example.com/" onerror="ran=1)
<javascript:ran=1>
javascript:ran=1
`+"```\"><img src=x onerror=ran=1>"+`
`+"`<img src=x onerror=ran=1>`"+`
| <img src=x onerror=ran=1> | b |
- <img src=x onerror=ran=1>
> <script>ran=1</script>
# <svg onload=ran=1>
&lt;img src=x onerror=ran=1&gt;
&#60;img src=x onerror=ran=1&#62;
%3Cimg%20src=x%20onerror=ran=1%3E
\u003cimg src=x onerror=ran=1\u003e
{{constructor.constructor('ran=1')()}}
${ran=1}
';ran=1;//
";ran=1;//
<img src=x onerror=ran=1 `+"\x00"+`>
＜img src=x onerror=ran=1＞
`), "\n")

// behind passes requests on. Its connections are its own: those of the default transport are closed with any server of a test.
func behind(target *url.URL) http.Handler {
	p := httputil.NewSingleHostReverseProxy(target)
	p.Transport = &http.Transport{DisableKeepAlives: true}
	return p
}

// stub answers in the model's place, what its client asks for: all payloads as text in small pieces, as tools, or as an error.
// Where it cleans nothing, Markdown is given back as it came.
func stub(target *url.URL, cleans *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", behind(target))
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		var list []map[string]any
		for _, p := range payloads {
			list = append(list, map[string]any{"id": p, "kind": "chat", "description": p, "state": p, "quantization": p, "context_length": 1000})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": list})
	})
	mux.HandleFunc("POST /v1/markdown", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && cleans.Load() {
			r.Body = io.NopCloser(bytes.NewReader(body))
			behind(target).ServeHTTP(w, r)
			return
		}
		var q struct{ Texts []string }
		_ = json.Unmarshal(body, &q) // the page's own
		_ = json.NewEncoder(w).Encode(map[string]any{"html": q.Texts})
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Messages []struct{ Content any } }
		_ = json.NewDecoder(r.Body).Decode(&q) // the page's own
		ask := fmt.Sprint(q.Messages[len(q.Messages)-1].Content)
		send := func(v any) {
			text, _ := json.Marshal(v)
			fmt.Fprintf(w, "data: %s\n\n", text)
			w.(http.Flusher).Flush()
		}
		delta := func(d map[string]any) { send(map[string]any{"choices": []any{map[string]any{"delta": d}}}) }
		var n int
		switch {
		case ask == "text":
			for i, p := range payloads {
				text := p + "\n\n"
				for size := i%5 + 1; text != ""; {
					piece := text[:min(size, len(text))]
					for !json.Valid([]byte(quote(piece))) || strings.ContainsRune(quote(piece), '�') && len(piece) < len(text) {
						piece = text[:len(piece)+1]
					}
					delta(map[string]any{"content": piece, "reasoning_content": piece})
					text = text[len(piece):]
				}
			}
		case ask == "tools":
			for i, p := range payloads {
				delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": p, "function": map[string]any{"name": p, "arguments": p}}}})
			}
		default:
			if _, err := fmt.Sscanf(ask, "refuse %d", &n); err == nil {
				w.WriteHeader(http.StatusBadRequest)
				_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": payloads[n]}})
				return
			}
			_, _ = fmt.Sscanf(ask, "error %d", &n)
			delta(map[string]any{"content": "x"})
			send(map[string]any{"error": map[string]any{"message": payloads[n]}})
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
	return mux
}

// leftovers is an expression for what of the page is markup that might run something.
const leftovers = `[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => /^on/i.test(a.name) || a.name === 'srcdoc' || a.name === 'style') ||
	(e.closest('main, .side') && /^(script|iframe|object|embed|base|link|meta|style|template|math|video|audio|marquee|form|use|animate|foreignobject)$/i.test(e.tagName) && !e.matches('.composer, .edit')) ||
	(e.matches('a[href]') && !/^(https?:|mailto:)/.test(e.protocol)) || (e.matches('img') && !/^(data:image|blob:)/.test(e.src))).map(e => e.outerHTML.slice(0, 200))`

// harms: in a page that makes markup of whatever it is told, payloads run, and what they leave is found.
func harms(t *testing.T, browser context.Context) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>x</title><main></main>")
	}))
	t.Cleanup(server.Close)
	b := open(t, browser)
	b.expects("") // all of it
	b.show(server.URL)
	if left := b.text(leftovers); left != "" {
		t.Errorf("an empty page leaves %s", left)
	}
	found := 0
	for _, p := range payloads {
		if b.text("(document.querySelector('main').innerHTML = "+quote(p)+", "+leftovers+")") != "" {
			found++
		}
	}
	if found < 60 {
		t.Errorf("only %d payloads leave something in such a page", found)
	}
	b.wait("what ran", "typeof ran !== 'undefined'")
}

// injections: none of the payloads runs, wherever it comes from, and none leaves anything in the page that might.
func injections(t *testing.T, browser context.Context) {
	if len(payloads) < 60 {
		t.Fatalf("only %d payloads", len(payloads))
	}
	target, err := url.Parse(scripted(t, `{"raw": "Hello."}`).URL)
	if err != nil {
		t.Fatal(err)
	}
	var cleans atomic.Bool
	cleans.Store(true)
	server := httptest.NewServer(stub(target, &cleans))
	t.Cleanup(server.Close)
	live := httptest.NewServer(watched(target, true, len(payloads), func(i int) string { return payloads[i%len(payloads)] }))
	t.Cleanup(live.Close)
	b := open(t, browser)
	b.size(1280, 800, false)
	b.expects("status of 400") // what is refused
	harmless := func(from string) {
		t.Helper()
		b.text("new Promise(done => setTimeout(done, 50))") // for what runs by itself a little later
		if b.text("typeof ran") != "undefined" {
			t.Errorf("something of %s ran", from)
		}
		if left := b.text(leftovers); left != "" {
			t.Errorf("%s leaves %s", from, left)
		}
		b.complaints()
	}
	b.show(server.URL)
	b.wait("the models", "document.querySelectorAll('.picker option').length === "+fmt.Sprint(len(payloads)))
	harmless("names of models")
	b.ask("text")
	b.wait("the answer", "document.querySelector('.message.assistant .actions') && !document.querySelector('.prose .open')")
	b.text("document.querySelector('.thought').open = true")
	harmless("an answer")
	if got := value[int](b, "document.querySelector('.prose').innerText.split('ran=1').length"); got < len(payloads)/2 {
		t.Errorf("only %d payloads are to be seen as text", got)
	}
	b.ask("tools")
	b.wait("the calls", "document.querySelectorAll('.call').length === "+fmt.Sprint(len(payloads)))
	harmless("calls of tools")
	for n := 0; n < len(payloads); n += 9 {
		b.ask(fmt.Sprintf("error %d", n))
		b.wait("the error", "document.querySelector('.message.assistant:last-child .note.bad')")
		b.ask(fmt.Sprintf("refuse %d", n))
		b.wait("the error", "document.querySelector('.message.assistant:last-child .note.bad[role=alert]')")
	}
	harmless("errors")
	all, err := json.Marshal(payloads)
	if err != nil {
		t.Fatal(err)
	}
	b.text(`(() => { const data = new DataTransfer(); for (const p of ` + string(all) + `) data.items.add(new File(['x'], p, { type: 'image/png' }));
		document.getElementById('prompt').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })); })()`)
	b.expects("data:image/png;base64,eA==") // which is no picture
	b.wait("the files", "document.querySelectorAll('.attached img').length === "+fmt.Sprint(len(payloads)))
	harmless("names of files")
	b.text(`(() => { const all = ` + string(all) + `; const evil = (p) => ({ id: p, title: p, at: p, leaf: p, settings: { system: p, model: p, tools: p, temperature: p }, html: p, messages: [
			{ n: 1, parent: 0, role: 'user', text: p, images: [{ name: p, url: p }, { name: p, url: 'javascript:ran=1' }] },
			{ n: 2, parent: 1, role: 'assistant', text: p, reasoning: p, error: p, finish: p, state: p, html: p, stats: { rate: p, first: p }, calls: [{ id: p, name: p, arguments: p, result: p }] },
			{ n: 3, parent: 2, role: p, text: p }, { n: 4, parent: 9, text: p }, null, p] });
		const data = new DataTransfer(); data.items.add(new File([JSON.stringify({ format: 'hearth-conversations-1', conversations: [...all.map(evil), null, all[0]] })], all[0], { type: 'application/json' }));
		const input = document.querySelector('.side-files input'); input.files = data.files; input.dispatchEvent(new Event('change')); })()`)
	b.wait("the import", "document.querySelectorAll('.conversation').length >= "+fmt.Sprint(len(payloads)))
	b.wait("its conversation", "document.querySelectorAll('.message').length === 3")
	for n := 0; n < len(payloads); n += 9 {
		b.text(fmt.Sprintf("document.querySelectorAll('.conversation')[%d].click()", n))
		b.wait("a conversation", fmt.Sprintf("document.querySelectorAll('.conversation')[%d].getAttribute('aria-current') === 'page' && document.querySelectorAll('.message').length === 3", n))
	}
	harmless("imports")
	for n := 0; n < len(payloads); n += 9 {
		b.text("location.hash = '#/chat/' + encodeURIComponent(" + quote(payloads[n]) + ")")
		b.text("location.hash = '#/' + " + quote(payloads[n]))
	}
	harmless("addresses")

	b.show(live.URL + "/#/live/" + url.PathEscape(payloads[len(payloads)-1]))
	b.wait("the requests", fmt.Sprintf("document.querySelectorAll('.request').length >= %d && document.querySelectorAll('.node').length > %[1]d", len(payloads)))
	b.text("(async () => { const more = document.querySelector('.latest').parentNode.nextSibling; while (!more.hidden) { more.click(); await 0; } })()")
	b.text("document.querySelectorAll('details').forEach(d => { d.open = true })")
	b.wait("their traces", fmt.Sprintf("document.querySelectorAll('.latest details .parting').length >= %d && document.querySelector('.numbers li')", len(payloads)))
	b.text("document.querySelectorAll('.node').forEach(n => n.dispatchEvent(new PointerEvent('pointerover', { bubbles: true })))")
	harmless("what is live")
	if got := value[int](b, "document.querySelector('.page.live').innerText.split('ran=1').length"); got < 4*len(payloads) {
		t.Errorf("only %d payloads are to be seen as text in the live view", got)
	}

	cleans.Store(false)
	b.expects("Content Security Policy") // which no handler passes even in a document that is never shown
	b.show(server.URL)
	b.ask("text")
	b.wait("the answer", "document.querySelector('.message.assistant .actions') && !document.querySelector('.prose .open')")
	harmless("an answer of which nothing was cleaned")
}
