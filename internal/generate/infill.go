package generate

import (
	"context"
	"slices"

	"hearth/internal/chat"
	"hearth/internal/tokenizer"
)

// infillForm is how a family of models is asked for the text between two others. The pieces go into the prompt in the order
// of their markers; the model writes after the last one.
type infillForm struct {
	prefix, suffix string // the markers before the two texts
	middle         string // what ends the prompt; "" where nothing does
	suffixFirst    bool
}

// infillForms are those in use, by the models that brought them. A vocabulary has the tokens of one of them.
var infillForms = []infillForm{
	{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", false},    // CodeGemma, Qwen2.5-Coder and all Qwens since, Granite 4
	{"<fim_prefix>", "<fim_suffix>", "<fim_middle>", false},          // StarCoder, Granite Code, Stable Code
	{"<fim-prefix>", "<fim-suffix>", "<fim-middle>", false},          // SantaCoder
	{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", false},          // DeepSeek-Coder and all DeepSeeks since
	{"▁<PRE>", "▁<SUF>", "▁<MID>", false},                            // Code Llama
	{"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", false}, // GLM
	{"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", true},     // Seed-Coder
	{"[PREFIX]", "[SUFFIX]", "", true},                               // Codestral
}

// infillEnds are tokens that end such a text besides the markers themselves and what ends other texts: those that pad it or
// begin the next file of a repository.
var infillEnds = []string{
	"<|endoftext|>", "<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<|file_separator|>",
	"<fim_pad>", "<file_sep>", "<reponame>", "<filename>", "▁<EOT>", "<|cursor|>",
}

// infill makes a prompt for the text between the one that p begins with and suffix.
func (m *prompter) infill(ctx context.Context, p *prompt, suffix string) (err error) {
	for _, f := range infillForms {
		before, ok1 := m.tok.ID(f.prefix)
		after, ok2 := m.tok.ID(f.suffix)
		middle, ok3 := m.tok.ID(f.middle)
		if !ok1 || !ok2 || !ok3 && f.middle != "" {
			continue
		}
		if p.tokens == nil {
			if p.tokens, err = m.tok.EncodeContext(ctx, p.text, tokenizer.EncodeOptions{ParseSpecial: true}); err != nil {
				return encodeError(err)
			}
		}
		rest, err := m.continued(ctx, suffix)
		if err != nil {
			return encodeError(err)
		}
		first := append([]int32{before}, p.tokens...)
		second := append([]int32{after}, rest...)
		if f.suffixFirst {
			first, second = second, first
		}
		p.tokens = slices.Concat(m.tok.Encode("", tokenizer.EncodeOptions{AddSpecial: true}), first, second)
		p.stopIDs = slices.Concat(m.stopIDs, []int32{before, after})
		if f.middle != "" {
			p.tokens, p.stopIDs = append(p.tokens, middle), append(p.stopIDs, middle)
		}
		for _, name := range infillEnds {
			if id, ok := m.tok.ID(name); ok && !slices.Contains(p.stopIDs, id) {
				p.stopIDs = append(p.stopIDs, id)
			}
		}
		p.text = m.tok.Decode(p.tokens, false)
		return nil
	}
	return chat.Invalidf("suffix", "this model cannot fill in text: its vocabulary has no tokens for that, such as %s or %s", infillForms[0].prefix, infillForms[1].prefix)
}

// continued encodes text that goes on from other text: without the space that some tokenizers put before every text. The
// reference implementations of Code Llama and Codestral encode suffixes so, by the same means.
func (m *prompter) continued(ctx context.Context, text string) ([]int32, error) {
	const before = "☺"
	parse := tokenizer.EncodeOptions{ParseSpecial: true}
	short := func(s string) []int32 { return m.tok.Encode(s, parse) }
	head := short(before)
	if slices.Equal(short(before+"a"), slices.Concat(head, short("a"))) {
		return m.tok.EncodeContext(ctx, text, parse)
	}
	whole, err := m.tok.EncodeContext(ctx, before+text, parse)
	if err != nil {
		return nil, err
	}
	if len(whole) < len(head) || !slices.Equal(whole[:len(head)], head) {
		return m.tok.EncodeContext(ctx, text, parse)
	}
	return whole[len(head):], nil
}
