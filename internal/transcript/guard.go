package transcript

import (
	"context"
	"slices"
	"strings"

	"hearth/internal/tokenizer"
)

// Guard keeps the text of a request from forging special tokens such as <|im_start|>.
//
// The reference tokenises the rendered prompt as one string, in which a special token counts wherever it stands. For
// requests without the text of a special token Guard does exactly that. In others it wraps each such text in private
// marks before rendering; afterwards the marks are taken out again and what was between them is encoded as ordinary
// text. The rendered text is the same either way, unless a template compares content with special tokens.
// Markers of the output format (<think>, <tool_call>) are left alone: templates look for them in earlier turns.
type Guard struct {
	tok     *tokenizer.Tokenizer
	texts   []string         // of the special tokens, longest first
	has     *tokenizer.Texts // texts
	special map[string]bool  // texts
	longest int              // of them, in bytes
	wrapper *strings.Replacer
	image   string // the mark of an image's place, one of texts; "": there is none
}

// The marks are private-use characters; requests lose them if they hold any.
const (
	markOpen  = "\uE010"
	markClose = "\uE011"
)

// NewGuard makes the Guard of a tokenizer's special tokens, except the markers of the model's output format. Image, if it is not
// "", is the token that templates print where an image stands.
func NewGuard(tok *tokenizer.Tokenizer, markers []string, image string) *Guard {
	g := &Guard{tok: tok, special: map[string]bool{}, image: image}
	for id := range int32(tok.Size()) {
		if s, ok := tok.Token(id); ok && s != "" && (tok.Special(id) && !slices.Contains(markers, s) || s == image) {
			g.texts = append(g.texts, s)
		}
	}
	slices.SortFunc(g.texts, func(a, b string) int { return len(b) - len(a) })
	pairs := []string{markOpen, "", markClose, ""}
	for _, s := range g.texts {
		pairs = append(pairs, s, markOpen+s+markClose)
		g.special[s] = true
		g.longest = max(g.longest, len(s))
	}
	g.has = tokenizer.NewTexts(g.texts)
	g.wrapper = strings.NewReplacer(pairs...)
	return g
}

// Mark puts marks around the special tokens in a client's text, and takes out its own; false if there are none.
func (g *Guard) Mark(s string) (string, bool) {
	if !hasMarks(s) && !g.has.In(s) { // models have up to a thousand special tokens
		return s, false
	}
	return g.wrapper.Replace(s), true
}

// quoted is the length of a special token's text with the closing mark at the start of s; 0 if there is none.
func (g *Guard) quoted(s string) int {
	n := strings.Index(s[:min(len(s), g.longest+len(markClose))], markClose)
	if n < 0 || !g.special[s[:n]] {
		return 0
	}
	return n + len(markClose)
}

func hasMarks(s string) bool { return strings.Contains(s, markOpen) || strings.Contains(s, markClose) }

// Plain encodes text in which special tokens are the template's.
func (g *Guard) Plain(text string) []int32 {
	return g.tok.Encode(text, tokenizer.EncodeOptions{ParseSpecial: true})
}

// encode encodes marked text: what stands between marks as ordinary text. A template may have separated a pair of marks
// by splitting a string: a lone one is dropped but still keeps its sides from joining into a special token. The error
// is that of ctx, or a *tokenizer.WholeError.
func (g *Guard) encode(ctx context.Context, text string) ([]int32, error) {
	special := tokenizer.EncodeOptions{ParseSpecial: true}
	if !hasMarks(text) {
		return g.tok.EncodeContext(ctx, text, special)
	}
	var ids []int32
	for text != "" {
		n, options := strings.IndexAny(text, markOpen+markClose), special
		if n < 0 {
			n = len(text)
		}
		if n == 0 {
			opens := strings.HasPrefix(text, markOpen)
			text = text[len(markOpen):]
			if n = g.quoted(text); !opens || n == 0 {
				continue
			}
			n, options = n-len(markClose), tokenizer.EncodeOptions{}
		}
		part := text[:n]
		text = text[n:]
		if part == g.image && options == (tokenizer.EncodeOptions{}) { // one that is not special would be found as a whole
			ids = append(append(ids, g.tok.Encode(part[:1], options)...), g.tok.Encode(part[1:], options)...)
			continue
		}
		more, err := g.tok.EncodeContext(ctx, part, options)
		if err != nil {
			return nil, err
		}
		ids = append(ids, more...)
	}
	return ids, nil
}

var unmarker = strings.NewReplacer(markOpen, "", markClose, "")

// Unmark takes the marks out of a text.
func Unmark(text string) string {
	if !hasMarks(text) {
		return text
	}
	return unmarker.Replace(text)
}
