package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decode returns the text of ids. With skipSpecial, special tokens are left out.
// Unknown ids stand for nothing; bytes that are not valid UTF-8 become U+FFFD, one
// for each maximal invalid sequence in byte-level vocabularies and one for each byte
// in others.
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
//
// Text is held back only while it can still change: a rune that is spread over
// several tokens; and where bytes have tokens of their own, a run of those, since
// the reference replaces all of the run when any part of it is invalid.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	begun       bool   // some token has come
	held        []byte // bytes held back, see above
	checked     int    // how many of them are whole runes, in a run of byte tokens
	broken      bool   // the run is invalid
	lead        lead
	last        string // BPEDecoder: the last token, which may lose its suffix
	buf         []byte
}

// NewDecoder returns a Decoder for one stream.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	return &Decoder{t: t, skipSpecial: skipSpecial, lead: t.deco.lead}
}

// Add returns the text that becomes certain with token id; often that is "" while
// a rune is spread over several tokens. It is always valid UTF-8.
func (d *Decoder) Add(id int32) string {
	d.buf = d.appendToken(d.buf[:0], id)
	return string(d.buf)
}

// Flush returns what an end of the stream makes of the text held back, and readies
// the Decoder for another stream.
func (d *Decoder) Flush() string {
	d.buf = d.appendRest(d.buf[:0])
	return string(d.buf)
}

// Cut is Flush for a stream that was cut off: a rune that is not complete, and so is no
// mistake of whoever wrote it, is left out.
func (d *Decoder) Cut() string {
	d.held = d.held[:len(d.held)-d.Partial()]
	return d.Flush()
}

// Settle takes for said what Cut would return: what comes next goes on behind it.
func (d *Decoder) Settle() {
	d.held, d.checked = append(d.held[:0], d.held[d.checked:]...), 0
	if suffix := d.t.deco.suffix; suffix != "" && strings.HasSuffix(d.last, suffix) {
		d.last = suffix // the blank that it becomes when a token follows
	} else {
		d.last = ""
	}
}

// Partial is how many of the last bytes are the beginning of a rune whose end has not come.
func (d *Decoder) Partial() int {
	deco := &d.t.deco
	switch {
	case deco.byteLevel, deco.bytewise:
		return len(d.held)
	case deco.suffix != "":
		return 0
	}
	return len(d.held) - d.checked
}

func (d *Decoder) appendToken(dst []byte, id int32) []byte {
	v := &d.t.vocab
	if !v.has(id) || d.skipSpecial && v.special[id] {
		return dst
	}
	deco := &d.t.deco
	first := !d.begun
	d.begun = true
	if deco.bytes != nil && deco.bytes[id] {
		return d.appendByte(dst, v.bytes(id)[0], first)
	}
	src := v.bytes(id)
	if first && deco.firstDiffers {
		src = deco.appendBytes(nil, v.text[id], true)
	}
	switch {
	case deco.byteLevel:
		return d.appendHeld(dst, src)
	case deco.suffix != "":
		dst = append(dst, deco.unsuffixed(d.last, " ")...)
		d.last = v.text[id]
		return dst
	}
	dst = d.endRun(dst)
	return d.lead.append(dst, src, v.special[id] || id == deco.unk)
}

// appendHeld appends src to what is held back and the part of both that is certain
// to dst.
func (d *Decoder) appendHeld(dst, src []byte) []byte {
	if len(d.held) > 0 {
		src = append(d.held, src...)
	}
	dst, src = appendCertain(dst, src)
	d.held = append(d.held[:0], src...)
	return dst
}

// appendByte takes a byte token.
func (d *Decoder) appendByte(dst []byte, b byte, first bool) []byte {
	d.held = append(d.held, b)
	if d.t.deco.bytewise {
		return d.appendRunes(dst, false)
	}
	for !d.broken && d.checked < len(d.held) {
		n, valid, more := nextRune(d.held[d.checked:])
		if more {
			break
		}
		d.broken = !valid
		d.checked += n
	}
	if d.broken {
		dst = d.replaceHeld(dst)
	}
	return dst
}

// appendRunes appends the runes that the held bytes make, and U+FFFD for a byte that
// begins none. At the end of a run nothing is held on.
func (d *Decoder) appendRunes(dst []byte, end bool) []byte {
	for len(d.held) > 0 {
		n, valid, more := nextRune(d.held)
		if more && !end {
			break
		}
		if valid {
			dst = d.lead.append(dst, d.held[:n], false)
		} else {
			n = 1
			dst = d.lead.append(dst, []byte(replacement), false)
		}
		d.held = append(d.held[:0], d.held[n:]...)
	}
	return dst
}

func (d *Decoder) replaceHeld(dst []byte) []byte {
	for range d.held {
		dst = d.lead.append(dst, []byte(replacement), false)
	}
	d.held, d.checked = d.held[:0], 0
	return dst
}

// endRun appends what a run of byte tokens stands for.
func (d *Decoder) endRun(dst []byte) []byte {
	switch {
	case d.t.deco.bytewise:
		dst = d.appendRunes(dst, true)
	case utf8.Valid(d.held):
		dst = d.lead.append(dst, d.held, false)
	default:
		dst = d.replaceHeld(dst)
	}
	d.held, d.checked, d.broken = d.held[:0], 0, false
	return dst
}

func (d *Decoder) appendRest(dst []byte) []byte {
	deco := &d.t.deco
	switch {
	case deco.byteLevel:
		if len(d.held) > 0 {
			dst = append(dst, replacement...)
		}
	case deco.suffix != "":
		dst = append(dst, deco.unsuffixed(d.last, "")...)
	default:
		dst = d.endRun(dst)
	}
	d.begun, d.held, d.lead, d.last = false, d.held[:0], deco.lead, ""
	return dst
}
