package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// mustLoad loads a folder with a model file and a configuration.
func mustLoad(t testing.TB, name, file, config string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".model"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Load(fstest.MapFS{file: {Data: data}, configFile: {Data: []byte(config)}})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestGoldenFiles compares SentencePiece and tiktoken files with their libraries.
func TestGoldenFiles(t *testing.T) {
	var g struct {
		MadeBy string   `json:"made_by"`
		Texts  []string `json:"texts"`
		Files  map[string]struct {
			IDs    [][]int32         `json:"ids"`
			Text   []string          `json:"text"`
			Random []json.RawMessage `json:"random"`
		} `json:"files"`
	}
	if err := json.Unmarshal(testFile(t, "golden_files.json"), &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Files) == 0 {
		t.Fatal("no files")
	}
	for name, want := range g.Files {
		t.Run(name, func(t *testing.T) {
			file, config := modelFile, `{}`
			if strings.HasPrefix(name, "tiktoken") {
				file = tiktokenFile
			}
			if name == "tiktoken_kimi" {
				config = `{"tokenizer_class":"TikTokenTokenizer"}`
			}
			tok := mustLoad(t, name, file, config)
			for i, text := range g.Texts {
				if got := tok.Encode(text, EncodeOptions{}); !slices.Equal(got, want.IDs[i]) {
					t.Errorf("Encode(%q)\n got %v\nwant %v (%s)", text, got, want.IDs[i], g.MadeBy)
				}
				checkDecode(t, tok, want.IDs[i], true, want.Text[i])
			}
			for _, raw := range want.Random {
				var ids []int32
				var text string
				if err := json.Unmarshal(raw, &[]any{&ids, &text}); err != nil {
					t.Fatal(err)
				}
				checkDecode(t, tok, ids, true, text)
			}
		})
	}
}

// TestOldClasses compares rune classes with the reference's, over all of Unicode.
func TestOldClasses(t *testing.T) {
	var g struct {
		MadeBy  string               `json:"made_by"`
		Classes map[string][][2]rune `json:"classes"`
	}
	if err := json.Unmarshal(testFile(t, "golden_unicode.json"), &g); err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]func(rune) bool{
		"control":    func(r rune) bool { return cleanText(string(r)) == "" },
		"nonspacing": oldNonspacing.has,
		"mark":       oldMarks.has,
		"punct":      isPunct,
	} {
		want := g.Classes[name]
		if len(want) == 0 {
			t.Fatalf("no class %s", name)
		}
		last := rune(unicode.MaxRune)
		if testing.Short() {
			last = 0x1FFFF // nearly all are below
		}
		for r := rune(' '); r <= last; r++ {
			if r == 0xD800 {
				r = 0xE000
			}
			for len(want) > 0 && want[0][1] < r {
				want = want[1:]
			}
			in := len(want) > 0 && want[0][0] <= r
			if has(r) != in {
				t.Errorf("%U in %s: %v, want %v (%s, Go's Unicode %s)", r, name, !in, in, g.MadeBy, unicode.Version)
			}
		}
	}
}

// TestLoadSentencePiece checks what the configuration adds to a model file.
func TestLoadSentencePiece(t *testing.T) {
	config := `{"bos_token":"<s>","eos_token":"</s>","add_bos_token":true,"added_tokens_decoder":{"600":{"content":"<late>","special":true}}}`
	tok := mustLoad(t, "sp_bpe", modelFile, config)
	bos, ok := tok.BOS()
	if text, _ := tok.Token(bos); !ok || text != "<s>" || !tok.Special(bos) {
		t.Errorf("BOS is %q", text)
	}
	plain := tok.Encode("the fire", EncodeOptions{ParseSpecial: true})
	if got := tok.Encode("the fire", EncodeOptions{ParseSpecial: true, AddSpecial: true}); !slices.Equal(got, append([]int32{bos}, plain...)) {
		t.Errorf("with special tokens %v, without %v", got, plain)
	}
	ids := tok.Encode("<s>the fire<late>the fire", EncodeOptions{ParseSpecial: true})
	if ids[0] != bos || !slices.Contains(ids, 600) {
		t.Errorf("special tokens are not found: %v", ids)
	}
	// The dummy space goes before the text, not after each special token.
	if got := tok.Decode(ids, false); got != "<s>the fire<late>the fire" {
		t.Errorf("comes back as %q", got)
	}
	if got := tok.Encode("<s>", EncodeOptions{}); slices.Contains(got, bos) {
		t.Error("text that looks like a special token became one")
	}
	tok = mustLoad(t, "sp_bpe", modelFile, "")
	if id, ok := tok.BOS(); !ok || id != bos {
		t.Errorf("without a configuration BOS is %d, %v", id, ok)
	}
}

func TestLoadTiktoken(t *testing.T) {
	config := `{"tokenizer_class":"TikTokenTokenizer","bos_token":"[BOS]","added_tokens_decoder":{"440":{"content":"[BOS]","special":true},"442":{"content":"<think>"}}}`
	for _, file := range []string{tiktokenFile, modelFile} {
		tok := mustLoad(t, "tiktoken_kimi", file, config)
		ids := tok.Encode("[BOS]a<think><|reserved_token_443|>", EncodeOptions{ParseSpecial: true})
		if want := []int32{440, ids[1], 442, 443}; !slices.Equal(ids, want) {
			t.Errorf("%s: ids %v, want %v", file, ids, want)
		}
		if bos, ok := tok.BOS(); !ok || bos != 440 {
			t.Errorf("BOS = %d, %v", bos, ok)
		}
		if !tok.Special(443) || tok.Special(442) || tok.Size() != 440+reservedTokens {
			t.Errorf("special %v and %v, size %d", tok.Special(443), tok.Special(442), tok.Size())
		}
	}
}

// TestSpecialMap reads the older files beside tokenizer.json.
func TestSpecialMap(t *testing.T) {
	main, special := testFile(t, "qwen2.json"), []byte(`{"eos_token":{"content":"<|end|>"},"bos_token":"he"}`)
	for config, want := range map[string]string{
		`{"bos_token":"<|start|>"}`:                           "he",
		`{"bos_token":"<|start|>","added_tokens_decoder":{}}`: "<|start|>",
	} {
		tok, err := Load(fstest.MapFS{mainFile: {Data: main}, configFile: {Data: []byte(config)}, specialMapFile: {Data: special}})
		if err != nil {
			t.Fatal(err)
		}
		bos, _ := tok.BOS()
		if got, _ := tok.Token(bos); got != want {
			t.Errorf("%s: BOS is %q, want %q", config, got, want)
		}
	}
}

func TestModelFileErrors(t *testing.T) {
	line := func(token string, rank int) string {
		return fmt.Sprintf("%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), rank)
	}
	for _, tt := range []struct{ file, data, want string }{
		{modelFile, "", "no pieces"},
		{modelFile, "\n\xff", "longer than the message"},
		{modelFile, "\n\x03\n\x01a", "UNKNOWN"},
		{modelFile, "\n\x02\n\x00", "piece 0"},
		{modelFile, "\n\x05\n\x01a\x18\x02\x12\x02\x18\x04", "model_type 4"},
		{modelFile, "\n\x05\n\x01a\x18\x02\x1a\x03\x12\x01x", "character map"},
		{tiktokenFile, "", "no tokens"},
		{tiktokenFile, "YQ== 0\n", "0x00"},
		{tiktokenFile, "YQ==\n", "line 1"},
		{tiktokenFile, "! 0\n", "base64"},
		{tiktokenFile, line("a", 9_000_000), "line 1"},
		{tiktokenFile, line("a", 4_000_000), "largest token id"},
		{tiktokenFile, line(strings.Repeat("a", 2*maxJoinedBytes), 0), "bytes"},
	} {
		_, err := Load(fstest.MapFS{tt.file: {Data: []byte(tt.data)}})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "parse "+tt.file) {
			t.Errorf("%s %q: error %v, want one with %q", tt.file, tt.data, err, tt.want)
		}
	}
}

// FuzzModelFiles reads any bytes as either file and uses what comes out.
func FuzzModelFiles(f *testing.F) {
	for _, name := range []string{"sp_bpe", "sp_bpe_plain", "sp_unigram", "sp_suffix", "tiktoken_kimi"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".model"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, []byte(`{"bos_token":"<s>","add_bos_token":true}`), " a key <sep> b\u00bde\u0301")
	}
	f.Add([]byte("\n\x05\n\x01a\x18\x02"), []byte(nil), "a")
	f.Fuzz(func(t *testing.T, data, config []byte, text string) {
		if len(data) > 1<<14 || len(text) > 1<<10 {
			return
		}
		tok, err := Load(fstest.MapFS{modelFile: {Data: data}, configFile: {Data: config}})
		if err != nil {
			return
		}
		if tok.Size() > 2*(len(data)+len(config))+maxGap+reservedTokens {
			t.Errorf("size %d from %d bytes", tok.Size(), len(data))
		}
		ids := tok.Encode(text, EncodeOptions{AddSpecial: true, ParseSpecial: true})
		checkDecode(t, tok, ids, false, tok.Decode(ids, false))
	})
}

// FuzzTranslate holds the rewriting of expressions to its bounds, and to keep those
// that need none.
func FuzzTranslate(f *testing.F) {
	for _, s := range []string{`a++b?+c*+`, `[a&&[^b]]`, `[^a[b-c]&&\\w]`, `(?m:.$)\h{1,2}+`, `[]a]`, `\\`, llama3Regex, kimiRegex} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1<<12 {
			return
		}
		got, err := translate(s)
		if err == nil && len(got) > 64*len(s)+64 {
			t.Errorf("%q becomes %d bytes", s, len(got))
		}
		if err == nil && !strings.ContainsAny(s, `\[^$+{(`) && got != s {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}

func TestTranslate(t *testing.T) {
	for _, tt := range []struct {
		regex, text string
		want        []string
	}{
		{`a++a`, "aaa", nil},
		{`a?+ab`, "aab ab", []string{"aab"}},
		{`(?:ab)*+c`, "ababc", []string{"ababc"}},
		{`\p{N}{1,3}+`, "12345678", []string{"12345678"}},
		{`[a-z&&[^aeiou]]+`, "hello", []string{"h", "ll"}},
		{`[^a-z&&[^aeiou]]+`, "hello you", []string{"e", "o ", "ou"}},
		{`[a[0-9]]+`, "ab12", []string{"a", "12"}},
		{`^.$`, "a\nb\ncd", []string{"a", "b"}},
		{`(?m:a.)`, "a\n", []string{"a\n"}},
		{`\h+`, "xFf0g", []string{"Ff0"}},
		{`\w+`, "e\u0301_1-b", []string{"e\u0301_1", "b"}},
		{`ba{,2}`, "baaab", []string{"baa", "b"}},
		{`x{y}`, "x{y}", []string{"x{y}"}},
	} {
		find, err := newRegexFinder(tt.regex)
		if err != nil {
			t.Errorf("%s: %v", tt.regex, err)
			continue
		}
		var got []string
		err = find(tt.text, nil, func(from, to int) { got = append(got, tt.text[from:to]) })
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s on %q: %q, %v, want %q", tt.regex, tt.text, got, err, tt.want)
		}
	}
}
