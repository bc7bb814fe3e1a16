package generate

import (
	"strings"
	"testing"

	"hearth/internal/tokenizer"
)

// Words are a line of the text of ids, without special tokens and halves of characters, and not long.
func TestWords(t *testing.T) {
	g := spokenBy(t, "harmony")
	ids := func(text string) []int32 { return g.tok.Encode(text, tokenizer.EncodeOptions{ParseSpecial: true}) }
	for text, want := range map[string]string{
		"": "", "<|start|>user<|message|>\n  Hello,\tyou\u0007 there<|end|>\n": "user Hello, you there", "日本": "日本",
		strings.Repeat("é ", 100): strings.TrimSpace(strings.Repeat("é ", 40)), strings.Repeat("é", 100): strings.Repeat("é", longestWords),
	} {
		if got := g.Words(ids(text)); strings.TrimSpace(got) != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if all := ids("日本"); len(all) > 2 {
		if got := g.Words(all[1:]); strings.Contains(got, "\uFFFD") {
			t.Errorf("of a half of a character: %q", got)
		}
	}
	if got := g.Words([]int32{-1, 1 << 30}); got != "" {
		t.Errorf("of ids that there are not: %q", got)
	}
}
