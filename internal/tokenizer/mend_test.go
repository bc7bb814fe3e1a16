package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// withSections is a tokenizer.json of testdata with other sections.
func withSections(t testing.TB, name string, sections map[string]string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]json.RawMessage
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	for k, v := range sections {
		f[k] = json.RawMessage(v)
	}
	if data, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	return data
}

const (
	sentencePieceSteps = `{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}`
	byteLevelStep      = `{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}`
	metaspaceStep      = `{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}`
	bytesOnly          = `{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]}`
)

// TestDecoders gives every tokenizer of the goldens decoders that contradict its vocabulary: ids, texts and streams must be
// those of the right decoder, with one warning. With its own decoder there is none.
func TestDecoders(t *testing.T) {
	byBytes := []string{"null", sentencePieceSteps, metaspaceStep, bytesOnly}
	bySpaces := []string{"null", byteLevelStep, bytesOnly}
	withBytes := append(bySpaces, metaspaceStep)
	kinds := map[string][]string{
		"gpt2": byBytes, "llama3": byBytes, "qwen2": byBytes, "qwen35": byBytes, "o200k": byBytes, "mistral": byBytes, "unknown": byBytes, "digits": byBytes, "added": byBytes,
		"falcon": byBytes, "deepseek": byBytes, "kimi": byBytes, "fixed": byBytes, "bytes_normalized": byBytes,
		"sentencepiece": withBytes, "metaspace_first": withBytes, "metaspace_words": withBytes, "split_space": withBytes,
		"unigram": bySpaces, "unigram_map": bySpaces, "unigram_bytes": bySpaces,
		"bert": nil, "bert_cased": nil, "level": nil, "suffix": nil,
	}
	g := readGolden(t, "golden.json")
	for name, cases := range g.Tokenizers {
		wrong, ok := kinds[name]
		if !ok {
			t.Errorf("%s is of no kind", name)
		}
		if tok := mustParse(t, filepath.Join("testdata", name+".json")); len(tok.Warnings()) > 0 {
			t.Errorf("%s: warnings %q", name, tok.Warnings())
		}
		for _, deco := range wrong {
			t.Run(name+"/"+deco, func(t *testing.T) {
				tok, err := Parse(withSections(t, name, map[string]string{"decoder": deco}), nil)
				if err != nil {
					t.Fatal(err)
				}
				if w := tok.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], "tokenizer.json: the decoder (") {
					t.Errorf("warnings %q", w)
				}
				checkGolden(t, g, cases, tok)
			})
		}
	}
}

// TestVocabularyDecides: a byte-level vocabulary is known by its tokens as well, where nothing before the model is byte-level.
func TestVocabularyDecides(t *testing.T) {
	g := readGolden(t, "golden.json")
	want := mustParse(t, "testdata/llama3.json")
	for _, pre := range []string{"null", metaspaceStep} {
		tok, err := Parse(withSections(t, "llama3", map[string]string{"decoder": sentencePieceSteps, "pre_tokenizer": pre}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if w := tok.Warnings(); len(w) != 1 || !strings.Contains(w[0], "which is byte-level") || !strings.Contains(w[0], "prompts are encoded otherwise") {
			t.Errorf("%s: warnings %q", pre, w)
		}
		for _, ids := range g.Tokenizers["llama3"].IDs {
			if got := tok.Decode(ids, false); got != want.Decode(ids, false) {
				t.Fatalf("%v is %q, want %q", ids, got, want.Decode(ids, false))
			}
		}
	}
}

// TestOwnMark: a vocabulary whose file itself writes the mark of byte-level ones for a space is none of them.
func TestOwnMark(t *testing.T) {
	model := `{"type":"BPE","vocab":{"a":0,"é":1,"Ġ":2,"Ġa":3},"merges":["Ġ a"]}`
	replace := func(from, to string) string {
		return `{"type":"Replace","pattern":{"String":"` + from + `"},"content":"` + to + `"}`
	}
	tok, err := Parse(small("model", model, "normalizer", replace(" ", "Ġ"), "pre_tokenizer", "null", "decoder", `{"type":"Sequence","decoders":[`+replace("Ġ", " ")+`,{"type":"Fuse"}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode("é a é", EncodeOptions{})
	if got := tok.Decode(ids, false); got != "é a é" || len(tok.Warnings()) > 0 {
		t.Errorf("%v is %q, warnings %q", ids, got, tok.Warnings())
	}
}

// TestMended is the folder as it is published, with the reference's ids once its expression is right as well.
func TestMended(t *testing.T) {
	g := readGolden(t, "golden_mended.json")
	main, err := os.ReadFile("testdata/mended.json")
	if err != nil {
		t.Fatal(err)
	}
	const decoder, both = "decoder", "decoder and expression"
	if slices.EqualFunc(g.Tokenizers[decoder].IDs, g.Tokenizers[both].IDs, slices.Equal) {
		t.Fatal("the expression makes no difference")
	}
	if !strings.Contains(string(withSections(t, "mistral", nil)), strings.ReplaceAll(mistralRegex, `\`, `\\`)) {
		t.Error("the expression is not the one of the golden")
	}
	for config, want := range map[string]string{
		"": decoder, `{`: decoder,
		`{"model_type": "mistral3", "transformers_version": "4.57.1"}`:      both,
		`{"model_type": "mistral", "transformers_version": "5.0.0.dev0"}`:   both,
		`{"model_type": "ministral"}`:                                       both,
		`{"model_type": "pixtral", "transformers_version": null}`:           both,
		`{"transformers_version": "4.46.0"}`:                                both,
		`{"model_type": "mistral3", "transformers_version": "5.0.0"}`:       decoder,
		`{"model_type": "mistral3", "transformers_version": "5.24.0.dev0"}`: decoder,
		`{"model_type": "llama", "transformers_version": "4.57.1"}`:         decoder,
		`{"model_type": "ministral3", "transformers_version": "4.57.1"}`:    decoder,
	} {
		t.Run(config, func(t *testing.T) {
			fsys := fstest.MapFS{mainFile: {Data: main}}
			if config != "" {
				fsys[modelConfigFile] = &fstest.MapFile{Data: []byte(config)}
			}
			tok, err := Load(fsys)
			if err != nil {
				t.Fatal(err)
			}
			if w := tok.Warnings(); len(w) != 1 || strings.Contains(w[0], "fix_mistral_regex") != (want == both) {
				t.Errorf("warnings %q", w)
			}
			checkGolden(t, g, g.Tokenizers[want], tok)
		})
	}
	t.Run("another's vocabulary", func(t *testing.T) {
		other := []byte(strings.ReplaceAll(string(main), "[INST]", "[USER]"))
		tok, err := Load(fstest.MapFS{mainFile: {Data: other}, modelConfigFile: {Data: []byte(`{"model_type": "mistral"}`)}})
		if err != nil {
			t.Fatal(err)
		}
		if w := tok.Warnings(); len(w) != 1 || strings.Contains(w[0], "fix_mistral_regex") {
			t.Errorf("warnings %q", w)
		}
	})
	t.Run("right already", func(t *testing.T) {
		right := strings.ReplaceAll(string(main), jsonText(t, llama3Regex), jsonText(t, mistralRegex))
		tok, err := Load(fstest.MapFS{mainFile: {Data: []byte(right)}, modelConfigFile: {Data: []byte(`{"model_type": "mistral"}`)}})
		if err != nil {
			t.Fatal(err)
		}
		if w := tok.Warnings(); len(w) != 1 || strings.Contains(w[0], "fix_mistral_regex") {
			t.Errorf("warnings %q", w)
		}
		checkGolden(t, g, g.Tokenizers[both], tok)
	})
}

func jsonText(t testing.TB, s string) string {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return strings.Trim(b.String(), "\"\n")
}

func TestBefore5(t *testing.T) {
	for version, want := range map[string]bool{
		"4.57.1": true, "4": true, " 4.0.0 ": true, "v4.1": true, "5.0.0.dev0": true, "5.0.0rc1": true, "5.0rc2": true, "5.0.0b1": true,
		"5": false, "5.0.0": false, "5.0.0.post1": false, "5.1.0.dev0": false, "5.24.0": false, "10.0": false, "": false, "new": false,
	} {
		if before5(version) != want {
			t.Errorf("%q comes before 5.0.0: %t", version, !want)
		}
	}
}

// TestOptionalFiles: what is wrong with the files beside a tokenizer.json is a warning, and what is right in them counts.
func TestOptionalFiles(t *testing.T) {
	main, err := os.ReadFile("testdata/llama3.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, config, special string
		eos                   string
		want                  []string
	}{
		{"plain", `{"eos_token": "<|end|>"}`, `{}`, "<|end|>", nil},
		{"byte order mark", "\xef\xbb\xbf" + `{"eos_token": "<|end|>"}`, "\xef\xbb\xbf{}\n", "<|end|>", nil},
		{"comma", `{"eos_token": "<|end|>",}`, `{}`, "<|end|>", []string{"tokenizer_config.json: has a comma too many at byte 24, line 1, which JSON does not allow; it is read without"}},
		{"numbers of Python", `{"eos_token": "<|end|>", "model_max_length": Infinity}`, `{}`, "<|end|>", nil},
		{"cut", `{"eos_token": "<|end|>`, `{}`, "", []string{"tokenizer_config.json: is no valid JSON at byte 22, line 1: unexpected end of JSON input; the file is left out: no token that it names has a role, and it gives no chat template"}},
		{"a list", `[]`, `{"eos_token": "<|end|>"}`, "<|end|>", []string{"tokenizer_config.json: a JSON array is not what should be here; the file is left out: no token that it names has a role, and it gives no chat template"}},
		{"a number for a token", `{"eos_token": "<|end|>", "bos_token": 3, "pad_token": {"content": 4}}`, `{}`, "<|end|>", []string{"tokenizer_config.json: bos_token: 3 is no token; the key is left out",
			`tokenizer_config.json: pad_token: {"content": 4} is no token; the key is left out`}},
		{"bad entries", `{"eos_token": "<|end|>", "added_tokens_decoder": {"x": {"content": "a"}, "442": {"content": "<think>"}, "-1": {}, "441": 7}}`, `{}`, "<|end|>",
			[]string{`tokenizer_config.json: added_tokens_decoder: -1: "-1" is no token id; the entry is left out`}},
		{"no entries", `{"eos_token": "<|end|>", "added_tokens_decoder": []}`, `{}`, "<|end|>", []string{"tokenizer_config.json: added_tokens_decoder: a JSON array is not what should be here; the key is left out"}},
		{"keys of other kinds, in their order", `{"eos_token": "<|end|>", "tokenizer_class": 1, "add_eos_token": "no", "pat_str": [], "add_bos_token": 7}`, `{}`, "<|end|>",
			[]string{"tokenizer_config.json: add_bos_token: a JSON number is not what should be here; the key is left out", "tokenizer_config.json: add_eos_token: a JSON string is not what should be here; the key is left out",
				"tokenizer_config.json: tokenizer_class: a JSON number is not what should be here; the key is left out", "tokenizer_config.json: pat_str: a JSON array is not what should be here; the key is left out"}},
		{"map cut", `{}`, `{"eos_token": `, "", []string{"special_tokens_map.json: is no valid JSON at byte 14, line 1: unexpected end of JSON input; the file is left out: no token that it names has a role"}},
		{"map empty", `{"eos_token": "<|end|>"}`, "", "<|end|>", []string{"special_tokens_map.json: is empty; the file is left out: no token that it names has a role"}},
		{"map with a comment", `{}`, "{ // end\n\"eos_token\": \"<|end|>\"}", "<|end|>", []string{"special_tokens_map.json: has a comment at byte 3, line 1, which JSON does not allow; it is read without"}},
		{"map with a number", `{}`, `{"eos_token": "<|end|>", "unk_token": 3}`, "<|end|>", []string{"special_tokens_map.json: unk_token: 3 is no token; the key is left out"}},
		{"map cut and of no use", `{"eos_token": "<|end|>", "added_tokens_decoder": {}}`, `{`, "<|end|>", []string{"special_tokens_map.json: is no valid JSON at byte 1, line 1: unexpected end of JSON input; the file is left out: no token that it names has a role"}},
	} {
		tok, err := Load(fstest.MapFS{mainFile: {Data: main}, configFile: {Data: []byte(c.config)}, specialMapFile: {Data: []byte(c.special)}, addedFile: {Data: []byte("broken, and of no use")}})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		eos := ""
		if id, ok := tok.EOS(); ok {
			eos, _ = tok.Token(id)
		}
		if eos != c.eos || !slices.Equal(tok.Warnings(), c.want) {
			t.Errorf("%s: ends with %q, want %q; warnings\n%q, want\n%q", c.name, eos, c.eos, tok.Warnings(), c.want)
		}
	}
}

// TestOptionalFilesOfModels: a tokenizer.model leans on tokenizer_config.json, so that one must be whole; added_tokens.json may
// be broken.
func TestOptionalFilesOfModels(t *testing.T) {
	data, err := os.ReadFile("testdata/sp_bpe.model")
	if err != nil {
		t.Fatal(err)
	}
	folder := func(config, added string) fstest.MapFS {
		return fstest.MapFS{modelFile: {Data: data}, configFile: {Data: []byte(config)}, addedFile: {Data: []byte(added)}}
	}
	if _, err := Load(folder(`{`, `{}`)); err == nil || !strings.Contains(err.Error(), "tokenizer_config.json: is no valid JSON") {
		t.Errorf("a broken tokenizer_config.json: %v", err)
	}
	for _, c := range []struct{ name, added, want string }{
		{"plain", `{"<late>": 600}`, ""},
		{"cut", `{"<late>": 600`, "added_tokens.json: is no valid JSON at byte 14, line 1: unexpected end of JSON input; the file is left out: texts with tokens that it lists become other ids"},
		{"comma", `{"<late>": 600,}`, "added_tokens.json: has a comma too many at byte 15, line 1, which JSON does not allow; it is read without"},
		{"one of two", `{"<late>": 600, "<early>": "601"}`, `added_tokens.json: <early>: "601" is no token id; the entry is left out`},
	} {
		tok, err := Load(folder(`{}`, c.added))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		id, ok := tok.ID("<late>")
		if ok != (c.name != "cut") || ok && id != 600 || strings.Join(tok.Warnings(), "\n") != c.want {
			t.Errorf("%s: %d, %t, warnings %q, want %q", c.name, id, ok, tok.Warnings(), c.want)
		}
	}
}

// TestMendMistral: what becomes of the steps before the model, in vocabularies as large as Mistral's own and in small ones.
func TestMendMistral(t *testing.T) {
	regex := func(s string) component {
		return component{Type: "Split", Pattern: pattern{Regex: &s}, Behavior: isolated}
	}
	no := false
	plain, meta := component{Type: "ByteLevel", PrefixSpace: &no, UseRegex: &no}, component{Type: "Metaspace", Replacement: "▁"}
	words := component{Type: "ByteLevel"}
	sequence := func(steps ...component) component { return component{Type: "Sequence", Pretokenizers: steps} }
	mended := sequence(regex(mistralRegex), plain)
	const large, little = tekkenSize + 1, 500
	for name, c := range map[string]struct {
		size int
		pre  component
		want component // the zero value: as it was
	}{
		"known":                 {little, sequence(regex(llama3Regex), plain), mended},
		"known, with line ends": {little, sequence(regex(strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(llama3Regex)), plain), mended},
		"known, large":          {large, sequence(regex(llama3Regex), plain), mended},
		"another":               {little, sequence(regex(qwen2Regex), plain), component{}},
		"another, large":        {large, sequence(regex(qwen2Regex), plain), mended},
		"right, large":          {large, mended, component{}},
		"alone":                 {little, words, component{}},
		"alone, large":          {large, words, sequence(regex(mistralRegex), words)},
		"SentencePiece's":       {large, meta, mended},
		"no first expression":   {large, sequence(component{Type: "Digits"}, plain), component{}},
		"nothing":               {large, component{}, component{}},
		"no steps":              {large, sequence(), component{}},
	} {
		f := &file{pre: c.pre, added: []addedToken{{Content: "[INST]"}}}
		f.vocab.count = c.size
		did := f.mendMistral(&modelConfig{known: true, Type: "mistral"})
		want := c.want
		if want.Type == "" {
			want = c.pre
		}
		if got := f.pre; !reflect.DeepEqual(got, want) || (did != "") != (c.want.Type != "") {
			t.Errorf("%s: %+v, want %+v; %q", name, got, want, did)
		}
	}
}
