package browser

import (
	"context"
	"testing"
)

// docs: the reference of the API. What is searched is found, what an address names is open, and it is legible in both themes and
// on a phone.
func docs(t *testing.T, browser context.Context) {
	server := scripted(t, `{"raw": "Hello."}`, "--api-key", "secret-of-the-test")
	b := open(t, browser)
	b.size(1280, 800, false)
	b.show(server.URL + "/docs#createChatCompletion")
	b.sees("Responses")
	b.wait("the operation", "document.querySelector('#createChatCompletion[open] .body')")
	if at := b.text("document.activeElement.closest('details').id"); at != "createChatCompletion" {
		t.Errorf("the focus is in %q", at)
	}
	b.wait("nested fields", "[...document.querySelectorAll('#createChatCompletion .fields .name')].some(e => e.innerText === 'temperature')")
	b.text("[...document.querySelectorAll('#createChatCompletion details.more')].forEach(d => { d.open = true })")
	b.wait("an event", "[...document.querySelectorAll('#createChatCompletion .name')].some(e => e.innerText === 'choices')")
	b.axe("light")
	b.size(1280, 800, true)
	b.axe("dark")
	b.text("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))")
	if at := b.text("document.activeElement.id"); at != "search" {
		t.Errorf("the focus is in %q after /", at)
	}
	b.text("(s => { s.value = 'top_n'; s.dispatchEvent(new Event('input')) })(document.getElementById('search'))")
	if seen := b.text("[...document.querySelectorAll('.operation')].filter(e => e.checkVisibility()).map(e => e.id)"); seen != "createRanking" {
		t.Errorf("the search finds %q", seen)
	}
	b.text("document.getElementById('search').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))")
	b.wait("what was found", "document.querySelector('#createRanking[open] .body')")
	b.size(390, 844, false)
	b.show(server.URL + "/docs")
	b.sees("Responses")
	b.fits()
	b.press("Routes")
	b.click("#groups a[href='#createMessage']")
	b.wait("the operation", "document.querySelector('#createMessage[open] .body')")
	b.text("[...document.querySelectorAll('#createMessage details.more')].forEach(d => { d.open = true })")
	b.wait("nested fields", "document.querySelectorAll('#createMessage .fields .fields').length")
	b.fits()
	b.axe("phone")
}
