package generate

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/tokenizer"
)

// TestTapeVocabularies: in every form of vocabulary the text of a stream is that of its tokens' bytes, each once and in order,
// but for U+FFFD; and a stream that is cut has no U+FFFD for what is not complete.
func TestTapeVocabularies(t *testing.T) {
	for name, tok := range vocabularyFiles(t) {
		r := rand.New(rand.NewPCG(7, uint64(tok.Size())))
		for range 200 {
			ids := make([]int32, 1+r.IntN(12))
			for i := range ids {
				ids[i] = int32(r.IntN(tok.Size()))
			}
			if r.IntN(3) == 0 {
				ids = tok.Encode("Hello, wörld €🙂 日本 ab", tokenizer.EncodeOptions{})
				ids = ids[:r.IntN(len(ids)+1)]
			}
			d, tape, want := tok.NewDecoder(false), &tape{}, ""
			for i, id := range ids {
				s := d.Add(id)
				want += s
				tape.add(chat.Logprob{ID: id, Logprob: float64(i)}, tok.Bytes(id), s)
				tape.piece(s, true, true)
				tape.emit(len(tape.kept))
			}
			partial := d.Partial()
			end := d.Cut()
			want += end
			tape.decoded(end)
			tape.piece(end, true, true)
			tape.emit(len(tape.kept))
			got, lps := tape.take(true)
			var bytes []byte
			runes, last := 0, -1.
			for _, lp := range lps {
				bytes, runes = append(bytes, lp.Bytes...), runes+lp.Runes
				if lp.Logprob <= last {
					t.Errorf("%s: %v: token %v after %v", name, ids, lp.Logprob, last)
				}
				last = lp.Logprob
			}
			if got != want || utf8.Valid(bytes) && string(bytes) != want && !strings.Contains(want, "\uFFFD") || runes != utf8.RuneCountInString(want) {
				t.Errorf("%s: %v: %q, %d characters, is told as %q, %d", name, ids, want, utf8.RuneCountInString(want), bytes, runes)
			}
			if whole := tok.Decode(ids, false); partial == 0 && want != whole || partial > 0 && !strings.HasPrefix(want, strings.TrimRight(whole, "\uFFFD")) {
				t.Errorf("%s: %v: cut after %q, the whole is %q", name, ids, want, whole)
			}
		}
	}
}

// vocabularyFiles are the tokenizers of package tokenizer's tests by their files.
func vocabularyFiles(t *testing.T) map[string]*tokenizer.Tokenizer {
	t.Helper()
	files, err := filepath.Glob("../tokenizer/testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*tokenizer.Tokenizer{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if tok, err := tokenizer.Load(fstest.MapFS{"tokenizer.json": {Data: text}}); err == nil { // else a golden
			all[filepath.Base(file)] = tok
		}
	}
	if len(all) < 15 {
		t.Fatalf("only %d vocabularies", len(all))
	}
	return all
}

// TestPrimeVocabularies: in every form of vocabulary a completion's text goes on behind its prompt's, with nothing of it again,
// and so do the bytes of their tokens.
func TestPrimeVocabularies(t *testing.T) {
	for name, tok := range vocabularyFiles(t) {
		o := &output{tok: tok}
		for _, said := range []string{"Hello, wörld €🙂🙂 日本 ab é", " two  blanks", "\n\nx"} {
			ids := tok.Encode(said, tokenizer.EncodeOptions{AddSpecial: true})
			whole := tok.Decode(ids, false)
			for n := 1; n <= len(ids); n++ {
				p := &prompt{tokens: ids[:n], text: decodeWhole(tok, ids[:n])}
				d, tape := tok.NewDecoder(false), &tape{}
				tape.prime(o.prime(d, p.tokens))
				said, told := p.text, ""
				for _, lp := range echoOf(o, p) {
					told += string(lp.Bytes)
				}
				reply := func(s string) {
					said += s
					tape.piece(s, true, true)
					tape.emit(len(tape.kept))
				}
				for _, id := range ids[n:] {
					s := d.Add(id)
					tape.add(chat.Logprob{ID: id}, tok.Bytes(id), s)
					reply(s)
				}
				s := d.Flush()
				tape.decoded(s)
				reply(s)
				_, lps := tape.take(true)
				for _, lp := range lps {
					told += string(lp.Bytes)
				}
				if said != whole || told != whole && !strings.Contains(whole, "\uFFFD") {
					t.Errorf("%s: %d tokens of %q: %q is continued as %q, told as %q", name, n, whole, p.text, said, told)
				}
			}
		}
	}
}

// echoOf are the tokens of a prompt as its echo tells them.
func echoOf(o *output, p *prompt) (lps []chat.Logprob) {
	for _, id := range p.tokens {
		lps = append(lps, o.oneLogprob(id, 0))
	}
	o.place(lps, p)
	return lps
}
