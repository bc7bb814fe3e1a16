//go:build linux

package hostile

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hearth/internal/vision/visiontest"
)

// responses is the third API that images come by.
var responses = api{name: "responses", path: "/v1/responses"}

// shown is a request with images, as an API has them.
func (a api) shown(images ...[]byte) request {
	var parts []string
	for _, file := range images {
		data := base64.StdEncoding.EncodeToString(file)
		if a == responses {
			parts = append(parts, `{"type": "input_image", "image_url": "data:image/png;base64,`+data+`"}`)
		} else {
			parts = append(parts, a.image(data))
		}
	}
	list := `[` + strings.Join(parts, ", ") + `]`
	if a == responses {
		return request{api: openai, path: a.path, body: fmt.Appendf(nil, `{"max_output_tokens": 8, "store": false, "input": [{"role": "user", "content": %s}]}`, list)}
	}
	return a.ask(list, "")
}

// pictures are files of images, to a model that sees.
func pictures(t *testing.T) (list []row) {
	folder := visiontest.Folder(t, "qwen3_vl")
	box := func(brand string) func(n int) []byte {
		return func(n int) []byte {
			return slices.Concat([]byte("\x00\x00\x00\x18ftyp"+brand+"\x00\x00\x00\x00mif1"+brand), make([]byte, n))
		}
	}
	text := func(begins string) func(n int) []byte {
		return func(n int) []byte { return append([]byte(begins), bytes.Repeat([]byte(" "), n)...) }
	}
	write := func(f func(*bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	flat := func(w, h int) []byte {
		return write(func(b *bytes.Buffer) error {
			return png.Encode(b, image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White}))
		})
	}
	noise := func(w, h int) *image.Gray {
		m, r := image.NewGray(image.Rect(0, 0, w, h)), rand.New(rand.NewPCG(1, 2))
		for i := range m.Pix {
			m.Pix[i] = uint8(r.Uint32())
		}
		return m
	}
	const mb = 1 << 20
	for _, c := range []struct {
		name    string
		n       int
		file    func(n int) []byte
		refused bool
	}{
		{"HEIC", 4 * mb, box("heic"), true},
		{"AVIF", 4 * mb, box("avif"), true},
		{"video", 4 * mb, box("isom"), true},
		{"SVG", 4 * mb, text(`<svg xmlns="http://www.w3.org/2000/svg">`), true},
		{"PDF for an image", 4 * mb, text("%PDF-1.7"), true},
		{"no image of any kind", 4 * mb, text("?"), true},
		{"image of more bytes than are let", 4 * mb, func(n int) []byte { return append(flat(9, 9), make([]byte, n)...) }, true},
		{"PNG of more pixels than are let", 3000, func(n int) []byte { return flat(20_000, n) }, true},
		{"PNG that is longer than is let", 3000, func(n int) []byte { return flat(n, 2) }, true},
		{"PNG that is longer than the model takes", 300, func(n int) []byte { return flat(n, 1) }, true},
		{"PNG of one colour", 5000, func(n int) []byte { return flat(5000, n) }, false},
		{"PNG cut in half", 1000, func(n int) []byte {
			b := write(func(b *bytes.Buffer) error { return png.Encode(b, noise(1000, n)) })
			return b[:len(b)/2]
		}, true},
		{"JPEG of noise", 1000, func(n int) []byte {
			return write(func(b *bytes.Buffer) error { return jpeg.Encode(b, noise(1000, n), nil) })
		}, false},
		{"JPEG cut in half", 1000, func(n int) []byte {
			b := write(func(b *bytes.Buffer) error { return jpeg.Encode(b, noise(1000, n), nil) })
			return b[:len(b)/2]
		}, true},
		{"GIF of many pictures", 2000, func(n int) []byte {
			one := image.NewPaletted(image.Rect(0, 0, 64, 64), color.Palette{color.Black, color.White})
			return write(func(b *bytes.Buffer) error {
				return gif.EncodeAll(b, &gif.GIF{Image: slices.Repeat([]*image.Paletted{one}, n), Delay: make([]int, n)})
			})
		}, false},
	} {
		for _, a := range []api{openai, anthropic, responses} {
			list = append(list, row{name: a.name + " " + c.name, n: c.n, server: []string{folder, "--max-image-bytes", "4MiB"}, refused: c.refused,
				send: one(func(n int) request { return a.shown(c.file(n)) }), memory: 768 << 20, step: promptStep})
		}
	}
	small := flat(8, 8)
	for _, a := range []api{openai, anthropic, responses} {
		list = append(list, row{name: a.name + " images", n: 100, server: []string{folder}, bounded: true,
			send: one(func(n int) request { return a.shown(slices.Repeat([][]byte{small}, n)...) }), memory: 768 << 20, step: promptStep})
	}
	return list
}
