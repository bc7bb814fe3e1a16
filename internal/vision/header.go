package vision

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image/jpeg"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// Header is what the beginning of a file says of its picture.
type Header struct {
	Format        string // png, jpeg, gif, webp, bmp or tiff
	Width, Height int    // in pixels, as the picture is to be seen
	Orientation   int    // EXIF's number of how it lies in the file, 1 if that says nothing

	// The most pixels that a byte of the file can stand for: one with more of them is cut off, and is known to be before its
	// pixels have memory. 0 is any number: a WebP file may need no bits for most.
	densest float64
	grey16  bool   // PNG: greys of 16 bits, with or without a transparent one
	frame   []byte // WebP: the file of the first frame, where there are several
	frameX  int    // and where that lies
	frameY  int
	raw     [2]int // width and height as they lie in the file
}

// Inspect reads the header of a file and checks it against the limits. It decodes nothing, and allocates nothing of the
// picture's size.
func Inspect(file []byte, l Limits) (Header, error) {
	if len(file) > l.Bytes {
		return Header{}, refuse(Bytes, "has %d bytes, the limit is %d: make it smaller or compress it", len(file), l.Bytes)
	}
	h := Header{Orientation: 1}
	var err error
	switch {
	case len(file) == 0:
		err = errors.New("it is empty")
	case bytes.HasPrefix(file, []byte("\x89PNG\r\n\x1a\n")):
		h.Format = "png"
		err = h.png(file)
	case bytes.HasPrefix(file, []byte("\xff\xd8")):
		h.Format = "jpeg"
		err = h.jpeg(file)
	case bytes.HasPrefix(file, []byte("GIF87a")), bytes.HasPrefix(file, []byte("GIF89a")):
		h.Format = "gif"
		if err = errShort; len(file) >= 10 {
			h.raw = [2]int{int(binary.LittleEndian.Uint16(file[6:])), int(binary.LittleEndian.Uint16(file[8:]))}
			err = nil
		}
	case len(file) >= 12 && string(file[:4]) == "RIFF" && string(file[8:12]) == "WEBP":
		h.Format = "webp"
		err = h.webp(file)
	case bytes.HasPrefix(file, []byte("BM")):
		h.Format = "bmp"
		err = h.bmp(file)
	case bytes.HasPrefix(file, []byte("II*\x00")), bytes.HasPrefix(file, []byte("MM\x00*")):
		h.Format = "tiff"
		err = h.tiff(file)
	default:
		return h, refuse(Type, "%s", otherType(file))
	}
	if err == nil && (h.raw[0] <= 0 || h.raw[1] <= 0) {
		err = errors.New("it has no pixels")
	}
	if err == nil && h.densest > 0 && int64(h.raw[0])*int64(h.raw[1]) > int64(h.densest*float64(len(file))) {
		err = errShort
	}
	if err != nil {
		return h, broken(h.Format, err)
	}
	if h.Orientation < 1 || h.Orientation > 8 {
		h.Orientation = 1
	}
	w, ht := h.raw[0], h.raw[1]
	if h.Orientation >= 5 {
		w, ht = ht, w
	}
	h.Width, h.Height = w, ht
	if int64(w)*int64(ht) > int64(l.Pixels) {
		return h, refuse(Pixels, "is %d by %d, the limit is %d pixels: make it smaller", w, ht, l.Pixels)
	}
	if long, short := max(w, ht), min(w, ht); long/l.Ratio > short || long > l.Ratio*short {
		return h, refuse(Ratio, "is %d by %d, the longer side may be at most %d times the other: crop it", w, ht, l.Ratio)
	}
	return h, nil
}

var errShort = errors.New("it ends too early")

// broken is the error of a file of a known format that could not be read: of a kind that the decoder does not know, or not
// what it should be. What a decoder says is kept to a line.
func broken(format string, err error) error {
	name := strings.ToUpper(format)
	if format == "webp" {
		name = "WebP"
	}
	if unsupported(err) {
		return refuse(Type, "is a %s file of a kind that is not read (%.200s): convert it to PNG", name, err)
	}
	return refuse(Broken, "is not a valid %s file: %.200s: save it again", name, err)
}

func unsupported(err error) bool {
	var j jpeg.UnsupportedError
	var t tiff.UnsupportedError
	return errors.As(err, &j) || errors.As(err, &t) || errors.Is(err, bmp.ErrUnsupported) || errors.Is(err, errKind)
}

// errKind is of a frame that no decoder here knows.
var errKind = errors.New("only baseline and progressive frames are")

// chunkTypes of PNG that matter here.
const (
	pngHeader = "IHDR"
	pngEXIF   = "eXIf"
	pngData   = "IDAT"
)

// png reads the first chunk, which has the size, and those up to the pixels, one of which may have the orientation.
func (h *Header) png(b []byte) error {
	if len(b) < 33 || string(b[12:16]) != pngHeader {
		return errShort
	}
	w, ht := binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])
	if w > 1<<31-1 || ht > 1<<31-1 {
		return fmt.Errorf("its size is %d by %d", w, ht)
	}
	h.raw = [2]int{int(w), int(ht)}
	h.grey16 = b[24] == 16 && b[25] == 0
	// Deflate makes at most 1032 bytes of one; a pixel has at least one channel of some bits.
	h.densest = 1032 * 8 / float64(max(b[24], 1))
	for b = b[8:]; len(b) >= 12; {
		n, kind := int64(binary.BigEndian.Uint32(b)), string(b[4:8])
		if n > int64(len(b))-12 || kind == pngData {
			break
		}
		if kind == pngEXIF {
			h.Orientation = orientation(b[8 : 8+n])
		}
		b = b[12+n:]
	}
	return nil
}

// jpeg goes from marker to marker until one that begins a frame, which has the size; on the way EXIF may have the orientation.
func (h *Header) jpeg(b []byte) error {
	for i := 2; ; {
		for i < len(b) && b[i] != 0xff { // what is between segments is skipped, as decoders do
			i++
		}
		for i < len(b) && b[i] == 0xff {
			i++
		}
		if i+3 > len(b) {
			return errShort
		}
		marker := b[i]
		if marker == 0 || marker == 1 || marker >= 0xd0 && marker <= 0xd8 {
			i++
			continue
		}
		n := int(binary.BigEndian.Uint16(b[i+1:]))
		if n < 2 {
			return fmt.Errorf("a segment has the length %d", n)
		}
		end := i + 1 + n
		if marker == 0xd9 || marker == 0xda {
			return errors.New("its pixels begin before its size")
		}
		if end > len(b) {
			return errShort
		}
		seg := b[i+3 : end]
		switch {
		case marker == 0xe1 && bytes.HasPrefix(seg, []byte("Exif\x00\x00")):
			h.Orientation = orientation(seg[6:])
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if len(seg) < 6 {
				return errShort
			}
			if marker > 0xc2 {
				return fmt.Errorf("frame %#x: %w", marker, errKind)
			}
			h.raw = [2]int{int(binary.BigEndian.Uint16(seg[3:])), int(binary.BigEndian.Uint16(seg[1:]))}
			h.densest = 8 * 64 // at least a bit for each block of 8 by 8
			return nil
		}
		i = end
	}
}

// webp reads the first chunk, which has the size, and of an extended file also the orientation and where the first frame is.
func (h *Header) webp(b []byte) error {
	if len(b) < 30 {
		return errShort
	}
	u24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
	switch string(b[12:16]) {
	case "VP8 ":
		h.raw = [2]int{int(binary.LittleEndian.Uint16(b[26:])) & 0x3fff, int(binary.LittleEndian.Uint16(b[28:])) & 0x3fff}
	case "VP8L":
		bits := binary.LittleEndian.Uint32(b[21:])
		h.raw = [2]int{int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1}
	case "VP8X":
		h.raw = [2]int{u24(b[24:]) + 1, u24(b[27:]) + 1}
		const animated = 2
		flags := b[20]
		for c := b[12:]; len(c) >= 8; {
			n := int64(binary.LittleEndian.Uint32(c[4:]))
			padded := n + n&1
			if n > int64(len(c))-8 {
				break
			}
			data := c[8 : 8+n]
			switch kind := string(c[:4]); {
			case kind == "EXIF":
				h.Orientation = orientation(bytes.TrimPrefix(data, []byte("Exif\x00\x00")))
			case kind == "ANMF" && flags&animated != 0 && h.frame == nil && len(data) > 16:
				h.frameX, h.frameY = 2*u24(data), 2*u24(data[3:])
				h.frame = frameFile(data[16:], u24(data[6:])+1, u24(data[9:])+1)
			}
			if padded > int64(len(c))-8 {
				break
			}
			c = c[8+padded:]
		}
		if flags&animated != 0 && h.frame == nil {
			return errors.New("it has no frame")
		}
	default:
		return fmt.Errorf("its first part is %q", b[12:16])
	}
	return nil
}

// frameFile makes a WebP file of a frame's chunks.
func frameFile(chunks []byte, w, h int) []byte {
	const alpha = 0x10
	ext := make([]byte, 18)
	copy(ext, "VP8X")
	ext[4] = 10
	if bytes.HasPrefix(chunks, []byte("ALPH")) {
		ext[8] = alpha
	}
	w, h = w-1, h-1
	copy(ext[12:], []byte{byte(w), byte(w >> 8), byte(w >> 16), byte(h), byte(h >> 8), byte(h >> 16)})
	if bytes.HasPrefix(chunks, []byte("VP8L")) {
		ext = nil
	}
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(ext)+len(chunks)))
	out = append(out, "WEBP"...)
	return append(append(out, ext...), chunks...)
}

func (h *Header) bmp(b []byte) error {
	c, err := bmp.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return err
	}
	h.raw = [2]int{c.Width, c.Height}
	h.densest = 8 // nothing is compressed
	return nil
}

func (h *Header) tiff(b []byte) error {
	c, err := tiff.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return err
	}
	h.raw = [2]int{c.Width, c.Height}
	h.Orientation = orientation(b)
	return nil
}

// orientation reads EXIF data, a TIFF file in small, for the one number of it that matters; 1 where it has none.
func orientation(b []byte) int {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(b) < 8:
		return 1
	case bytes.HasPrefix(b, []byte("MM\x00*")):
		order = binary.BigEndian
	case !bytes.HasPrefix(b, []byte("II*\x00")):
		return 1
	}
	at := int64(order.Uint32(b[4:]))
	if at < 8 || at+2 > int64(len(b)) {
		return 1
	}
	entries := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(entries) < 12 {
			return 1
		}
		const tag, short = 0x112, 3
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			if v := order.Uint16(entries[8:]); v >= 1 && v <= 8 {
				return int(v)
			}
			return 1
		}
		entries = entries[12:]
	}
	return 1
}

// otherType says what a file is that is not read, as far as its first bytes tell, and what to convert it to.
func otherType(b []byte) string {
	const to = "convert it to PNG, JPEG or WebP"
	has := func(at int, s string) bool { return len(b) >= at+len(s) && string(b[at:at+len(s)]) == s }
	if has(4, "ftyp") && len(b) >= 12 {
		brand := string(b[8:12])
		switch {
		case brand == "avif" || brand == "avis":
			return "is an AVIF file, which is not read: " + to
		case strings.HasPrefix(brand, "hei") || strings.HasPrefix(brand, "hev") || brand == "mif1" || brand == "msf1":
			// The brands that follow tell AVIF from HEIC where the first one is of both.
			if n := min(int(binary.BigEndian.Uint32(b)), len(b), 256); n > 16 && bytes.Contains(b[16:n], []byte("avif")) {
				return "is an AVIF file, which is not read: " + to
			}
			return "is an HEIC file, which is not read: " + to
		case brand == "jp2 " || brand == "jpx ":
			return "is a JPEG 2000 file, which is not read: " + to
		}
		return "is a video (" + printable(brand) + "), which is not read: send frames of it as PNG or JPEG"
	}
	text := strings.ToLower(string(bytes.TrimLeft(b[:min(len(b), 1024)], "\xef\xbb\xbf \t\r\n")))
	switch {
	case has(0, "\x00\x00\x00\x0cjP  "), has(0, "\xff\x4f\xff\x51"):
		return "is a JPEG 2000 file, which is not read: " + to
	case has(0, "\xff\x0a"), has(0, "\x00\x00\x00\x0cJXL "):
		return "is a JPEG XL file, which is not read: " + to
	case has(0, "\x1aE\xdf\xa3"), has(0, "RIFF") && has(8, "AVI "), has(0, "\x00\x00\x01\xba"), has(0, "\x00\x00\x01\xb3"), has(0, "FLV\x01"), has(0, "OggS"):
		return "is a video, which is not read: send frames of it as PNG or JPEG"
	case strings.HasPrefix(text, "<svg"), strings.HasPrefix(text, "<?xml") && strings.Contains(text, "<svg"),
		strings.HasPrefix(text, "<!doctype svg"), strings.HasPrefix(text, "<!--") && strings.Contains(text, "<svg"):
		return "is an SVG file, which is not read: render it as PNG"
	case has(0, "%PDF-"):
		return "is a PDF file, which is not read: render its pages as PNG"
	case has(0, "8BPS"):
		return "is a Photoshop file, which is not read: " + to
	case has(0, "\x00\x00\x01\x00"), has(0, "\x00\x00\x02\x00"):
		return "is an icon file, which is not read: " + to
	case has(0, "II+\x00"), has(0, "MM\x00+"):
		return "is a BigTIFF file, which is not read: " + to
	case has(0, "\x1f\x8b"), has(0, "PK\x03\x04"), has(0, "\x28\xb5\x2f\xfd"):
		return "is compressed: send the image itself, as PNG, JPEG, GIF, WebP, BMP or TIFF"
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"):
		return "is an HTML page: send the image itself, as PNG, JPEG, GIF, WebP, BMP or TIFF"
	}
	return "is of no known type: PNG, JPEG, GIF, WebP, BMP and TIFF are read"
}

// printable is s with a dot for what would not print.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}, s)
}
