package tokenizer

import (
	"encoding/json"
	"fmt"
)

// component is a normalizer, pre-tokenizer, post-processor or decoder as the file
// has it: a type and whatever fields that type needs. The zero value is an absent
// one.
type component struct {
	Type string `json:"type"`

	// Members of a Sequence, under the name that its section uses.
	Normalizers   []component `json:"normalizers"`
	Pretokenizers []component `json:"pretokenizers"`
	Processors    []component `json:"processors"`
	Decoders      []component `json:"decoders"`

	Pattern     pattern  `json:"pattern"`          // Split, Replace
	Behavior    behavior `json:"behavior"`         // Split, Punctuation
	Invert      bool     `json:"invert"`           // Split
	Content     string   `json:"content"`          // Replace, Strip
	Prepend     string   `json:"prepend"`          // Prepend
	PrefixSpace *bool    `json:"add_prefix_space"` // ByteLevel, Metaspace
	UseRegex    *bool    `json:"use_regex"`        // ByteLevel
	EachDigit   bool     `json:"individual_digits"`
	Delimiter   string   `json:"delimiter"`      // CharDelimiterSplit
	Length      *int     `json:"length"`         // FixedLength
	Replacement string   `json:"replacement"`    // Metaspace
	Scheme      string   `json:"prepend_scheme"` // Metaspace
	CutWords    *bool    `json:"split"`          // Metaspace

	CleanText   *bool  `json:"clean_text"`           // BertNormalizer
	Chinese     *bool  `json:"handle_chinese_chars"` // BertNormalizer
	StripAccent *bool  `json:"strip_accents"`        // BertNormalizer
	Lowercase   *bool  `json:"lowercase"`            // BertNormalizer
	StripLeft   bool   `json:"strip_left"`           // Strip, a normalizer
	StripRight  bool   `json:"strip_right"`
	Charsmap    []byte `json:"precompiled_charsmap"` // Precompiled

	Start   int     `json:"start"`  // Strip, a decoder
	Stop    int     `json:"stop"`   // Strip, a decoder
	Suffix  *string `json:"suffix"` // BPEDecoder
	Prefix  *string `json:"prefix"` // WordPiece, a decoder
	Cleanup *bool   `json:"cleanup"`

	Single []templatePiece `json:"single"`         // TemplateProcessing
	Pairs  []templatePiece `json:"pair"`           // TemplateProcessing
	Tokens map[string]ids  `json:"special_tokens"` // TemplateProcessing
	Sep    *namedID        `json:"sep"`            // Bert, Roberta
	Cls    *namedID        `json:"cls"`            // Bert, Roberta
}

// pattern is {"Regex": …} or {"String": …}.
type pattern struct {
	Regex, String *string
}

type ids struct {
	IDs []int32 `json:"ids"`
}

// templatePiece is {"SpecialToken": {"id": …}} or {"Sequence": {"id": "A"}}.
type templatePiece struct {
	SpecialToken, Sequence *struct {
		ID   string `json:"id"`
		Type int32  `json:"type_id"`
	}
}

// namedID is the pair ["[SEP]", 102].
type namedID int32

// UnmarshalJSON reads the pair.
func (n *namedID) UnmarshalJSON(data []byte) error {
	var name string
	pair := []any{&name, (*int32)(n)}
	return json.Unmarshal(data, &pair)
}

func unsupported(section, what string) error {
	return fmt.Errorf("%s: %s is not supported", section, what)
}

// template is what a post-processor puts around the ids of one text.
type template struct {
	before, after []int32
}

// maxAround bounds the ids around a text; models have up to three.
const maxAround = 64

func (t *template) check() error {
	if n := len(t.before) + len(t.after); n > maxAround {
		return unsupported("post_processor", fmt.Sprintf("putting more than %d tokens around a text", maxAround))
	}
	return nil
}

// template flattens the post_processor section, for a single text.
func (c *component) template() (template, error) {
	switch c.Type {
	case "", "ByteLevel": // ByteLevel trims offsets, which we have none of
		return template{}, nil
	case "BertProcessing", "RobertaProcessing":
		if c.Sep == nil || c.Cls == nil {
			return template{}, fmt.Errorf("post_processor: %s without sep and cls", c.Type)
		}
		return template{[]int32{int32(*c.Cls)}, []int32{int32(*c.Sep)}}, nil
	case "TemplateProcessing":
		return c.templateProcessing()
	case "Sequence":
		var all template
		for i := range c.Processors {
			t, err := c.Processors[i].template()
			if err != nil {
				return template{}, err
			}
			// A later one goes around what the earlier ones made.
			all.before = append(t.before, all.before...)
			all.after = append(all.after, t.after...)
			if err := all.check(); err != nil {
				return template{}, err
			}
		}
		return all, nil
	}
	return template{}, unsupported("post_processor", c.Type)
}

func (c *component) templateProcessing() (template, error) {
	var t template
	texts := 0
	for _, piece := range c.Single {
		switch {
		case piece.Sequence != nil:
			texts++
		case piece.SpecialToken != nil:
			tok, ok := c.Tokens[piece.SpecialToken.ID]
			if !ok {
				return t, fmt.Errorf("post_processor: TemplateProcessing has no ids for %s", quoted(piece.SpecialToken.ID))
			}
			if texts == 0 {
				t.before = append(t.before, tok.IDs...)
			} else {
				t.after = append(t.after, tok.IDs...)
			}
			if err := t.check(); err != nil {
				return t, err
			}
		}
	}
	if texts != 1 {
		return t, unsupported("post_processor", fmt.Sprintf("TemplateProcessing with %d texts in its single form", texts))
	}
	return t, nil
}
