package transcript

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOnePromptLeavesRoom: a prompt of very many pieces gets the ids that encoding gives, but fills no more than its share
// of what is remembered.
func TestOnePromptLeavesRoom(t *testing.T) {
	h := demoHistory(t, true)
	h.limit = 400_000
	mine := h.encodeText("<|im_start|>user\nHello<|im_end|>\n")
	long := strings.Repeat("<|im_start|>user\nHi<|im_end|>\n", 20_000)
	got := h.encodeText(long)
	if !slices.Equal(got.IDs, encoded(t, h.guard, long)) {
		t.Error("ids differ from those of encoding")
	}
	if h.size > h.limit/promptShare+2000 {
		t.Errorf("%d bytes are remembered, of %d", h.size, h.limit)
	}
	h.check(t)
	if p := h.roots[Salt{}].next; len(p) == 0 || len(mine.IDs) == 0 {
		t.Error("what was remembered is gone")
	}
}

// TestCopiesAreBounded: where putting answers into a prompt would copy too much, they stay as the template renders them.
func TestCopiesAreBounded(t *testing.T) {
	reused := func(copies int) (turns int) {
		h := demoHistory(t, true)
		if copies > 0 {
			h.copies = copies
		}
		says := func(text string, _ bool) ([]Statement, bool) {
			return []Statement{{Text: strings.Join(strings.Fields(text), " ")}}, true
		}
		d := Draft{Stops: []string{"<|im_end|>"}, Says: says}
		var ran []int32
		for range 10 {
			text := d.Text + "<|im_start|>user\n" + strings.Repeat("sunny ", 50) + "<|im_end|>\n"
			d.Messages += 2
			d.Text = text + "<|im_start|>assistant\n"
			prompt := d
			prompt.Spans = slices.Clone(d.Spans)
			enc := h.mustEncode(Salt{}, &prompt)
			if len(enc.IDs) > len(ran) && slices.Equal(enc.IDs[:len(ran)], ran) {
				turns++
			}
			answer := h.guard.Plain("I  look  at it.")
			h.Remember(&enc, Answer{IDs: answer, Spoken: len(enc.text), Whole: true})
			ran = slices.Concat(enc.IDs, answer)
			d.Text += "I look at it.<|im_end|>\n"
			d.Spans = append(d.Spans, Span{Message: d.Messages - 1, From: len(text), To: len(d.Text), Answer: true})
		}
		return turns
	}
	if all, few := reused(0), reused(10_000); all != 10 || few == 0 || few == 10 {
		t.Errorf("%d of 10 turns are reused, %d with a bound", all, few)
	}
}

// TestSearchIsBounded: where looking for the ids of an answer's calls would take too long, it stays as the template renders it.
func TestSearchIsBounded(t *testing.T) {
	for calls, want := range map[int]bool{10: true, 40_000: false} {
		h := demoHistory(t, true)
		said := "I look at it " + strings.Repeat("again ", 800)
		says := func(text string, _ bool) ([]Statement, bool) {
			return []Statement{{Text: strings.Join(strings.Fields(text), " ")}}, true
		}
		d := Draft{Text: "<|im_start|>assistant\n", Messages: 1, Stops: []string{"<|im_end|>"}, Says: says}
		enc := h.mustEncode(Salt{}, &d)
		answer := h.guard.Plain(strings.ReplaceAll(said, " ", "  "))
		h.Remember(&enc, Answer{IDs: answer, Spoken: len(enc.text), Whole: true})
		ran := slices.Concat(enc.IDs, answer)
		from := len(d.Text)
		d.Text += said + "<|im_end|>\n"
		d.Spans = []Span{{From: from, To: len(d.Text), Answer: true, CallIDs: make([]string, calls)}}
		next := h.mustEncode(Salt{}, &d)
		if got := len(next.IDs) > len(ran) && slices.Equal(next.IDs[:len(ran)], ran); got != want {
			t.Errorf("%d calls: reused %t", calls, got)
		}
	}
}

// TestAnswersBounded: of too many answers to one prompt, other text can go on from the latest ones.
func TestAnswersBounded(t *testing.T) {
	h := demoHistory(t, true)
	const prompt = "<|im_start|>assistant\n"
	said := func(i int) string { return string(rune('a'+i)) + " it is" }
	for i := range maxAnswers + 4 {
		enc := h.encodeText(prompt)
		h.Remember(&enc, Answer{IDs: h.guard.Plain(said(i)), Spoken: len(prompt), Whole: true})
	}
	for i := range maxAnswers + 4 {
		got := h.encodeText(prompt + said(i) + ", and more")
		if known := got.Spliced > 0; known != (i >= 4) {
			t.Errorf("answer %d: %d ids are spliced", i, got.Spliced)
		}
	}
}

// growth is how much more of a processor f takes for 8n than for n, at best.
func growth(t *testing.T, n int, f func(n int)) float64 {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	best := func(n int) time.Duration {
		least := time.Hour
		for range 9 {
			start := used()
			f(n)
			least = min(least, used()-start)
		}
		return max(least, 100*time.Microsecond) // less is not measured well
	}
	return float64(best(8*n)) / float64(best(n))
}

// TestGuardWork: looking for special tokens and marks takes time for the length of a text, not for that and the number of
// special tokens, nor for its square.
func TestGuardWork(t *testing.T) {
	special := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("<|reserved_%d|>", i))
		}
		return all
	}
	few, many := NewGuard(demoTokenizer(t, special(10)...), nil, ""), NewGuard(demoTokenizer(t, special(2000)...), nil, "")
	s := strings.Repeat("<|reserved_x ", 20_000)
	marks := func(g *Guard, s string) bool { _, marked := g.Mark(s); return marked }
	if marks(few, s) || marks(many, s) || !marks(many, s+"<|reserved_1999|>") {
		t.Error("the wrong texts are marked")
	}
	if g := growth(t, 1, func(n int) {
		if n == 1 {
			few.Mark(s)
		} else {
			many.Mark(s)
		}
	}); g > 20 {
		t.Errorf("2000 special tokens take %.0f times as long as 10", g)
	}
	if g := growth(t, 10_000, func(n int) { _, _ = few.encode(t.Context(), strings.Repeat(markOpen, n)) }); g > 32 {
		t.Errorf("8 times as many marks take %.0f times as long", g)
	}
	h := New(few, Terms{Exact: true})
	id, _ := few.tok.ID("<|reserved_1|>")
	if g := growth(t, 5_000, func(n int) {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = id
		}
		h.ends(strings.Repeat("a", n), ids)
	}); g > 32 {
		t.Errorf("8 times as many special tokens that a text lacks take %.0f times as long", g)
	}
}

// TestCallIDsBounded: of too many ids of calls the latest ones are remembered.
func TestCallIDsBounded(t *testing.T) {
	var m callIDs
	for i := range maxCallIDs + 10 {
		m.remember(Salt{}, fmt.Sprint("c", i), fmt.Sprint("m", i))
	}
	last := fmt.Sprint("c", maxCallIDs+9)
	if a, b, c := m.said[callKey{id: "c9"}], m.said[callKey{id: "c10"}], m.said[callKey{id: last}]; a != "" || b != "m10" || c != "m"+last[1:] || len(m.said) != maxCallIDs || len(m.order) != maxCallIDs {
		t.Errorf("remembered %q %q %q of %d", a, b, c, len(m.said))
	}
}

// What one caller left can be dropped without what others left, calls and texts alike; and who remembers no answers as they were
// generated remembers no calls.
func TestForgetSalt(t *testing.T) {
	h := demoHistory(t, true)
	mine, theirs := Salt{1}, Salt{2}
	for _, s := range []Salt{mine, theirs} {
		h.mustEncode(s, &Draft{Text: "<|im_start|>user\nHi<|im_end|>\n"})
		h.RememberCall(s, "call_1", "functions.f:0")
	}
	h.ForgetSalt(mine)
	h.ForgetSalt(Salt{3}) // nobody's
	h.check(t)
	if h.CallID(mine, "call_1") != "" || h.roots[mine] != nil {
		t.Error("what was dropped is remembered")
	}
	if h.CallID(theirs, "call_1") != "functions.f:0" || h.roots[theirs] == nil {
		t.Error("what another caller left is dropped")
	}
	h.Forget()
	if h.CallID(theirs, "call_1") != "" || len(h.roots) > 0 || h.size != 0 {
		t.Error("something is left")
	}
	plain := demoHistory(t, false)
	if plain.RememberCall(mine, "call_1", "functions.f:0"); plain.CallID(mine, "call_1") != "" {
		t.Error("a call is remembered where answers are not")
	}
}
