package generate

import (
	"fmt"
	"testing"
	"time"

	"hearth/internal/chat"
)

// TestDates: a conversation keeps the date on which it began; one that begins anew gets today's.
func TestDates(t *testing.T) {
	g, err := withTemplate(t, `{{ strftime_now("%Y-%m-%d") }}{% for m in messages %}[{{ m.content }}]{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 5, 23, 59, 0, 0, time.UTC)
	g.cfg.Now = func() time.Time { return now }
	render := func(messages ...chat.Message) string {
		t.Helper()
		out, err := g.Render(t.Context(), &chat.Request{Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		return out[:len("2026-03-05")]
	}
	sys, hi, hello, more := text(chat.System, "s"), text(chat.User, "hi"), text(chat.Assistant, "hello"), text(chat.User, "more")
	if got := render(sys, hi); got != "2026-03-05" {
		t.Errorf("at the start: %s", got)
	}
	now = now.Add(2 * time.Minute)
	if got := render(sys, hi, hello, more); got != "2026-03-05" {
		t.Errorf("after midnight: %s", got)
	}
	if got := render(text(chat.System, "t"), hi, hello, more); got != "2026-03-06" {
		t.Errorf("another conversation, not seen before: %s", got)
	}
	if got := render(sys, hi); got != "2026-03-06" {
		t.Errorf("begun anew: %s", got)
	}
	now = now.Add(24 * time.Hour)
	for i := range maxClocks {
		render(text(chat.User, fmt.Sprint(i)))
		if i%100 == 0 {
			render(sys, hi, hello, more)
		}
	}
	if got := render(sys, hi, hello, more); got != "2026-03-06" {
		t.Errorf("one that went on among many: %s", got)
	}
	if got := render(text(chat.System, "t"), hi, hello, more); got != "2026-03-07" {
		t.Errorf("one not heard of for long: %s", got)
	}
	if n := len(g.clocks.began); n != maxClocks || g.clocks.used.Len() != n {
		t.Errorf("%d conversations remembered", n)
	}
}
