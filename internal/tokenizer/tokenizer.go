// Package tokenizer turns text into token ids and back, as a model folder's
// tokenizer.json describes it: added-token split, normaliser, pre-tokenizer, model,
// post-processor, decoder.
//
// The models are BPE (byte-level, as in Qwen, Llama 3 and GPT; SentencePiece-style
// with byte tokens, as in Llama 2, Mistral and Gemma; with affixes), Unigram,
// WordPiece and WordLevel. A folder may have tokenizer.model (SentencePiece) or
// tiktoken.model instead.
//
// It is called by the text side of a model (generate), by the output grammar and
// by debug commands. It never renders templates, never reads weights and never
// guesses: a component of tokenizer.json that it does not implement is a load
// error that names it, because a tokenizer that is almost right gives wrong ids
// without a sign. Known faults of published files are mended (mend.go), and a
// warning says so; there the text is not what the reference makes of the file.
//
// The reference is the PyPI package tokenizers (its Rust core), and sentencepiece and
// tiktoken for their files; the ids, the decoded text and the order of the steps are
// theirs, checked by goldens. docs/tokenizers.md has the comparison in figures.
//
// A Tokenizer is immutable after loading and safe for concurrent use. A Decoder
// belongs to one stream.
package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"unicode/utf8"

	"hearth/internal/regular"
)

// Tokenizer is one loaded tokenizer.
type Tokenizer struct {
	vocab     vocabulary
	added     addedTokens
	normalize normalizer
	stages    []stage
	model     model
	post      template
	pair      []PairPiece
	deco      decoding
	bos, eos  int32 // -1 when the configuration names none
	warnings  []string

	encoders sync.Pool // *encoder
}

// EncodeOptions choose what Encode does besides the plain conversion. The zero
// value encodes untrusted text on its own: no post-processor, no special tokens.
type EncodeOptions struct {
	// AddSpecial runs the post-processor, which for most models adds the
	// beginning-of-sequence token. Chat templates write that token themselves.
	AddSpecial bool
	// ParseSpecial turns the text of special tokens, such as "<|im_start|>", into
	// their ids: right for the output of a chat template. When false that text is
	// encoded as ordinary text, so that user data cannot forge a turn. Added tokens
	// that are not marked special (runs of spaces, in many models <think>) are
	// recognised in both cases, as in the reference.
	ParseSpecial bool
}

// Load reads the tokenizer of a model folder: tokenizer.json, or else
// tokenizer.model (SentencePiece) or tiktoken.model; with it, when present,
// tokenizer_config.json, special_tokens_map.json and added_tokens.json, which a
// tokenizer.json can do without: what is wrong with them are Warnings. config.json
// says which model it is and what wrote it. The error names the file and the
// component that is wrong or not supported.
func Load(fsys fs.FS) (*Tokenizer, error) {
	t, err := load(fsys)
	return t, regular.Short(err)
}

func load(fsys fs.FS) (*Tokenizer, error) {
	var c config
	files := map[string][]byte{}
	for _, name := range []string{configFile, specialMapFile, addedFile, modelConfigFile} {
		data, err := regular.ReadFS(fsys, name, maxConfigBytes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read tokenizer: %w", err)
		}
		files[name] = data
	}
	readable := files[configFile] == nil || c.read(files[configFile])
	c.readModel(files[modelConfigFile])
	for _, kind := range []struct {
		name  string
		parse func([]byte, *config) (*Tokenizer, error)
	}{{mainFile, parse}, {modelFile, parseSentencePiece}, {tiktokenFile, parseTiktoken}} {
		data, err := regular.ReadFS(fsys, kind.name, maxFileBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read tokenizer: %w", err)
		}
		// The other files add nothing to a tokenizer.json, which lists its tokens. The others lean on them.
		added := files[addedFile]
		switch {
		case kind.name == mainFile:
			added = nil
		case !readable && len(files[configFile]) > 0:
			return nil, fmt.Errorf("parse %s", c.warnings[0])
		}
		c.readLegacy(files[specialMapFile], added)
		return kind.parse(data, &c)
	}
	return nil, missingFile(fsys)
}

// missingFile explains the absence of a tokenizer by what is there instead.
func missingFile(fsys fs.FS) error {
	err := &fs.PathError{Op: "open", Path: mainFile, Err: fs.ErrNotExist}
	for _, name := range []string{"vocab.json", "vocab.txt", "tekken.json"} {
		if _, statErr := fs.Stat(fsys, name); statErr == nil {
			return fmt.Errorf("load tokenizer: there is %s but no tokenizer.json; save the model's fast tokenizer to get one: %w", name, err)
		}
	}
	return fmt.Errorf("load tokenizer: the model folder has none of %s, %s and %s: %w", mainFile, modelFile, tiktokenFile, err)
}

// Encode returns the ids of text. Invalid UTF-8 is replaced by U+FFFD first, one
// for each maximal invalid sequence.
//
// If the split regular expression of an unusual model gives up (see AppendEncode),
// the ids still decode to text.
func (t *Tokenizer) Encode(text string, o EncodeOptions) []int32 {
	ids, _ := t.AppendEncode(make([]int32, 0, len(text)/3+4), text, o)
	return ids
}

// AppendEncode appends the ids of text to dst and returns the extended slice. It
// is Encode for callers that reuse buffers.
//
// The error is always nil for models whose split expression has its own scanner
// (Qwen, Llama 3, GPT-2, GPT-4o, Mistral, DeepSeek, Kimi). For others it reports that the regular
// expression took too many steps (machine), or a normalizer made too much of it. The ids are complete even then and
// decode to text, but the stretch after that point was not cut into words, so
// they may differ from the reference's.
func (t *Tokenizer) AppendEncode(dst []int32, text string, o EncodeOptions) ([]int32, error) {
	e := t.encoders.Get().(*encoder)
	dst, err := t.encode(e, dst, text, o)
	t.encoders.Put(e)
	return dst, err
}

func (t *Tokenizer) encode(e *encoder, dst []int32, text string, o EncodeOptions) ([]int32, error) {
	if !utf8.ValidString(text) {
		text = string(appendLossy(nil, []byte(text)))
	}
	e.dst, e.err, e.atStart = dst, nil, true
	if o.AddSpecial {
		e.dst = append(e.dst, t.post.before...)
	}
	e.text(text, o.ParseSpecial)
	if o.AddSpecial {
		e.dst = append(e.dst, t.post.after...)
	}
	dst, err := e.dst, e.err
	e.dst, e.err = nil, nil
	e.word.shrink()
	return dst, err
}

// ID returns the id of a token given as it is written in tokenizer.json.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.added.ids[token]; ok {
		return id, true
	}
	id, ok := t.vocab.index.find(token)
	return id, ok
}

// Token returns a token as it is written in tokenizer.json; for byte-level
// vocabularies that is the printable form ("Ġthe"), not the text.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if !t.vocab.has(id) {
		return "", false
	}
	return t.vocab.text[id], true
}

// Bytes returns the bytes that a token stands for in decoded text, which need not
// be valid UTF-8 on their own. It is empty for unknown ids. The slice is shared:
// do not write to it.
func (t *Tokenizer) Bytes(id int32) []byte {
	if !t.vocab.has(id) {
		return nil
	}
	return t.vocab.bytes(id)
}

// Special reports whether the token is marked special (a control token that
// Decode can leave out).
func (t *Tokenizer) Special(id int32) bool {
	return t.vocab.has(id) && t.vocab.special[id]
}

// Size is the number of ids: one more than the largest id in use. Models often
// have a few more rows of logits than that.
func (t *Tokenizer) Size() int { return len(t.vocab.text) }

// BOS returns the beginning-of-sequence id that tokenizer_config.json names.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// EOS returns the end-of-sequence id that tokenizer_config.json names. A model may
// have more of them in its generation_config.json.
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos >= 0 }

// Warnings says what is wrong with the folder's files and was read over or mended, a line each with the file first.
func (t *Tokenizer) Warnings() []string { return t.warnings }

// encoder is the working memory of one Encode call, pooled because its buffers
// and closures outlive the call.
type encoder struct {
	t    *Tokenizer
	dst  []int32
	err  error
	emit []func(string) // emit[i] feeds a piece to stage i; the last one encodes a word
	word wordScratch
	// atStart holds until the first added token or piece: Metaspace marks only there.
	atStart bool
}

func newEncoder(t *Tokenizer) *encoder {
	e := &encoder{t: t, emit: make([]func(string), len(t.stages)+1)}
	for i, st := range t.stages {
		e.emit[i] = func(s string) {
			if err := st.split(s, e.atStart, e.word.watch, e.emit[i+1]); err != nil && e.err == nil {
				e.err = fmt.Errorf("tokenize: %w", err)
			}
		}
	}
	e.emit[len(t.stages)] = func(w string) {
		if w != "" {
			e.word.watch.pass(len(w))
			e.dst = t.model.appendWord(e.dst, w, &e.word)
		}
	}
	return e
}

// text cuts out added tokens, first those matched in the raw text, then, in the
// normalised rest, those matched after normalisation.
func (e *encoder) text(s string, parseSpecial bool) {
	a := &e.t.added
	a.raw.split(s, !parseSpecial, e.token, func(piece string) {
		piece, err := e.t.normalize.apply(piece)
		if err != nil && e.err == nil {
			e.err = fmt.Errorf("tokenize: %w", err)
		}
		a.normalized.split(piece, !parseSpecial, e.token, e.plain)
	})
}

func (e *encoder) token(id int32) {
	e.dst = append(e.dst, id)
	e.atStart = false
}

func (e *encoder) plain(s string) {
	if s != "" {
		e.emit[0](s)
		e.atStart = false
	}
}

// quoted shortens s for an error message.
func quoted(s string) string { return regular.Quote(s) }
