package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

const (
	mainFile   = "tokenizer.json"
	configFile = "tokenizer_config.json"
	// maxFileBytes bounds tokenizer.json; the largest known ones have 35 MB.
	maxFileBytes = 1 << 28
)

// Parse reads the contents of tokenizer.json and of tokenizer_config.json, which
// may be empty. The truncation and padding sections are ignored.
func Parse(tokenizerJSON, configJSON []byte) (*Tokenizer, error) {
	f, err := readFile(tokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", mainFile, err)
	}
	t := &Tokenizer{bos: -1, eos: -1}
	t.encoders.New = func() any { return newEncoder(t) }
	if err := t.build(f); err != nil {
		return nil, fmt.Errorf("parse %s: %w", mainFile, err)
	}
	var c config
	if len(configJSON) > 0 {
		if err := json.Unmarshal(configJSON, &c); err != nil {
			return nil, fmt.Errorf("parse %s: %w", configFile, err)
		}
	}
	added, err := c.apply(f.added, &t.vocab)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", configFile, err)
	}
	if err := t.addTokens(added); err != nil {
		return nil, fmt.Errorf("parse %s: %w", mainFile, err)
	}
	for _, id := range slices.Concat(t.post.before, t.post.after) {
		if !t.vocab.has(id) {
			return nil, fmt.Errorf("parse %s: post_processor: no token has id %d", mainFile, id)
		}
	}
	t.fillBytes()
	if id, ok := t.ID(string(c.BOS)); ok {
		t.bos = id
	}
	if id, ok := t.ID(string(c.EOS)); ok {
		t.eos = id
	}
	return t, nil
}

// file is tokenizer.json cut into its sections.
type file struct {
	added                       []addedToken
	normalizer, pre, post, deco component
	model                       modelHead
	vocab                       vocabulary
	merges                      mergeTable
}

// modelHead is the model section without its vocabulary and merges.
type modelHead struct {
	Type         string   `json:"type"`
	Dropout      *float64 `json:"dropout"`
	Unk          *string  `json:"unk_token"`
	Prefix       *string  `json:"continuing_subword_prefix"`
	Suffix       *string  `json:"end_of_word_suffix"`
	FuseUnk      bool     `json:"fuse_unk"`
	ByteFallback bool     `json:"byte_fallback"`
	IgnoreMerges bool     `json:"ignore_merges"`
}

func readFile(data []byte) (*file, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("the file has %d bytes, more than %d", len(data), maxFileBytes)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("the file is not valid UTF-8")
	}
	f := &file{}
	r := &jsonReader{data: data}
	hasModel := false
	err := r.object(func(key []byte) error {
		switch name := string(key); name {
		case "model":
			hasModel = true
			return f.readModel(r)
		case "added_tokens":
			return decodeNext(r, name, &f.added)
		case "normalizer":
			return decodeNext(r, name, &f.normalizer)
		case "pre_tokenizer":
			return decodeNext(r, name, &f.pre)
		case "post_processor":
			return decodeNext(r, name, &f.post)
		case "decoder":
			return decodeNext(r, name, &f.deco)
		}
		_, err := r.skip()
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.peek(); r.pos < len(data) {
		return nil, r.errorf("text after the end of the object")
	}
	if !hasModel {
		return nil, fmt.Errorf("there is no model section")
	}
	return f, nil
}

// decodeNext gives the next value to encoding/json.
func decodeNext(r *jsonReader, name string, into any) error {
	raw, err := r.skip()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readModel reads the model section. Only a BPE model is accepted, and the type
// normally comes first, so that other models fail before their vocabulary is read.
func (f *file) readModel(r *jsonReader) error {
	head := map[string]json.RawMessage{}
	mergesAt := -1
	err := r.object(func(key []byte) (err error) {
		name := string(key)
		switch {
		case name == "vocab" && r.peek() == '{':
			if f.vocab, err = readVocab(r); err != nil {
				return fmt.Errorf("model.vocab: %w", err)
			}
			return nil
		case name == "merges":
			// They refer to the vocabulary, which may come after them.
			mergesAt = r.pos
			if f.vocab.ids == nil {
				_, err = r.skip()
				return err
			}
			return f.readMerges(r)
		}
		raw, err := r.skip()
		if err != nil {
			return err
		}
		if head[name] = raw; name == "type" && string(raw) != `"BPE"` {
			return unsupported("model", string(bytes.Trim(raw, `"`)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.vocab.ids == nil || mergesAt < 0 {
		return fmt.Errorf("model: a BPE model needs vocab and merges")
	}
	if f.merges.slots == nil {
		if err := f.readMerges(&jsonReader{data: r.data, pos: mergesAt}); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if err := json.Unmarshal(raw, &f.model); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	return nil
}

func (f *file) readMerges(r *jsonReader) (err error) {
	if f.merges, err = readMerges(r, f.vocab.ids); err != nil {
		return fmt.Errorf("model.merges: %w", err)
	}
	return nil
}

// build makes the steps that do not depend on added tokens.
func (t *Tokenizer) build(f *file) (err error) {
	t.vocab = f.vocab
	if t.normalize, err = f.normalizer.normalizers(); err != nil {
		return err
	}
	if t.stages, err = f.pre.stages(); err != nil {
		return err
	}
	for _, s := range t.stages {
		if _, ok := s.(metaspace); ok && len(t.stages) > 1 {
			return unsupported("pre_tokenizer", "Metaspace together with another one")
		}
	}
	if t.post, err = f.post.template(); err != nil {
		return err
	}
	if t.deco, err = f.deco.decoding(); err != nil {
		return err
	}
	n := len(t.stages)
	byteLevel := n > 0 && isByteLevel(t.stages[n-1])
	if byteLevel != t.deco.byteLevel {
		return unsupported("decoder", "one that does not undo the pre_tokenizer (ByteLevel goes with ByteLevel)")
	}
	t.model, err = newBPE(f, byteLevel)
	return err
}

func isByteLevel(s stage) bool {
	_, ok := s.(byteLevel)
	return ok
}

func newBPE(f *file, byteLevel bool) (bpe, error) {
	head := &f.model
	switch {
	case head.Dropout != nil && *head.Dropout != 0:
		return bpe{}, unsupported("model", "BPE with dropout")
	case head.ByteFallback && byteLevel:
		return bpe{}, unsupported("model", "byte-level BPE with byte_fallback")
	case head.Prefix != nil && *head.Prefix != "":
		return bpe{}, unsupported("model", "BPE with continuing_subword_prefix")
	case head.Suffix != nil && *head.Suffix != "":
		return bpe{}, unsupported("model", "BPE with end_of_word_suffix")
	}
	m := bpe{
		ids: f.vocab.ids, merges: f.merges, byteLevel: byteLevel, ignoreMerges: head.IgnoreMerges,
		fallback: head.ByteFallback, fuseUnk: head.FuseUnk, unk: -1, cache: newWordCache(),
	}
	if head.Unk != nil && *head.Unk != "" {
		id, ok := f.vocab.ids[*head.Unk]
		if !ok {
			return bpe{}, fmt.Errorf("model: unk_token %s is not in the vocabulary", quoted(*head.Unk))
		}
		m.unk = id
	}
	for b := range m.unit {
		name := string(byteRune[b])
		if !byteLevel {
			name = fmt.Sprintf("<0x%02X>", b)
		}
		id, ok := f.vocab.ids[name]
		if !ok {
			id = -1
		}
		m.unit[b] = id
	}
	return m, nil
}

// addTokens enters the added tokens in the vocabulary and the matchers. A token
// that the model has keeps the model's id, as in the reference.
func (t *Tokenizer) addTokens(list []addedToken) error {
	t.added.ids = make(map[string]int32, len(list))
	for i := range list {
		tok := &list[i]
		if tok.Content == "" {
			continue
		}
		if len(tok.Content) > maxAddedBytes {
			return fmt.Errorf("added token %s has %d bytes, more than %d", quoted(tok.Content), len(tok.Content), maxAddedBytes)
		}
		if id, ok := t.vocab.ids[tok.Content]; ok {
			tok.ID = id
		} else if tok.ID < 0 || tok.ID >= maxTokens {
			return fmt.Errorf("added token %s has id %d", quoted(tok.Content), tok.ID)
		} else if t.vocab.has(tok.ID) && t.vocab.text[tok.ID] != tok.Content {
			return fmt.Errorf("added token %s and token %s have the same id %d", quoted(tok.Content), quoted(t.vocab.text[tok.ID]), tok.ID)
		}
		if err := t.vocab.grow(int(tok.ID)+1, len(t.vocab.ids)+len(list)); err != nil {
			return err
		}
		text, in := tok.Content, &t.added.raw
		if tok.Normalized {
			// The reference decodes such a token to its normalised text too.
			text, in = t.normalize.apply(tok.Content), &t.added.normalized
		}
		in.add(text, tok)
		t.added.ids[tok.Content] = tok.ID
		t.vocab.text[tok.ID] = text
		t.vocab.used[tok.ID] = true
		t.vocab.special[tok.ID] = tok.Special
	}
	return nil
}

// fillBytes works out what every token stands for.
func (t *Tokenizer) fillBytes() {
	v := &t.vocab
	v.rawEnd = make([]uint32, len(v.text))
	for id, text := range v.text {
		v.raw = t.deco.appendBytes(v.raw, text)
		v.rawEnd[id] = uint32(len(v.raw))
	}
}

// config is what tokenizer_config.json says about tokens; the rest of it, such as
// the chat template, belongs to others.
type config struct {
	BOS   tokenName             `json:"bos_token"`
	EOS   tokenName             `json:"eos_token"`
	Unk   tokenName             `json:"unk_token"`
	Pad   tokenName             `json:"pad_token"`
	Sep   tokenName             `json:"sep_token"`
	Cls   tokenName             `json:"cls_token"`
	Mask  tokenName             `json:"mask_token"`
	Added map[string]addedToken `json:"added_tokens_decoder"`
}

// tokenName is a token given as a string, as an object with its content, or null.
type tokenName string

// UnmarshalJSON accepts the three forms.
func (n *tokenName) UnmarshalJSON(data []byte) error {
	var s string
	if len(data) > 0 && data[0] == '{' {
		var tok addedToken
		if err := json.Unmarshal(data, &tok); err != nil {
			return err
		}
		s = tok.Content
	} else if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*n = tokenName(s)
	return nil
}

// apply merges the configuration into the added tokens of tokenizer.json, as
// PyPI's transformers does when it loads both: entries of added_tokens_decoder
// replace the flags of a token or add it, and a named token that is only in the
// model's vocabulary becomes a special one.
func (c *config) apply(added []addedToken, v *vocabulary) ([]addedToken, error) {
	known := make(map[string]int, len(added))
	for i, tok := range added {
		known[tok.Content] = i
	}
	more := make([]addedToken, 0, len(c.Added))
	for key, tok := range c.Added {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id >= maxTokens {
			return nil, fmt.Errorf("added_tokens_decoder: %s is no token id", quoted(key))
		}
		tok.ID = int32(id)
		more = append(more, tok)
	}
	slices.SortFunc(more, func(a, b addedToken) int { return int(a.ID) - int(b.ID) })
	for _, name := range []tokenName{c.BOS, c.EOS, c.Unk, c.Sep, c.Pad, c.Cls, c.Mask} {
		if _, ok := known[string(name)]; ok {
			continue
		}
		if id, ok := v.ids[string(name)]; ok && !slices.ContainsFunc(more, func(t addedToken) bool { return t.Content == string(name) }) {
			more = append(more, addedToken{ID: id, Content: string(name), Special: true})
		}
	}
	for _, tok := range more {
		i, ok := known[tok.Content]
		if !ok {
			known[tok.Content] = len(added)
			added = append(added, tok)
			continue
		}
		tok.ID = added[i].ID
		added[i] = tok
	}
	return added, nil
}
