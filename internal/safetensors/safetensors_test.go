package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// file builds a raw file: any header over any body.
func file(header string, body int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range body {
		b = append(b, byte(i))
	}
	return b
}

func TestWriteThenOpen(t *testing.T) {
	in := []Tensor{
		{Name: "a.weight", DType: "U8", Shape: []int{3}, Bytes: []byte{1, 2, 3}},
		{Name: "empty", DType: "F32", Shape: []int{0, 4}, Bytes: nil},
		{Name: "b", DType: "BF16", Shape: []int{2, 1}, Bytes: []byte{4, 5, 6, 7}}, // at an odd byte
		{Name: "scalar", DType: "F32", Shape: nil, Bytes: []byte{8, 9, 10, 11}},
		{Name: "ünï\"code", DType: "I64", Shape: []int{1}, Bytes: make([]byte, 8)},
	}
	var buf bytes.Buffer
	if err := Write(&buf, in, map[string]string{"format": "mlx"}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.safetensors"), buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		fsys   fs.FS
		mapped bool
	}{
		{"folder", os.DirFS(dir), true},
		{"memory", fstest.MapFS{"m.safetensors": {Data: buf.Bytes()}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Open(c.fsys, "m.safetensors")
			if err != nil {
				t.Fatal(err)
			}
			if f.mapped != c.mapped {
				t.Errorf("mapped: %v, want %v", f.mapped, c.mapped)
			}
			if f.Meta["format"] != "mlx" || f.Bytes() != int64(buf.Len()) || len(f.Tensors) != len(in) {
				t.Errorf("meta %v, %d bytes, %d tensors", f.Meta, f.Bytes(), len(f.Tensors))
			}
			f.Release(Tensor{Name: "c"})
			for _, want := range in {
				got, ok := f.Tensor(want.Name)
				f.Release(got)
				if !ok || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Bytes, want.Bytes) {
					t.Errorf("%s: %+v, want %+v", want.Name, got, want)
				}
			}
			if _, ok := f.Tensor("c"); ok {
				t.Error("tensor c exists")
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error("second close:", err)
			}
		})
	}
}

func TestWriteErrors(t *testing.T) {
	one := Tensor{Name: "a", DType: "F32", Shape: []int{1}, Bytes: make([]byte, 4)}
	for _, c := range []struct {
		name    string
		tensors []Tensor
		want    string
	}{
		{"twice", []Tensor{one, one}, "twice"},
		{"bytes", []Tensor{{Name: "a", DType: "F32", Shape: []int{2}, Bytes: make([]byte, 4)}}, "takes 8 bytes"},
		{"dtype", []Tensor{{Name: "a", DType: "F33", Shape: []int{1}, Bytes: make([]byte, 4)}}, "unknown dtype"},
		{"negative", []Tensor{{Name: "a", DType: "F32", Shape: []int{-1}, Bytes: make([]byte, 4)}}, "absurd"},
		{"reserved", []Tensor{{Name: "__metadata__", DType: "F32", Shape: []int{1}, Bytes: make([]byte, 4)}}, "__metadata__"},
	} {
		if err := Write(&bytes.Buffer{}, c.tensors, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}

func TestBadFiles(t *testing.T) {
	deep := strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000)
	huge := binary.LittleEndian.AppendUint64(nil, 1<<63)
	long := binary.LittleEndian.AppendUint64(nil, 1000)
	for _, c := range []struct {
		name string
		data []byte
		want string // "" for no error
	}{
		{"good", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), ""},
		{"good, padded and out of order", file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   `, 9), ""},
		{"good, no tensors", file(`{}`, 0), ""},
		{"good, unknown keys", file(`{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"more":{"x":[1]}}}`, 1), ""},
		{"good, sub-byte", file(`{"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}}`, 3), ""},

		{"empty", nil, "truncated: 0 bytes"},
		{"short", []byte{1, 2, 3}, "truncated: 3 bytes"},
		{"absurd header length", huge, "claims 9223372036854775808 bytes"},
		{"header past the end", long, "truncated: its header claims 1000 bytes, the file has 0"},
		{"no JSON", file(`hello`, 0), "no JSON object"},
		{"array", file(`[]`, 0), "no JSON object"},
		{"cut JSON", file(`{"a":{"dtype":"F32"`, 0), "ends early"},
		{"cut after tensor", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`, 1), "ends early"},
		{"trailing JSON", file(`{}{}`, 0), "after the JSON object"},
		{"duplicate", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), `"a" is there twice`},
		{"deep value", file(`{"a":`+deep+`}`, 0), `"a"`},
		{"deep metadata", file(`{"__metadata__":{"x":`+deep+`}}`, 0), "__metadata__"},
		{"metadata of numbers", file(`{"__metadata__":{"x":1}}`, 0), "__metadata__"},
		{"tensor is a number", file(`{"a":1}`, 0), `"a"`},
		{"dtype", file(`{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}`, 4), `"a": unknown dtype "F31"`},
		{"no offsets", file(`{"a":{"dtype":"U8","shape":[1]}}`, 1), "no byte range"},
		{"one offset", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}`, 1), "no byte range"},
		{"reversed", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, 1), "no byte range"},
		{"negative offset", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}`, 1), `"a"`},
		{"negative shape", file(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, 1), `"a"`},
		{"fraction", file(`{"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}`, 1), `"a"`},
		{"size", file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "takes 12 bytes"},
		{"half a byte", file(`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}}`, 1), `"a"`},
		{"product over 64 bits", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,8]}}`, 8), "absurd"},
		{"product wraps to 0", file(`{"a":{"dtype":"F32","shape":[9223372036854775807,2],"data_offsets":[0,0]}}`, 0), "absurd"},
		{"overlap", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), `"b": bytes [1, 3) overlap`},
		{"hole", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3), `"b": starts at byte 2, which leaves a hole`},
		{"truncated", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[9],"data_offsets":[1,10]}}`, 5), `"b": the file is truncated`},
		{"over 32 bits, truncated", file(`{"a":{"dtype":"U8","shape":[8589934592],"data_offsets":[0,8589934592]}}`, 5), `"a": the file is truncated`},
		{"tail", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 5), "4 bytes follow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(fstest.MapFS{"m.safetensors": {Data: c.data}}, "m.safetensors")
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "m.safetensors") {
				t.Errorf("error %v, want %q and the file's name in it", err, c.want)
			}
		})
	}
}

func TestOpenWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "d.safetensors"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "e.safetensors"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"d.safetensors": "not a regular file", "e.safetensors": "truncated", "f.safetensors": "no such file"} {
		if _, err := Open(os.DirFS(dir), name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want %q in it", name, err, want)
		}
	}
}

// TestOver32Bits: a sparse file with a tensor behind the first 4 GiB, read through the mapping.
func TestOver32Bits(t *testing.T) {
	const big = 1<<32 + 8
	head := `{"a":{"dtype":"U8","shape":[4294967304],"data_offsets":[0,4294967304]},"b":{"dtype":"U8","shape":[3],"data_offsets":[4294967304,4294967307]}}`
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "m.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(file(head, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{7, 8, 9}, int64(8+len(head))+big); err != nil {
		t.Skip("the file system has no sparse files of this size:", err)
	}
	m, err := Open(os.DirFS(dir), "m.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !m.mapped {
		t.Skip("no mapping here: the test would read 4 GiB")
	}
	b, _ := m.Tensor("b")
	if !bytes.Equal(b.Bytes, []byte{7, 8, 9}) {
		t.Errorf("b is %v", b.Bytes)
	}
	for _, x := range m.Tensors {
		m.Release(x)
	}
	if !bytes.Equal(b.Bytes, []byte{7, 8, 9}) {
		t.Error("b changed when its pages were dropped")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"x":"y"}}`, 8))
	f.Add(file(`{"a":{"dtype":"U8","shape":[0,3],"data_offsets":[0,0]},"b":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, 1))
	f.Add(file(`{}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse("x", data)
		if err != nil {
			return
		}
		sum := 0
		for _, x := range m.Tensors {
			got, ok := m.Tensor(x.Name)
			if !ok || got.Name != x.Name {
				t.Fatalf("tensor %q is not found", x.Name)
			}
			sum += len(x.Bytes)
		}
		if head := int(binary.LittleEndian.Uint64(data)); 8+head+sum != len(data) {
			t.Fatalf("tensors have %d bytes, the file %d after its header", sum, len(data)-8-head)
		}
		// What was read can be written, and reads back the same.
		var buf bytes.Buffer
		if err := Write(&buf, m.Tensors, m.Meta); err != nil {
			t.Fatal(err)
		}
		again, err := Parse("x", buf.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range m.Tensors {
			if y, ok := again.Tensor(x.Name); !ok || y.DType != x.DType || !slices.Equal(y.Shape, x.Shape) || !bytes.Equal(y.Bytes, x.Bytes) {
				t.Fatalf("%q changed when written and read", x.Name)
			}
		}
	})
}

// TestHeaderCost: a header costs memory in proportion to its size, and an error about it shows little of it.
func TestHeaderCost(t *testing.T) {
	many := func(n int) []byte {
		var h strings.Builder
		for i := range n {
			fmt.Fprintf(&h, `,"t%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i)
		}
		return file("{"+h.String()[1:]+"}", 0)
	}
	cost := func(data []byte) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Parse("m", data); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(data))
	}
	small, large := cost(many(5000)), cost(many(10000))
	if large > 64 || large > 2*small {
		t.Errorf("%.0f bytes for a byte of 5,000 tensors, %.0f of 10,000", small, large)
	}
	long := strings.Repeat("1,", 1<<19) + "1"
	for name, header := range map[string]string{
		"a shape":       `{"a":{"dtype":"U8","shape":[` + long + `],"data_offsets":[0,0]}}`,
		"offsets":       `{"a":{"dtype":"U8","shape":[0],"data_offsets":[` + long + `]}}`,
		"a name":        `{"` + long + `":{"dtype":"U8","shape":[3],"data_offsets":[0,0]}}`,
		"a dtype":       `{"a":{"dtype":"` + long + `","shape":[3],"data_offsets":[0,0]}}`,
		"a number":      `{"a":{"dtype":"U8","shape":[-` + strings.ReplaceAll(long, ",", "") + `],"data_offsets":[0,0]}}`,
		"a name\\n":     `{"\n\u001b[2J":{"dtype":"U8","shape":[3],"data_offsets":[0,0]}}`,
		"17 dimensions": `{"a":{"dtype":"U8","shape":[0` + strings.Repeat(",1", 16) + `],"data_offsets":[0,0]}}`,
	} {
		if _, err := Parse("m", file(header, 0)); err == nil || len(err.Error()) > 700 || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: %d bytes: %.800v", name, len(fmt.Sprint(err)), err)
		}
	}
	if _, err := Parse("m", file(`{"a":{"dtype":"U8","shape":[0`+strings.Repeat(",1", 15)+`],"data_offsets":[0,0]}}`, 0)); err != nil {
		t.Errorf("16 dimensions: %v", err)
	}
}
