// Package tokenizer turns text into token ids and back, as tokenizer.json
// describes it: added-token split, normaliser, pre-tokenizer, byte-pair merges,
// post-processor, decoder.
//
// Supported are BPE models: byte-level ones (Qwen, Llama 3, GPT-2, GPT-4o and
// others by any split expression) and SentencePiece-style ones with byte tokens
// (Llama 2, Mistral, Gemma).
//
// It is called by the text side of a model (generate), by the output grammar and
// by debug commands. It never renders templates, never reads weights and never
// guesses: a component of tokenizer.json that it does not implement is a load
// error that names it, because a tokenizer that is almost right gives wrong ids
// without a sign.
//
// The reference is the PyPI package tokenizers (its Rust core); the ids, the
// decoded text and the order of the steps are its own, checked by goldens.
//
// A Tokenizer is immutable after loading and safe for concurrent use. A Decoder
// belongs to one stream.
package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"unicode/utf8"
)

// Tokenizer is one loaded tokenizer.json.
type Tokenizer struct {
	vocab     vocabulary
	added     addedTokens
	normalize normalizer
	stages    []stage
	model     bpe
	post      template
	deco      decoding
	bos, eos  int32 // -1 when the configuration names none

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

// Load reads tokenizer.json and, when present, tokenizer_config.json from the
// root of fsys. The error names the file and the component that is wrong or not
// supported.
func Load(fsys fs.FS) (*Tokenizer, error) {
	data, err := fs.ReadFile(fsys, "tokenizer.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingFile(fsys, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	config, err := fs.ReadFile(fsys, "tokenizer_config.json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	return Parse(data, config)
}

// missingFile explains the absence of tokenizer.json by what is there instead.
func missingFile(fsys fs.FS, err error) error {
	for _, name := range []string{"tokenizer.model", "tiktoken.model", "vocab.json", "vocab.txt"} {
		if _, statErr := fs.Stat(fsys, name); statErr == nil {
			return fmt.Errorf("load tokenizer: there is %s but no tokenizer.json; save the model's fast tokenizer to get one: %w", name, err)
		}
	}
	return fmt.Errorf("load tokenizer: the model folder has no tokenizer.json: %w", err)
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
// (Qwen, Llama 3, GPT-2, GPT-4o). For others it reports that the regular
// expression exceeded its time or size limit. The ids are complete even then and
// decode to text, but the stretch after that point was not cut into words, so
// they may differ from the reference's.
func (t *Tokenizer) AppendEncode(dst []int32, text string, o EncodeOptions) ([]int32, error) {
	if !utf8.ValidString(text) {
		text = string(appendLossy(nil, []byte(text)))
	}
	e := t.encoders.Get().(*encoder)
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
	t.encoders.Put(e)
	return dst, err
}

// ID returns the id of a token given as it is written in tokenizer.json.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.added.ids[token]; ok {
		return id, true
	}
	id, ok := t.vocab.ids[token]
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
			if err := st.split(s, e.atStart, e.emit[i+1]); err != nil && e.err == nil {
				e.err = fmt.Errorf("tokenize: %w", err)
			}
		}
	}
	e.emit[len(t.stages)] = func(w string) {
		if w != "" {
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
		piece = e.t.normalize.apply(piece)
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
func quoted(s string) string {
	const limit = 80
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
