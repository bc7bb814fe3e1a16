package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

func testFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLoadConfig(t *testing.T) {
	main := testFile(t, "qwen2.json")
	config := `{"bos_token": null, "eos_token": {"content": "<|end|>", "lstrip": false}, "pad_token": "he",
		"added_tokens_decoder": {
			"9000": {"content": "<late>", "special": true, "normalized": false},
			"442": {"content": "<think>", "special": true, "normalized": false}}}`
	tok, err := Load(fstest.MapFS{"tokenizer.json": {Data: main}, "tokenizer_config.json": {Data: []byte(config)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := tok.BOS(); ok {
		t.Error("BOS is set although the configuration says null")
	}
	end, _ := tok.ID("<|end|>")
	if eos, ok := tok.EOS(); !ok || eos != end || !tok.Special(eos) {
		t.Errorf("EOS = %d, %v, want special %d", eos, ok, end)
	}
	if got := tok.Size(); got != 9001 {
		t.Errorf("Size = %d, want 9001", got)
	}
	late := tok.Encode("a<late>", EncodeOptions{ParseSpecial: true})
	if got := late[len(late)-1]; got != 9000 {
		t.Errorf("<late> is %d, want 9000", got)
	}
	for token, special := range map[string]bool{"<late>": true, "<think>": true, "</think>": false, "he": true, "a": false} {
		id, ok := tok.ID(token)
		if !ok || tok.Special(id) != special {
			t.Errorf("Special(%s) = %v, want %v", token, !special, special)
		}
		if text, ok := tok.Token(id); !ok || text != token {
			t.Errorf("Token(%d) = %q, want %q", id, text, token)
		}
	}
	for _, id := range []int32{-1, 5000, 9001, 1 << 30} {
		if text, ok := tok.Token(id); ok || tok.Bytes(id) != nil || tok.Special(id) {
			t.Errorf("id %d, which no token has, is %q", id, text)
		}
	}
	if got := tok.Decode([]int32{-1, 5000, late[0], 1 << 30, 9000}, true); got != "a" {
		t.Errorf("Decode with unknown ids = %q, want \"a\"", got)
	}
}

func TestBytes(t *testing.T) {
	tok := mustParse(t, filepath.Join("testdata", "qwen2.json"))
	for token, want := range map[string]string{"Ġ": " ", "Ċ": "\n", "Ã": "\xc3", "Ġt": " t", "<think>": "<think>"} {
		id, ok := tok.ID(token)
		if got := tok.Bytes(id); !ok || string(got) != want {
			t.Errorf("Bytes(%s) = %q, want %q", token, got, want)
		}
	}
}

func TestInvalidUTF8(t *testing.T) {
	tok := mustParse(t, filepath.Join("testdata", "llama3.json"))
	for in, want := range map[string]string{
		"a\xffb": "a\uFFFDb", "\xe4\xbd": "\uFFFD", "\xe4\xbdx": "\uFFFDx", "\xf0\x9f\x98": "\uFFFD",
		"\xc0\x80": "\uFFFD\uFFFD", "\xed\xa0\x80": "\uFFFD\uFFFD\uFFFD", "\xf4\x90\x80\x80": "\uFFFD\uFFFD\uFFFD\uFFFD", "\xe0\x80\x80": "\uFFFD\uFFFD\uFFFD",
	} {
		got := tok.Encode(in, EncodeOptions{})
		if !slices.Equal(got, tok.Encode(want, EncodeOptions{})) {
			t.Errorf("%q is not encoded as %q", in, want)
		}
		if text := tok.Decode(got, false); text != want {
			t.Errorf("%q comes back as %q, want %q", in, text, want)
		}
	}
}

func TestAppendEncodeKeepsPrefix(t *testing.T) {
	tok := mustParse(t, filepath.Join("testdata", "qwen2.json"))
	got, err := tok.AppendEncode([]int32{7, 8}, "the fire", EncodeOptions{})
	want := append([]int32{7, 8}, tok.Encode("the fire", EncodeOptions{})...)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("AppendEncode = %v, %v, want %v", got, err, want)
	}
}

// TestSplitFailure checks what a caller gets when the expression engine gives up.
func TestSplitFailure(t *testing.T) {
	tok := mustParse(t, filepath.Join("testdata", "unknown.json"))
	failure := errors.New("too slow")
	tok.stages[0] = splitStage{how: isolated, find: func(_ string, _ *watch, found func(from, to int)) error {
		found(0, 4)
		return failure
	}}
	const text = "warm small room"
	ids, err := tok.AppendEncode(nil, text, EncodeOptions{})
	if !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	if got := tok.Decode(ids, false); got != text {
		t.Errorf("the ids decode to %q, want %q", got, text)
	}
	if got := tok.Encode(text, EncodeOptions{}); !slices.Equal(got, ids) {
		t.Errorf("Encode = %v, AppendEncode %v", got, ids)
	}
}

// TestShortAndLongMerge holds the two merge routines equal on words around the
// length where one gives way to the other.
func TestShortAndLongMerge(t *testing.T) {
	tok := mustParse(t, filepath.Join("testdata", "qwen2.json"))
	m := tok.model.(*bpe)
	text := strings.Repeat("thethethefiresmallroomaaaaabbnightlongwärmtкомнату火", 4)
	for n := 2; n <= 2*shortWord; n++ {
		for from := 0; from+n < len(text) && from < 90; from++ {
			var sc wordScratch
			for i := range n {
				sc.syms = append(sc.syms, symbol{id: m.unit[text[from+i]]})
			}
			long := m.mergeLong(nil, &wordScratch{syms: slices.Clone(sc.syms)})
			if n > shortWord {
				if got := m.mergeWord(nil, text[from:from+n], &sc); !slices.Equal(got, long) {
					t.Fatalf("%q: %v and %v", text[from:from+n], got, long)
				}
				continue
			}
			if short := m.mergeShort(nil, sc.syms); !slices.Equal(short, long) {
				t.Fatalf("%q: short %v, long %v", text[from:from+n], short, long)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	tok := mustParse(t, filepath.Join("testdata", "llama3.json"))
	g := readGolden(t, "golden.json")
	want := g.Tokenizers["llama3"].IDs
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range g.Texts {
				i = (i + w*17) % len(g.Texts)
				if got := tok.Encode(g.Texts[i], EncodeOptions{ParseSpecial: true}); !slices.Equal(got, want[i]) {
					t.Errorf("text %d differs", i)
				}
			}
		}()
	}
	wg.Wait()
}

// small is a tokenizer.json with one place to break.
func small(section, value string, more ...string) []byte {
	parts := map[string]string{
		"added_tokens": `[]`, "normalizer": `null`, "post_processor": `null`,
		"pre_tokenizer": `{"type":"ByteLevel","add_prefix_space":false}`,
		"decoder":       `{"type":"ByteLevel"}`,
		"model":         `{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}`,
	}
	parts[section] = value
	for i := 0; i+1 < len(more); i += 2 {
		parts[more[i]] = more[i+1]
	}
	var b bytes.Buffer
	for _, k := range []string{"added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"} {
		fmt.Fprintf(&b, ",%q:%s", k, parts[k])
	}
	return []byte("{" + b.String()[1:] + "}")
}

func TestParseErrors(t *testing.T) {
	bpe := func(fields string) string { return `{"type":"BPE",` + fields + `}` }
	tests := []struct{ section, value, want string }{
		{"model", `{"type":"Unigram","vocab":[["a",0.1]]}`, "Unigram without unk_id is not supported"},
		{"model", `{"type":"Unigram","unk_id":1,"vocab":[["a",0.1]]}`, "unk_id 1"},
		{"model", `{"type":"Unigram","unk_id":0,"vocab":[["a",0.1,2]]}`, "not a token and its score"},
		{"model", `{"type":"Unigram","unk_id":0,"vocab":[["a","b"]]}`, "score"},
		{"model", `{"type":"Unigram","unk_id":0,"vocab":{"a":0}}`, "not of the form that Unigram has"},
		{"model", `{"type":"WordPiece","vocab":{"a":0}}`, "[UNK]"},
		{"model", `{"type":"WordLevel","unk_token":"a","vocab":[["a",0]]}`, "not of the form that WordLevel has"},
		{"model", `{"type":"BPE","merges":["a b"]}`, "needs vocab and merges"},
		{"model", `{"type":"BPE","merges":["a b"],"vocab":{}}`, "not in the vocabulary"},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":[["","a"]]}`, "empty part"},
		{"model", `{"type":"WordLevel"}`, "unk_token"},
		{"model", `{"type":"Markov","vocab":{"a":0}}`, `model: "Markov" is not supported`},
		{"model", bpe(`"vocab":{"a":0}`), "needs vocab and merges"},
		{"model", bpe(`"vocab":{"a":-1},"merges":[]`), "a token id must be"},
		{"model", bpe(`"vocab":{"a":1.5},"merges":[]`), "is due"},
		{"model", bpe(`"vocab":{"a":4194304},"merges":[]`), "a token id must be"},
		{"model", bpe(`"vocab":{"a":4000000},"merges":[]`), "only 1 tokens"},
		{"model", bpe(`"vocab":{"a":0,"b":1},"merges":["a b"]`), "not in the vocabulary"},
		{"model", bpe(`"vocab":{"a":0,"b":1},"merges":["ab"]`), "no space"},
		{"model", bpe(`"vocab":{"a":0,"b":1},"merges":["a b a"]`), "more than two parts"},
		{"model", bpe(`"vocab":{"a":0,"b":1},"merges":[["a"]]`), "1 parts"},
		{"model", bpe(`"vocab":{"a\ud800":0},"merges":[]`), "surrogate"},
		{"model", bpe(`"vocab":{"a":0},"merges":[],"dropout":0.1`), "dropout"},
		{"model", bpe(`"vocab":{"a":0},"merges":[],"unk_token":"u"`), "unk_token"},
		{"normalizer", `{"type":"Romaji"}`, "normalizer: Romaji is not supported"},
		{"normalizer", `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Soundex"}]}`, "normalizer: Soundex"},
		{"normalizer", `{"type":"Precompiled","precompiled_charsmap":"AAAAAAA="}`, "Precompiled"},
		{"normalizer", `{"type":"Replace","pattern":{"Regex":"a"},"content":"123456789"}`, "Replace by"},
		{"normalizer", `{"type":"Sequence","normalizers":[` + strings.Repeat(`{"type":"Prepend","prepend":"ab"},`, 4) + `{"type":"Prepend","prepend":"ab"}]}`, "lengthen"},
		{"pre_tokenizer", `{"type":"UnicodeScripts"}`, "pre_tokenizer: UnicodeScripts is not supported"},
		{"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"[[:alpha:]]"},"behavior":"Isolated"}`, "POSIX"},
		{"pre_tokenizer", `{"type":"CharDelimiterSplit","delimiter":"ab"}`, "not one character"},
		{"pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"Digits"},{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"}]}`, "Metaspace"},
		{"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"}`, "(a"},
		{"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"a"},"behavior":"Sideways"}`, "Sideways"},
		{"pre_tokenizer", `{"type":"Split","pattern":{},"behavior":"Isolated"}`, "without a pattern"},
		{"decoder", `{"type":"CTC"}`, "decoder: CTC is not supported"},
		{"decoder", `{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"WordPiece"}]}`, "WordPiece after ByteFallback"},
		{"normalizer", `{"type":"Replace","pattern":{"String":""},"content":"x"}`, "normalizer: Replace"},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":"▁","prepend_scheme":"last"}`, `prepend_scheme "last"`},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":"","prepend_scheme":"first"}`, "one character"},
		{"post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{}}`, `no ids for "x"`},
		{"post_processor", `{"type":"BertProcessing","sep":["b",1],"cls":["z",77]}`, "no token has id 77"},
		{"post_processor", `{"type":"Odd"}`, "post_processor: Odd"},
		{"added_tokens", `[{"id":0,"content":"c"}]`, "same id 0"},
		{"added_tokens", `[{"id":-4,"content":"c"}]`, "id -4"},
		{"added_tokens", `{}`, "added_tokens"},
	}
	for _, tt := range tests {
		_, err := Parse(small(tt.section, tt.value), nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "parse tokenizer.json: ") {
			t.Errorf("%s %s: error %v, want one with %q", tt.section, tt.value, err, tt.want)
		}
	}
	if _, err := Parse(small("normalizer", "null"), nil); err != nil {
		t.Errorf("the unbroken file: %v", err)
	}
	for _, text := range []string{"", "[]", "{", `{"model"`, "\xff", `{} x`, `{"model":{"type":"BPE","vocab":{"a`} {
		if _, err := Parse([]byte(text), nil); err == nil {
			t.Errorf("Parse(%q) succeeds", text)
		}
	}
}

func TestMissingFile(t *testing.T) {
	_, err := Load(fstest.MapFS{"vocab.txt": {}})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "vocab.txt") {
		t.Errorf("error %v does not name the file that is there", err)
	}
}

// TestMergesBeforeVocab reads sections in an unusual order, and the older form of
// the file that has no model type.
func TestMergesBeforeVocab(t *testing.T) {
	for _, model := range []string{
		`{"merges":[["a","b"]],"vocab":{"a":0,"b":1,"ab":2},"type":"BPE"}`,
		`{"dropout":null,"continuing_subword_prefix":"","end_of_word_suffix":"","merges":["a b"],"vocab":{"\u0061":0,"b":1,"ab":2}}`,
	} {
		tok, err := Parse(small("model", model), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode("aab!b", EncodeOptions{}); !slices.Equal(got, []int32{0, 2, 1}) {
			t.Errorf("ids %v, want [0 2 1]", got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small("normalizer", `{"type":"NFC"}`), []byte(`{"eos_token":"b"}`), "ab")
	f.Add(small("post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[1]}}}`), []byte(nil), " ab\n")
	f.Add(small("pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"String":" "},"behavior":"MergedWithNext"},{"type":"ByteLevel"}]}`), []byte(nil), "a b")
	for _, name := range []string{"metaspace_first", "bert", "unigram_map", "unigram_bytes", "suffix", "level", "falcon", "bytes_normalized"} {
		f.Add(testFile(f, name+".json"), []byte(nil), " a 火b-c\u00bd 12é")
	}
	f.Add(small("added_tokens", `[{"id":3,"content":"\u00e9 ","lstrip":true,"rstrip":true,"single_word":true,"normalized":true,"special":true}]`), []byte(`{"added_tokens_decoder":{"7":{"content":"z"}}}`), "a é  b")
	f.Fuzz(func(t *testing.T, main, config []byte, text string) {
		if len(main) > 1<<16 || len(text) > 1<<10 {
			return
		}
		tok, err := Parse(main, config)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "parse tokenizer") {
				t.Errorf("error %q does not name the file", err)
			}
			return
		}
		if tok.Size() > 2*(len(main)+len(config))+maxGap {
			t.Errorf("size %d from %d bytes", tok.Size(), len(main))
		}
		ids := tok.Encode(text, EncodeOptions{AddSpecial: true, ParseSpecial: true})
		checkDecode(t, tok, ids, false, tok.Decode(ids, false))
	})
}

// TestByteTokens decodes tokens that stand for single bytes.
func TestByteTokens(t *testing.T) {
	tok := mustParse(t, filepath.Join("testdata", "metaspace_first.json"))
	ids := func(names ...string) (out []int32) {
		for _, name := range names {
			id, ok := tok.ID(name)
			if !ok {
				t.Fatalf("no token %s", name)
			}
			out = append(out, id)
		}
		return out
	}
	for want, names := range map[string][]string{
		"火":                         {"<0xE7>", "<0x81>", "<0xAB>"},
		"a\uFFFD\uFFFDa":            {"a", "<0xE7>", "<0x81>", "a"},
		"a\uFFFD":                   {"▁", "a", "<0xE7>"},
		"\uFFFD\uFFFD\uFFFD\uFFFDb": {"<0xE7>", "<0x81>", "<0xAB>", "<0xFF>", "b"},
		" a":                        {"▁", "▁", "a"},
		"\uFFFD\uFFFDa":             {"<0xFF>", "<0xE7>", "a"},
	} {
		checkDecode(t, tok, ids(names...), true, want)
	}
	d := tok.NewDecoder(true)
	for range 2 { // the second stream begins like the first
		if got := stream(t, d, ids("▁", "a", "▁", "a")); got != "a a" {
			t.Errorf("stream gives %q, want \"a a\"", got)
		}
	}
}

// FuzzStream holds the stream equal to the whole, whatever the ids, and the text
// of encoded text equal to that text.
func FuzzStream(f *testing.F) {
	tok := mustParse(f, filepath.Join("testdata", "o200k.json"))
	bySpaces := mustParse(f, filepath.Join("testdata", "metaspace_first.json"))
	f.Add([]byte{0x80, 0xf0, 1, 2, 0xff}, "héllo 🔥 <|end|>", false)
	f.Add([]byte("\xf0\x9f\x94\xa5"), "\xe4\xbd", true)
	f.Fuzz(func(t *testing.T, raw []byte, text string, skip bool) {
		var ids []int32
		for i := 0; i+1 < len(raw); i += 2 {
			ids = append(ids, 2*int32(raw[i])+int32(raw[i+1]&1))
		}
		whole := tok.Decode(ids, skip)
		if !utf8.ValidString(whole) {
			t.Errorf("Decode(%v) = %q is not valid UTF-8", ids, whole)
		}
		checkDecode(t, tok, ids, skip, whole)
		checkDecode(t, bySpaces, ids, skip, bySpaces.Decode(ids, skip))
		var joined []byte
		for _, id := range ids {
			if !skip || !tok.Special(id) {
				joined = append(joined, tok.Bytes(id)...)
			}
		}
		if want := string(appendLossy(nil, joined)); whole != want {
			t.Errorf("Decode(%v) = %q, but the bytes make %q", ids, whole, want)
		}
		want := string(appendLossy(nil, []byte(text)))
		if got := tok.Decode(tok.Encode(text, EncodeOptions{}), false); got != want {
			t.Errorf("%q comes back as %q", want, got)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := mustParse(b, filepath.Join("testdata", "llama3.json"))
	source := testFile(b, "golden.json")
	text := string(source[:64<<10])
	prose := strings.Repeat("The kettle's on the hearth and it won't boil; 12345 things wait.\n", 1000)
	for _, bench := range []struct{ name, text string }{{"numbers", text}, {"prose", prose}} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.text)))
			var ids []int32
			for b.Loop() {
				ids, _ = tok.AppendEncode(ids[:0], bench.text, EncodeOptions{ParseSpecial: true})
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	tok := mustParse(b, filepath.Join("testdata", "llama3.json"))
	text := strings.Repeat("The kettle's on the hearth and it won't boil.\n", 1000)
	ids := tok.Encode(text, EncodeOptions{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		d := tok.NewDecoder(true)
		for _, id := range ids {
			d.Add(id)
		}
	}
}

// BenchmarkParse loads a vocabulary of the size of today's models: 250,000 tokens
// with a merge each.
func BenchmarkParse(b *testing.B) {
	const size = 250_000
	var vocab, merges strings.Builder
	var names []string
	for c := range 256 {
		names = append(names, string(byteRune[c]))
	}
	for i := 0; len(names) < size; i++ {
		l, r := names[i/256], names[i%256]
		names = append(names, l+r)
		fmt.Fprintf(&merges, ",[%q,%q]", l, r)
	}
	for i, n := range names {
		fmt.Fprintf(&vocab, ",%q:%d", n, i)
	}
	data := small("model", `{"type":"BPE","vocab":{`+vocab.String()[1:]+`},"merges":[`+merges.String()[1:]+`]}`)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse(data, nil); err != nil {
			b.Fatal(err)
		}
	}
}
