package transcript

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// told is a history with conversations, and the texts of their next prompts.
func told(t testing.TB) (h *History, next []string) {
	h = demoHistory(t, true)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 12 {
		text := fmt.Sprintf("<|im_start|>user\n%d", i%8)
		for range 4 {
			prompt := text + "<|im_end|>\n<|im_start|>assistant\n"
			s := Salt{byte(i % 3)}
			enc := h.mustEncode(s, &Draft{Text: prompt})
			answer := uttered(r, h.tok, 10, Unmark(randomText(r, 6)))
			h.Remember(&enc, Answer{IDs: answer, Spoken: len(enc.text), InReasoning: i%2 == 0, Whole: true})
			text = prompt + h.spell(answer) + "<|im_end|>\n<|im_start|>user\n" + randomText(r, 3)
		}
		next = append(next, text)
	}
	return h, next
}

// What is saved and loaded gives the same ids as before, is as old as it was, and as long.
func TestHistoryFile(t *testing.T) {
	h, next := told(t)
	for i := range maxCallIDs + 3 {
		h.RememberCall(Salt{byte(i % 2)}, fmt.Sprint("call_", i), fmt.Sprint("f:", i))
	}
	h.calls.forgetSalt(Salt{1})
	saved := h.Save()
	again := New(h.guard, Terms{Exact: true})
	if err := again.Load(saved); err != nil {
		t.Fatal(err)
	}
	again.check(t)
	if again.size != h.size || len(again.roots) != 3 {
		t.Errorf("%d bytes in %d trees, want %d", again.size, len(again.roots), h.size)
	}
	if again.CallID(Salt{}, "call_0") != "" || again.CallID(Salt{}, "call_4") != "f:4" || again.CallID(Salt{1}, "call_7") != "" || len(again.calls.said) != len(h.calls.said) {
		t.Errorf("%d calls, want %d", len(again.calls.said), len(h.calls.said))
	}
	spliced := 0
	for i, text := range next {
		a, b := Draft{Text: text}, Draft{Text: text}
		got, want := again.mustEncode(Salt{byte(i % 3)}, &a), h.mustEncode(Salt{byte(i % 3)}, &b)
		if !slices.Equal(got.IDs, want.IDs) || got.Spliced != want.Spliced || a.Text != b.Text {
			t.Errorf("%q: %v with %d spliced, want %v with %d", text, got.IDs, got.Spliced, want.IDs, want.Spliced)
		}
		spliced += got.Spliced
	}
	if spliced == 0 {
		t.Error("nothing was spliced")
	}
	if err := again.Load(saved); err != nil || again.size != h.size {
		t.Errorf("loading into what has something: %d bytes: %v", again.size, err)
	}
	small := New(h.guard, Terms{Exact: true})
	small.limit = h.size / 2
	if err := small.Load(saved); err != nil || small.size == 0 {
		t.Errorf("%d bytes: %v", small.size, err)
	}
	small.check(t)
	for n := 0; n < len(saved); n += 1 + n/20 {
		if none := New(h.guard, Terms{Exact: true}); none.Load(saved[:n]) == nil || len(none.roots) > 0 {
			t.Fatalf("the first %d bytes of %d were taken", n, len(saved))
		}
	}
}

// What an earlier build saved is found again, and saved as it was but for the time. H1.history is of a server over the demo that
// answered two callers; H1.json has the text and ids of the prompts that came next.
func TestHistoryFileOfBefore(t *testing.T) {
	saved, err := os.ReadFile("testdata/H1.history")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("testdata/H1.json")
	if err != nil {
		t.Fatal(err)
	}
	var prompts []struct {
		Salt, Text string
		IDs        []int32
		Spliced    int
	}
	if err := json.Unmarshal(b, &prompts); err != nil || len(prompts) != 3 {
		t.Fatalf("%d prompts: %v", len(prompts), err)
	}
	synctest.Test(t, func(t *testing.T) { // long before the file was made: to everything in it no time has passed since
		h := demoHistory(t, true)
		if err := h.Load(saved); err != nil {
			t.Fatal(err)
		}
		h.check(t)
		_, time := binary.Uvarint(saved[len(historyMagic):])
		if again := h.Save(); !bytes.Equal(again[len(historyMagic)+time:], append(saved[len(historyMagic)+time:], 0, 0)) {
			t.Error("what is loaded is saved in another way")
		}
		for _, p := range prompts {
			var s Salt
			if _, err := hex.Decode(s[:], []byte(p.Salt)); err != nil {
				t.Fatal(err)
			}
			got := h.mustEncode(s, &Draft{Text: p.Text})
			if p.Spliced == 0 || got.Spliced != p.Spliced || !slices.Equal(got.IDs, p.IDs) {
				t.Errorf("%q: %v with %d spliced, want %v with %d", p.Text, got.IDs, got.Spliced, p.IDs, p.Spliced)
			}
			if other := h.mustEncode(Salt{1}, &Draft{Text: p.Text}); other.Spliced != 0 {
				t.Errorf("%q: another caller has %d spliced", p.Text, other.Spliced)
			}
		}
	})
}

// The time between is part of what something was not used for.
func TestHistoryFileTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := demoHistory(t, true)
		talkTo(h, 0, "old")
		time.Sleep(20 * time.Minute)
		talkTo(h, 0, "young")
		saved := h.Save()
		time.Sleep(50 * time.Minute)
		again := New(h.guard, Terms{Exact: true})
		again.kept.TTL = int64(time.Hour)
		if err := again.Load(saved); err != nil {
			t.Fatal(err)
		}
		if talkTo(again, 0, "young") == 0 || talkTo(again, 0, "old") != 0 {
			t.Error("what was not used for an hour is remembered, or something else is not")
		}
		again.check(t)
	})
}

// Whatever a file holds, it is taken whole or not at all, and what is taken can be used and saved.
func FuzzHistoryFile(f *testing.F) {
	h, next := told(f)
	f.Add(h.Save())
	h.RememberReasoning(Salt{1}, 0, Digest{2}, "Hm.")
	h.RememberCall(Salt{1}, "call_1", "f:0")
	f.Add(h.Save())
	f.Add([]byte(historyMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		again := New(h.guard, Terms{Exact: true})
		err := again.Load(b)
		again.check(t)
		again.reasonings.check(t)
		if err != nil {
			if len(again.roots) > 0 || again.reasonings.size > 0 || len(again.calls.said) > 0 {
				t.Fatal("part of it was taken")
			}
			return
		}
		again.mustEncode(Salt{}, &Draft{Text: next[0]})
		again.check(t)
		twice := New(h.guard, Terms{Exact: true})
		if err := twice.Load(again.Save()); err != nil || !bytes.HasPrefix(again.Save(), []byte(historyMagic)) {
			t.Fatalf("what was taken cannot be saved: %v", err)
		}
	})
}
