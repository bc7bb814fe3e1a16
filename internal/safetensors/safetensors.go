// Package safetensors reads and writes safetensors files: an 8-byte little-endian header length, a JSON header, then
// the tensors' bytes back to back. package model calls it. Reading maps the file where the system can, so opening costs
// the header only; it never interprets numbers. A mapped file must not be cut short by others while it is open.
package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"unsafe"

	"hearth/internal/regular"
)

// MaxHeader bounds the JSON header, as the format's reference implementation does.
const MaxHeader = 100_000_000

// Tensor is one tensor of a file. Bytes is a view that stays valid until the file is closed; it may be unaligned and
// must not be written to.
type Tensor struct {
	Name  string
	DType string // file spelling: BF16, F32, U32, U8, …
	Shape []int
	Bytes []byte

	at int // offset in the file
}

// File is an open safetensors file. Its tensors may be read from several goroutines.
type File struct {
	Name    string
	Meta    map[string]string // __metadata__
	Tensors []Tensor          // in the order of their bytes
	index   map[string]int
	data    []byte
	mapped  bool
}

// Open reads the header of name in fsys and checks all of it. A file that has a descriptor (from os.DirFS) is mapped
// into memory, any other (embedded) is read. Errors name the file and, where one is at fault, the tensor.
func Open(fsys fs.FS, name string) (*File, error) {
	h, size, err := regular.OpenFS(fsys, name, math.MaxInt)
	if err != nil {
		return nil, fmt.Errorf("open safetensors: %w", err)
	}
	defer func() { _ = h.Close() }()
	data, mapped, err := contents(h, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f, err := Parse(name, data)
	if err != nil {
		if mapped {
			err = errors.Join(err, unmap(data))
		}
		return nil, err
	}
	f.mapped = mapped
	return f, nil
}

// contents maps or reads a whole file.
func contents(h fs.File, size int64) (data []byte, mapped bool, err error) {
	if fd, ok := h.(interface{ Fd() uintptr }); ok {
		if data, err := mmap(fd.Fd(), int(size)); err == nil {
			return data, true, nil
		}
	}
	data = make([]byte, size)
	if _, err := io.ReadFull(h, data); err != nil {
		return nil, false, fmt.Errorf("was cut while it was read: %w", err)
	}
	return data, false, nil
}

// Parse is Open for bytes already in memory; name is used in errors. The file keeps data.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Name: name, data: data, index: map[string]int{}}
	if err := f.parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, regular.Short(err))
	}
	return f, nil
}

func (f *File) parse() error {
	if len(f.data) < 8 {
		return fmt.Errorf("is truncated: %d bytes, too short for a safetensors header", len(f.data))
	}
	n := binary.LittleEndian.Uint64(f.data)
	if n > MaxHeader {
		return fmt.Errorf("is no safetensors file or damaged: its header claims %d bytes, more than %d", n, MaxHeader)
	}
	if n > uint64(len(f.data)-8) {
		return fmt.Errorf("is truncated: its header claims %d bytes, the file has %d", n, len(f.data)-8)
	}
	head, body := f.data[8:8+n], f.data[8+n:]
	entries, meta, err := parseHeader(head)
	if err != nil {
		return err
	}
	f.Meta = meta
	return f.place(entries, body)
}

// Tensor finds a tensor by name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Rename calls every tensor what to makes of its name, which must keep them apart.
func (f *File) Rename(to func(name string) string) {
	clear(f.index)
	for i := range f.Tensors {
		f.Tensors[i].Name = to(f.Tensors[i].Name)
		f.index[f.Tensors[i].Name] = i
	}
}

// Release tells the system that the tensor's bytes are not needed for now, so that their memory can be used for
// something else. Reading them again is correct, and slow if they must come from the disk. It does nothing for a file
// held in memory.
func (f *File) Release(t Tensor) {
	if i, ok := f.index[t.Name]; ok && f.mapped {
		at := f.Tensors[i].at
		release(f.data, at, at+len(f.Tensors[i].Bytes))
	}
}

// Mapped reports whether tensors are views into a mapped file.
func (f *File) Mapped() bool { return f.mapped }

// ReleasePart is Release for a part of a tensor's bytes.
func (f *File) ReleasePart(part []byte) {
	if len(part) == 0 || !f.mapped {
		return
	}
	at := int(uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(f.data))))
	if at >= 0 && at+len(part) <= len(f.data) {
		release(f.data, at, at+len(part))
	}
}

// Bytes is the size of the file.
func (f *File) Bytes() int64 { return int64(len(f.data)) }

// Close ends the life of all tensors' bytes.
func (f *File) Close() error {
	data := f.data
	f.data, f.Tensors, f.index = nil, nil, nil
	if !f.mapped {
		return nil
	}
	f.mapped = false
	return unmap(data)
}
