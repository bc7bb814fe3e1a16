package tokenizer

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cutAt encodes a text cut before every anchor.
func cutAt(t *Tokenizer, a *Anchors, text string) []int32 {
	var ids []int32
	from := 0
	for i := 0; i < len(text); i++ {
		if n := a.At(text[i:]); n > 0 {
			ids = append(ids, t.Encode(text[from:i], EncodeOptions{ParseSpecial: true})...)
			from = i
			i += n - 1
		}
	}
	return append(ids, t.Encode(text[from:], EncodeOptions{ParseSpecial: true})...)
}

func specials(t *Tokenizer) []int32 {
	var ids []int32
	for id := range int32(t.Size()) {
		if t.Special(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Texts cut at anchors have the ids of the whole, with every kind of tokenizer.
func TestAnchors(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	bits := []string{"<|start|>", "<|end|>", "<s>", "</s>", "[SEP]", "<mask>", "<think>", "</think>", "key", "<unk>", "<0x0A>", "<|", "<|end|", "|>", "<", ">", " ", "  ", "        ", "\n", "\n\n",
		"Hello", " world", "é", "e\u0301", "CAFÉ", "日本語", "12345", "'s", "don't", "\t", "A", ".", "😀"}
	r := rand.New(rand.NewPCG(5, 6))
	count := 0
	for _, f := range files {
		if strings.HasPrefix(filepath.Base(f), "golden") {
			continue
		}
		t.Run(filepath.Base(f), func(t *testing.T) {
			tok := mustParse(t, f)
			a := tok.Anchors(specials(tok))
			count += a.Len()
			for range 400 {
				var b strings.Builder
				for range r.IntN(14) {
					b.WriteString(bits[r.IntN(len(bits))])
				}
				text := b.String()
				if got, want := cutAt(tok, a, text), tok.Encode(text, EncodeOptions{ParseSpecial: true}); !slices.Equal(got, want) {
					t.Fatalf("%q: %v in pieces, %v whole", text, got, want)
				}
			}
		})
	}
	if count < 40 {
		t.Errorf("%d anchors in all files", count)
	}
}

// Tokens that something outside them decides about are no anchors.
func TestNoAnchors(t *testing.T) {
	tok := mustParse(t, "testdata/added.json")
	a := tok.Anchors(specials(tok))
	if n := a.At("<|start|>x"); n != len("<|start|>") {
		t.Errorf("<|start|> is an anchor of %d bytes", n)
	}
	for _, s := range []string{"<mask>", "key", "CAFÉ", "<think>", "x", ""} {
		if n := a.At(s); n != 0 {
			t.Errorf("%q is an anchor of %d bytes", s, n)
		}
	}
	for _, c := range []struct {
		anchor string
		others []string
		want   bool
	}{
		{"<a>", []string{"<a>", "<b>"}, false},
		{"<a>", []string{"<a>b"}, true},
		{"<a>", []string{"x<a>y"}, true},
		{"<a>", []string{"x<"}, true},
		{"<a>", []string{"<<a"}, true},
		{"<a>", []string{"<", "a>", "<a"}, false},
	} {
		if got := reached([]string{c.anchor}, setOf(c.others))[0]; got != c.want {
			t.Errorf("%s reached by %q: %v", c.anchor, c.others, got)
		}
	}
}

func setOf(texts []string) map[string]int32 {
	set := map[string]int32{}
	for _, s := range texts {
		set[s] = 0
	}
	return set
}

// reachedOne is reached as its words have it.
func reachedOne(anchor string, all []string) bool {
	for _, other := range all {
		if len(other) > len(anchor) && strings.HasPrefix(other, anchor) {
			return true
		}
		for at := 1; at < len(other); at++ {
			if tail := other[at:]; strings.HasPrefix(tail, anchor) || strings.HasPrefix(anchor, tail) {
				return true
			}
		}
	}
	return false
}

// randomTexts makes some short texts of few letters, so that they overlap in every way.
func randomTexts(r *rand.Rand) []string {
	var all []string
	for range 1 + r.IntN(5) {
		b := make([]byte, 1+r.IntN(6))
		for i := range b {
			b[i] = "abc"[r.IntN(3)]
		}
		all = append(all, string(b))
	}
	return all
}

func TestReached(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		all := randomTexts(r)
		anchors := append(randomTexts(r)[:1], all[0])
		got := reached(anchors, setOf(all))
		for i, a := range anchors {
			if want := reachedOne(a, all); got[i] != want {
				t.Fatalf("%q reached by %q: %v", a, all, got[i])
			}
		}
	}
}

// The set and the finder agree with looking at every place.
func TestTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		all := randomTexts(r)
		text := strings.Join(randomTexts(r), "")
		if got, want := NewTexts(all).In(text), slices.ContainsFunc(all, func(s string) bool { return strings.Contains(text, s) }); got != want {
			t.Fatalf("%q in %q: %v", all, text, got)
		}
		m := &matcher{}
		for i, s := range all {
			m.add(s, &addedToken{ID: int32(i)})
		}
		f := m.finder(text)
		f.read()
		for i := range len(text) {
			tok, n := f.longest(i)
			if want, size := m.longest(text[i:]); tok != want || n != size {
				t.Fatalf("%q at %d of %q: %d bytes, want %d", all, i, text, n, size)
			}
		}
	}
}
