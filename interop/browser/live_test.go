package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"hearth/interop/program"
)

// object is one of JSON.
type object = map[string]any

// watched answers in the server's place what the live view asks for: a few requests, nodes and traces, and so many more of each.
// text is what every name, label and error is made of, by number.
func watched(target *url.URL, operator bool, more int, text func(i int) string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", behind(target))
	answer := func(path string, operators bool, body func(r *http.Request) any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if operators && !operator {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"error": {"message": "for the operator"}}`)
				return
			}
			_ = json.NewEncoder(w).Encode(body(r))
		})
	}
	phases := func(load, tokenize, queue, match, prefill, decode float64) object {
		return object{"load_s": load, "tokenize_s": tokenize, "queue_s": queue, "match_s": match, "prefill_s": prefill, "decode_s": decode}
	}
	var traces []object
	trace := func(but object) {
		i := len(traces)
		x := object{"request_id": text(i), "model": text(i), "api": text(i), "session": text(i), "began": 1.8e9 - float64(i), "state": "done", "prompt_tokens": 5000, "cached_tokens": 300,
			"disk_tokens": 0, "common_tokens": 320, "output_tokens": 100, "cache_hit_type": "lcp", "finish": text(i), "error": "", "parted_message": 2, "phases": phases(0, .01, .01, 0, 8, 2),
			"ttft_s": 8.1, "wall_s": 10.1, "tokens_per_second": 50}
		maps.Copy(x, but)
		traces = append(traces, x)
	}
	trace(nil)
	trace(object{"cache_hit_type": "miss", "cached_tokens": 0, "common_tokens": 0, "parted_message": nil})
	trace(object{"phases": phases(0, .01, 6, .01, 1, 2)})
	trace(object{"phases": phases(0, .01, 0, .01, .1, 40), "output_tokens": 2000, "wall_s": 40.2})
	trace(object{"state": "failed", "error": text(4), "cache_hit_type": text(4)})
	trace(object{"state": "cancelled", "phases": phases(9, 0, 0, 0, 0, 0), "cache_hit_type": ""})
	for len(traces) < 40+more {
		trace(nil)
	}
	answer("/v1/status", false, func(*http.Request) any {
		stages := []string{"queued", "prefill", "generation"}
		var requests []object
		for i := range 4 + more {
			phase := text(i)
			if i < len(stages) {
				phase = stages[i]
			}
			requests = append(requests, object{"request_id": text(i), "model": text(i), "session": text(i), "age_s": 2.5, "phase": phase, "tokens_per_second": 12.5, "ttft_s": .1, "progress": .25,
				"cache_hit_type": text(i), "prompt_tokens": 4000, "cached_tokens": 1000, "generated_tokens": 25, "max_tokens": 100 * (i % 2)})
		}
		s := object{"status": text(0), "model": text(1), "uptime_s": 7500, "operator": operator, "cache": object{"type": "prefix_tree"}, "num_running": 3, "num_waiting": 1, "total_requests_processed": 40, "requests": requests}
		if operator {
			s["memory"] = object{"weights_bytes": 4e8, "state_bytes": 1e8, "cache_bytes": 3e8, "budget_bytes": 2e9, "resident_bytes": 8e8, "peak_resident_bytes": 9e8}
		}
		return s
	})
	answer("/v1/status/history", true, func(r *http.Request) any {
		now := time.Now().Unix()
		first := now - 600
		if s := r.URL.Query().Get("since"); s != "" {
			_, _ = fmt.Sscan(s, &first) // the page's own
			first++
		}
		column := func(of func(at int64) int64) []int64 {
			list := []int64{}
			for at := first; at <= now; at++ {
				list = append(list, of(at))
			}
			return list
		}
		wave := func(at int64) int64 { return at % 50 }
		one := func(at int64) int64 { return 1 }
		return object{"now": now, "first": first, "step_s": 1, "columns": object{"prompt_tokens": column(wave), "cached_tokens": column(wave), "output_tokens": column(func(int64) int64 { return 120 }),
			"requests": column(one), "running": column(one), "waiting": column(one), "batch": column(one), "state_bytes": column(wave), "cache_bytes": column(wave),
			"hits": object{"exact": column(one), "prefix": column(one), "supersequence": column(one), "lcp": column(one), "miss": column(one)}}}
	})
	answer("/v1/requests", false, func(*http.Request) any { return object{"requests": traces} })
	answer("/v1/requests/{id}", false, func(r *http.Request) any {
		for _, x := range traces {
			if x["request_id"] == r.PathValue("id") {
				whole := maps.Clone(x)
				whole["parting"] = object{"before": "Today is Tuesday, " + text(1), "after": text(2) + " and more", "stored": text(3)}
				return whole
			}
		}
		return object{}
	})
	answer("/v1/cache/tree", true, func(*http.Request) any {
		var nodes []object
		node := func(parent any, tokens int, but object) {
			x := object{"id": len(nodes), "parent": parent, "tokens": tokens, "in_memory": true, "bytes": tokens * 1000, "disk_bytes": 0, "folded_nodes": 0, "folded_tokens": 0, "on_disk": 0, "in_use": 0, "ends": 1, "sessions": 1, "used_s": 30, "label": text(len(nodes))}
			maps.Copy(x, but)
			nodes = append(nodes, x)
		}
		node(nil, 2048, object{"model": text(0), "ends": 3, "sessions": 2})
		node(0, 512, object{"in_use": 1})
		node(0, 128, object{"on_disk": 128, "ends": 2})
		node(2, 64, object{"folded_nodes": 3, "folded_tokens": 200, "in_memory": false, "bytes": 0, "on_disk": 64, "disk_bytes": 64000})
		for range 1 + more {
			node(nil, 320, nil)
		}
		return object{"page_tokens": 64, "nodes": nodes, "left_out": 3}
	})
	return mux
}

// pending has the page count its timers of a second, which is how often it asks.
const pending = `(() => { const set = setTimeout, clear = clearTimeout; globalThis.pending = new Set();
	globalThis.setTimeout = (f, ms, ...rest) => { const id = set(() => { pending.delete(id); f(...rest); }, ms); if (ms === 1000) pending.add(id); return id; };
	globalThis.clearTimeout = (id) => { pending.delete(id); clear(id); }; })()`

// watches: all that the live view shows, of figures that are given: for the operator and for others, in both themes, on a phone,
// by keys alone; and that nothing is asked while nobody looks.
func watches(t *testing.T, browser context.Context) {
	target, err := url.Parse(scripted(t, `{"raw": "Hello."}`).URL)
	if err != nil {
		t.Fatal(err)
	}
	name := func(i int) string { return fmt.Sprint("name-", i) }
	var asked atomic.Int64
	figures := watched(target, true, 0, name)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/status" {
			asked.Add(1)
		}
		figures.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(server.URL)
	b.sees("Ready")
	b.text(pending)
	b.text("location.hash = '#/live'")
	b.wait("the requests", "document.querySelectorAll('.request').length === 4")
	b.wait("the charts", "[...document.querySelectorAll('.chart-picture')].filter(s => [...s.querySelectorAll('.line, .area')].every(p => p.getAttribute('d').length > 50)).length === 5")
	b.wait("the tree", "document.querySelectorAll('.tree .node').length === 5")
	for what, want := range map[string]string{
		"document.querySelector('.figures').innerText.replace(/\\s+/g, ' ')": "Running 3 Waiting 1 Output tokens/s 120 ",
		"document.querySelectorAll('.request')[1].innerText":                 "25 % of its prompt is read",
		"document.querySelectorAll('.request progress')[1].value":            "0.25",
		"document.querySelectorAll('.request')[2].innerText":                 "25 tokens written",
		"document.querySelectorAll('.request progress')[2].position":         "-1",
		"document.querySelector('.chart desc').textContent":                  "Output tokens 120 now, 120 in the mean, 120 at most",
		"document.querySelectorAll('.latest details').length":                "12",
		"document.querySelector('.tree-about').innerText":                    "“name-0” name-0, 2,048 tokens, 2.0 MB, 3 stored conversations have it, 2 sessions, last used 30 s ago.",
		"document.querySelectorAll('.tree .alone').length":                   "1",
		"document.querySelector('.tree .alone').getAttribute('aria-label')":  "“name-3”: 64 tokens, 200 more in small parts that go on from it, 64.0 kB on disk only, last used 30 s ago.",
		"document.querySelector('.tree-about').closest('section').innerText": "3,008 tokens in 3.0 MB of memory, 64 tokens on disk only.",
		"document.querySelector('.page-head').innerText":                     "for all who call it",
	} {
		if got := b.text(what); !strings.HasPrefix(strings.Join(strings.Fields(got), " "), strings.TrimSpace(want)) && !strings.Contains(got, want) {
			t.Errorf("%s: %q, not %q", what, got, want)
		}
	}
	for i, want := range []string{
		"Most of the time, 8 s, went into reading the prompt: 4,700 of its 5,000 tokens had to be computed, because it parted from what was stored after 320 tokens, in message 3 of the conversation.",
		"because nothing of it was stored", "Most of the time, 6 s, it waited for other requests", "Most of the time, 40 s, went into writing the answer: 2,000 tokens at 50 a second.",
		"It failed: name-4", "It was cancelled after 100 tokens.",
	} {
		line := fmt.Sprintf("document.querySelectorAll('.latest details')[%d]", i)
		b.text(line + ".open = true")
		b.wait(want, line+".querySelector('.trace')?.innerText.includes("+quote(want)+")")
	}
	for i, want := range []string{"what changes is best put at its end", "what changes is best put at its end", "--max-sequences", "A shorter answer", "", "Load, under Models"} {
		if got := b.text(fmt.Sprintf("document.querySelectorAll('.latest details')[%d].querySelector('.trace h3').parentNode.innerText", i)); !strings.Contains(got, want) {
			t.Errorf("what would make it shorter: %q has no %q", got, want)
		}
	}
	if got := b.text("document.querySelector('.parting .sides').textContent"); got != "Stored before… Today is Tuesday, name-1 here they part: name-3 …This prompt… Today is Tuesday, name-1 here they part: name-2 and more …" {
		t.Errorf("the parting reads %q", got)
	}
	b.text("document.querySelectorAll('details.numbers').forEach(d => { d.open = true })")
	b.wait("the numbers", "document.querySelectorAll('.numbers tbody tr').length === 13 && document.querySelectorAll('.numbers li li').length === 3")
	b.press("1 h")
	b.wait("the hour", "document.querySelector('.chart-picture').textContent.includes('60 min ago')")
	b.press("Show more")
	b.wait("more", "document.querySelectorAll('.latest details').length === 24")
	b.axe("live")
	b.text("document.querySelector('.tree .node[tabindex=\"0\"]').focus()")
	for _, step := range [][2]string{{"ArrowRight", "2"}, {"ArrowDown", "1"}, {"ArrowUp", "2"}, {"ArrowRight", "3"}, {"ArrowLeft", "2"}, {"Home", "0"}, {"ArrowDown", "4"}, {"ArrowUp", "0"}} {
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: step[0]}); err != nil {
			t.Fatal(err)
		}
		b.wait("the bar after "+step[0], "document.activeElement.dataset.at === "+quote(step[1]))
	}
	b.size(390, 844, true)
	b.wait("a narrow tree", "document.querySelector('.tree').viewBox.baseVal.width < 390")
	b.fits()
	b.axe("live, phone, dark")
	b.text("Object.defineProperty(document, 'hidden', { value: true, configurable: true }), document.dispatchEvent(new Event('visibilitychange'))")
	b.wait("an end of asking while nobody looks", "pending.size === 0")
	b.text("delete document.hidden")
	before := asked.Load()
	b.text("document.dispatchEvent(new Event('visibilitychange'))")
	for end := time.Now().Add(limit); asked.Load() == before; b.text("new Promise(requestAnimationFrame)") {
		if time.Now().After(end) {
			t.Fatal("nothing was asked when somebody looked again")
		}
	}
	b.text("location.hash = '#/connect'")
	b.wait("an end of asking with the view", "pending.size === 0 && document.querySelector('.clients')")

	// Who is not the operator sees their own, and is told so.
	own := httptest.NewServer(watched(target, false, 0, name))
	t.Cleanup(own.Close)
	b = open(t, browser)
	b.size(1280, 800, false)
	b.show(own.URL + "/#/live/name-1")
	b.sees("your own requests")
	b.wait("the trace of the address", "document.activeElement.closest('details[open]')?.innerText.includes('nothing of it was stored')")
	if seen := b.text("[...document.querySelectorAll('.charts, .tree, .figures > :nth-child(n+4)')].filter(e => e.checkVisibility()).map(e => e.className)"); seen != "" {
		t.Errorf("others see %s", seen)
	}
}

// lives: what the live view shows of a server: requests that run and are cancelled, then, with the demo, the last minutes under
// load, why a prompt took its time, and what is stored.
func lives(t *testing.T, browser context.Context) {
	server := program.Serve(t, *binary, nil, io.Discard, "--prefix-cache-dir", "off", "--store", "memory") // the demo
	paced := scripted(t, `{"raw": "{{repeat 4000 \"word \"}}end", "tokens_per_s": 60}`)
	var ended sync.WaitGroup
	for range 2 {
		ended.Go(func() { post(t, paced.URL, "Tell me a story", 4000) })
	}
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(paced.URL + "/#/live")
	b.wait("the requests", "document.querySelectorAll('.request').length === 2")
	b.wait("their progress", "[...document.querySelectorAll('.request progress')].every(p => p.value > 0.001)")
	for left := range 2 {
		b.text("document.querySelector('.request button:not(:disabled)').click()")
		b.wait("the end of a request", fmt.Sprintf("document.querySelectorAll('.request').length === %d", 1-left))
	}
	ended.Wait()
	b.sees("No request waits or runs.")
	b.wait("both in the list", "[...document.querySelectorAll('.latest .badge')].filter(e => e.innerText === 'cancelled').length === 2")

	long := strings.Repeat("You are a helper who knows all about boats and the sea. ", 60)
	post(t, server.URL, long+"What is a boat?", 4)
	parted := post(t, server.URL, long+"Who sails?", 4)
	missed := post(t, server.URL, "Another beginning. "+long, 4)
	busy, stop := context.WithCancel(context.Background())
	for i := range 2 {
		ended.Go(func() {
			for n := 0; busy.Err() == nil; n++ {
				post(t, server.URL, fmt.Sprintf("%s Question %d of %d.", long, n, i), 40)
			}
		})
	}
	defer ended.Wait()
	defer stop()
	b.show(server.URL + "/#/live/" + missed)
	b.wait("why it missed", "document.querySelector('.latest details[open] .trace')?.innerText.includes('because nothing of it was stored')")
	b.wait("charts of the load", "[...document.querySelectorAll('.chart')].slice(0, 4).every(c => [...c.querySelectorAll('.value')].some(v => parseFloat(v.innerText) > 0) && [...c.querySelectorAll('.line, .area')].some(p => p.getAttribute('d').length > 20))")
	b.wait("the output of now", "parseFloat(document.querySelectorAll('.figure dd')[2].innerText) > 0")
	b.wait("the tree", "document.querySelectorAll('.tree .node').length > 3 && document.querySelector('.tree .node.shared')")
	stop()
	ended.Wait()
	b.show(server.URL + "/#/live/" + parted)
	b.wait("where it parted", "document.querySelector('.latest details[open] .parting del')?.textContent.includes('What is a boat?') && document.querySelector('.parting ins').textContent.includes('Who sails?')")
	b.show(server.URL)
	b.ask("What is a boat?")
	b.answered()
	b.press("Where its time went")
	b.wait("the trace of an answer", "document.querySelector('.latest details[open] .trace h3')?.innerText.startsWith('Why did this take ')")
	b.wait("it before one's eyes", "(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('.latest details[open] h3').getBoundingClientRect())")
}

// post asks a question, and gives the id of the request.
func post(t *testing.T, server, text string, most int) string {
	t.Helper()
	id, _ := talk(t, server, "", most, []object{{"role": "user", "content": text}})
	return id
}

// talk asks for what comes after some messages of a session, and gives the id of the request and the answer.
func talk(t *testing.T, server, session string, most int, messages []object) (id, answer string) {
	t.Helper()
	body, err := json.Marshal(object{"model": "demo", "max_tokens": most, "messages": messages})
	if err != nil {
		t.Error(err)
		return "", ""
	}
	r, err := http.NewRequest(http.MethodPost, server+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return "", ""
	}
	r.Header.Set("Content-Type", "application/json")
	if session != "" {
		r.Header.Set("X-Session-Id", session)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return "", ""
	}
	defer reply.Body.Close()
	var got struct {
		Choices []struct{ Message struct{ Content string } }
	}
	_ = json.NewDecoder(reply.Body).Decode(&got) // nothing, where it was cancelled
	for _, c := range got.Choices {
		answer += c.Message.Content
	}
	return reply.Header.Get("X-Request-Id"), answer
}
