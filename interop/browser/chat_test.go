package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// lines of the script that the chat is tried with.
const lines = `{"if_last": "^slow", "raw": "{{repeat 4000 \"word \"}}end", "tokens_per_s": 60}
{"if_last": "^nothing", "fault": {"kind": "stall"}}
{"if_last": "weather", "if_tool": "weather", "raw": "Let me look.\n<tool_call>\n{\"name\": {{json .Tool}}, \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>"}
{"if_last": "^18 degrees", "raw": "It is warm in **Paris**."}
{"if_last": "picture", "raw": "A picture of nothing."}
{"if_last": "^again", "times": 1, "raw": "The first answer."}
{"if_last": "^again", "raw": "The second answer."}
{"if_last": "^broken", "raw": "It begins well and then it", "tokens_per_s": 2, "fault": {"kind": "cut", "after_tokens": 5}}
{"if_last": "^full$", "fault": {"kind": "overloaded"}}
{"raw": "<think>They want **Markdown**.</think># A title\n\nA paragraph with *emphasis*, ` + "`code`" + ` and a [link](https://example.com/).\n\n- one\n- two\n\n  more of two\n\n1. first\n2. second\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n` + "```go\\nfunc main() {\\n\\n\\tprintln(1)\\n}\\n```" + `\n\nThe end."}
`

func (b *tab) ask(text string) {
	b.t.Helper()
	b.wait("the composer", "document.getElementById('prompt') && document.querySelector('.picker option')")
	b.wait("the end of the answer before", "document.querySelector('.composer .send').getAttribute('aria-label') === 'Send'")
	b.text("document.getElementById('prompt').value = " + quote(text))
	b.click(".composer .send")
	b.wait("what was asked", "[...document.querySelectorAll('.message.user')].at(-1)?.textContent.includes("+quote(text)+")")
}

// answered waits until the last answer is whole.
func (b *tab) answered() {
	b.t.Helper()
	b.wait("the answer", "document.querySelector('.message.assistant:last-child .stats') && !document.querySelector('[aria-busy]')")
}

// chats: streamed Markdown, thinking, stop, another answer, edits, branches, a tool, a picture, failures, and all of it
// after a reload.
func chats(t *testing.T, browser context.Context) {
	server := scripted(t, lines)
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(server.URL)
	b.sees("What shall we talk about?")
	b.axe("no message")
	b.press("Write a haiku about a fireplace.")
	b.answered()
	b.wait("the Markdown", "document.querySelector('.prose h1') && document.querySelector('.prose table') && document.querySelector('.prose ol')")
	const last = "[...document.querySelectorAll('.message.assistant')].at(-1)"
	if got := b.text(last + ".querySelector('.prose').textContent"); strings.Contains(got, "**") || !strings.Contains(got, "more of two") {
		t.Errorf("the answer reads %q", got)
	}
	for what, want := range map[string]string{
		".querySelectorAll('.prose > ul > li').length": "2", ".querySelector('.prose code').textContent": "code", ".querySelector('.prose a').rel": "noopener noreferrer nofollow",
		".querySelector('.code code').textContent": "func main() {\n\n\tprintln(1)\n}", ".querySelector('.code-head span').textContent": "go",
		".querySelector('.thoughts').textContent": "They want **Markdown**.", ".querySelector('.thought').open": "false",
	} {
		if got := b.text(last + what); got != want {
			t.Errorf("%s is %q, not %q", what, got, want)
		}
	}
	if got := b.text(last + ".querySelector('.stats').textContent"); !strings.Contains(got, "to the first token") || !strings.Contains(got, "cached") {
		t.Errorf("the figures are %q", got)
	}
	b.axe("an answer")

	b.ask("slow please")
	b.wait("the first words", last+".innerText.includes('word word')")
	b.press("Stop")
	b.sees("Stopped.")
	words := b.text(last + ".querySelector('.prose').textContent")
	if strings.Contains(words, "end") {
		t.Error("the answer was not stopped")
	}

	// Who edits what is being answered, or wants another answer to something before, has that; what was being written is stopped.
	b.ask("slow again")
	b.wait("the first words", last+".innerText.includes('word word')")
	if said := b.text("(e => (e.value = 'more', e.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })), document.getElementById('toasts').innerText))(document.getElementById('prompt'))"); !strings.Contains(said, "An answer is being written.") {
		t.Errorf("sent while an answer is being written it says %q", said)
	}
	b.press("Edit")
	b.act("the text that is edited", "document.querySelector('.edit')", "e.querySelector('textarea').value = 'hello instead', e.querySelector('.primary').click()")
	b.wait("the answer to what was edited", last+".textContent.includes('The end.')")
	b.answered()
	b.press("The branch before")
	b.wait("the answer that was stopped", "!document.querySelector('.edit') && "+last+".textContent.includes('word word') && "+last+".textContent.includes('Stopped.')")
	b.press("Answer anew")
	b.wait("another one", last+".getAttribute('aria-busy') && "+last+".innerText.includes('word word')")
	b.press("Answer anew") // of the answer before
	b.wait("the one before anew", "document.querySelectorAll('.message').length === 4 && "+last+".getAttribute('aria-busy') && "+last+".innerText.includes('word word')")
	b.press("Stop")
	b.wait("its end", last+".textContent.includes('Stopped.')")

	b.ask("again")
	b.answered()
	b.sees("The first answer.")
	b.press("Answer anew")
	b.answered()
	b.sees("The second answer.")
	b.press("The branch before")
	b.sees("The first answer.")
	b.press("Edit")
	b.act("the old text", "document.querySelector('.edit')", "e.querySelector('textarea').value = 'again, edited'")
	b.key(".edit textarea", "Enter")
	b.wait("the edited branch", "document.body.innerText.includes('again, edited') && [...document.querySelectorAll('.branches')].filter(e => e.checkVisibility() && e.innerText.includes('2/2')).length > 0")

	b.ask("broken") // so slowly that a busy browser has begun to read it: else it is no answer that was cut, but none
	b.expects("ERR_INCOMPLETE_CHUNKED_ENCODING")
	b.wait("the cut", last+".innerText.includes('The answer was cut')")
	b.press("Continue")
	b.wait("more behind what had come of it", last+".querySelector('.prose').textContent.startsWith('It begins well') && "+last+".textContent.includes('The end.')")

	b.ask("full")
	b.expects("503")
	b.wait("the error", last+".querySelector('.note.bad')")

	b.press("Settings of this conversation")
	b.text(`(() => { const e = document.getElementById('set-tools'); e.value = '[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]'; e.dispatchEvent(new Event('input')); })()`)
	b.axe("settings")
	b.key(".settings textarea", "Escape")
	b.wait("the end of the settings", "!document.querySelector('.settings') && document.activeElement.title === 'Settings of this conversation'")
	b.ask("How is the weather?")
	b.wait("the card", last+".querySelector('.call textarea')")
	if got := b.text(last + ".querySelector('.call').textContent"); !strings.Contains(got, "get_weather") || !strings.Contains(got, `"city": "Paris"`) {
		t.Errorf("the card reads %q", got)
	}
	b.axe("a card")
	b.text(last + ".querySelector('.call textarea').value = '18 degrees'")
	b.press("Send the result")
	b.wait("what the model makes of it", last+".innerText.includes('It is warm in Paris.')")

	// A picture is pasted: the red one of 2 by 2 pixels that the browser itself makes.
	b.text(`new Promise(done => { const c = document.createElement('canvas'); c.width = c.height = 2; c.getContext('2d').fillStyle = 'red'; c.getContext('2d').fillRect(0, 0, 2, 2);
		c.toBlob(blob => { const data = new DataTransfer(); data.items.add(new File([blob], 'red.png', { type: 'image/png' }));
		document.getElementById('prompt').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })); done(1); }); })`)
	b.wait("the picture", "document.querySelector('.attached img')")
	b.ask("What is in this picture?")
	b.answered() // with its figures, which are compared below
	b.sees("A picture of nothing.")
	if got := b.text("document.querySelector('.pictures img').alt"); got != "red.png" {
		t.Errorf("the picture is called %q", got)
	}

	// How many of the earlier ones are made is the page's affair.
	const all = "[...document.querySelectorAll('.message')].slice(-4).map(e => e.textContent).join().replace(/\\s+/g, ' ')"
	before := b.text(all)
	b.show("about:blank")
	b.show(server.URL)
	b.click(".conversation")
	b.wait("the conversation", "document.querySelector('.pictures img')")
	b.wait("the same as before", all+" === "+quote(before))
	b.wait("the Markdown of the first answer", "(document.querySelector('.scroller').scrollTop = 0, document.querySelector('.message.assistant .prose h1'))")

	b.size(390, 844, true)
	b.fits()
	b.axe("phone, dark")
}

// reloads: an answer that was being written when its tab was left says so, and goes on when somebody wants it.
func reloads(t *testing.T, browser context.Context) {
	server := scripted(t, lines)
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(server.URL)
	b.ask("slow please")
	b.wait("the first words", "document.querySelector('.prose')?.innerText.includes('word word word')")
	b.run(chromedp.Reload())
	b.sees("The answer was cut when the page was left")
	if got := b.text("document.querySelector('.prose').textContent"); !strings.HasPrefix(got, "word word") {
		t.Errorf("what is left of it: %q", got)
	}
	b.press("Continue")
	b.wait("the rest", "document.querySelector('.prose').textContent.startsWith('word word') && document.querySelector('.prose').textContent.endsWith('The end.')")

	// Another view is looked at meanwhile: the answer goes on.
	b.show(server.URL)
	b.ask("slow again")
	b.wait("the first words", "document.querySelector('.prose')?.innerText.includes('word word')")
	n := value[int](b, "document.querySelector('.prose').innerText.length")
	b.click("#nav a[data-view=models]")
	b.sees("What this server answers with.")
	b.click("#nav a[data-view=chat]")
	b.wait("the conversation", "document.querySelector('.prose')?.innerText.length > "+fmt.Sprint(n))
	b.key("#prompt", "Escape")
	b.sees("Stopped.")

	// What an answer waits for is said, as the server has it; here a script's, which has neither a queue nor a prompt to read.
	b.text(`(() => { const ask = fetch; let id; globalThis.phase = 'queued'; globalThis.fetch = async (path, options) => {
		if (path === '/v1/status') return Response.json({ requests: [{ request_id: id, phase, progress: .49 }] });
		const reply = await ask(path, options);
		if (path === '/v1/chat/completions') id = reply.headers.get('x-request-id');
		return reply; }; })()`)
	b.ask("nothing comes")
	b.sees("Waiting for other requests")
	b.text("phase = 'prefill'")
	b.sees("Reading the prompt, 49 %")
	b.press("Stop")
}
