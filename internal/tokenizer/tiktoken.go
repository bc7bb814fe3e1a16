package tokenizer

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// tiktokenFile holds a byte-level BPE vocabulary: a line for each token with its
// bytes in base64 and its rank, which is its id. The split expression and the special
// tokens are not in it. The reference is the PyPI package tiktoken.
const tiktokenFile = "tiktoken.model"

// reservedTokens is how many ids after the vocabulary the Kimi and Llama 3
// tokenizers keep for special tokens; those without a name in the configuration are
// called <|reserved_token_ID|>.
const reservedTokens = 256

func parseTiktoken(data []byte, c *config) (*Tokenizer, error) {
	t := newTokenizer()
	if err := t.readTiktoken(data, c); err != nil {
		return nil, fmt.Errorf("parse %s: %w", tiktokenFile, err)
	}
	added, err := reserved(c, int32(len(t.vocab.text)))
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", configFile, err)
	}
	return t.finishBare(tiktokenFile, added, c)
}

func (t *Tokenizer) readTiktoken(data []byte, c *config) error {
	if len(data) > maxFileBytes {
		return fmt.Errorf("the file has %d bytes, more than %d", len(data), maxFileBytes)
	}
	v, err := readRanks(data)
	if err != nil {
		return err
	}
	t.vocab = v
	regex := llama3Regex
	if c.Class == "TikTokenTokenizer" { // Kimi's
		regex = kimiRegex
	}
	if c.Pattern != "" {
		regex = c.Pattern
	}
	split := component{Type: "Split", Pattern: pattern{Regex: &regex}, Behavior: removed, Invert: true}
	s, err := split.splitStage()
	if err != nil {
		return err
	}
	t.stages = []stage{s, byteLevel{}}
	t.deco = decoding{byteLevel: true}
	merges, err := rankMerges(&t.vocab)
	if err != nil {
		return err
	}
	m := &bpe{index: &t.vocab.index, merges: merges, byteLevel: true, ignoreMerges: true, unk: -1, cache: newWordCache()}
	m.fill(&t.vocab)
	for b, id := range m.unit {
		if id < 0 {
			return fmt.Errorf("no token is the byte 0x%02X", b)
		}
	}
	t.model = m
	return nil
}

// readRanks reads the lines. Token texts get the printable form that tokenizer.json
// has.
func readRanks(data []byte) (vocabulary, error) {
	var b vocabBuilder
	var raw, text []byte
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		n := len(b.entries)
		coded, rank, ok := bytes.Cut(line, []byte(" "))
		id, err := strconv.ParseUint(string(rank), 10, 32)
		if !ok || err != nil || id >= maxTokens {
			return vocabulary{}, fmt.Errorf("line %d, %s, is not a token in base64 and its rank", n+1, quoted(string(line)))
		}
		if raw, err = base64.StdEncoding.AppendDecode(raw[:0], coded); err != nil || len(raw) == 0 {
			return vocabulary{}, fmt.Errorf("line %d, %s, has no token in base64", n+1, quoted(string(line)))
		}
		text = appendByteRunes(text[:0], string(raw))
		b.add(text, int32(id))
	}
	if len(b.entries) == 0 {
		return vocabulary{}, fmt.Errorf("it has no tokens")
	}
	return b.build()
}

// rankMerges returns all pairs of tokens that make up a token; its id is the rank.
func rankMerges(v *vocabulary) (mergeTable, error) {
	j := joiner{index: &v.index}
	for id, text := range v.text {
		if v.used[id] {
			if err := j.add(text, int32(id), uint32(id), func(int32) bool { return true }); err != nil {
				return mergeTable{}, err
			}
		}
	}
	return j.table(), nil
}

// reserved returns the special tokens that follow the vocabulary of size ids.
func reserved(c *config, size int32) ([]addedToken, error) {
	named := map[int32]bool{}
	for key := range c.Added {
		id, err := strconv.ParseUint(key, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("added_tokens_decoder: %s is no token id", quoted(key))
		}
		named[int32(id)] = true
	}
	var list []addedToken
	for id := size; id < min(size+reservedTokens, math.MaxInt32); id++ {
		if !named[id] {
			list = append(list, addedToken{ID: id, Content: fmt.Sprintf("<|reserved_token_%d|>", id), Special: true})
		}
	}
	return slices.Clip(list), nil
}
