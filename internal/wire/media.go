package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strings"

	"hearth/internal/chat"
)

// mostName bounds the bytes of a name that is kept of an attached file.
const mostName = 100

// MediaName is a file's name as it is kept: what is too much of it is left out.
func MediaName(name string) string { return Clip(name, mostName) }

// MediaType is a media type without its parameters, "" if it is none.
func MediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	s = strings.ToLower(strings.TrimSpace(s))
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("/+-.", r)
	}
	if len(s) > mostName || strings.Count(s, "/") != 1 || strings.ContainsFunc(s, odd) {
		return ""
	}
	return s
}

// Link fills in m for a file that only a URL leads to: it is named by the end of the URL's path.
func Link(m *chat.Media, to string) {
	m.By = chat.ByURL
	if m.Kind == chat.Image && isWeb(to) {
		m.URL = to
	}
	if hasDataScheme(to) {
		return // its end names nothing
	}
	if i := strings.IndexAny(to, "?#"); i >= 0 {
		to = to[:i]
	}
	if _, path, ok := strings.Cut(to, "://"); ok {
		_, to, _ = strings.Cut(path, "/")
	}
	name := to[strings.LastIndexByte(to, '/')+1:]
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	if m.Name == "" {
		m.Name = MediaName(name)
	}
}

// Stored fills in m for a file that some server has under an id.
func Stored(m *chat.Media, id string) {
	m.By = chat.ByID
	if m.Name == "" {
		m.Name = MediaName(id)
	}
}

// Base64 fills in m by the file whose bytes v has in base64, standard and with or without padding. They are checked, counted
// and looked into; an image keeps them as they stand in the body.
func (d *Decoder) Base64(m *chat.Media, v Value) {
	d.fill(m, v, d.chars(v), "is not valid base64: %v")
}

// DataURL is Base64 for data:<media type>;base64,<data>. It gives the media type that the URL names.
func (d *Decoder) DataURL(m *chat.Media, v Value) (mediaType string) {
	head, data, ok := bytes.Cut(d.chars(v), []byte(","))
	end := len(head) - len(base64Mark)
	if !ok || end < 0 || !strings.EqualFold(string(head[end:]), base64Mark) {
		d.Fail(v, "is not a valid data URL: not a base64 data URL")
		return ""
	}
	mediaType = MediaType(string(head[min(len(dataScheme), end):end]))
	m.Type = mediaType
	d.fill(m, v, data, "is not a valid data URL: %v")
	return mediaType
}

const (
	dataScheme = "data:"
	base64Mark = ";base64"
)

// hasDataScheme tells whether a text begins as a data URL; the case of a scheme does not count.
func hasDataScheme(s string) bool {
	return len(s) >= len(dataScheme) && strings.EqualFold(s[:len(dataScheme)], dataScheme)
}

// IsData tells whether v is the text of a data URL.
func (d *Decoder) IsData(v Value) bool {
	return d.Want(v, String) && hasDataScheme(string(v.raw[1:min(len(v.raw), 1+len(dataScheme))]))
}

// URL fills in m for a file by its URL: a data URL, of which it gives the media type, or one of http or https. data tells which.
func (d *Decoder) URL(m *chat.Media, v Value) (mediaType string, data bool) {
	if d.IsData(v) {
		return d.DataURL(m, v), true
	}
	to := d.String(v)
	if !isWeb(to) {
		d.Fail(v, "must be a URL that begins with data:, http:// or https://, got %s", Quote(to))
	}
	Link(m, to)
	return "", false
}

// isWeb tells whether a text begins as a URL of http or https.
func isWeb(to string) bool {
	scheme, _, ok := strings.Cut(to[:min(len(to), len("https://"))], "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// LinkOrData is URL for what was sent without a person's choice: whatever it is, it is no error.
func LinkOrData(m *chat.Media, v Value) {
	own, data := Decoder{}, *m
	if v.Kind() == String && own.IsData(v) && own.DataURL(&data, v) != "" && own.Err() == nil {
		*m = data
		return
	}
	Link(m, own.OptString(v))
}

func (d *Decoder) fill(m *chat.Media, v Value, text []byte, problem string) {
	if d.err != nil {
		return
	}
	n, err := base64Size(text)
	if err != nil {
		d.Fail(v, problem, err)
		return
	}
	m.Bytes = n
	mediaType, width, height := sniff(text)
	if mediaType != "" {
		m.Type = mediaType
	}
	m.Width, m.Height = width, height
	if m.Kind == chat.Image {
		m.Base64 = text
	}
}

// chars are the bytes of a required string: those of the body, unless some are escaped.
func (d *Decoder) chars(v Value) []byte {
	if !d.Want(v, String) {
		return nil
	}
	in := v.raw[1 : len(v.raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return in
	}
	return []byte(unquote(v.raw))
}

var isBase64 = func() (is [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		is[c] = true
	}
	return is
}()

// base64Size is how many bytes a text in base64 stands for.
func base64Size(text []byte) (int, error) {
	text = bytes.TrimRight(text, "=\r\n")
	n := 0
	for i, c := range text {
		switch {
		case isBase64[c]:
			n++
		case c != '\r' && c != '\n':
			return 0, base64.CorruptInputError(i)
		}
	}
	if n%4 == 1 { // six bits are no byte
		return 0, base64.CorruptInputError(len(text))
	}
	return n/4*3 + max(n%4-1, 0), nil
}

// What is decoded of a file, in characters of base64: of most formats the beginning has the size, in a JPEG a preview and
// a colour profile may come first.
const (
	firstChars = 64
	jpegChars  = 256 << 10
)

// sniff tells what the first bytes of a file in valid base64 say of it: its media type, "" if that is not known, and the
// pixels of an image, 0 if they are not known.
func sniff(text []byte) (mediaType string, width, height int) {
	var first [firstChars]byte
	b := first[:decodeSome(first[:], text, firstChars)]
	text8 := func(at int) string {
		if len(b) < at+8 {
			return ""
		}
		return string(b[at : at+8])
	}
	switch {
	case text8(0) == "\x89PNG\r\n\x1a\n":
		if len(b) >= 24 && text8(8)[4:] == "IHDR" {
			width, height = int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
		}
		mediaType = "image/png"
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		if len(b) >= 10 {
			width, height = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
		}
		mediaType = "image/gif"
	case bytes.HasPrefix(b, []byte("RIFF")) && strings.HasPrefix(text8(8), "WEBP"):
		if len(b) >= 30 {
			width, height = webpSize(b)
		}
		mediaType = "image/webp"
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		all := make([]byte, base64.RawStdEncoding.DecodedLen(min(len(text), jpegChars)))
		width, height = jpegSize(all[:decodeSome(all, text, jpegChars)])
		mediaType = "image/jpeg"
	case bytes.HasPrefix(b, []byte("%PDF-")):
		mediaType = "application/pdf"
	}
	if width == 0 || height == 0 {
		width, height = 0, 0
	}
	return mediaType, width, height
}

// decodeSome decodes the first characters of valid base64. Where they end inside a group of four, what they have of it is lost.
func decodeSome(dst, text []byte, most int) int {
	n, _ := base64.RawStdEncoding.Decode(dst, bytes.TrimRight(text[:min(len(text), most)], "=\r\n"))
	return n
}

// webpSize reads the size in the first chunk of a WebP file, of which b has 30 bytes.
func webpSize(b []byte) (width, height int) {
	const bits14 = 1<<14 - 1
	switch string(b[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(b[26:])) & bits14, int(binary.LittleEndian.Uint16(b[28:])) & bits14
	case "VP8L":
		bits := binary.LittleEndian.Uint32(b[21:])
		return int(bits&bits14) + 1, int(bits>>14&bits14) + 1
	case "VP8X":
		bits := binary.LittleEndian.Uint64(b[22:])
		return int(bits>>16&(1<<24-1)) + 1, int(bits>>40) + 1
	}
	return 0, 0
}

// jpegSize goes from marker to marker until one that begins a frame, which has the size.
func jpegSize(b []byte) (width, height int) {
	for i := 2; i+9 <= len(b) && b[i] == 0xff; {
		marker := b[i+1]
		switch {
		case marker == 0xff: // fills
			i++
			continue
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			return int(binary.BigEndian.Uint16(b[i+7:])), int(binary.BigEndian.Uint16(b[i+5:]))
		case marker == 0xd9 || marker == 0xda: // the image begins, or ends, without a size
			return 0, 0
		}
		i += 2 + int(binary.BigEndian.Uint16(b[i+2:]))
	}
	return 0, 0
}
