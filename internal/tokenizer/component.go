package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
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

	Pattern     pattern         `json:"pattern"`          // Split, Replace
	Behavior    behavior        `json:"behavior"`         // Split
	Invert      bool            `json:"invert"`           // Split
	Content     string          `json:"content"`          // Replace
	Prepend     string          `json:"prepend"`          // Prepend
	PrefixSpace *bool           `json:"add_prefix_space"` // ByteLevel
	UseRegex    *bool           `json:"use_regex"`        // ByteLevel
	EachDigit   bool            `json:"individual_digits"`
	Replacement string          `json:"replacement"`    // Metaspace
	Scheme      string          `json:"prepend_scheme"` // Metaspace
	CutWords    *bool           `json:"split"`          // Metaspace
	Start       int             `json:"start"`          // Strip
	Stop        int             `json:"stop"`           // Strip
	Single      []templatePiece `json:"single"`         // TemplateProcessing
	Tokens      map[string]ids  `json:"special_tokens"` // TemplateProcessing
	Sep         *namedID        `json:"sep"`            // Bert, Roberta
	Cls         *namedID        `json:"cls"`            // Bert, Roberta
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
		ID string `json:"id"`
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

// normalizers flattens the normalizer section.
func (c *component) normalizers() (normalizer, error) {
	switch c.Type {
	case "":
		return nil, nil
	case "NFC":
		return normalizer{nfc}, nil
	case "Prepend":
		if len(c.Prepend) > maxReplacement {
			return nil, unsupported("normalizer", "Prepend of "+quoted(c.Prepend))
		}
		return normalizer{prepend(c.Prepend)}, nil
	case "Replace":
		from, err := c.replaced("normalizer")
		return normalizer{replaceAll(from, c.Content)}, err
	case "Sequence":
		var all normalizer
		for i := range c.Normalizers {
			n, err := c.Normalizers[i].normalizers()
			if err != nil {
				return nil, err
			}
			all = append(all, n...)
		}
		if len(all) > maxSteps {
			return nil, unsupported("normalizer", fmt.Sprintf("a Sequence of %d", len(all)))
		}
		return all, nil
	}
	return nil, unsupported("normalizer", c.Type)
}

const (
	// Bounds on what a hostile file can make of a short text: steps of a section,
	// and how many times longer one Replace or Prepend makes it, in bytes. Real
	// files have two or three steps that turn a space into U+2581.
	maxSteps       = 4
	maxReplacement = 8
)

// replaced returns the fixed string that a Replace looks for.
func (c *component) replaced(section string) (string, error) {
	if c.Pattern.String == nil {
		return "", unsupported(section, "Replace with a Regex")
	}
	if *c.Pattern.String == "" || len(c.Content) > maxReplacement {
		return "", unsupported(section, "Replace of "+quoted(*c.Pattern.String)+" by "+quoted(c.Content))
	}
	return *c.Pattern.String, nil
}

// stages flattens the pre_tokenizer section. ByteLevel can only be the last one:
// what follows it would see bytes written as other runes.
func (c *component) stages() ([]stage, error) {
	switch c.Type {
	case "":
		return nil, nil
	case "ByteLevel":
		// Absent fields have the reference's defaults.
		return []stage{byteLevel{
			prefixSpace: c.PrefixSpace == nil || *c.PrefixSpace,
			words:       c.UseRegex == nil || *c.UseRegex,
		}}, nil
	case "Digits":
		return []stage{digits{c.EachDigit}}, nil
	case "Metaspace":
		m, err := c.metaspace()
		return []stage{m}, err
	case "Split":
		s, err := c.splitStage()
		return []stage{s}, err
	case "Sequence":
		var all []stage
		for i := range c.Pretokenizers {
			if n := len(all); n > 0 && isByteLevel(all[n-1]) {
				return nil, unsupported("pre_tokenizer", c.Pretokenizers[i].Type+" after ByteLevel")
			}
			s, err := c.Pretokenizers[i].stages()
			if err != nil {
				return nil, err
			}
			all = append(all, s...)
		}
		return all, nil
	}
	return nil, unsupported("pre_tokenizer", c.Type)
}

func (c *component) metaspace() (stage, error) {
	m := metaspace{mark: c.Replacement, words: c.CutWords == nil || *c.CutWords}
	if utf8.RuneCountInString(m.mark) != 1 {
		return nil, fmt.Errorf("pre_tokenizer: Metaspace replacement %s is not one character", quoted(m.mark))
	}
	switch c.Scheme {
	case "always":
		m.always = true
	case "first":
		m.first = true
	case "never":
	case "": // files from before there were schemes
		m.always = c.PrefixSpace == nil || *c.PrefixSpace
	default:
		return nil, unsupported("pre_tokenizer", "Metaspace with prepend_scheme "+quoted(c.Scheme))
	}
	return m, nil
}

func (c *component) splitStage() (stage, error) {
	switch c.Behavior {
	case isolated, removed, mergedWithPrevious, mergedWithNext, contiguous:
	default:
		return nil, unsupported("pre_tokenizer", "Split with behavior "+quoted(string(c.Behavior)))
	}
	p := splitStage{how: c.Behavior, invert: c.Invert}
	switch {
	case c.Pattern.String != nil && *c.Pattern.String != "":
		p.find = newStringFinder(*c.Pattern.String)
		return p, nil
	case c.Pattern.Regex == nil || *c.Pattern.Regex == "":
		return nil, fmt.Errorf("pre_tokenizer: Split without a pattern")
	}
	// The known expressions match all of the text, so that these settings make no
	// difference to where it is cut.
	if scan, ok := scanners[*c.Pattern.Regex]; ok && (c.Behavior == isolated || c.Behavior == removed && c.Invert) {
		return scanStage(scan), nil
	}
	find, err := newRegexFinder(*c.Pattern.Regex)
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: Split expression %s: %w", quoted(*c.Pattern.Regex), err)
	}
	p.find = find
	return p, nil
}

// template is what a post-processor puts around the ids of one text.
type template struct {
	before, after []int32
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
		}
	}
	if texts != 1 {
		return t, unsupported("post_processor", fmt.Sprintf("TemplateProcessing with %d texts in its single form", texts))
	}
	return t, nil
}

// decoding flattens the decoder section. Two forms are known: ByteLevel, and the
// sequence Replace, ByteFallback, Fuse and perhaps Strip that belongs to
// SentencePiece-style models.
func (c *component) decoding() (decoding, error) {
	list := []component{*c}
	if c.Type == "Sequence" {
		list = c.Decoders
	}
	var types []string
	for i := range list {
		types = append(types, list[i].Type)
	}
	form := strings.Join(types, ", ")
	switch form {
	case "ByteLevel":
		return decoding{byteLevel: true}, nil
	case "Replace, ByteFallback, Fuse", "Replace, ByteFallback, Fuse, Strip":
		from, err := list[0].replaced("decoder")
		if err != nil {
			return decoding{}, err
		}
		d := decoding{from: from, to: list[0].Content}
		if len(list) == 4 {
			if list[3].Content != " " || list[3].Stop != 0 || list[3].Start < 0 {
				return decoding{}, unsupported("decoder", "Strip of anything but leading spaces")
			}
			d.strip = list[3].Start
		}
		return d, nil
	case "":
		return decoding{}, unsupported("decoder", "a file without one")
	}
	return decoding{}, unsupported("decoder", form)
}
