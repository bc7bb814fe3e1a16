package transcript

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// talkTo has a session ask and be answered, and gives how many ids of the text of both are known to have been generated.
func talkTo(h *History, session uint64, name string) int {
	prompt := "<|im_start|>user\n" + name + "<|im_end|>\n<|im_start|>assistant\n"
	answer := prompt + "Hello there " + name + "."
	known := h.mustEncode(Salt{}, &Draft{Text: answer + "<|im_end|>\n", Session: session}).Spliced
	enc := h.mustEncode(Salt{}, &Draft{Text: prompt, Session: session})
	h.Remember(&enc, Answer{IDs: uttered(rand.New(rand.NewPCG(1, 2)), h.tok, 0, answer[len(prompt):]+"<|im_end|>"), Spoken: len(enc.text), Whole: true})
	return known
}

// What nobody used for the time it is kept is forgotten, and what was used stays.
func TestHistoryTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := demoHistory(t, true)
		h.kept.TTL = int64(time.Hour)
		talkTo(h, 0, "old")
		talkTo(h, 0, "young")
		full := h.size
		for range 3 {
			time.Sleep(40 * time.Minute)
			if talkTo(h, 0, "young") == 0 {
				t.Fatal("what was used is forgotten")
			}
		}
		if h.size >= full {
			t.Errorf("%d bytes are kept of %d", h.size, full)
		}
		if talkTo(h, 0, "old") != 0 {
			t.Error("what was not used is remembered")
		}
		time.Sleep(time.Hour)
		h.encodeText("<|im_start|>")
		if n := len(h.roots); n != 1 || h.size > 1000 {
			t.Errorf("%d trees of %d bytes are kept", n, h.size)
		}
		h.check(t)
	})
}

// Of one session too many, the one not heard of longest is forgotten: what it was the last to use.
func TestHistorySessions(t *testing.T) {
	h := demoHistory(t, true)
	h.kept.Sessions = 3
	talkTo(h, 0, "nobody's")
	for i := range uint64(3) {
		talkTo(h, 1+i, fmt.Sprint("own ", i))
		talkTo(h, 1+i, "shared")
	}
	talkTo(h, 1, "own 0")
	talkTo(h, 4, "another") // session 2 goes
	h.check(t)
	if h.kept.Known() != 3 {
		t.Errorf("%d sessions are remembered", h.kept.Known())
	}
	for name, want := range map[string]bool{"nobody's": true, "own 0": true, "own 1": false, "own 2": true, "shared": true, "another": true} {
		if got := talkTo(h, 0, name) > 0; got != want {
			t.Errorf("%s: remembered %t", name, got)
		}
	}
}
