package vision

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// pngFile makes a PNG file of any header and any pixels.
func pngFile(w, h uint32, depth, kind, interlace byte, data []byte, before ...[]byte) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	out := append([]byte("\x89PNG\r\n\x1a\n"), pngChunk(pngHeader, append(head, depth, kind, 0, 0, interlace))...)
	out = append(out, slices.Concat(before...)...)
	return slices.Concat(out, pngChunk(pngData, data), pngChunk("IEND", nil))
}

func pngChunk(kind string, data []byte) []byte {
	body := append([]byte(kind), data...)
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	return binary.BigEndian.AppendUint32(append(out, body...), crc32.ChecksumIEEE(body))
}

func deflated(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write(b) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// jpegFile makes the segments of a JPEG file up to its pixels.
func jpegFile(marker byte, w, h uint16, components int) []byte {
	frame := []byte{8, byte(h >> 8), byte(h), byte(w >> 8), byte(w), byte(components)}
	for i := range components {
		frame = append(frame, byte(i+1), 0x11, 0)
	}
	out := []byte{0xff, 0xd8, 0xff, marker, 0, byte(len(frame) + 2)}
	return append(out, frame...)
}

func gifFile(w, h, fw, fh uint16, rest ...byte) []byte {
	b := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16([]byte("GIF89a"), w), h)
	b = append(b, 0x80, 0, 0, 0, 0, 0, 255, 255, 255) // two colours
	if fw == 0 {
		return b
	}
	b = append(b, ',', 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, fw), fh)
	return append(append(b, 0), rest...)
}

func riff(chunks ...string) []byte {
	body := "WEBP" + strings.Join(chunks, "")
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

func riffChunk(kind, data string) string {
	if len(data)%2 == 1 {
		data += "\x00"
	}
	return kind + string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + data
}

func bmpFile(w, h int32, bits uint16, compression uint32, data int) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("BM"), uint32(54+data))
	b = append(b, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(w)), uint32(h))
	b = binary.LittleEndian.AppendUint16(append(b, 1, 0), bits)
	b = binary.LittleEndian.AppendUint32(b, compression)
	return append(b, make([]byte, 20+data)...)
}

// tiffFile makes a TIFF file of entries: tag, type, count, value.
func tiffFile(entries ...[4]uint32) []byte {
	b := []byte("II*\x00\x08\x00\x00\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(entries)))
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, uint16(e[0])), uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, e[2]), e[3])
	}
	return append(b, 0, 0, 0, 0)
}

func tiffHead(w, h uint32, more ...[4]uint32) [][4]uint32 {
	return append([][4]uint32{{256, 4, 1, w}, {257, 4, 1, h}, {258, 3, 1, 8}, {259, 3, 1, 1}, {262, 3, 1, 1}}, more...)
}

func cut(b []byte, n int) []byte { return b[:min(n, len(b))] }

// hostile are files that are broken, are bombs or are something else, and what is said of each.
func hostile(t testing.TB) []struct {
	name string
	file []byte
	why  Cause
	says string
} {
	png, jpg, gif, webp := imageFile(t, "rgb.png"), imageFile(t, "420.jpg"), imageFile(t, "rgb.gif"), imageFile(t, "lossless.webp")
	flip := func(b []byte, at int) []byte {
		b = slices.Clone(b)
		b[at] ^= 0x55
		return b
	}
	ftyp := func(brands string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(8+len(brands))), "ftyp"+brands...)
	}
	zeros := deflated(make([]byte, 8<<20))
	return []struct {
		name string
		file []byte
		why  Cause
		says string
	}{
		{"empty", nil, Broken, "empty"},
		{"text", []byte("hello"), Type, "no known type"},
		{"zeros", make([]byte, 100), Type, "no known type"},
		{"json", []byte(`{"image":1}`), Type, "no known type"},
		{"html", []byte("<!DOCTYPE html><html>"), Type, "HTML page"},
		{"svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), Type, "an SVG file, which is not read: render it as PNG"},
		{"svg after xml", []byte("\xef\xbb\xbf<?xml version=\"1.0\"?>\n<svg/>"), Type, "SVG"},
		{"pdf", []byte("%PDF-1.7\n"), Type, "PDF"},
		{"heic", ftyp("heic\x00\x00\x00\x00mif1heic"), Type, "an HEIC file, which is not read: convert it to PNG, JPEG or WebP"},
		{"heif", ftyp("mif1\x00\x00\x00\x00mif1heic"), Type, "HEIC"},
		{"avif", ftyp("avif\x00\x00\x00\x00mif1"), Type, "AVIF"},
		{"avif as mif1", ftyp("mif1\x00\x00\x00\x00mif1avif"), Type, "AVIF"},
		{"mp4", ftyp("isom\x00\x00\x02\x00mp41"), Type, "a video (isom)"},
		{"odd brand", ftyp("\x01\x02\xff\x1b\x00\x00\x02\x00mp41"), Type, "a video (....)"},
		{"webm", []byte("\x1aE\xdf\xa3\x9fB\x86\x81\x01"), Type, "video"},
		{"avi", []byte("RIFF\x00\x00\x00\x00AVI LIST"), Type, "video"},
		{"jpeg xl", []byte("\xff\x0a\x00\x00"), Type, "JPEG XL"},
		{"jpeg 2000", []byte("\x00\x00\x00\x0cjP  \x0d\x0a\x87\x0a"), Type, "JPEG 2000"},
		{"psd", []byte("8BPS\x00\x01"), Type, "Photoshop"},
		{"icon", []byte("\x00\x00\x01\x00\x01\x00"), Type, "icon"},
		{"zip", []byte("PK\x03\x04"), Type, "compressed"},
		{"bigtiff", []byte("II+\x00\x08\x00"), Type, "BigTIFF"},

		{"png: only its signature", cut(png, 8), Broken, "PNG file: it ends too early"},
		{"png: half a header", cut(png, 20), Broken, "too early"},
		{"png: no pixels", cut(png, 33), Broken, "PNG"},
		{"png: half", cut(png, len(png)/2), Broken, "PNG"},
		{"png: header's sum", flip(png, 29), Broken, "checksum"},
		{"png: another byte", flip(png, len(png)/2), Broken, "PNG"},
		{"png: empty", pngFile(0, 5, 8, 2, 0, zeros), Broken, "no pixels"},
		{"png: negative", pngFile(1<<31, 5, 8, 2, 0, zeros), Broken, "size"},
		{"png: no such depth", pngFile(5, 5, 3, 2, 0, zeros), Broken, "PNG"},
		{"png: depth 0", pngFile(5, 5, 0, 0, 0, zeros), Broken, "PNG"},
		{"png: no such colour", pngFile(5, 5, 8, 5, 0, zeros), Broken, "PNG"},
		{"png: no such filter", pngFile(2, 1, 8, 0, 0, deflated([]byte{9, 1, 2})), Broken, "filter"},
		{"png: no such interlace", pngFile(2, 1, 8, 0, 7, deflated([]byte{0, 1, 2})), Broken, "interlace"},
		{"png: too few rows", pngFile(100, 100, 8, 0, 0, deflated(make([]byte, 101*50))), Broken, "PNG"},
		{"png: no palette", pngFile(2, 1, 8, 3, 0, deflated([]byte{0, 1, 2})), Broken, "PNG"},
		{"png: a chunk longer than the file", pngFile(2, 1, 8, 0, 0, nil, []byte("\x7f\xff\xff\xffteXt")), Broken, "PNG"},
		{"png: bomb over the limit", pngFile(100_000, 100_000, 8, 2, 0, zeros), Broken, "too early"},
		{"png: 4 bytes for 49 megapixels", pngFile(7000, 7000, 8, 2, 0, []byte{1, 2, 3, 4}), Broken, "too early"},
		{"png: real bomb", pngFile(1<<14, 1<<14, 1, 0, 0, deflated(make([]byte, (1<<11+1)<<14))), Pixels, "the limit is"},
		{"png: a hair", pngFile(5000, 2, 8, 0, 0, deflated(make([]byte, 10002))), Ratio, "crop it"},

		{"jpeg: only its mark", cut(jpg, 2), Broken, "JPEG file: it ends too early"},
		{"jpeg: no frame", cut(jpg, 20), Broken, "too early"},
		{"jpeg: half", cut(jpg, len(jpg)/2), Broken, "JPEG"},
		{"jpeg: no pixels", jpegFile(0xc0, 0, 5, 3), Broken, "no pixels"},
		{"jpeg: 65535 squared", jpegFile(0xc0, 65535, 65535, 3), Broken, "too early"},
		{"jpeg: large, filled up", append(jpegFile(0xc0, 20000, 20000, 3), make([]byte, 1<<20)...), Pixels, "20000 by 20000"},
		{"jpeg: lossless", jpegFile(0xc3, 50, 50, 3), Type, "only baseline and progressive"},
		{"jpeg: arithmetic", jpegFile(0xc9, 50, 50, 3), Type, "only baseline and progressive"},
		{"jpeg: nine channels", append(jpegFile(0xc0, 50, 50, 9), make([]byte, 100)...), Type, "JPEG"},
		{"jpeg: scan before frame", []byte("\xff\xd8\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"), Broken, "before its size"},
		{"jpeg: a segment of no length", []byte("\xff\xd8\xff\xe0\x00\x00\x00\x00"), Broken, "length 0"},
		{"jpeg: twelve bits", append([]byte("\xff\xd8\xff\xc1\x00\x0b\x0c\x00\x10\x00\x10\x01\x01\x11\x00"), make([]byte, 100)...), Type, "JPEG"},

		{"gif: only its mark", cut(gif, 6), Broken, "GIF file: it ends too early"},
		{"gif: no frame", gifFile(10, 10, 0, 0), Broken, "GIF"},
		{"gif: half", cut(gif, len(gif)/2), Broken, "GIF"},
		{"gif: frame outside", gifFile(10, 10, 20, 20, 2, 0), Broken, "GIF"},
		{"gif: no size", gifFile(0, 10, 5, 5, 2, 0), Broken, "no pixels"},
		{"gif: large", gifFile(65535, 65535, 1, 1, 2, 0), Pixels, "65535 by 65535"},
		{"gif: codes too long", gifFile(4, 4, 4, 4, 20, 1, 0, 0), Broken, "GIF"},

		{"webp: only its mark", cut(webp, 16), Broken, "WebP file: it ends too early"},
		{"webp: half", cut(webp, len(webp)/2), Broken, "WebP"},
		{"webp: another part", riff(riffChunk("JUNK", strings.Repeat("x", 30))), Broken, "JUNK"},
		{"webp: large", riff(riffChunk("VP8X", "\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff"), riffChunk("VP8 ", "")), Pixels, "16777216 by 16777216"},
		{"webp: animated without a frame", riff(riffChunk("VP8X", "\x02\x00\x00\x00\x0f\x00\x00\x0f\x00\x00"), riffChunk("ANIM", "abcdef")), Broken, "no frame"},
		{"webp: a frame outside", riff(riffChunk("VP8X", "\x02\x00\x00\x00\x0f\x00\x00\x0f\x00\x00"),
			riffChunk("ANMF", "\x09\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 10)+string(webp[12:]))), Broken, "WebP"},

		{"bmp: only its mark", []byte("BM"), Broken, "BMP"},
		{"bmp: run lengths", bmpFile(10, 10, 8, 1, 1000), Type, "BMP"},
		{"bmp: large", bmpFile(1<<20, 1<<20, 24, 0, 100), Broken, "BMP"},
		{"bmp: negative", bmpFile(-5, 5, 24, 0, 1000), Type, "BMP"},
		{"bmp: cut", bmpFile(100, 100, 24, 0, 3000), Broken, "BMP"},

		{"tiff: only its mark", []byte("II*\x00"), Broken, "TIFF"},
		{"tiff: no directory", []byte("II*\x00\xff\xff\xff\x7f"), Broken, "TIFF"},
		{"tiff: directory of itself", []byte("II*\x00\x00\x00\x00\x00"), Broken, "TIFF"},
		{"tiff: large", tiffFile(tiffHead(1<<20, 1<<20)...), Pixels, "pixels"},
		{"tiff: no strips", tiffFile(tiffHead(10, 10)...), Broken, "TIFF"},
		{"tiff: strips outside", tiffFile(tiffHead(10, 10, [4]uint32{273, 4, 1, 1 << 30}, [4]uint32{277, 3, 1, 1}, [4]uint32{278, 3, 1, 10}, [4]uint32{279, 4, 1, 100})...), Broken, "TIFF"},
		{"tiff: a billion strips", tiffFile(tiffHead(10, 10, [4]uint32{273, 4, 1 << 30, 8}, [4]uint32{277, 3, 1, 1}, [4]uint32{278, 3, 1, 10}, [4]uint32{279, 4, 1 << 30, 8})...), Broken, "TIFF"},
	}
}

// TestHostile: each file has its answer, and nothing is allocated of a size that its header only claims.
func TestHostile(t *testing.T) {
	cases := hostile(t)
	if len(cases) < 40 {
		t.Fatalf("there are %d", len(cases))
	}
	for _, c := range cases {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(t.Context(), c.file, DefaultLimits())
		runtime.ReadMemStats(&after)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if e.Cause != c.why || !strings.Contains(e.Error(), c.says) {
			t.Errorf("%s: %s: the image %v; want %s, %q", c.name, e.Cause, e, c.why, c.says)
		}
		if strings.ContainsFunc(e.Error(), func(r rune) bool { return r < ' ' || r > '~' && r != 0xfffd }) || len(e.Error()) > 400 {
			t.Errorf("%s: the error is %q", c.name, e)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: %d MB were allocated", c.name, n>>20)
		}
	}
}

// TestLimits: one file at each limit, one beyond.
func TestLimits(t *testing.T) {
	file := imageFile(t, "rgb.png") // 160 by 120
	whole := Limits{Bytes: len(file), Pixels: 160 * 120, Ratio: 2, Images: 3}
	if _, err := Inspect(file, whole); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	for cause, l := range map[Cause]Limits{
		Bytes:  {Bytes: whole.Bytes - 1, Pixels: whole.Pixels, Ratio: 2},
		Pixels: {Bytes: whole.Bytes, Pixels: whole.Pixels - 1, Ratio: 2},
		Ratio:  {Bytes: whole.Bytes, Pixels: whole.Pixels, Ratio: 1},
	} {
		_, err := Inspect(file, l)
		if e := (*Error)(nil); !errors.As(err, &e) || e.Cause != cause || !e.Limit() {
			t.Errorf("%s: %v", cause, err)
		}
	}
	if err := whole.Count(3); err != nil {
		t.Error(err)
	}
	if e := (*Error)(nil); !errors.As(whole.Count(4), &e) || e.Cause != Count {
		t.Error("four images are taken where three may be")
	}
}

// TestGate: no more images than the gate has places are worked on, and who waits can be called off.
func TestGate(t *testing.T) {
	p := qwen3(t)
	g := NewGate(1, DefaultLimits())
	file := imageFile(t, "rgb.png")
	g.slots <- struct{}{} // somebody is inside
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := g.Picture(ctx, file, p)
		ended <- err
	}()
	// What is refused needs no place.
	if e := (*Error)(nil); !errors.As(func() error { _, err := g.Picture(t.Context(), []byte("?"), p); return err }(), &e) {
		t.Error("no answer while the gate is closed")
	}
	cancel(nil)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("who waited got %v", err)
	}
	<-g.slots
	pic, err := g.Picture(t.Context(), file, p)
	if err != nil || len(g.slots) != 0 {
		t.Fatalf("%v, %d places are taken", err, len(g.slots))
	}
	if pic.Positions() != pic.PatchCount()/4 {
		t.Errorf("%d positions of %d patches", pic.Positions(), pic.PatchCount())
	}
}

// TestCancelled: a context that has ended ends decoding, of every format, and preparing.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"rgb.png", "420.jpg", "rgb.gif", "lossy.webp", "rgb.bmp", "rgb.tiff"} {
		if _, err := Decode(ctx, imageFile(t, name), DefaultLimits()); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := qwen3(t).Prepare(ctx, newRaster(300, 200)); !errors.Is(err, context.Canceled) {
		t.Errorf("prepared: %v", err)
	}
}

func qwen3(t testing.TB) *Processor {
	t.Helper()
	p, err := NewProcessor(Files{
		Config: []byte(`{"model_type":"qwen3_vl","vision_config":{"patch_size":16,"temporal_patch_size":2,"spatial_merge_size":2}}`),
		Preprocessor: []byte(`{"size":{"longest_edge":16777216,"shortest_edge":65536},"patch_size":16,"temporal_patch_size":2,"merge_size":2,` +
			`"image_mean":[0.5,0.5,0.5],"image_std":[0.5,0.5,0.5],"image_processor_type":"Qwen2VLImageProcessorFast"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDigest: equal pictures have equal digests whatever file they came in, and one pixel, the size or the processor changes it.
func TestDigest(t *testing.T) {
	p := qwen3(t)
	sum := func(p *Processor, r *Raster) string {
		pic, err := p.Prepare(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", pic.Digest)
	}
	r := newRaster(320, 320)
	other := newRaster(320, 320)
	first := sum(p, r)
	if sum(p, other) != first {
		t.Error("equal pictures have other digests")
	}
	other.Pix[len(other.Pix)-1] = 1
	gemma, err := NewProcessor(Files{Config: []byte(`{"model_type":"gemma4"}`)})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{first: "the first"}
	for name, s := range map[string]string{
		"another pixel": sum(p, other), "another shape": sum(p, newRaster(640, 160)), "another processor": sum(gemma, r),
	} {
		if was, ok := seen[s]; ok {
			t.Errorf("%s has the digest of %s", name, was)
		}
		seen[s] = name
	}
}

// TestFiles: what is wrong with a model's files is said with the file and the key.
func TestFiles(t *testing.T) {
	for _, c := range []struct{ config, pre, want string }{
		{`{"model_type":"llama"}`, `{}`, "no image processor is known"},
		{`{`, `{}`, "config.json: unexpected end"},
		{`{"model_type":"gemma3"}`, `{"size":{"height":-3,"width":896}}`, "height is -3"},
		{`{"model_type":"gemma3"}`, `{"size":{"height":900,"width":900}}`, "mm_tokens_per_image"},
		{`{"model_type":"qwen3_vl"}`, `{"patch_size":0.5}`, "preprocessor_config.json"},
		{`{"model_type":"qwen3_vl"}`, `{"patch_size":100000}`, "patch_size is 100000"},
		{`{"model_type":"qwen3_vl","vision_config":{"patch_size":14}}`, `{"patch_size":16}`, "patch_size is 16, but 14 in config.json"},
		{`{"model_type":"qwen3_vl"}`, `{"max_pixels":99999999999}`, "max_pixels"},
		{`{"model_type":"qwen3_vl"}`, `{"max_pixels":5,"min_pixels":3}`, "max_pixels"},
		{`{"model_type":"qwen3_vl"}`, `{"do_resize":false}`, "do_resize"},
		{`{"model_type":"qwen3_vl"}`, `{"resample":0}`, "resample is 0"},
		{`{"model_type":"qwen3_vl"}`, `{"image_mean":[1,2]}`, "image_mean has 2"},
		{`{"model_type":"qwen3_vl"}`, `{"image_std":[1,0,1]}`, "image_std has a zero"},
		{`{"model_type":"qwen3_vl"}`, `{"rescale_factor":1e300}`, "numbers that are none"},
		{`{"model_type":"gemma4"}`, `{"max_soft_tokens":8000,"patch_size":128}`, "max_soft_tokens"},
		{`{"model_type":"pixtral"}`, `{"size":{"longest_edge":100000}}`, "longest_edge"},
		{`{"model_type":"lfm2_vl"}`, `{"min_tiles":5,"max_tiles":2}`, "min_tiles"},
		{`{"model_type":"lfm2_vl"}`, `{"tile_size":500}`, "tile_size"},
		{`{"model_type":"smolvlm","vision_config":{"patch_size":16}}`, `{"size":{"longest_edge":8000},"max_image_size":{"longest_edge":32}}`, "too many tiles"},
		{`{"model_type":"smolvlm","vision_config":{"patch_size":16}}`, `{"max_image_size":{"longest_edge":120}}`, "no multiple"},
	} {
		_, err := NewProcessor(Files{Config: []byte(c.config), Preprocessor: []byte(c.pre)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.config, c.pre, err, c.want)
		}
	}
}

// TestLastPixels: a tile that patches do not fill, as SmolVLM's of 384 pixels and patches of 14, is seen up to the last whole
// patch.
func TestLastPixels(t *testing.T) {
	prepare := func(patch, merge int) (*Picture, [][]float32) {
		p, err := NewProcessor(Files{Config: fmt.Appendf(nil, `{"model_type":"smolvlm","scale_factor":%d,"vision_config":{"patch_size":%d}}`, merge, patch),
			Preprocessor: []byte(`{"size":{"longest_edge":768},"max_image_size":{"longest_edge":384}}`)})
		if err != nil {
			t.Fatal(err)
		}
		pic, err := p.Prepare(t.Context(), scene(700, 500))
		if err != nil {
			t.Fatal(err)
		}
		n, size := pic.Tiles[1].Grid[1]*pic.Tiles[1].Grid[2], pic.PatchLen()
		all := make([]float32, n*size)
		pic.Patches(all, 1, 0, n)
		return pic, slices.Collect(slices.Chunk(all, size))
	}
	pic, large := prepare(14, 3)
	if tile := pic.Tiles[1]; tile.Grid != [3]int{1, 27, 27} || tile.Positions != 81 {
		t.Fatalf("a tile of %v patches takes %d positions", tile.Grid, tile.Positions)
	}
	_, small := prepare(1, 1)
	for _, at := range [][2]int{{0, 0}, {26, 26}, {3, 17}} {
		for c := range 3 {
			for y := range 14 {
				for x := range 14 {
					if got, want := large[at[0]*27+at[1]][c*196+y*14+x], small[(at[0]*14+y)*384+at[1]*14+x][c]; got != want {
						t.Fatalf("patch %v, channel %d, row %d, column %d is %g, want %g", at, c, y, x, got, want)
					}
				}
			}
		}
	}
}

// TestMemory: what decoding allocates is a few bytes for each pixel, as DefaultLimits says.
func TestMemory(t *testing.T) {
	r := scene(1000, 800)
	pixels := uint64(r.Width * r.Height)
	for _, e := range []string{"photo.jpg", "screen.png"} {
		file := encoded(t, e, r)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Decode(t.Context(), file, DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 12*pixels {
			t.Errorf("%s: %d bytes for %d pixels", e, n, pixels)
		}
	}
}

// TestPremultiplied: colours that are multiplied by alpha in the file lie on white as others do.
func TestPremultiplied(t *testing.T) {
	const associated = 1
	head := [][4]uint32{{256, 4, 1, 2}, {257, 4, 1, 1}, {258, 3, 4, 0}, {259, 3, 1, 1}, {262, 3, 1, 2}, {273, 4, 1, 0},
		{277, 3, 1, 4}, {278, 3, 1, 1}, {279, 4, 1, 8}, {338, 3, 1, associated}}
	size := uint32(len(tiffFile(head...)))
	head[2][3], head[5][3] = size, size+8 // where the depths lie, and the pixels
	file := append(tiffFile(head...), 8, 0, 8, 0, 8, 0, 8, 0, 10, 20, 30, 100, 1, 2, 3, 255)
	r, err := Decode(t.Context(), file, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if want := []byte{165, 175, 185, 1, 2, 3}; !bytes.Equal(r.Pix, want) {
		t.Errorf("%v, want %v", r.Pix, want)
	}
}
