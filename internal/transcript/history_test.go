package transcript

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"hearth/internal/tokenizer"
)

// pieces of text from which the tests put conversations together.
var bits = []string{
	"<|im_start|>", "<|im_end|>", "<|im_start|>user\n", "<|im_end|>\n", "<|endoftext|>", "<think>", "</think>\n\n", "<tool_call>", "<|im_", "|>", "<", "\n", "\n\n", " ",
	"Hello", " there", "it's", "  two", "é", "日本", "😀", "e\u0301", "x1234", "{\"a\": 1}", "[1,2]", ".", markOpen + "<|im_end|>" + markClose, markOpen, markClose, "don't ", "\t", "<|reserved_0|>",
}

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(bits[r.IntN(len(bits))])
	}
	return b.String()
}

// uttered is a text as a model might have generated it, cut into tokens in any way; spell is how many special tokens of a
// hundred are spelled with others.
func uttered(r *rand.Rand, tok *tokenizer.Tokenizer, spell int, text string) []int32 {
	var ids []int32
	for text != "" {
		n := min(len(text), 1+r.IntN(6))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		for i := range n {
			switch special := startsSpecial(tok, text[i:]); {
			case special == 0:
				continue
			case i == 0 && r.IntN(100) >= spell:
				n = special
			case i > 0:
				n = i
			}
			break
		}
		ids = append(ids, tok.Encode(text[:n], tokenizer.EncodeOptions{ParseSpecial: true})...)
		text = text[n:]
	}
	return ids
}

// startsSpecial is the length of the special token at the start of a text.
func startsSpecial(tok *tokenizer.Tokenizer, text string) int {
	if ids := tok.Encode(text[:min(len(text), 40)], tokenizer.EncodeOptions{ParseSpecial: true}); tok.Special(ids[0]) {
		name, _ := tok.Token(ids[0])
		return len(name)
	}
	return 0
}

func demoHistory(t testing.TB, exact bool) *History {
	return New(demoGuard(t), Terms{Exact: exact})
}

func (h *History) encodeText(text string) Tokens { return h.mustEncode(Salt{}, &Draft{Text: text}) }

func (h *History) mustEncode(s Salt, d *Draft) Tokens {
	t, err := h.Encode(context.Background(), s, d)
	if err != nil {
		panic(err)
	}
	return t
}

// Without answers, what comes out of the memory is what encoding gives, whatever was in it before.
func TestHistoryEncodes(t *testing.T) {
	h := demoHistory(t, false)
	h.limit = 20000 // some is forgotten on the way
	r := rand.New(rand.NewPCG(1, 2))
	known := []string{""}
	for range 1000 {
		text := known[r.IntN(len(known))]
		text = text[:r.IntN(len(text)+1)] + randomText(r, r.IntN(12))
		text = strings.ToValidUTF8(text, "?")
		got := h.encodeText(text)
		if want := encoded(t, h.guard, text); !slices.Equal(got.IDs, want) {
			t.Fatalf("%q: %v, want %v", text, got.IDs, want)
		}
		h.check(t)
		if len(known) < 200 {
			known = append(known, text)
		} else {
			known[r.IntN(len(known))] = text
		}
	}
}

// check holds the invariants.
func (h *History) check(t testing.TB) {
	t.Helper()
	below, size := map[*piece]int{}, 0 // of each piece, how many are below it
	for p := h.used.older; p != &h.used; p = p.older {
		if p.older.newer != p || p.newer.older != p {
			t.Fatal("the ring is broken")
		}
		if !h.alive(p) {
			t.Fatalf("piece %q is in no tree", p.text)
		}
		if _, seen := below[p.parent]; p.parent != nil && !seen {
			t.Fatalf("piece %q was used after its parent", p.text)
		}
		below[p] = 0
		below[p.parent]++
		size += p.bytes()
	}
	delete(below, nil) // the roots are below nothing
	for p, n := range below {
		if n != len(p.next) {
			t.Fatalf("piece %q has %d below it, %d of them in the ring", p.text, len(p.next), n)
		}
	}
	if size != h.size || size > h.limit && len(below) > 20 {
		t.Fatalf("%d bytes counted, %d there, limit %d", h.size, size, h.limit)
	}
}

// holds asserts that ids stand for the text.
func holds(t testing.TB, h *History, got Tokens, text string) {
	t.Helper()
	if s := h.tok.Decode(got.IDs, false); s != Unmark(text) {
		t.Fatalf("ids read\n%q, want\n%q", s, Unmark(text))
	}
	for i, c := range got.cuts {
		if s := h.tok.Decode(got.IDs[:got.at[i]], false); s != Unmark(text[:c]) {
			t.Fatalf("ids up to %d read\n%q, want\n%q", c, s, Unmark(text[:c]))
		}
	}
}

// Conversations in which the model cut its answers into tokens of its own: what follows keeps those tokens, and ids
// always read as the text.
func TestHistorySplices(t *testing.T) {
	h := demoHistory(t, true)
	h.limit = 200000
	r := rand.New(rand.NewPCG(3, 4))
	for range 120 {
		text := "<|im_start|>user\n" + randomText(r, 4) + "<|im_end|>\n"
		var before []int32
		for range 5 {
			prompt := text + "<|im_start|>assistant\n"
			enc := h.encodeText(prompt)
			holds(t, h, enc, prompt)
			if !slices.Equal(before, enc.IDs[:len(before)]) {
				t.Fatalf("%q: %v, want it to begin with %v", prompt, enc.IDs, before)
			}
			answer := uttered(r, h.tok, 10, Unmark(randomText(r, 6)))
			h.Remember(&enc, Answer{IDs: answer, Spoken: len(enc.text), Whole: true})
			h.check(t)
			said := h.spell(answer)
			if r.IntN(4) == 0 { // edited somewhere
				at := r.IntN(len(said) + 1)
				for at < len(said) && !utf8.RuneStart(said[at]) {
					at++
				}
				said = strings.ToValidUTF8(said[:at]+randomText(r, 1)+said[at:], "?")
				before = nil
			} else {
				before = slices.Concat(enc.IDs, answer)
			}
			text = prompt + said + "<|im_end|>\n<|im_start|>user\n" + randomText(r, 3) + "<|im_end|>\n"
			if !strings.Contains(said, "\uFFFD") {
				holds(t, h, h.encodeText(text), text)
			}
		}
	}
}

// An answer that is continued with other text keeps its tokens up to the last place where its own and the encoded ones
// both end.
func TestSplicePlaces(t *testing.T) {
	h := demoHistory(t, true)
	plain := h.guard.Plain
	const prompt = "<|im_start|>assistant\n"
	for _, c := range []struct {
		name   string
		said   []string // one token sequence each
		shown  string
		begins []string // what the ids must begin with, each encoded alone
		used   int      // generated ids in the prompt
	}{
		{"as said", []string{"Hel", "lo", " there"}, "Hello there<|im_end|>", []string{prompt, "Hel", "lo", " there"}, 3},
		{"more text after it", []string{"Hel", "lo", " there"}, "Hello there, you<|im_end|>", []string{prompt, "Hel", "lo", " there"}, 3},
		{"trimmed", []string{"Hel", "lo", " there", "\n"}, "Hello there<|im_end|>", []string{prompt, "Hel", "lo", " there"}, 3},
		{"cut in a word", []string{"Hel", "lo", " th", "ere"}, "Hello them<|im_end|>", []string{prompt, "Hel", "lo"}, 2},
		{"another answer", []string{"Hel", "lo"}, "Yes<|im_end|>", []string{prompt, "Yes"}, 0},
		{"forged end", []string{"a", "<", "|im_end|", ">", "b"}, "a" + markOpen + "<|im_end|>" + markClose + "b<|im_end|>", []string{prompt, "a", "<", "|im_end|", ">", "b"}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.Forget()
			enc := h.encodeText(prompt)
			var ids, begins []int32
			for _, s := range c.said {
				ids = append(ids, h.tok.Encode(s, tokenizer.EncodeOptions{})...)
			}
			for i, s := range c.begins {
				if i == 0 {
					begins = append(begins, plain(s)...)
				} else {
					begins = append(begins, h.tok.Encode(s, tokenizer.EncodeOptions{})...)
				}
			}
			h.Remember(&enc, Answer{IDs: ids, Spoken: len(enc.text), Whole: true})
			got := h.encodeText(prompt + c.shown)
			holds(t, h, got, prompt+c.shown)
			if len(got.IDs) < len(begins) || !slices.Equal(got.IDs[:len(begins)], begins) {
				t.Errorf("ids %v, want them to begin with %v", got.IDs, begins)
			}
			extra := len(begins) - len(plain(prompt))
			if c.used == 0 {
				extra = 0
			}
			if got.Spliced != extra {
				t.Errorf("%d ids spliced, want %d", got.Spliced, extra)
			}
			other := h.mustEncode(Salt{1}, &Draft{Text: prompt + c.shown})
			if want := encoded(t, h.guard, prompt+c.shown); !slices.Equal(other.IDs, want) || other.Spliced != 0 {
				t.Errorf("another salt: %v, want %v", other.IDs, want)
			}
		})
	}
}

// FuzzSplice: whatever was said before a text and however it was cut, the ids read as the text.
func FuzzSplice(f *testing.F) {
	h := demoHistory(f, true)
	f.Add("Hello there", "Hello there, you", uint64(1))
	f.Add("<think>\nHm\n</think>\n\nYes", "<think>\nHm\n</think>\n\nNo", uint64(2))
	f.Add("é😀", "é😀e\u0301", uint64(3))
	f.Add("a<|im_end|>b", "a"+markOpen+"<|im_end|>"+markClose+"b", uint64(4))
	f.Fuzz(func(t *testing.T, said, shown string, seed uint64) {
		said, shown = strings.ToValidUTF8(said, "?"), strings.ToValidUTF8(shown, "?")
		if len(said)+len(shown) > 2000 {
			return
		}
		s := Salt{byte(seed), byte(seed >> 8)}
		const prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
		enc := h.mustEncode(s, &Draft{Text: prompt})
		h.Remember(&enc, Answer{IDs: uttered(rand.New(rand.NewPCG(seed, 1)), h.tok, 10, Unmark(said)), Spoken: len(enc.text), Whole: true})
		for _, text := range []string{prompt + shown, prompt + said, prompt + h.guard.wrapper.Replace(shown)} {
			got := h.mustEncode(s, &Draft{Text: text})
			holds(t, h, got, text)
		}
	})
}

// Requests share the memory; run with -race.
func TestHistoryShared(t *testing.T) {
	h := demoHistory(t, true)
	h.limit = 30000
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 9))
			for range 200 {
				prompt := "<|im_start|>user\n" + bits[r.IntN(4)] + "<|im_end|>\n<|im_start|>assistant\n"
				enc := h.encodeText(prompt)
				h.Remember(&enc, Answer{IDs: uttered(r, h.tok, 10, Unmark(randomText(r, 3))), Spoken: len(enc.text), Whole: true})
				text := prompt + randomText(r, 3)
				if got, want := h.tok.Decode(h.encodeText(text).IDs, false), Unmark(text); got != want {
					t.Errorf("ids read %q, want %q", got, want)
				}
			}
		})
	}
	for range 20 {
		h.Forget()
		h.encodeText("<|im_start|>user\nHi<|im_end|>\n")
	}
	all.Wait()
	h.check(t)
}

// encoded are the ids of a text.
func encoded(t *testing.T, g *Guard, text string) []int32 {
	t.Helper()
	ids, err := g.encode(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
