package convert

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// meant are the last tokens of a random model's vocabulary, which have a meaning.
var meant = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// chatML is the chat template of random models.
const chatML = `{%- for m in messages -%}
{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
`

// writeText writes the text side of a model with a vocabulary of n tokens.
func writeText(to *folder, n int) error {
	if n < 256+len(meant) {
		return fmt.Errorf("a vocabulary of %d tokens has no room for all bytes", n)
	}
	end := []int{n - len(meant) + 2, n - len(meant)}
	err := to.json(map[string]any{
		"generation_config.json": map[string]any{"eos_token_id": end},
		"tokenizer_config.json":  map[string]any{"chat_template": chatML, "eos_token": meant[2], "tokenizer_class": "PreTrainedTokenizerFast"},
	})
	if err != nil {
		return err
	}
	return to.file("tokenizer.json", func(w io.Writer) error {
		b := bufio.NewWriter(w)
		if err := writeTokenizer(b, n); err != nil {
			return err
		}
		return b.Flush()
	})
}

// writeTokenizer writes a byte-level BPE tokenizer. Its tokens are the bytes, then all words of two small letters, of three and
// so on, each merged from a word and a letter.
func writeTokenizer(w io.Writer, n int) error {
	type added struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	}
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	head := struct {
		Version string         `json:"version"`
		Added   []added        `json:"added_tokens"`
		Before  map[string]any `json:"pre_tokenizer"`
		After   map[string]any `json:"decoder"`
	}{"1.0", nil, level, level}
	words := n - 256 - len(meant)
	for i, s := range meant {
		head.Added = append(head.Added, added{256 + words + i, s, true})
	}
	b, err := json.Marshal(head)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, `%s,"model":{"type":"BPE","vocab":{`, b[:len(b)-1])
	for c, r := range byteRunes() {
		name, err := json.Marshal(string(r))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s:%d,\n", name, c)
	}
	for i, s := range wordsOf(words) {
		fmt.Fprintf(w, "\"%s\":%d,\n", s, 256+i)
	}
	for i, s := range meant {
		comma := ","
		if i == len(meant)-1 {
			comma = ""
		}
		fmt.Fprintf(w, "\"%s\":%d%s\n", s, 256+words+i, comma)
	}
	fmt.Fprint(w, `},"merges":[`)
	for i, s := range wordsOf(words) {
		comma := ","
		if i == words-1 {
			comma = ""
		}
		fmt.Fprintf(w, "\"%s %s\"%s\n", s[:len(s)-1], s[len(s)-1:], comma)
	}
	_, err = fmt.Fprint(w, "]}}\n")
	return err
}

// wordsOf yields n words of at least two small letters, shorter ones first.
func wordsOf(n int) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		last := []string{}
		for c := 'a'; c <= 'z'; c++ {
			last = append(last, string(c))
		}
		for i := 0; i < n; {
			var words []string
			for _, s := range last {
				for c := 'a'; c <= 'z' && i < n; c++ {
					words = append(words, s+string(c))
					if !yield(i, words[len(words)-1]) {
						return
					}
					i++
				}
			}
			last = words
		}
	}
}

// byteRunes is the character that stands for each byte in files of byte-level tokenizers: itself where it can be seen.
func byteRunes() (r [256]rune) {
	next := rune(256)
	for c := range r {
		if c > ' ' && c < 127 || c > 160 && c != 173 {
			r[c] = rune(c)
			continue
		}
		r[c] = next
		next++
	}
	return r
}
