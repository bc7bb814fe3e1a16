//go:build unix

package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"hearth/internal/regular"
	"hearth/internal/regular/regulartest"
)

// processor is the processor time that the process has had.
func processor() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// linear holds the processor time of work on 8 times as much to 24 times that on as much: what is quadratic takes 64 times. It
// looks again where that does not hold: neighbours of the machine make some times longer, and none shorter.
func linear(t *testing.T, n int, work func(n int) func()) {
	t.Helper()
	small, large := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	least := func(n int, best *time.Duration) {
		for range 3 {
			f := work(n)
			runtime.GC()
			start := processor()
			f()
			*best = min(*best, processor()-start)
		}
	}
	for range 3 {
		least(n, &small)
		if least(8*n, &large); large <= 24*max(small, time.Millisecond) {
			return
		}
	}
	t.Errorf("%v for %d, %v for %d", small, n, large, 8*n)
}

// oneWord is a file whose words are whole texts: a vocabulary and the rest of the file.
func oneWord(model string, rest string) []byte {
	return []byte(`{"model":` + model + rest + `}`)
}

func list(n int, sep string, item func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = item(i)
	}
	return strings.Join(all, sep)
}

func level(tokens ...string) string {
	vocab := map[string]int{"<unk>": 0}
	for _, s := range tokens {
		vocab[s] = len(vocab)
	}
	b, _ := json.Marshal(vocab)
	return `{"type":"WordLevel","unk_token":"<unk>","vocab":` + string(b) + `}`
}

func addedList(flags string, texts ...string) string {
	return `,"added_tokens":[` + list(len(texts), ",", func(i int) string {
		b, _ := json.Marshal(texts[i])
		return fmt.Sprintf(`{"id":%d,"content":%s%s}`, 1000+i, b, flags)
	}) + `]`
}

// TestLinearLoad: reading a file takes time in proportion to it, whatever is in it.
func TestLinearLoad(t *testing.T) {
	parse := func(t *testing.T, data []byte) *Tokenizer {
		tok, err := Parse(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	t.Run("added tokens", func(t *testing.T) {
		linear(t, 2500, func(n int) func() {
			data := oneWord(level("a"), `,"added_tokens":[`+list(n, ",", func(i int) string {
				return fmt.Sprintf(`{"id":%d,"content":"<|extra_%d|>","special":true}`, 2+i, i)
			})+`]`)
			return func() {
				tok := parse(t, data)
				ids := specials(tok)
				if a := tok.Anchors(ids); a.Len() != n {
					t.Errorf("%d anchors of %d", a.Len(), n)
				}
			}
		})
	})
	t.Run("guarded texts", func(t *testing.T) {
		linear(t, 2500, func(n int) func() {
			texts := make([]string, n)
			for i := range texts {
				texts[i] = fmt.Sprintf("<|extra_%d|>", i)
			}
			text := strings.Repeat("<|extra_", n)
			return func() {
				if NewTexts(texts).In(text) {
					t.Error("it is in")
				}
			}
		})
	})
	t.Run("steps inside steps", func(t *testing.T) {
		linear(t, 500, func(n int) func() {
			data := small("normalizer", strings.Repeat(`{"type":"Sequence","normalizers":[`, n)+`{"type":"NFC"}`+strings.Repeat(`]}`, n))
			return func() { parse(t, data) }
		})
	})
	t.Run("pieces below each other", func(t *testing.T) {
		linear(t, 2000, func(n int) func() {
			var b strings.Builder
			for i := range n { // each token continues the one before by a byte of a choice that fills few places of a plain hash
				fmt.Fprintf(&b, `,["%s",-1]`, strings.Repeat(fmt.Sprintf("%05d", i), 8))
			}
			data := small("model", `{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0]`+b.String()+`]}`)
			return func() { parse(t, data).Encode("0", EncodeOptions{}) }
		})
	})
}

// TestLinearEncode: the ids of a text take time in proportion to it, with tokenizers made to look far ahead, or back.
func TestLinearEncode(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	pieces := func(n int) string {
		return list(n, ",", func(i int) string { return fmt.Sprintf(`["%s",-%d]`, a(i+1), i+1) })
	}
	for name, c := range map[string]struct {
		file []byte
		text string
		n    int
	}{
		"added tokens that nearly match":            {oneWord(level("a"), addedList("", a(maxAddedBytes-1)+"b")), "a", 4000},
		"one that matches and one that nearly does": {oneWord(level("a"), addedList("", "a", a(maxAddedBytes-1)+"b")), "a", 4000},
		"spaces on the left":                        {oneWord(level("a"), addedList(`,"lstrip":true`, " ")), " ", 4000},
		"spaces on the right":                       {oneWord(level("a"), addedList(`,"rstrip":true`, " ")), " ", 4000},
		"one long word":                             {oneWord(`{"type":"BPE","vocab":{"a":0,"aa":1,"aaaa":2,"aaaaaaaa":3},"merges":["a a","aa aa","aaaa aaaa"]}`, ""), "a", 8000},
		"pieces of pieces":                          {oneWord(`{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],`+pieces(64)+`]}`, ""), "a", 8000},
		"a word of many characters":                 {oneWord(`{"type":"WordPiece","unk_token":"[UNK]","max_input_chars_per_word":1000000000,"vocab":{"[UNK]":0,"a":1,"##a":2,"##`+a(maxTrieBytes-4)+`b":3}}`, ""), "a", 8000},
		"an expression that goes back":              {small("pre_tokenizer", `{"type":"Split","pattern":{"Regex":"(?:a|aa)+c|b"},"behavior":"Isolated"}`), "a", 4000},
		"an expression that looks ahead":            {small("pre_tokenizer", `{"type":"Split","pattern":{"Regex":"a(?=a*b)|x"},"behavior":"Isolated"}`), "a", 4000},
		"a map of endless keys, by clusters":        {small("normalizer", `{"type":"Precompiled","precompiled_charsmap":"`+base64.StdEncoding.EncodeToString(endlessKeys())+`"}`), "abc", 4000},
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := Parse(c.file, nil)
			if err != nil {
				t.Fatal(err)
			}
			linear(t, c.n, func(n int) func() {
				text := strings.Repeat(c.text, n)
				return func() { tok.Encode(text, EncodeOptions{ParseSpecial: true}) }
			})
		})
	}
	t.Run("a map of endless keys", func(t *testing.T) {
		field := func(number byte, data []byte) []byte {
			return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(data))), data...)
		}
		file := append(field(1, append(field(1, []byte("<unk>")), 3<<3, 2)), field(1, field(1, []byte("a")))...)
		file = append(file, field(3, field(2, endlessKeys()))...)
		tok, err := Load(fstest.MapFS{modelFile: {Data: file}})
		if err != nil {
			t.Fatal(err)
		}
		linear(t, 8000, func(n int) func() {
			text := a(n)
			return func() { tok.Encode(text, EncodeOptions{}) }
		})
	})
	t.Run("walks of a finder", func(t *testing.T) {
		m := &matcher{}
		m.add(a(maxAddedBytes-1)+"b", &addedToken{})
		for _, n := range []int{1 << 14, 1 << 15} {
			f := m.finder(a(n))
			for i := range n {
				f.longest(i)
			}
			if most := walkSteps*n + 2*maxAddedBytes; f.steps > most {
				t.Errorf("%d steps for %d bytes, more than %d", f.steps, n, most)
			}
		}
	})
}

// endlessKeys is a character map in which no text ends to be the start of a key.
func endlessKeys() []byte {
	m := binary.LittleEndian.AppendUint32(nil, 4*256)
	for i := range uint32(256) {
		m = binary.LittleEndian.AppendUint32(m, i<<10|i) // labelled i, it leads to 0, from where i leads here
	}
	return append(m, 'x', 0)
}

// TestTokenizerBounds: what a file may make of a text, and each of its lists and texts, has a bound, which the error names.
func TestTokenizerBounds(t *testing.T) {
	replaces := func(n int) string {
		return list(n, ",", func(i int) string {
			return fmt.Sprintf(`{"type":"Replace","pattern":{"String":"%c"},"content":"%s"}`, 'a'+i, strings.Repeat(string(rune('b'+i)), 8))
		})
	}
	ids := func(n int) string { return list(n, ",", func(int) string { return "0" }) }
	around := func(n int) string {
		return `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[` + ids(n) + `]}}}`
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	mapped := func(n int) string {
		return `{"type":"Precompiled","precompiled_charsmap":"` + base64.StdEncoding.EncodeToString([]byte("\x04\x00\x00\x00\x00\x00\x00\x00"+long(n)+"\x00")) + `"}`
	}
	for name, c := range map[string]struct{ section, value, want string }{
		"steps":                  {"normalizer", `{"type":"Sequence","normalizers":[` + list(maxSteps+1, ",", func(int) string { return `{"type":"NFC"}` }) + `]}`, "more than 16 steps"},
		"steps inside":           {"normalizer", `{"type":"Sequence","normalizers":[{"type":"Sequence","normalizers":[` + list(maxSteps+1, ",", func(int) string { return `{"type":"NFC"}` }) + `]}]}`, "more than 16 steps"},
		"lengthening":            {"normalizer", `{"type":"Sequence","normalizers":[` + replaces(maxGrowing+1) + `]}`, "lengthen the text"},
		"lengthening decoders":   {"decoder", `{"type":"Sequence","decoders":[` + replaces(3) + `]}`, "decoder: it makes token \"a\" more than 16 times as long"},
		"stages that lengthen":   {"pre_tokenizer", `{"type":"Sequence","pretokenizers":[` + list(6, ",", func(int) string { return `{"type":"ByteLevel"}` }) + `]}`, "more than 4 steps that lengthen"},
		"stages that mark":       {"pre_tokenizer", `{"type":"Sequence","pretokenizers":[` + list(5, ",", func(i int) string { return fmt.Sprintf(`{"type":"Metaspace","replacement":"%c"}`, '0'+i) }) + `]}`, "more than 4 steps that lengthen"},
		"stages":                 {"pre_tokenizer", `{"type":"Sequence","pretokenizers":[` + list(17, ",", func(int) string { return `{"type":"Digits"}` }) + `]}`, "a Sequence of 17"},
		"tokens around":          {"post_processor", around(maxAround + 1), "more than 64 tokens"},
		"as many around":         {"post_processor", around(maxAround), ""},
		"tokens around, in turn": {"post_processor", `{"type":"Sequence","processors":[` + list(2, ",", func(int) string { return around(40) }) + `]}`, "more than 64 tokens"},
		"affix":                  {"model", `{"type":"BPE","vocab":{"a":0},"merges":[],"end_of_word_suffix":"` + long(maxAffix+1) + `"}`, "more than 64 bytes"},
		"token":                  {"model", `{"type":"BPE","vocab":{"a":0,"` + long(maxTokenBytes+1) + `":1},"merges":[]}`, "more than 16384"},
		"as long a token":        {"model", `{"type":"BPE","vocab":{"a":0,"` + long(maxTokenBytes) + `":1},"merges":[]}`, ""},
		"piece":                  {"model", `{"type":"Unigram","unk_id":0,"vocab":[["a",0],["` + long(maxTrieBytes+1) + `",0]]}`, "more than 512"},
		"added token":            {"added_tokens", `[{"id":9,"content":"` + long(maxAddedBytes+1) + `"}]`, "more than 1024"},
		"expression":             {"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"` + long(maxRegexBytes+1) + `"}}`, "more than 16384"},
		"counted expression":     {"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"(?:a|bc){60000}"}}`, "it is longer than"},
		"nested classes":         {"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"` + strings.Repeat("[", maxClassDepth+2) + "a" + strings.Repeat("]", maxClassDepth+2) + `"}}`, "nested more than 8 deep"},
		"reference":              {"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"(a)\\1"}}`, "not supported"},
		"a replacement":          {"normalizer", mapped(maxMapped + 1), "a text of 65 bytes, more than 64"},
		"as long a replacement":  {"normalizer", mapped(maxMapped), ""},
		"long words of an error": {"model", `{"type":"` + long(1<<20) + `"}`, "is not supported"},
		"a long number":          {"model", `{"type":"Unigram","unk_id":` + strings.Repeat("1", 1<<20) + `,"vocab":[["a",0]]}`, "model"},
	} {
		t.Run(name, func(t *testing.T) {
			more := []string{}
			if c.section == "decoder" { // one that ByteLevel before the model would have replaced
				more = []string{"pre_tokenizer", "null"}
			}
			_, err := Parse(small(c.section, c.value, more...), nil)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 700):
				t.Errorf("the error is %.1000v, want one with %q", err, c.want)
			}
		})
	}
	// Growth that shows in a text only.
	doubling := list(maxGrowing, ",", func(i int) string {
		return fmt.Sprintf(`{"type":"Replace","pattern":{"String":"%c"},"content":"%s"}`, 'a'+i, strings.Repeat(string(rune('b'+i)), 8))
	})
	tok, err := Parse(small("normalizer", `{"type":"Sequence","normalizers":[`+doubling+`]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 1000)
	out, err := tok.AppendEncode(nil, text, EncodeOptions{})
	if err == nil || !strings.Contains(err.Error(), "more than 16 times as long") || len(out) > 1000 {
		t.Errorf("%d ids of %d bytes, %v", len(out), len(text), err)
	}
}

// TestTrieBound: a vocabulary whose trie would have too many nodes is refused before there is one, where it is built beside the
// reading of the file as well.
func TestTrieBound(t *testing.T) {
	const each = 511
	v := &vocabulary{}
	for i := range 1<<24/(each-5) + 1 {
		v.text, v.used = append(v.text, fmt.Sprintf("%05d", i)+strings.Repeat("x", each-5)), append(v.used, true)
	}
	v.count = len(v.text)
	for name, build := range map[string]func() error{
		"at once": func() error { _, err := newTrie(v, nil); return err },
		"later":   func() error { _, err := trieLater(v, nil); return err },
	} {
		before := allocated()
		err := build()
		if took := allocated() - before; err == nil || !strings.Contains(err.Error(), "different beginnings, more than 16777216") || took > 8<<20 {
			t.Errorf("%s: %v, %d bytes", name, err, took)
		}
	}
}

// TestFileSizes: a file is as large as it may be, or refused unread.
func TestFileSizes(t *testing.T) {
	for name, limit := range map[string]int{configFile: maxConfigBytes, specialMapFile: maxConfigBytes, addedFile: maxConfigBytes} {
		fsys := fstest.MapFS{mainFile: {Data: small("normalizer", "null")}, name: {Data: make([]byte, limit+1)}}
		if _, err := Load(fsys); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: has %d bytes, more than the %d", name, limit+1, limit)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{mainFile, modelFile, tiktokenFile} {
		dir := t.TempDir()
		regulartest.Large(t, filepath.Join(dir, name))
		if _, err := Load(regular.Dir(dir)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: has %d bytes, more than the %d", name, regulartest.Huge, maxFileBytes)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// allocated is how many bytes the process has asked for so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// FuzzTokenizerCost reads any bytes as a tokenizer and encodes a text: what that asks for in memory, and what comes out, has
// to be in proportion to both, besides the tables that every tokenizer has.
func FuzzTokenizerCost(f *testing.F) {
	const (
		maxMain, maxText = 1 << 15, 1 << 12
		tables           = 32 << 20 // of 16 steps with an expression each, and 65,536 unused ids
		each             = 1 << 13  // bytes for a byte
	)
	for _, name := range []string{"added", "bert", "deepseek", "falcon", "fixed", "level", "metaspace_words", "split_space", "suffix", "unigram", "unigram_map", "unknown"} {
		f.Add(testFile(f, name+".json"), " A key <mask> <think>\nHello wörld 12345 don't\u00bd")
	}
	for _, c := range [][2]string{
		{"normalizer", `{"type":"Sequence","normalizers":[{"type":"Replace","pattern":{"Regex":"a|"},"content":"aaaaaaaa"},{"type":"NFKD"},{"type":"ByteLevel"}]}`},
		{"pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"ByteLevel"},{"type":"Metaspace","replacement":"b"}]}`},
		{"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"(?:a{1,20}){1,20}|(?<=a+)b"},"behavior":"MergedWithNext"}`},
		{"decoder", `{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaa"},{"type":"Fuse"}]}`},
		{"post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[1,1,1,1]}}}`},
		{"added_tokens", `[{"id":3,"content":"aaaaaaaab","lstrip":true,"rstrip":true},{"id":4,"content":" ","rstrip":true,"normalized":true}]`},
		{"model", `{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["a",0],["aa",-1],["aaa",-1],["<0x00>",-2]]}`},
		{"model", `{"type":"WordPiece","unk_token":"a","max_input_chars_per_word":100000,"vocab":{"a":0,"##a":1,"##aab":2}}`},
	} {
		f.Add(small(c[0], c[1]), strings.Repeat("aab a", 40))
	}
	f.Fuzz(func(t *testing.T, main []byte, text string) {
		if len(main) > maxMain || len(text) > maxText {
			return
		}
		start := allocated()
		tok, err := Parse(main, nil)
		if err != nil {
			if spent := allocated() - start; spent > tables+each*uint64(len(main)) {
				t.Fatalf("%d bytes to refuse %d: %v", spent, len(main), err)
			}
			if len(err.Error()) > 1000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		for _, o := range []EncodeOptions{{}, {AddSpecial: true, ParseSpecial: true}} {
			ids := tok.Encode(text, o)
			if most := grown(len(text))*(maxGrowing+1)*8 + maxAround; len(ids) > most {
				t.Fatalf("%d ids of %d bytes", len(ids), len(text))
			}
			if out := tok.Decode(ids, false); len(out) > (len(ids)+1)*grown(maxTokenBytes) {
				t.Fatalf("%d bytes of %d ids", len(out), len(ids))
			}
		}
		tok.Anchors(specials(tok))
		if spent := allocated() - start; spent > tables+each*uint64(len(main)+len(text)) {
			t.Fatalf("%d bytes for a file of %d and a text of %d", spent, len(main), len(text))
		}
	})
}
