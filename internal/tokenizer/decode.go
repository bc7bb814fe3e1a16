package tokenizer

import (
	"strconv"
	"strings"
)

// decoding is the decoder section: what a token's text stands for.
type decoding struct {
	byteLevel bool
	// Otherwise: from is replaced by to, "<0xE4>" stands for a byte, and up to strip
	// leading spaces of the whole text are left out.
	from, to string
	strip    int
}

// appendBytes appends what a token written as text stands for.
func (d *decoding) appendBytes(dst []byte, text string) []byte {
	if d.byteLevel {
		return appendByteLevel(dst, text)
	}
	text = strings.ReplaceAll(text, d.from, d.to)
	if len(text) == 6 && text[:3] == "<0x" && text[5] == '>' {
		if b, err := strconv.ParseUint(text[3:5], 16, 8); err == nil {
			return append(dst, byte(b))
		}
	}
	return append(dst, text...)
}

// Decode returns the text of ids. With skipSpecial, special tokens are left out.
// Unknown ids stand for nothing; bytes that are not valid UTF-8 become U+FFFD, one
// for each maximal invalid sequence. (For invalid runs of byte tokens in
// SentencePiece-style models the reference gives one per byte of the run; that can
// only be known at its end, which a stream cannot wait for.)
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	d := t.NewDecoder(skipSpecial)
	out := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		out = d.appendToken(out, id)
	}
	return string(d.appendRest(out))
}

// Decoder decodes one stream of tokens. What Add and Flush return, put together,
// is what Decode returns for the whole.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	// held is the start of a rune whose other bytes have not come yet: at most 3.
	held  []byte
	strip int // leading spaces still to leave out
	buf   []byte
}

// NewDecoder returns a Decoder for one stream.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	return &Decoder{t: t, skipSpecial: skipSpecial, strip: t.deco.strip}
}

// Add returns the text that becomes certain with token id; often that is "" while
// a rune is spread over several tokens. It is always valid UTF-8.
func (d *Decoder) Add(id int32) string {
	d.buf = d.appendToken(d.buf[:0], id)
	return string(d.buf)
}

// Flush returns what an end of the stream makes of the bytes held back, and
// readies the Decoder for another stream.
func (d *Decoder) Flush() string {
	d.buf = d.appendRest(d.buf[:0])
	return string(d.buf)
}

func (d *Decoder) appendToken(dst []byte, id int32) []byte {
	if d.skipSpecial && d.t.Special(id) {
		return dst
	}
	src := d.t.Bytes(id)
	for d.strip > 0 && len(src) > 0 {
		if d.strip--; src[0] != ' ' {
			d.strip = 0
			break
		}
		src = src[1:]
	}
	if len(d.held) > 0 {
		src = append(d.held, src...)
	}
	for len(src) > 0 {
		n, valid, more := nextRune(src)
		if more {
			break
		}
		if valid {
			dst = append(dst, src[:n]...)
		} else {
			dst = append(dst, replacement...)
		}
		src = src[n:]
	}
	d.held = append(d.held[:0], src...)
	return dst
}

func (d *Decoder) appendRest(dst []byte) []byte {
	d.strip = d.t.deco.strip
	if len(d.held) > 0 {
		d.held = d.held[:0]
		dst = append(dst, replacement...)
	}
	return dst
}
