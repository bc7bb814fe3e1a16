package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hearth/internal/jsonc"
	"hearth/internal/regular"
)

// modelConfigFile tells which model a folder holds and what wrote it.
const modelConfigFile = "config.json"

// modelConfig is what of config.json bears on its tokenizer.
type modelConfig struct {
	known   bool
	Type    string // model_type
	Version string // transformers_version
}

// readModel reads config.json, nil where there is none. What is wrong with it is said by who reads all of it.
func (c *config) readModel(data []byte) {
	var keys struct {
		Type    json.RawMessage `json:"model_type"`
		Version json.RawMessage `json:"transformers_version"`
	}
	if data == nil {
		return
	}
	if _, err := jsonc.Unmarshal(data, &keys); err != nil {
		return
	}
	c.model.known = true
	_ = json.Unmarshal(keys.Type, &c.model.Type)
	_ = json.Unmarshal(keys.Version, &c.model.Version)
}

// mend puts right what is wrong with published files in known ways; what it did is one warning.
func (f *file) mend(c *config) {
	var did []string
	for _, d := range []string{f.mendMistral(&c.model), f.mendDecoder()} {
		if d != "" {
			did = append(did, d)
		}
	}
	if len(did) > 0 {
		c.warn(mainFile, "%s", strings.Join(did, "; "))
	}
}

// byteMark stands for a space in byte-level vocabularies.
const byteMark = "\u0120"

// mendDecoder replaces a decoder that contradicts its vocabulary. Conversions by way of a class for SentencePiece models
// (Devstral Small 2, Mistral Small 3 for MLX) left its decoder beside a byte-level vocabulary, so that text came out as
// "I'mĠhere"; and a decoder may be lost altogether. The vocabulary decides, since it is what the model has learned.
func (f *file) mendDecoder() string {
	steps := f.deco.decoders()
	cuts := f.pre.has("ByteLevel") || f.normalizer.has("ByteLevel")
	byBytes := slices.ContainsFunc(steps, func(s component) bool { return s.Type == "ByteLevel" })
	if _, err := f.deco.decoding(); err != nil || cuts && byBytes || f.model.affixed() {
		return "" // an error is told by who builds it
	}
	mark, declared, prefixed := f.marks()
	spaces, bytes, odd, total := f.countMarks(mark)
	switch {
	case bytes >= spaces && (cuts || bytes > 0 && spaces == 0 && odd <= total/50 && !f.writes(byteMark)):
		var did []string
		if !byBytes {
			f.deco = component{Type: "ByteLevel"}
			did = append(did, fmt.Sprintf("the decoder (%s) does not fit the vocabulary, which is byte-level; text is decoded by ByteLevel", naming(steps)))
		}
		if !cuts {
			did = append(did, "nothing before the model writes text as its byte-level vocabulary has it, so prompts are encoded otherwise than it has learned")
		}
		return strings.Join(did, "; ")
	case spaces > bytes && (declared || spaces >= total/20):
		single := f.hasToken("<0x0A>")
		if !byBytes && slices.ContainsFunc(steps, func(s component) bool { return s.unmarks(mark) }) &&
			(!single || !f.model.ByteFallback || slices.ContainsFunc(steps, func(s component) bool { return s.Type == "ByteFallback" })) {
			return ""
		}
		writes := "a space as " + mark
		if single {
			writes += " and a byte as <0x0A>"
		}
		f.deco = sentencePieceDecoder(mark, single, prefixed)
		return fmt.Sprintf("the decoder (%s) does not fit the vocabulary, which writes %s; text is decoded by %s", naming(steps), writes, naming(f.deco.Decoders))
	}
	return ""
}

// decoders are the steps of a decoder section.
func (c *component) decoders() []component {
	switch c.Type {
	case "":
		return nil
	case "Sequence":
		return c.Decoders
	}
	return []component{*c}
}

// has tells whether a section has a step of a type.
func (c *component) has(kind string) (does bool) {
	c.each(func(s *component) { does = does || s.Type == kind })
	return does
}

// each calls f for every step of a section.
func (c *component) each(f func(*component)) {
	f(c)
	for _, list := range [][]component{c.Normalizers, c.Pretokenizers} {
		for i := range list {
			list[i].each(f)
		}
	}
}

// writes tells whether a step before the model writes a mark for something.
func (f *file) writes(mark string) (does bool) {
	f.normalizer.each(func(c *component) { does = does || c.Type == "Replace" && strings.Contains(c.Content, mark) })
	return does
}

// unmarks tells whether a decoder writes spaces for a mark.
func (c *component) unmarks(mark string) bool {
	switch c.Type {
	case "Metaspace":
		return c.Replacement == mark
	case "Replace":
		return c.Pattern.String != nil && *c.Pattern.String == mark || c.Pattern.Regex != nil && strings.Contains(*c.Pattern.Regex, mark)
	}
	return false
}

// marks is what the steps before the model write for a space: declared, where they do, prefixed, where a text begins with it.
func (f *file) marks() (mark string, declared, prefixed bool) {
	mark = spaceMark
	f.pre.each(func(c *component) {
		if c.Type != "Metaspace" || utf8.RuneCountInString(c.Replacement) != 1 {
			return
		}
		mark, declared = c.Replacement, true
		if m, err := c.metaspace("pre_tokenizer"); err == nil {
			prefixed = m.always || m.first
		}
	})
	f.normalizer.each(func(c *component) {
		switch {
		case c.Type == "Replace" && c.Content == mark:
			declared = true
		case c.Type == "Prepend" && c.Prepend == mark:
			declared, prefixed = true, true
		}
	})
	return mark, declared, prefixed
}

// sampled is how many tokens of a vocabulary are looked at, about.
const sampled = 1 << 13

// countMarks looks at tokens of the model's own, evenly spread: how many begin with the mark, how many have a byte-level space,
// how many have a rune that is in no byte-level vocabulary, and how many there are.
func (f *file) countMarks(mark string) (spaces, bytes, odd, total int) {
	added := make(map[string]bool, len(f.added))
	for i := range f.added {
		added[f.added[i].Content] = true
	}
	for id := 0; id < len(f.vocab.text); id += 1 + len(f.vocab.text)/sampled {
		text := f.vocab.text[id]
		if !f.vocab.used[id] || added[text] {
			continue
		}
		total++
		if strings.HasPrefix(text, mark) {
			spaces++
		}
		if strings.Contains(text, byteMark) {
			bytes++
		}
		if !inByteRunes(text) {
			odd++
		}
	}
	return spaces, bytes, odd, total
}

// inByteRunes tells whether a token is written as byte-level vocabularies do.
func inByteRunes(text string) bool {
	for _, r := range text {
		if r >= maxByteRune || runeByte[r] < 0 {
			return false
		}
	}
	return true
}

// sentencePieceDecoder is the decoder of SentencePiece vocabularies: single, of those with tokens of bytes.
func sentencePieceDecoder(mark string, single, prefixed bool) component {
	c := component{Type: "Sequence", Decoders: []component{{Type: "Replace", Pattern: pattern{String: &mark}, Content: " "}}}
	if single {
		c.Decoders = append(c.Decoders, component{Type: "ByteFallback"})
	}
	c.Decoders = append(c.Decoders, component{Type: "Fuse"})
	if prefixed {
		c.Decoders = append(c.Decoders, component{Type: "Strip", Content: " ", Start: 1})
	}
	return c
}

// naming lists the types of a decoder's steps.
func naming(steps []component) string {
	var names []string
	for i := range steps {
		if i == maxSteps {
			names = append(names, "…")
			break
		}
		names = append(names, regular.Clip(steps[i].Type))
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// mistralTypes are the models whose early conversions cut text by Llama 3's expression in place of their own.
var mistralTypes = []string{"mistral", "mistral3", "voxtral", "ministral", "pixtral"}

// tekkenSize is how many tokens transformers takes for a sign of Mistral's own byte-level vocabulary.
const tekkenSize = 100_000

// mendMistral does what PyPI's transformers does with fix_mistral_regex: in folders of these models that a transformers before 5
// has written (or that do not say), the first expression is replaced by the right one. Transformers does so for any vocabulary
// of more than 100,000 tokens; here it has to be Mistral's, which has [INST], because models of that architecture have come
// with others' as well. The known wrong expression is enough where a vocabulary has been cut down.
func (f *file) mendMistral(m *modelConfig) string {
	if !m.known || m.Type != "" && !slices.Contains(mistralTypes, m.Type) || m.Version != "" && !before5(m.Version) || f.pre.Type == "" || !f.hasToken("[INST]") {
		return ""
	}
	large := f.vocab.count+len(f.added) > tekkenSize
	right := mistralRegex
	split := component{Type: "Split", Pattern: pattern{Regex: &right}, Behavior: isolated}
	switch steps := f.pre.Pretokenizers; {
	case f.pre.Type != "Sequence":
		if !large {
			return ""
		}
		if f.pre.Type == "Metaspace" {
			no := false
			f.pre = component{Type: "ByteLevel", PrefixSpace: &no, UseRegex: &no}
		}
		f.pre = component{Type: "Sequence", Pretokenizers: []component{split, f.pre}}
	case len(steps) == 0 || steps[0].Type != "Split" || steps[0].Pattern.Regex == nil:
		return ""
	default:
		was := plainRegex(*steps[0].Pattern.Regex)
		if was == right || !large && was != llama3Regex {
			return ""
		}
		f.pre.Pretokenizers = append([]component{split}, steps[1:]...)
	}
	return "text was cut into words by the wrong expression of early conversions of Mistral's models; it is cut by the right one, as transformers does with fix_mistral_regex"
}

func (f *file) hasToken(text string) bool {
	_, ok := f.vocab.index.find(text)
	return ok || slices.ContainsFunc(f.added, func(t addedToken) bool { return t.Content == text })
}

// before5 tells whether a version of transformers comes before 5.0.0, as its own pre-releases do.
func before5(version string) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".")
	major, err := strconv.Atoi(first)
	if err != nil {
		return false
	}
	pre := func(s string) bool {
		s = strings.TrimLeft(s, "0.-_")
		return strings.HasPrefix(s, "dev") || strings.HasPrefix(s, "rc") || strings.HasPrefix(s, "a") || strings.HasPrefix(s, "b") || strings.HasPrefix(s, "c")
	}
	return major < 5 || major == 5 && pre(rest)
}
