package generate

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/tokenizer"
)

// TestInfill: the prompt of every form, and what ends a reply to it besides what ends others.
func TestInfill(t *testing.T) {
	for _, tt := range []struct{ special, prompt, stops string }{
		{"<|fim_prefix|> <|fim_suffix|> <|fim_middle|> <|fim_pad|> <|file_sep|>", "<|fim_prefix|>a <|fim_suffix|> b<|fim_middle|>",
			"<|fim_prefix|><|fim_suffix|><|fim_middle|><|fim_pad|><|file_sep|>"},
		{"<fim_prefix> <fim_suffix> <fim_middle> <|endoftext|>", "<fim_prefix>a <fim_suffix> b<fim_middle>", "<fim_prefix><fim_suffix><fim_middle><|endoftext|>"},
		{"<fim-prefix> <fim-suffix> <fim-middle>", "<fim-prefix>a <fim-suffix> b<fim-middle>", "<fim-prefix><fim-suffix><fim-middle>"},
		{"<｜fim▁begin｜> <｜fim▁hole｜> <｜fim▁end｜>", "<｜fim▁begin｜>a <｜fim▁hole｜> b<｜fim▁end｜>", "<｜fim▁begin｜><｜fim▁hole｜><｜fim▁end｜>"},
		{"<|code_prefix|> <|code_suffix|> <|code_middle|>", "<|code_prefix|>a <|code_suffix|> b<|code_middle|>", "<|code_prefix|><|code_suffix|><|code_middle|>"},
		{"<[fim-prefix]> <[fim-suffix]> <[fim-middle]>", "<[fim-suffix]> b<[fim-prefix]>a <[fim-middle]>", "<[fim-prefix]><[fim-suffix]><[fim-middle]>"},
		{"[PREFIX] [SUFFIX]", "[SUFFIX] b[PREFIX]a ", "[PREFIX][SUFFIX]"},
	} {
		g, err := withTemplate(t, "{{ messages[0].content }}", strings.Fields(tt.special)...)
		if err != nil {
			t.Fatal(err)
		}
		s := g.cfg.Engine.(*script)
		encoded := g.cfg.Tokenizer.Encode("a ", tokenizer.EncodeOptions{})
		for _, p := range []chat.Prompt{{Text: "a ", Suffix: " b"}, {Tokens: encoded, Suffix: " b"}} {
			events(t, g, &chat.Request{Prompt: &p})
			got := s.prompts[len(s.prompts)-1]
			stops := g.cfg.Tokenizer.Decode(got.StopIDs[len(g.stopIDs):], false)
			if text := g.cfg.Tokenizer.Decode(got.Tokens, false); text != tt.prompt || stops != tt.stops {
				t.Errorf("prompt %s, stops %s; want %s and %s", text, stops, tt.prompt, tt.stops)
			}
			if !slices.Equal(encoded, g.cfg.Tokenizer.Encode("a ", tokenizer.EncodeOptions{})) {
				t.Fatal("the caller's tokens were written to")
			}
		}
	}
}

// TestInfillSentencePiece: the suffix goes on from what is to be filled in, without the space that begins other texts. The
// pieces are those of PyPI tokenizers 0.23.3 for the texts and, of the suffix, for it behind another character.
func TestInfillSentencePiece(t *testing.T) {
	for file, special := range map[string]string{"sentencepiece.json": "▁<PRE> ▁<SUF> ▁<MID>", "metaspace_first.json": "[PREFIX] [SUFFIX]"} {
		data, err := os.ReadFile("../tokenizer/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var whole map[string]any
		if err := json.Unmarshal(data, &whole); err != nil {
			t.Fatal(err)
		}
		for i, name := range strings.Fields(special) {
			whole["added_tokens"] = append(whole["added_tokens"].([]any), map[string]any{"id": 900 + i, "content": name, "special": true})
		}
		if data, err = json.Marshal(whole); err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Parse(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := prompt{text: "the house"}
		if err := (&prompter{output: output{tok: tok}}).infill(t.Context(), &p, "the end"); err != nil {
			t.Fatal(err)
		}
		var pieces []string
		for _, id := range p.tokens {
			piece, _ := tok.Token(id)
			pieces = append(pieces, piece)
		}
		want := "<s> ▁<PRE> ▁the ▁ h ou s e ▁<SUF> t he ▁end ▁<MID>"
		if file == "metaspace_first.json" {
			want = "<s> [SUFFIX] t he ▁end [PREFIX] ▁the ▁ h ou s e"
		}
		if got := strings.Join(pieces, " "); got != want {
			t.Errorf("%s: %s\nwant %s", file, got, want)
		}
	}
}

func TestInfillRefused(t *testing.T) {
	g, s := newTest(t, "x")
	_, err := g.Generate(t.Context(), &chat.Request{Prompt: &chat.Prompt{Text: "a", Suffix: "b", Path: "prompt"}})
	if e := chat.AsError(err); err == nil || e.Kind != chat.Invalid || e.Param != "suffix" || !strings.Contains(e.Msg, "no tokens for that") || len(s.prompts) > 0 {
		t.Errorf("%v", err)
	}
}
