package tokenizer

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestComposeAgrees holds the composition of long mark runs equal to package norm
// where norm's own limit does not come into play: the text is the same, but one
// long run behind it forces the other path.
func TestComposeAgrees(t *testing.T) {
	alphabet := []rune("aeoAEuqKÅéǖệΩω각한ᄀᄒ각ᅡᆫ中\u0301\u0302\u0323\u0328\u0345\u0344\u0316\u0308\u0304\u093c\u0915\u0f71\u0f72\u0f74\u212b\u2126\ufb1d\u05b4\u3099か")
	tail := "!" // keeps the run apart from the text
	for range safeMarkRun + 1 {
		tail += "\u0316"
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		var text []rune
		for range 1 + r.IntN(12) {
			text = append(text, alphabet[r.IntN(len(alphabet))])
		}
		in := string(text) + tail
		if got, want := canonical.composed(in), norm.NFC.String(in); got != want {
			t.Fatalf("composed(%+q) = %+q, want %+q", in, got, want)
		}
	}
}
