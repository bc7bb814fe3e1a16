package tokenizer

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoding is the decoder section: what a token's text stands for.
type decoding struct {
	maps         []tokenMap // applied in turn
	firstDiffers bool       // some map treats the first token of a text in its own way
	byteLevel    bool       // the text is of a byte-level vocabulary
	fallback     bool       // "<0xE4>" stands for a byte
	bytes        []bool     // by id: whether the token is one of those
	bytewise     bool       // invalid bytes of a run are replaced one by one, not together
	suffix       string     // BPEDecoder: stands for a space, but not at the end
	lead         lead
	unk          int32 // with lead.pieces: the unknown piece
}

// tokenMap rewrites a token's text; first says that no other came before it.
type tokenMap func(s string, first bool) string

// lead leaves out spaces at the beginning of a text.
type lead struct {
	content []byte // the space
	left    int    // how many more of them may go
	pieces  bool   // as the sentencepiece library does: special tokens and unk keep theirs
	all     bool   // pieces: one of every token, until there is text
}

func (l *lead) append(dst, src []byte, special bool) []byte {
	if l.left == 0 || len(src) == 0 {
		return append(dst, src...)
	}
	if l.pieces && special {
		l.left = 0
		return append(dst, src...)
	}
	for l.left > 0 && bytes.HasPrefix(src, l.content) {
		src = src[len(l.content):]
		if l.all {
			break
		}
		l.left--
	}
	if len(src) > 0 {
		l.left = 0
	}
	return append(dst, src...)
}

// text returns what a token written as text stands for, but for the bytes of
// byte-level text and of byte tokens.
func (d *decoding) text(s string, first bool) string {
	most := grown(len(s))
	for _, f := range d.maps {
		if s = f(s, first); len(s) > most {
			break // fillBytes refuses such a file
		}
	}
	return s
}

// appendBytes appends what a token written as text stands for.
func (d *decoding) appendBytes(dst []byte, text string, first bool) []byte {
	return d.appendPlain(dst, d.text(text, first))
}

// appendPlain appends what a token stands for, given its text after the rewritings.
func (d *decoding) appendPlain(dst []byte, text string) []byte {
	switch {
	case d.byteLevel:
		return appendByteLevel(dst, text)
	case d.suffix != "":
		return append(dst, d.unsuffixed(text, " ")...)
	case d.fallback:
		if b, ok := byteToken(text); ok {
			return append(dst, b)
		}
	}
	return append(dst, text...)
}

func (d *decoding) unsuffixed(text, by string) string {
	return strings.ReplaceAll(text, d.suffix, by)
}

// byteToken reads the form "<0xE4>".
func byteToken(text string) (byte, bool) {
	if len(text) != 6 || text[:3] != "<0x" || text[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(text[3:5], 16, 8)
	return byte(b), err == nil
}

// decoding reads the decoder section: some rewritings of each token, then perhaps
// the making of bytes, then perhaps Fuse and a Strip of the whole.
func (c *component) decoding() (decoding, error) {
	var d decoding
	list := []component{*c}
	switch c.Type {
	case "":
		// The reference puts tokens side by side with spaces between them.
		return decoding{firstDiffers: true, maps: []tokenMap{func(s string, first bool) string {
			if first {
				return s
			}
			return " " + s
		}}}, nil
	case "Sequence":
		list = c.Decoders
		if len(list) > maxSteps {
			return d, unsupported("decoder", fmt.Sprintf("a Sequence of %d", len(list)))
		}
	}
	fused := false
	for i := range list {
		item := &list[i]
		done := d.byteLevel || d.fallback || d.suffix != ""
		switch {
		case item.Type == "Fuse":
			fused = true
		case fused && item.Type == "Strip":
			if d.byteLevel || d.suffix != "" || d.lead.left > 0 || item.Stop != 0 || item.Start < 0 || utf8.RuneCountInString(item.Content) != 1 {
				return d, unsupported("decoder", "such a Strip after Fuse")
			}
			d.lead = lead{content: []byte(item.Content), left: item.Start}
		case fused || done:
			return d, unsupported("decoder", fmt.Sprintf("%s after %s", item.Type, list[i-1].Type))
		default:
			if err := d.add(item, len(list) == 1); err != nil {
				return d, err
			}
		}
	}
	return d, nil
}

// add enters one decoder; alone says that it is the only one.
func (d *decoding) add(c *component, alone bool) error {
	switch c.Type {
	case "ByteLevel":
		d.byteLevel = true
	case "ByteFallback":
		d.fallback = true
	case "BPEDecoder":
		if d.suffix = "</w>"; c.Suffix != nil {
			d.suffix = *c.Suffix
		}
		if !alone || d.suffix == "" {
			return unsupported("decoder", "BPEDecoder in a Sequence or without a suffix")
		}
	case "Replace":
		f, err := c.replacer("decoder")
		if err != nil {
			return err
		}
		d.maps = append(d.maps, func(s string, _ bool) string { return f(s) })
	case "Strip":
		if utf8.RuneCountInString(c.Content) != 1 || c.Start < 0 || c.Stop < 0 {
			return unsupported("decoder", "Strip of "+quoted(c.Content))
		}
		d.maps = append(d.maps, func(s string, _ bool) string { return stripSome(s, c.Content, c.Start, c.Stop) })
	case "Metaspace":
		m, err := c.metaspace("decoder")
		if err != nil {
			return err
		}
		d.maps, d.firstDiffers = append(d.maps, m.unmark), true
	case "WordPiece":
		prefix := "##"
		if c.Prefix != nil {
			prefix = *c.Prefix
		}
		cleanup := c.Cleanup == nil || *c.Cleanup
		d.maps, d.firstDiffers = append(d.maps, func(s string, first bool) string { return joinPiece(s, first, prefix, cleanup) }), true
	default:
		return unsupported("decoder", c.Type)
	}
	return nil
}

// stripSome takes at most start of a character from the front and stop from the end.
func stripSome(s, char string, start, stop int) string {
	for ; start > 0 && strings.HasPrefix(s, char); start-- {
		s = s[len(char):]
	}
	for ; stop > 0 && strings.HasSuffix(s, char); stop-- {
		s = s[:len(s)-len(char)]
	}
	return s
}

// unmark undoes Metaspace.
func (m metaspace) unmark(s string, first bool) string {
	by := " "
	if first && (m.always || m.first) {
		by = ""
	}
	return strings.ReplaceAll(s, m.mark, by)
}

// joinPiece undoes WordPiece: tokens without the prefix begin a word.
func joinPiece(s string, first bool, prefix string, cleanup bool) string {
	if !first {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			s = rest
		} else {
			s = " " + s
		}
	}
	if cleanup {
		for _, pair := range wordPieceCleanup {
			s = strings.ReplaceAll(s, pair[0], pair[1])
		}
	}
	return s
}

// wordPieceCleanup is the reference's, applied in this order to each token.
var wordPieceCleanup = [][2]string{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
	{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}
