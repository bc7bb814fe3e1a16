package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"hearth/internal/jsonc"
	"hearth/internal/regular"
)

const (
	mainFile   = "tokenizer.json"
	configFile = "tokenizer_config.json"
	// maxFileBytes bounds tokenizer.json and what stands in its place; the largest known ones have 35 MB. maxConfigBytes
	// bounds the other files, some of which list every token.
	maxFileBytes   = 1 << 28
	maxConfigBytes = 1 << 26
)

// Parse reads the contents of tokenizer.json and of tokenizer_config.json, which
// may be empty. The truncation and padding sections are ignored.
func Parse(tokenizerJSON, configJSON []byte) (*Tokenizer, error) {
	var c config
	if len(configJSON) > 0 {
		c.read(configJSON)
	}
	t, err := parse(tokenizerJSON, &c)
	return t, regular.Short(err)
}

func parse(tokenizerJSON []byte, c *config) (*Tokenizer, error) {
	f, err := readFile(tokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", mainFile, err)
	}
	f.mend(c)
	t := newTokenizer()
	if err := t.build(f); err != nil {
		return nil, fmt.Errorf("parse %s: %w", mainFile, err)
	}
	if err := t.finish(mainFile, f.added, c); err != nil {
		return nil, err
	}
	return t, nil
}

func newTokenizer() *Tokenizer {
	t := &Tokenizer{bos: -1, eos: -1}
	t.encoders.New = func() any { return newEncoder(t) }
	return t
}

// finish enters the added tokens and what the configuration says; name is the file
// that the rest is from.
func (t *Tokenizer) finish(name string, list []addedToken, c *config) error {
	if err := t.addTokens(c.apply(list, &t.vocab)); err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	for _, id := range slices.Concat(t.post.before, t.post.after) {
		if !t.vocab.has(id) {
			return fmt.Errorf("parse %s: post_processor: no token has id %d", name, id)
		}
	}
	if err := t.fillBytes(); err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	if id, ok := t.ID(string(c.BOS)); ok {
		t.bos = id
	}
	if id, ok := t.ID(string(c.EOS)); ok {
		t.eos = id
	}
	t.warnings = append(t.warnings, c.warnings...)
	return nil
}

// finishBare is finish for a file that does not say what surrounds a text: the configuration does.
func (t *Tokenizer) finishBare(name string, list []addedToken, c *config) (*Tokenizer, error) {
	if err := t.finish(name, list, c); err != nil {
		return nil, err
	}
	if t.bos >= 0 && c.AddBOS {
		t.post.before = []int32{t.bos}
	}
	if t.eos >= 0 && c.AddEOS {
		t.post.after = []int32{t.eos}
	}
	return t, nil
}

// file is tokenizer.json cut into its sections.
type file struct {
	added                       []addedToken
	normalizer, pre, post, deco component
	model                       modelHead
	vocab                       vocabulary
	scores                      []float64 // of a Unigram model
	merges                      mergeTable
	seam                        seam
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
	UnkID        *int32   `json:"unk_id"`                   // Unigram
	MaxChars     *int     `json:"max_input_chars_per_word"` // WordPiece
}

func readFile(data []byte) (*file, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("the file has %d bytes, more than %d", len(data), maxFileBytes)
	}
	data = jsonc.WithoutBOM(data)
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
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readModel reads the model section.
func (f *file) readModel(r *jsonReader) error {
	head := map[string]json.RawMessage{}
	mergesAt := -1
	err := r.object(func(key []byte) (err error) {
		switch name := string(key); name {
		case "vocab":
			if r.peek() == '[' {
				f.vocab, f.scores, err = readScores(r)
			} else {
				f.vocab, err = readVocab(r)
			}
			if err != nil {
				return fmt.Errorf("model.vocab: %w", err)
			}
		case "merges":
			// They refer to the vocabulary, which may come after them.
			if mergesAt = r.pos; f.vocab.count > 0 && !usesPrefix(head) {
				return f.readMerges(r)
			}
			_, err = r.skip()
		default:
			head[name], err = r.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(head)
	if err == nil {
		err = json.Unmarshal(raw, &f.model)
	}
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if f.model.Type == "" {
		f.model.Type = f.guessType(mergesAt >= 0)
	}
	if f.model.Type != "BPE" {
		return nil
	}
	if mergesAt < 0 || f.scores != nil || f.vocab.index.slots == nil {
		return fmt.Errorf("model: a BPE model needs vocab and merges")
	}
	if f.merges.slots == nil {
		return f.readMerges(&jsonReader{data: r.data, pos: mergesAt})
	}
	return nil
}

// usesPrefix reports whether merges must wait for all of the head.
func usesPrefix(head map[string]json.RawMessage) bool {
	raw := head["continuing_subword_prefix"]
	return len(raw) > 0 && string(raw) != "null" && string(raw) != `""`
}

// guessType names the model of an old file, which does not.
func (f *file) guessType(hasMerges bool) string {
	switch {
	case hasMerges:
		return "BPE"
	case f.scores != nil:
		return "Unigram"
	case f.model.Prefix != nil:
		return "WordPiece"
	}
	return "WordLevel"
}

func (f *file) readMerges(r *jsonReader) (err error) {
	m := mergeReader{vocab: &f.vocab}
	if f.model.Prefix != nil {
		m.prefix = len(*f.model.Prefix)
	}
	if f.merges, f.seam, err = m.read(r); err != nil {
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
	bytewise, err := t.checkStages(f)
	if err != nil {
		return err
	}
	if t.post, err = f.post.template(); err != nil {
		return err
	}
	t.pair = f.post.pair()
	if t.deco, err = f.deco.decoding(); err != nil {
		return err
	}
	t.model, err = newModel(f, &t.vocab, bytewise)
	return err
}

// checkStages fits the pre-tokenizers to each other and to the model. bytewise
// reports that words reach the model as text whose bytes are its symbols, because a
// last ByteLevel's rewriting is left to it.
func (t *Tokenizer) checkStages(f *file) (bytewise bool, err error) {
	last, growing := len(t.stages)-1, 0
	for i, s := range t.stages {
		if growing > maxGrowing {
			break
		}
		switch s := s.(type) {
		case metaspace:
			growing++
			if s.first && i > 0 {
				return false, unsupported("pre_tokenizer", `Metaspace with prepend_scheme "first" after another one`)
			}
		case byteLevel:
			bytewise = i == last && !bytewise && f.model.Type == "BPE" && !f.model.affixed() && !f.model.ByteFallback
			s.rewrite = !bytewise
			t.stages[i] = s
			if s.rewrite || s.prefixSpace {
				growing++
			}
		}
	}
	if growing > maxGrowing {
		return false, unsupported("pre_tokenizer", fmt.Sprintf("a Sequence of more than %d steps that lengthen the text", maxGrowing))
	}
	return bytewise, nil
}

func newModel(f *file, v *vocabulary, bytewise bool) (model, error) {
	switch head := &f.model; {
	case head.Type == "BPE":
		return newBPE(f, v, bytewise)
	case head.Type == "Unigram" && f.scores != nil:
		return newUnigram(v, f.scores, head.UnkID, head.ByteFallback)
	case head.Type == "WordPiece" && f.scores == nil:
		return newWordPiece(v, head)
	case head.Type == "WordLevel" && f.scores == nil:
		unk, err := head.unknown(v, "<unk>")
		return &wordLevel{&v.index, unk}, err
	case head.Type == "Unigram", head.Type == "WordPiece", head.Type == "WordLevel":
		return nil, fmt.Errorf("model: the vocabulary is not of the form that %s has", head.Type)
	}
	return nil, unsupported("model", quoted(f.model.Type))
}

// affixed reports whether characters get something put around them.
func (h *modelHead) affixed() bool {
	return h.Prefix != nil && *h.Prefix != "" || h.Suffix != nil && *h.Suffix != ""
}

// unknown returns the id of unk_token.
func (h *modelHead) unknown(v *vocabulary, absent string) (int32, error) {
	if h.Unk != nil {
		absent = *h.Unk
	}
	id, ok := v.index.find(absent)
	if !ok {
		return -1, fmt.Errorf("model: unk_token %s is not in the vocabulary", quoted(absent))
	}
	return id, nil
}

func newBPE(f *file, v *vocabulary, bytewise bool) (*bpe, error) {
	head := &f.model
	if head.Dropout != nil && *head.Dropout != 0 {
		return nil, unsupported("model", "BPE with dropout")
	}
	m := &bpe{
		index: &v.index, merges: f.merges, seam: f.seam, byteLevel: bytewise, ignoreMerges: head.IgnoreMerges,
		fallback: head.ByteFallback, fuseUnk: head.FuseUnk, unk: -1, cache: newWordCache(),
	}
	if head.Unk != nil && *head.Unk != "" {
		var err error
		if m.unk, err = head.unknown(v, ""); err != nil {
			return nil, err
		}
	}
	if head.Prefix != nil {
		m.prefix = *head.Prefix
	}
	if head.Suffix != nil {
		m.suffix = *head.Suffix
	}
	if len(m.prefix) > maxAffix || len(m.suffix) > maxAffix {
		return nil, unsupported("model", fmt.Sprintf("BPE with an affix of more than %d bytes", maxAffix))
	}
	m.fill(v)
	return m, nil
}

// maxAffix bounds what is put around every character of a word.
const maxAffix = 64

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
		if id, ok := t.vocab.index.find(tok.Content); ok {
			tok.ID = id
		} else if tok.ID < 0 || tok.ID >= maxTokens {
			return fmt.Errorf("added token %s has id %d", quoted(tok.Content), tok.ID)
		} else if t.vocab.has(tok.ID) && t.vocab.text[tok.ID] != tok.Content {
			return fmt.Errorf("added token %s and token %s have the same id %d", quoted(tok.Content), quoted(t.vocab.text[tok.ID]), tok.ID)
		}
		if err := t.vocab.grow(int(tok.ID)+1, t.vocab.count+len(list)); err != nil {
			return err
		}
		text, in := tok.Content, &t.added.raw
		if tok.Normalized {
			// The reference decodes such a token to its normalised text too.
			var err error
			if text, err = t.normalize.apply(tok.Content); err != nil {
				return fmt.Errorf("added token %s: %w", quoted(tok.Content), err)
			}
			in = &t.added.normalized
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
func (t *Tokenizer) fillBytes() error {
	v := &t.vocab
	v.rawEnd = make([]uint32, len(v.text))
	if t.deco.fallback {
		t.deco.bytes = make([]bool, len(v.text))
	}
	for id, text := range v.text {
		most := grown(len(text))
		if text = t.deco.text(text, false); len(text) > most {
			return fmt.Errorf("decoder: it makes token %s more than %d times as long", quoted(v.text[id]), grown(1)-grown(0))
		}
		if t.deco.fallback {
			_, t.deco.bytes[id] = byteToken(text)
		}
		v.raw = t.deco.appendPlain(v.raw, text)
		if len(v.raw) > math.MaxUint32 {
			return fmt.Errorf("the tokens stand for more than %d bytes", uint32(math.MaxUint32))
		}
		v.rawEnd[id] = uint32(len(v.raw))
	}
	return nil
}
