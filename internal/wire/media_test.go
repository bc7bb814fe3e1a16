package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
)

// picture is an image as Go's own encoders write it.
func picture(t testing.TB, width, height int, write func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pngFile(t testing.TB) []byte {
	return picture(t, 300, 70_000, func(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) })
}

func gifFile(t testing.TB) []byte {
	return picture(t, 33, 7, func(b *bytes.Buffer, m image.Image) error { return gif.Encode(b, m, nil) })
}

func jpegFile(t testing.TB) []byte {
	return picture(t, 641, 13, func(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) })
}

// after puts n bytes of comments behind the first marker of a JPEG file.
func after(file []byte, n int) []byte {
	out := slices.Clone(file[:2])
	for n > 0 {
		size := min(n, 65_533)
		out = append(out, 0xff, 0xfe)
		out = binary.BigEndian.AppendUint16(out, uint16(size+2))
		out = append(out, make([]byte, size)...)
		n -= size
	}
	return append(out, file[2:]...)
}

func webpFile(chunk string, payload ...byte) []byte {
	return slices.Concat([]byte("RIFF\x30\x00\x00\x00WEBP"), []byte(chunk), []byte{20, 0, 0, 0}, payload, make([]byte, 10))
}

func described(t testing.TB, data string) (*chat.Media, *chat.Error) {
	t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	v, bad := Parse(text)
	if bad != nil {
		t.Fatal(bad)
	}
	m, d := &chat.Media{Type: "image/declared"}, &Decoder{}
	d.Base64(m, v)
	return m, d.Err()
}

// TestBase64 tells what first bytes say of a file, for files of Go's encoders and for headers by hand.
func TestBase64(t *testing.T) {
	for name, c := range map[string]struct {
		file          []byte
		media         string
		width, height int
	}{
		"PNG":                            {pngFile(t), "image/png", 300, 70_000},
		"PNG cut":                        {pngFile(t)[:20], "image/png", 0, 0},
		"PNG without a height":           {slices.Concat(pngFile(t)[:20], make([]byte, 20)), "image/png", 0, 0},
		"GIF":                            {gifFile(t), "image/gif", 33, 7},
		"GIF cut":                        {gifFile(t)[:7], "image/gif", 0, 0},
		"JPEG":                           {jpegFile(t), "image/jpeg", 641, 13},
		"JPEG after a preview":           {after(jpegFile(t), 100_000), "image/jpeg", 641, 13},
		"JPEG after too much":            {after(jpegFile(t), 300_000), "image/jpeg", 0, 0},
		"JPEG that fills":                {slices.Concat([]byte{0xff, 0xd8}, bytes.Repeat([]byte{0xff}, 99), jpegFile(t)[3:]), "image/jpeg", 641, 13},
		"JPEG whose parts have no bytes": {bytes.Repeat([]byte{0xff, 0xd8, 0xff, 0xfe, 0, 0}, 99), "image/jpeg", 0, 0},
		"JPEG of an image without frame": {[]byte{0xff, 0xd8, 0xff, 0xda, 0, 2, 1, 2, 3, 4, 5, 6, 7}, "image/jpeg", 0, 0},
		"WebP, lossy":                    {webpFile("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a, 0x80, 0x42, 0xe0, 1), "image/webp", 640, 480},
		"WebP, lossless":                 {webpFile("VP8L", 0x2f, 0x7f, 0xc2, 0x77, 0), "image/webp", 640, 480},
		"WebP, extended":                 {webpFile("VP8X", 0, 0, 0, 0, 0x7f, 2, 0, 0xdf, 1, 0), "image/webp", 640, 480},
		"WebP, cut":                      {webpFile("VP8X")[:20], "image/webp", 0, 0},
		"WebP, of something":             {webpFile("ABCD"), "image/webp", 0, 0},
		"PDF":                            {[]byte("%PDF-1.7 and so on"), "application/pdf", 0, 0},
		"something":                      {[]byte("BM something"), "image/declared", 0, 0},
		"nothing":                        {nil, "image/declared", 0, 0},
	} {
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
			text := enc.EncodeToString(c.file)
			lines := text
			if len(text) > 76 {
				lines = text[:30] + "\r\n" + text[30:76] + "\n" + text[76:] + "\n"
			}
			for _, data := range []string{text, lines} {
				m, err := described(t, data)
				want := chat.Media{Type: c.media, Bytes: len(c.file), Width: c.width, Height: c.height}
				if err != nil || !reflect.DeepEqual(*m, want) {
					t.Errorf("%s: %+v, %v, want %+v", name, m, err, want)
				}
			}
		}
	}
	for _, bad := range []string{"A", "AAAAA", "A%", "AA=A", "ä", "AA A", "data:image/png;base64,AA=="} {
		if m, err := described(t, bad); err == nil || !strings.Contains(err.Msg, "is not valid base64: illegal base64 data at input byte ") {
			t.Errorf("%q: %+v, %v", bad, m, err)
		}
	}
}

func TestDataURL(t *testing.T) {
	for url, want := range map[string]string{
		"data:image/png;base64,AAAA":                      "image/png",
		"data:Image/PNG;charset=utf-8;base64,AAAA":        "image/png",
		"DATA:image/png;Base64,AAAA":                      "image/png",
		"data:;base64,AAAA":                               "",
		"data:nothing of the kind;base64,AAAA":            "",
		"data:" + strings.Repeat("a", 200) + "/b;base64,": "",
	} {
		v, _ := Parse([]byte(`"` + url + `"`))
		d, m := &Decoder{}, &chat.Media{}
		if got := d.DataURL(m, v); got != want || d.Err() != nil || m.Type != want || !d.IsData(v) {
			t.Errorf("%s: %s, %+v, %v", url, got, m, d.Err())
		}
	}
	for _, url := range []string{"data:image/png,AAAA", "data:image/png;base64", "data:", "data", "", "data:image/png;base64,A"} {
		v, _ := Parse([]byte(`"` + url + `"`))
		d, m := &Decoder{}, &chat.Media{}
		if d.DataURL(m, v); d.Err() == nil || !strings.Contains(d.Err().Msg, "is not a valid data URL: ") {
			t.Errorf("%s: %+v, %v", url, m, d.Err())
		}
	}
}

func TestLink(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com/a/cat%20one.png?sig=1#x": "cat one.png", "https://example.com/a/": "", "https://example.com": "", "u": "u", "": "",
		"data:image/png;base64,AA/BB": "",
		"https://example.com/100%":    "100%", "https://example.com/" + strings.Repeat("é", 90): strings.Repeat("é", 50) + "…",
	} {
		m := &chat.Media{}
		if Link(m, url); m.Name != want || m.By != "URL" {
			t.Errorf("%s: %+v, want %s", url, m, want)
		}
	}
	m := &chat.Media{Name: "own"}
	if Link(m, "https://example.com/other"); m.Name != "own" {
		t.Errorf("the name became %s", m.Name)
	}
}

// TestURL: every protocol takes the same URLs, whatever the case of their schemes.
func TestURL(t *testing.T) {
	for url, want := range map[string]chat.Media{
		"data:image/png;base64,AAAA":   {Type: "image/png", Bytes: 3},
		"DATA:image/png;base64,AAAA":   {Type: "image/png", Bytes: 3},
		"https://example.com/a/b.png":  {By: "URL", Name: "b.png", URL: "https://example.com/a/b.png"},
		"HTTP://example.com/b.png?x=1": {By: "URL", Name: "b.png", URL: "HTTP://example.com/b.png?x=1"},
	} {
		v, _ := Parse([]byte(`"` + url + `"`))
		d, m := &Decoder{}, &chat.Media{Kind: chat.Image}
		if want.Kind = chat.Image; want.By == "" {
			want.Base64 = []byte("AAAA")
		}
		media, data := d.URL(m, v)
		if d.Err() != nil || !reflect.DeepEqual(*m, want) || data != (want.By == "") || media != want.Type {
			t.Errorf("%s: %s, %t, %+v, %v", url, media, data, m, d.Err())
		}
	}
	for _, body := range []string{`""`, `"u"`, `"/etc/passwd"`, `"file:///etc/passwd"`, `"https:/x"`, `"data"`, `"data:"`, `"data:,x"`, "null", "7", "{}"} {
		v, _ := Parse([]byte(body))
		d := &Decoder{}
		if d.URL(&chat.Media{}, v); d.Err() == nil {
			t.Errorf("%s is taken", body)
		}
	}
}

// TestBase64Memory: what a file takes in memory does not grow with it.
func TestBase64Memory(t *testing.T) {
	v, bad := Parse([]byte(`"` + base64.StdEncoding.EncodeToString(after(jpegFile(t), 8<<20)) + `"`))
	if bad != nil {
		t.Fatal(bad)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, d := &chat.Media{}, &Decoder{}
	d.Base64(m, v)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; d.Err() != nil || m.Bytes < 8<<20 || got > 1<<20 {
		t.Errorf("%+v, %v: %d bytes were taken", m, d.Err(), got)
	}
}

// FuzzBase64: what decodes is counted as Go's decoder has it, and what first bytes say is within reason.
func FuzzBase64(f *testing.F) {
	for _, file := range [][]byte{pngFile(f)[:60], gifFile(f), jpegFile(f), webpFile("VP8X", 1, 2, 3), []byte("%PDF-")} {
		f.Add(base64.StdEncoding.EncodeToString(file))
	}
	f.Add("AA\r\n==")
	f.Fuzz(func(t *testing.T, data string) {
		n, err := base64Size([]byte(data))
		want, bad := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "=\r\n"))
		if (err == nil) != (bad == nil) || err == nil && n != len(want) {
			t.Fatalf("%q: %d bytes, %v; decoded %d, %v", data, n, err, len(want), bad)
		}
		if err != nil {
			return
		}
		media, width, height := sniff([]byte(data))
		if width < 0 || height < 0 || (width == 0) != (height == 0) || width > 0 && !strings.HasPrefix(media, "image/") {
			t.Errorf("%q: %s, %d x %d", data, media, width, height)
		}
	})
}
